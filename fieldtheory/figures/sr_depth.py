"""SR Figs. 1 and 2, gradients, and fluctuations at equal depth and width; reached as `sr.fig1`.

``fig1``, ``fig2``, ``width`` and ``gradients`` compute what is plotted, ``draw_fig1`` and so on
draw it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.inference import spectrum
from fieldtheory.montecarlo.gradient_norms import simulate_gradients
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GREEN, ORANGE, panels, styled

# The schedules in the words of SR, and by the names of the package.
SCHEDULES: Mapping[str, str] = {
    "unscaled": "none",
    "decreasing": "decreasing",
    "uniform": "uniform",
}
COLOURS = (ORANGE, BLUE, GREEN)
_CHOSEN = r"ReLU, $\gamma = 1$, $\sigma_w^2 = 2$, $\sigma_b = 0$"


def stable_networks(depth: int) -> list[ResidualNetwork]:
    """Networks of a depth with the three schedules, σ_w² = 2 and σ_b = 0.

    Examples
    --------
    >>> [net.branch_scale for net in stable_networks(5)]
    ['none', 'decreasing', 'uniform']
    """
    return [
        ResidualNetwork(
            depth=depth,
            activation=as_activation("relu"),
            branch_scale=schedule,
            weight_variance=2.0,
            bias_variance=0.0,
        )
        for schedule in SCHEDULES.values()
    ]


def of_constant_variance(network: ResidualNetwork) -> ResidualNetwork:
    """A ReLU network without biases with the same correlations in all layers, of one variance.

    Both scales of a layer are divided by √(1 + λ_l² σ_w²/2), by which its signals grow: kernels and
    tangent kernels of all pairs are divided by the product of their squares (SR Appendix A6), and
    do not overflow.

    Examples
    --------
    >>> net = of_constant_variance(stable_networks(2000)[0])
    >>> bool(np.allclose(solve(net, 2.0).kernels[:-1], 2.0))
    True
    """
    branch = network.branch_scales
    growth = np.sqrt(1 + branch**2 * network.weight_variance / 2)
    return network.replace(skip_scale=1 / growth, branch_scale=branch / growth)


@dataclass(frozen=True, eq=False)
class Fig1:
    """Numbers of SR Fig. 1; the first axis is that of the schedules.

    Attributes
    ----------
    depths : ndarray, shape (D,)
    kernels, tangent_kernels : ndarray, shape (3, D)
        K^(L) and Θ^(L) of networks of these depths.
    """

    depths: np.ndarray
    kernels: np.ndarray
    tangent_kernels: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        values = ("NNGP", self.kernels), ("NTK", self.tangent_kernels)
        return [
            Curve("a", f"{schedule}, {kind}", self.depths, row)
            for kind, rows in values
            for schedule, row in zip(SCHEDULES, rows, strict=True)
        ]


def fig1(depths: Sequence[int] = tuple(range(1, 51)), progress: bool = False) -> Fig1:
    """Kernels of the last hidden layer against depth: SR Fig. 1.

    Parameters
    ----------
    depths : sequence of int
        L.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig1
        For an input with |x|² = d, as SR leaves the point open: K^(0) = σ_w² = 2.

    Examples
    --------
    >>> found = fig1(depths=(1, 2, 3))
    >>> found.kernels[0].round(12).tolist()
    [4.0, 8.0, 16.0]
    """
    L = np.array([validation.integer("depths", depth, 1) for depth in depths])
    parts = [partial(_last_layer, depth) for depth in L.tolist()]
    found = np.moveaxis(np.array(in_turn(parts, "sr.fig1", progress)), 0, -1)
    return Fig1(L, found[:, 0], found[:, 1])


def _last_layer(depth: int) -> np.ndarray:
    solutions = [solve(net, 2.0) for net in stable_networks(depth)]
    return np.array([(s.kernels[-2], s.tangent_kernels[-2]) for s in solutions])


@styled
def draw_fig1(numbers: Fig1) -> Any:
    """K^(L) and, dashed, Θ^(L) against depth.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels((4.6,), 2.7)
    for rows, line in ((numbers.kernels, "-"), (numbers.tangent_kernels, "--")):
        for schedule, row, colour in zip(SCHEDULES, rows, COLOURS, strict=True):
            ax.semilogy(
                numbers.depths, row, line, color=colour, label=schedule if line == "-" else None
            )
    ax.plot([], [], "k-", label="NNGP $K^{(L)}$")
    ax.plot([], [], "k--", label=r"NTK $\Theta^{(L)}$")
    ax.set(xlabel="depth $L$", ylabel="kernel of one input")
    ax.legend()
    note(figure, rf"chosen here: {_CHOSEN}, $|x|^2 = d$")
    return figure


