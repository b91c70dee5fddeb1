"""Averages of the waves of a network that grow exponentially, beside whatever else its φ has.

What they are beside is left out where it is nothing beside them, see `beside_waves`, and
integrated where it is not. What neither is possible for is of a size that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

import sympy as sp
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import algebraic_waves
from fieldtheory.averages.growing.algebraic_waves import Algebraic
from fieldtheory.averages.growing.beside_waves import Split, beside, size, size_beside, split_of
from fieldtheory.averages.growing.growing_waves import Waves, average, waves_of
from fieldtheory.averages.integrands.steps import step_form
from fieldtheory.networks import activations
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.overflow import unlimited_averages as averages

# What is nothing beside waves, changes that are nothing, and those of which phases are not known.
_NOTHING, _CHANGE, _UNKNOWN = mp.mpf(10) ** -20, 1e-9, 0.1
# Kernels that tell of others beyond all logarithms, and errors of integrals over rests.
_NEARER = mp.mpf(10) ** 6
_QUADRATURE = 1e-12
# Errors of Hermite coefficients.
_CANCELLED = 5e-15
_H = activations.h
Kernels = Sequence[mp.mpf]
# What is known of a number, and the size of what is not.
Known = tuple[mp.mpf, mp.mpf]


def has_growing_waves(network: LayeredNetwork) -> bool:
    """Whether φ is a sum of waves times exponentials, and of what does not grow exponentially.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> texts = "exp(h)*sin(h)", "sinh(h)", "exp(h)*sin(h)*tanh(h)", "exp(h)*sin(h)/(1 + h**2)"
    >>> [has_growing_waves(ResidualNetwork(depth=1, activation=phi)) for phi in texts]
    [True, False, True, True]
    """
    if _algebraic(network, "moment"):
        return True
    splits = [split_of(f, _H) for f in averages.features_of(network)]
    if any(f is None for f in splits):
        return False
    return any(w.rate.imag and w.rate.real for f in splits if f for w in f.waves)


def around(
    network: LayeredNetwork, name: str, K: Kernels, errors: Kernels, weight: float
) -> Callable[[Kernels], Known]:
    """⟨φφ⟩, ⟨φ'φ'⟩ or M' of kernels that differ from K by their errors, as `average` gives them.

    Parameters
    ----------
    network : LayeredNetwork
    name : {"moment", "slope_square", "response"}
    K, errors : sequence of mpf
        As those of `average`.
    weight : float
        Zero of averages that are not needed.
    """
    if not weight:
        return lambda K: (mp.zero, mp.zero)
    if _algebraic(network, "moment"):
        return _around_algebraic(network, name, K, errors)
    factors = _factors(network, name)

    def of_waves(K: Kernels) -> Known:
        return _total(average(f, g, K, errors) for f, g in factors)

    splits = _splits(network, "moment" if name == "response" else name)
    if all(f.rest == 0 for f in splits):
        return of_waves
    if not all(map(mp.isfinite, K)):
        if _is_nothing(factors, splits, K):
            return of_waves
        return lambda K: (of_waves(K)[0], mp.inf)
    if not all(_three(K)[:2]):
        return lambda K: (_at_once(network, name, K), mp.zero)
    left, change = _total(_sizes(f, K, errors) for f in splits)
    if name == "response":
        # Its derivative by K.
        left *= sum(abs(w.rate) ** 2 for f in splits for w in f.waves) + 1 / K[0]
    known = of_waves(K)[0]
    if mp.isinf(left) and _is_nothing(factors, splits, K):
        return of_waves
    if left <= _NOTHING * abs(known):
        return lambda K: _total([of_waves(K), (mp.zero, left)])
    if not change <= _UNKNOWN * left and len(K) > 1:
        return lambda K: _total([of_waves(K), (mp.zero, left)])
    if len(K) == 1:
        return lambda K: (_at_once(network, name, K), mp.zero)

    def of_rests(K: Kernels) -> Known:
        return _total(_of_rests(f, *_three(K)) for f in splits)

    rests = of_rests(K)
    if change <= _CHANGE * abs(known + rests[0]):
        return lambda K: _total([of_waves(K), rests, (mp.zero, change)])
    return lambda K: _total([of_waves(K), of_rests(K)])


def _around_algebraic(
    network: LayeredNetwork, name: str, K: Kernels, errors: Kernels
) -> Callable[[Kernels], Known]:
    """Of waves beside algebraic functions, by the shift of signals or by quadrature."""
    if len(K) == 1:
        return lambda K: _converged(network, name, K)
    found = _algebraic(network, name)
    if not found:
        return lambda K: (mp.zero, mp.inf)

    def of_waves(K: Kernels) -> Known:
        return _total(algebraic_waves.of_waves(f, K, errors) for f in found)

    if not all(map(mp.isfinite, K)):
        return of_waves
    a, b, t = _three(K)
    if not (a and b):
        return lambda K: (_at_once(network, name, K), mp.zero)
    left = sum((algebraic_waves.left_near_zero(f, a, b, t) for f in found), mp.zero)
    average = averages.moment if name == "moment" else averages.slope_square
    # Quadrature sums up products of Hermite coefficients, which have errors relative to √M.
    most = mp.sqrt(average(network, a) * average(network, b))
    aligned = sum((algebraic_waves.size(f, (a, b, abs(t))) for f in found), mp.zero)
    lost = _CANCELLED * mp.sqrt(most * (aligned + left))
    if lost < left:
        with suppress(QuadratureError):
            _at_once(network, name, K)
            return lambda K: (_at_once(network, name, K), lost)
    return lambda K: _total([of_waves(K), (mp.zero, left)])


def _converged(network: LayeredNetwork, name: str, K: Kernels) -> Known:
    with suppress(QuadratureError):
        return _at_once(network, name, K), mp.zero
    return mp.zero, mp.inf


@lru_cache(maxsize=256)
def _algebraic(network: LayeredNetwork, name: str) -> tuple[Algebraic, ...]:
    """φ, or φ' of slopes, as waves beside algebraic functions; nothing if it has others."""
    features = averages.features_of(network)
    if any(split_of(f, _H) is not None for f in features):
        return ()
    with suppress(QuadratureError):
        functions = [averages.slope_of(f) if name == "slope_square" else f for f in features]
        found = [algebraic_waves.algebraic_of(f, _H) for f in functions]
        return () if None in found else tuple(f for f in found if f is not None)
    return ()


