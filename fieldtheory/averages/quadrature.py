"""Gaussian averages in float64 by composite Gauss-Legendre rules with an error estimate.

Panels are refined around zero and the kinks of the integrand (see `panels`), so that neither a
large variance nor a kink spoils the rule. The error is the difference of two orders; a rule that
misses the tolerance is repeated with more nodes, and raises if that does not help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.panels import breakpoints

# Gaussian tail beyond the reach: 2e-22, times any polynomial of the activation.
_REACH = 9.8
_ORDERS = (16, 24, 36, 54)
TOLERANCE = 1e-13
# Largest ratio of ⟨|f|⟩ to |⟨f⟩| of an integral by parts.
_CANCELLING = 8.0
# Variances integrated together, so that the work arrays stay in the cache.
_CHUNK = 256
_TINY = float(np.finfo(float).tiny)


def average_1d(f: Callable, K: np.ndarray, kinks: Sequence[float] = ()) -> np.ndarray:
    """⟨f(h)⟩_{N(0,K)} for every entry of an array of variances.

    Parameters
    ----------
    f : callable
        Vectorised integrand.
    K : array_like
        Variances >= 0, any shape.
    kinks : sequence of float
        Where f is not smooth.

    Returns
    -------
    ndarray, the shape of ``K``

    Raises
    ------
    QuadratureError
        If two orders differ by more than 1e-13 of the average of |f|, or 1e-15 of its
        maximum under the Gaussian where that is larger.

    Examples
    --------
    >>> float(average_1d(np.square, np.array(3.0)).round(12))
    3.0
    """
    return _with_sizes(lambda h, K: f(h), K, kinks)[0]


def by_parts_1d(
    forms: Sequence[tuple[Callable, Callable]],
    otherwise: Callable,
    K: np.ndarray,
    kinks: Sequence[float] = (),
) -> np.ndarray:
    """One quantity given as several averages p(K) ⟨f(h, K)⟩, each entry by one that keeps digits.

    Integration by parts (Stein's lemma) gives averages of one value, whose integrands cancel for
    small or for large variances.

    Parameters
    ----------
    forms : sequence of (f, p)
        Integrand of h and K, vectorised, and prefactor.
    otherwise : callable
        The same quantity as a function of K, for the entries where all forms cancel; where it
        does not converge, that form is taken which cancels least.
    K, kinks
        As for `average_1d`.

    Returns
    -------
    ndarray, the shape of ``K``

    Examples
    --------
    >>> forms = [(lambda h, K: 2 * h**2, np.reciprocal)]
    >>> float(by_parts_1d(forms, lambda K: np.full(K.shape, 2.0), np.array(3.0)).round(12))
    2.0
    """
    K = np.asarray(K, dtype=float)
    best, losses = np.zeros(K.shape), np.full(K.shape, np.inf)
    some = K > 0
    for f, prefactor in forms:
        if not some.any():
            break
        value, size = _with_sizes(f, K[some], kinks)
        with np.errstate(all="ignore"):
            loss = np.where(size > 0, size / np.abs(value), 1.0)
            value = value * prefactor(K[some])
        better = np.isfinite(value) & (loss < losses[some])
        best[some] = np.where(better, value, best[some])
        losses[some] = np.where(better, loss, losses[some])
        some = (K > 0) & (losses > 1.5)
    bad = ~(losses <= _CANCELLING)
    if bad.any():
        try:
            best[bad] = otherwise(K[bad])
        except QuadratureError:
            if not np.isfinite(losses[bad]).all():
                raise
    return best


def average_2d(
    f: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    kinks: Sequence[Sequence[float]] = ((), ()),
) -> np.ndarray:
    """⟨f(x, y)⟩ over two Gaussian variables, for arrays of (co)variances that broadcast.

    Parameters
    ----------
    f : callable
        Vectorised integrand of x and y.
    K_xx, K_yy, K_xy : array_like
        Variances and covariance with K_xy² <= K_xx K_yy; equality is allowed.
    kinks : pair of sequences of float
        Where f is not smooth in x and in y.

    Returns
    -------
    ndarray, the broadcast shape

    Raises
    ------
    QuadratureError
        If two orders differ by more than 1e-13 of the average of |f|, or 1e-15 of its
        maximum under the Gaussian where that is larger.

    Examples
    --------
    >>> float(average_2d(np.multiply, 1.0, 2.0, 0.5).round(12))
    0.5
    """
    K_xx, K_yy, K_xy = np.broadcast_arrays(
        *(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy))
    )
    entries = zip(K_xx.ravel(), K_yy.ravel(), K_xy.ravel(), strict=True)
    return np.array([_two(f, *entry, kinks) for entry in entries]).reshape(K_xx.shape)


def connected_2d(
    F: Callable,
    G: Callable,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    kinks: Sequence[Sequence[float]] = ((), ()),
) -> np.ndarray:
    """⟨F(x);G(y)⟩ = ⟨(F−⟨F⟩)(G−⟨G⟩)⟩ for arrays of (co)variances that broadcast.

    Parameters, returns and errors are those of `average_2d`; F and G take one variable each. The
    means are subtracted under the integral, since ⟨FG⟩ and ⟨F⟩⟨G⟩ nearly cancel.
    """
    K_xx, K_yy, K_xy = np.broadcast_arrays(
        *(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy))
    )
    means_f, means_g = _means(F, K_xx, kinks[0]), _means(G, K_yy, kinks[1])
    values = [
        _two(lambda x, y, f=f, g=g: (F(x) - f) * (G(y) - g), a, b, c, kinks)
        for a, b, c, f, g in zip(
            K_xx.ravel(), K_yy.ravel(), K_xy.ravel(), means_f, means_g, strict=True
        )
    ]
    return np.array(values).reshape(K_xx.shape)


def _means(f: Callable, K: np.ndarray, kinks: Sequence[float]) -> np.ndarray:
    variances, index = np.unique(K.ravel(), return_inverse=True)
    return average_1d(f, variances, kinks)[index]


def _sums(weights: np.ndarray, bell: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Σ w f and the size its error is measured by: Σ |w f|, but no less than rounding of f.

    ``bell`` is the Gaussian, one at its maximum, so that f may grow in its tail.
    """
    terms, peaks = weights * bell * values / np.sqrt(2 * np.pi), np.abs(bell * values)
    return float(terms.sum()), float(max(np.abs(terms).sum(), 0.01 * peaks.max()))


def refine(rule: Callable[[int], tuple], what: str) -> Any:
    """The value of a rule once two orders agree to ``TOLERANCE`` of a size, that of |f|.

    The rule maps an order to the value and the size, numbers or arrays.
    """
    with np.errstate(all="ignore"):
        previous, error = rule(_ORDERS[0])[0], np.inf
        for order in _ORDERS[1:]:
            value, size = rule(order)
            error = np.max(np.abs(value - previous) - TOLERANCE * np.maximum(size, _TINY))
            if error <= 0:
                return value
            previous = value
    raise QuadratureError(f"{what} did not converge: two orders differ by {error:.1e}")


def composite(cuts: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on all panels; the cuts may carry leading axes."""
    x, w = legendre(order)
    middle = (cuts[..., 1:] + cuts[..., :-1])[..., None] / 2
    half = (cuts[..., 1:] - cuts[..., :-1])[..., None] / 2
    shape = (*cuts.shape[:-1], -1)
    return (middle + half * x).reshape(shape), (half * w).reshape(shape)


@lru_cache(maxsize=16)
def legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [−1, 1]."""
    return np.polynomial.legendre.leggauss(order)


def _with_sizes(
    f: Callable, K: np.ndarray, kinks: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """⟨f⟩ and ⟨|f|⟩ for every variance; those of one power of four share their panels."""
    K = np.asarray(K, dtype=float)
    flat = K.ravel()
    values, sizes = np.zeros(len(flat)), np.zeros(len(flat))
    if (flat == 0).any():
        values[flat == 0] = np.ravel(f(np.zeros(1), np.zeros(1)))[0]
        sizes = np.abs(values)
    level = np.ceil(np.log2(np.maximum(flat, 1.0)) / 2)
    for power in set(level[flat > 0]):
        (index,) = np.nonzero((level == power) & (flat > 0))
        for start in range(0, len(index), _CHUNK):
            part = index[start : start + _CHUNK]
            values[part], sizes[part] = _same_panels(f, flat[part], 0.5**power, kinks)
    return values.reshape(K.shape), sizes.reshape(K.shape)


def _same_panels(
    f: Callable, K: np.ndarray, scale: float, kinks: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    deviation = np.sqrt(K)[:, None]
    centres = np.array([0.0, *kinks]) / deviation

    def rule(order: int, left: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if kinks:
            nodes, weights = composite(_inner_cuts(centres[left], scale, _reach(order)), order)
            bell = _bell(nodes)
        else:
            nodes, weights, bell = _rule(scale, order)
        terms = bell * f(deviation[left] * nodes, K[left, None])
        sizes = np.abs(terms)
        weights = weights / np.sqrt(2 * np.pi)
        if kinks:
            return (weights * terms).sum(axis=1), (weights * sizes).sum(axis=1), sizes.max(axis=1)
        return terms @ weights, sizes @ weights, sizes.max(axis=1)

    what = f"an average at the variance {K.min():.6g}"
    return _refined(rule, len(K), what)


@lru_cache(maxsize=128)
def _rule(scale: float, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and the Gaussian on panels refined around zero."""
    nodes, weights = composite(np.array(breakpoints([0.0], scale, _reach(order))), order)
    return nodes, weights, _bell(nodes)


def _refined(rule: Callable, count: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    """⟨f⟩ and ⟨|f|⟩ of ``count`` integrals, each refined until two orders agree.

    The rule maps an order and the integrals left to ⟨f⟩, ⟨|f|⟩ and the peak of |f|.
    """
    left = np.arange(count)
    values, sizes = np.empty(count), np.empty(count)
    with np.errstate(all="ignore"):
        previous = rule(_ORDERS[0], left)[0]
        for order in _ORDERS[1:]:
            value, size, peak = rule(order, left)
            allowed = TOLERANCE * np.maximum(np.maximum(size, 0.01 * peak), _TINY)
            error = np.abs(value - previous) - allowed
            values[left], sizes[left] = value, size
            bad = ~(error <= 0)
            left, previous = left[bad], value[bad]
            if not len(left):
                return values, sizes
    raise QuadratureError(f"{what} did not converge: two orders differ by {error.max():.1e}")


def _two(
    f: Callable, K_xx: float, K_yy: float, K_xy: float, kinks: Sequence[Sequence[float]]
) -> float:
    if K_xx < K_yy:
        # The outer variable is the wider one, so that the inner Gaussian is well resolved.
        return _two(lambda x, y: f(y, x), K_yy, K_xx, K_xy, (kinks[1], kinks[0]))
    deviation = np.sqrt(K_xx)
    if deviation == 0:
        return float(np.ravel(f(np.zeros(1), np.zeros(1)))[0])
    slope = K_xy / K_xx
    spread = np.sqrt(max(K_yy - slope * K_xy, 0.0))
    # A kink in y is seen by the outer integral too, smeared over the inner spread.
    seen = [k / slope for k in kinks[1]] if slope != 0 else []
    centres = [0.0, *(k / deviation for k in (*kinks[0], *seen))]
    inner_centres = np.array([0.0, *kinks[1]])

    def rule(order: int) -> tuple[float, float]:
        reach = _reach(order)
        cuts = np.array(breakpoints(centres, min(1.0, 1 / deviation), reach))
        nodes, weights = composite(cuts, order)
        x, bell = deviation * nodes, _bell(nodes)
        if spread == 0:
            return _sums(weights, bell, f(x, slope * x))
        moving = (inner_centres - slope * x[:, None]) / spread
        edges = _inner_cuts(moving, min(1.0, 1 / spread), reach)
        w_nodes, w_weights = composite(edges, order)
        values = f(x[:, None], slope * x[:, None] + spread * w_nodes)
        w_weights *= weights[:, None] / np.sqrt(2 * np.pi)
        return _sums(w_weights, bell[:, None] * _bell(w_nodes), values)

    return refine(rule, f"an average at the covariance [[{K_xx:.6g}, {K_xy:.6g}], [., {K_yy:.6g}]]")


def _inner_cuts(centres: np.ndarray, scale: float, reach: float) -> np.ndarray:
    """Panels of the inner variable, refined around centres that move with the outer one."""
    around = np.array(breakpoints([0.0], scale, 2 * reach))
    fixed = np.array(breakpoints([0.0], 1.0, reach))
    moving = (centres[:, :, None] + around).reshape(len(centres), -1)
    edges = np.concatenate([moving, np.broadcast_to(fixed, (len(centres), len(fixed)))], axis=1)
    return np.sort(np.clip(edges, -reach, reach), axis=1)


def _reach(order: int) -> float:
    """Where to end, farther for each order, so that two differ if the tail matters after all."""
    return _REACH + 0.1 * (order - _ORDERS[0])


def _bell(z: np.ndarray) -> np.ndarray:
    return np.exp(-z * z / 2)
