"""Figures of F23: the earlier version of F25, in whose notation ρ is called α.

Figs. 2, 3 and 6 are F25 Figs. 2, 3 and 8, with the same parameters in their captions. ``fig3`` and
so on compute what is plotted; ``draw_fig3`` and so on draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures import f25_response, f25_signal
from fieldtheory.figures.f25_response import Fig3, fig3
from fieldtheory.figures.f25_simulation import Fig2, draw_fig2, fig2
from fieldtheory.figures.f25_simulation import Fig8 as Fig6
from fieldtheory.figures.f25_simulation import draw_fig8 as draw_fig6
from fieldtheory.figures.f25_simulation import fig8 as fig6
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, panels, styled, tints
from fieldtheory.scaling import optimal_scaling
from fieldtheory.scaling.rescaling import rescaled_by_biases, rescaled_by_weights

__all__ = [
    "Fig1",
    "Fig2",
    "Fig3",
    "Fig4",
    "Fig5",
    "Fig6",
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "draw_fig1",
    "draw_fig2",
    "draw_fig3",
    "draw_fig4",
    "draw_fig5",
    "draw_fig6",
]

_K0 = 0.05


@dataclass(frozen=True, eq=False)
class Fig1:
    """Numbers of F23 Fig. 1: those of F25 Fig. 1 but for the curve of its panel (d).

    Attributes
    ----------
    signal : f25_signal.Fig1
        Of (b), of (c), and χ^out at the three scalings, which is in (c).
    """

    signal: f25_signal.Fig1

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        return [curve for curve in self.signal.curves() if curve.panel != "d"] + [
            Curve("c", f"output, rho = {rho:.6g}", np.array([self.output_layer]), np.array([chi]))
            for rho, chi in zip(self.signal.branch_scales, self.signal.output_response, strict=True)
        ]

    @property
    def output_layer(self) -> int:
        """L + 1."""
        return self.signal.network.depth + 1


def fig1(depth: int = 20, points: int = 301, progress: bool = False) -> Fig1:
    """Signal and response over the layers for three residual scalings (F23 Fig. 1).

    Parameters
    ----------
    depth : int
        Number of layers L.
    points : int
        Number of values of the signal in (b).
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig1

    Notes
    -----
    Panel (a) is a sketch of the network and has no numbers. The caption states no parameters; here
    they are those of F25 Fig. 1 of this package, L = 20, σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05,
    φ = erf, and scalings of 1/4, 1 and 4 times α*. The "overall response of the network output",
    of which the caption of (c) speaks, is χ^out, here a dot behind the layers.
    """
    return Fig1(f25_signal.fig1(depth=depth, points=points, progress=progress))


@styled
def draw_fig1(numbers: Fig1) -> Any:
    """F23 Fig. 1 as a matplotlib Figure: (a) sketch, (b) the signal, (c) χ^(l) and χ^out."""
    signal = numbers.signal
    figure, axes = f25_signal.below_sketch("bc", r"\alpha")
    labels = f25_signal.draw_signal(axes["b"], signal, r"\alpha")
    f25_signal.draw_response(axes["c"], signal, labels)
    for line, chi in zip(axes["c"].lines, signal.output_response.tolist(), strict=True):
        axes["c"].plot(numbers.output_layer, chi, "o", color=line.get_color(), markersize=4)
    at = numbers.output_layer, signal.output_response.min()
    offset = {"xytext": (0, 7), "textcoords": "offset points"}
    axes["c"].annotate(r"$\chi^{\mathrm{out}}$", at, ha="center", va="bottom", **offset)
    axes["c"].legend(loc="lower left")
    note(figure, signal.chosen())
    return figure


@styled
def draw_fig3(numbers: Fig3) -> Any:
    """F23 Fig. 3 as a matplotlib Figure: (a) K^(l), (b) χ^(l)."""
    return f25_response.draw_fig3(numbers, r"\alpha")


@dataclass(frozen=True, eq=False)
class Fig4:
    """Numbers of F23 Fig. 4.

    Attributes
    ----------
    depths : ndarray, shape (D,)
    branch_scales : ndarray, shape (R,)
        Residual scalings ρ of (a).
    response : ndarray, shape (D, R)
        χ^out.
    optima, maxima : ndarray, shape (D,)
        ρ* and χ^out there.
    curve_depths : ndarray, shape (S,)
    curve_printed, curve_saturation : ndarray, shape (S,)
        ρ* of F23 eq. (8) and of F25 eq. (67) for these depths.
    kernels : ndarray, shape (B,)
        Input kernels K^(0) of (c).
    map_scales : ndarray, shape (Q,)
    map_response : ndarray, shape (B, Q)
        χ^out at the largest depth.
    map_optima, map_printed : ndarray, shape (B,)
        ρ* and that of F23 eq. (8), for every K^(0).
    """

    depths: np.ndarray
    branch_scales: np.ndarray
    response: np.ndarray
    optima: np.ndarray
    maxima: np.ndarray
    curve_depths: np.ndarray
    curve_printed: np.ndarray
    curve_saturation: np.ndarray
    kernels: np.ndarray
    map_scales: np.ndarray
    map_response: np.ndarray
    map_optima: np.ndarray
    map_printed: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        rows = zip(self.depths, self.response, strict=True)
        lines = zip(self.kernels, self.map_response, strict=True)
        return [
            *(Curve("a", f"L = {L}", self.branch_scales, row) for L, row in rows),
            Curve("a", "maxima", self.optima, self.maxima),
            Curve("b", "exact", self.depths, self.optima),
            Curve("b", "F23 (8)", self.curve_depths, self.curve_printed),
            Curve("b", "F25 (67)", self.curve_depths, self.curve_saturation),
            *(Curve("c", f"K0 = {K:.6g}", self.map_scales, row) for K, row in lines),
            Curve("c", "exact", self.map_optima, self.kernels),
            Curve("c", "F23 (8)", self.map_printed, self.kernels),
        ]


def fig4(
    depths: Sequence[int] = (2, 5, 10, 20, 30), points: int = 201, progress: bool = False
) -> Fig4:
    """Output response over the residual scaling, its maxima, and their dependence on K^(0).

    F23 Fig. 4: (a) χ^out for several depths, (b) ρ* over the depth, (c) χ^out over ρ and K^(0) at
    the largest depth.

    Parameters
    ----------
    depths : sequence of int, shape (D,)
    points : int
        Number of residual scalings ρ in (a); (c) has half as many, and as many kernels.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig4
        Input kernels run from 0.01 to 0.24, below the (1/2)² at which F23 eq. (8) ends.

    Notes
    -----
    σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05 in (a) and (b), φ = erf, as in the caption; the ranges of
    ρ and K^(0) are chosen here. F23's "simulation values" of ρ* are maxima of χ^out; here they are
    exact. Its eq. (8) takes φ'(0) = 1; F25 eq. (67), with erf'(0) = 2/√π, is shown next to it.
    """
    depths = [validation.integer("depths", depth, 1) for depth in depths]
    points = validation.integer("points", points, 4)
    net = ResidualNetwork(depth=max(depths))
    rho = np.linspace(0, 1.25, points)
    between = np.arange(min(depths), max(depths) + 1)
    along = [net.replace(depth=int(L)) for L in between]
    kernels = np.linspace(0.01, 0.24, points // 2)
    across = np.linspace(0, 0.5, points // 2)
    printed = partial(optimal_scaling, method="saturation", slope=1.0)
    optima, curve_printed, curve_saturation, map_optima, map_printed = in_turn(
        [
            partial(optimal_scaling, [net.replace(depth=L) for L in depths], _K0),
            partial(printed, along, _K0),
            partial(optimal_scaling, along, _K0, method="saturation"),
            partial(optimal_scaling, net, kernels),
            partial(printed, net, kernels),
        ],
        "f23.fig4, optima",
        progress,
    )
    curves = [
        partial(_response, net.replace(depth=L), np.append(rho, best), _K0)
        for L, best in zip(depths, optima, strict=True)
    ]
    lines = [partial(_response, net, across, K) for K in kernels]
    found = in_turn([*curves, *lines], "f23.fig4", progress)
    response, line_response = np.stack(found[: len(depths)]), np.stack(found[len(depths) :])
    return Fig4(
        np.array(depths),
        rho,
        response[:, :-1],
        optima,
        response[:, -1],
        between,
        curve_printed,
        curve_saturation,
        kernels,
        across,
        line_response,
        map_optima,
        map_printed,
    )


@styled
def draw_fig4(numbers: Fig4) -> Any:
    """F23 Fig. 4 as a matplotlib Figure: (a) χ^out, (b) ρ* over L, (c) χ^out over ρ and K^(0)."""
    figure, axes = panels((2.6, 2.5, 3.0), 2.6)
    shades = tints(BLUE, len(numbers.depths))[::-1]
    for L, row, shade in zip(numbers.depths, numbers.response, shades, strict=True):
        axes[0].plot(numbers.branch_scales, row, color=shade, label=f"$L = {L}$")
    axes[0].scatter(numbers.optima, numbers.maxima, c=shades, edgecolors="black", s=16, zorder=3)
    top = 1.35 * numbers.maxima.max()
    axes[0].set(xlabel=r"residual scaling $\alpha$", xlim=(0, None), ylim=(0, top))
    axes[0].set_ylabel(r"output response $\chi^{\mathrm{out}}$")
    axes[0].legend(loc="upper center", ncols=2)
    axes[1].plot(numbers.curve_depths, numbers.curve_printed, color=BLUE, label="F23 eq. (8)")
    axes[1].plot(
        numbers.curve_depths, numbers.curve_saturation, "--", color=GRAY, label="F25 eq. (67)"
    )
    axes[1].plot(numbers.depths, numbers.optima, "o", color=ORANGE, markersize=4, label="exact")
    axes[1].set(xlabel="depth $L$", ylabel=r"optimal scaling $\alpha^*$", ylim=(0, None))
    axes[1].legend(loc="upper right")
    image = axes[2].pcolormesh(
        numbers.map_scales,
        numbers.kernels,
        numbers.map_response,
        cmap="cividis",
        shading="nearest",
        rasterized=True,
    )
    figure.colorbar(image, ax=axes[2], label=r"$\chi^{\mathrm{out}}$", shrink=0.85)
    axes[2].plot(numbers.map_printed, numbers.kernels, color="white", linewidth=1)
    few = slice(None, None, max(1, len(numbers.kernels) // 12))
    axes[2].plot(numbers.map_optima[few], numbers.kernels[few], "o", color=ORANGE, markersize=3)
    axes[2].set(xlabel=r"residual scaling $\alpha$", ylabel=r"input kernel $K^{(0)}$")
    note(figure, "chosen here: the ranges of the axes")
    return figure


@dataclass(frozen=True, eq=False)
class Fig5:
    """Numbers of F23 Fig. 5; a row for each variance.

    Attributes
    ----------
    branch_scales : ndarray, shape (R,)
    weight_variances, bias_variances : ndarray, shape (W,) and (B,)
    weight_response : ndarray, shape (W, R)
        χ^out of (a).
    bias_response : ndarray, shape (B, R)
        χ^out of (b) and (d).
    weight_scales, weight_rescaled : ndarray, shape (W, R)
        ρ σ_w and χ^out/σ²_w,out of (c).
    bias_scales : ndarray, shape (B, R)
        ρ ρ*(σ_b,ref)/ρ*(σ_b) of (d), by F23 eq. (8).
    """

    branch_scales: np.ndarray
    weight_variances: np.ndarray
    bias_variances: np.ndarray
    weight_response: np.ndarray
    bias_response: np.ndarray
    weight_scales: np.ndarray
    weight_rescaled: np.ndarray
    bias_scales: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        weights = [f"sigma_w^2 = {variance:g}" for variance in self.weight_variances]
        biases = [f"sigma_b^2 = {variance:g}" for variance in self.bias_variances]
        plain = {"a": (weights, self.weight_response), "b": (biases, self.bias_response)}
        rescaled = {
            "c": (weights, self.weight_scales, self.weight_rescaled),
            "d": (biases, self.bias_scales, self.bias_response),
        }
        return [
            Curve(panel, label, self.branch_scales, row)
            for panel, (labels, rows) in plain.items()
            for label, row in zip(labels, rows, strict=True)
        ] + [
            Curve(panel, *named)
            for panel, columns in rescaled.items()
            for named in zip(*columns, strict=True)
        ]


def fig5(
    weight_variances: Sequence[float] = (1.0, 1.25, 1.5, 1.75, 2.0),
    bias_variances: Sequence[float] = (0.05, 0.06, 0.07, 0.08, 0.09, 0.1),
    depth: int = 30,
    points: int = 301,
    progress: bool = False,
) -> Fig5:
    """Output response for several weights and biases, and how the curves collapse (F23 Fig. 5).

    Parameters
    ----------
    weight_variances : sequence of float, shape (W,)
        σ_w² of (a) and (c), with σ_b² = 0.05; the readout has the same.
    bias_variances : sequence of float, shape (B,)
        σ_b² of (b) and (d), with σ_w² = 1.75; the first one is the reference of (d).
    depth : int
    points : int
        Number of residual scalings ρ, from 0 to 0.75.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig5

    Notes
    -----
    L = 30, K^(0) = 0.05 and φ = erf as in the caption. It prints "fixed σ_b² = 1.75" for panel (b),
    where σ_w² is meant, and does not state the reference bias of (d): here the smallest, 0.05. The
    curves of (c), which F23 says collapse, keep heights that differ by 18 %, since σ_b²/σ_w² varies
    among them; at fixed σ_b²/σ_w² they collapse exactly.
    """
    rho = np.linspace(0, 0.75, validation.integer("points", points, 2))
    weights, biases = (
        validation.finite_array(name, values)
        for name, values in (
            ("weight_variances", weight_variances),
            ("bias_variances", bias_variances),
        )
    )
    net = ResidualNetwork(depth=depth)
    by_weight = [net.replace(weight_variance=variance) for variance in weights.tolist()]
    by_bias = [
        net.replace(weight_variance=1.75, bias_variance=variance) for variance in biases.tolist()
    ]
    curves = [partial(_response, each, rho, _K0) for each in [*by_weight, *by_bias]]
    found = np.stack(in_turn(curves, "f23.fig5", progress))
    response, bias_response = np.split(found, [len(by_weight)])
    collapsed = [
        rescaled_by_weights(each, rho, row) for each, row in zip(by_weight, response, strict=True)
    ]
    scales, rescaled = (np.stack(rows) for rows in zip(*collapsed, strict=True))
    return Fig5(
        rho,
        weights,
        biases,
        response,
        bias_response,
        scales,
        rescaled,
        np.stack([rescaled_by_biases(each, rho, _K0, float(biases[0])) for each in by_bias]),
    )


@styled
def draw_fig5(numbers: Fig5) -> Any:
    """F23 Fig. 5 as a matplotlib Figure: (a), (b) χ^out over ρ; (c), (d) rescaled."""
    figure, axes = panels((2.2, 2.2, 2.2, 2.2), 2.5)
    names = [r"$\alpha$", r"$\alpha$", r"$\hat\alpha = \alpha\,\sigma_w$"]
    names.append(r"$\hat\alpha = \alpha\,\alpha^*(\sigma_{b,\mathrm{ref}})/\alpha^*(\sigma_b)$")
    labels = [rf"$\sigma_w^2 = {v:g}$" for v in numbers.weight_variances]
    labels_b = [rf"$\sigma_b^2 = {v:g}$" for v in numbers.bias_variances]
    plain = [numbers.branch_scales] * max(len(labels), len(labels_b))
    content: tuple[tuple[Any, np.ndarray, list[str]], ...] = (
        (plain, numbers.weight_response, labels),
        (plain, numbers.bias_response, labels_b),
        (numbers.weight_scales, numbers.weight_rescaled, labels),
        (numbers.bias_scales, numbers.bias_response, labels_b),
    )
    for i, (ax, (scales, rows, named)) in enumerate(zip(axes, content, strict=True)):
        for x, y, label, shade in zip(scales, rows, named, tints(BLUE, len(rows)), strict=False):
            ax.plot(x, y, color=shade, label=label, linewidth=1)
        ax.set(xlabel=names[i], xlim=(0, None), ylim=(0, None))
    axes[0].set_ylabel(r"$\chi^{\mathrm{out}}$")
    axes[2].set_ylabel(r"$\hat\chi^{\mathrm{out}} = \chi^{\mathrm{out}}/\sigma_{w,\mathrm{out}}^2$")
    for ax in axes[:2]:
        ax.legend(loc="upper right", fontsize=6)
    reference = rf"$\sigma_{{b,\mathrm{{ref}}}}^2 = {numbers.bias_variances[0]:g}$ in (d)"
    note(figure, f"chosen here: {reference}, and the range of the axes")
    return figure


def _response(network: ResidualNetwork, branch_scales: np.ndarray, K0: float) -> np.ndarray:
    """χ^out for every ρ."""
    return solve(network.replace(branch_scale=branch_scales[:, None]), K0).output_response
