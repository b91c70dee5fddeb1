"""Figures on PDLT-B, which has none of its own: what its closure of the vertex misses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory.criticality import closure_four_point, closure_kernel_variance
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.style import BLUE, ORANGE, panels, styled

_K0 = 2.0
_BRANCHES = (0.05, 0.05**0.5)
# Simulated layers that are marked.
_MARKED = 9


@dataclass(frozen=True, eq=False)
class Closure:
    """Numbers of `closure`; the first axis is that of the two residual scalings.

    Attributes
    ----------
    network : ResidualNetwork
        Everything but ρ.
    branch_scales : ndarray, shape (2,)
        ρ.
    kernels : ndarray, shape (2, L+1)
        K^(l).
    variances, printed_variances : ndarray, shape (2, L+1)
        N Var K^(l), exact to order 1/N and in the closure.
    vertices, printed_vertices : ndarray, shape (2, L+1)
        V^(l), the same.
    simulated, error : ndarray, shape (2, L+1)
        N Var K^(l) of simulated networks, and its standard error.
    simulated_vertices, vertex_error : ndarray, shape (2, L+1)
        V^(l) of the same.
    samples : int
        How many of them.
    """

    network: ResidualNetwork
    branch_scales: np.ndarray
    kernels: np.ndarray
    variances: np.ndarray
    printed_variances: np.ndarray
    vertices: np.ndarray
    printed_vertices: np.ndarray
    simulated: np.ndarray
    error: np.ndarray
    simulated_vertices: np.ndarray
    vertex_error: np.ndarray
    samples: int

    def curves(self) -> list[Curve]:
        """N Var K/K² in (a) and (c), V/K² in (b) and (d)."""
        kinds = (
            (self.variances, self.printed_variances, self.simulated, self.error),
            (self.vertices, self.printed_vertices, self.simulated_vertices, self.vertex_error),
        )
        found = []
        for panel, (i, kind) in zip("abcd", np.ndindex(2, 2), strict=True):
            exact, printed, simulated, error = (x[i] / self.kernels[i] ** 2 for x in kinds[kind])
            found += [
                over_layers(panel, "exact", exact),
                over_layers(panel, "PDLT-B", printed),
                over_layers(panel, "simulation", simulated, error),
            ]
        return found


def closure(
    depth: int = 400,
    width: int = 100,
    samples: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Closure:
    """What the closure (B.26) misses: exact to order 1/N, in the closure, and simulated.

    Parameters
    ----------
    depth, width : int
        L and N.
    samples : int
        Number of simulated networks for each ρ.
    seed, jobs, progress
        As for `simulate`.

    Returns
    -------
    Closure

    Notes
    -----
    tanh, γ = 1, σ_w² = 2, σ_b = 0 and K^(0) = 2 with ρ = 0.05, the parameters of arXiv:2604.15742,
    which closes on one kernel, and with ρ²σ_w² = 0.1. The vertex is N Var K^(l) and what one neuron
    shares with the kernel, which the closure has right: V differs by as much as N Var K,
    which fewer networks resolve.
    """
    net = ResidualNetwork(
        depth=depth,
        activation=as_activation("tanh"),
        weight_variance=2.0,
        bias_variance=0.0,
        width=width,
    )
    networks = [net.replace(branch_scale=rho) for rho in _BRANCHES]
    found = in_turn([partial(_theory, each) for each in networks], "pdlt.closure", progress)
    ensembles = [
        simulate(each, _K0, samples=samples, seed=seed + i, jobs=jobs, progress=progress)
        for i, each in enumerate(networks)
    ]
    kernels, variances, printed_variances, vertices, printed = np.moveaxis(np.array(found), 1, 0)
    return Closure(
        network=net,
        branch_scales=np.array(_BRANCHES),
        kernels=kernels,
        variances=variances,
        printed_variances=printed_variances,
        vertices=vertices,
        printed_vertices=printed,
        simulated=width * np.stack([e.kernel_variance for e in ensembles]),
        error=width * np.stack([e.kernel_variance_error for e in ensembles]),
        simulated_vertices=np.array([e.four_point for e in ensembles]),
        vertex_error=np.array([e.four_point_error for e in ensembles]),
        samples=samples,
    )


@styled
def draw_closure(numbers: Closure) -> Any:
    """(a), (c) N Var K/K², (b), (d) V/K², for both ρ, with simulated networks."""
    figure, axes = panels((2.3, 2.3, 2.3, 2.3), 2.5)
    ax_of = dict(zip("abcd", axes, strict=True))
    marked = np.unique(np.linspace(1, numbers.network.depth, _MARKED).round().astype(int))
    styles = {
        "exact": {"color": BLUE, "label": "exact to order $1/N$"},
        "PDLT-B": {"color": ORANGE, "linestyle": "--", "label": "PDLT-B (B.26)"},
    }
    for curve in numbers.curves():
        ax = ax_of[curve.panel]
        if curve.error is None:
            ax.plot(curve.x, curve.y, **styles[curve.label])
        else:
            points = {"fmt": "o", "color": "black", "markersize": 3, "linewidth": 1}
            error = 2 * curve.error[marked]
            ax.errorbar(marked, curve.y[marked], error, label="simulation", **points)
    for i, (ax, panel) in enumerate(zip(axes, "abcd", strict=True)):
        strength = numbers.network.weight_variance * numbers.branch_scales[i // 2] ** 2
        ax.set_title(rf"({panel})  $\rho^2 \sigma_w^2 = {strength:.3g}$", loc="left", fontsize=8.5)
        ax.set(xlabel="layer $l$", ylim=(0, None))
        ax.set_ylabel(r"$V / K^2$" if i % 2 else r"$N \, \mathrm{Var}\,K / K^2$")
    axes[0].legend(loc="upper left")
    net = numbers.network
    # All that the points tell is what the bars leave.
    hidden = ", ".join(f"({panel})" for panel in "abcd" if _is_hidden(numbers.curves(), panel))
    limits = f", which hide in {hidden} what the closure misses" if hidden else ""
    note(
        figure,
        rf"chosen here: $N = {net.width}$, {numbers.samples} networks, two standard errors"
        rf"{limits}; tanh, $\gamma = 1$, $\sigma_w^2 = 2$, $\sigma_b = 0$, $K^{{(0)}} = {_K0:g}$",
    )
    return figure


def _is_hidden(curves: list[Curve], panel: str) -> bool:
    """Whether two standard errors exceed the difference of the closure from the exact theory."""
    of = {curve.label: curve for curve in curves if curve.panel == panel}
    error = of["simulation"].error
    assert error is not None
    return bool(np.all(np.abs(of["exact"].y - of["PDLT-B"].y) <= 2 * error))


def _theory(network: ResidualNetwork) -> tuple[np.ndarray, ...]:
    """K^(l), N Var K^(l) exact and in the closure, V^(l) exact and in the closure."""
    s, N = solve(network, _K0), network.width
    variances = N * s.kernel_variance, N * closure_kernel_variance(network, _K0)
    return s.kernels[:-1], *variances, s.four_point, closure_four_point(network, _K0)
