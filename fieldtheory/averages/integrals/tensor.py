"""Averages and joint cumulants over several Gaussian variables in float64 by direct integration.

Smooth functions take the trapezoidal rule along the principal axes of the covariance, which
converges exponentially: the step along an axis is that which the variables see, so that nearly
equal variables cost few nodes, and equal ones none. Kinks take Gauss-Legendre panels, one variable
conditioned on those before it, that meet where a variable is at its kink.

A cumulant is taken of the functions less their means by a coarser rule, since ⟨FG⟩ and ⟨F⟩⟨G⟩
nearly cancel. The error is the difference of two resolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import gamma

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.tolerance import tolerance

# Allowed difference of two resolutions, relative to the average of |Π (F_k − ⟨F_k⟩)|.
TOLERANCE = 1e-10
# Largest steps along an axis: for the Gaussian alone, and in units of the functions' argument.
_GAUSSIAN_STEP, _ARGUMENT_STEP = 0.95, 0.5
_REFINEMENTS = (1.25, 1.0, 0.8, 0.64, 0.51, 0.41)
# So many of them are tried for nine digits.
_USUAL = 4
# Radius beyond which the Gaussian is left out; it grows with the level, so that two resolutions
# differ if the tail matters after all.
_REACH, _REACH_GROWTH = 8.4, 0.15
_PANEL_ORDERS = (8, 11, 15, 20)
_PANELS = np.array([-1.0, -0.62, -0.3, 0.0, 0.3, 0.62, 1.0])
_NEGLIGIBLE = 1e-19
# The same for integrands that grow as powers of a dozen.
_FAR, _FAR_NEGLIGIBLE = 10.0, 1e-26
# Relative size below which a principal variance or a pivot is rounding.
_RANK = 4e-15
_MOST_POINTS = 1 << 27
_CHUNK = 1 << 17
_TINY = float(np.finfo(float).tiny)

# Nodes of all variables (d, n) with their weights (n,), block by block.
Blocks = Iterator[tuple[np.ndarray, np.ndarray]]


def cumulant(
    functions: Sequence[Callable], kinks: Sequence[Sequence[float]], K: np.ndarray, what: str
) -> float:
    """The average of one function or the joint cumulant of several, over d Gaussian variables.

    Parameters
    ----------
    functions : sequence of callable
        Vectorised functions of d arrays.
    kinks : sequence of sequences of float, length d
        Where they are not smooth in each variable; all empty for smooth functions.
    K : ndarray, shape (d, d)
        Covariance, positive semidefinite; it may be singular.
    what : str
        What is integrated, for the error message.

    Returns
    -------
    float

    Raises
    ------
    QuadratureError
        If two resolutions differ by more than 1e-10 of ⟨|Π (F_k − ⟨F_k⟩)|⟩, or a larger tolerance
        that is set, or one needs more than 1.3e8 nodes.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> square = lambda x, y: x * y
    >>> round(cumulant([square, square], ((), ()), K, "xy"), 9)  # K_xx K_yy + K_xy²
    7.0
    """
    kinked = any(len(points) for points in kinks)
    levels: Sequence = _PANEL_ORDERS if kinked else _REFINEMENTS
    centres = np.zeros(len(functions))
    previous, error = np.nan, np.inf
    for number, level in enumerate(levels):
        reach = _REACH + _REACH_GROWTH * number
        blocks = _panels(K, kinks, level, reach) if kinked else _trapezoidal(K, level, reach)
        try:
            means, value, size = _cumulant(functions, blocks, centres)
        except _TooMany as cost:
            raise QuadratureError(
                f"{what} at the covariance {K.tolist()} did not converge with {_MOST_POINTS} "
                f"nodes: two resolutions differ by {error:.1e}, the next takes {cost}"
            ) from None
        error = abs(value - previous) / max(size, _TINY)
        if error <= max(TOLERANCE, tolerance()):
            return value
        previous = value
        if len(functions) > 1:
            centres = means
    raise QuadratureError(
        f"{what} at the covariance {K.tolist()} did not converge: two resolutions differ by "
        f"{error:.1e} of the modulus"
    )


def integrals(
    integrands: Callable[[np.ndarray], np.ndarray],
    kinks: Sequence[Sequence[float]],
    K: np.ndarray,
    what: str,
) -> np.ndarray:
    """The averages of several integrands over d Gaussian variables, all on the same nodes.

    Parameters
    ----------
    integrands : callable
        Nodes (d, n) to values (I, n).
    kinks, K, what
        As in `cumulant`.

    Returns
    -------
    ndarray, shape (I,)

    Raises
    ------
    QuadratureError
        If two resolutions differ by more than 1e-10 of the average of the modulus.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> both = integrals(lambda h: np.array([h[0] * h[1], h[0] ** 2]), ((), ()), K, "xy, xx")
    >>> both.round(9)
    array([1., 2.])
    """
    kinked = any(len(points) for points in kinks)
    levels: Sequence = _PANEL_ORDERS if kinked else _REFINEMENTS
    previous, error = np.array(np.nan), np.inf
    for number, level in enumerate(levels):
        reach = _FAR + _REACH_GROWTH * number
        if kinked:
            blocks = _panels(K, kinks, level, reach, _FAR_NEGLIGIBLE)
        else:
            blocks = _trapezoidal(K, level, reach)
        sums = sizes = np.array(0.0)
        try:
            for nodes, weights in blocks:
                values = integrands(nodes)
                sums, sizes = sums + values @ weights, sizes + np.abs(values) @ weights
        except _TooMany as cost:
            raise QuadratureError(f"{what} at the covariance {K.tolist()} took {cost}") from None
        error = float(np.max(np.abs(sums - previous) / np.maximum(sizes, _TINY)))
        if error <= TOLERANCE:
            return sums
        previous = sums
    raise QuadratureError(
        f"{what} at the covariance {K.tolist()} did not converge: two resolutions differ by "
        f"{error:.1e} of the modulus"
    )


class _TooMany(Exception):
    """A rule has more nodes than allowed."""


def _cumulant(
    functions: Sequence[Callable], blocks: Blocks, centres: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Means, cumulant, and the size of its integrand by one rule, from functions less centres."""
    count = len(functions)
    subsets = [s for size in range(1, count + 1) for s in combinations(range(count), size)]
    moments = dict.fromkeys(subsets, 0.0)
    modulus = 0.0
    with np.errstate(all="ignore"):
        for nodes, weights in blocks:
            shifted = [F(*nodes) - m for F, m in zip(functions, centres, strict=True)]
            products: dict[tuple, np.ndarray] = {(): weights}
            for subset in subsets:
                products[subset] = products[subset[:-1]] * shifted[subset[-1]]
                moments[subset] += float(products[subset].sum())
            modulus += float(np.abs(products[subsets[-1]]).sum())
    means = centres + np.array([moments[k,] for k in range(count)])
    return means, _from_moments(moments, count), modulus


