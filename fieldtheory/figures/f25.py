"""Figures of F25: Fischer, Dahmen, Helias, Field theory for optimal signal propagation in ResNets.

``fig2``, ``fig3``, ``fig4``, ``fig6`` and ``fig8`` compute what is plotted; ``draw_fig2`` and so on
draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.f25_simulation import Fig2, Fig8, draw_fig2, draw_fig8, fig2, fig8
from fieldtheory.figures.style import BLUE, GRAY, GREEN, ORANGE, panels, styled, tints
from fieldtheory.network import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.scaling import optimal_scaling

__all__ = [
    "Fig2",
    "Fig3",
    "Fig4",
    "Fig6",
    "Fig8",
    "draw_fig2",
    "draw_fig3",
    "draw_fig4",
    "draw_fig6",
    "draw_fig8",
    "fig2",
    "fig3",
    "fig4",
    "fig6",
    "fig8",
]

DEPTHS = (10, 50, 100, 200)
_INPUT_SCALE = 0.05


@dataclass(frozen=True, eq=False)
class Fig3:
    """Numbers of F25 Fig. 3.

    Attributes
    ----------
    branch_scales : ndarray, shape (R,)
    kernels, response : ndarray, shape (R, L+1)
        K^(l) and χ^(l) = ∂K^(l)/∂K^(0), a row for each ρ.
    """

    branch_scales: np.ndarray
    kernels: np.ndarray
    response: np.ndarray


def fig3(
    branch_scales: Sequence[float] = (1.0, 0.3, 0.1), depth: int = 20, K0: float = 0.212
) -> Fig3:
    """Kernels and response function over the layers for several residual scalings (F25 Fig. 3).

    Parameters
    ----------
    branch_scales : sequence of float, shape (R,)
        Residual scalings ρ.
    depth : int
        Number of layers L.
    K0 : float
        Variance of the input signal.

    Returns
    -------
    Fig3

    Notes
    -----
    All weight variances are 1.2, all bias variances 0.2, φ = erf, as in the caption. It states
    neither depth nor input: here L = 20 and an input of unit length, K^(0) = 1.2/100 + 0.2.
    χ^(0) = 1 here, N/d_in = 5 in F25.
    """
    rho = validation.finite_array("branch_scales", branch_scales)
    net = ResidualNetwork(
        depth=depth, branch_scale=rho[:, None], weight_variance=1.2, bias_variance=0.2
    )
    s = solve(net, K0)
    return Fig3(rho, s.kernels[:, :-1], s.response)


@styled
def draw_fig3(numbers: Fig3) -> Any:
    """F25 Fig. 3 as a matplotlib Figure: (a) K^(l), (b) χ^(l)."""
    figure, axes = panels((3.1, 3.1), 2.5)
    labels = [rf"$\rho = {rho:g}$" for rho in numbers.branch_scales]
    shades = tints(BLUE, len(labels))
    for ax, values in zip(axes, (numbers.kernels, numbers.response), strict=True):
        for row, shade, label in zip(values, shades, labels, strict=True):
            ax.plot(row, color=shade, label=label, marker="o", markersize=2.2)
        ax.set_xlabel("layer $l$")
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set(ylabel=r"kernel $K^{(l)}$", yscale="log")
    axes[1].set(ylabel=r"response $\chi^{(l)}$", ylim=(0, None))
    axes[0].legend(loc="upper left")
    return figure


@dataclass(frozen=True, eq=False)
class Fig4:
    """Numbers of F25 Fig. 4; axes of length 2 are (diagonal, off-diagonal).

    Attributes
    ----------
    depths : ndarray, shape (D,)
    branch_scales : ndarray, shape (2, R)
        Residual scalings ρ at which ``response`` is given.
    response : ndarray, shape (2, D, R)
        χ^out.
    optima, maxima : ndarray, shape (2, D)
        ρ* and χ^out there.
    scaling_depths : ndarray, shape (S,)
    scaling : ndarray, shape (2, S)
        ρ* for these depths.
    """

    depths: np.ndarray
    branch_scales: np.ndarray
    response: np.ndarray
    optima: np.ndarray
    maxima: np.ndarray
    scaling_depths: np.ndarray
    scaling: np.ndarray


def fig4(
    depths: Sequence[int] = DEPTHS,
    network: ResidualNetwork | None = None,
    covariance: float = 0.03,
    points: int = 301,
) -> Fig4:
    """Response of the output against the residual scaling, and its maxima (F25 Fig. 4).

    Parameters
    ----------
    depths : sequence of int, shape (D,)
        Depths L, at least two.
    network : ResidualNetwork, optional
        Supplies everything but depth and ``branch_scale``; the default has the caption's
        σ_w² = 1.25, σ_b² = 0.05, φ = erf.
    covariance : float
        Off-diagonal entry of the input kernel, whose diagonal is 0.05.
    points : int
        Number of residual scalings ρ per curve.

    Returns
    -------
    Fig4
        ρ runs from 0 to 1.5 times the largest ρ*; the depths of panel (c) fill the range of
        ``depths`` evenly on a logarithmic scale.
    """
    depths = sorted({validation.integer("depths", depth, 1) for depth in depths})
    if len(depths) < 2:
        raise ValueError(f"depths must hold at least two different depths, got {depths}")
    net = ResidualNetwork(depth=1) if network is None else network
    K0 = np.array([[_INPUT_SCALE, covariance], [covariance, _INPUT_SCALE]])
    optima = _optima(net, depths, K0)
    rho = np.linspace(0, 1.5 * optima.max(axis=1), points, axis=1)
    response = np.empty((2, len(depths), points))
    maxima = np.empty((2, len(depths)))
    for i, L in enumerate(depths):
        for entry in range(2):
            branch_scale = np.append(rho[entry], optima[entry, i])
            chi = solve(_at(net, L, branch_scale[:, None]), K0).output_response[:, 0, entry]
            response[entry, i], maxima[entry, i] = chi[:-1], chi[-1]
    between = np.unique(np.geomspace(depths[0], depths[-1], 11).round().astype(int))
    scaling = _optima(net, between, K0)
    return Fig4(np.array(depths), rho, response, optima, maxima, between, scaling)


@styled
def draw_fig4(numbers: Fig4) -> Any:
    """F25 Fig. 4 as a matplotlib Figure: χ^out of (a) variance, (b) covariance; (c) ρ* over L."""
    figure, axes = panels((2.5, 2.5, 2.5), 2.6)
    shades = [tints(colour, len(numbers.depths))[::-1] for colour in (BLUE, GREEN)]
    for entry, ax in enumerate(axes[:2]):
        for i, L in enumerate(numbers.depths):
            shade = shades[entry][i]
            ax.plot(
                numbers.branch_scales[entry],
                numbers.response[entry, i],
                color=shade,
                label=f"$L = {L}$",
            )
            ax.plot(
                numbers.optima[entry, i],
                numbers.maxima[entry, i],
                "o",
                color=shade,
                markeredgecolor="black",
                markeredgewidth=0.6,
                markersize=4,
                zorder=3,
            )
        top = 1.3 * numbers.maxima[entry].max()
        ax.set(xlabel=r"residual scaling $\rho$", xlim=(0, None), ylim=(0, top))
        ax.legend(loc="upper center", ncols=2)
    axes[0].set_ylabel(r"output response $\chi^{\mathrm{out}}_{\alpha\alpha}$")
    axes[1].set_ylabel(r"output response $\chi^{\mathrm{out}}_{\alpha\beta}$")
    _draw_scaling(axes[2], numbers)
    return figure


def _draw_scaling(ax: Any, numbers: Fig4) -> None:
    L = numbers.scaling_depths
    for row in numbers.scaling:
        guide = row[-1] * np.sqrt(L[-1] / L)
        (line,) = ax.plot(L, guide, "--", color=GRAY, linewidth=1)
    labels = ("diagonal", "off-diagonal")
    for row, colour, label in zip(numbers.scaling, (BLUE, GREEN), labels, strict=True):
        ax.plot(L, row, "o-", color=colour, markersize=3, linewidth=1, label=label)
    line.set_label(r"$\propto 1/\sqrt{L}$")
    ax.set(xscale="log", yscale="log", xlabel="depth $L$", ylabel=r"optimal scaling $\rho^*$")
    ax.legend(loc="best")


@dataclass(frozen=True, eq=False)
class Fig6:
    """Numbers of F25 Fig. 6.

    Attributes
    ----------
    scaling : ndarray, shape (P, P)
        ρ* of every entry of the kernel.
    overlap : ndarray, shape (P, P)
        Correlation of the inputs, K_αβ / √(K_αα K_ββ).
    labels : ndarray, shape (P,), or None
        Classes of the inputs.
    curve_overlap, curve_scaling : ndarray, shape (S,)
        ρ* over the correlation of inputs that all have the mean variance of the given ones; this
        is the angular dependence of panel (a) of F25.
    """

    scaling: np.ndarray
    overlap: np.ndarray
    labels: np.ndarray | None
    curve_overlap: np.ndarray
    curve_scaling: np.ndarray


def fig6(
    K0: Any,
    labels: Any = None,
    network: ResidualNetwork | None = None,
    scaling: np.ndarray | None = None,
) -> Fig6:
    """Optimal scaling of every pair of inputs (F25 Fig. 6).

    Parameters
    ----------
    K0 : array_like, shape (P, P)
        Kernel of the inputs; F25 has 0.05 on its diagonal.
    labels : array_like, shape (P,), optional
        Classes of the inputs, for the picture.
    network : ResidualNetwork, optional
        Its ``branch_scale`` is ignored; the default has the caption's L = 200, σ_w² = 1.25,
        σ_b² = 0.05, φ = erf.
    scaling : ndarray, shape (P, P), optional
        ρ* if it is known already.

    Returns
    -------
    Fig6
    """
    kernel = validation.input_kernel_array("K0", K0)
    if kernel.ndim != 2 or len(kernel) < 2:
        raise ValueError(f"K0 must be a matrix (P, P) with P >= 2, got shape {kernel.shape}")
    net = ResidualNetwork(depth=200) if network is None else network
    if scaling is None:
        scaling = np.asarray(optimal_scaling(net, kernel))
    variances = np.diagonal(kernel)
    size = np.sqrt(variances)
    overlap = kernel / np.outer(size, size)
    correlation = _spread(overlap[np.triu_indices(len(overlap), 1)])
    # One input with these correlations to others that share nothing else. Where correlations are
    # positive, no two of the others are more alike than they are to the first.
    synthetic = np.outer(correlation, correlation)
    np.fill_diagonal(synthetic, 1)
    curve = np.asarray(optimal_scaling(net, variances.mean() * synthetic))[0]
    classes = None if labels is None else np.asarray(labels)
    return Fig6(scaling, overlap, classes, correlation[1:], curve[1:])


def _spread(overlap: np.ndarray) -> np.ndarray:
    """1, and correlations from the largest overlap to below the smallest, at equal angles."""
    lowest = max(overlap.min() - 0.05, -1.0)
    angles = np.linspace(np.arccos(min(overlap.max(), 1.0)), np.arccos(lowest), 16)
    return np.append(1.0, np.cos(angles))


@styled
def draw_fig6(numbers: Fig6) -> Any:
    """F25 Fig. 6 as a matplotlib Figure: (a) ρ* of all pairs, (b) ρ* over their correlation."""
    figure, axes = panels((3.2, 3.6), 2.9)
    _draw_pairs(figure, axes[0], numbers)
    first, second = np.triu_indices(len(numbers.scaling), 1)
    groups = {"pairs of inputs": np.ones(len(first), bool)}
    if numbers.labels is not None:
        same = numbers.labels[first] == numbers.labels[second]
        groups = {"same class": same, "different classes": ~same}
    overlap, scaling = numbers.overlap[first, second], numbers.scaling[first, second]
    ax = axes[1]
    ax.plot(
        numbers.curve_overlap,
        numbers.curve_scaling,
        color=GRAY,
        linewidth=1,
        label="synthetic inputs",
    )
    for (name, members), colour, marker in zip(groups.items(), (BLUE, ORANGE), "os", strict=False):
        ax.plot(
            overlap[members],
            scaling[members],
            marker,
            color=colour,
            markersize=3,
            alpha=0.6,
            markeredgewidth=0,
            label=name,
        )
    variances = np.diagonal(numbers.scaling)
    ax.plot(
        np.ones(len(variances)), variances, "D", color="black", markersize=3, label="same input"
    )
    ax.set(
        xlabel=r"correlation of the inputs $\alpha$ and $\beta$",
        ylabel=r"optimal scaling $\rho^*$",
    )
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left")
    return figure


def _draw_pairs(figure: Any, ax: Any, numbers: Fig6) -> None:
    size = len(numbers.scaling)
    image = ax.imshow(numbers.scaling, cmap="cividis", interpolation="nearest")
    figure.colorbar(image, ax=ax, label=r"optimal scaling $\rho^*$", shrink=0.85)
    ax.set(xlabel=r"input $\alpha$", ylabel=r"input $\beta$")
    ticks = np.arange(0, size, max(1, size // 4))
    ax.set_xticks(ticks, ticks + 1)
    ax.set_yticks(ticks, ticks + 1)
    ax.spines[:].set_visible(False)
    if numbers.labels is not None:
        for edge in np.flatnonzero(numbers.labels[1:] != numbers.labels[:-1]) + 0.5:
            ax.axvline(edge, color="white", linewidth=0.8)
            ax.axhline(edge, color="white", linewidth=0.8)


def _optima(network: ResidualNetwork, depths: Any, K0: np.ndarray) -> np.ndarray:
    """ρ* of the first variance and of the covariance with the second input, shape (2, D)."""
    found = [optimal_scaling(_at(network, int(L)), K0) for L in depths]
    return np.array([np.asarray(scaling)[0] for scaling in found]).T


def _at(network: ResidualNetwork, depth: int, branch_scale: Any = 1.0) -> ResidualNetwork:
    return network.replace(depth=depth, branch_scale=branch_scale)
