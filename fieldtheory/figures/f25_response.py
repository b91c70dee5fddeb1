"""Figures of F25 on the response function, Figs. 1, 3 and 4; reached as `f25.fig1` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import (
    Numbers,
    count_layers,
    curves_of,
    draw_lines,
    in_turn,
    integers,
    note,
    picture,
)
from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, ORANGE, styled, tints
from fieldtheory.scaling import optimal_scaling

_LINE = 0.9
_ROUND = "round,pad=0,rounding_size=0.1"


def draw_network(ax: Any, scale: str = r"\rho") -> None:
    """Read-in, one layer with its residual branch and skip connection, and readout (F25 (1))."""
    ax.set(xlim=(-0.4, 14.3), ylim=(-0.85, 1.75), aspect="equal")
    ax.set_axis_off()
    _layer(ax, scale)
    ax.text(0, 0, "$x$", ha="center", va="center")
    _box(ax, 1.3, 0, r"$W^{\mathrm{in}}, b^{\mathrm{in}}$", GRAY)
    ax.text(2.75, 0, "$h^{(0)}$", ha="center", va="center")
    for left, right in ((0.25, 0.75), (1.85, 2.4)):
        _arrow(ax, (left, 0), (right, 0))
    for x in (3.45, 10.2):
        ax.text(x, 0, r"$\cdots$", ha="center", va="center", color=GRAY)
    ax.text(10.85, 0, "$h^{(L)}$", ha="center", va="center")
    _box(ax, 11.85, 0, r"$\phi$", ORANGE, half=0.25)
    _box(ax, 12.95, 0, r"$W^{\mathrm{out}}, b^{\mathrm{out}}$", GRAY)
    ax.text(14.1, 0, "$y$", ha="center", va="center")
    for left, right in ((11.2, 11.6), (12.1, 12.4), (13.5, 13.9)):
        _arrow(ax, (left, 0), (right, 0))


def _layer(ax: Any, scale: str) -> None:
    """h^(l-1) to h^(l): the residual f^(l) of the branch, and the skip connection."""
    from matplotlib.patches import Circle, FancyBboxPatch

    ax.add_patch(FancyBboxPatch((4.75, -0.62), 4.15, 2.15, boxstyle=_ROUND, fc="0.95", ec="none"))
    ax.text(4.9, 1.42, "layer $l$", ha="left", va="top", fontsize=7.5, color=GRAY)
    ax.text(4.15, 0, "$h^{(l-1)}$", ha="center", va="center")
    ax.text(9.5, 0, "$h^{(l)}$", ha="center", va="center")
    _box(ax, 5.75, 0, r"$\phi$", ORANGE, half=0.25)
    _box(ax, 6.75, 0, "$W^{(l)}, b^{(l)}$", BLUE, half=0.5)
    for x, text in ((7.6, rf"${scale}$"), (8.6, "$+$")):
        ax.add_patch(Circle((x, 0), 0.19, fc="white", ec="black", lw=_LINE))
        ax.text(x, 0, text, ha="center", va="center", fontsize=8)
    for left, right in ((4.6, 5.5), (6.0, 6.25), (7.25, 7.41), (7.79, 8.41), (8.79, 9.2)):
        _arrow(ax, (left, 0), (right, 0))
    ax.text(8.1, -0.12, "$f^{(l)}$", ha="center", va="top", fontsize=8)
    ax.plot([5.05, 5.05, 8.6], [0, 0.85, 0.85], color="black", lw=_LINE, solid_joinstyle="round")
    _arrow(ax, (8.6, 0.85), (8.6, 0.19))
    ax.text(6.85, 0.93, "skip connection, $\\gamma = 1$", ha="center", va="bottom", fontsize=7.5)
    formula = rf"\mathcal{{F}}(h) = {scale}\,[W^{{(l)}}\phi(h) + b^{{(l)}}]"
    ax.text(6.85, -0.7, f"residual branch ${formula}$", ha="center", va="top", fontsize=7.5)


def _box(ax: Any, x: float, y: float, text: str, colour: str, half: float = 0.55) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = x - half, y - 0.3
    ax.add_patch(FancyBboxPatch(corner, 2 * half, 0.6, boxstyle=_ROUND, fc="white", ec=colour))
    ax.text(x, y, text, ha="center", va="center", fontsize=8)


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    arrow = {"arrowstyle": "-|>", "lw": _LINE, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
    ax.annotate("", end, start, arrowprops=arrow | {"fc": "black"})


def fig1(depth: int = 20, points: int = 301, progress: bool = False) -> Numbers:
    """Signal, response over the layers and output response of three scalings (F25 Fig. 1).

    Parameters
    ----------
    depth : int
        Number of layers L.
    points : int
        Number R of residual scalings in (d), and of values of the signal in (b).
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Numbers
        Three ``branch_scales``, a quarter of ρ*, ρ* and 4 ρ*. With them ``signal``
        h^(L) (R,), its ``density`` (3, R) and ``activation`` φ(h) (R,), ``response`` χ^(l)
        (3, L+1), ``output_response`` χ^out (3,); ``curve_response``, χ^out over ``curve_scales``
        (R,).

    Notes
    -----
    Panel (a) is a sketch of the network and has no numbers. The caption states no parameters. Here
    L = 20 and otherwise the parameters of F25 Fig. 4, σ_w² = 1.25, σ_b² = 0.05, K^(0) = 0.05,
    φ = erf; the signal is that of the last layer. χ^(0) = 1 here, N/d_in in F25.
    """
    points = validation.integer("points", points, 2)
    net, K0, multiples = ResidualNetwork(depth=depth), 0.05, (0.25, 1.0, 4.0)
    (best,) = in_turn([partial(optimal_scaling, net, K0)], "f25.fig1, optimum", progress)
    scales = float(best) * np.array(multiples)
    along = np.linspace(0, 1.25 * scales[-1], points)
    networks = [net.replace(branch_scale=rho[:, None]) for rho in (scales, along)]
    three, many = in_turn([partial(solve, each, K0) for each in networks], "f25.fig1", progress)
    variances = three.kernels[:, depth]
    signal = np.linspace(-1, 1, points) * 3 * np.sqrt(variances[1])
    exponents = -(signal**2) / (2 * variances[:, None])
    density = np.exp(exponents) / np.sqrt(2 * np.pi * variances[:, None])
    values = {"branch_scales": scales, "signal": signal, "density": density}
    values |= {"activation": feature_functions(net)(signal)[0], "response": three.response}
    values |= {"output_response": three.output_response}
    values |= {"curve_scales": along, "curve_response": many.output_response}
    labels = [f"rho = {rho:.6g}" for rho in scales]
    curves = [
        *curves_of("b", labels, signal, density),
        Curve("b", "phi", signal, values["activation"]),
        *curves_of("c", labels, np.arange(depth + 1), three.response),
        Curve("d", "response", along, many.output_response),
        Curve("d", "marked", scales, three.output_response),
    ]
    chosen = (
        rf"$L = {depth}$, $\sigma_w^2 = {net.weight_variance:g}$, "
        rf"$\sigma_b^2 = {net.bias_variance:g}$, $K^{{(0)}} = {K0:g}$; "
        f"{multiples[0]:g}, 1 and {multiples[2]:g} times the optimal scaling"
    )
    return Numbers(curves, chosen, values)


@styled
def draw_fig1(numbers: Numbers) -> Any:
    """F25 Fig. 1: (a) sketch of the network, (b) the signal, (c) χ^(l), (d) χ^out over ρ."""
    figure, axes = draw_signal(numbers, r"\rho")
    response, marked = numbers.panels()["d"]
    for x, y, line in zip(marked.x, marked.y, axes["c"].lines, strict=True):
        axes["d"].plot(x, y, "o", color=line.get_color(), zorder=3)
    axes["d"].plot(response.x, response.y, color="black", linewidth=1)
    axes["d"].set(xlabel=r"residual scaling $\rho$", xlim=(0, None), ylim=(0, None))
    axes["d"].set_ylabel(r"output response $\chi^{\mathrm{out}}$")
    axes["d"].legend(*axes["c"].get_legend_handles_labels(), loc="upper right")
    return figure


def draw_signal(numbers: Numbers, scale: str) -> tuple[Any, dict[str, Any]]:
    """Panels (a) to (c) with the scaling in LaTeX, and the axes below the sketch (a)."""
    # Width of Fig. 1 in inches, as the sketch needs it.
    width = 7.8
    from fieldtheory.plotting.figure import Figure

    figure = Figure(figsize=(width, 4.1), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=(1.0, 1.8))
    sketch = halves[0].add_axes((0, 0, 1, 1))
    draw_network(sketch, scale)
    sketch.text(0.01, 0.97, "(a)", fontsize=9.5, va="top", transform=sketch.transAxes)
    curves = numbers.panels()
    axes = dict(zip(curves, halves[1].subplots(1, len(curves)), strict=True))
    for letter, ax in axes.items():
        ax.set_title(f"({letter})", loc="left", fontsize=9.5, pad=7)
    *densities, activation = curves["b"]
    # The range in which erf is close to a straight line, of length 1.
    axes["b"].axvspan(-0.5, 0.5, color=ORANGE, alpha=0.15, lw=0)
    other = axes["b"].twinx()
    other.plot(activation.x, activation.y, "--", color=ORANGE, linewidth=1)
    other.set(ylabel=r"activation $\phi(h)$", ylim=(-1.05, 1.05))
    other.spines["right"].set_visible(True)
    labels = [rf"${scale} {sign} {scale}^*$" for sign in "<=>"]
    for ax, lines in ((axes["b"], densities), (axes["c"], curves["c"])):
        # Light to dark for scalings from small to large.
        for curve, shade, label in zip(lines, tints(BLUE, 3)[::-1], labels, strict=False):
            ax.plot(curve.x, curve.y, color=shade, label=label)
    axes["b"].set(xlabel=r"signal $h^{(L)}$", ylabel="density", ylim=(0, None), yticks=[])
    count_layers(axes["c"], ylabel=r"response $\chi^{(l)}$", yscale="log")
    note(figure, numbers.chosen)
    return figure, axes


def fig3(
    branch_scales: Sequence[float] = (1.0, 0.3, 0.1),
    depth: int = 20,
    K0: float = 0.212,
    progress: bool = False,
) -> Numbers:
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
    Numbers
        ``branch_scales`` (R,), ``kernels`` K^(l) and ``response`` χ^(l) = ∂K^(l)/∂K^(0), both
        (R, L+1).

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
    values = {"kernels": s.kernels[:, :-1], "response": s.response}
    labels = [f"rho = {scale:g}" for scale in rho]
    curves = [
        curve
        for panel, rows in zip("ab", values.values(), strict=True)
        for curve in curves_of(panel, labels, np.arange(depth + 1), rows)
    ]
    chosen = rf"$L = {depth}$, $K^{{(0)}} = {K0:g}$"
    return Numbers(curves, chosen, {"branch_scales": rho} | values)


@picture((3.1, 3.1), 2.6)
def draw_fig3(axes: Any, numbers: Numbers, scale: str = r"\rho") -> None:
    """F25 Fig. 3 as a matplotlib Figure: (a) K^(l), (b) χ^(l)."""
    shades = tints(BLUE, len(numbers.branch_scales))
    for ax, curves in zip(axes, numbers.panels().values(), strict=True):
        draw_lines(ax, curves, shades, scale, marker="o", markersize=2.2)
    count_layers(axes[0], ylabel=r"kernel $K^{(l)}$", yscale="log")
    count_layers(axes[1], ylabel=r"response $\chi^{(l)}$", ylim=(0, None))
    axes[0].legend(loc="upper left")


def fig4(
    depths: Sequence[int] = (10, 50, 100, 200),
    points: int = 301,
    progress: bool = False,
) -> Numbers:
    """Response of the output against the residual scaling, and its maxima (F25 Fig. 4).

    Parameters
    ----------
    depths : sequence of int, shape (D,)
        Depths L, at least two.
    points : int
        Number R of residual scalings ρ per curve.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Numbers
        ``depths`` (D,); for the variance and the covariance, the first axis: ``branch_scales``
        (2, R), from 0 to 1.5 times the largest ρ*, ``response`` χ^out (2, D, R), ``optima`` ρ* and
        ``maxima``, χ^out there, (2, D). In (c) ``scaling`` is ρ* (2, S) of the
        ``scaling_depths`` (S,), which fill the range of ``depths`` evenly on a logarithmic scale.
        Two inputs have the variances 0.05 and the covariance 0.03; σ_w² = 1.25, σ_b² = 0.05 and
        φ = erf are those of the caption.
    """
    drawn = sorted(set(integers("depths", depths).tolist()))
    if len(drawn) < 2:
        raise ValueError(f"depths must hold at least two different depths, got {drawn}")
    net, K0 = ResidualNetwork(depth=1), np.array([[0.05, 0.03], [0.03, 0.05]])
    between = np.unique(np.geomspace(drawn[0], drawn[-1], 11).round().astype(int))
    layers = sorted({*drawn, *between.tolist()})
    searches = [partial(_optima, net.replace(depth=L), K0) for L in layers]
    best = dict(zip(layers, in_turn(searches, "f25.fig4, optima", progress), strict=True))
    optima = np.stack([best[L] for L in drawn], axis=1)
    rho = np.linspace(0, 1.5 * optima.max(axis=1), points, axis=1)
    parts = [
        partial(_responses, net.replace(depth=L), K0, np.append(rho, best[L][:, None], axis=1))
        for L in drawn
    ]
    response = np.stack(in_turn(parts, "f25.fig4", progress), axis=1)
    maxima, scaling = response[..., -1], np.stack([best[L] for L in between.tolist()], axis=1)
    curves = []
    for entry, panel in enumerate("ab"):
        labels = [f"L = {L}" for L in drawn]
        curves += curves_of(panel, labels, rho[entry], response[entry, :, :-1])
        curves.append(Curve(panel, "maxima", optima[entry], maxima[entry]))
    curves += curves_of("c", ("diagonal", "off-diagonal"), between, scaling)
    values = {"depths": np.array(drawn), "branch_scales": rho, "response": response[..., :-1]}
    values |= {"optima": optima, "maxima": maxima, "scaling_depths": between, "scaling": scaling}
    return Numbers(curves, values=values)


@picture((2.5, 2.5, 2.5), 2.6)
def draw_fig4(axes: Any, numbers: Numbers) -> None:
    """F25 Fig. 4 as a matplotlib Figure: χ^out of (a) variance, (b) covariance; (c) ρ* over L."""
    draw_maxima(axes[0], numbers.panels()["a"], BLUE, r"\rho", r"_{\alpha\alpha}")
    draw_maxima(axes[1], numbers.panels()["b"], GREEN, r"\rho", r"_{\alpha\beta}")
    L, curves = numbers.scaling_depths, numbers.panels()["c"]
    for curve in curves:
        guide = curve.y[-1] * np.sqrt(L[-1] / L)
        (line,) = axes[2].plot(L, guide, "--", color=GRAY, linewidth=1)
    draw_lines(axes[2], curves, (BLUE, GREEN), marker="o", markersize=3, linewidth=1)
    line.set_label(r"$\propto 1/\sqrt{L}$")
    axes[2].set(xscale="log", yscale="log", xlabel="depth $L$")
    axes[2].set_ylabel(r"optimal scaling $\rho^*$")
    axes[2].legend(loc="best")


def draw_maxima(ax: Any, curves: Sequence[Curve], colour: str, scale: str, index: str = "") -> None:
    """Responses of the output of several depths over the scaling; the last curve has the maxima."""
    *lines, maxima = curves
    shades = tints(colour, len(lines))[::-1]
    draw_lines(ax, lines, shades)
    edge: Any = {"markeredgecolor": "black", "markeredgewidth": 0.6, "markersize": 4}
    for x, y, shade in zip(maxima.x, maxima.y, shades, strict=True):
        ax.plot(x, y, "o", color=shade, zorder=3, **edge)
    ax.set(xlabel=rf"residual scaling ${scale}$", xlim=(0, None), ylim=(0, 1.35 * maxima.y.max()))
    ax.set_ylabel(rf"output response $\chi^{{\mathrm{{out}}}}{index}$")
    ax.legend(loc="upper center", ncols=2)


def _optima(network: ResidualNetwork, K0: np.ndarray) -> np.ndarray:
    """ρ* of the first variance and of the covariance with the second input, shape (2,)."""
    return np.asarray(optimal_scaling(network.replace(branch_scale=1.0), K0))[0]


def _responses(network: ResidualNetwork, K0: np.ndarray, branch_scales: np.ndarray) -> np.ndarray:
    """χ^out of the variance and of the covariance at their ρ (2, R), shape (2, R)."""
    rows = [response_over(network, scales, K0)[:, 0] for scales in branch_scales]
    return np.stack([row[:, entry] for entry, row in enumerate(rows)])


def response_over(network: ResidualNetwork, branch_scales: np.ndarray, K0: Any) -> np.ndarray:
    """χ^out for every ρ (R,), shape (R, ...)."""
    return solve(network.replace(branch_scale=branch_scales[:, None]), K0).output_response
