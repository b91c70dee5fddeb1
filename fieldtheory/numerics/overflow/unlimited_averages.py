"""Averages over one or two signals of φ that grows as no power, as numbers of mpmath.

They are those of float64 where it holds them, else those of `beyond_float`, and of
`logarithmic_powers` where φ is a power times logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import numpy as np
import sympy as sp
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import beyond_float, logarithmic_slopes
from fieldtheory.averages.growing.jumps_beyond_float import jumps_of, of_slopes
from fieldtheory.averages.integrals.vectorising import kinks_of, vectorised
from fieldtheory.averages.integrands.narrow import narrow_cuts
from fieldtheory.averages.integrands.steps import (
    first_derivative,
    slope_of_pieces,
)
from fieldtheory.averages.oscillating.wave_remainders import reaches
from fieldtheory.averages.oscillating.waves import Steady, has_waves, without_waves
from fieldtheory.averages.sizes import polar_sizes
from fieldtheory.networks import activations
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.layer_averages.large_variances import pair_averages, single_average
from fieldtheory.numerics.layer_averages.logarithmic_powers import (
    LogarithmicPowers,
    logarithmic_powers,
)
from fieldtheory.theory.elementary_averages import feature_parameters

# Digits of the averages, variances of which float64 holds them, and what adds nothing.
DIGITS, _SMALLEST, _LARGEST, NOTHING = 30, 1e-280, 1e270, 1e-20
# Averages that are kept: deep networks of several inputs take each of them a few times.
_KEPT = 2**16
# 1 − c below which pairs are compared with parallel ones.
_NEAR = 1e-3
# A variance of which float64 holds averages, and beside which signals of size one are nothing.
_REFERENCE = 1e100
# Moments of which integrals over two signals in float64 would fail late.
_STEEP = 1e275
# Variances from which on nothing is left of waves near zero.
_FAR_FROM_WAVES = mp.mpf(10) ** 36
_H = activations.h


def are_faint(
    network: LayeredNetwork, first: tuple[int, mp.mpf], second: tuple[int, mp.mpf], size: mp.mpf
) -> bool:
    """Whether averages of two φ or φ' (orders 0 and 1) of wide signals are nothing beside a size.

    It takes a few values of φ, and no integrals: behind skip connections kernels grow without φ.
    """
    if not size or not all(mp.isfinite(K) and K > _REFERENCE for _, K in (first, second)):
        return False
    bounds = [_bound(network, *each) for each in (first, second)]
    return bool(mp.sqrt(bounds[0] * bounds[1]) < NOTHING**2 * size)


def waves_are_faint(network: LayeredNetwork, K: tuple[mp.mpf, ...], size: mp.mpf) -> bool:
    """Whether ⟨φ'φ'⟩ of K_xx, K_yy and K_xy, whose waves do not move together, is nothing.

    Their mean over phases decays, and what is left of them near zero is as rare as 1/√K.
    """
    K_xx, K_yy, K_xy = K
    if not size or not all(mp.isfinite(k) and k > _REFERENCE for k in (K_xx, K_yy)):
        return False
    c = max(min(K_xy / mp.sqrt(K_xx * K_yy), mp.one), -mp.one)
    try:
        steady = [without_waves(_slope(f), _H) for f in features_of(network)]
    except QuadratureError:
        return False
    if any(each.exponential or each.function.has(sp.DiracDelta) for each in steady):
        return False
    if not all(reaches((each, each), K_xx, K_yy, c, 1 - abs(c)) for each in steady):
        return False
    bounds = [sum(beyond_float.bound(s.function, _H, k) for s in steady) for k in (K_xx, K_yy)]
    return bool(mp.sqrt(bounds[0] * bounds[1]) < NOTHING**2 * size)


@lru_cache(maxsize=_KEPT)
def _bound(network: LayeredNetwork, order: int, K: mp.mpf) -> mp.mpf:
    if (found := _far_out(network, ("moment", "slope_square")[order], K)) is not None:
        return found
    with suppress(QuadratureError):
        parts = [_amplitudes(_slope(f, order)) for f in features_of(network)]
        roots = [sum(mp.sqrt(beyond_float.bound(f, _H, K)) for f in each) for each in parts]
        return sum((root**2 for root in roots), mp.zero)
    return mp.inf


@lru_cache(maxsize=64)
def _amplitudes(f: sp.Expr) -> tuple[sp.Expr, ...]:
    """Functions whose moduli add up to what a function with waves does not exceed."""
    if f.has(sp.DiracDelta):
        raise QuadratureError(f"δ-functions in {f}")
    if not f.has(sp.sin, sp.cos):
        return (f,)
    found = []
    for term in sp.Add.make_args(sp.expand(f)):
        waves, rest = sp.sift(sp.Mul.make_args(term), lambda e: e.has(sp.sin, sp.cos), binary=True)
        powers = [wave.as_base_exp() for wave in waves]
        if not all(isinstance(b, sp.sin | sp.cos) and e.is_positive for b, e in powers):
            raise QuadratureError(f"waves of {f} within other functions")
        found.append(sp.Mul(*rest))
    return tuple(found)


@lru_cache(maxsize=64)
def _slope(f: sp.Expr, order: int = 1) -> sp.Expr:
    return first_derivative(f, _H) if order else f


@lru_cache(maxsize=_KEPT)
def moment(network: LayeredNetwork, K: mp.mpf) -> mp.mpf:
    """⟨φ²⟩."""
    if (found := _far_out(network, "moment", K)) is not None:
        return found
    return _of_one(network, "second_moment", K, lambda f: beyond_float.single(f, f, _H, K))


@lru_cache(maxsize=_KEPT)
def slope_square(network: LayeredNetwork, K: mp.mpf) -> mp.mpf:
    """⟨φ'²⟩."""
    if (found := _far_out(network, "slope_square", K)) is not None:
        return found
    forms = _logarithmic(network)
    if _LARGEST < K < mp.inf and forms and not any(form.sides.power for form in forms):
        # Of logarithms φ' ~ 1/h counts at small signals alone.
        reference = mp.mpf(_REFERENCE)
        return slope_square(network, reference) * mp.sqrt(reference / K)

    def wide(f: sp.Expr) -> mp.mpf:
        if jumps_of(f, _H):
            raise ValueError(f"⟨φ'²⟩ of what jumps diverges, got {f}")
        return beyond_float.single(_slope(f), _slope(f), _H, K)

    return _of_one(network, "slope_square", K, wide)


