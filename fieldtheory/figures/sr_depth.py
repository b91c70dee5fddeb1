"""SR Figs. 1 and 2 and finite networks against depth; reached as `sr.fig1`, `sr.width`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fieldtheory.figures.parts import Numbers, curves_of, in_turn, integers, picture
from fieldtheory.inference import spectrum
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GREEN, ORANGE

# The schedules in the words of SR, and by the names of the package.
SCHEDULES = {"unscaled": "none", "decreasing": "decreasing", "uniform": "uniform"}
COLOURS = (ORANGE, BLUE, GREEN)
CHOSEN = r"ReLU, $\gamma = 1$, $\sigma_w^2 = 2$, $\sigma_b = 0$"


def stable_networks(depth: int) -> list[ResidualNetwork]:
    """Networks of a depth with the three schedules, σ_w² = 2 and σ_b = 0.

    >>> [net.branch_scale for net in stable_networks(5)]
    ['none', 'decreasing', 'uniform']
    """
    parameters: Any = {"activation": as_activation("relu"), "bias_variance": 0.0}
    return [
        ResidualNetwork(depth=depth, branch_scale=schedule, weight_variance=2.0, **parameters)
        for schedule in SCHEDULES.values()
    ]


def of_constant_variance(network: ResidualNetwork) -> ResidualNetwork:
    """A ReLU network without biases with the same correlations in all layers, of one variance.

    >>> net = of_constant_variance(stable_networks(2000)[0])
    >>> bool(np.allclose(solve(net, 2.0).kernels[:-1], 2.0))
    True
    """
    growth = np.exp(np.diff(solve(network, 2.0).log_kernels[:-1]) / 2)
    return network.replace(skip_scale=1 / growth, branch_scale=network.branch_scales / growth)


def fig1(depths: Sequence[int] = tuple(range(1, 51)), progress: bool = False) -> Numbers:
    """Kernels of the last hidden layer against depth: SR Fig. 1.

    Parameters
    ----------
    depths : sequence of int
        L.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Numbers
        ``depths`` (D,), and with a row for each schedule ``kernels`` K^(L) and ``tangent_kernels``
        Θ^(L) (3, D), for an input with |x|² = d, as SR leaves the point open: K^(0) = σ_w² = 2.

    Examples
    --------
    >>> numbers = fig1(depths=(1, 2, 3))
    >>> numbers.kernels[0].round(12).tolist()
    [4.0, 8.0, 16.0]
    """
    L = integers("depths", depths)
    parts = [partial(_last_layer, depth) for depth in L.tolist()]
    K, Theta = np.array(in_turn(parts, "sr.fig1", progress)).T
    labels = [f"{schedule}, {kind}" for kind in ("NNGP", "NTK") for schedule in SCHEDULES]
    curves = curves_of("a", labels, L, [*K, *Theta])
    values = {"depths": L, "kernels": K, "tangent_kernels": Theta}
    return Numbers(curves, rf"{CHOSEN}, $|x|^2 = d$", values)


def _last_layer(depth: int) -> np.ndarray:
    solutions = [solve(net, 2.0) for net in stable_networks(depth)]
    return np.array([(s.kernels[-2], s.tangent_kernels[-2]) for s in solutions])


@picture((4.6,), 2.7)
def draw_fig1(axes: Any, numbers: Numbers) -> None:
    """K^(L) and, dashed, Θ^(L) against depth."""
    (ax,) = axes
    for curve, colour in zip(numbers.listed, 2 * COLOURS, strict=True):
        schedule, kind = curve.label.split(", ")
        line, label = ("-", schedule) if kind == "NNGP" else ("--", None)
        ax.semilogy(curve.x, curve.y, line, color=colour, label=label)
    ax.plot([], [], "k-", label="NNGP $K^{(L)}$")
    ax.plot([], [], "k--", label=r"NTK $\Theta^{(L)}$")
    ax.set(xlabel="depth $L$", ylabel="kernel of one input")
    ax.legend()


def fig2(
    depths: Sequence[int] = (10, 100, 1000), count: int = 25, progress: bool = False
) -> Numbers:
    """Eigenvalues of the kernels on the circle: SR Fig. 2.

    Parameters
    ----------
    depths : sequence of int
        L.
    count : int
        Degrees.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Numbers
        ``depths`` (D,) and ``eigenvalues`` μ_k of degree k relative to the largest, of the output
        and the tangent kernel, the schedules and the depths, (2, 3, D, n). For inputs
        (cos θ, sin θ) spread evenly, of which SR draws a thousand at random: the eigenvalues of an
        integral operator instead of those of a matrix.

    Examples
    --------
    >>> numbers = fig2(depths=(10, 100), count=3)
    >>> bool((numbers.eigenvalues[:, 0, 1, 1] < numbers.eigenvalues[:, 0, 0, 1]).all())
    True
    """
    L = integers("depths", depths)
    networks = list(zip(*map(stable_networks, L.tolist()), strict=True))
    parts = [
        partial(_normalised, of_one_schedule, quantity, count)
        for quantity in ("output_kernel", "tangent_kernel")
        for of_one_schedule in networks
    ]
    mu = np.reshape(in_turn(parts, "sr.fig2", progress), (2, len(SCHEDULES), len(L), count))
    labels, k = [f"{name}, L = {depth}" for name in SCHEDULES for depth in L], np.arange(count)
    rows = mu.reshape(2, -1, count)
    curves = curves_of("a", labels, k, rows[0]) + curves_of("b", labels, k, rows[1])
    chosen = rf"{CHOSEN}, $L = {', '.join(map(str, L))}$ (darker), the circle itself"
    return Numbers(curves, chosen, {"depths": L, "eigenvalues": mu})


def _normalised(networks: Sequence[ResidualNetwork], quantity: str, count: int) -> list[np.ndarray]:
    return [
        spectrum(of_constant_variance(net), quantity=quantity, count=count).normalised
        for net in networks
    ]


@picture((3.1, 3.1), 2.7)
def draw_fig2(axes: Any, numbers: Numbers) -> None:
    """Eigenvalues of (a) the output kernel, (b) the tangent kernel; deeper networks darker."""
    for ax, kind, name in zip(axes, numbers.eigenvalues, ("NNGP", "NTK"), strict=True):
        for schedule, rows, colour in zip(SCHEDULES, kind, COLOURS, strict=True):
            for row, alpha in zip(rows, np.linspace(1, 0.35, len(rows))[::-1], strict=True):
                ax.semilogy(row, color=colour, alpha=alpha)
            ax.lines[-1].set_label(schedule)
        ax.set(xlabel="degree $k$", ylabel=rf"{name}, $\mu_k / \max_k \mu_k$", ylim=(1e-7, 2))
    axes[1].legend(loc="lower left")


def width(
    depths: Sequence[int] = (5, 10, 20, 40, 80),
    samples: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Numbers:
    """Fluctuations of kernels where width and depth are equal, N = L, with the three schedules.

    Parameters
    ----------
    depths : sequence of int
        L, at least 2.
    samples : int
        Number of simulated networks for each depth and schedule.
    seed, jobs, progress
        As for `simulate`.

    Returns
    -------
    Numbers
        ``depths`` (D,), and with a row for each schedule (3, D): ``theory``, the order 1/N of
        N Var ln K^(L), that is N Var K^(L)/K^(L)², and ``simulated`` with its standard ``error``.
        Stable schedules keep it bounded; without one it grows as the depth, so that at N = L
        kernels fluctuate by as much as they are large.

    Examples
    --------
    >>> numbers = width(depths=(4, 8), samples=20)
    >>> bool(numbers.theory[0, 1] > 1.5 * numbers.theory[0, 0])
    True
    """
    L = integers("depths", depths, 2)
    parts = [partial(_fluctuations, depth) for depth in L.tolist()]
    theory = np.transpose(in_turn(parts, "sr.width", progress))
    simulated = np.empty((len(SCHEDULES), len(L)))
    error = np.empty_like(simulated)
    options: Any = {"samples": samples, "jobs": jobs, "keep": True, "progress": progress}
    for j, depth in enumerate(L.tolist()):
        for i, net in enumerate(stable_networks(depth)):
            ensemble = simulate(net.replace(width=depth), 2.0, seed=seed + i, **options)
            draws = np.asarray(ensemble.residual_kernels)[:, :-1]
            logs = np.log(draws.sum(axis=1))
            squares = (logs - logs.mean()) ** 2
            simulated[i, j] = depth * logs.var(ddof=1)
            error[i, j] = depth * squares.std(ddof=1) / np.sqrt(samples)
    values = {"depths": L, "theory": theory, "simulated": simulated, "error": error}
    axes = "depth and width $L = N$", r"$N \, \mathrm{Var} \ln K^{(L)}$"
    chosen = rf"{CHOSEN}, $K^{{(0)}} = 2$; lines: order $1/N$, {samples} networks"
    curves = []
    for i, schedule in enumerate(SCHEDULES):
        curves.append(Curve("a", f"{schedule}, order 1/N", L, theory[i]))
        curves.append(Curve("a", f"{schedule}, simulation", L, simulated[i], error[i]))
    return Numbers(curves, chosen, {"axes": axes, **values})


def _fluctuations(depth: int) -> list[float]:
    solutions = [solve(net.replace(width=10**6), 2.0) for net in stable_networks(depth)]
    return [float(1e6 * s.kernel_variance[-1] / s.kernels[-2] ** 2) for s in solutions]


@picture((4.6,), 2.7)
def draw_width(axes: Any, numbers: Numbers) -> None:
    """Theory against depth as lines, simulation with two standard errors."""
    (ax,) = axes
    for curve in numbers.listed:
        schedule = curve.label.split(", ")[0]
        colour = dict(zip(SCHEDULES, COLOURS, strict=True))[schedule]
        if curve.error is not None:
            ax.errorbar(curve.x, curve.y, 2 * curve.error, fmt="o", color=colour, markersize=3)
        else:
            ax.loglog(curve.x, curve.y, color=colour, label=schedule)
    ax.set_xticks(numbers.depths, [f"{depth}" for depth in numbers.depths])
    ax.set_xticks([], minor=True)
    ax.set(xlabel=numbers.axes[0], ylabel=numbers.axes[1])
    ax.legend()