def _from_moments(moments: dict, count: int) -> float:
    """κ(A) = m(A) − Σ κ(B) m(A∖B) over the proper subsets B of A that hold its first element."""
    cumulants: dict[tuple, float] = {}
    for subset in moments:
        value = moments[subset]
        first, rest = subset[0], subset[1:]
        for size in range(len(rest)):
            for part in combinations(rest, size):
                others = tuple(k for k in rest if k not in part)
                value -= cumulants[first, *part] * moments[others]
        cumulants[subset] = value
    return cumulants[tuple(range(count))]


def nodes_needed(K: np.ndarray) -> float:
    """About how many nodes the trapezoidal rule takes until it has nine digits.

    Examples
    --------
    >>> 1e3 < nodes_needed(np.eye(2)) < nodes_needed(100 * np.eye(2)) < 1e6
    True
    """
    steps = [_axes(K, refinement)[1] for refinement in _REFINEMENTS[:_USUAL]]
    return sum(_in_ball(one, _REACH) for one in steps)


def _axes(K: np.ndarray, refinement: float) -> tuple[np.ndarray, np.ndarray]:
    """The principal axes of K, (d, rank), and the steps along them, the finest last."""
    variances, directions = np.linalg.eigh(K)
    kept = variances > _RANK * max(variances[-1], _TINY)
    factor = directions[:, kept] * np.sqrt(variances[kept])
    scale = np.abs(factor).max(axis=0, initial=0.0)
    steps = refinement / np.hypot(1 / _GAUSSIAN_STEP, scale / _ARGUMENT_STEP)
    # The finest axis last, where nodes are made block by block.
    order = np.argsort(-steps)
    return factor[:, order], steps[order]


def _in_ball(steps: np.ndarray, reach: float) -> float:
    """About how many nodes of these steps are in a ball."""
    rank = len(steps)
    return float((np.sqrt(np.pi) * reach) ** rank / gamma(rank / 2 + 1) / np.prod(steps))


