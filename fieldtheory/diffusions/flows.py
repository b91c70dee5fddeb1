"""The limit of infinite depth of `WideNetwork`: its flow in time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from scipy.special import exprel

from fieldtheory.diffusions.wide_limit import Signals, WideNetwork
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.numerics.symmetric_matrices import packed, unpacked

RELATIVE = 1e-12


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


def _flat(signals: Signals) -> np.ndarray:
    return np.concatenate([signals.mean, packed(signals.covariance)])


def _signals(flat: np.ndarray, inputs: int) -> Signals:
    """Gaussian signals of their different entries."""
    covariance = unpacked(flat[inputs:], True)
    return Signals(flat[:inputs], covariance)


def _failed(wide: WideNetwork, reached: float) -> str:
    return (
        f"signals were followed up to the time {reached:.6g} of horizon={wide.network.horizon:g} "
        "only: they grow beyond all bounds there; a smaller horizon or weight_variance keeps them "
        "finite"
    )
