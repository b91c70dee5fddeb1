"""Connected correlators by Price's theorem where the inner average is known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.tolerance import DEFAULT, tolerance

# Nodes on each panel, tried one after the other.
_ORDERS = (16, 24, 36, 54, 80)
# Allowed error of the rule, relative to the integral of the modulus.
_TOLERANCE = 1e-14
# What is allowed at the highest order, where rounding of the inner average may be all that is left.
_ROUNDING = 4e-13
# Correlation beyond which the inner average of a kink, a root at ±1, needs finer panels.
_NEAR = 0.999
# Pairs integrated together, so that the work arrays stay in the cache.
_CHUNK = 2048
_TINY = float(np.finfo(float).tiny)


def connected_by_price(
    slope: Callable,
    offset: Callable | None,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
) -> np.ndarray:
    """⟨F(x);G(y)⟩ = ∫_0^{K_xy} ⟨F'(x)G'(y)⟩_t dt, given the inner average in closed form.

    Where that average is singular at a covariance t_s > |K_xy|, t = t_s tanh v makes the integrand
    smooth; else the panels are graded towards the largest covariance. The determinant
    K_xx K_yy − t² is handed on as that of K_xy plus K_xy² − t², and the variances of x ∓ y as those
    at K_xy plus or minus 2 (K_xy − t), so that nothing cancels.

    Parameters
    ----------
    slope : callable
        (K_xx, K_yy, t, determinant, variance of x − y, that of x + y) -> ⟨F'(x)G'(y)⟩ at the
        covariance t, vectorised.
    offset : callable or None
        (K_xx, K_yy) -> t_s² − K_xx K_yy, > 0, or zero of all.
    K_xx, K_yy, K_xy : array_like
        Variances and covariance, K_xy² <= K_xx K_yy.

    Returns
    -------
    ndarray, the broadcast shape

    Raises
    ------
    QuadratureError
        If the Legendre coefficients of the integrand do not fall fast enough for a relative error
        of 1e-14 at any order tried, or of 4e-13 at the highest, more if a larger tolerance than
        the default is asked for.
    """
    K_xx, K_yy, K_xy = np.broadcast_arrays(
        *(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy))
    )
    a, b, c = (np.atleast_1d(k).ravel() for k in (K_xx, K_yy, K_xy))
    values = np.empty(len(a))
    for start in range(0, len(a), _CHUNK):
        part = slice(start, start + _CHUNK)
        entries = a[part], b[part], c[part]
        if offset is None:
            near = np.abs(entries[2]) > _NEAR * np.sqrt(entries[0] * entries[1])
            for some, halvings in ((~near, 8), (near, 52)):
                if some.any():
                    first, second, mixed = (k[some] for k in entries)
                    values[part][some] = _graded(slope, first, second, mixed, halvings)
        elif np.any(apart := offset(*entries[:2])):
            values[part] = _mapped(slope, apart, *entries)
        else:
            values[part] = _turned(slope, *entries)
    return values.reshape(K_xx.shape)


def _mapped(
    slope: Callable, offset: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    least = determinant(a, b, c)
    scale = np.sqrt(a * b + offset)
    end = np.arcsinh(c / np.sqrt(least + offset))

    def integrand(some: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        last, singular = end[some, None], scale[some, None]
        v = last * nodes
        t = singular * np.tanh(v)
        rest = singular * np.sinh(last * (1 - nodes)) / (np.cosh(last) * np.cosh(v))
        inner = _at(slope, t, rest, *(k[some, None] for k in (a, b, c, least)))
        return last * singular * inner / np.cosh(v) ** 2

    return integrals(integrand, len(a), np.array([0.0, 1.0]))


def _turned(slope: Callable, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """By t = √(K_xx K_yy) sin θ: where both functions jump at zero, 1/√det is 1/cos θ."""
    least, scale = determinant(a, b, c), np.sqrt(a) * np.sqrt(b)
    end = np.arctan2(c, np.sqrt(least))

    def integrand(some: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        last, size = end[some, None], scale[some, None]
        angle, left = last * nodes, last * (1 - nodes)
        t = size * np.sin(angle)
        rest = 2 * size * np.cos(angle + left / 2) * np.sin(left / 2)
        inner = _at(slope, t, rest, *(k[some, None] for k in (a, b, c, least)))
        return last * size * np.cos(angle) * inner

    return integrals(integrand, len(a), np.array([0.0, 1.0]))


def _graded(
    slope: Callable, a: np.ndarray, b: np.ndarray, c: np.ndarray, halvings: int
) -> np.ndarray:
    least = determinant(a, b, c)
    # The inner average varies on the scale 1/K of the relative distance from perfect correlation.
    halvings = max(halvings, 8 + int(np.ceil(np.log2(max(np.sqrt((a * b).max()), 1.0)))))
    cuts = np.concatenate([[0.0], 0.5 ** np.arange(halvings, -1, -1)])

    def integrand(some: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        last = c[some, None]
        given = (k[some, None] for k in (a, b, c, least))
        return last * _at(slope, last * (1 - nodes), last * nodes, *given)

    return integrals(integrand, len(a), cuts)


def _at(
    slope: Callable,
    t: np.ndarray,
    rest: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    least: np.ndarray,
) -> np.ndarray:
    """⟨F'G'⟩ at t = c − rest, from the determinant at c."""
    apart, together = (a - c) + (b - c) + 2 * rest, (a + c) + (b + c) - 2 * rest
    return slope(a, b, t, least + rest * (c + t), apart, together)


def integrals(integrand: Callable, count: int, cuts: np.ndarray) -> np.ndarray:
    """∫ over the panels of every one of ``count`` functions, each with as few nodes as it needs."""
    values, left = np.empty(count), np.arange(count)
    widths, starts = np.diff(cuts), cuts[:-1]
    rounding = _ROUNDING * max(tolerance() / DEFAULT, 1.0)
    for order in _ORDERS:
        nodes, projections = _projections(order)
        grid = (starts[:, None] + widths[:, None] * nodes).ravel()
        with np.errstate(all="ignore"):
            f = integrand(left, grid).reshape(len(left), len(widths), order)
            # Columns: the mean over the panel, coefficients half way, and the last ones.
            mean, middle, last = np.split(f @ projections, [1, 4], axis=-1)
            size = np.abs(f).mean(axis=-1) @ widths
            middle, last = (np.abs(part).max(axis=-1) for part in (middle, last))
            # Geometric decay taken on to twice the degree, up to which the rule is exact.
            decay = np.minimum(last / np.maximum(middle, _TINY), 1.0) ** 2
            error = (last * decay) @ widths
        allowed = rounding if order == _ORDERS[-1] else _TOLERANCE
        good = error <= allowed * np.maximum(size, _TINY)
        values[left[good]] = mean[good, :, 0] @ widths
        left = left[~good]
        if not len(left):
            return values
    raise QuadratureError(
        f"a connected correlator did not converge: its relative error is about "
        f"{np.max(error / np.maximum(size, _TINY)):.1e}; ask for a larger one (rtol=)"
    )


@lru_cache(maxsize=len(_ORDERS))
def _projections(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on [0, 1] and the weights of the Legendre coefficients that `integrals` looks at."""
    x, w = legendre(order)
    degrees = np.array([0, *range(order // 2 - 3, order // 2), *range(order - 3, order)])
    polynomials = np.polynomial.legendre.legvander(x, order - 1)[:, degrees]
    return (1 + x) / 2, polynomials * w[:, None] * (2 * degrees + 1) / 2