def _trapezoidal(K: np.ndarray, refinement: float, reach: float) -> Blocks:
    """The trapezoidal rule in a ball along the principal axes of K."""
    factor, steps = _axes(K, refinement)
    if not len(steps):
        yield np.zeros((len(K), 1)), np.ones(1)
        return
    rank = len(steps)
    count = _in_ball(steps, reach)
    if count > _MOST_POINTS:
        raise _TooMany(f"{count:.1e}")
    # Off the symmetric positions, where the two halves of a grid are mirror images.
    axes = [s * (np.arange(-int(reach / s) - 1, int(reach / s) + 1) + 0.25) for s in steps]
    points, squares = np.zeros((len(K), 1)), np.zeros(1)
    norm = np.prod(steps) / (2 * np.pi) ** (rank / 2)
    for j in range(rank - 1):
        points, squares = _attached(points, squares, factor[:, j], axes[j], reach)
    rows = max(1, _CHUNK // len(axes[-1]))
    for start in range(0, len(squares), rows):
        part = slice(start, start + rows)
        nodes, radii = _attached(points[:, part], squares[part], factor[:, -1], axes[-1], reach)
        yield nodes, norm * np.exp(-radii / 2)


def _attached(
    points: np.ndarray, squares: np.ndarray, direction: np.ndarray, axis: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray]:
    """Points with the nodes of one more axis, and their squared radii, inside the ball."""
    radii = squares[:, None] + axis * axis
    inside = radii <= reach * reach
    nodes = [(p[:, None] + d * axis)[inside] for p, d in zip(points, direction, strict=True)]
    return np.array(nodes), radii[inside]


def _panels(
    K: np.ndarray,
    kinks: Sequence[Sequence[float]],
    order: int,
    reach: float,
    negligible: float = _NEGLIGIBLE,
) -> Blocks:
    """Panels in one whitened coordinate after the other, which meet at the kinks."""
    factor = _cholesky(K)
    rank = factor.shape[1]
    means, weights = np.zeros((len(K), 1)), np.ones(1)
    if rank == 0:
        yield means, weights
        return
    for j in range(rank - 1):
        means, weights = _conditioned(means, weights, factor, j, kinks, order, reach, negligible)
    width = _cuts(means[:, :1], factor, rank - 1, kinks, reach).shape[0] * order
    if width * len(weights) > _MOST_POINTS:
        raise _TooMany(f"{width * len(weights):.1e}")
    rows = max(1, _CHUNK // width)
    for start in range(0, len(weights), rows):
        part = slice(start, start + rows)
        yield _conditioned(
            means[:, part], weights[part], factor, rank - 1, kinks, order, reach, negligible
        )


def _cholesky(K: np.ndarray) -> np.ndarray:
    """L (d, rank) with K = L Lᵀ, the largest pivot first."""
    rest = K.astype(float).copy()
    columns: list[np.ndarray] = []
    largest = np.diag(K).max()
    while True:
        pivot = int(np.argmax(np.diag(rest)))
        if rest[pivot, pivot] <= _RANK * largest or len(columns) == len(K):
            return np.array(columns).reshape(-1, len(K)).T
        columns.append(rest[:, pivot] / np.sqrt(rest[pivot, pivot]))
        rest = rest - np.outer(columns[-1], columns[-1])
        rest[pivot, :] = rest[:, pivot] = 0.0


def _conditioned(
    means: np.ndarray,
    weights: np.ndarray,
    factor: np.ndarray,
    j: int,
    kinks: Sequence[Sequence[float]],
    order: int,
    reach: float,
    negligible: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (d, n) and weights (n,) with those of the coordinate z_j attached."""
    cuts = _cuts(means, factor, j, kinks, reach)
    x, w = legendre(order)
    half = np.diff(cuts, axis=0)[:, None, :] / 2
    z = cuts[:-1, None, :] + half * (1 + x[:, None])
    bell = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    attached = half * w[:, None] * bell * weights
    used = attached > negligible
    return np.array(
        [(m + s * z)[used] for m, s in zip(means, factor[:, j], strict=True)]
    ), attached[used]


def _cuts(
    means: np.ndarray,
    factor: np.ndarray,
    j: int,
    kinks: Sequence[Sequence[float]],
    reach: float,
) -> np.ndarray:
    """Sorted ends of the panels in z_j, shape (cuts, points)."""
    count = means.shape[1]
    cuts = [np.full(count, reach * p) for p in _PANELS]
    for i in np.flatnonzero(factor[:, j]).tolist():
        slope = abs(factor[i, j])
        # What later coordinates add smears the kink of a variable over this width.
        left = float(np.linalg.norm(factor[i, j + 1 :])) / slope
        narrow = min(1.0, 1 / slope) if left < _RANK else min(1.0, left)
        for kink in kinks[i]:
            root = (kink - means[i]) / factor[i, j]
            cuts.append(root)
            if narrow < 0.7:
                halvings = int(np.ceil(-np.log2(narrow)))
                for offset in narrow * 2.0 ** np.arange(halvings + 1):
                    cuts += [root - offset, root + offset]
    return np.sort(np.clip(np.array(cuts), -reach, reach), axis=0)
