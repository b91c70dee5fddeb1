"""ρ* of many pairs of inputs of one norm, by interpolation in their correlation.

Where one maximum of the response stays the highest, ρ* is an analytic function of ξ = artanh c, c
the correlation of the inputs, with singularities off the real axis such as those of c = ±1 at iπ/2.
Some 30 Chebyshev nodes therefore serve any number of pairs. An interval is used where its
coefficients have decayed and it agrees with ρ* itself at some of the pairs. It is divided where it
does not, and at the jump where another maximum becomes the highest or ρ* vanishes. Pairs that are
too few for an interval, and those of other norms, are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.chebyshev import chebval

from fieldtheory.averages.quadrature.chebyshev_series import nodes, transform


@dataclass(frozen=True)
class _Settings:
    """Numbers that decide where an interval is used.

    Parameters
    ----------
    alike : float
        The relative difference of norms that is rounding.
    pays : float
        Nodes of an interval for each of its pairs, at most.
    asking : int
        Pairs that take as long as asking once more, which counts where an interval was in vain.
    more, each_time : int
        Nodes beyond those at which coefficients fall to ``left``, at first, and for every time that
        it was not reached.
    tries : int
        How often a part of the pairs is interpolated in vain.
    left, error : float
        The last coefficients relative to the smallest value, and the error at pairs.
    compared : int
        Pairs that are compared.
    jump : float
        The least change from one node to the next, of the larger value, that is taken for a jump.
    """

    alike: float = 1e-12
    pays: float = 0.5
    asking: int = 64
    more: int = 5
    each_time: int = 4
    tries: int = 3
    left: float = 3e-11
    error: float = 5e-10
    compared: int = 5
    jump: float = 0.3


_SETTINGS = _Settings()
Optima = Callable[..., np.ndarray]


def in_blocks(
    optima: Optima, p: np.ndarray, q: np.ndarray, r: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """ρ* of pairs, one block of them after the other.

    Parameters
    ----------
    optima : callable
        ρ* (n, m) of n networks from the variances and covariances of m pairs.
    p, q, r : ndarray, shape (m,)
        K_xx, K_yy and K_xy.
    size : int
        Pairs that ``optima`` is asked for at once.

    Yields
    ------
    index : ndarray of int, shape (k,)
        The numbers of the pairs of the block.
    values : ndarray, shape (n, k)

    Examples
    --------
    >>> c, asked = np.linspace(-0.5, 0.9, 1000), []
    >>> def optima(p, q, r):
    ...     asked.append(len(p))
    ...     return np.sqrt(2 - r / np.sqrt(p * q))[None]
    >>> ((index, values),) = in_blocks(optima, np.ones(1000), np.ones(1000), c, 1024)
    >>> bool(np.allclose(values[0], np.sqrt(2 - c[index]), rtol=1e-9)), sum(asked) < 50
    (True, True)
    """
    norm = float(np.median(p)) if len(p) else 0.0
    with np.errstate(all="ignore"):
        xi = np.arctanh(r / np.sqrt(p * q))
    alike = np.isfinite(xi)
    for own in (p, q):
        alike &= np.abs(own - norm) <= _SETTINGS.alike * norm
    few, waiting = [np.flatnonzero(~alike)], [(np.flatnonzero(alike), 0, 0)]
    while waiting:
        index, failures, finer = waiting.pop()
        x = xi[index]
        count = _node_count(x, finer)
        spent = _SETTINGS.asking * (failures > 0)
        if failures == _SETTINGS.tries or count + spent > _SETTINGS.pays * len(index):
            few.append(index)
            continue
        values, jump = _interpolated(optima, norm, x, count, size)
        if values is not None:
            yield index, values
            continue
        low, high = jump or [(x.min() + x.max()) / 2] * 2
        few.append(index[(x > low) & (x < high)])
        finer += jump is None
        parts = index[x <= low], index[(x >= high) & (x > low)]
        waiting += [(part, failures + 1, finer) for part in parts]
    # Those that are computed share the averages of their variances.
    index = np.sort(np.concatenate(few))
    for start in range(0, len(index), size):
        block = index[start : start + size]
        yield block, optima(p[block], q[block], r[block])


def _node_count(xi: np.ndarray, finer: int) -> int:
    """Nodes at which coefficients fall to what may be left of them."""
    width = np.ptp(xi) if len(xi) else 0.0
    decay = np.arcsinh(np.pi / width) if width else np.inf
    more = _SETTINGS.more + _SETTINGS.each_time * finer
    return more + math.ceil(-np.log(_SETTINGS.left) / decay)


def _interpolated(
    optima: Optima, norm: float, xi: np.ndarray, count: int, size: int
) -> tuple[np.ndarray | None, tuple[float, float] | None]:
    """ρ* (n, k) at ξ from the nodes of an interval, None where they do not resolve it.

    Then the two ξ between which it jumps, if it does.
    """
    some = np.unique(np.linspace(0, len(xi) - 1, _SETTINGS.compared).astype(int))
    half, middle = np.ptp(xi) / 2, (xi.min() + xi.max()) / 2
    at = middle + half * nodes(count)
    asked = np.append(at, xi[some])
    own = np.full(len(asked), norm)
    try:
        parts = [
            optima(own[i : i + size], own[i : i + size], norm * np.tanh(asked[i : i + size]))
            for i in range(0, len(asked), size)
        ]
    except (ValueError, ArithmeticError):
        # One of the nodes, which need not be pairs, has no optimum.
        return None, None
    at_nodes, exact = np.split(np.concatenate(parts, axis=1), [count], axis=1)
    if np.isnan(at_nodes).any() or np.isnan(exact).any():
        return None, None
    coefficients = transform(count) @ at_nodes.T
    values = chebval((xi - middle) / (half or 1.0), coefficients)
    resolved = np.abs(coefficients[-2:]) <= _SETTINGS.left * at_nodes.min(axis=1)
    agrees = np.abs(values[:, some] - exact) <= _SETTINGS.error * exact
    if resolved.all() and agrees.all():
        return values, None
    larger = np.maximum(at_nodes[:, 1:], at_nodes[:, :-1])
    steps = (np.abs(np.diff(at_nodes)) / np.where(larger > 0, larger, 1.0)).max(axis=0)
    place = int(steps.argmax())
    return None, (at[place], at[place + 1]) if steps[place] >= _SETTINGS.jump else None