def _is_nothing(factors: list[tuple[Waves, Waves]], splits: list[Split], K: Kernels) -> bool:
    """Whether rests of kernels beyond all logarithms are nothing beside waves.

    All exponents are linear in the kernels: smaller ones of the same ratios tell, and for those
    that are infinite much larger ones than the others.
    """
    scale = _NEARER / max(_NEARER, *(abs(each) for each in K if mp.isfinite(each)), mp.one)
    nearer = [scale * each if mp.isfinite(each) else mp.sign(each) * _NEARER**2 for each in K]
    waves = _total(average(f, g, nearer, [mp.zero] * len(K)) for f, g in factors)[0]
    left = _total(_sizes(f, nearer, [mp.zero] * len(K)) for f in splits)[0]
    return bool(left <= _NOTHING * abs(waves))


def _at_once(network: LayeredNetwork, name: str, K: Kernels) -> mp.mpf:
    """Of φ as it is."""
    if len(K) == 1:
        return getattr(averages, name)(network, *K)
    average = averages.covariance if name == "moment" else averages.pair_slope
    return average(network, *_three(K))


def _total(pairs: Iterable[Known]) -> Known:
    known, unknown = (sum(each, mp.zero) for each in zip(*pairs, strict=True))
    return known, unknown


def _three(K: Kernels) -> Kernels:
    """K_xx, K_yy and K_xy."""
    return K if len(K) == 3 else (K[0], K[0], K[-1])


def _sizes(f: Split, K: Kernels, errors: Kernels) -> Known:
    """What waves beside the rest and the rest beside itself do not exceed, and their change."""
    a, b, t = _three(K)
    error = sum(_three(errors), mp.zero)
    found = [(size(f, _H, a) * size(f, _H, b), error / min(a, b) if min(a, b) else mp.inf)]
    for w in f.waves:
        for one, other in ((a, b), (b, a)):
            # Derivatives by a kernel are those by signals, twice.
            slope = (abs(w.rate) + 1 / mp.sqrt(other)) * (1 + abs(t) / other) if other else mp.inf
            found.append((size_beside(w, f, _H, one, other, t), slope**2 * error))
    return _total((most, most * change if most else most) for most, change in found)


def _of_rests(f: Split, a: mp.mpf, b: mp.mpf, t: mp.mpf) -> Known:
    """⟨w r⟩ + ⟨r w⟩ + ⟨r r⟩."""
    found = []
    for w in f.waves:
        for K in ((a, b, t), (b, a, t)):
            found.append(beside(w, f, _H, *K) or (mp.zero, size_beside(w, f, _H, *K)))
    most = size(f, _H, a) * size(f, _H, b)
    try:
        own = averages.covariance(_of_rest(f.rest), a, b, t), _QUADRATURE * most
    except QuadratureError:
        own = mp.zero, most
    return _total([*found, own])


@lru_cache(maxsize=64)
def _of_rest(rest: sp.Expr) -> LayeredNetwork:
    """A network whose averages are those of a rest, whose waves its steps let stand out."""
    return ResidualNetwork(depth=1, activation=step_form(rest))


@lru_cache(maxsize=256)
def _factors(network: LayeredNetwork, name: str) -> list[tuple[Waves, Waves]]:
    """The waves f and g of the averages ⟨f(x) g(y)⟩ whose sum it is."""
    if name == "response":
        # ⟨(φ²)''⟩/2, of which no terms cancel.
        squares = [sp.diff(f.wave**2, _H, 2) / 2 for f in _splits(network, "moment")]
        return [(waves_of(f, _H) or (), waves_of(sp.S.One, _H) or ()) for f in squares]
    return [(f.waves, f.waves) for f in _splits(network, name)]


@lru_cache(maxsize=256)
def _splits(network: LayeredNetwork, name: str) -> list[Split]:
    """φ, or φ' of slopes, as waves and rests."""
    found = averages.features_of(network)
    splits = [split_of(averages.slope_of(f) if name == "slope_square" else f, _H) for f in found]
    if None in splits:
        raise QuadratureError(f"waves of the slope of {found} do not stand beside its other parts")
    return [f for f in splits if f is not None]
