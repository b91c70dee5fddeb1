"""The law of one output of a finite network: Hermite polynomials or a mixture of Gaussians.

Given the output kernel C an output is Gaussian, y | C ~ N(0, C), and C fluctuates, so that

    p(y) = ⟨N(y; 0, C)⟩ = ⟨exp((C − C*) ∂²/2)⟩ N(y; 0, C*),   κ_2n(y) = (2n − 1)!! κ_n(C).

`Edgeworth` expands the exponential in 1/N; `Mixture` takes a law of C > 0 with the same moments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from fieldtheory import validation


@dataclass(frozen=True)
class _Settings:
    """Numbers of the laws of outputs.

    Parameters
    ----------
    block : int
        Values that are evaluated at once, each with all variances of a mixture.
    spacing, small, large : float
        Spacing of the nodes of ln C in units of its spread, and logarithms of the density at
        which it is cut off: large kernels make the tails.
    most_skewed, nothing : float
        The largest |s|, beyond which rare kernels carry the third cumulant, and the relative
        variance that is none.
    wider : float
        Steps of an interval that contains a root, in its logarithm.
    """

    block: int = 4096
    spacing: float = 0.25
    small: float = 50.0
    large: float = 700.0
    most_skewed: float = 8.0
    nothing: float = 1e-24
    wider: float = 4.0


_SETTINGS = _Settings()


class OutputMoments(NamedTuple):
    """Moments that determine the law of one output, at the width of the network.

    Parameters
    ----------
    leading : float
        C*.
    floor : float
        The variance of the readout's bias, which C never falls below.
    shift, variance : float
        The terms of order 1/N of ⟨C⟩ and of Var C.
    order : int
        1 or 2.
    shift_2, variance_2, third_cumulant : float
        Those of order 1/N².
    mean, spread : float
        ⟨C⟩ and Var C, resummed at order 2.
    """

    leading: float
    floor: float
    shift: float
    variance: float
    order: int = 1
    shift_2: float = 0.0
    variance_2: float = 0.0
    third_cumulant: float = 0.0
    mean: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, solution: Any, floor: float) -> OutputMoments:
        """Those of the output of a `Solution` of one input, to its order."""
        C = float(solution.residual_kernels[-1])
        if C == 0:
            raise ValueError("the output vanishes: it has no density")
        first = cls(C, floor, float(solution.mean_shift[-1]), float(solution.G11[-1, -1]))
        if solution.order == 1:
            return first
        try:
            mean, spread = solution.resummed_mean[-1], solution.resummed_variance[-1]
        except OverflowError:
            # No law has them; the expansion of the density does without.
            mean = spread = np.inf
        return first._replace(
            order=2,
            shift_2=float(solution.mean_shift_2[-1]),
            variance_2=float(solution.variance_2[-1]),
            third_cumulant=float(solution.third_cumulant[-1]),
            mean=float(mean),
            spread=float(spread),
        )


@dataclass(frozen=True, eq=False)
class OutputLaw(ABC):
    """The law of one output y of a network of finite width; symmetric about 0.

    What `Solution.output_law` returns. The names are those of `scipy.stats`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.3, width=30)
    >>> law = ft.solve(net, 0.5, order=2).output_law()
    >>> t = law.ppf(0.995)
    >>> round(float(2 * law.sf(t)), 12)  # P(|y| > t)
    0.01
    """

    @abstractmethod
    def _density(self, y: np.ndarray) -> np.ndarray:
        """At y of shape (n,)."""

    @abstractmethod
    def _beyond(self, y: np.ndarray) -> np.ndarray:
        """P(Y > y) for y >= 0 of shape (n,), without cancellation."""

    def pdf(self, y: Any) -> np.ndarray:
        """The density at y, a number or an array."""
        return _in_blocks(self._density, validation.finite_array("y", y))

    def sf(self, y: Any) -> np.ndarray:
        """P(Y > y), to the same relative error far out; 2 sf(t) is P(abs(Y) > t)."""
        values = validation.finite_array("y", y)
        beyond = _in_blocks(self._beyond, np.abs(values))
        return np.where(values < 0, 1 - beyond, beyond)

    def cdf(self, y: Any) -> np.ndarray:
        """P(Y < y)."""
        return self.sf(-validation.finite_array("y", y))

    def ppf(self, p: Any) -> np.ndarray:
        """The quantile y with P(Y < y) = p, 0 < p < 1; small p keep their relative precision."""
        from scipy.optimize import elementwise

        values = validation.finite_array("p", p)
        outside = (values <= 0) | (values >= 1)
        if outside.any():
            raise ValueError(f"p must lie between 0 and 1, got {float(values[outside][0])!r}")
        tail = np.minimum(values, 1 - values)
        high = np.full_like(tail, self._scale)
        while (too_low := self.sf(high) > tail).any():
            high[too_low] *= _SETTINGS.wider
        root = elementwise.find_root(
            lambda y, q: self.sf(y) - q, (np.zeros_like(high), high), args=(tail,)
        )
        return np.where(tail == 0.5, 0.0, np.copysign(root.x, values - 0.5))

    @property
    @abstractmethod
    def _scale(self) -> float:
        """The standard deviation of an output, about."""


@dataclass(frozen=True, eq=False)
class Edgeworth(OutputLaw):
    """A Gaussian with Hermite polynomials: the expansion of the density in 1/N.

        p(y) = N(y; 0, C*) [1 + Σ_n b_n He_2n(y/√C*)],   b_n = d_n/(2 C*)^n
        order 1/N:   d_1 = m_1,  d_2 = v_1/2
        order 1/N²:  d_1 += m_2,  d_2 += (v_2 + m_1²)/2,  d_3 = κ_3/6 + m_1 v_1/2,  d_4 = v_1²/8

    with m, v and κ_3 the terms of ⟨C⟩ − C*, Var C and the third cumulant of C. The density may be
    negative where the terms are not small, and far out it falls off as a Gaussian, which that of a
    network does not.

    Parameters
    ----------
    variance : float
        C*.
    coefficients : tuple of float
        b_1, b_2, ...
    """

    variance: float
    coefficients: tuple[float, ...] = field(repr=False)

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.variance))

    def _density(self, y: np.ndarray) -> np.ndarray:
        z = y / self._scale
        terms = (b * special.eval_hermitenorm(2 * n, z) for n, b in self._numbered)
        return _gaussian(z) / self._scale * (1 + sum(terms))

    def _beyond(self, y: np.ndarray) -> np.ndarray:
        z = y / self._scale
        terms = (b * special.eval_hermitenorm(2 * n - 1, z) for n, b in self._numbered)
        return special.ndtr(-z) + _gaussian(z) * sum(terms)

    @property
    def _numbered(self) -> list[tuple[int, float]]:
        return list(enumerate(self.coefficients, start=1))


@dataclass(frozen=True, eq=False)
class Mixture(OutputLaw):
    """Gaussians whose variance follows a positive law: p(y) = Σ_k w_k N(y; 0, C_k).

    Parameters
    ----------
    variances, weights : ndarray, shape (n,)
        C_k and w_k.
    """

    variances: np.ndarray
    weights: np.ndarray

    def __repr__(self) -> str:
        return f"Mixture(mean={self._scale**2:.6g}, variances={len(self.variances)})"

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.weights @ self.variances))

    def _density(self, y: np.ndarray) -> np.ndarray:
        spreads = np.sqrt(self.variances)
        return _gaussian(y[:, None] / spreads) @ (self.weights / spreads)

    def _beyond(self, y: np.ndarray) -> np.ndarray:
        return special.ndtr(-y[:, None] / np.sqrt(self.variances)) @ self.weights


def edgeworth(moments: OutputMoments) -> Edgeworth:
    """The expansion of the law in 1/N, to the order of the moments."""
    C, m1, v1 = moments.leading, moments.shift, moments.variance
    terms = [m1, v1 / 2]
    if moments.order == 2:
        terms = [
            m1 + moments.shift_2,
            (v1 + moments.variance_2 + m1**2) / 2,
            moments.third_cumulant / 6 + m1 * v1 / 2,
            v1**2 / 8,
        ]
    return Edgeworth(C, tuple(d / (2 * C) ** n for n, d in enumerate(terms, start=1)))


def mixture(moments: OutputMoments) -> Mixture:
    """Gaussians mixed by a generalised gamma law of C above the variance c of the bias.

        C = c + exp(μ + σ z),   density of z ∝ exp[−(exp(s z) − 1 − s z)/s²]

    s = σ is the gamma law, s = 0 the log-normal one, s = −σ the inverse gamma one. To leading order
    κ_3 = (3 − s/σ) (Var C)²/(C* − c), from which s/σ follows at order 2, up to a skewness of C of
    about 8; at order 1 it is 1. Then μ and σ are those of the mean and the variance.

    Raises
    ------
    ValueError
        If the moments are of no positive law.
    """
    first = moments.order == 1
    from scipy import optimize

    total = moments.leading + moments.shift if first else moments.mean
    mean, spread = total - moments.floor, moments.variance if first else moments.spread
    if moments.variance <= _SETTINGS.nothing * moments.leading**2:
        return Mixture(np.array([total]), np.ones(1))
    if not (0 < mean < np.inf and 0 < spread < np.inf):
        raise ValueError(
            "no positive law of the output kernel has its mean and variance to order "
            f"{'1/N' if first else '1/N²'}: {total:.4g} and {spread:.4g}, the "
            f"variance of the bias being {moments.floor:.4g}; method='edgeworth' or a wider network"
        )
    above = moments.leading - moments.floor
    skew = 1.0 if first else 3 - moments.third_cumulant * above / moments.variance**2
    start = np.sqrt(np.log1p(spread / mean**2))
    skew = float(np.clip(skew, -_SETTINGS.most_skewed / start, _SETTINGS.most_skewed / start))
    wanted = float(np.log(spread / mean**2))

    def excess(sigma: float) -> float:
        return _log_relative_variance(skew * sigma, sigma) - wanted

    sigma = optimize.brentq(excess, *_bracket(excess, start, skew), xtol=1e-300, rtol=1e-14)
    z, log_weights = _standard_law(skew * sigma, sigma)
    # Kernels that underflow count as the smallest one that does not.
    kept = sigma * (z - z[-1]) > -_SETTINGS.large
    values, weights = np.exp(sigma * (z - z[-1])[kept]), np.exp(log_weights[kept])
    weights[0] += np.exp(log_weights[~kept]).sum()
    return Mixture(moments.floor + values * (mean / (weights @ values)), weights)


def nearest_mixture(moments: OutputMoments) -> tuple[Mixture, str]:
    """`mixture` of the moments that a positive law has, and which ones are left out.

    Those of order 1/N² are left out first, then the shift of the mean: the mean C* is above the
    variance of the bias wherever C fluctuates, so that a gamma law has it with any variance.
    """
    first = moments._replace(order=1)
    second, shift = "the terms of order 1/N²", "the shift of its mean to order 1/N"
    tried = [(first, f"{second} are"), (first._replace(shift=0.0), f"{second} and {shift} are")]
    if moments.order == 1:
        tried = [(first._replace(shift=0.0), f"{shift} is")]
    for some, left_out in [(moments, ""), *tried[:-1]]:
        with suppress(ValueError):
            return mixture(some), left_out
    some, left_out = tried[-1]
    return mixture(some), left_out


def _bracket(excess: Callable[[float], float], guess: float, skew: float) -> tuple[float, float]:
    """An interval with the σ of the variance that is wanted."""
    # For s < 0 the second moment exists up to σ² = 1/(2|s/σ|), where it diverges.
    most = np.sqrt(0.5 / -skew) * (1 - 1e-9) if skew < 0 else np.inf
    low = high = min(guess, most)
    while excess(low) > 0:
        low /= 2
    while excess(high) < 0:
        if high == most:
            raise ValueError(
                "no positive law of the output kernel has its mean, variance and third cumulant to "
                "order 1/N²; method='edgeworth' or a wider network"
            )
        high = min(2 * high, most)
    return low, high


def _log_relative_variance(s: float, sigma: float) -> float:
    """ln(Var X/⟨X⟩²) of X = exp(σ z), without cancellation or overflow."""
    z, log_weights = _standard_law(s, sigma)
    x = sigma * z - special.logsumexp(sigma * z + log_weights)
    with np.errstate(divide="ignore"):
        deviation = np.maximum(x, 0.0) + np.log(-np.expm1(-np.abs(x)))
    return float(special.logsumexp(2 * deviation + log_weights))


def _standard_law(s: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Equidistant z and the logarithms of their weights, which sum to 1.

    The trapezoidal rule converges geometrically for what is smooth and falls off to both sides.
    """
    step = _SETTINGS.spacing / max(1.0, abs(s), sigma)
    z = np.arange(-_edge(-s, _SETTINGS.small), _edge(s, _SETTINGS.large) + step, step)
    log_weights = -_exponent(s, z)
    return z, log_weights - special.logsumexp(log_weights)


def _edge(s: float, largest: float) -> float:
    """The z > 0 at which the exponent has reached a value."""
    from scipy import optimize

    def excess(z: float) -> float:
        return float(_exponent(s, np.array(z))) - largest

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(optimize.bisect(excess, 0, high, rtol=1e-3))


def _exponent(s: float, z: np.ndarray) -> np.ndarray:
    """(exp(s z) − 1 − s z)/s²."""
    x = s * z
    near = np.abs(x) < 1e-2
    far = np.where(near, 1.0, x)
    series = 1 / 2 + x / 6 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6)))
    with np.errstate(over="ignore"):
        return z**2 * np.where(near, series, (np.expm1(far) - far) / far**2)


def _gaussian(z: np.ndarray) -> np.ndarray:
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def _in_blocks(function: Callable[[np.ndarray], np.ndarray], y: np.ndarray) -> np.ndarray:
    """A function of one axis for any shape, without all values times all variances at once."""
    flat = y.reshape(-1)
    starts = range(0, flat.size, _SETTINGS.block)
    values = np.concatenate([function(flat[start : start + _SETTINGS.block]) for start in starts])
    return values.reshape(y.shape)
