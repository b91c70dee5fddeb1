"""Averages of two signals of powers times waves, h² sin(h) or h sin(h²), in closed form.

Of nearly parallel signals ⟨φφ⟩ has factors e^{-(√K_xx − √K_yy)²/2 − √(K_xx K_yy) δ}: with as
many digits as 1 − c = δ takes, mpmath has all of them, and those of 1 − ⟨φφ⟩/√(MM).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mp

from fieldtheory.averages.growing import chirps
from fieldtheory.averages.growing.chirps import Chirps, chirps_of
from fieldtheory.averages.growing.growing_waves import Waves, average, waves_of
from fieldtheory.networks import activations
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.theory.elementary_averages import feature_parameters

# Digits beside those of δ and those that cancel where variances are small, and the smallest.
_DIGITS, _CANCELLING, _NARROWEST = 50, 10, 1e-30
# Correlations of which c has more digits than 1 − c.
_WEAK = 0.5
_H = activations.h


@lru_cache(maxsize=64)
def steady_waves(network: LayeredNetwork, name: str = "covariance") -> tuple[Waves | Chirps, ...]:
    """The waves of φ, or of φ' for the name "slope"; none of others, and where none has a power.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> texts = "h*sin(h)", "sin(h)", "h**2", "h*tanh(h)", "exp(h)*sin(h)", "h*sin(h**2)"
    >>> [bool(steady_waves(ResidualNetwork(depth=1, activation=phi))) for phi in texts]
    [True, False, False, False, False, True]
    """
    known = dict(feature_parameters(network))
    features = map(sp.sympify, type(network).features(network.activation, _H, known))
    functions = [sp.diff(f, _H) if name == "slope" else f for f in features]
    found = [waves_of(f, _H) for f in functions]
    if None in found:
        return _chirps(functions)
    terms = [w for waves in found for w in waves or ()]
    if any(w.rate.real for w in terms):
        return ()
    moving = any(w.rate.imag and (w.power or name == "slope") for w in terms)
    return tuple(waves for waves in found if waves is not None) if moving else ()


def _chirps(functions: list[sp.Expr]) -> tuple[Chirps, ...]:
    """Of phases of which some are quadratic."""
    if not any(f.has(sp.sin, sp.cos) for f in functions):
        return ()
    found = [chirps_of(f, _H) for f in functions]
    moving = any(each.bend.imag for f in found for each in f or ())
    return tuple(f for f in found if f is not None) if moving and None not in found else ()


def are_steady_waves(network: LayeredNetwork, K_xx: np.ndarray, K_yy: np.ndarray) -> bool:
    """Whether there are the averages below of signals of a network."""
    return bool(steady_waves(network) and (np.minimum(K_xx, K_yy) > _NARROWEST).all())


def average_of_two(
    network: LayeredNetwork,
    name: str,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    c: np.ndarray,
    delta: np.ndarray,
) -> np.ndarray:
    """⟨φφ⟩ or ⟨φ'φ'⟩, by ``name`` "covariance" or "slope", of variances, c and 1 − c."""
    return _vectorised(partial(_average, steady_waves(network, name)), K_xx, K_yy, delta, c)


def decorrelation(
    network: LayeredNetwork, K_xx: np.ndarray, K_yy: np.ndarray, delta: np.ndarray
) -> np.ndarray:
    """1 − ⟨φφ⟩/√(MM)."""
    return _vectorised(partial(_decorrelation, steady_waves(network)), K_xx, K_yy, delta)


def _vectorised(function: Callable[..., mp.mpf], *given: np.ndarray) -> np.ndarray:
    *variances, delta = given[:3]
    narrow = np.log10(np.min(variances, initial=1.0))
    near = np.log10(np.min(delta, initial=1.0, where=delta > 0))
    with mp.workdps(_DIGITS - int(near + _CANCELLING * narrow)):
        numbers = (np.frompyfunc(mp.mpf, 1, 1)(each) for each in given)
        return np.asarray(np.frompyfunc(function, len(given), 1)(*numbers), dtype=float)


def _average(
    features: tuple[Waves | Chirps, ...],
    a: mp.mpf,
    b: mp.mpf,
    delta: mp.mpf,
    c: mp.mpf = mp.one,
) -> mp.mpf:
    weak = abs(c) < _WEAK
    t = mp.sqrt(a * b) * (c if weak else 1 - delta)
    determinant = a * b * ((1 - c**2) if weak else delta * (2 - delta))
    return sum((_of_two(f, a, b, t, determinant) for f in features), mp.zero)


def _of_two(f: Any, a: mp.mpf, b: mp.mpf, t: mp.mpf, determinant: mp.mpf) -> mp.mpf:
    if any(isinstance(each, chirps.Chirp) for each in f):
        return chirps.average(f, f, a, b, t, determinant)
    return average(f, f, (a, b, t), (0, 0, 0))[0]


def _decorrelation(
    features: tuple[Waves | Chirps, ...], a: mp.mpf, b: mp.mpf, delta: mp.mpf
) -> mp.mpf:
    size = mp.sqrt(_average(features, a, a, mp.zero) * _average(features, b, b, mp.zero))
    return 1 - _average(features, a, b, delta) / size
