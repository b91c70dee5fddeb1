"""Averages where variances are so large, or so small, that φ is a power of its argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks import activations
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.layer_averages import similar_waves
from fieldtheory.numerics.layer_averages.asymptotes import Lines, lines_of
from fieldtheory.numerics.layer_averages.entries import Entries, network_entries
from fieldtheory.numerics.layer_averages.parallel_signals import without_angle
from fieldtheory.numerics.layer_averages.powers import Powers, powers_of
from fieldtheory.numerics.layer_averages.steady_waves import are_steady_waves, average_of_two
from fieldtheory.numerics.layer_averages.wide_pairs import CANCELLING, WIDE
from fieldtheory.numerics.layer_averages.wide_signals import WideSignals, wide_signals
from fieldtheory.theory.elementary_averages import feature_parameters

# Slopes of a straight line differ by less.
_BENT = 1e-9
# Exponents of the variances at which φ may be a power, and how straight ln M must be there.
PLACES = ((120, 150), (60, 75), (20, 25))
_STRAIGHT = 1e-12
# Powers are rounded to halves within this.
_ROUNDED = 1e-10
# Octaves of the variance over which powers of slopes are measured, and at which correlation.
_OCTAVES, _BETWEEN = 30, 0.5
# From this variance on the lines give ⟨φφ⟩ of any φ to rounding, but for 1/K.
_FAR = 2.0**44
# What is nothing beside averages of powers, at how many octaves φ is compared with them, and 1 − c
# of nearly opposite signals.
_ROUNDING, _ALL, _OPPOSITE = 1e-17, 8, 1.9
# From this variance on nothing but the slopes of the lines counts.
FARTHEST = 2.0**110
# 1 − c below which its own digits count.
_SMALL = 0.1


class Power(NamedTuple):
    """Variances from which on (or up to which) φ is a power: M ∝ K^moment, M' ∝ K^slope.

    ``start`` is the exponent of the first of them, negative for small variances.
    """

    start: int
    moment: float
    slope: float


@lru_cache(maxsize=64)
def power_of(entries: Entries, sign: int) -> Power | None:
    """The power as which φ grows (sign 1) or starts (−1); None if it is none to all digits.

    It is measured at three variances from 2^120 to 2^150, or smaller ones where M exceeds float64.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> power_of(network_entries(ResidualNetwork(depth=1, activation="relu")), 1)
    Power(start=120, moment=1.0, slope=0.0)
    """
    for start, stop in PLACES:
        places = np.array([start, (start + stop) / 2, stop])
        try:
            with np.errstate(all="ignore"):
                K = np.exp2(sign * places)
                moments, slopes = entries.second_moment(K), np.abs(entries.susceptibility(K))
                x, y = np.log2(moments), np.log2(slopes)
        except (QuadratureError, OverflowError):
            continue
        if not (np.isfinite(x).all() and np.isfinite(slopes).all()):
            continue
        if abs(x[1] - (x[0] + x[2]) / 2) <= _STRAIGHT:
            width = sign * (stop - start)
            slope = (y[2] - y[0]) / width if np.isfinite(y).all() else 0.0
            return Power(sign * start, _half((x[2] - x[0]) / width), _half(slope))
    return None


@lru_cache(maxsize=64)
def slope_power(network: LayeredNetwork, sign: int, of_pairs: bool) -> float:
    """The power of the variance as which ⟨φ'²⟩ or ⟨φ'_α φ'_β⟩ goes, where φ is a power.

    They differ where φ' vanishes far away: a peak of fixed width gives K^(-1/2) and K^(-1). Powers
    that are not known are NaN.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> network = ResidualNetwork(depth=1, activation="erf")
    >>> [slope_power(network, 1, of_pairs) for of_pairs in (False, True)]
    [-0.5, -1.0]
    """
    entries = network_entries(network)
    power = power_of(entries, sign)
    if power is None:
        return 0.0
    K = np.exp2(power.start + sign * np.array([0.0, _OCTAVES]))
    try:
        with np.errstate(all="ignore"):
            if of_pairs:
                found = pair_averages(network, "slope", K, K, np.full(2, _BETWEEN))
            else:
                found = entries.slope_square(K)
            change = np.diff(np.log2(np.abs(found)))[0]
    except QuadratureError:
        return float("nan")
    return _half(change / (sign * _OCTAVES)) if np.isfinite(change) else 0.0


def _half(power: float) -> float:
    nearest = round(2 * power) / 2
    return nearest if abs(power - nearest) < _ROUNDED else float(power)


@lru_cache(maxsize=64)
def _is_power(phi: sp.Expr, power: sp.Rational) -> bool:
    """Whether φ(s x) = s^p φ(x) for s > 0."""
    t = sp.Symbol("t", positive=True)
    sides = [phi.subs(activations.h, sign * t) / t**power for sign in (1, -1)]
    # Two numbers tell most functions at once.
    changes = [(side.subs(t, 3) - side.subs(t, 1)).evalf() for side in sides]
    if any(change.is_number and abs(complex(change)) > _BENT for change in changes):
        return False
    return not any(sp.simplify(side).has(t) for side in sides)


def is_scale_free(network: LayeredNetwork) -> bool:
    """Whether φ(s x) = s φ(x) for s > 0: two straight lines that meet in zero."""
    phi = _feature(network)
    return phi is not None and _is_power(phi, sp.S.One)


def network_lines(network: LayeredNetwork) -> Lines | None:
    """The lines that the one feature of a network approaches."""
    phi = _feature(network)
    return None if phi is None else lines_of(phi)


def farthest_lines(network: LayeredNetwork) -> Lines | None:
    """The lines that nothing is left of from the variance ``FARTHEST`` on."""
    phi = _feature(network)
    return None if phi is None else lines_of(phi) or lines_of(phi, slowly=True)


def at_angles(
    network: LayeredNetwork, K_xx: np.ndarray, K_yy: np.ndarray
) -> tuple[Lines | Powers | None, np.ndarray]:
    """The lines or powers that φ becomes, and for which variances nothing else counts."""
    nearest, lines = np.minimum(K_xx, K_yy), farthest_lines(network)
    if lines is not None and any(lines[:2]):
        bent = lines.is_homogeneous and is_scale_free(network)
        return lines, (nearest >= FARTHEST) | bent
    powers, start = _powers(network)
    return powers, nearest >= start


@lru_cache(maxsize=64)
def _powers(network: LayeredNetwork) -> tuple[Powers | None, float]:
    """The powers as which φ grows, and the variance from which on they are all."""
    phi, far = _feature(network), power_of(network_entries(network), 1)
    if phi is None or far is None or far.moment <= 1:
        return None, np.inf
    powers = powers_of(phi, far.moment, 2.0 ** (far.start / 2))
    if powers is None:
        return None, np.inf
    if _is_power(phi, sp.nsimplify(far.moment)):
        return powers, 0.0
    # Of ⟨φ'φ'⟩ smaller signals than h are (h/√K)^(2p−1), or less.
    beyond = _ROUNDING ** (-1 / (2 * far.moment - 1))
    for exponent in range(far.start // 2):
        reached = (powers_of(phi, far.moment, 2.0**n) for n in range(exponent, exponent + _ALL))
        if all(reached):
            return powers, min((2.0**exponent * beyond) ** 2, 2.0**far.start)
    return powers, 2.0**far.start


def _feature(network: LayeredNetwork) -> sp.Expr | None:
    known = dict(feature_parameters(network))
    features = type(network).features(network.activation, activations.h, known)
    return features[0] if len(features) == 1 else None


def single_average(network: LayeredNetwork, name: str, K: np.ndarray) -> np.ndarray:
    """M, M' or ⟨φ'²⟩, from the lines where φ has slopes and so large a variance that they decide.

    Parameters
    ----------
    network : LayeredNetwork
    name : {"second_moment", "susceptibility", "slope_square"}
    K : ndarray
    """
    lines, function = farthest_lines(network), getattr(network_entries(network), name)
    if lines is None or lines.A == lines.B == 0:
        return function(K)
    slope = lines.A**2 + lines.B**2
    far = K >= FARTHEST
    found = np.array(slope * K if name == "second_moment" else np.full(K.shape, slope))
    if not far.all():
        found[~far] = function(K[~far])
    return found


def pair_averages(
    network: LayeredNetwork,
    name: str,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    c: np.ndarray,
    delta: np.ndarray | None = None,
) -> np.ndarray:
    """⟨φφ⟩ or ⟨φ'φ'⟩ at correlations c, by `wide_signals` where both variances are large.

    Parameters
    ----------
    network : LayeredNetwork
    name : {"covariance", "slope"}
    K_xx, K_yy, c : ndarray
        Of one shape when broadcast.
    delta : ndarray, optional
        1 − c with its digits, for slopes.
    """
    K_xx, K_yy, c, delta = np.broadcast_arrays(K_xx, K_yy, c, 1 - c if delta is None else delta)
    if are_steady_waves(network, K_xx, K_yy):
        return average_of_two(network, name, K_xx, K_yy, c, delta)
    wide = similar_waves.reach(network, name, K_xx, K_yy, delta)
    if not wide.any():
        return _without_waves(network, name, K_xx, K_yy, c, delta)
    found, given = np.empty(c.shape), (K_xx, K_yy, c, delta)
    otherwise = partial(_without_waves, network, name)
    some = tuple(each[wide] for each in given)
    found[wide] = similar_waves.average_of_two(network, name, some, pair_averages, otherwise)
    if not wide.all():
        found[~wide] = otherwise(*(each[~wide] for each in given))
    return found


def _without_waves(
    network: LayeredNetwork,
    name: str,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    c: np.ndarray,
    delta: np.ndarray,
) -> np.ndarray:
    """Waves not being taken out."""
    powers, start = _powers(network)
    if powers is None:
        return _without_powers(network, name, K_xx, K_yy, c, delta)
    nearest = np.minimum(K_xx, K_yy)
    # Of nearly opposite signals of which one is nothing what is no power is left.
    closed = (nearest >= start) & ((delta < _OPPOSITE) | (nearest >= FARTHEST) | (not start))
    found = np.empty(c.shape)
    x, y, z, apart = (each[closed] for each in (K_xx, K_yy, c, delta))
    slopes = name == "slope"
    found[closed] = powers.slope(x, y, z, apart) if slopes else powers.covariance(x, y, z)
    if not closed.all():
        rest = (each[~closed] for each in (K_xx, K_yy, c, delta))
        found[~closed] = _without_powers(network, name, *rest)
    return found


def where_known(average: Callable[..., np.ndarray], *K: np.ndarray) -> np.ndarray:
    """An average of every entry of some arrays, NaN of NaN and where it does not converge.

    Examples
    --------
    >>> def average(K):
    ...     if (K > 2).any():
    ...         raise QuadratureError("too large")
    ...     return 2 * K
    >>> where_known(average, np.array([1.0, 3.0, np.nan, 2.0]))
    array([ 2., nan, nan,  4.])
    """
    K = tuple(np.broadcast_arrays(*K))
    known = ~np.logical_or.reduce([np.isnan(k) for k in K])
    found = np.full(K[0].shape, np.nan)
    if known.any():
        found[known] = _halved(average, *(k[known] for k in K))
    return found


def _halved(average: Callable[..., np.ndarray], *K: np.ndarray) -> np.ndarray:
    """An average of arrays (m,), taken apart where it does not converge."""
    try:
        return average(*K)
    except QuadratureError:
        if (count := len(K[0])) == 1:
            return np.array([np.nan])
        halves = [[k[part] for k in K] for part in (slice(count // 2), slice(count // 2, None))]
        return np.concatenate([_halved(average, *half) for half in halves])


def _without_powers(
    network: LayeredNetwork,
    name: str,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    c: np.ndarray,
    delta: np.ndarray,
) -> np.ndarray:
    lines, wide = network_lines(network), _wide_signals(network)
    if lines is not None:
        start = _FAR if wide is None else WIDE * wide.tau**2
    else:
        lines = farthest_lines(network)
        start = FARTHEST if lines is not None and any(lines[:2]) else np.inf
    far = np.minimum(K_xx, K_yy) >= start
    found = np.empty(c.shape)
    if lines is not None and far.any():
        given = K_xx[far], K_yy[far], c[far], delta[far]
        slopes = name == "slope"
        if wide is None:
            found[far] = (
                lines.slope(*given[:2], given[3]) if slopes else lines.covariance(*given[:3])
            )
        else:
            found[far], size = wide.slopes(*given) if slopes else wide.covariance(*given)
            # Of functions that vanish on one side, and nearly opposite signals; or without lines.
            cancelling = CANCELLING * np.abs(found[far]) < size
            far[far] = ~(cancelling & ((np.minimum(*given[:2]) < _FAR) | (not any(lines))))
    if not far.all():
        averages = network_entries(network)
        function = {
            "covariance": averages.covariance,
            "slope": averages.covariance_susceptibility,
        }[name]
        x, y, z, apart = (each[~far] for each in (K_xx, K_yy, c, delta))
        joint = z * np.sqrt(x * y)
        joint = np.where(np.abs(z) == 1, without_angle(x, y, joint), joint)
        found[~far] = function(x, y, joint)
        if name == "slope" and (of_jumps := averages.slope_of_jumps) is not None:
            found[~far] = _beside_jumps(of_jumps, found[~far], x, y, apart)
    return found


def _beside_jumps(
    of_jumps: Callable[..., np.ndarray],
    slopes: np.ndarray,
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    delta: np.ndarray,
) -> np.ndarray:
    """⟨φ'φ'⟩ with those of small angles from 1 − c."""
    near = (delta > 0) & (delta < _SMALL) & (np.minimum(K_xx, K_yy) > 0)
    if not near.any():
        return slopes
    x, y, apart = K_xx[near], K_yy[near], delta[near]
    found, root = slopes.copy(), np.sqrt(x * y)
    found[near] = of_jumps(x, y, root * (1 - apart), x * y * apart * (2 - apart))
    return found


def _wide_signals(network: LayeredNetwork) -> WideSignals | None:
    phi = _feature(network)
    return None if phi is None or is_scale_free(network) else wide_signals(phi)
