"""Figures of F25 on the response function: Fig. 3 and Fig. 4; reached as `f25.fig3`, `f25.fig4`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, panels, styled, tints
from fieldtheory.scaling import optimal_scaling

DEPTHS = (10, 50, 100, 200)
_INPUT_SCALE = 0.05
_ENTRIES = ("diagonal", "off-diagonal")


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

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        labels = [f"rho = {rho:g}" for rho in self.branch_scales]
        return [
            over_layers(panel, label, row)
            for panel, values in (("a", self.kernels), ("b", self.response))
            for label, row in zip(labels, values, strict=True)
        ]


def fig3(
    branch_scales: Sequence[float] = (1.0, 0.3, 0.1),
    depth: int = 20,
    K0: float = 0.212,
    progress: bool = False,
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
    progress : bool
        Show a progress bar on stderr.

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
    (s,) = in_turn([partial(solve, net, K0)], "f25.fig3", progress)
    return Fig3(rho, s.kernels[:, :-1], s.response)


@styled
def draw_fig3(numbers: Fig3, scale: str = r"\rho") -> Any:
    """F25 Fig. 3 as a matplotlib Figure: (a) K^(l), (b) χ^(l).

    Parameters
    ----------
    numbers : Fig3
    scale : str
        The residual scaling in LaTeX.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels((3.1, 3.1), 2.6)
    labels = [rf"${scale} = {rho:g}$" for rho in numbers.branch_scales]
    shades = tints(BLUE, len(labels))
    for ax, values in zip(axes, (numbers.kernels, numbers.response), strict=True):
        for row, shade, label in zip(values, shades, labels, strict=True):
            ax.plot(row, color=shade, label=label, marker="o", markersize=2.2)
        ax.set_xlabel("layer $l$")
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set(ylabel=r"kernel $K^{(l)}$", yscale="log")
    axes[1].set(ylabel=r"response $\chi^{(l)}$", ylim=(0, None))
    axes[0].legend(loc="upper left")
    kernels = numbers.kernels
    note(figure, rf"chosen here: $L = {kernels.shape[1] - 1}$, $K^{{(0)}} = {kernels[0, 0]:g}$")
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

    def curves(self) -> list[Curve]:
        """The plotted curves; the maxima are marked on those of (a) and (b)."""
        found = []
        for entry, panel in enumerate("ab"):
            rho = self.branch_scales[entry]
            for L, response in zip(self.depths, self.response[entry], strict=True):
                found.append(Curve(panel, f"L = {L}", rho, response))
            found.append(Curve(panel, "maxima", self.optima[entry], self.maxima[entry]))
        for label, scaling in zip(_ENTRIES, self.scaling, strict=True):
            found.append(Curve("c", label, self.scaling_depths, scaling))
        return found


def fig4(
    depths: Sequence[int] = DEPTHS,
    network: ResidualNetwork | None = None,
    covariance: float = 0.03,
    points: int = 301,
    progress: bool = False,
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
    progress : bool
        Show a progress bar on stderr.

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
    between = np.unique(np.geomspace(depths[0], depths[-1], 11).round().astype(int))
    layers = sorted({*depths, *between.tolist()})
    found = in_turn([partial(_optima, net, L, K0) for L in layers], "f25.fig4, optima", progress)
    best = dict(zip(layers, found, strict=True))
    optima = np.stack([best[L] for L in depths], axis=1)
    rho = np.linspace(0, 1.5 * optima.max(axis=1), points, axis=1)
    curves = in_turn(
        [partial(_curves, net, L, K0, rho, best[L]) for L in depths], "f25.fig4", progress
    )
    response = np.stack(curves, axis=1)
    return Fig4(
        np.array(depths),
        rho,
        response[..., :-1],
        optima,
        response[..., -1],
        between,
        np.stack([best[L] for L in between.tolist()], axis=1),
    )


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
    for row, colour, label in zip(numbers.scaling, (BLUE, GREEN), _ENTRIES, strict=True):
        ax.plot(L, row, "o-", color=colour, markersize=3, linewidth=1, label=label)
    line.set_label(r"$\propto 1/\sqrt{L}$")
    ax.set(xscale="log", yscale="log", xlabel="depth $L$", ylabel=r"optimal scaling $\rho^*$")
    ax.legend(loc="best")


def _optima(network: ResidualNetwork, depth: int, K0: np.ndarray) -> np.ndarray:
    """ρ* of the first variance and of the covariance with the second input, shape (2,)."""
    return np.asarray(optimal_scaling(network.replace(depth=depth, branch_scale=1.0), K0))[0]


def _curves(
    network: ResidualNetwork, depth: int, K0: np.ndarray, rho: np.ndarray, best: np.ndarray
) -> np.ndarray:
    """χ^out of the variance and of the covariance at their ρ and, last, at their ρ*, (2, R+1)."""
    scales = np.concatenate([rho, best[:, None]], axis=1)
    found = []
    for entry, branch_scale in enumerate(scales):
        net = network.replace(depth=depth, branch_scale=branch_scale[:, None])
        found.append(solve(net, K0).output_response[:, 0, entry])
    return np.stack(found)
