"""Means and covariances of infinitely wide networks, layer by layer and in the limit of depth.

For D → ∞ the neurons are independent. Each is its start plus a sum of independent increments φ(u),
whose covariances over the inputs are those of u, Δt S_ij with S_ij = σ_b² + σ_w² q_ij and
q_ij = ⟨ψ(x_i)ψ(x_j)⟩. For ψ(x) = x that closes at every depth; for other ψ the signals are Gaussian
in the limit of infinite depth, and for finite depth see `independent_increments`. For ψ(x) = x and
φ''(0) ≠ 0 the mean becomes infinite at a time T*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import exprel

from fieldtheory import validation
from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.compiling.functions import lambdify
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    ALPHA,
    BETA,
    GAMMA,
    WideRates,
    riccati,
    wide_rates,
)
from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions
from fieldtheory.diffusions.diffusion_limit.small_increments import S_II, S_IJ, SLOPES
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_settings import SETTINGS
from fieldtheory.diffusions.feature_averages import Neurons, Starts, feature_gram
from fieldtheory.networks.activations import Activation, h
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.numerics.validity import ValidityWarning
from fieldtheory.theory.elementary_averages import K_XX


class Signals(NamedTuple):
    """Mean (P,) and covariance (P, P) of what is added to the starts of P inputs."""

    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, eq=False)
class WideNetwork:
    """An infinitely wide network for given inputs."""

    network: DiffusionNetwork
    starts: Starts

    @property
    def psi(self) -> Function:
        """ψ."""
        return function_of(self.network.input_activation.expression, h)

    @cached_property
    def neurons(self) -> Neurons:
        """Those over which ⟨ψψ⟩ is averaged."""
        starts, psi = self.starts, self.psi
        return starts.neurons if len(psi.kinks) else starts.interpolated(psi)

    @property
    def origin(self) -> Signals:
        """The signals of layer 0."""
        inputs = self.starts.values.shape[1]
        return Signals(np.zeros(inputs), np.zeros((inputs, inputs)))

    def gram(self, signals: Signals) -> np.ndarray:
        """q, (P, P)."""
        start, m = self.starts, signals.mean
        if self.network.features_are_inputs:
            across = np.outer(start.mean, m)
            return start.second + across + across.T + np.outer(m, m) + signals.covariance
        return feature_gram(self.psi, self.neurons.shifted(m), signals.covariance)

    def scales(self, signals: Signals) -> np.ndarray:
        """S, the covariance of u over Δt."""
        net = self.network
        return net.bias_variance + net.weight_variance * self.gram(signals)

    def rates(self, signals: Signals) -> Signals:
        """d/dt of the mean and the covariance for L → ∞."""
        S, functions = self.scales(signals), _rates()
        slopes = self.network.slopes
        mean, covariance = functions.mean(np.diagonal(S), *slopes), functions.covariance(S, *slopes)
        # Numbers where the slopes of φ make them vanish.
        return Signals(np.broadcast_to(mean, S.shape[:1]), np.broadcast_to(covariance, S.shape))

    def layer(self, signals: Signals) -> Signals:
        """The signals of the next layer for ψ(x) = x, where covariances close."""
        K = self.network.step * self.scales(signals)
        i, j = np.triu_indices(len(K))
        own = np.diagonal(K)
        mean, covariance = self.mean_increments(own), np.empty_like(K)
        covariance[i, j] = self.increment_covariances(own[i], own[j], K[i, j])
        covariance[j, i] = covariance[i, j]
        return Signals(signals.mean + mean, signals.covariance + covariance)

    def mean_increments(self, K: np.ndarray) -> np.ndarray:
        """⟨φ(u)⟩ of u of variances K, (n,)."""
        return _mean_of(self.network.activation)(K) + np.zeros_like(K)

    def increment_covariances(self, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Cov(φ(u), φ(v)) of u and v of variances a, b and covariances t, (n,) each."""
        entries = network_functions(ResidualNetwork(depth=1, activation=self.network.activation))
        return entries.covariance(a, b, t) - self.mean_increments(a) * self.mean_increments(b)


@lru_cache
def _rates() -> Any:
    """`WideRates` as functions."""
    mean, covariance = wide_rates()
    return WideRates(lambdify([S_II, *SLOPES], mean), lambdify([S_IJ, *SLOPES], covariance))


@lru_cache(maxsize=64)
def _mean_of(activation: Activation) -> Callable[[np.ndarray], np.ndarray]:
    """⟨φ(u)⟩ of a variance."""
    return lambdify([K_XX], GaussianAverage(activation.expression, h, K_XX))


def signals_at(wide: WideNetwork, times: np.ndarray, progress: bool = False) -> list[Signals]:
    """The signals at increasing times from 0 on, for infinite depth."""
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
            rate, span, _flat(signals), "DOP853", span[1:], rtol=SETTINGS.rtol, atol=SETTINGS.atol
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


def explosion_times(network: DiffusionNetwork, starts: Starts) -> np.ndarray | None:
    """T* of every input (PF Assumption 2.3), (P,); ∞ where moments stay finite, None if unknown."""
    mean = starts.mean
    try:
        slopes = network.slopes
    except ValueError:
        # No limit of infinite depth, so nothing that explodes in it.
        return None
    conditions = diffusion_conditions(network.activation, network.input_activation)
    if network.weight_variance == 0 or conditions.cannot_explode:
        return np.full(len(mean), np.inf)
    if not network.features_are_inputs:
        return None
    coefficients, time = _functions()
    scales = np.sqrt([network.weight_variance, network.bias_variance])
    riccati_coefficients = coefficients(*slopes[:2], *scales, mean, np.diagonal(starts.second))
    alpha, beta, gamma = np.broadcast_arrays(*riccati_coefficients)
    # Branches that are not taken may divide by zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([float(time(*each)) for each in zip(alpha, beta, gamma, strict=True)])


def warn_if_close(network: DiffusionNetwork, starts: Starts) -> None:
    """Refuse a horizon beyond the explosion of an input, warn if it is close."""
    times = explosion_times(network, starts)
    if times is None:
        return
    first = int(np.argmin(times))
    end, explosion = network.horizon, times[first]
    if end >= explosion:
        raise ValueError(
            f"horizon must be below the explosion time {explosion:.6g} of input {first}, got "
            f"{end:g}: for φ''(0) ≠ 0 the mean of infinitely wide networks is infinite from then on"
        )
    if end >= SETTINGS.close * explosion:
        warnings.warn(
            f"the horizon {end:g} is close to the explosion time {explosion:.6g} of input "
            f"{first}: networks of finite width and depth are far from the limit",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )


@lru_cache
def _functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    equation = riccati()
    return (
        lambdify(list(equation.parameters), list(equation.coefficients)),
        lambdify([ALPHA, BETA, GAMMA], equation.explosion_time),
    )