def response(network: LayeredNetwork, K: mp.mpf) -> mp.mpf:
    """M'."""
    if (found := _far_out(network, "response", K)) is not None:
        return found

    def wide(f: sp.Expr) -> mp.mpf:
        # M' = ⟨h (φ²)'⟩/2K, and jumps of φ² at a add their a p(a)/2K.
        smooth = beyond_float.single(f, _between_jumps(f), _H, K, 1) / mp.sqrt(K)
        steps = jumps_of(f**2, _H)
        return smooth + sum(a * step * mp.npdf(a, 0, mp.sqrt(K)) for a, step in steps) / (2 * K)

    return _of_one(network, "susceptibility", K, wide)


def _of_one(
    network: LayeredNetwork, name: str, K: mp.mpf, wide: Callable[[sp.Expr], mp.mpf]
) -> mp.mpf:
    if K == 0 or _SMALLEST < K < _LARGEST:
        with suppress(QuadratureError, OverflowError), np.errstate(all="ignore"):
            found = float(single_average(network, name, np.array(float(K))))
            if np.isfinite(found):
                return mp.mpf(found)
    return sum(map(wide, features_of(network)), mp.zero) if mp.isfinite(K) else mp.inf


@lru_cache(maxsize=_KEPT)
def covariance(network: LayeredNetwork, *K: mp.mpf) -> mp.mpf:
    """⟨φφ⟩ of K_xx, K_yy and K_xy."""
    if (found := _far_out(network, "covariance", *K)) is not None:
        return found
    return _of_two(network, "covariance", lambda f: f, *K)


