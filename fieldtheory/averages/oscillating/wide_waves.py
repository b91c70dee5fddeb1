"""Averages in float64 of functions with waves that are short against the signals.

Nodes that resolve them grow as the signals; `wave_remainders` needs none far out. Below the
variances where it holds, and where it does not, the rules given as ``otherwise`` stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import sympy as sp
from mpmath import mp
from numpy.polynomial import hermite_e

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import quadrature
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.integrands.narrow import cuts_of
from fieldtheory.averages.oscillating.wave_remainders import (
    Remainder,
    moments,
    of_two,
    reaches,
    remainder,
    settled,
)
from fieldtheory.averages.oscillating.waves import has_waves
from fieldtheory.averages.sizes import size_logarithms

# Variances, in those below which waves have no mean, from which on it is taken.
_FROM = 50.0
# Groups of powers of K of an integrand.
_MOST_TERMS = 8

Rule = Callable[[np.ndarray], np.ndarray]


def single(F: sp.Expr, h: sp.Symbol, otherwise: Rule) -> Rule:
    """⟨F⟩ as a function of K, by another rule where waves are no shorter than the signals.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> average = single(sp.sin(h) ** 2 * sp.Abs(h), h, np.zeros_like)
    >>> exact = np.sqrt(1e12 / (2 * np.pi))
    >>> np.allclose(average(np.array([1.0, 1e12])), [0, exact], rtol=1e-12)
    True
    """
    if not has_waves(F):
        return otherwise

    def average(K: np.ndarray) -> np.ndarray:
        K = np.asarray(K, dtype=float)
        far = K >= _start(F, h)
        if not far.any():
            return otherwise(K)
        found = np.empty(K.shape)
        try:
            values, sizes = _of_one(F, h, K[far])
            found[far] = settled(values, sizes, F)
        except QuadratureError:
            return otherwise(K)
        if not far.all():
            found[~far] = otherwise(K[~far])
        return found

    return average


def by_parts(forms: Sequence[sp.Expr], h: sp.Symbol, K: sp.Symbol, otherwise: Rule) -> Rule:
    """One quantity given as averages of several integrands in h and K, as a function of K.

    Parameters
    ----------
    forms : sequence of sympy.Expr
    h, K : sympy.Symbol
    otherwise : callable
    """
    if not any(has_waves(form) for form in forms):
        return otherwise

    def average(variances: np.ndarray) -> np.ndarray:
        variances = np.asarray(variances, dtype=float)
        known = {form: start for form in forms if np.isfinite(start := _start(form, h))}
        far = variances >= max(known.values(), default=np.inf)
        if not far.any():
            return otherwise(variances)
        found = np.empty(variances.shape)
        try:
            found[far] = _least_cancelling(list(known), h, K, variances[far])
        except QuadratureError:
            return otherwise(variances)
        if not far.all():
            found[~far] = otherwise(variances[~far])
        return found

    return average


class Product(NamedTuple):
    """f(x) g(y) of wide signals."""

    left: tuple[Remainder, Remainder]
    projections: tuple[Callable, Callable]
    steady: Callable


def pair(
    products: Sequence[tuple[sp.Expr, sp.Expr]],
    variables: tuple[sp.Symbol, sp.Symbol],
    steady: Callable,
    otherwise: Rule,
) -> Callable:
    """Σ ⟨f(x) g(y)⟩ as a function of K_xx, K_yy, K_xy, as `single`.

    Parameters
    ----------
    products : sequence of pairs of sympy.Expr
        f and g; none where the function is no such sum.
    variables : pair of sympy.Symbol
    steady : callable
        (f̄, ḡ) -> the function of K_xx, K_yy, K_xy of functions without waves.
    otherwise : callable
    """
    if not any(has_waves(f) or has_waves(g) for f, g in products):
        return otherwise

    @lru_cache
    def parts() -> tuple[Product, ...]:
        try:
            return tuple(_product(*each, variables, steady) for each in products)
        except QuadratureError:
            return ()

    def average(*K: np.ndarray) -> np.ndarray:
        given = np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in K))
        flat = [np.atleast_1d(each).ravel() for each in given]
        found, done = np.zeros(len(flat[0])), np.zeros(len(flat[0]), dtype=bool)
        if (np.minimum(flat[0], flat[1]) > 1.0).any() and (known := parts()):
            values, done = zip(*(_of_two(each, *flat) for each in known), strict=True)
            found, done = np.sum(values, axis=0), np.all(done, axis=0)
        if not done.all():
            found[~done] = otherwise(*(each[~done] for each in flat))
        return found.reshape(given[0].shape)[()]

    return average


def _product(
    f: sp.Expr, g: sp.Expr, variables: tuple[sp.Symbol, sp.Symbol], steady: Callable
) -> Product:
    left = remainder(f, variables[0]), remainder(g, variables[1])
    if any(each.steady.exponential for each in left):
        raise QuadratureError("waves that grow exponentially are not left out of pairs")
    means = [each.steady.function for each in left]
    one, other = (
        lru_cache(partial(_projection, mean, v)) for mean, v in zip(means, variables, strict=True)
    )
    return Product(left, (one, other), steady(*means))


@lru_cache(maxsize=256)
def _start(F: sp.Expr, h: sp.Symbol) -> float:
    """The variance from which on waves are taken out, infinite where they are not."""
    if not has_waves(F):
        return 0.0
    try:
        left = [remainder(term, h) for _, term in _powers(F, h)]
    except QuadratureError:
        return np.inf
    return _FROM * max(each.steady.variance for each in left)


@lru_cache(maxsize=256)
def _powers(F: sp.Expr, h: sp.Symbol) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
    """F as a sum of coefficients, of other symbols, times functions of h."""
    prefactor, F = F.as_independent(h, as_Add=False)
    if F.free_symbols <= {h}:
        return ((prefactor, F),)
    groups: dict[sp.Expr, list[sp.Expr]] = {}
    for term in sp.Add.make_args(sp.expand(F)):
        number, function = term.as_coeff_Mul()
        coefficient, function = function.as_independent(h, as_Add=False)
        groups.setdefault(coefficient, []).append(number * function)
    if len(groups) > _MOST_TERMS or any(sp.Add(*g).free_symbols - {h} for g in groups.values()):
        raise QuadratureError("an average of waves is no short sum of averages of one signal")
    return tuple((prefactor * coefficient, sp.Add(*group)) for coefficient, group in groups.items())


def _of_one(F: sp.Expr, h: sp.Symbol, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """⟨F⟩ in both windows, and the size that errors are relative to."""
    left = remainder(F, h)
    mean = left.steady.function
    steady = quadrature.average_1d(_compiled(mean, h), K, cuts_of(mean, h))
    sums, size = moments(left, K)
    scale = np.sqrt(2 * np.pi * K)
    return steady + sums / scale, np.abs(steady) + size / scale


def _least_cancelling(
    forms: Sequence[sp.Expr], h: sp.Symbol, K: sp.Symbol, variances: np.ndarray
) -> np.ndarray:
    best, losses = np.zeros(variances.shape), np.full(variances.shape, np.inf)
    for form in forms:
        windows, size = np.zeros((2, *variances.shape)), np.zeros(variances.shape)
        for coefficient, function in _powers(form, h):
            values, sizes = _of_one(function, h, variances)
            factor = sp.lambdify([K], coefficient, "numpy")(variances)
            windows, size = windows + factor * values, size + np.abs(factor) * sizes
        value = settled(windows, size, form)
        with np.errstate(all="ignore"):
            loss = np.where(value == 0, np.finfo(float).max, size / np.abs(value))
        best, losses = np.where(loss < losses, value, best), np.minimum(loss, losses)
    return best


def _of_two(product: Product, *K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """⟨f(x) g(y)⟩ of one-dimensional arrays, and where it is found."""
    left, projections, steady = product
    size = np.sqrt(K[0]) * np.sqrt(K[1])
    with np.errstate(all="ignore"):
        c = np.clip(K[2] / size, -1, 1)
        away = determinant(*K) / (size * (size + np.abs(K[2])))
        wide = reaches((left[0].steady, left[1].steady), K[0], K[1], c, away)
    found, done = np.zeros(len(size)), np.zeros(len(size), dtype=bool)
    if not wide.any():
        return found, done
    try:
        found[wide] = steady(*(each[wide] for each in K))
    except QuadratureError:
        return found, done
    done = wide
    if any(len(each.places) for each in left):
        for i in np.nonzero(wide)[0]:
            variances = mp.mpf(float(K[0][i])), mp.mpf(float(K[1][i]))
            place = float(c[i]), float(away[i]), mp.mpf(float(found[i]))
            try:
                found[i] = float(of_two(left, projections, variances, *place))
            except QuadratureError:
                done[i] = False
    return found, done


def either(first: Callable, f: Callable, g: Callable) -> Callable:
    """A rule for pairs, and the logarithms of sizes of f and g where it gives up."""

    def average(*K: np.ndarray) -> np.ndarray:
        try:
            return first(*K)
        except QuadratureError:
            return size_logarithms.pairs(f, g, *K)

    return average


def _projection(f: sp.Expr, h: sp.Symbol, variance: mp.mpf, order: int) -> mp.mpf:
    """⟨f(√V z) He_n(z)⟩."""
    V, function = float(variance), _compiled(f, h)
    polynomial = hermite_e.HermiteE.basis(order)
    average = quadrature.average_1d(
        lambda x: function(x) * polynomial(x / np.sqrt(V)), np.array(V), cuts_of(f, h)
    )
    return mp.mpf(float(average))


@lru_cache(maxsize=256)
def _compiled(f: sp.Expr, h: sp.Symbol) -> Callable:
    function = vectorised([h], f)
    return lambda x: function(x) + np.zeros_like(x)
