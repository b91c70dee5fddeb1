"""Figures of networks of blocks, as transformers have them: what ρ, norm, depth and width do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
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
_NORMS = {"RMSNorm": "rms", "no norm": None}
_LINES = dict(zip(_NORMS, ("-", "--"), strict=True))
_K0 = np.array([[1.0, 0.5], [0.5, 1.0]])
_CHOSEN = (
    r"GELU, $M = 4N$, norms before the branches, $\epsilon = 0$, "
    r"$K^{(0)}_{11} = K^{(0)}_{22} = 1$, $K^{(0)}_{12} = 0.5$"
)
_QUANTITIES = {
    "kernels": "kernel $K^{(l)}$",
    "correlations": "correlation of two inputs",
    "shares": "share of block $l$, $C^{(l)}/K^{(l)}$",
    "tangents": r"block $l$ in $\Theta^{(L+1)}/K^{(L+1)}$",
}
# Kernels without a norm leave the range that is drawn at ρ = 1.
_MOST = 600.0
# N with the opacity of its band; networks, stable by a norm or by ρ; what the panels have of them.
_WIDTHS = {64: 0.2, 768: 0.5}
_STABLE = (("RMSNorm", "1"), ("no norm", r"1/\sqrt{L}"))
_PANELS = (
    ("kernels", "kernel $R^{(l)}$", (0, 1)),
    ("residual_kernels", "what block $l$ adds, $C^{(l)}$", (0, 1)),
    ("correlations", "correlation of two inputs", (0,)),
    ("correlations", "correlation of two inputs", (1,)),
)


def _by_layers(depth: int, norm: str) -> list[np.ndarray]:
    """The four quantities for all ρ, (4, L+1), of blocks (4, L)."""
    rho = np.array([[scale(depth)] * depth for scale in SCALES.values()])
    net = BlockNetwork(depth=depth, branch_scale=rho, normalization=_NORMS[norm])
    s = solve(net, _K0)
    K = s.kernels[..., 0, 0]
    # Θ of the read-in alone says by how much every layer passes on what is below it.
    alone = dict.fromkeys(net.trained, 0.0) | {"readin_weight": 1.0}
    passed = tangent_kernels(net, _K0, alone).tangent_kernels[..., 0, 0]
    added = np.diff(s.tangent_kernels[..., 0, 0] / passed) * passed[:, -1:]
    shares = (s.residual_kernels[..., 0, 0] / K)[:, 1:-1]
    return [K[:, :-1], 1 - s.decorrelation[:, :-1, 0, 1], shares, added[:, :-1] / K[:, -1:]]


def layers(depth: int = 48, progress: bool = False) -> Numbers:
    """Kernels, angles, shares and tangent kernels over the layers of networks of blocks.

    Returns
    -------
    Numbers
        With RMSNorm and without a norm, for ρ = 1, 1/√L, 1/√(2L) and 1/L: ``kernels`` K^(l) and
        ``correlations`` of the stream (2, 4, L+1), ``shares`` C^(l)/K^(l) of the blocks and
        ``tangents``, what their parameters add to the tangent kernel of the output, over the kernel
        of the output, which without a norm has the size of the stream, (2, 4, L).

    Examples
    --------
    >>> layers(depth=3).shares[0, 0].round(12)
    array([0.5       , 0.33333333, 0.25      ])
    """
    L = validation.integer("depth", depth, 1)
    results = in_turn([partial(_by_layers, L, norm) for norm in _NORMS], "blocks.layers", progress)
    values = dict(zip(_QUANTITIES, map(np.array, zip(*results, strict=True)), strict=True))
    return Numbers(_curves(values), rf"$L = {L}$, {_CHOSEN}", values)


def depths(depths: Sequence[int] = (12, 24, 48, 100, 200, 400), progress: bool = False) -> Numbers:
    """Kernels, angles, shares and tangent kernels of networks of blocks against their depth.

    Returns
    -------
    Numbers
        ``depths`` (D,), and as `layers` has them ``kernels``, ``correlations`` and ``shares`` at
        l = L, and ``tangents`` of the first block over that of the last, (2, 4, D).

    Examples
    --------
    >>> depths(depths=(2, 4)).kernels[0, 0].round(12)
    array([3., 5.])
    """
    L = integers("depths", depths)
    parts = [partial(_by_layers, depth, norm) for norm in _NORMS for depth in L.tolist()]
    results = in_turn(parts, "blocks.depths", progress)
    ends = [[K[:, -1], c[:, -1], C[:, -1], part[:, 0] / part[:, -1]] for K, c, C, part in results]
    each = np.reshape(ends, (len(_NORMS), len(L), len(_QUANTITIES), len(SCALES)))
    values = dict(zip(_QUANTITIES, each.transpose(2, 0, 3, 1), strict=True))
    chosen = rf"{_CHOSEN}; (a) without $\rho = 1$, no norm: over {_MOST:g}"
    return Numbers(_curves(values, L), chosen, {"depths": L, **values})


def _curves(values: dict[str, np.ndarray], depths: np.ndarray | None = None) -> list[Curve]:
    """Curves over the depths or the layers, of which the last is L."""
    curves = []
    for panel, rows in zip("abcd", values.values(), strict=True):
        x = np.arange(rows.shape[-1]) + (panel in "cd") if depths is None else depths
        for (i, norm), (j, scale) in product(enumerate(_NORMS), enumerate(SCALES)):
            curves.append(Curve(panel, f"{norm}, rho = {scale}", x, rows[i, j]))
    return curves


@picture((2.5,) * 4, 2.9)
def draw_layers(axes: Any, numbers: Numbers) -> None:
    """(a) Kernels, (b) correlations, (c) shares, (d) tangent kernels; dashed without a norm."""
    depths = numbers.values.get("depths")
    for ax, curves, name in zip(axes, numbers.panels().values(), _QUANTITIES.values(), strict=True):
        for curve in curves:
            norm, scale = curve.label.split(", rho = ")
            look = {"color": _COLOURS[scale], "marker": "" if depths is None else "."}
            ax.plot(curve.x, curve.y, _LINES[norm], **look)
        ax.set(ylabel=name, yscale="linear" if ax is axes[1] else "log")
        count_layers(ax)
        if depths is not None:
            name = name.replace("(l)", "(L)").replace("$l$", "$L$")
            ax.set(xlabel="depth $L$", xscale="log", ylabel=name)
            ax.set_xticks(depths, [f"{depth}" for depth in depths])
            ax.set_xticks([], minor=True)
            axes[3].set_ylabel(r"first over last block in $\Theta^{(L+1)}$")
    axes[0].set_ylim(0.9, min(_MOST, axes[0].get_ylim()[1]))
    for scale, colour in _COLOURS.items():
        axes[0].plot([], [], color=colour, label=rf"$\rho = {scale}$")
    for norm, line in _LINES.items():
        axes[0].plot([], [], f"k{line}", label=norm)
    axes[0].figure.legend(loc="outside upper center", ncols=len(SCALES) + len(_NORMS))


draw_depths = draw_layers


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
    numbers fluctuates by √(2/N) of itself; with a norm the kernel does hardly more at every depth.

    Examples
    --------
    >>> width(depth=2, samples=20).kernels[0, 1, 0].round(6)
    array([1., 2., 3.])
    """
    L = validation.integer("depth", depth, 1)
    networks = [
        BlockNetwork(depth=L, branch_scale=SCALES[scale](L), normalization=_NORMS[norm])
        for norm, scale in _STABLE
    ]
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
    for panel, (name, _, members) in zip("abcd", _PANELS, strict=True):
        for i in members:
            network = "{}, rho = {}".format(*_STABLE[i])
            bands = [(f"N = {N}", values[name][i, j]) for j, N in enumerate(_WIDTHS)]
            for label, band in [*bands, ("simulation", values[f"simulated_{name}"][i])]:
                x = np.arange(L + 1)[-band.shape[-1] :]
                curves.append(Curve(panel, f"{network}, {label}", x, *band))
    chosen = f"{_CHOSEN}; bars: {samples} networks of width {min(_WIDTHS)}"
    return Numbers(curves, rf"$L = {L}$, {chosen}", values)


