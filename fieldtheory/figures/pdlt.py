"""Figures on PDLT-B, which has none of its own: what its closure of the vertex misses."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fieldtheory.criticality import closure_four_point, closure_kernel_variance
from fieldtheory.figures.parts import Numbers, in_turn, picture
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import over_layers
from fieldtheory.plotting.style import BLUE, ORANGE

# Variance of the input in arXiv:2604.15742.
_K0 = 2.0
_KINDS = (
    ("variances", "printed_variances", "simulated", "error"),
    ("vertices", "printed_vertices", "simulated_vertices", "vertex_error"),
)


def closure(
    depth: int = 400,
    width: int = 100,
    samples: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Numbers:
    """Fluctuations exact to order 1/N, in the closure (B.26), and simulated.

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
    Numbers
        The ``network`` without ρ, ``branch_scales`` ρ (2,), and with a row for each (2, L+1):
        ``kernels`` K^(l); N Var K^(l), exact to order 1/N in ``variances``, in the closure
        ``printed_variances``, and ``simulated`` with its standard ``error``; the vertex V^(l) in
        the same way, ``vertices``, ``printed_vertices``, ``simulated_vertices``, ``vertex_error``.

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
    scales = np.array([0.05, 0.05**0.5])
    networks = [net.replace(branch_scale=float(rho)) for rho in scales]
    rows = in_turn([partial(_theory, each) for each in networks], "pdlt.closure", progress)
    ensembles = [
        simulate(each, _K0, samples=samples, seed=seed + i, jobs=jobs, progress=progress)
        for i, each in enumerate(networks)
    ]
    names = "kernels", *_KINDS[0][:2], *_KINDS[1][:2]
    values = dict(zip(names, np.moveaxis(np.array(rows), 1, 0), strict=True))
    values["simulated"] = width * np.stack([e.kernel_variance for e in ensembles])
    values["error"] = width * np.stack([e.kernel_variance_error for e in ensembles])
    values["simulated_vertices"] = np.array([e.four_point for e in ensembles])
    values["vertex_error"] = np.array([e.four_point_error for e in ensembles])
    curves, hidden = [], []
    for panel, (i, kind) in zip("abcd", np.ndindex(2, 2), strict=True):
        units = values["kernels"][i] ** 2
        exact, printed, simulated, error = (values[name][i] / units for name in _KINDS[kind])
        curves += [over_layers(panel, "exact", exact), over_layers(panel, "PDLT-B", printed)]
        curves.append(over_layers(panel, "simulation", simulated, error))
        if np.all(np.abs(exact - printed) <= 2 * error):
            hidden.append(f"({panel})")
    # Bars that hide what the closure misses leave nothing for the points to tell.
    limits = f", which hide in {', '.join(hidden)} what the closure misses" if hidden else ""
    chosen = (
        rf"$N = {width}$, {samples} networks, two standard errors{limits}; tanh, $\gamma = 1$, "
        rf"$\sigma_w^2 = 2$, $\sigma_b = 0$, $K^{{(0)}} = {_K0:g}$"
    )
    return Numbers(curves, chosen, {"network": net, "branch_scales": scales} | values)


@picture((2.3, 2.3, 2.3, 2.3), 2.5)
def draw_closure(axes: Any, numbers: Numbers) -> None:
    """(a), (c) N Var K/K², (b), (d) V/K², for both ρ, with simulated networks."""
    net = numbers.network
    marked = np.unique(np.linspace(1, net.depth, 9).round().astype(int))
    strengths = np.repeat(net.weight_variance * numbers.branch_scales**2, 2)
    names = 2 * (r"$N \, \mathrm{Var}\,K / K^2$", r"$V / K^2$")
    content = zip(axes, numbers.panels().items(), strengths, names, strict=True)
    for ax, (panel, (exact, printed, points)), strength, name in content:
        ax.plot(exact.x, exact.y, color=BLUE, label="exact to order $1/N$")
        ax.plot(printed.x, printed.y, color=ORANGE, linestyle="--", label="PDLT-B (B.26)")
        look: Any = {"fmt": "o", "color": "black", "markersize": 3, "linewidth": 1}
        bars = 2 * np.asarray(points.error)[marked]
        ax.errorbar(marked, points.y[marked], bars, label="simulation", **look)
        ax.set_title(rf"({panel})  $\rho^2 \sigma_w^2 = {strength:.3g}$", loc="left", fontsize=8.5)
        ax.set(xlabel="layer $l$", ylabel=name, ylim=(0, None))
    axes[0].legend(loc="upper left")


def _theory(network: ResidualNetwork) -> tuple[np.ndarray, ...]:
    """K^(l), N Var K^(l) exact and in the closure, V^(l) exact and in the closure."""
    s, N = solve(network, _K0), network.width
    variances = N * s.kernel_variance, N * closure_kernel_variance(network, _K0)
    return s.kernels[:-1], *variances, s.four_point, closure_four_point(network, _K0)
