"""The fields of results, each declared once: files, labels, sweeps, tables and plots read it here.

A new field is one row of `FIELDS`, and the property of `Solution` that computes it. The fields
that simulations estimate are declared with their results, in the same form.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fieldtheory.families import named, registered


@dataclass(frozen=True, kw_only=True)
class Field:
    """Description of one field of a result.

    >>> FIELDS["response"].dims_for(matrix=True)
    ('hidden_layer', 'input', 'input_')
    """

    # The attribute of the result that holds it, in LaTeX and in words.
    name: str
    symbol: str
    long_name: str
    # Dimensions for one input, behind the batch axes; see `coordinates`. The hidden layers are
    # 0, ..., L, the layers end with L + 1, the readout.
    dims: tuple[str, ...]
    # Dimensions behind those if K0 is a matrix (P, P).
    of_inputs: tuple[str, ...] = ("input", "input_")
    # K0 for which it is defined: "one" for variances, "several" for matrices, or "any".
    inputs: str = "any"
    # Whether it takes batch axes; if not, it is of one network and one K0.
    batches: bool = True
    # Its power of 1/N, and the ``order`` of `solve` for which it is defined.
    order: int = 0
    loops: int = 1
    # "always" in files and labelled arrays; others if they have been computed, and "one input" ones
    # in the labelled arrays of a single input; "asked" by name alone.
    written: str = "asked"
    # Whether the result has its standard error, in ``<name>_error``.
    error: bool = False
    # The field of a simulation that measures it, such as "Ensemble.mean", and that for two pairs of
    # inputs that differ, for fields of ``pair`` and ``pair_``; empty if none does.
    simulated: str = ""
    simulated_across: str = ""
    # The field of which this one is the next order in 1/N, such as the mean shift of C*; of one of
    # two layers, it may correct the entries of a layer with itself.
    corrects: str = ""
    # The field whose layers it sums, which is all that it costs.
    sum_of: str = ""
    # Whether its size is that of kernels, to which terms in 1/N are relative: √(K_αα K_ββ).
    of_kernels: bool = False
    # Symbol of the entries of a layer with itself, in LaTeX, for fields of two layers.
    diagonal: str = ""
    # The panel of the plot of the result, and what heads its column in a table of layers; empty if
    # it has none. The field that continues it to the output there.
    panel: str = ""
    column: str = ""
    at_output: str = ""
    # What of the kernels says if 1/N is small where it is computed: their fluctuations, "spread",
    # or the shifts of their means, "shift".
    doubted_by: str = ""

    def dims_for(self, matrix: bool) -> tuple[str, ...]:
        """The dimensions behind the batch axes, for K0 a matrix or not."""
        return self.dims + self.of_inputs if matrix else self.dims

    @property
    def decides(self) -> bool:
        """Whether it is a kernel or a response, which tell if a theory describes a width."""
        return self.of_kernels or self.simulated.startswith("SimulatedResponse")

    @property
    def arrays(self) -> dict[str, dict[str, str]]:
        """The names of the arrays that results have of it, with their attributes."""
        arrays = {self.name: notes(self.long_name, self.symbol)}
        if self.error:
            words = f"standard error of the {self.long_name}", rf"\sigma[{self.symbol}]"
            arrays[f"{self.name}_error"] = notes(*words)
        return arrays

    def defined(self, matrix: bool, single: bool = True) -> bool:
        """Whether it exists for K0 a matrix or not, for a single network and K0 or a batch."""
        return self.inputs in ("any", "several" if matrix else "one") and (single or self.batches)


def table(*rows: Field) -> dict[str, Field]:
    """The rows by the names of their fields."""
    return {row.name: row for row in rows}


# Words of a table for parameters that go together.
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "always": {"written": "always"},
    "labelled": {"written": "one input"},
    "with_error": {"error": True},
    "of_kernels": {"of_kernels": True},
    "several": {"inputs": "several"},
    "one_network": {"batches": False, "written": "always"},
    "finite": {"batches": False, "written": "one input"},
    "two_loops": {"batches": False, "written": "one input", "inputs": "one", "loops": 2}
    | {"doubted_by": "spread"},
    "if_asked": {"written": "asked"},
    "spread": {"doubted_by": "spread"},
    "shift": {"doubted_by": "shift"},
    "order_1": {"order": 1},
    "order_2": {"order": 2},
    "of_pairs": {"of_inputs": ("pair", "pair_")},
    "of_input": {"of_inputs": ("input",)},
    "of_none": {"of_inputs": ()},
    "of_sources": {"of_inputs": ("input", "input_", "source")},
}


def fields_of(text: str) -> dict[str, Field]:
    """The fields of a table of rows of columns separated by bars, by their names.

    >>> found = fields_of("kernels | layer | K^{(l)} | kernels | always column=K")["kernels"]
    >>> found.column, found.dims, found.written
    ('K', ('layer',), 'always')
    """
    rows = re.sub(r"\n *\|", " |", text.strip()).splitlines()
    return table(*(_field(*row.strip().split(" | ")) for row in rows))


def _field(name: str, dims: str, symbol: str, long_name: str, *more: str) -> Field:
    attributes: dict[str, Any] = {"dims": tuple(dims.replace("-", "").split())}
    for word in " ".join(more).split():
        key, separator, value = word.partition("=")
        attributes |= (
            {key: value.replace("_", " ") if key == "panel" else value}
            if separator
            else _KINDS[word]
        )
    return Field(name=name, symbol=symbol, long_name=long_name, **attributes)


def coordinates(depth: int, inputs: int, samples: int = 0) -> dict[str, Any]:
    """The coordinate of every dimension that a field may have: indices, and what a source moves."""
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
    "time": ("time t = l Δt", "t"),
    "place": ("t = l/L, or the layer l", "t"),
    "degree": ("degree", "k"),
    "sample": ("simulated network", "n"),
    "layer": ("layer, the output last", "l"),
    "layer_": ("second layer, the output last", "m"),
    "hidden_layer": ("hidden layer", "l"),
    "hidden_layer_": ("second hidden layer", "m"),
    "input": ("input", r"\alpha"),
    "input_": ("second input", r"\beta"),
    "other_input": ("third input", r"\gamma"),
    "other_input_": ("fourth input", r"\delta"),
    "pair": ("pair of inputs", r"(\alpha\beta)"),
    "pair_": ("second pair of inputs", r"(\gamma\delta)"),
    "trained": ("kind of parameters that is trained", "k"),
    "training": ("training input", r"\mu"),
    "output": ("output", "i"),
    "source": ("entry of the input kernel that is moved", r"K^{(0)}_{\gamma\delta}"),
}


def notes(long_name: str, symbol: str) -> dict[str, str]:
    """The attributes of a labelled array; all quantities are dimensionless."""
    return {"long_name": long_name, "symbol": symbol, "units": "1"}


def labelled_coordinates(places: Mapping[str, Any], used: Collection[str]) -> dict[str, Any]:
    """Those of `coordinates` that are used, with their attributes, as xarray takes them."""
    return {
        dim: (dim, _pairs(values) if "pair" in dim else values, notes(*DIMENSIONS[dim]))
        for dim, values in places.items()
        if dim in used
    }


def _pairs(places: np.ndarray) -> list[str]:
    """Pairs of inputs in words, (0,0), (0,1), (1,1) of two inputs."""
    inputs = round((2 * len(places)) ** 0.5 - 0.5)
    return [f"({i},{j})" for i, j in zip(*np.triu_indices(inputs), strict=True)]


def batch_dims(batch: tuple[int, ...]) -> tuple[str, ...]:
    """The names of batch axes: ``batch``, or ``batch_0``, ``batch_1``, ... if there are several."""
    return ("batch",) if len(batch) == 1 else tuple(f"batch_{axis}" for axis in range(len(batch)))


FIELDS: Mapping[str, Field] = fields_of(
    r"""
    residual_kernels | layer | C^{(l)} | residual kernels
        | always of_kernels simulated=Ensemble.mean panel=kernels column=C
    kernels | layer | K^{(l)} | kernels
        | always of_kernels simulated=Ensemble.kernel_mean panel=kernels column=K
    residual_response | hidden_layer | \eta^{(l)}
        | responses of the residual kernels to the input kernel
        | always simulated=SimulatedResponse.residual_response
        | panel=responses column=eta at_output=output_response
    response | hidden_layer | \chi^{(l)} | responses of the kernels to the input kernel
        | always simulated=SimulatedResponse.response
        | panel=responses column=chi at_output=output_response
    output_kernel | - | K^{(L+1)} | kernel of the output
    output_response | - | \chi^{\mathrm{out}} | response of the output kernel to the input kernel
        | always simulated=SimulatedResponse.output_response
    tangent_kernels | layer | \Theta^{(l)} | tangent kernels | panel=tangent_kernels
    output_tangent_kernel | - | \Theta^{(L+1)} | tangent kernel of the output
    log_kernels | layer | \ln |K^{(l)}| | logarithms of the kernels | panel=logarithms
    log_response | hidden_layer | \ln |\chi^{(l)}|
        | logarithms of the responses of the kernels to the input kernel | panel=logarithms
    log_tangent_kernels | layer | \ln |\Theta^{(l)}| | logarithms of the tangent kernels
        | panel=logarithms
    tangent_signs | layer | \mathrm{sign}\,\Theta^{(l)} | signs of the tangent kernels
    decorrelation | layer
        | 1 - K_{\alpha\beta}^{(l)} / \sqrt{K_{\alpha\alpha}^{(l)} K_{\beta\beta}^{(l)}}
        | differences of the correlations of the inputs from one | several panel=decorrelation
    full_response | hidden_layer
        | \partial K_{\alpha\beta}^{(l)} / \partial K_{\gamma\delta}^{(0)}
        | responses of the kernels to the variances and the covariance of the inputs
        | several of_sources
    G12 | layer layer_ | \mathcal{G}_{12}^{(l,m)} | response propagator | finite order_1
    G11 | layer layer_ | \mathcal{G}_{11}^{(l,m)}
        | covariances of the residual kernels of two layers over networks
        | finite spread order_1 of_pairs
        | diagonal=\mathrm{Var}\,C^{(l)} panel=fluctuations column=var_C
        | simulated=Ensemble.covariance simulated_across=Ensemble.cross_covariance
    G11_error | layer layer_ | \sigma[\mathcal{G}_{11}^{(l,m)}]
        | errors of the covariances of the residual kernels, zero where they are exact
        | finite if_asked order_1 of_pairs several
    stream_covariance | hidden_layer hidden_layer_ | \mathrm{Cov}(R^{(l)}, R^{(m)})
        | covariances of the Gram matrices of the stream in two layers over networks
        | finite spread order_1 of_pairs diagonal=\mathrm{Var}\,R^{(l)}
        | simulated=Ensemble.kernel_covariance
    stream_variance | hidden_layer | \mathrm{Var}\,R^{(l)}
        | variances of the Gram matrix of the stream over networks | finite if_asked order_1
    shares | hidden_layer | C^{(l)} / (\gamma_l^2 K^{(l-1)} + C^{(l)})
        | shares of the layers in the mean squares behind them | of_input
    kernel_variance | hidden_layer | \mathrm{Var}\,K^{(l)} | variances of the kernels over networks
        | finite spread order_1 simulated=Ensemble.kernel_variance
        | panel=fluctuations column=var_K at_output=G11
    mean_shift | layer | \langle C^{(l)} \rangle_1
        | terms of order 1/N of the mean residual kernels
        | finite shift order_1 corrects=residual_kernels column=mean_shift
    mean_shift_error | layer | \sigma[\langle C^{(l)} \rangle_1]
        | errors of the mean shifts, zero where they are exact | finite if_asked order_1 several
    kernel_shift | layer | \langle K^{(l)} \rangle_1 | terms of order 1/N of the mean kernels
        | finite shift order_1 corrects=kernels sum_of=mean_shift
    residual_response_shift | hidden_layer | \eta_1^{(l)}
        | terms of order 1/N of the responses of the residual kernels
        | finite if_asked order_1 corrects=residual_response
    response_shift | hidden_layer | \chi_1^{(l)}
        | terms of order 1/N of the responses of the kernels
        | finite if_asked order_1 corrects=response sum_of=residual_response_shift
    response_shift_error | hidden_layer | \sigma[\chi_1^{(l)}]
        | errors of the terms of order 1/N of the responses, zero where they are exact
        | finite if_asked order_1 several
    output_response_shift | - | \chi_1^{\mathrm{out}}
        | term of order 1/N of the response of the output kernel
        | finite if_asked order_1 corrects=output_response
        | sum_of=residual_response_shift
    four_point | hidden_layer | V^{(l)} | four-point vertices of the hidden layers
        | finite spread of_pairs simulated=Ensemble.four_point column=V
        | simulated_across=Ensemble.cross_four_point
    four_point_error | hidden_layer | \sigma[V^{(l)}]
        | errors of the four-point vertices, zero where they are exact
        | finite if_asked of_pairs several
    output_kurtosis | - | \langle y^4 \rangle / \langle y^2 \rangle^2 - 3
        | excess kurtosis of the outputs | finite order_1 of_input
    mean_shift_2 | layer | \langle C^{(l)} \rangle_2
        | terms of order 1/N^2 of the mean residual kernels
        | two_loops order_2 corrects=residual_kernels column=mean_shift_2
    kernel_shift_2 | layer | \langle K^{(l)} \rangle_2 | terms of order 1/N^2 of the mean kernels
        | two_loops order_2 corrects=kernels sum_of=mean_shift_2
    variance_2 | layer | (\mathrm{Var}\,C^{(l)})_2
        | terms of order 1/N^2 of the variances of the residual kernels
        | two_loops order_2 corrects=G11 column=var_C_2
    third_cumulant | layer | \langle (\delta C^{(l)})^3 \rangle
        | third cumulants of the residual kernels over networks
        | two_loops order_2 column=cumulant_3
    resummed_mean | layer | \langle C^{(l)} \rangle_{\mathrm{res}}
        | mean residual kernels, resummed | two_loops order_2 if_asked
    resummed_variance | layer | (\mathrm{Var}\,C^{(l)})_{\mathrm{res}}
        | variances of the residual kernels, resummed | two_loops order_2 if_asked
    four_point_2 | hidden_layer | V_2^{(l)} | terms of order 1/N of the four-point vertices
        | two_loops order_1 corrects=four_point column=V_2
    order_ratio | layer | \epsilon^{(l)}
        | sizes of the terms of order 1/N^2 relative to those of order 1/N
        | two_loops order_2 inputs=any of_input doubted_by=
    """
)


@cache
def compared() -> Mapping[str, Field]:
    """All that theory and simulation are compared in, of every family."""
    own = (dict(named(family.fields)) for family in registered() if family.fields)
    return ChainMap(*own, dict(FIELDS))
