"""Attention by its forward pass: projections of what is read, heads, their mask and logits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, permutations, product
from typing import Any

import numpy as np

from fieldtheory.audits.branches import (
    Branch,
    Matrix,
    branch_of,
    matrices_of,
    norms_of,
    scales,
    scales_behind,
)
from fieldtheory.transformers.attention import Attention, rotations

# θ of rotary positions in use, None without, and the width of heads that is tried first.
_ROTARY, _WIDTH = (None, 1e4, 5e5, 1e6, 1e5, 1e3), 64
# Newton's steps for a factor of the logits that is none of the usual ones, and its digits.
_STEPS, _DIGITS = 6, 3
# Remainder relative to what logits change, and to the whole by single precision.
_REST, _ROUNDING = 0.01, 3e-6
# Units of the stream by which heads are told, and their least width.
_OUTPUTS, _LEAST = 16, 4


def attention_of(
    names: dict[Any, str], block: Any, flows: dict[Any, Any], other: Branch | None, known: Any
) -> Branch | None:
    """The first attention of a block, of rows that are a sequence, with the norm as ``other``."""
    streams = {id(y): y for each in flows.values() for y in each}.values()

    def fits(x: np.ndarray, f: np.ndarray) -> Iterator[tuple[Any, ...]]:
        for stream, norm, eps in norms_of(x, flows):
            for out in (y for y in streams if y.shape == f.shape):
                fit, *form = scales(stream, f, out), norm, eps
                if other and other.position == "post":
                    fit, *form = scales_behind(stream, f, out, flows)
                # Without a skip it is no branch, and what a norm gives is a norm of itself.
                if fit and fit[2] and (norm is None or not np.allclose(stream, x)):
                    yield fit, *form, stream

    for x, choices, last, f in _candidates(names, block, flows):
        fit, norm, eps, stream = next(fits(x, f), (None,) * 4)
        for projections in choices if fit else ():
            found = _heads(x, projections, last, f, eps, known)
            if found:
                matrices, form = [*found[1], last], (norm, other.position if other else "pre", eps)
                return branch_of(matrices, "attention", fit, *form, stream, f, False, found[0])
    return None


def _candidates(
    names: dict[Any, str], block: Any, flows: dict[Any, Any]
) -> Iterator[tuple[np.ndarray, Iterable[list[Matrix]], Matrix, np.ndarray]]:
    """What is read, one or three matrices that read it, one that writes, and what is written."""

    def numbers(*tensors: Any) -> Iterator[Any]:
        yield from (0.0 if t is None else t.detach().cpu().double().numpy() for t in tensors)

    linear, width = matrices_of(names, flows), flows[block][1].shape[1]
    for m, (x, f) in flows.items():
        if getattr(m, "in_proj_weight", None) is not None and f.shape == x.shape:
            W, b, W_out, b_out = numbers(
                m.in_proj_weight, m.in_proj_bias, m.out_proj.weight, m.out_proj.bias
            )
            fused, last = (f"{names[m]}.{part}_weight" for part in ("in_proj", "out_proj."))
            yield x, [[(W, b, fused)]], (W_out, b_out, last.replace("._", ".")), f
    for m, k in product(linear, linear):
        x = flows[k][0]
        like = [n for n in linear if n is not m and np.array_equal(flows[n][0], x)]
        if len(linear[m][0]) == x.shape[1] == width and k is (like or [None])[0]:
            chosen = chain(((n,) for n in like), permutations(like, 3))
            yield x, ([linear[n] for n in each] for each in chosen), linear[m], flows[m][1]


def _heads(
    x: np.ndarray, projections: list[Matrix], last: Matrix, f: np.ndarray, eps: float, known: Any
) -> tuple[dict[str, Any], list[Matrix]] | None:
    """Parameters of `TransformerNetwork` with which f is given, and the matrices of q, k and v."""
    D, rows = last[0].shape[1], [len(W) for W, _, _ in projections]
    E = (rows[0] - D) // 2 if len(rows) == 1 else rows[1]
    has_bias = any(np.any(b) for _, b, _ in (*projections, last))
    if has_bias or E < 1 or D % E or rows not in ([D + 2 * E], [D, E, E]):
        return None
    widths = sorted((d for d in range(_LEAST, E + 1) if E % d == 0), key=lambda d: abs(d - _WIDTH))
    grouped, f = D // E, f[:, :_OUTPUTS]
    forms = [*product(widths, (False, True), (False, True), _ROTARY)]
    for d, by_groups, normed, rotary in [known["form"], *forms] if known else forms:
        if E % d or (rotary and d % 2) or (by_groups and len(rows) > 1):
            continue
        matrices = _split(projections, d, grouped, by_groups)
        q, k, v = ((x @ W.T).reshape(len(x), -1, d).swapaxes(0, 1) for W, _, _ in matrices)
        k, v = (np.repeat(y, grouped, axis=0) for y in (k, v))
        # What a token gives by itself, as a first one that sees no other does.
        each = v @ last[0][:_OUTPUTS].T.reshape(D // d, d, -1)
        alone = np.linalg.norm(each[:, 0].sum(0) - f[0]) < _ROUNDING**0.5 * np.linalg.norm(f[0])
        causal = bool(alone) and len(x) > 1
        mask = np.tri(len(x), dtype=bool) | (not causal)
        turns = rotations(np.arange(len(x)), rotary, d) if rotary else None
        attention = Attention(mask, d, grouped, turns, eps if normed else None, 0, 0)
        logit = _logit(attention, attention.logits(1.0, [q], [k])[0], each, f)
        if logit is not None:
            form = {"heads": D // d, "head_width": d, "grouped_heads": grouped, "causal": causal}
            form |= {"logit_scale": logit * d**0.5, "rotary": rotary, "query_key_norm": normed}
            return form | {"form": (d, by_groups, normed, rotary)}, matrices
    return None


def _split(projections: list[Matrix], d: int, grouped: int, by_groups: bool) -> list[Matrix]:
    """Those of q, k and v: three, or of one that has them in a row or group by group."""
    if len(projections) > 1:
        return projections
    ((W, _, name),) = projections
    groups = len(W) // ((grouped + 2) * d)
    order = np.arange(len(W)).reshape(-1, d)
    each = np.split(order, [-2 * groups, -groups])
    if by_groups:
        each = np.split(order.reshape(groups, grouped + 2, d), [grouped, grouped + 1], axis=1)
    return [(W[rows.ravel()], 0.0, name) for rows in each]


def _logit(attention: Attention, z: np.ndarray, each: np.ndarray, aim: np.ndarray) -> Any:
    """The factor of z with which the softmax gives the aim; None if there is none."""
    d = attention.head_width
    usual = d**-0.5, 1.0, 1.0 / d

    def given(s: float) -> tuple[np.ndarray, np.ndarray]:
        A = attention.softmax(s * z)
        return (A @ each).sum(0), (A * (z - (A * z).sum(-1, keepdims=True)) @ each).sum(0)

    plain = np.linalg.norm(given(0.0)[0] - aim)
    for steps, s in product((0, _STEPS), usual):
        for _ in range(steps):
            f, slope = given(s)
            s += float((slope * (aim - f)).sum() / max((slope**2).sum(), np.finfo(float).tiny))
        rest = np.linalg.norm(given(s)[0] - aim)
        if rest < _REST * plain + _ROUNDING * np.linalg.norm(aim):
            return float(f"{s:.{_DIGITS}g}") if steps else s
    return None