@dataclass(frozen=True, eq=False)
class Fig2:
    """Numbers of SR Fig. 2; axes are (output or tangent kernel, schedule, depth, degree).

    Attributes
    ----------
    depths : ndarray, shape (D,)
    eigenvalues : ndarray, shape (2, 3, D, n)
        μ_k relative to the largest, of degree k = 0, ..., n − 1.
    """

    depths: np.ndarray
    eigenvalues: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        degrees = np.arange(self.eigenvalues.shape[-1])
        return [
            Curve("ab"[kind], f"{schedule}, L = {depth}", degrees, self.eigenvalues[kind, i, j])
            for kind in range(2)
            for i, schedule in enumerate(SCHEDULES)
            for j, depth in enumerate(self.depths)
        ]


def fig2(depths: Sequence[int] = (10, 100, 1000), count: int = 25, progress: bool = False) -> Fig2:
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
    Fig2
        For inputs (cos θ, sin θ) spread evenly, of which SR draws a thousand at random: the
        eigenvalues of an integral operator instead of those of a matrix.

    Examples
    --------
    >>> found = fig2(depths=(10, 100), count=3)
    >>> bool((found.eigenvalues[:, 0, 1, 1] < found.eigenvalues[:, 0, 0, 1]).all())
    True
    """
    L = np.array([validation.integer("depths", depth, 1) for depth in depths])
    parts = [
        partial(_normalised, network, quantity, count)
        for quantity in ("output_kernel", "tangent_kernel")
        for network in zip(*map(stable_networks, L.tolist()), strict=True)
    ]
    found = in_turn(parts, "sr.fig2", progress)
    return Fig2(L, np.reshape(found, (2, len(SCHEDULES), len(L), count)))


def _normalised(networks: Sequence[ResidualNetwork], quantity: str, count: int) -> list[np.ndarray]:
    return [
        spectrum(of_constant_variance(net), quantity=quantity, count=count).normalised
        for net in networks
    ]


@styled
def draw_fig2(numbers: Fig2) -> Any:
    """Eigenvalues of (a) the output kernel, (b) the tangent kernel; deeper networks darker.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels((3.1, 3.1), 2.7)
    degrees = np.arange(numbers.eigenvalues.shape[-1])
    for ax, kind in zip(axes, numbers.eigenvalues, strict=True):
        for schedule, rows, colour in zip(SCHEDULES, kind, COLOURS, strict=True):
            for row, alpha in zip(rows, np.linspace(0.35, 1, len(rows)), strict=True):
                deepest = row is rows[-1] or alpha == 1
                label = schedule if deepest else None
                ax.semilogy(degrees, row, color=colour, alpha=alpha, label=label)
        ax.set_xlabel("degree $k$")
        ax.set_ylim(1e-7, 2)
    axes[0].set_ylabel(r"NNGP, $\mu_k / \max_k \mu_k$")
    axes[1].set_ylabel(r"NTK, $\mu_k / \max_k \mu_k$")
    axes[1].legend(loc="lower left")
    depths = ", ".join(map(str, numbers.depths))
    note(figure, rf"chosen here: {_CHOSEN}, $L = {depths}$ (darker), the circle itself")
    return figure