def pair_slope(network: LayeredNetwork, *K: mp.mpf) -> mp.mpf:
    """⟨φ'φ'⟩, likewise."""
    closed = closed_slope(network, *K)
    return _of_two(network, "slope", _between_jumps, *K) if closed is None else closed


def closed_slope(network: LayeredNetwork, *K: mp.mpf) -> mp.mpf | None:
    """⟨φ'φ'⟩ of wide signals, None where it has no closed form."""
    if (far := _far_out(network, "slope", *K)) is not None:
        return far
    parts = [logarithmic_slopes.slope(f, _H, *K) for f in features_of(network)]
    found = [part for part in parts if part is not None]
    return sum(found, mp.zero) if len(found) == len(parts) else None


def _far_out(network: LayeredNetwork, name: str, *K: mp.mpf) -> mp.mpf | None:
    """An average of signals so wide that φ is a power times logarithms, None of others."""
    forms = _logarithmic(network)
    if not forms:
        return _far_out_beside_waves(network, name, *K)
    if not all(form.start <= k < mp.inf for form in forms for k in K[:2]):
        return None
    found = [getattr(form, name)(*K) for form in forms]
    return None if None in found else sum(found, mp.zero)


def _far_out_beside_waves(network: LayeredNetwork, name: str, *K: mp.mpf) -> mp.mpf | None:
    """`_far_out` of φ whose waves leave such a function, of itself or of its square.

    What else they leave near zero is as rare as signals there, 1/√K, and nothing so far out.
    """
    if not all(_FAR_FROM_WAVES <= k < mp.inf for k in K[:2]):
        return None
    if len(K) == 1:
        squares = _steady(network, int(name == "slope_square"), 2)
        if not squares or not all(form.start <= K[0] for _, form in squares):
            return None
        average = "mean_slope" if name == "response" else "mean"
        return sum((getattr(form, average)(*K) for _, form in squares), mp.zero)
    steady = _steady(network, 0, 1)
    if not steady or not all(form.start <= k for _, form in steady for k in K[:2]):
        return None
    c = max(min(K[2] / mp.sqrt(K[0] * K[1]), mp.one), -mp.one)
    if not all(reaches((each, each), K[0], K[1], c, 1 - abs(c)) for each, _ in steady):
        return None
    found = [getattr(form, name)(*K) for _, form in steady]
    return None if None in found else sum(found, mp.zero)


@lru_cache(maxsize=64)
def _steady(
    network: LayeredNetwork, order: int, power: int
) -> tuple[tuple[Steady, LogarithmicPowers], ...]:
    """φ or φ' to a power without its waves; nothing if there are none, or others are left."""
    if not any(map(has_waves, features_of(network))):
        return ()
    found = []
    with suppress(QuadratureError, ValueError):
        for f in features_of(network):
            steady = without_waves(_slope(f, order) ** power, _H)
            form = None if steady.exponential else logarithmic_powers(steady.function)
            if form is None or form.sides.power < 0:
                return ()
            found.append((steady, form))
        return tuple(found)
    return ()


@lru_cache(maxsize=64)
def _logarithmic(network: LayeredNetwork) -> tuple[LogarithmicPowers, ...]:
    """The features as powers times logarithms, none if one of them is not."""
    found = [logarithmic_powers(f) for f in features_of(network)]
    return tuple(form for form in found if form) if all(found) else ()


@lru_cache(maxsize=64)
def _between_jumps(f: sp.Expr) -> sp.Expr:
    """f' without the δ-functions of jumps."""
    return slope_of_pieces(f, _H) if _slope(f).has(sp.DiracDelta) else _slope(f)


def slope_of(f: sp.Expr) -> sp.Expr:
    """f', if f does not jump."""
    found = _slope(f)
    if found.has(sp.DiracDelta):
        raise QuadratureError(
            "the response of two inputs of an activation with jumps needs kernels that float64 "
            f"holds, got {f}"
        )
    return found


