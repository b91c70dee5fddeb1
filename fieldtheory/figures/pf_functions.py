"""Random functions of one variable, Figs. 1 and 3 of PF; reached as `pf.fig1` and `pf.fig3`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from fieldtheory import validation
from fieldtheory.diffusions.functions_drawn import function_samples
from fieldtheory.figures.parts import note
from fieldtheory.figures.pf_edge import (
    edge_covariance,
    edge_functions,
    edge_networks,
    relu_outputs,
)
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.diffusion import DiffusionNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, styled

LEVELS = (0.05, 0.5, 0.95)
# Functions shown of each kind, and how exactly they are interpolated; the line width hides less.
_SHOWN, _TOLERANCE = 5, 3e-3
# One of so many neurons is drawn from a network: its functions are nearly independent.
_APART = 10
_Z = np.linspace(-2.0, 2.0, 81)


class RandomFunctions(NamedTuple):
    """Functions of one kind of network.

    Parameters
    ----------
    title : str
    z : ndarray, shape (m,)
    draws : ndarray, shape (5, m)
        Some functions.
    at : ndarray, shape (k,)
        Inputs of the quantiles.
    quantiles, wide : ndarray, shape (3, k)
        The quantiles 5 %, 50 %, 95 % of simulated networks, and of infinitely wide ones.
    """

    title: str
    z: np.ndarray
    draws: np.ndarray
    at: np.ndarray
    quantiles: np.ndarray
    wide: np.ndarray

    def curves(self, panel: str) -> list[Curve]:
        """The plotted curves."""
        draws = [Curve(panel, f"draw {i}", self.z, y) for i, y in enumerate(self.draws, 1)]
        return draws + [
            Curve(panel, f"quantile {100 * level:g} %, {kind}", self.at, y)
            for kind, rows in (("simulation", self.quantiles), ("wide networks", self.wide))
            for level, y in zip(LEVELS, rows, strict=True)
        ]


def drawn_apart(width: int, samples: int) -> int:
    """How many neurons of one network serve as draws of its functions, of at least 20 networks.

    They share the Gram matrix q of the last layer, whose relative variance is about 6/D: of D/10
    neurons, it adds 5 % to the statistical errors of quantiles.

    Examples
    --------
    >>> drawn_apart(500, 10_000), drawn_apart(10, 10_000), drawn_apart(500, 100)
    (50, 1, 5)
    """
    return max(1, min(width // _APART, samples // 20))


@dataclass(frozen=True, eq=False)
class Fig1:
    """Numbers of `fig1`: the functions of tanh and of ReLU networks, and what they are.

    Attributes
    ----------
    functions : tuple of RandomFunctions
    depth, width, samples : int
    variances : tuple of tuple of float
        σ²_w and σ²_b of both.
    """

    functions: tuple[RandomFunctions, ...]
    depth: int
    width: int
    samples: int
    variances: tuple[tuple[float, float], ...]

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        return _curves(self.functions)


def fig1(
    depth: int = 500,
    width: int = 500,
    samples: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Fig1:
    """Functions that deep feed-forward networks on the edge of chaos are: PF Fig. 1.

    Parameters
    ----------
    depth, width : int
        L and N.
    samples : int
        Number of functions of the quantiles, at least 20. Of a network of tanh neurons, whose
        functions are nearly independent, up to a tenth are taken, see `drawn_apart`.
    seed, jobs, progress
        As for `simulate`.
    directory : Path, optional
        Folder for finished parts, from which the figure goes on where it was interrupted.

    Returns
    -------
    Fig1
        tanh networks have forgotten the input; the functions of ReLU networks are two straight
        lines, far more often small than in infinitely wide networks of that depth.

    Examples
    --------
    >>> found = fig1(depth=20, width=50, samples=100)
    >>> tanh, relu = found.functions
    >>> bool(np.ptp(tanh.quantiles[2]) < 0.5), relu.draws.shape
    (True, (5, 81))
    """
    samples = validation.integer("samples", samples, 20)
    at = np.linspace(-2.0, 2.0, 5)
    networks = edge_networks(depth, width)
    found = []
    for network in networks:
        # Others than those of the quantiles, which need few inputs.
        shown = edge_functions(network, _Z, _SHOWN, seed=seed + 1)
        if network.bias_variance:
            neurons = drawn_apart(width, samples)
            options: dict[str, Any] = {"jobs": jobs, "progress": progress, "directory": directory}
            drawn = edge_functions(network, at, samples, neurons=neurons, seed=seed, **options)
        else:
            # All laws are that at z = 1, in units of |z|.
            drawn = np.multiply.outer(relu_outputs(network, samples, seed), np.abs(at))
        title = "tanh" if network.activation.name == "tanh" else "ReLU"
        spread = edge_covariance(network, at)
        found.append(_functions(title, shown, at, drawn, np.zeros(len(at)), spread))
    variances = tuple((net.weight_variance, net.bias_variance) for net in networks)
    return Fig1(tuple(found), depth, width, samples, variances)


@styled
def draw_fig1(numbers: Fig1) -> Any:
    """Both panels of PF Fig. 1."""
    figure, axes = _grid(1, 2, (6.2, 2.9))
    for ax, functions in zip(axes[0], numbers.functions, strict=True):
        _draw(ax, functions)
        ax.set(xlabel="input $z$", title=functions.title)
    axes[0, 0].set_ylabel("last layer, $x_{last,1}$")
    axes[0, 0].legend(loc="upper left", fontsize=7, bbox_to_anchor=(0, 1.02))
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low, high + 0.45 * (high - low))
    (tanh, bias), (relu, _) = numbers.variances
    note(
        figure,
        rf"chosen here: tanh with $\sigma_b^2 = {bias:g}$, where $\sigma_w^2 = {tanh:.4f}$ is "
        rf"critical; ReLU with $\sigma_w^2 = {relu:g}$, $\sigma_b = 0$; "
        rf"$L = {numbers.depth}$, $N = {numbers.width}$, {numbers.samples} functions",
    )
    return figure


@dataclass(frozen=True, eq=False)
class Fig3:
    """Numbers of `fig3`: the functions of tanh networks of all sizes, then those of swish.

    Attributes
    ----------
    functions : tuple of RandomFunctions
    samples : int
    """

    functions: tuple[RandomFunctions, ...]
    samples: int

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        return _curves(self.functions)


def fig3(
    sizes: Sequence[tuple[int, int]] = ((10, 500), (500, 10), (500, 100), (500, 500)),
    samples: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Fig3:
    """Functions that deep networks with small parameters are, at several L and D: PF Fig. 3.

    Parameters
    ----------
    sizes : sequence of (int, int)
        L and D.
    samples : int
        Number of functions of each kind, at least 20, of a network up to a tenth of its neurons,
        see `drawn_apart`.
    seed, jobs, progress, directory
        As for `fig1`.

    Returns
    -------
    Fig3
        See `fieldtheory.diffusions.functions_drawn.function_samples`.

    Examples
    --------
    >>> found = fig3(sizes=((20, 10),), samples=50)
    >>> [functions.title for functions in found.functions]
    ['tanh, L = 20, D = 10', 'swish, L = 20, D = 10']
    """
    found = []
    at = _Z[::4]
    for name in ("tanh", "swish"):
        for depth, width in sizes:
            network = DiffusionNetwork(depth=depth, width=width, activation=as_activation(name))
            neurons = drawn_apart(width, samples)
            drawn = function_samples(
                network,
                _Z,
                samples=samples,
                neurons=neurons,
                seed=seed,
                tolerance=_TOLERANCE,
                directory=directory,
                jobs=jobs,
                progress=progress,
            ).values
            limit = solve(network, at)
            title, shown = f"{name}, L = {depth}, D = {width}", drawn[::neurons][:_SHOWN]
            moments = limit.mean[-1], limit.covariance[-1]
            found.append(_functions(title, shown, at, drawn[:, ::4], *moments))
    return Fig3(tuple(found), samples)


@styled
def draw_fig3(numbers: Fig3) -> Any:
    """All panels of PF Fig. 3: tanh in the upper row, swish in the lower one."""
    columns = len(numbers.functions) // 2
    figure, axes = _grid(2, columns, (1.1 + 1.75 * columns, 4.2), sharey="row")
    for ax, functions in zip(axes.flat, numbers.functions, strict=True):
        _draw(ax, functions)
        name, rest = functions.title.split(", ", 1)
        ax.set_title(f"{name}, ${rest}$", fontsize=8.5)
    for ax in axes[:, 0]:
        ax.set_ylabel("last layer, $x_{T,1}$")
    for ax in axes[-1]:
        ax.set_xlabel("input $z$")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=3)
    note(
        figure,
        rf"chosen here: $L$ and $D$; {numbers.samples} functions each; "
        r"$\sigma_w^2 = \sigma_b^2 = T = 1$, $\psi(x) = x$",
    )
    return figure


def _functions(
    title: str,
    shown: np.ndarray,
    at: np.ndarray,
    drawn: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
) -> RandomFunctions:
    """Of all draws at some inputs, and the moments of wide networks there."""
    wide = mean + np.multiply.outer(ndtri(LEVELS), np.sqrt(np.diag(covariance)))
    return RandomFunctions(title, _Z, shown, at, np.quantile(drawn, LEVELS, axis=0), wide)


def _curves(functions: Sequence[RandomFunctions]) -> list[Curve]:
    return [curve for each in functions for curve in each.curves(each.title)]


def _grid(rows: int, columns: int, size: tuple[float, float], **shared: Any) -> tuple[Any, Any]:
    from fieldtheory.plotting.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=True, **shared)


def _draw(ax: Any, functions: RandomFunctions) -> None:
    for i, y in enumerate(functions.draws):
        ax.plot(functions.z, y, color=BLUE, linewidth=0.9, label=None if i else "5 draws")
    for i, (own, wide) in enumerate(zip(functions.quantiles, functions.wide, strict=True)):
        label, other = (None, None) if i else ("5, 50, 95 % of networks", "of infinite width")
        ax.plot(functions.at, own, color=ORANGE, linewidth=1.8, label=label)
        ax.plot(functions.at, wide, "--", color=GRAY, linewidth=1.0, label=other)
    ax.set(xlim=(functions.z[0], functions.z[-1]), xticks=range(-2, 3))
