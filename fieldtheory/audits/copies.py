"""Different tensors with the same random numbers: copied layers, stacked experts, equal seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.audits.places import places

# Entries by which tensors are recognised, and those in which they are looked for at first.
_HEAD, _START = 16, 4096
# Correlation of neighbours, of up to _SIDE rows and columns, beyond which a tensor is a table.
_SMOOTH, _SIDE = 0.7, 64
# Least and largest deviation of a correlation from one by rounding: with 1e-3 chance gives 1e-17.
_ROUNDING = 1e-12, 1e-3
# Parts that are compared with all others at once, and slices beyond which a stack is a table.
_CHUNK, _SLICES = 256, 1024


class Copy(NamedTuple):
    """A tensor, of what it is a copy, and whether both are trained."""

    name: str
    text: str
    is_trained: bool


class _Part(NamedTuple):
    """A tensor or a slice of one, its first entries, those of its transpose; and its rounding."""

    name: str
    number: str
    values: Any
    head: np.ndarray
    transposed: np.ndarray
    rounding: float
    kind: int


def copies_of(model: Any) -> list[Copy]:
    """Tensors whose entries are, up to a factor and a shift, those of another one before them."""
    parts = sorted((p for each in places(model) for p in _parts(*each)), key=lambda part: part.kind)
    if len(parts) < 2:
        return []
    heads = [np.array([part[at] for part in parts]) for at in (3, 4)]
    heads = [each - each.mean(axis=1, keepdims=True) for each in heads]
    straight, transposed = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in heads)
    rounding = np.clip([part.rounding**2 for part in parts], *_ROUNDING)
    found = dict[str, list[Copy]]()
    for start in range(0, len(parts), _CHUNK):
        rows = slice(start, start + _CHUNK)
        allowed = np.maximum.outer(rounding[rows], rounding)
        pairs = [1 - abs(straight[rows] @ other.T) < allowed for other in (straight, transposed)]
        earlier = np.arange(len(parts)) < np.arange(len(parts))[rows, None]
        for row in np.flatnonzero(((pairs[0] | pairs[1]) & earlier).any(axis=1)):
            part = parts[start + row]
            at = int(np.argmax((pairs[0] | pairs[1])[row]))
            text = _compared(part, parts[at], not pairs[0][row, at])
            if text and parts[at].kind < 2:
                copy = Copy(part.name, f"{part.number} {text}".strip(), not part.kind)
                found.setdefault(part.name, []).append(copy)
    return [
        each._replace(text=f"{each.text}, {len(more) + 1} slices" if more else each.text)
        for each, *more in found.values()
    ]


def _parts(place: Any, tensor: Any) -> Iterator[_Part]:
    import torch

    kind = 2 if place.kind == "buffer" else int(not tensor.requires_grad)
    tensor = tensor.detach()
    if not tensor.is_floating_point() or tensor.numel() < _HEAD:
        return
    size = int(np.prod(tensor.shape[-2:]))
    is_stack = place.kind == "matrix" and tensor.ndim > 2 and size >= _HEAD
    is_stack = is_stack and tensor.numel() <= _SLICES * size
    slices = tensor.reshape(-1, *tensor.shape[-2:]) if is_stack else [tensor]
    for at, values in enumerate(slices):
        head = _head(values)
        is_matrix = values.ndim > 1 and min(values.shape[:2]) > 1
        other = _head(values.transpose(0, 1)) if is_matrix else head
        if _is_random(values, head) and len(head) == len(other):
            number = f"[{at}]" if len(slices) > 1 else ""
            eps = torch.finfo(tensor.dtype).eps
            yield _Part(place.name, number, values, head, other, eps, kind)


def _head(values: Any) -> np.ndarray:
    """The first entries that are not zero."""
    rows = values if values.ndim < 2 else values[: 1 + _START // max(values[0].numel(), 1)]
    for some in (rows.reshape(-1)[:_START], values.reshape(-1)):
        entries = some[some != 0][:_HEAD].cpu().double().numpy()
        if len(entries) == _HEAD:
            break
    return entries


def _is_random(values: Any, head: np.ndarray) -> bool:
    """Whether most entries differ, and neighbours are not correlated."""
    if len(np.unique(abs(head))) <= _HEAD // 2 or len(head) < _HEAD or not np.isfinite(head).all():
        return False
    table = values.reshape(-1, values.shape[-1])
    table = (table[:_SIDE, :_SIDE] if len(table) > 1 else table[:, :_START]).cpu().double().numpy()
    for x in (table, table.T):
        for lag in (1, 2):
            both = x[lag:].ravel(), x[:-lag].ravel()
            if len(both[0]) >= _HEAD // 2 and all(map(np.ptp, both)):
                if abs(np.corrcoef(*both)[0, 1]) > _SMOOTH:
                    return False
    return True


def _compared(part: _Part, other: _Part, is_transposed: bool) -> str:
    """What a tensor has of another one; nothing if entry for entry it is not a multiple."""
    if part.values.data_ptr() == other.values.data_ptr():
        return ""
    head = other.transposed if is_transposed else other.head
    factor, shift = np.polyfit(head, part.head, 1)
    values = other.values.transpose(0, 1) if is_transposed else other.values
    x, y = (each.reshape(-1).cpu().double().numpy() for each in (part.values, values))
    length = min(len(x), len(y))
    size = abs(x[:length]) + np.median(abs(part.head))
    far = abs(x[:length] - factor * y[:length] - shift) > 4 * max(part[5], other[5]) * size
    equal = int(np.argmax(far)) if far.any() else length
    if equal < _HEAD:
        return ""
    few = "" if equal == len(x) == len(y) else f" in its first {equal} entries"
    times = "" if abs(factor - 1) < 1e-3 else f"{factor:.4g} × "
    return f"a copy of {times}{other.name}{other.number}{', transposed' * is_transposed}{few}"
