"""Random functions of one variable, Figs. 1 and 3 of PF; reached as `pf.fig1` and `pf.fig3`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from fieldtheory import validation
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_simulation import function_samples
from fieldtheory.diffusions.pf_figures.pf_edge import (
    edge_covariance,
    edge_functions,
    edge_networks,
    relu_outputs,
)
from fieldtheory.figures.parts import Numbers, note
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, styled

# Functions that are drawn of each kind.
_DRAWS = 5
_Z = np.linspace(-2.0, 2.0, 81)


def neurons_drawn(width: int, samples: int) -> int:
    """Number of neurons of one network that serve as draws, so that there are 20 networks or more.

    >>> neurons_drawn(500, 10_000), neurons_drawn(10, 10_000), neurons_drawn(500, 100)
    (50, 1, 5)
    """
    # One of so many neurons is drawn from a network: its functions are nearly independent.
    spacing = 10
    return max(1, min(width // spacing, samples // 20))


def fig1(
    depth: int = 500,
    width: int = 500,
    samples: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Numbers:
    """Functions that deep feed-forward networks on the edge of chaos are: PF Fig. 1.

    Parameters
    ----------
    depth, width : int
        L and N.
    samples : int
        Number of functions of the quantiles, at least 20. Of a network of tanh neurons, whose
        functions are nearly independent, up to a tenth are taken, see `neurons_drawn`.
    seed, jobs, progress, directory
        As for `simulate`; an interrupted call goes on from the parts in the folder.

    Returns
    -------
    Numbers
        The ``titles`` of both kinds of networks; ``draws`` of each (2, 5, m) at inputs ``z`` (m,);
        the ``quantiles`` 5 %, 50 % and 95 % (2, 3, k) at the inputs ``at`` (k,), and ``wide``,
        those of infinitely wide networks. tanh networks have forgotten the input; the functions of
        ReLU networks are two straight lines, far more often small than in infinitely wide networks
        of that depth.

    Examples
    --------
    >>> numbers = fig1(depth=20, width=50, samples=100)
    >>> bool(np.ptp(numbers.quantiles[0, 2]) < 0.5), numbers.draws[1].shape
    (True, (5, 81))
    """
    samples = validation.integer("samples", samples, 20)
    at = np.linspace(-2.0, 2.0, 5)
    networks = edge_networks(depth, width)
    options: Any = {"jobs": jobs, "progress": progress, "directory": directory}
    kinds = []
    for network in networks:
        # Others than those of the quantiles, which need few inputs.
        draws = edge_functions(network, _Z, _DRAWS, seed=seed + 1)
        if network.bias_variance:
            neurons = neurons_drawn(width, samples)
            many = edge_functions(network, at, samples, neurons=neurons, seed=seed, **options)
        else:
            # All laws are that at z = 1, in units of |z|.
            many = np.multiply.outer(relu_outputs(network, samples, seed), np.abs(at))
        kinds.append((draws, many, np.zeros(len(at)), edge_covariance(network, at)))
    tanh, relu = networks
    chosen = (
        rf"tanh with $\sigma_b^2 = {tanh.bias_variance:g}$, where "
        rf"$\sigma_w^2 = {tanh.weight_variance:.4f}$ is critical; ReLU with "
        rf"$\sigma_w^2 = {relu.weight_variance:g}$, $\sigma_b = 0$; "
        rf"$L = {depth}$, $N = {width}$, {samples} functions"
    )
    return _numbers(["tanh", "ReLU"], at, kinds, chosen)


@styled
def draw_fig1(numbers: Numbers) -> Any:
    """Both panels of PF Fig. 1."""
    figure, axes = _grid(1, 2, (6.2, 2.9), numbers)
    for ax, title in zip(axes[0], numbers.titles, strict=True):
        ax.set(xlabel="input $z$", title=title)
    axes[0, 0].set_ylabel("last layer, $x_{last,1}$")
    axes[0, 0].legend(loc="upper left", fontsize=7, bbox_to_anchor=(0, 1.02))
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low, high + 0.45 * (high - low))
    return figure


def fig3(
    sizes: Sequence[tuple[int, int]] = ((10, 500), (500, 10), (500, 100), (500, 500)),
    samples: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> Numbers:
    """Functions that deep networks with small parameters are, at several L and D: PF Fig. 3.

    Parameters
    ----------
    sizes : sequence of (int, int)
        L and D.
    samples : int
        Number of functions of each kind, at least 20, of a network up to a tenth of its neurons,
        see `neurons_drawn`.
    seed, jobs, progress, directory
        As for `fig1`.

    Returns
    -------
    Numbers
        As of `fig1`, for tanh networks of all sizes and then those of swish; see
        `fieldtheory.diffusions.function_samples`.

    Examples
    --------
    >>> fig3(sizes=((20, 10),), samples=50).titles
    ['tanh, L = 20, D = 10', 'swish, L = 20, D = 10']
    """
    titles, kinds = [], []
    at = _Z[::4]
    options: Any = {"samples": samples, "jobs": jobs, "progress": progress}
    options["directory"] = directory
    for name in ("tanh", "swish"):
        for depth, width in sizes:
            network = DiffusionNetwork(depth=depth, width=width, activation=as_activation(name))
            neurons = neurons_drawn(width, samples)
            # Others than those of the quantiles, which need fewer inputs.
            draws = function_samples(network, _Z, samples=20, seed=seed + 1).values[:_DRAWS]
            many = function_samples(network, at, neurons=neurons, seed=seed, **options).values
            limit = solve(network, at)
            titles.append(f"{name}, L = {depth}, D = {width}")
            kinds.append((draws, many, limit.mean[-1], limit.covariance[-1]))
    parameters = r"$\sigma_w^2 = \sigma_b^2 = T = 1$, $\psi(x) = x$"
    return _numbers(titles, at, kinds, f"$L$ and $D$; {samples} functions each; {parameters}")


@styled
def draw_fig3(numbers: Numbers) -> Any:
    """All panels of PF Fig. 3: tanh in the upper row, swish in the lower one."""
    columns = len(numbers.titles) // 2
    figure, axes = _grid(2, columns, (1.1 + 1.75 * columns, 4.2), numbers, sharey="row")
    for ax, title in zip(axes.flat, numbers.titles, strict=True):
        name, size = title.split(", ", 1)
        ax.set_title(f"{name}, ${size}$", fontsize=8.5)
    for ax in axes[:, 0]:
        ax.set_ylabel("last layer, $x_{T,1}$")
    for ax in axes[-1]:
        ax.set_xlabel("input $z$")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=3)
    return figure


def _numbers(
    titles: list[str], at: np.ndarray, kinds: Sequence[tuple[np.ndarray, ...]], chosen: str
) -> Numbers:
    """For each kind some draws, all draws at some inputs, moments of wide networks there."""
    # Quantiles of the functions.
    levels = 0.05, 0.5, 0.95
    draws, quantiles, wide = [], [], []
    for few, many, mean, covariance in kinds:
        draws.append(few)
        quantiles.append(np.quantile(many, levels, axis=0))
        wide.append(mean + np.multiply.outer(ndtri(levels), np.sqrt(np.diag(covariance))))
    curves = []
    for i, title in enumerate(titles):
        curves += [Curve(title, f"draw {j}", _Z, y) for j, y in enumerate(draws[i], 1)]
        for kind, rows in (("simulation", quantiles[i]), ("wide networks", wide[i])):
            labels = [f"quantile {100 * level:g} %, {kind}" for level in levels]
            curves += [Curve(title, label, at, y) for label, y in zip(labels, rows, strict=True)]
    values = {"titles": titles, "z": _Z, "draws": np.stack(draws), "at": at}
    values |= {"quantiles": np.stack(quantiles), "wide": np.stack(wide)}
    return Numbers(curves, chosen, values)


def _grid(
    rows: int, columns: int, size: tuple[float, float], numbers: Numbers, **shared: Any
) -> tuple[Any, Any]:
    """A figure of all functions, and its axes."""
    from fieldtheory.plotting.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, **shared)
    for ax, draws, *laws in zip(
        axes.flat, numbers.draws, numbers.quantiles, numbers.wide, strict=True
    ):
        for i, y in enumerate(draws):
            ax.plot(numbers.z, y, color=BLUE, linewidth=0.9, label=None if i else "5 draws")
        for i, (own, wide) in enumerate(zip(*laws, strict=True)):
            label, other = (None, None) if i else ("5, 50, 95 % of networks", "of infinite width")
            ax.plot(numbers.at, own, color=ORANGE, linewidth=1.8, label=label)
            ax.plot(numbers.at, wide, "--", color=GRAY, linewidth=1.0, label=other)
        ax.set(xlim=(numbers.z[0], numbers.z[-1]), xticks=range(-2, 3))
    note(figure, numbers.chosen)
    return figure, axes
