"""Averages over the signals of many layers, which change smoothly from one to the next.

Once the kernels of all layers are known, ln|⟨φ'φ'⟩| is as smooth along the layers as they are. In
blocks of layers between which polynomials in the layer's number tell every kernel from a few, they
tell the averages too; those of other layers in between check them. Where they do not agree halves
of the block are tried, and all averages of short ones are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from mpmath import mp

from fieldtheory.averages.integrands.exact_differences import determinant

# Layers that polynomials are told by, how many more a block has at least, and between which of
# them, as fractions, others check: errors are largest in the middle.
_COUNTS, _PAYS, _BETWEEN = (6, 10, 16, 24), 2.5, np.array([0.1, 0.25, 0.5, 0.7, 0.9])
# How well polynomials agree with the kernels of all layers, and with averages of a few.
_SMOOTH, _AGREES = 5e-13, 2e-13
# More averages than these in a layer are faster together.
_FEW = 8

# The averages of some layers, shape (layers, m), of numbers of float64.
OfLayers = Callable[[np.ndarray], np.ndarray]


class _Block(NamedTuple):
    """Layers from ``start`` to ``stop``: those that tell, those that check, weights for all."""

    start: int
    stop: int
    told_by: np.ndarray
    checks: np.ndarray
    weights: np.ndarray


def along_layers(average: OfLayers, path: np.ndarray) -> np.ndarray:
    """The averages of all layers, from those of a few where the layers change smoothly.

    Parameters
    ----------
    average : callable
        (numbers of layers) -> averages, shape (layers, m).
    path : ndarray, shape (n, d)
        All that averages of a layer depend on, such that they change as much as it does; see
        `path_of`.

    Returns
    -------
    ndarray, shape (n, m)

    Examples
    --------
    >>> asked = []
    >>> def average(layers):
    ...     asked.extend(layers)
    ...     return np.sqrt(layers + 100.0)[:, None]
    >>> found = along_layers(average, np.log(np.arange(100.0, 700.0))[:, None])
    >>> bool(np.allclose(found[:, 0] ** 2, np.arange(100, 700), rtol=1e-12)), len(asked) < 120
    (True, True)
    """
    found, known = None, np.zeros(len(path), dtype=bool)
    blocks = _blocks(path, 0, len(path))
    while not known.all():
        asked = ~known
        for block in blocks:
            asked[block.start : block.stop] = False
            asked[block.told_by] = asked[block.checks] = True
        (new,) = np.nonzero(asked & ~known)
        values = average(new)
        found = np.empty((len(path), values.shape[1])) if found is None else found
        found[new], known[new] = values, True
        left: list[_Block] = []
        for block in blocks:
            inside = slice(block.start, block.stop)
            told = _told(block, found)
            if told is not None:
                found[inside][~known[inside]] = told[~known[inside]]
                known[inside] = True
            else:
                middle, least = (block.start + block.stop) // 2, len(block.told_by) + 1
                left += _blocks(path, block.start, middle, least)
                left += _blocks(path, middle, block.stop, least)
        blocks = left
    assert found is not None
    return found


def path_of(*kernels: np.ndarray) -> np.ndarray | None:
    """The path of variances, and of covariances after two of them; None if there is none.

    Parameters
    ----------
    *kernels : ndarray, shape (n, ...)
        K, or K_xx, K_yy and K_xy, layer axis first.

    Returns
    -------
    ndarray, shape (n, d)
        Logarithms of variances, and angles. None if too many inputs are asked for, or if variances
        vanish or are not known.
    """
    flat = [each.reshape(len(each), -1) for each in np.broadcast_arrays(*kernels)]
    if flat[0].shape[1] > _FEW or not all((k > 0).all() for k in flat[:2]):
        return None
    with np.errstate(all="ignore"):
        found = [np.log(k) for k in flat[:2]]
        if len(flat) > 2:
            found.append(np.arctan2(np.sqrt(determinant(*flat)), flat[2]))
    path = np.concatenate(found, axis=1)
    return path if np.isfinite(path).all() else None


def path_of_numbers(*kernels: np.ndarray) -> np.ndarray | None:
    """`path_of` of numbers of mpmath, of any size."""
    flat = [each.reshape(len(each), -1) for each in kernels]
    if flat[0].shape[1] > _FEW or not all((k > 0).all() for k in flat[:2]):
        return None
    found = [np.frompyfunc(mp.log, 1, 1)(k).astype(float) for k in flat[:2]]
    if len(flat) > 2:
        found.append(np.frompyfunc(_angle, 3, 1)(*flat).astype(float))
    path = np.concatenate(found, axis=1)
    return path if np.isfinite(path).all() else None


def _angle(K_xx: mp.mpf, K_yy: mp.mpf, K_xy: mp.mpf) -> mp.mpf:
    if not (mp.isfinite(K_xx * K_yy) and mp.isfinite(K_xy)):
        return mp.nan
    return mp.atan2(mp.sqrt(max(K_xx * K_yy - K_xy**2, mp.zero)), K_xy)


def smoothly(average: Callable[..., np.ndarray], *kernels: np.ndarray) -> np.ndarray:
    """A vectorised average of the kernels of all layers, by `along_layers` where that pays.

    Parameters
    ----------
    average : callable
        Of arrays of variances, or of K_xx, K_yy and K_xy.
    *kernels : ndarray, shape (n, ...)
        Layer axis first.

    Returns
    -------
    ndarray, shape (n, ...)
    """
    kernels = tuple(np.broadcast_arrays(*kernels))
    path = path_of(*kernels) if kernels[0].size <= _FEW * len(kernels[0]) else None
    if path is None:
        return average(*kernels)

    def of_layers(layers: np.ndarray) -> np.ndarray:
        return average(*(each[layers] for each in kernels)).reshape(len(layers), -1)

    return along_layers(of_layers, path).reshape(kernels[0].shape)


def _blocks(path: np.ndarray, start: int, stop: int, least: int = 0) -> list[_Block]:
    """Blocks within which the path is smooth, halves of halves; short ones are left out.

    Each is told by ``least`` layers at least, or by as many as there may be.
    """
    length = stop - start
    for count in [n for n in _COUNTS if n >= least] or _COUNTS[-1:]:
        if length < _PAYS * (count + len(_BETWEEN)):
            break
        block = _block(start, stop, count)
        part = path[start:stop] - path[start]
        if np.abs(block.weights @ part[block.told_by - start] - part).max() <= _SMOOTH:
            return [block]
    if length < 2 * _PAYS * _COUNTS[0]:
        return []
    middle = (start + stop) // 2
    return _blocks(path, start, middle, least) + _blocks(path, middle, stop, least)


def _block(start: int, stop: int, count: int) -> _Block:
    """Layers near the extremes of a polynomial of Chebyshev, where interpolation is stable."""
    last = stop - 1 - start
    places = last * (1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2
    told_by = np.unique(np.round(places).astype(int))
    (wide,) = np.nonzero(np.diff(told_by) > 1)
    gaps = wide[np.unique((_BETWEEN * (len(wide) - 1)).round().astype(int))]
    checks = (told_by[gaps] + told_by[gaps + 1]) // 2
    x, nodes = np.arange(last + 1) * 4 / last, told_by * 4 / last
    # Barycentric weights; on an interval of length 4 none is too large.
    scale = 1 / np.prod(nodes[:, None] - nodes + np.eye(len(nodes)), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = scale / (x[:, None] - nodes)
        weights = terms / terms.sum(axis=1, keepdims=True)
    weights[told_by] = np.eye(len(told_by))
    return _Block(start, stop, told_by + start, checks + start, weights)


def _told(block: _Block, found: np.ndarray) -> np.ndarray | None:
    """What polynomials tell of the averages of a block, None where they disagree with some."""
    at = found[block.told_by]
    if not (np.isfinite(at).all() and ((at > 0).all(axis=0) | (at < 0).all(axis=0)).all()):
        return None
    told = at[0] * np.exp(block.weights @ np.log(at / at[0]))
    checks = found[block.checks]
    change = np.abs(told[block.checks - block.start] - checks)
    return told if (change <= _AGREES * np.abs(checks)).all() else None