def _by_theory(network: BlockNetwork) -> dict[str, np.ndarray]:
    s, own = solve(network, _K0), np.arange(network.depth + 1)
    c = 1 - s.decorrelation[:-1, 0, 1]
    # The derivatives of R_12/√(R_11 R_22).
    slopes = c[:, None] / s.kernels[:-1, [0, 0, 1], [0, 1, 1]] * [-0.5, 1.0, -0.5]
    of_c = np.einsum("li,lij,lj->l", slopes, s.stream_covariance[own, own], slopes)
    K, C = s.kernels + s.kernel_shift, s.residual_kernels + s.mean_shift
    means_and_squares = {
        "kernels": (K[:-1, 0, 0], s.kernel_variance[:, 0, 0]),
        "residual_kernels": (C[1:-1, 0, 0], np.diagonal(s.G11[..., 0, 0])[1:-1]),
        "correlations": (c, of_c),
    }
    return {name: np.array([m, np.sqrt(v)]) for name, (m, v) in means_and_squares.items()}


def _by_simulation(network: BlockNetwork, options: dict[str, Any]) -> dict[str, np.ndarray]:
    e = simulate(network, _K0, method="weights", keep=True, **options)
    C = np.asarray(e.residual_kernels)
    c = C[:, -1:, 0, 1] / np.sqrt(C[:, -1:, 0, 0] * C[:, -1:, 1, 1])
    samples = {"residual_kernels": C[:, 1:-1, 0, 0], "correlations": c}
    kernels = np.array([e.kernel_mean[:-1, 0, 0], np.sqrt(e.kernel_variance[:, 0, 0])])
    return {"kernels": kernels} | {
        name: np.array([draws.mean(0), draws.std(0, ddof=1)]) for name, draws in samples.items()
    }


@picture((2.5,) * 4, 2.9)
def draw_width(axes: Any, numbers: Numbers) -> None:
    """(a) Kernels, (b) residual kernels, (c), (d) correlations of single networks."""
    for ax, curves, (name, label, _) in zip(axes, numbers.panels().values(), _PANELS, strict=True):
        for curve in curves:
            norm, scale, kind = curve.label.split(", ")
            if kind == "simulation":
                look: Any = {"fmt": "o", "color": "black", "markersize": 2, "linewidth": 0.8}
                ax.errorbar(curve.x, curve.y, curve.error, **look)
                continue
            colour = _COLOURS[scale.removeprefix("rho = ")]
            look = {"color": colour, "alpha": _WIDTHS[int(kind.split()[-1])], "linewidth": 0}
            sides = (curve.y + sign * np.asarray(curve.error) for sign in (-1, 1))
            band = f"{norm}, {typeset(scale)}, {typeset(kind)}"
            ax.fill_between(curve.x, *sides, label=band, **look)
            ax.plot(curve.x, curve.y, color=colour, linewidth=0.8)
        ax.set(ylabel=label, yscale="linear" if name == "correlations" else "log")
        count_layers(ax)
    axes[3].sharey(axes[2])
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