@dataclass(frozen=True, eq=False)
class Width:
    """Numbers of `width`; the first axis is that of the schedules.

    Attributes
    ----------
    depths : ndarray, shape (D,)
        L, and N = L.
    theory : ndarray, shape (3, D)
        N Var K^(L)/K^(L)², the order 1/N of N Var ln K^(L).
    simulated, error : ndarray, shape (3, D)
        N Var ln K^(L) of simulated networks, and its standard error.
    samples : int
        How many of them.
    """

    depths: np.ndarray
    theory: np.ndarray
    simulated: np.ndarray
    error: np.ndarray
    samples: int

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        return [
            curve
            for i, schedule in enumerate(SCHEDULES)
            for curve in (
                Curve("a", f"{schedule}, order 1/N", self.depths, self.theory[i]),
                Curve(
                    "a", f"{schedule}, simulation", self.depths, self.simulated[i], self.error[i]
                ),
            )
        ]


def width(
    depths: Sequence[int] = (5, 10, 20, 40, 80),
    samples: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Width:
    """How kernels fluctuate where width and depth are equal, N = L, with the three schedules.

    Parameters
    ----------
    depths : sequence of int
        L, at least 2.
    samples : int
        Number of simulated networks for each depth and schedule.
    seed : int
        Seed of the random numbers.
    jobs : int, optional
        Processes that simulate.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Width
        Stable schedules keep N Var ln K^(L) bounded; without one it grows as the depth, so that
        at N = L kernels fluctuate by as much as they are large.

    Examples
    --------
    >>> found = width(depths=(4, 8), samples=20)
    >>> bool(found.theory[0, 1] > 1.5 * found.theory[0, 0])
    True
    """
    L = np.array([validation.integer("depths", depth, 2) for depth in depths])
    parts = [partial(_fluctuations, depth) for depth in L.tolist()]
    theory = np.transpose(in_turn(parts, "sr.width", progress))
    simulated = np.empty((len(SCHEDULES), len(L)))
    error = np.empty_like(simulated)
    for j, depth in enumerate(L.tolist()):
        for i, net in enumerate(stable_networks(depth)):
            ensemble = simulate(
                net.replace(width=depth),
                2.0,
                samples=samples,
                seed=seed + i,
                jobs=jobs,
                keep=True,
                progress=progress,
            )
            draws = np.asarray(ensemble.residual_kernels)[:, :-1]
            logs = np.log(draws.sum(axis=1))
            squares = (logs - logs.mean()) ** 2
            simulated[i, j] = depth * logs.var(ddof=1)
            error[i, j] = depth * squares.std(ddof=1) / np.sqrt(samples)
    return Width(L, theory, simulated, error, samples)


def _fluctuations(depth: int) -> list[float]:
    solutions = [solve(net.replace(width=10**6), 2.0) for net in stable_networks(depth)]
    return [float(1e6 * s.kernel_variance[-1] / s.kernels[-2] ** 2) for s in solutions]


@styled
def draw_width(numbers: Width) -> Any:
    """N Var ln K^(L) against depth, N = L, from theory and simulation.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels((4.6,), 2.7)
    for i, (schedule, colour) in enumerate(zip(SCHEDULES, COLOURS, strict=True)):
        ax.loglog(numbers.depths, numbers.theory[i], color=colour, label=schedule)
        bars = 2 * numbers.error[i]
        ax.errorbar(numbers.depths, numbers.simulated[i], bars, fmt="o", color=colour, markersize=3)
    _mark_depths(ax, numbers.depths)
    ax.set(xlabel="depth and width $L = N$", ylabel=r"$N \, \mathrm{Var} \ln K^{(L)}$")
    ax.legend()
    note(
        figure,
        rf"chosen here: {_CHOSEN}, $K^{{(0)}} = 2$; lines: order $1/N$, {numbers.samples} networks",
    )
    return figure


@dataclass(frozen=True, eq=False)
class Gradients:
    """Numbers of `gradients`; the first axis is that of the schedules.

    Attributes
    ----------
    depths : ndarray, shape (D,)
    theory, bounds : ndarray, shape (3, D)
        The largest mean square of a gradient over all layers, and the upper bound.
    simulated, error : ndarray, shape (3, D)
        The same of simulated networks, and its standard error.
    samples, width : int
        How many networks, and their N.
    """

    depths: np.ndarray
    theory: np.ndarray
    bounds: np.ndarray
    simulated: np.ndarray
    error: np.ndarray
    samples: int
    width: int

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        return [
            curve
            for i, schedule in enumerate(SCHEDULES)
            for curve in (
                Curve("a", f"{schedule}, wide networks", self.depths, self.theory[i]),
                Curve("a", f"{schedule}, bound", self.depths, self.bounds[i]),
                Curve(
                    "a", f"{schedule}, simulation", self.depths, self.simulated[i], self.error[i]
                ),
            )
        ]


def gradients(
    depths: Sequence[int] = (5, 10, 20, 40, 80),
    width: int = 1000,
    samples: int = 100,
    seed: int = 0,
    progress: bool = False,
) -> Gradients:
    """How large gradients of the output are, at most, in networks of different depth (SR Prop. 1).

    Parameters
    ----------
    depths : sequence of int
        L.
    width : int
        N, best much larger than L.
    samples : int
        Number of simulated networks for each depth and schedule.
    seed : int
        Seed of the random numbers.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Gradients
        N_l ⟨(∂y/∂W_ij^(l))²⟩ of the layer where it is largest, see
        `fieldtheory.simulate_gradients`.

    Examples
    --------
    >>> found = gradients(depths=(4, 8), width=50, samples=20)
    >>> bool((found.theory < found.bounds).all())
    True
    """
    L = np.array([validation.integer("depths", depth, 1) for depth in depths])
    parts = [
        partial(_largest, net.replace(width=width), samples, seed)
        for depth in L.tolist()
        for net in stable_networks(depth)
    ]
    found = np.array(in_turn(parts, "sr.gradients", progress)).reshape(len(L), len(SCHEDULES), 4)
    theory, bounds, simulated, error = found.T
    return Gradients(L, theory, bounds, simulated, error, samples, width)


def _largest(network: ResidualNetwork, samples: int, seed: int) -> tuple[float, ...]:
    found = simulate_gradients(network, 2.0, samples=samples, seed=seed)
    layer = int(np.argmax(found.theory))
    values = (found.theory[layer], found.upper_bound, found.gradients[layer])
    return *map(float, values), float(found.gradients_error[layer])


@styled
def draw_gradients(numbers: Gradients) -> Any:
    """The largest gradients against depth, with the bound of SR Proposition 1, dotted.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels((4.6,), 2.7)
    for i, (schedule, colour) in enumerate(zip(SCHEDULES, COLOURS, strict=True)):
        ax.loglog(numbers.depths, numbers.theory[i], color=colour, label=schedule)
        ax.loglog(numbers.depths, numbers.bounds[i], ":", color=colour)
        bars = 2 * numbers.error[i]
        ax.errorbar(numbers.depths, numbers.simulated[i], bars, fmt="o", color=colour, markersize=3)
    _mark_depths(ax, numbers.depths)
    ax.set(xlabel="depth $L$", ylabel=r"largest $N_l \langle (\partial y / \partial W)^2 \rangle$")
    ax.legend()
    note(
        figure,
        rf"chosen here: {_CHOSEN}, $K^{{(0)}} = 2$, $N = {numbers.width}$, "
        rf"{numbers.samples} networks; dotted: the bound",
    )
    return figure


def _mark_depths(ax: Any, depths: np.ndarray) -> None:
    """Ticks of a logarithmic axis at these depths alone."""
    ax.set_xticks(depths, [f"{depth}" for depth in depths])
    ax.set_xticks([], minor=True)
