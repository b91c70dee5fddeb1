"""Fluctuations and gradients of finite networks against depth, for SR; reached as `sr.width`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.figures.sr_depth import CHOSEN, COLOURS, SCHEDULES, stable_networks
from fieldtheory.montecarlo.gradient_norms import simulate_gradients
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import panels, styled


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
        return _curves(self, {"order 1/N": self.theory})


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
    seed, jobs, progress
        As for `simulate`.

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
    """N Var ln K^(L) against depth, N = L, from theory and simulation."""
    figure, ax = _drawn(numbers)
    ax.set(xlabel="depth and width $L = N$", ylabel=r"$N \, \mathrm{Var} \ln K^{(L)}$")
    ax.legend()
    note(
        figure,
        rf"chosen here: {CHOSEN}, $K^{{(0)}} = 2$; lines: order $1/N$, {numbers.samples} networks",
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
        return _curves(self, {"wide networks": self.theory, "bound": self.bounds})


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
    """The largest gradients against depth, with the bound of SR Proposition 1, dotted."""
    figure, ax = _drawn(numbers)
    for bounds, colour in zip(numbers.bounds, COLOURS, strict=True):
        ax.plot(numbers.depths, bounds, ":", color=colour)
    ax.set(xlabel="depth $L$", ylabel=r"largest $N_l \langle (\partial y / \partial W)^2 \rangle$")
    ax.legend()
    note(
        figure,
        rf"chosen here: {CHOSEN}, $K^{{(0)}} = 2$, $N = {numbers.width}$, "
        rf"{numbers.samples} networks; dotted: the bound",
    )
    return figure


def _curves(numbers: Width | Gradients, theory: dict[str, np.ndarray]) -> list[Curve]:
    """For every schedule what theory there is, and the simulation."""
    found = []
    for i, schedule in enumerate(SCHEDULES):
        for kind, rows in theory.items():
            found.append(Curve("a", f"{schedule}, {kind}", numbers.depths, rows[i]))
        simulated = numbers.simulated[i], numbers.error[i]
        found.append(Curve("a", f"{schedule}, simulation", numbers.depths, *simulated))
    return found


def _drawn(numbers: Width | Gradients) -> tuple[Any, Any]:
    """Theory as lines and simulation as points with two standard errors, ticks at the depths."""
    figure, (ax,) = panels((4.6,), 2.7)
    points = {"fmt": "o", "markersize": 3}
    for i, (schedule, colour) in enumerate(zip(SCHEDULES, COLOURS, strict=True)):
        ax.loglog(numbers.depths, numbers.theory[i], color=colour, label=schedule)
        bars = 2 * numbers.error[i]
        ax.errorbar(numbers.depths, numbers.simulated[i], bars, color=colour, **points)
    ax.set_xticks(numbers.depths, [f"{depth}" for depth in numbers.depths])
    ax.set_xticks([], minor=True)
    return figure, ax
