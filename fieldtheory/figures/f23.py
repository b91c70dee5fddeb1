"""Figures of F23: the earlier version of F25, in whose notation ρ is called α.

Figs. 2, 3 and 6 are F25 Figs. 2, 3 and 8, with the same parameters in their captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures import f25
from fieldtheory.figures.f25_response import draw_maxima, draw_signal, response_over
from fieldtheory.figures.parts import Numbers, curves_of, draw_lines, in_turn, integers, picture
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, styled, tints
from fieldtheory.scaling import optimal_scaling

__all__ = [
    "fig1", "fig2", "fig3", "fig4", "fig5", "fig6",
    "draw_fig1", "draw_fig2", "draw_fig3", "draw_fig4", "draw_fig5", "draw_fig6",
]  # fmt: skip

_SCALE = r"\alpha"
fig2, draw_fig2 = f25.fig2, f25.draw_fig2
fig3, draw_fig3 = f25.fig3, partial(f25.draw_fig3, scale=_SCALE)
fig6, draw_fig6 = f25.fig8, f25.draw_fig8
# Variance of the input in all captions.
_K0 = 0.05


def fig1(depth: int = 20, points: int = 301, progress: bool = False) -> Numbers:
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
    Numbers
        Those of F25 Fig. 1; its curve (d) is left out, and χ^out at the scalings is in (c).

    Notes
    -----
    Panel (a) is a sketch of the network and has no numbers. The caption states no parameters; here
    they are those of F25 Fig. 1 of this package, L = 20, σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05,
    φ = erf, and scalings of 1/4, 1 and 4 times α*. The "overall response of the network output",
    of which the caption of (c) speaks, is χ^out, here a dot behind the layers.
    """
    signal = f25.fig1(depth=depth, points=points, progress=progress)
    curves = [curve for curve in signal.listed if curve.panel != "d"]
    labels = [f"output, rho = {rho:.6g}" for rho in signal.branch_scales]
    curves += curves_of("c", labels, depth + 1, signal.output_response[:, None])
    return Numbers(curves, signal.chosen, signal.values)


@styled
def draw_fig1(numbers: Numbers) -> Any:
    """F23 Fig. 1 as a matplotlib Figure: (a) sketch, (b) the signal, (c) χ^(l) and χ^out."""
    figure, axes = draw_signal(numbers, _SCALE)
    outputs = numbers.panels()["c"][3:]
    for line, output in zip(axes["c"].lines, outputs, strict=True):
        axes["c"].plot(output.x, output.y, "o", color=line.get_color(), markersize=4)
    at = outputs[0].x[0], numbers.output_response.min()
    offset = {"xytext": (0, 7), "textcoords": "offset points"}
    axes["c"].annotate(r"$\chi^{\mathrm{out}}$", at, ha="center", va="bottom", **offset)
    axes["c"].legend(loc="lower left")
    return figure


