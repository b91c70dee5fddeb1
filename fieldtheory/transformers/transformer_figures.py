"""Figures of transformers: how alike their tokens become, over the blocks and over the tokens."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.figures.parts import Numbers, count_layers, curves_of, draw_lines, in_turn, picture
from fieldtheory.numerics.solution import solve
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, ORANGE
from fieldtheory.transformers.transformer_network import TransformerNetwork

_COLOURS = ORANGE, BLUE, GREEN, GRAY, "black"
# Of the curves of the panels behind the first, drawn solid and dashed.
_KINDS = {
    "shares": ("attention", "MLP"),
    "deviations": ("kernel", "correlation"),
    "attention_shares": ("first block", "last block"),
}
_CHOSEN = "12 heads of 64, $N = 768$, LayerNorm in front, GELU, $M = 4N$, tokens of correlation 0"


def _solved(depth: int, tokens: int, networks: dict[str, Any], name: str, progress: bool) -> Any:
    L, T = validation.integer("depth", depth, 1), validation.integer("tokens", tokens, 2)
    each = [TransformerNetwork(depth=L, heads=12, **changes) for changes in networks.values()]
    return in_turn([partial(solve, net, np.eye(T), samples=2048) for net in each], name, progress)


def _numbers(networks: list[str], x: Any, values: dict[str, np.ndarray], chosen: str) -> Numbers:
    """Curves of the first values, by network, and of others by kind in the first and the last."""
    first, *others = values
    curves = curves_of("a", networks, x[: values[first].shape[-1]], values[first])
    for panel, name in zip("bc", others, strict=False):
        rows = np.concatenate(values[name])
        few = networks[:: (len(networks) - 1) // (len(values[name]) - 1)]
        labels = [", ".join(pair) for pair in product(few, _KINDS[name])]
        curves += curves_of(panel, labels, x[-rows.shape[-1] :], rows)
    return Numbers(curves, rf"{chosen}, {_CHOSEN}", values)


def layers(depth: int = 12, tokens: int = 8, progress: bool = False) -> Numbers:
    """What tokens share, what attention and MLP add, how networks differ: block by block.

    Returns
    -------
    Numbers
        ``correlations`` of the first and the last token, (5, L+1), for ρ = 1, without a mask,
        without MLPs, without skip connections and with ρ = 1/√(2L). For the first and the last of
        these ``shares`` of attention and of the MLP in the mean square of the last token behind
        them, (2, 2, L), and ``deviations`` over networks of its kernel, relative, and of the
        correlation, (2, 2, L+1).

    Examples
    --------
    >>> layers(depth=2, tokens=3).correlations.shape
    (5, 3)
    """
    networks: dict[str, Any] = {
        "rho = 1": {},
        "no mask": {"causal": False},
        "no MLP": {"mlp": None},
        "no skip": {"skip_scale": 0.0},
        r"rho = 1/\sqrt{2L}": {"branch_scale": (2 * depth) ** -0.5},
    }
    found = _solved(depth, tokens, networks, "transformers.layers", progress)
    ends = found[0], found[-1]
    relative = [np.sqrt(s.kernel_variance[::2, -1, -1]) / s.kernels[:-1:2, -1, -1] for s in ends]
    angles = [s.correlation_deviation[::2, 0, -1] for s in ends]
    steps = [len(s.network.branches) for s in found]
    values = {
        "correlations": np.array(
            [s.correlation[::n, 0, -1] for s, n in zip(found, steps, strict=True)]
        ),
        "shares": np.array([[s.shares[1::2, -1], s.shares[2::2, -1]] for s in ends]),
        "deviations": np.stack([relative, angles], axis=1),
    }
    return _numbers([*networks], np.arange(depth + 1), values, f"$L = {depth}$, $T = {tokens}$")


def tokens(depth: int = 12, tokens: int = 16, progress: bool = False) -> Numbers:
    """How alike all tokens are with the last, and what attention adds to them.

    Returns
    -------
    Numbers
        For a causal mask, none, and a causal mask with logits four times as large: ``correlations``
        of every token with the last behind all blocks, (3, T−1), and ``attention_shares`` in the
        mean square of every token behind it, in the first and the last block, (3, 2, T).

    Examples
    --------
    >>> tokens(depth=1, tokens=3).correlations.shape
    (3, 2)
    """
    networks = {"causal": {}, "no mask": {"causal": False}, "s = 4": {"logit_scale": 4.0}}
    found = _solved(depth, tokens, networks, "transformers.tokens", progress)
    values = {
        "correlations": np.array([s.correlation[-1, :-1, -1] for s in found]),
        "attention_shares": np.array([s.shares[[1, 2 * depth - 1]] for s in found]),
    }
    return _numbers([*networks], np.arange(1, tokens + 1), values, rf"$L = {depth}$, $\rho = 1$")


def _draw(axes: Any, numbers: Numbers, over: str) -> None:
    for ax, curves, name in zip(axes, numbers.panels().values(), numbers.values, strict=True):
        kinds = _KINDS.get(name, ("",))
        colours = (_COLOURS[::4] if len(curves) == 4 else _COLOURS)[: len(curves) // len(kinds)]
        for n, style in zip(range(len(kinds)), ("-", "--"), strict=False):
            draw_lines(ax, curves[n :: len(kinds)], colours, linestyle=style)
        count_layers(ax, ylabel=name.replace("_", " "), ylim=(0, None))
        ax.set_xlabel(over)
        lines = ax.get_lines()
        if len(kinds) > 1:
            ax.legend(lines[:: len(lines) // 2], kinds, labelcolor="black")
        else:
            ax.figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))


@picture((2.7,) * 3, 2.7)
def draw_layers(axes: Any, numbers: Numbers) -> None:
    """(a) Correlations, (b) shares of both branches, (c) standard deviations over networks."""
    _draw(axes, numbers, "block $l$")


@picture((3.0,) * 2, 2.7)
def draw_tokens(axes: Any, numbers: Numbers) -> None:
    """(a) Correlations with the last token, (b) shares of attention in two blocks."""
    _draw(axes, numbers, "token $a$")
