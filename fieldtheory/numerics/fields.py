"""The fields of results, each declared once: files, labels, sweeps, tables and plots read it here.

A new field is one row of `FIELDS`, beside the property of `Solution` that computes it. The fields
that simulations estimate are declared beside their results, in the same form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Field:
    """What is to be known of one field of a result.

    Parameters
    ----------
    name : str
        The attribute of the result that holds it.
    symbol : str
        In LaTeX.
    long_name : str
        In words.
    dims : tuple of str
        Dimensions for one input, behind the batch axes; see `coordinates`. The hidden layers are
        0, ..., L, the layers end with L + 1, the readout.
    of_inputs : tuple of str
        Dimensions behind those if K0 is a matrix (P, P).
    inputs : {"any", "one", "several"}
        K0 for which it is defined: "one" for variances, "several" for matrices.
    batches : bool
        Whether it takes batch axes; if not, it is of one network and one K0.
    order : int
        Its power of 1/N.
    loops : int
        The ``order`` of `solve` for which it is defined.
    shown : {"always", "one input", "asked"}
        "always": written to files and labelled arrays. The others are written if they have been
        computed; "one input" ones are computed for the labelled arrays of a single input.
    error : bool
        Whether the result has its standard error, in ``<name>_error``.
    simulated : str
        The field of a simulation that measures it, such as "Ensemble.mean"; empty if none does.
    simulated_across : str
        The same for two pairs of inputs that differ, for fields of ``pair`` and ``pair_``.
    corrects : str
        The field of which this one is the next order in 1/N, such as the mean shift of C*; of one
        of two layers, it may correct the entries of a layer with itself.
    sum_of : str
        The field whose layers it sums, which is all that it costs.
    of_kernels : bool
        Whether its size is that of kernels, to which terms in 1/N are relative: √(K_αα K_ββ).
    diagonal : str
        Symbol of the entries of a layer with itself, in LaTeX, for fields of two layers.
    panel : str
        The panel of the plot of the result; empty if it is not drawn.
    column : str
        What heads its column in a table of layers; empty if it has none.
    at_output : str
        The field that continues it to the output in such a table.

    Examples
    --------
    >>> FIELDS["response"].dims_for(matrix=True)
    ('hidden_layer', 'input', 'input_')
    """

    name: str
    symbol: str
    long_name: str
    dims: tuple[str, ...]
    of_inputs: tuple[str, ...] = ("input", "input_")
    inputs: str = "any"
    batches: bool = True
    order: int = 0
    loops: int = 1
    shown: str = "asked"
    error: bool = False
    simulated: str = ""
    simulated_across: str = ""
    corrects: str = ""
    sum_of: str = ""
    of_kernels: bool = False
    diagonal: str = ""
    panel: str = ""
    column: str = ""
    at_output: str = ""

    def dims_for(self, matrix: bool) -> tuple[str, ...]:
        """The dimensions behind the batch axes, for K0 a matrix or not."""
        return self.dims + self.of_inputs if matrix else self.dims

    @property
    def decides(self) -> bool:
        """Whether it is a kernel or a response, which tell if a theory describes a width."""
        return self.of_kernels or self.simulated.startswith("SimulatedResponse")

    def defined(self, matrix: bool, single: bool = True) -> bool:
        """Whether it exists for K0 a matrix or not, for a single network and K0 or a batch."""
        return self.inputs in ("any", "several" if matrix else "one") and (single or self.batches)


def table(*rows: Field) -> dict[str, Field]:
    """The rows by the names of their fields."""
    return {row.name: row for row in rows}


def coordinates(depth: int, inputs: int, samples: int = 0) -> dict[str, Any]:
    """The coordinate of every dimension that a field may have: indices, and what a source moves.

    Parameters
    ----------
    depth : int
        L.
    inputs : int
        P; ``pair`` counts the pairs α <= β as ``np.triu_indices(P)`` does.
    samples : int
        Simulated networks.

    Returns
    -------
    dict of str to array or list
    """
    layers, hidden = np.arange(depth + 2), np.arange(depth + 1)
    each, pairs = np.arange(inputs), np.arange(inputs * (inputs + 1) // 2)
    return {
        "sample": np.arange(samples),
        "layer": layers,
        "layer_": layers,
        "hidden_layer": hidden,
        "hidden_layer_": hidden,
        "input": each,
        "input_": each,
        "other_input": each,
        "other_input_": each,
        "pair": pairs,
        "pair_": pairs,
        "source": ["K_aa", "K_bb", "K_ab"],
    }


# In words and in LaTeX, for labelled arrays.
DIMENSIONS: Mapping[str, tuple[str, str]] = {
    "sample": ("simulated network", "n"),
    "layer": ("layer, the output last", "l"),
    "layer_": ("second layer, the output last", "m"),
    "hidden_layer": ("hidden layer", "l"),
    "hidden_layer_": ("second hidden layer", "m"),
    "input": ("input", r"\alpha"),
    "input_": ("second input", r"\beta"),
    "other_input": ("third input", r"\gamma"),
    "other_input_": ("fourth input", r"\delta"),
    "pair": ("pair of inputs, as np.triu_indices counts them", r"(\alpha\beta)"),
    "pair_": ("second pair of inputs", r"(\gamma\delta)"),
    "source": ("entry of the input kernel that is moved", r"K^{(0)}_{\gamma\delta}"),
}


def notes(long_name: str, symbol: str) -> dict[str, str]:
    """The attributes of a labelled array; all quantities are dimensionless."""
    return {"long_name": long_name, "symbol": symbol, "units": "1"}


def labelled_coordinates(found: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    """Those of `coordinates` that are used, with their attributes, as xarray takes them."""
    return {
        dim: (dim, values, notes(*DIMENSIONS[dim])) for dim, values in found.items() if dim in used
    }


def batch_dims(batch: tuple[int, ...]) -> tuple[str, ...]:
    """The names of batch axes: ``batch``, or ``batch_0``, ``batch_1``, ... if there are several."""
    return ("batch",) if len(batch) == 1 else tuple(f"batch_{axis}" for axis in range(len(batch)))


_LAYER, _HIDDEN, _LAYERS = ("layer",), ("hidden_layer",), ("layer", "layer_")

FIELDS: Mapping[str, Field] = table(
    Field(
        name="residual_kernels",
        symbol="C^{(l)}",
        long_name="residual kernels",
        dims=_LAYER,
        shown="always",
        simulated="Ensemble.mean",
        of_kernels=True,
        panel="kernels",
        column="C",
    ),
    Field(
        name="kernels",
        symbol="K^{(l)}",
        long_name="kernels",
        dims=_LAYER,
        shown="always",
        simulated="Ensemble.kernel_mean",
        of_kernels=True,
        panel="kernels",
        column="K",
    ),
    Field(
        name="residual_response",
        symbol=r"\eta^{(l)}",
        long_name="responses of the residual kernels to the input kernel",
        dims=_HIDDEN,
        shown="always",
        simulated="SimulatedResponse.residual_response",
        panel="responses",
        column="eta",
        at_output="output_response",
    ),
    Field(
        name="response",
        symbol=r"\chi^{(l)}",
        long_name="responses of the kernels to the input kernel",
        dims=_HIDDEN,
        shown="always",
        simulated="SimulatedResponse.response",
        panel="responses",
        column="chi",
        at_output="output_response",
    ),
    Field(
        name="output_kernel",
        symbol="K^{(L+1)}",
        long_name="kernel of the output",
        dims=(),
    ),
    Field(
        name="output_response",
        symbol=r"\chi^{\mathrm{out}}",
        long_name="response of the output kernel to the input kernel",
        dims=(),
        shown="always",
        simulated="SimulatedResponse.output_response",
    ),
    Field(
        name="tangent_kernels",
        symbol=r"\Theta^{(l)}",
        long_name="tangent kernels",
        dims=_LAYER,
        panel="tangent kernels",
    ),
    Field(
        name="output_tangent_kernel",
        symbol=r"\Theta^{(L+1)}",
        long_name="tangent kernel of the output",
        dims=(),
    ),
    Field(
        name="log_kernels",
        symbol=r"\ln |K^{(l)}|",
        long_name="logarithms of the kernels",
        dims=_LAYER,
        panel="logarithms",
    ),
    Field(
        name="log_response",
        symbol=r"\ln |\chi^{(l)}|",
        long_name="logarithms of the responses of the kernels to the input kernel",
        dims=_HIDDEN,
        panel="logarithms",
    ),
    Field(
        name="log_tangent_kernels",
        symbol=r"\ln |\Theta^{(l)}|",
        long_name="logarithms of the tangent kernels",
        dims=_LAYER,
        panel="logarithms",
    ),
    Field(
        name="tangent_signs",
        symbol=r"\mathrm{sign}\,\Theta^{(l)}",
        long_name="signs of the tangent kernels",
        dims=_LAYER,
    ),
    Field(
        name="decorrelation",
        symbol=r"1 - K_{\alpha\beta}^{(l)} / \sqrt{K_{\alpha\alpha}^{(l)} K_{\beta\beta}^{(l)}}",
        long_name="differences of the correlations of the inputs from one",
        dims=_LAYER,
        inputs="several",
        panel="decorrelation",
    ),
    Field(
        name="full_response",
        symbol=r"\partial K_{\alpha\beta}^{(l)} / \partial K_{\gamma\delta}^{(0)}",
        long_name="responses of the kernels to the variances and the covariance of the inputs",
        dims=_HIDDEN,
        of_inputs=("input", "input_", "source"),
        inputs="several",
    ),
    Field(
        name="G12",
        symbol=r"\mathcal{G}_{12}^{(l,m)}",
        long_name="response propagator",
        dims=_LAYERS,
        batches=False,
        order=1,
        shown="one input",
    ),
    Field(
        name="G11",
        symbol=r"\mathcal{G}_{11}^{(l,m)}",
        long_name="covariances of the residual kernels of two layers over networks",
        dims=_LAYERS,
        of_inputs=("pair", "pair_"),
        batches=False,
        order=1,
        shown="one input",
        simulated="Ensemble.covariance",
        simulated_across="Ensemble.cross_covariance",
        diagonal=r"\mathrm{Var}\,C^{(l)}",
        panel="fluctuations",
        column="var_C",
    ),
    Field(
        name="kernel_variance",
        symbol=r"\mathrm{Var}\,K^{(l)}",
        long_name="variances of the kernels over networks",
        dims=_HIDDEN,
        batches=False,
        order=1,
        shown="one input",
        simulated="Ensemble.kernel_variance",
        panel="fluctuations",
        column="var_K",
        at_output="G11",
    ),
    Field(
        name="mean_shift",
        symbol=r"\langle C^{(l)} \rangle_1",
        long_name="terms of order 1/N of the mean residual kernels",
        dims=_LAYER,
        batches=False,
        shown="one input",
        order=1,
        corrects="residual_kernels",
        column="mean_shift",
    ),
    Field(
        name="kernel_shift",
        symbol=r"\langle K^{(l)} \rangle_1",
        long_name="terms of order 1/N of the mean kernels",
        dims=_LAYER,
        batches=False,
        shown="one input",
        order=1,
        corrects="kernels",
        sum_of="mean_shift",
    ),
    Field(
        name="four_point",
        symbol="V^{(l)}",
        long_name="four-point vertices of the hidden layers",
        dims=_HIDDEN,
        of_inputs=("pair", "pair_"),
        batches=False,
        shown="one input",
        simulated="Ensemble.four_point",
        simulated_across="Ensemble.cross_four_point",
        column="V",
    ),
    Field(
        name="output_kurtosis",
        symbol=r"\langle y^4 \rangle / \langle y^2 \rangle^2 - 3",
        long_name="excess kurtosis of the outputs",
        dims=(),
        of_inputs=("input",),
        batches=False,
        shown="one input",
        order=1,
    ),
    Field(
        name="mean_shift_2",
        symbol=r"\langle C^{(l)} \rangle_2",
        long_name="terms of order 1/N^2 of the mean residual kernels",
        dims=_LAYER,
        inputs="one",
        batches=False,
        shown="one input",
        order=2,
        loops=2,
        corrects="residual_kernels",
        column="mean_shift_2",
    ),
    Field(
        name="kernel_shift_2",
        symbol=r"\langle K^{(l)} \rangle_2",
        long_name="terms of order 1/N^2 of the mean kernels",
        dims=_LAYER,
        inputs="one",
        batches=False,
        shown="one input",
        order=2,
        loops=2,
        corrects="kernels",
        sum_of="mean_shift_2",
    ),
    Field(
        name="variance_2",
        symbol=r"(\mathrm{Var}\,C^{(l)})_2",
        long_name="terms of order 1/N^2 of the variances of the residual kernels",
        dims=_LAYER,
        inputs="one",
        batches=False,
        shown="one input",
        order=2,
        loops=2,
        corrects="G11",
        column="var_C_2",
    ),
    Field(
        name="third_cumulant",
        symbol=r"\langle (\delta C^{(l)})^3 \rangle",
        long_name="third cumulants of the residual kernels over networks",
        dims=_LAYER,
        inputs="one",
        batches=False,
        shown="one input",
        order=2,
        loops=2,
        column="cumulant_3",
    ),
    Field(
        name="resummed_mean",
        symbol=r"\langle C^{(l)} \rangle_{\mathrm{res}}",
        long_name="mean residual kernels, resummed",
        dims=_LAYER,
        inputs="one",
        batches=False,
        order=2,
        loops=2,
    ),
    Field(
        name="resummed_variance",
        symbol=r"(\mathrm{Var}\,C^{(l)})_{\mathrm{res}}",
        long_name="variances of the residual kernels, resummed",
        dims=_LAYER,
        inputs="one",
        batches=False,
        order=2,
        loops=2,
    ),
    Field(
        name="four_point_2",
        symbol="V_2^{(l)}",
        long_name="terms of order 1/N of the four-point vertices",
        dims=_HIDDEN,
        inputs="one",
        batches=False,
        shown="one input",
        order=1,
        loops=2,
        corrects="four_point",
        column="V_2",
    ),
    Field(
        name="order_ratio",
        symbol=r"\epsilon^{(l)}",
        long_name="sizes of the terms of order 1/N^2 relative to those of order 1/N",
        dims=_LAYER,
        inputs="one",
        batches=False,
        shown="one input",
        order=2,
        loops=2,
    ),
)
