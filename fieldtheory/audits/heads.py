"""Attention by its forward pass: what its projections, heads, mask and logits are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

# A projection: its matrix, its bias and the name of its weight.
Matrix = tuple[np.ndarray, Any, str]
# θ of rotary positions in use, None without.
_ROTARY = None, 1e4, 5e5, 1e6, 1e5, 1e3
# Steps of Newton's method that fit the factor of the logits, and to which part of a usual one.
_STEPS, _NEAR = 6, 0.01
# Remainder relative to what logits change, and to the whole by single precision.
_REST, _ROUNDING = 0.01, 3e-6
# Widths of heads that are tried.
_LEAST, _MOST = 2, 512


class Heads(NamedTuple):
    """What attends: H heads of width d, ``grouped`` of which share keys and values, and how.

    Logits are ``logit_scale``/√d times q·k.
    """

    heads: int
    head_width: int
    grouped_heads: int
    causal: bool
    logit_scale: float
    rotary: float | None
    query_key_norm: bool
    layout: bool

    @property
    def text(self) -> str:
        """In words."""
        groups = f" in groups of {self.grouped_heads}" * (self.grouped_heads > 1)
        more = ["causal"] * self.causal + ["rotary"] * (self.rotary is not None)
        return ", ".join([f"{self.heads} heads{groups}", *more, *["q-k norm"] * self.query_key_norm])


def attentions(
    block: Any, flows: dict[Any, Any], linear: dict[Any, Matrix], names: dict[Any, str]
) -> Iterator[tuple[np.ndarray, list[Matrix], Matrix, np.ndarray]]:
    """What may be one: its input, projections, one or three, the last matrix and what that gives."""

    def numbers(tensor: Any) -> Any:
        return 0.0 if tensor is None else tensor.detach().cpu().double().numpy()

    width = flows[block][1].shape[1]
    for m, (x, f) in flows.items():
        if getattr(m, "in_proj_weight", None) is not None and f.shape == x.shape:
            out, name = m.out_proj, names[m]
            fused = numbers(m.in_proj_weight), numbers(m.in_proj_bias), f"{name}.in_proj_weight"
            last = numbers(out.weight), numbers(out.bias), f"{name}.out_proj.weight"
            yield x, [fused], last, f
    for m, last in linear.items():
        if len(last[0]) != width:
            continue
        for first in linear:
            x = flows[first][0]
            like = [k for k in linear if k is not m and np.array_equal(flows[k][0], x)]
            if x.shape[1] != width or not like or first is not like[0]:
                continue
            for chosen in (*((k,) for k in like), *permutations(like, 3)):
                yield x, [linear[k] for k in chosen], last, flows[m][1]


def heads_of(
    x: np.ndarray, projections: list[Matrix], last: Matrix, f: np.ndarray, epsilon: float, known: Any
) -> tuple[Heads, list[Matrix]] | None:
    """The heads with which projections of x give f, and the matrices of q, k and v."""
    D, rows = last[0].shape[1], [len(W) for W, _, _ in projections]
    E = (rows[0] - D) // 2 if len(rows) == 1 else rows[1]
    if E < 1 or D % E or rows not in ([D + 2 * E], [D, E, E]):
        return None
    widths = [d for d in range(_LEAST, _MOST + 1) if E % d == 0]
    tries = sorted(widths, key=lambda d: abs(np.log2(d / 64)))
    forms = list(product(tries, (False, True)[: 1 + (len(rows) == 1)], (False, True), _ROTARY))
    if known:
        own = known.head_width, known.layout, known.query_key_norm, known.rotary
        forms = [own, *forms]
    for d, layout, normed, rotary in forms:
        if d not in widths or (rotary and d % 2):
            continue
        matrices = _split(projections, d, D // E, layout)
        q, k, v = ((x @ W.T + b).reshape(len(x), -1, d).swapaxes(0, 1) for W, b, _ in matrices)
        k, v = (np.repeat(y, D // E, axis=0) for y in (k, v))
        # What a token of its own would give.
        outer = last[0].T.reshape(-1, d, len(last[0]))
        each, aim = v @ outer, f - last[1]
        seen = np.linalg.norm(each[:, 0].sum(0) - aim[0]) < _ROUNDING**0.5 * np.linalg.norm(aim[0])
        if normed:
            q, k = (y / np.sqrt((y**2).mean(-1, keepdims=True) + epsilon) for y in (q, k))
        q, k = (_turned(y, rotary) for y in (q, k))
        logit = _logit(q @ k.swapaxes(1, 2), each, aim, bool(seen) and len(x) > 1, d)
        if logit is not None:
            numbers = len(q), d, D // E, bool(seen) and len(x) > 1, logit * d**0.5
            return Heads(*numbers, rotary, normed, layout), matrices
    return None


def _split(projections: list[Matrix], d: int, grouped: int, layout: bool) -> list[Matrix]:
    """Those of q, k and v: of a fused one in a row, or, in the other layout, group by group."""
    if len(projections) > 1:
        return projections
    ((W, b, name),) = projections
    groups = len(W) // ((grouped + 2) * d)
    order = np.arange(len(W)).reshape(-1, d)
    if layout:
        parts = order.reshape(groups, grouped + 2, d)
        each = parts[:, :-2], parts[:, -2], parts[:, -1]
    else:
        each = order[: -2 * groups], order[-2 * groups : -groups], order[-groups:]
    b = np.broadcast_to(b, len(W))
    return [(W[rows.ravel()], b[rows.ravel()], name) for rows in each]


def _turned(x: np.ndarray, rotary: float | None) -> np.ndarray:
    """q or k by rotary positions, of halves."""
    if rotary is None:
        return x
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * rotary ** (-np.arange(half) / half)
    planes = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([planes.real, planes.imag], axis=-1)


def _logit(z: np.ndarray, each: np.ndarray, aim: np.ndarray, causal: bool, d: int) -> Any:
    """The factor of z with which the softmax gives the aim; None if there is none."""
    mask = np.tri(len(aim), dtype=bool) | (not causal)
    usual = d**-0.5, 1.0, 1.0 / d

    def given(s: float) -> tuple[np.ndarray, np.ndarray]:
        logits = np.where(mask, s * z, -np.inf)
        A = np.exp(logits - logits.max(-1, keepdims=True))
        A /= A.sum(-1, keepdims=True)
        slope = A * (z - (A * z).sum(-1, keepdims=True))
        return (A @ each).sum(0), (slope @ each).sum(0)

    plain = np.linalg.norm(given(0.0)[0] - aim)
    allowed = _REST * plain + _ROUNDING * np.linalg.norm(aim)
    for s in usual:
        for _ in range(_STEPS):
            f, slope = given(s)
            if np.linalg.norm(f - aim) < allowed:
                break
            s += float((slope * (aim - f)).sum() / max((slope**2).sum(), np.finfo(float).tiny))
        else:
            continue
        near = [u for u in usual if abs(s / u - 1) < _NEAR]
        return near[0] if near else float(f"{s:.3g}")
    return None
