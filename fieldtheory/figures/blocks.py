"""Figures of networks of blocks, as transformers have them: what ρ, norm, depth and width do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import Numbers, count_layers, in_turn, integers, picture, typeset
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.tangent.tangent_result import tangent_kernels
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, ORANGE

SCALES: dict[str, Callable[[int], float]] = {
    "1": lambda L: 1.0,
    r"1/\sqrt{L}": lambda L: L**-0.5,
    r"1/\sqrt{2L}": lambda L: (2 * L) ** -0.5,
    "1/L": lambda L: 1 / L,
}
_COLOURS = dict(zip(SCALES, (ORANGE, BLUE, GREEN, GRAY), strict=True))
_LINES = {"RMSNorm": "-", "no norm": "--"}
_K0 = np.array([[1.0, 0.5], [0.5, 1.0]])
_CHOSEN = (
    r"GELU, $M = 4N$, norms before the branches, $\epsilon = 0$, "
    r"$K^{(0)}_{11} = K^{(0)}_{22} = 1$, $K^{(0)}_{12} = 0.5$"
)
_NAMES = {
    "kernels": "kernel $K^{(l)}$",
    "correlations": "correlation of two inputs",
    "shares": "share of block $l$, $C^{(l)}/K^{(l)}$",
    "tangents": r"block $l$ in $\Theta^{(L+1)}/K^{(L+1)}$",
    "residual_kernels": "what block $l$ adds, $C^{(l)}$",
}
_FOUR = "kernels", "correlations", "shares", "tangents"
# Kernels without a norm leave the range that is drawn at ρ = 1.
_MOST = 600.0
# N with the opacity of its band, and the networks: stable by a norm, stable by ρ.
_WIDTHS = {64: 0.2, 768: 0.5}
_STABLE = (("RMSNorm", "1"), ("no norm", r"1/\sqrt{L}"))
_PANELS = {
    "a": ("kernels", (0, 1)),
    "b": ("residual_kernels", (0, 1)),
    "c": ("correlations", (0,)),
    "d": ("correlations", (1,)),
}


def _block(depth: int, norm: str, scale: Any) -> BlockNetwork:
    kind = "rms" if norm == "RMSNorm" else None
    return BlockNetwork(depth=depth, branch_scale=scale, normalization=kind)


def _by_layers(depth: int, norm: str) -> dict[str, np.ndarray]:
    """Values of the layers for all ρ, (4, L+1), of blocks (4, L)."""
    rho = np.array([scale(depth) for scale in SCALES.values()])
    net = _block(depth, norm, rho[:, None].repeat(depth, axis=1))
    s = solve(net, _K0)
    K, stream = s.kernels[..., 0, 0], slice(0, depth + 1)
    # Θ of the read-in alone says by how much every layer passes on what is below it.
    alone = dict.fromkeys(net.trained, 0.0) | {"readin_weight": 1.0}
    passed = tangent_kernels(net, _K0, alone).tangent_kernels[..., 0, 0]
    added = np.diff(s.tangent_kernels[..., 0, 0] / passed) * passed[:, -1:]
    return {
        "kernels": K[:, stream],
        "correlations": 1 - s.decorrelation[:, stream, 0, 1],
        "shares": (s.residual_kernels[..., 0, 0] / K)[:, 1:-1],
        "tangents": added[:, :-1] / K[:, -1:],
    }


def layers(depth: int = 48, progress: bool = False) -> Numbers:
    """Kernels, angles, shares and tangent kernels over the layers of networks of blocks.

    Returns
    -------
    Numbers
        ``kernels`` K^(l) and ``correlations`` of the stream (2, 4, L+1), ``shares`` C^(l)/K^(l) of
        the blocks and ``tangents``, what their parameters add to the tangent kernel of the output,
        over the kernel of the output, (2, 4, L): with RMSNorm and without a norm, for ρ = 1, 1/√L,
        1/√(2L) and 1/L.

    Notes
    -----
    The blocks are those of `BlockNetwork` by default: GELU, four times as many hidden units,
    variances with which a branch adds ρ² where it reads mean square one. Without a norm the kernel
    of the output has the size of the stream; hence the ratio in panel (d).

    Examples
    --------
    >>> layers(depth=3).shares[0, 0].round(12)
    array([0.5       , 0.33333333, 0.25      ])
    """
    L = validation.integer("depth", depth, 1)
    found = in_turn([partial(_by_layers, L, norm) for norm in _LINES], "blocks.layers", progress)
    values = {name: np.array([each[name] for each in found]) for name in _FOUR}
    return Numbers(_curves(values), rf"$L = {L}$, {_CHOSEN}", values)


def depths(depths: Sequence[int] = (12, 24, 48, 100, 200, 400), progress: bool = False) -> Numbers:
    """Kernels, angles, shares and tangent kernels of networks of blocks against their depth.

    Returns
    -------
    Numbers
        ``depths`` (D,), and as `layers` has them ``kernels``, ``correlations`` and ``shares`` at
        l = L, and ``tangents`` of the first block over that of the last, (2, 4, D).

    Notes
    -----
    Panel (d) says how unequally the parameters of the blocks move the output.

    Examples
    --------
    >>> depths(depths=(2, 4)).kernels[0, 0].round(12)
    array([3., 5.])
    """
    L = integers("depths", depths)
    parts = [partial(_by_layers, depth, norm) for norm in _LINES for depth in L.tolist()]
    found = in_turn(parts, "blocks.depths", progress)
    values = {}
    for name in _FOUR:
        rows = [each[name] for each in found]
        ends = [row[:, 0] / row[:, -1] if name == "tangents" else row[:, -1] for row in rows]
        values[name] = np.reshape(ends, (len(_LINES), len(L), len(SCALES))).swapaxes(1, 2)
    chosen = rf"{_CHOSEN}; (a) without $\rho = 1$, no norm: over {_MOST:g}"
    return Numbers(_curves(values, L), chosen, {"depths": L, **values})


def _curves(values: dict[str, np.ndarray], depths: np.ndarray | None = None) -> list[Curve]:
    """Curves over the depths or the layers, of which the last is L."""
    curves = []
    for panel, rows in zip("abcd", values.values(), strict=True):
        x = np.arange(rows.shape[-1]) + (panel in "cd") if depths is None else depths
        for norm, of_norm in zip(_LINES, rows, strict=True):
            curves += [
                Curve(panel, f"{norm}, rho = {scale}", x, row)
                for scale, row in zip(SCALES, of_norm, strict=True)
            ]
    return curves


def _four_panels(axes: Any, numbers: Numbers, marker: str = "") -> None:
    for ax, curves, name in zip(axes, numbers.panels().values(), _FOUR, strict=True):
        for curve in curves:
            norm, scale = curve.label.split(", rho = ")
            ax.plot(curve.x, curve.y, _LINES[norm], color=_COLOURS[scale], marker=marker)
        ax.set(ylabel=_NAMES[name], yscale="linear" if ax is axes[1] else "log")
        count_layers(ax)
    axes[0].set_ylim(0.9, min(_MOST, axes[0].get_ylim()[1]))
    for scale, colour in _COLOURS.items():
        axes[0].plot([], [], color=colour, label=rf"$\rho = {scale}$")
    for norm, line in _LINES.items():
        axes[0].plot([], [], f"k{line}", label=norm)
    axes[0].figure.legend(loc="outside upper center", ncols=len(SCALES) + len(_LINES))


@picture((2.5,) * 4, 2.9)
def draw_layers(axes: Any, numbers: Numbers) -> None:
    """(a) Kernels, (b) correlations, (c) shares, (d) tangent kernels; dashed without a norm."""
    _four_panels(axes, numbers)


@picture((2.5,) * 4, 2.9)
def draw_depths(axes: Any, numbers: Numbers) -> None:
    """(a) Kernels, (b) correlations, (c) shares, (d) tangent kernels; dashed without a norm."""
    _four_panels(axes, numbers, ".")
    for ax in axes:
        name = ax.get_ylabel().replace("(l)", "(L)").replace("$l$", "$L$")
        ax.set(xlabel="depth $L$", xscale="log", ylabel=name)
        ax.set_xticks(numbers.depths, [f"{depth}" for depth in numbers.depths])
        ax.set_xticks([], minor=True)
    axes[3].set_ylabel(r"first over last block in $\Theta^{(L+1)}$")


def width(
    depth: int = 12,
    samples: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Numbers:
    """Kernels and angles of single networks of blocks with 64 and 768 units in the stream.

    Parameters
    ----------
    depth : int
        L.
    samples : int
        Simulated networks of each kind with N = 64, at least 20.
    seed, jobs, progress
        As for `simulate`.

    Returns
    -------
    Numbers
        For RMSNorm with ρ = 1 and no norm with ρ = 1/√L means and standard deviations over networks
        of ``kernels`` R^(l), ``residual_kernels`` C^(l) of blocks and ``correlations`` of the
        stream, to order 1/N (correlations: mean for N → ∞) with N = 64 and 768, (2, 2, 2, layers),
        and ``simulated_kernels`` and so on with N = 64, (2, 2, layers), correlations of the last.

    Notes
    -----
    Bands and bars are one standard deviation over draws of all weights. The mean square of N
    numbers fluctuates by √(2/N) of itself; with a norm the kernel does so at every depth.

    Examples
    --------
    >>> width(depth=2, samples=20).kernels[0, 1, 0].round(6)
    array([1., 2., 3.])
    """
    L = validation.integer("depth", depth, 1)
    networks = [_block(L, norm, SCALES[scale](L)) for norm, scale in _STABLE]
    parts = [partial(_by_theory, net.replace(width=N)) for net in networks for N in _WIDTHS]
    theory = in_turn(parts, "blocks.width", progress)
    options: Any = {"samples": samples, "seed": seed, "jobs": jobs, "progress": progress}
    simulated = [_by_simulation(net.replace(width=min(_WIDTHS)), options) for net in networks]
    values: dict[str, Any] = {}
    for name in theory[0]:
        rows = np.array([each[name] for each in theory])
        values[name] = rows.reshape(len(networks), len(_WIDTHS), *rows.shape[1:])
        values[f"simulated_{name}"] = np.array([each[name] for each in simulated])
    curves = []
    for panel, (name, members) in _PANELS.items():
        for i in members:
            network = "{}, rho = {}".format(*_STABLE[i])
            bands = [(f"N = {N}", values[name][i, j]) for j, N in enumerate(_WIDTHS)]
            for label, band in [*bands, ("simulation", values[f"simulated_{name}"][i])]:
                x = np.arange(L + 1)[-band.shape[-1] :]
                curves.append(Curve(panel, f"{network}, {label}", x, *band))
    chosen = f"{_CHOSEN}; bars: {samples} networks of width {min(_WIDTHS)}"
    return Numbers(curves, rf"$L = {L}$, {chosen}", values)


def _by_theory(network: BlockNetwork) -> dict[str, np.ndarray]:
    s, stream, pair = solve(network, _K0), slice(0, -1), (..., [0, 0, 1], [0, 1, 1])
    K, c = s.kernels[stream][pair], 1 - s.decorrelation[stream, 0, 1]
    # The derivatives of R_12/√(R_11 R_22).
    slopes = c[:, None] / K * [-0.5, 1.0, -0.5]
    own = np.arange(len(c))
    of_c = np.einsum("li,lij,lj->l", slopes, s.stream_covariance[own, own], slopes)
    C = (s.residual_kernels + s.mean_shift)[1:-1, 0, 0]
    means_and_squares = {
        "kernels": ((s.kernels + s.kernel_shift)[stream, 0, 0], s.kernel_variance[:, 0, 0]),
        "residual_kernels": (C, np.diagonal(s.G11[..., 0, 0])[1:-1]),
        "correlations": (c, of_c),
    }
    return {name: np.array([m, np.sqrt(v)]) for name, (m, v) in means_and_squares.items()}


def _by_simulation(network: BlockNetwork, options: dict[str, Any]) -> dict[str, np.ndarray]:
    e = simulate(network, _K0, method="weights", keep=True, **options)
    C = np.asarray(e.residual_kernels)
    of_outputs = C[:, -1:, 0, 1] / np.sqrt(C[:, -1:, 0, 0] * C[:, -1:, 1, 1])
    of_blocks = C[:, 1:-1, 0, 0]
    return {
        "kernels": np.array([e.kernel_mean[:-1, 0, 0], np.sqrt(e.kernel_variance[:, 0, 0])]),
        "residual_kernels": np.array([of_blocks.mean(0), of_blocks.std(0, ddof=1)]),
        "correlations": np.array([of_outputs.mean(0), of_outputs.std(0, ddof=1)]),
    }


@picture((2.5,) * 4, 2.9)
def draw_width(axes: Any, numbers: Numbers) -> None:
    """(a) Kernels, (b) residual kernels, (c), (d) correlations of single networks."""
    for ax, (panel, (name, _)) in zip(axes, _PANELS.items(), strict=True):
        for curve in numbers.panels()[panel]:
            norm, scale, label = curve.label.split(", ")
            colour = _COLOURS[scale.removeprefix("rho = ")]
            if label == "simulation":
                look: Any = {"fmt": "o", "color": "black", "markersize": 2, "linewidth": 0.8}
                ax.errorbar(curve.x, curve.y, curve.error, **look)
                continue
            look = {"color": colour, "alpha": _WIDTHS[int(label.split()[-1])], "linewidth": 0}
            sides = curve.y - np.asarray(curve.error), curve.y + np.asarray(curve.error)
            ax.fill_between(
                curve.x, *sides, label=f"{norm}, {typeset(scale)}, {typeset(label)}", **look
            )
            ax.plot(curve.x, curve.y, color=colour, linewidth=0.8)
        ax.set(ylabel=_NAMES[name], yscale="linear" if name == "correlations" else "log")
        count_layers(ax)
    axes[3].sharey(axes[2])
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