def fig4(
    depths: Sequence[int] = (2, 5, 10, 20, 30), points: int = 201, progress: bool = False
) -> Numbers:
    """Output response over the residual scaling, its maxima, and their dependence on K^(0).

    F23 Fig. 4: (a) χ^out for several depths, (b) ρ* over the depth, (c) χ^out over ρ and K^(0) at
    the largest depth.

    Parameters
    ----------
    depths : sequence of int, shape (D,)
    points : int
        Number R of residual scalings ρ in (a); (c) has half as many, and as many kernels.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Numbers
        (a) ``response`` χ^out (D, R) over ``branch_scales`` (R,), its ``optima`` ρ* and ``maxima``
        (D,); (b) ``curve_printed`` and ``curve_saturation``, ρ* of F23 eq. (8) and of F25 eq. (67)
        for ``curve_depths`` (S,); (c) ``map_response`` (B, Q) over ``map_scales`` (Q,) for
        ``kernels`` K^(0) (B,), and their ``map_optima`` and ``map_printed`` of eq. (8). Kernels run
        from 0.01 to 0.24, below the (1/2)² at which F23 eq. (8) ends.

    Notes
    -----
    σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05 in (a) and (b), φ = erf, as in the caption; the ranges of
    ρ and K^(0) are chosen here. F23's "simulation values" of ρ* are maxima of χ^out; here they are
    exact. Its eq. (8) takes φ'(0) = 1; F25 eq. (67), with erf'(0) = 2/√π, is shown next to it.
    """
    L = integers("depths", depths)
    points = validation.integer("points", points, 4)
    net = ResidualNetwork(depth=int(L.max()))
    networks = [net.replace(depth=depth) for depth in L.tolist()]
    rho, across = np.linspace(0, 1.25, points), np.linspace(0, 0.5, points // 2)
    between = np.arange(L.min(), L.max() + 1)
    along = [net.replace(depth=depth) for depth in between.tolist()]
    K0 = np.linspace(0.01, 0.24, points // 2)
    printed = partial(optimal_scaling, method="saturation", slope=1.0)
    optima, curve_printed, curve_saturation, map_optima, map_printed = in_turn(
        [
            partial(optimal_scaling, networks, _K0),
            partial(printed, along, _K0),
            partial(optimal_scaling, along, _K0, method="saturation"),
            partial(optimal_scaling, net, K0),
            partial(printed, net, K0),
        ],
        "f23.fig4, optima",
        progress,
    )
    scales = np.column_stack([np.tile(rho, (len(L), 1)), optima])
    parts = [partial(response_over, *each, _K0) for each in zip(networks, scales, strict=True)]
    parts += [partial(response_over, net, across, K) for K in K0]
    rows = in_turn(parts, "f23.fig4", progress)
    response, map_response = np.stack(rows[: len(L)]), np.stack(rows[len(L) :])
    response, maxima = response[:, :-1], response[:, -1]
    curves = [
        *curves_of("a", [f"L = {depth}" for depth in L], rho, response),
        Curve("a", "maxima", optima, maxima),
        Curve("b", "exact", L, optima),
        Curve("b", "F23 (8)", between, curve_printed),
        Curve("b", "F25 (67)", between, curve_saturation),
        *curves_of("c", [f"K0 = {K:.6g}" for K in K0], across, map_response),
        Curve("c", "exact", map_optima, K0),
        Curve("c", "F23 (8)", map_printed, K0),
    ]
    values = {"depths": L, "branch_scales": rho, "response": response, "optima": optima}
    values |= {"maxima": maxima, "curve_depths": between, "curve_printed": curve_printed}
    values |= {"curve_saturation": curve_saturation, "kernels": K0, "map_scales": across}
    values |= {"map_response": map_response, "map_optima": map_optima, "map_printed": map_printed}
    return Numbers(curves, "the ranges of the axes", values)


@picture((2.6, 2.5, 3.0), 2.6)
def draw_fig4(axes: Any, numbers: Numbers) -> None:
    """F23 Fig. 4 as a matplotlib Figure: (a) χ^out, (b) ρ* over L, (c) χ^out over ρ and K^(0)."""
    draw_maxima(axes[0], numbers.panels()["a"], BLUE, _SCALE)
    exact, printed, saturation = numbers.panels()["b"]
    axes[1].plot(printed.x, printed.y, color=BLUE, label="F23 eq. (8)")
    axes[1].plot(saturation.x, saturation.y, "--", color=GRAY, label="F25 eq. (67)")
    axes[1].plot(exact.x, exact.y, "o", color=ORANGE, markersize=4, label="exact")
    axes[1].set(xlabel="depth $L$", ylabel=r"optimal scaling $\alpha^*$", ylim=(0, None))
    axes[1].legend(loc="upper right")
    scales, K0, chi = numbers.map_scales, numbers.kernels, numbers.map_response
    look: Any = {"cmap": "cividis", "shading": "nearest", "rasterized": True}
    image = axes[2].pcolormesh(scales, K0, chi, **look)
    axes[0].figure.colorbar(image, ax=axes[2], label=r"$\chi^{\mathrm{out}}$", shrink=0.85)
    axes[2].plot(numbers.map_printed, K0, color="white", linewidth=1)
    few = slice(None, None, max(1, len(K0) // 12))
    axes[2].plot(numbers.map_optima[few], K0[few], "o", color=ORANGE, markersize=3)
    axes[2].set(xlabel=r"residual scaling $\alpha$", ylabel=r"input kernel $K^{(0)}$")


def fig5(
    weight_variances: Sequence[float] = (1.0, 1.25, 1.5, 1.75, 2.0),
    bias_variances: Sequence[float] = (0.05, 0.06, 0.07, 0.08, 0.09, 0.1),
    depth: int = 30,
    points: int = 301,
    progress: bool = False,
) -> Numbers:
    """Output response for several weights and biases, and how the curves collapse (F23 Fig. 5).

    Parameters
    ----------
    weight_variances : sequence of float, shape (W,)
        σ_w² of (a) and (c), with σ_b² = 0.05; the readout has the same.
    bias_variances : sequence of float, shape (B,)
        σ_b² of (b) and (d), with σ_w² = 1.75; the first one is the reference of (d).
    depth : int
    points : int
        Number R of residual scalings ρ, from 0 to 0.75.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Numbers
        The ``weight_variances``, ``bias_variances`` and ``branch_scales`` (R,); χ^out,
        ``weight_response`` (W, R) of (a) and ``bias_response`` (B, R) of (b) and (d);
        ``weight_scales`` ρ σ_w and ``weight_rescaled`` χ^out/σ²_w,out (W, R) of (c);
        ``bias_scales`` ρ ρ*(σ_b,ref)/ρ*(σ_b) (B, R) of (d), by F23 eq. (8).

    Notes
    -----
    L = 30, K^(0) = 0.05 and φ = erf as in the caption. It prints "fixed σ_b² = 1.75" for panel (b),
    where σ_w² is meant, and does not state the reference bias of (d): here the smallest, 0.05. The
    curves of (c), which F23 says collapse, keep heights that differ by 18 %, since σ_b²/σ_w² varies
    among them; at fixed σ_b²/σ_w² they collapse exactly.
    """
    rho = np.linspace(0, 0.75, validation.integer("points", points, 2))
    weights = np.array([validation.positive("weight_variances", v) for v in weight_variances])
    biases = validation.finite_array("bias_variances", bias_variances)
    net = ResidualNetwork(depth=depth)
    strong = net.replace(weight_variance=1.75)
    by_weight = [net.replace(weight_variance=variance) for variance in weights.tolist()]
    by_bias = [strong.replace(bias_variance=variance) for variance in biases.tolist()]
    parts = [partial(response_over, each, rho, _K0) for each in [*by_weight, *by_bias]]
    rows = np.stack(in_turn(parts, "f23.fig5", progress))
    response, bias_response = np.split(rows, [len(by_weight)])
    # ρ enters as ρ σ_w and ρ σ_b, and σ_w² of the readout is a factor.
    scales, rescaled = rho * np.sqrt(weights)[:, None], response / weights[:, None]
    best = np.asarray(optimal_scaling(by_bias, _K0, method="saturation", slope=1.0))
    bias_scales = rho * (best[0] / best)[:, None]
    labels = [f"sigma_w^2 = {variance:g}" for variance in weights]
    labels_b = [f"sigma_b^2 = {variance:g}" for variance in biases]
    curves = [
        *curves_of("a", labels, rho, response),
        *curves_of("b", labels_b, rho, bias_response),
        *curves_of("c", labels, scales, rescaled),
        *curves_of("d", labels_b, bias_scales, bias_response),
    ]
    values = {"branch_scales": rho, "weight_variances": weights, "bias_variances": biases}
    values |= {"weight_response": response, "bias_response": bias_response}
    values |= {"weight_scales": scales, "weight_rescaled": rescaled, "bias_scales": bias_scales}
    reference = rf"$\sigma_{{b,\mathrm{{ref}}}}^2 = {biases[0]:g}$ in (d)"
    return Numbers(curves, f"{reference}, and the range of the axes", values)


@picture((2.2, 2.2, 2.2, 2.2), 2.5)
def draw_fig5(axes: Any, numbers: Numbers) -> None:
    """F23 Fig. 5 as a matplotlib Figure: (a), (b) χ^out over ρ; (c), (d) rescaled."""
    names = [r"$\alpha$", r"$\alpha$", r"$\hat\alpha = \alpha\,\sigma_w$"]
    names.append(r"$\hat\alpha = \alpha\,\alpha^*(\sigma_{b,\mathrm{ref}})/\alpha^*(\sigma_b)$")
    for ax, name, curves in zip(axes, names, numbers.panels().values(), strict=True):
        draw_lines(ax, curves, tints(BLUE, len(curves)), linewidth=1)
        ax.set(xlabel=name, xlim=(0, None), ylim=(0, None))
    axes[0].set_ylabel(r"$\chi^{\mathrm{out}}$")
    axes[2].set_ylabel(r"$\hat\chi^{\mathrm{out}} = \chi^{\mathrm{out}}/\sigma_{w,\mathrm{out}}^2$")
    for ax in axes[:2]:
        ax.legend(loc="upper right", fontsize=6)
