"""The limit of infinite depth of `WideNetwork`: its flow in time, and the coefficient of 1/L."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from scipy.special import exprel

from fieldtheory.diffusions.wide_limit import Signals, WideNetwork
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.numerics.symmetric_matrices import packed, unpacked

RELATIVE = 1e-12
# Of the coefficient of 1/L, which rests on difference quotients.
_TOLERANCE = {"rtol": 1e-11, "atol": 1e-13}
# Largest change of a signal in a difference quotient of the rates.
_DISPLACED = 3e-3


def signals_at(wide: WideNetwork, times: np.ndarray, progress: bool = False) -> list[Signals]:
    """The signals at increasing times from 0 on, for infinite depth.

    Raises
    ------
    ArithmeticError
        If they grow beyond all bounds before the last time.
    """
    if wide.network.is_linear:
        return _linear(wide, times)
    trajectory = [wide.origin]
    spans: Iterable[tuple[float, float]] = pairwise(times)
    for start, end in with_progress(spans, len(times) - 1, "solve") if progress else spans:
        trajectory.append(advanced(wide, trajectory[-1], start, end))
    return trajectory


def advanced(wide: WideNetwork, signals: Signals, start: float, end: float) -> Signals:
    """Gaussian signals at a later time."""
    from scipy.integrate import solve_ivp

    if start == end:
        return signals
    inputs = len(signals.mean)
    reached = start

    # Signals that start at a kink of ψ are smooth in the root of the time.
    power = 2 if start == 0 else 1

    def rate(s: float, flat: np.ndarray) -> np.ndarray:
        nonlocal reached
        t = s**power
        solution = power * s ** (power - 1) * _flat(wide.rates(_signals(flat, inputs)))
        if not np.isfinite(solution).all():
            raise ArithmeticError(_failed(wide, reached))
        reached = t
        return solution

    with np.errstate(all="ignore"):
        span = start ** (1 / power), end ** (1 / power)
        solution = solve_ivp(
            rate, span, _flat(signals), "DOP853", span[1:], rtol=RELATIVE, atol=1e-15
        )
    if not solution.success:
        raise ArithmeticError(_failed(wide, reached))
    return _signals(solution.y[:, -1], inputs)


def corrections_at(wide: WideNetwork, times: np.ndarray) -> list[tuple[Signals, Signals]]:
    """The signals at increasing times, and the coefficients of Δt that a finite depth adds."""
    from scipy.integrate import solve_ivp

    inputs = len(wide.starts.mean)
    size = inputs + inputs * (inputs + 1) // 2

    def rate(t: float, flat: np.ndarray) -> np.ndarray:
        signals, change = (_signals(part, inputs) for part in (flat[:size], flat[size : 2 * size]))
        third = flat[2 * size :].reshape(inputs, inputs)
        v = wide.rates(signals)
        gaussian = v._replace(cumulant=np.zeros_like(v.cumulant))
        growth = _along(wide, signals, gaussian, forward=True)
        change_rate = _along(wide, signals, change)
        if third.any():
            change_rate = (
                change_rate + wide.gram(signals._replace(cumulant=third)) - wide.gram(signals)
            )
        e = wide.changes(signals, growth, change_rate)
        return np.concatenate([_flat(v), _flat(e), v.cumulant.ravel()])

    state = np.zeros(2 * size + inputs**2)
    results = []
    for start, end in pairwise([0.0, *times]):
        if end > start:
            with np.errstate(all="ignore"):
                # The times are so close that one step is tried first.
                solved = solve_ivp(
                    rate, (start, end), state, "DOP853", [end], first_step=end - start, **_TOLERANCE
                )
            if not solved.success:
                raise ArithmeticError(_failed(wide, start))
            state = solved.y[:, -1]
        signals, change = (_signals(state[n * size : (n + 1) * size], inputs) for n in (0, 1))
        results.append((signals, change))
    return results


def _linear(wide: WideNetwork, times: np.ndarray) -> list[Signals]:
    """In closed form: V_ij = (z_i z_j + σ_b²/σ_w²) (e^{φ'(0)² σ_w² t} − 1)."""
    network, origin = wide.network, wide.origin
    gain = network.slopes[0] ** 2
    with np.errstate(over="ignore", invalid="ignore"):
        grown = gain * times * exprel(gain * network.weight_variance * times)
        S = wide.scales(origin)
        covariances = np.where(S == 0, 0.0, np.multiply.outer(grown, S))
    if not np.isfinite(covariances).all():
        raise ArithmeticError(
            f"signals exceed the range of float64 before horizon={network.horizon:g}; a smaller "
            "horizon or weight_variance keeps them finite"
        )
    return [origin._replace(covariance=covariance) for covariance in covariances]


def _along(
    wide: WideNetwork, signals: Signals, change: Signals, forward: bool = False
) -> np.ndarray:
    """What a change adds to q, by differences of fourth order; ``forward`` if V − e may not be."""
    size = max(float(np.abs(part).max()) for part in change)
    if size == 0:
        return np.zeros_like(signals.covariance)
    unit = _DISPLACED / max(size, 1.0)
    weights = {0: -25, 1: 48, 2: -36, 3: 16, 4: -3} if forward else {-2: 1, -1: -8, 1: 8, 2: -1}
    terms = [
        weight * wide.gram(signals + change * (steps * unit)) for steps, weight in weights.items()
    ]
    return np.asarray(sum(terms)) / (12 * unit)


def _flat(signals: Signals) -> np.ndarray:
    return np.concatenate([signals.mean, packed(signals.covariance)])


def _signals(flat: np.ndarray, inputs: int) -> Signals:
    """Gaussian signals of their different entries."""
    covariance = unpacked(flat[inputs:], True)
    return Signals(flat[:inputs], covariance, np.zeros_like(covariance))


def _failed(wide: WideNetwork, reached: float) -> str:
    return (
        f"signals were followed up to the time {reached:.6g} of horizon={wide.network.horizon:g} "
        "only: they grow beyond all bounds there; a smaller horizon or weight_variance keeps them "
        "finite"
    )