def _of_two(
    network: LayeredNetwork,
    name: str,
    function: Callable[[sp.Expr], sp.Expr],
    K_xx: mp.mpf,
    K_yy: mp.mpf,
    K_xy: mp.mpf,
) -> mp.mpf:
    features = features_of(network)
    functions = [function(f) for f in features]
    parity = 1 if name == "covariance" else -1
    odd = K_xy <= 0 and all(sp.expand(f + parity * f.subs(_H, -_H)) == 0 for f in features)
    if K_xy == 0 and odd:
        return mp.zero
    if not (mp.isfinite(K_xx) and mp.isfinite(K_yy)):
        return -mp.inf if odd else mp.inf
    size = mp.sqrt(K_xx * K_yy)
    c = max(min(K_xy / size, mp.one), -mp.one) if size else mp.zero
    correlations = float(c), float(1 - c)

    def of_jumps() -> mp.mpf:
        if name == "covariance":
            return mp.zero
        jumping = [f for f in features if jumps_of(f, _H)]
        return sum((of_slopes(f, _H, (K_xx, K_yy), c, 1 - abs(c)) for f in jumping), mp.zero)

    def wide() -> mp.mpf:
        jumps = of_jumps()
        # Nothing else counts for parallel signals.
        if mp.isinf(jumps):
            return jumps
        return _beyond_float(functions, (K_xx, K_yy), (c, correlations[1])) + jumps

    if size and _SMALLEST < K_xx * K_yy < _LARGEST and correlations[1] < _NEAR:
        near = (K_xx, K_yy), correlations[1]
        with suppress(QuadratureError):
            return _nearly_parallel(network, functions, name, *near) + of_jumps()
    moderate = max(moment(network, K) for K in (K_xx, K_yy)) < _STEEP
    if not size or (moderate and _SMALLEST < K_xx * K_yy < _LARGEST):
        given = (np.array([float(v)]) for v in (K_xx, K_yy, *correlations))
        with suppress(QuadratureError, OverflowError), np.errstate(all="ignore"):
            found = float(pair_averages(network, name, *given)[0])
            if np.isfinite(found):
                return mp.mpf(found)
    found = wide()
    return -found if odd and mp.isinf(found) else found


def _nearly_parallel(
    network: LayeredNetwork,
    functions: list[sp.Expr],
    name: str,
    variances: tuple[mp.mpf, mp.mpf],
    away: float,
) -> mp.mpf:
    """⟨φφ⟩ or ⟨φ'φ'⟩ of 1 − c = ``away``; of the former no digits of 1 − ⟨φφ⟩/√(MM) cancel."""
    if not all(is_analytic(f) for f in functions):
        raise QuadratureError("functions with waves, and kinks away from zero")
    x, y = map(float, variances)
    of_numbers = [vectorised([_H], f) for f in functions]
    if name == "slope":
        return mp.mpf(sum(polar_sizes.average(f, f, x, y, away) for f in of_numbers))
    moments = [moment(network, K) for K in variances]
    norms = float(mp.sqrt(moments[0])), float(mp.sqrt(moments[1]))
    apart = sum(polar_sizes.decorrelation(f, norms, x, y, away) for f in of_numbers)
    return mp.sqrt(moments[0] * moments[1]) * (1 - mp.mpf(apart))


@lru_cache(maxsize=64)
def is_analytic(f: sp.Expr) -> bool:
    """Whether a function is, but for zero."""
    return not (has_waves(f) or any(kinks_of(f, _H)) or narrow_cuts(f, _H))


def _beyond_float(
    functions: list[sp.Expr], variances: tuple[mp.mpf, mp.mpf], correlations: tuple[mp.mpf, float]
) -> mp.mpf:
    return sum((beyond_float.pair(f, _H, variances, *correlations) for f in functions), mp.zero)


@lru_cache(maxsize=64)
def features_of(network: LayeredNetwork) -> tuple[sp.Expr, ...]:
    """Of a signal h, in numbers."""
    known = dict(feature_parameters(network))
    return tuple(map(sp.sympify, type(network).features(network.activation, _H, known)))
