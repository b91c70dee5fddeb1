"""The result of `simulate_gradients`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.result import Result
from fieldtheory.plotting.curves import Curve

FIELDS = fields_of(
    r"""
    gradients | layer | N_l \langle (\partial y / \partial W_{ij}^{(l)})^2 \rangle
        | mean squares of the gradients by one weight, times the rows of the matrix
        | always with_error of_none panel=gradients column=gradient
    theory | layer | N_l \langle (\partial y / \partial W_{ij}^{(l)})^2 \rangle_\infty
        | the same of infinitely wide networks | always of_none panel=gradients column=theory
    upper_bound | - | C\,e^{\sigma_w^2 \Sigma_l \rho_l^2 / 2}
        | upper bound for all layers of infinitely wide networks | always of_none
    lower_bound | - | \kappa (1 + \rho_{\min}^2 \sigma_w^2 / 2)^L
        | lower bound for the layers 1, ..., L of infinitely wide networks | always of_none
    """
)


@dataclass(frozen=True, eq=False)
class SimulatedGradients(Result):
    """Squares of the gradients of random finite networks, with their theory and bounds.

    With L the depth, N_l the number of rows of the matrix of layer l (N, and 1 for the readout),
    and for P inputs an axis (P,) in front:

    ===============  ========  ==================================================================
    field            shape     meaning
    ===============  ========  ==================================================================
    gradients        (L+2,)    N_l ⟨(∂y/∂W_ij^(l))²⟩ of the read-in, the layers and the readout
    gradients_error  (L+2,)    standard error
    theory           (L+2,)    the same for N → ∞
    upper_bound      ()        of ``theory``, all layers (SR Proposition 1); None if it has none
    lower_bound      ()        of ``theory``, layers 1, ..., L
    ===============  ========  ==================================================================

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=4, activation="relu", weight_variance=2.0, width=200)
    >>> found = ft.simulate_gradients(net, 0.5, samples=100, seed=1)
    >>> found.gradients.shape, bool((found.theory < found.upper_bound).all())
    ((6,), True)
    """

    table = FIELDS
    settings = {"samples": int, "seed": int, "method": str, "loss_slope": str}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    samples: int
    seed: int
    method: str
    gradients: np.ndarray
    gradients_error: np.ndarray
    theory: np.ndarray
    upper_bound: np.ndarray | None = None
    lower_bound: np.ndarray | None = None
    loss_slope: str | None = None

    def __repr__(self) -> str:
        net = self.network
        return (
            f"SimulatedGradients(depth={net.depth}, activation={net.activation.name}, "
            f"width={net.width}, samples={self.samples}, method={self.method}, seed={self.seed})"
        )

    def _curves(self) -> dict[str, list[list[Curve]]]:
        panels = super()._curves()
        if self.upper_bound is not None and self.lower_bound is not None:
            lines, (groups,) = [], panels.values()
            bounds = np.ravel(self.upper_bound), np.ravel(self.lower_bound)
            for pair in zip(*bounds, strict=True):
                for bound, first in zip(pair, (0, 1), strict=True):
                    layers = np.arange(first, self.network.depth + 1)
                    y = np.full(len(layers), bound)
                    lines.append(Curve("gradients", "bounds", layers, y))
            groups.append(lines)
        return panels
