"""Averages of wide signals of φ with waves, with all digits of 1 − c.

Of signals with waves that are left φ is taken as it is, see `parallel_waves`. Where they differ so
much that waves average out, φ̄ is left, the mean of φ over their phases, with ⟨φ²⟩ − ⟨φ̄²⟩ in the
variances, and what comes from signals near zero, where amplitudes bend:

    1 − ⟨φφ⟩/√(MM) = 1 − r + r (1 − ⟨φ̄φ̄⟩/√(M̄M̄)) − near/√(MM),   r² = M̄M̄/(MM).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.steps import first_derivative
from fieldtheory.averages.oscillating import parallel_waves, waves_near_zero
from fieldtheory.averages.oscillating.amplitudes import Amplitudes, amplitudes_of
from fieldtheory.averages.oscillating.waves import has_waves, without_waves
from fieldtheory.networks import activations
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.theory.elementary_averages import feature_parameters

_H = activations.h
# Variances beyond which products of them leave float64.
_WIDEST = 1e140
Rule = Callable[..., np.ndarray]


@lru_cache(maxsize=64)
def _parts(network: LayeredNetwork, name: str) -> tuple[Amplitudes, LayeredNetwork | None] | None:
    """The amplitudes of φ, or of φ' for the name "slope", and a network of φ̄, if φ̄ is not zero."""
    phi = _feature(network)
    if phi is None:
        return None
    if not has_waves(phi) or (slope := first_derivative(phi, _H)).has(sp.DiracDelta):
        return None
    found = amplitudes_of(slope if name == "slope" else phi, _H)
    if found is None:
        return None
    try:
        steady = without_waves(phi, _H)
    except QuadratureError:
        return None
    if steady.exponential:
        return None
    mean = steady.function
    if not mean.has(_H):
        return (found, None) if mean == 0 else None
    return found, ResidualNetwork(depth=1, activation=mean)


def _feature(network: LayeredNetwork) -> sp.Expr | None:
    known = dict(feature_parameters(network))
    features = type(network).features(network.activation, _H, known)
    return sp.sympify(features[0]) if len(features) == 1 else None


def reach(
    network: LayeredNetwork, name: str, K_xx: np.ndarray, K_yy: np.ndarray, delta: np.ndarray
) -> np.ndarray:
    """Of which signals, with 1 − c = δ, averages are those below."""
    parts = _parts(network, name)
    if parts is None:
        return np.zeros(delta.shape, dtype=bool)
    wide = parallel_waves.is_wide(parts[0], K_xx, K_yy)
    narrow = parallel_waves.is_narrow(parts[0], K_xx, K_yy, delta) & (K_xx > 0) & (K_yy > 0)
    return (wide | narrow) & (np.maximum(K_xx, K_yy) < _WIDEST)


def average_of_two(
    network: LayeredNetwork,
    name: str,
    given: tuple[np.ndarray, ...],
    steady: Rule,
    otherwise: Rule,
) -> np.ndarray:
    """⟨φφ⟩ or ⟨φ'φ'⟩, by ``name`` "covariance" or "slope".

    Parameters
    ----------
    network : LayeredNetwork
    name : {"covariance", "slope"}
    given : tuple of ndarray, shape (n,)
        Variances, c and 1 − c.
    steady : callable
        The averages of another network, of its name and of the arrays given.
    otherwise : callable
        Those of this network, without waves being taken out.
    """
    parts = _parts(network, name)
    assert parts is not None
    f, mean = parts
    found = np.zeros(given[0].shape)
    for i, pair in enumerate(zip(*(each.tolist() for each in given), strict=True)):
        one = tuple(each[i : i + 1] for each in given)
        a, b, g, away = _mirrored(f, *pair)
        try:
            if parallel_waves.reaches(f, a, b, away):
                found[i] = parallel_waves.product(f, g, a, b, away)
                continue
            found[i] = 0.0 if mean is None else steady(mean, name, *one)[0]
            found[i] += waves_near_zero.left_near_zero(f, g, a, b, away, found[i])
        except QuadratureError:
            found[i] = otherwise(*one)[0]
    return found


def decorrelation(
    network: LayeredNetwork, given: tuple[np.ndarray, ...], steady: Rule, otherwise: Rule
) -> np.ndarray:
    """1 − ⟨φφ⟩/√(MM), of variances, √(MM) and 1 − c, as `average_of_two`."""
    parts = _parts(network, "covariance")
    assert parts is not None
    f, mean = parts
    found = np.zeros(given[0].shape)
    for i, (a, b, size, delta) in enumerate(zip(*(v.tolist() for v in given), strict=True)):
        one = tuple(each[i : i + 1] for each in given)
        try:
            if parallel_waves.reaches(f, a, b, delta):
                if min(a, b) * delta * f.least**2 < parallel_waves.LEAST:
                    found[i] = otherwise(*one)[0]
                    continue
                norms = [np.sqrt(size)] * 2 if a == b else [_norm(network, K) for K in (a, b)]
                one_side, other = (parallel_waves.Side(f, float(norm)) for norm in norms)
                found[i] = parallel_waves.difference(one_side, other, a, b, delta)
                continue
            found[i] = _of_means(network, f, mean, a, b, size, delta, steady)
        except QuadratureError:
            found[i] = otherwise(*one)[0]
    return found


def _of_means(
    network: LayeredNetwork,
    f: Amplitudes,
    mean: LayeredNetwork | None,
    a: float,
    b: float,
    size: float,
    delta: float,
    steady: Rule,
) -> float:
    if mean is None:
        return 1 - waves_near_zero.left_near_zero(f, f, a, b, delta, size) / size
    of_mean = [float(network_entries(mean).second_moment(K)) for K in (a, b)]
    more = [waves_near_zero.more(f, K) for K in (a, b)]
    shares = [each / (each + M) for each, M in zip(more, of_mean, strict=True)]
    # 1 − r, of what waves share in both variances.
    lost = -np.expm1(sum(np.log1p(-share) for share in shares) / 2)
    root = np.array([np.sqrt(of_mean[0] * of_mean[1])])
    apart = steady(mean, np.array([a]), np.array([b]), root, np.array([delta]))[0]
    found = lost + (1 - lost) * apart
    return float(found - waves_near_zero.left_near_zero(f, f, a, b, delta, found * size) / size)


def _norm(network: LayeredNetwork, K: float) -> float:
    return float(np.sqrt(network_entries(network).second_moment(K)))


def _mirrored(
    f: Amplitudes, a: float, b: float, c: float, delta: float
) -> tuple[float, float, Amplitudes, float]:
    """a and b, the function of y, or of −y for negative c, and 1 − |c|."""
    return (a, b, f, delta) if c > 0 else (a, b, f.mirrored, 1 + c)
