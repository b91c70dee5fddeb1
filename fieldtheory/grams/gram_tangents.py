"""`tangent_kernels` of networks of blocks, with a learning rate for every kind of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.grams.gram_solution import FIELDS as OF_SOLUTION
from fieldtheory.grams.gram_solution import GramSolution
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import fields_of, table
from fieldtheory.numerics.result import Computed, field
from fieldtheory.numerics.tangent.tangent_result import tangent_kernels

FIELDS = fields_of("rates | trained | \\eta | learning rates | one_network of_none") | table(
    replace(OF_SOLUTION["tangent_kernels"], written="always", column="Theta"),
    OF_SOLUTION["output_tangent_kernel"],
)
FIELDS |= fields_of(
    "parts | trained layer | \\Theta^{(L+1)}_{k, l} | parts of kinds of parameters and of layers "
    "in the tangent kernel of the output"
)


@dataclass(frozen=True, eq=False)
class GramTangentKernels(Computed):
    """The tangent kernel of a wide network of blocks of which one says what is trained.

    ``tangent_kernels`` Θ^(l), (..., L+2) or (..., L+2, P, P), last that of the output, and
    ``output_tangent_kernel``; ``rates`` are those of the kinds in ``network.trained``. ``parts``,
    (..., kinds, L+2) or (..., kinds, L+2, P, P), is what each kind of parameters in each layer,
    read-in first and readout last, adds to ``output_tangent_kernel``, which is the sum of all.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> theta = ft.tangent_kernels(ft.BlockNetwork(depth=2), 1.0)
    >>> theta.parts.sum(axis=0).round(4), float(theta.output_tangent_kernel.round(4))
    (array([1.0609, 1.0609, 0.6907, 1.    ]), 3.8125)
    >>> theta.network.trained[2], float(theta.parts.sum(axis=1)[2].round(3))
    ('inner_weight', 0.906)
    """

    table = FIELDS
    settings: ClassVar = {"rtol": float}

    network: GramNetwork  # type: ignore[assignment]
    input_kernel: np.ndarray
    rates: np.ndarray
    rtol: float = DEFAULT_TOLERANCE

    @field
    def tangent_kernels(self) -> np.ndarray:
        """Θ^(l)."""
        return self._solution.trained(self.rates)

    @field
    def parts(self) -> np.ndarray:
        """What each kind and layer adds to Θ^(L+1)."""
        return self._solution.trained_parts(self.rates)

    @cached_property
    def _solution(self) -> GramSolution:
        return GramSolution(self.network, self.input_kernel, self.rtol)

    @field
    def output_tangent_kernel(self) -> np.ndarray:
        """Θ^(L+1)."""
        layers = self.tangent_kernels
        return layers[..., -1, :, :] if self._has_matrix else layers[..., -1]

    def _coordinates(self) -> dict[str, Any]:
        return super()._coordinates() | {"trained": list(self.network.trained)}


@tangent_kernels.register(GramNetwork)
@named_arguments
def gram_tangent_kernels(
    network: GramNetwork,
    K0: Any,
    rates: Mapping[str, float] | None = None,
    rtol: float = DEFAULT_TOLERANCE,
) -> GramTangentKernels:
    """The neural tangent kernel of every layer of a network of blocks, for N → ∞.

    Parameters
    ----------
    network : GramNetwork
        Such as a `BlockNetwork`.
    K0 : float or array_like
        As for `solve`.
    rates : mapping of str to float, optional
        Learning rates >= 0 of kinds of parameters, 0 for what is not trained and 1 where they are
        left out: of a `BlockNetwork` with a gate "readin_weight", "readin_bias", "inner_weight",
        "inner_bias", "gate_weight", "outer_weight", "outer_bias", "readout_weight", "readout_bias",
        each trained as parameters of variance one times σ.
    rtol : float
        As for `solve`.

    Returns
    -------
    GramTangentKernels

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net, kinds = ft.BlockNetwork(depth=2), ft.BlockNetwork(depth=2).trained
    >>> alone = dict.fromkeys(kinds, 0.0) | {"readout_weight": 1.0}
    >>> theta = ft.tangent_kernels(net, 1.0, alone).output_tangent_kernel
    >>> bool(np.isclose(theta, ft.solve(net, 1.0).output_kernel))
    True
    """
    kernel = validation.input_kernel_array("K0", K0)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    if not isinstance(rates, Mapping | None):
        raise TypeError(f"rates must map kinds of parameters to rates, got {rates!r}")
    chosen = dict(rates or {})
    for name, rate in chosen.items():
        validation.choice("rates", name, network.trained)
        validation.nonnegative(f"rates[{name!r}]", rate)
    values = np.array([float(chosen.get(name, 1.0)) for name in network.trained])
    return GramTangentKernels(network, kernel, values, rtol)
