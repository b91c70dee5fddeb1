"""The order 1/N of networks of several inputs, each quantity computed when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.routes import SETTINGS
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.gains import gains_of_fluctuations
from fieldtheory.numerics.infinite_width.homogeneous import lines_of
from fieldtheory.numerics.infinite_width.kernels import limit_kernels
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.recursion import accumulated_variance, add_skip
from fieldtheory.numerics.several_inputs import pair_fluctuations
from fieldtheory.numerics.several_inputs.feature_correlators import (
    Truncated,
    allowed_error,
    correlators,
    correlators_by_kernels,
)
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_expansions import Signals
from fieldtheory.numerics.several_inputs.pair_fluctuations import PairGains
from fieldtheory.numerics.several_inputs.sampled_paths import sampled_sources
from fieldtheory.numerics.symmetric_matrices import positions, unpacked

# Arrays of the size of G11 that are held at once.
_COPIES = 6
# Differences of kernels, relative to them, from which on inputs differ: results change by as much,
# and rounding of those of nearly collinear inputs is divided by the root of it.
_ROUNDING = 1e-10


class Collinear(NamedTuple):
    """Inputs whose signals are one up to a factor in all layers: h_β = λ h_α.

    They have λ² = K_ββ/K_αα and K_αβ = λ K_αα to rounding, and φ(h_β) = μ φ(h_α): identical inputs
    of every φ, opposite ones of odd and even φ, and inputs with different norms of φ that is
    homogeneous of degree one, which has λ = μ or, if it is even, μ = |λ|. Their fluctuations are
    those of one.
    """

    # The first of every set of collinear inputs.
    kept: np.ndarray
    # (P,): The place of each input's first one among these.
    of: np.ndarray
    # (P,): μ.
    factors: np.ndarray

    @classmethod
    def among(cls, signals: Signals) -> Collinear:
        """Those of a network."""
        inputs = signals.K.shape[-1]
        factors = np.zeros((inputs, inputs))
        for alpha in range(inputs):
            for beta in range(alpha, inputs):
                factors[alpha, beta] = _factor(signals, alpha, beta)
        first = np.argmax(factors != 0, axis=0)
        kept, of = np.unique(first, return_inverse=True)
        return cls(kept, of, factors[first, np.arange(inputs)])

    def of_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of every pair's among those of the kept inputs, and the product of factors."""
        alpha, beta = np.triu_indices(len(self.of))
        place = positions(len(self.kept) * (len(self.kept) + 1) // 2)
        return place[self.of[alpha], self.of[beta]], self.factors[alpha] * self.factors[beta]


def _factor(signals: Signals, alpha: int, beta: int) -> float:
    """μ of two inputs, 0 if they are not collinear."""
    if alpha == beta:
        return 1.0
    x, y, xy = signals.K[:, alpha, alpha], signals.K[:, beta, beta], signals.K[:, alpha, beta]
    if not (x.all() and y.all()):
        return float(np.array_equal(x, y) and np.array_equal(x, xy))
    ratio = float(np.sqrt(y[0] / x[0]))
    if (np.abs(np.sqrt(y / x) - ratio) > _ROUNDING * ratio).any():
        return 0.0
    if (np.abs(np.abs(xy) - ratio * x) > _ROUNDING * ratio * x).any():
        return 0.0
    if abs(ratio - 1) > _ROUNDING and not all(map(lines_of, signals.functions)):
        return 0.0
    if (xy > 0).all():
        return ratio
    parity = {psi.parity for psi in signals.functions}
    if parity == {1}:
        return ratio
    return -ratio if parity == {-1} and (xy < 0).all() else 0.0


@dataclass(frozen=True, eq=False)
class PairTheory:
    """The order 1/N of p = P(P+1)/2 pairs of inputs, in the order of `np.triu_indices`.

    Estimates are arrays with a first axis: the values, and independent deviations of which the
    root of the sum of squares is their standard error; exact values have none.
    """

    layers: LayerCoefficients
    gains: PairGains
    signals: Signals
    width: int

    @classmethod
    def of(cls, network: LayeredNetwork, field: MeanField, progress: bool) -> PairTheory:
        """That of a network and its inputs."""
        C, K = field.residual_kernels, field.kernels
        own, joint = field.variances[1], field.covariances[1]
        of_pairs = gains_of_fluctuations(network, own, joint, field.pairs, field.pair_gains)
        gains = PairGains(field.moving_gains, *of_pairs)
        signals = Signals.of(network, *limit_kernels(network, K[:-1], C[:-1]), progress)
        return cls(layer_coefficients(network), gains, signals, network.width)

    @cached_property
    def collinear(self) -> Collinear:
        """Groups of inputs that are one up to a factor."""
        return Collinear.among(self.signals)

    @cached_property
    def distinct(self) -> PairTheory:
        """That of the inputs of which none is collinear with another."""
        kept = self.collinear.kept
        return self if len(kept) == self.gains.own.shape[1] else self.of_inputs(kept)

    def of_inputs(self, kept: np.ndarray) -> PairTheory:
        """That of some of the inputs, in their order."""
        K, C = (kernel[:, kept][:, :, kept] for kernel in (self.signals.K, self.signals.C))
        signals = replace(self.signals, K=K, C=C)
        return replace(self, gains=self.gains.of_inputs(kept), signals=signals)

    @property
    def G11(self) -> np.ndarray:
        """Cov(C_αβ^(l), C_γδ^(m)), shape (L + 2, L + 2, p, p)."""
        return self._with_collinear(self.distinct.covariances[0]) / self.width

    @property
    def G11_error(self) -> np.ndarray:
        """Standard errors of G11, zero where it is exact."""
        return self._with_collinear(error_of(self.distinct.covariances)) / self.width

    @property
    def kernel_variance(self) -> np.ndarray:
        """Var K_αβ^(l), shape (L + 1, P, P)."""
        place, factor = self.collinear.of_pairs()
        # Of each pair with itself alone: no array of the size of G11.
        own = np.diagonal(self.distinct.covariances[0], axis1=-2, axis2=-1)[..., place]
        return unpacked(accumulated_variance(self.layers.skips, own) * factor**2, True) / self.width

    @property
    def four_point(self) -> np.ndarray:
        """V^(l) = N ⟨h_iα h_iβ ; h_jγ h_jδ⟩ for i ≠ j, shape (L + 1, p, p)."""
        theory = self.distinct
        # First what needs most memory, and says how much.
        covariance = theory.kernel_covariances[0]
        joint = pair_fluctuations.covariance_with_neurons(
            theory.layers, theory.gains, theory.signals
        )
        return self._with_collinear(covariance + joint + np.swapaxes(joint, 1, 2))

    @property
    def four_point_error(self) -> np.ndarray:
        """Standard errors of the vertex, zero where it is exact."""
        return self._with_collinear(error_of(self.distinct.kernel_covariances))

    def shift(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """⟨C⟩ − C* of all pairs from N times that of inputs, and its error, (L + 2, P, P)."""
        theory, kept = self.distinct, self.collinear.kept
        at, others, *_ = theory.gains.places
        shifts = np.zeros((2, len(own), len(at) + len(others)))
        shifts[0][:, at] = own[:, kept]
        if len(others):
            shift = theory.shift_of_pairs(own[:, kept])
            shifts[0][:, others], shifts[1][:, others] = shift[0], error_of(shift)
        place, factor = self.collinear.of_pairs()
        shift, error = shifts[0][:, place] * factor, shifts[1][:, place] * np.abs(factor)
        return unpacked(shift, True) / self.width, unpacked(error, True) / self.width

    def shift_of_pairs(self, own: np.ndarray) -> np.ndarray:
        """The estimate of N (⟨C⟩ − C*) of the covariances of inputs that differ, see `shift`."""
        others = self.gains.places[1]
        variances = self.covariances_of_pairs
        series = vars(self).get("series")
        slopes = correlators_by_kernels(self.signals, others, series.orders if series else 0)
        left_out = np.abs(slopes.left_out) + slopes.missed * np.abs(slopes.values)
        slopes = slopes._replace(
            left_out=(
                slopes.error > allowed_error(self.signals, SETTINGS.pair_derivatives_with_kinks)
            )
            * left_out
        )
        return shift_of_covariances(self, variances, slopes, own)

    @cached_property
    def series(self) -> Truncated | None:
        """⟨g ; g⟩ of all layers and pairs in Hermite coefficients."""
        return correlators(self.signals)

    @cached_property
    def sources(self) -> np.ndarray:
        """The estimate of S22/N of all layers and pairs, shape (n, L + 2, p, L + 2, p)."""
        self._require_memory()
        series = self.series
        if series is None or series.error > SETTINGS.sampled:
            return sampled_sources(self.layers, self.gains, self.signals)
        stack = [series.values]
        if series.error > allowed_error(self.signals):
            stack.append(series.left_out)
        return pair_fluctuations.weighted(self.layers, np.stack(stack))

    @cached_property
    def covariances(self) -> np.ndarray:
        """The estimate of N G11, shape (n, L + 2, L + 2, p, p)."""
        return np.stack(
            [
                pair_fluctuations.kernel_covariance(self.layers, self.gains, S22, 1)
                for S22 in self.sources
            ]
        )

    @cached_property
    def kernel_covariances(self) -> np.ndarray:
        """The estimate of N Cov(K^(l), K^(l)), shape (n, L + 1, p, p)."""
        return np.stack([accumulated_variance(self.layers.skips, G11) for G11 in self.covariances])

    @property
    def covariances_of_pairs(self) -> np.ndarray:
        """The estimate of N Cov(K_e, K_e'), e = αα, ββ, αβ, shape (n, L + 1, 3, 3, pairs)."""
        at, others, alpha, beta = self.gains.places
        if "sources" in vars(self) or len(others) == 1:
            chosen = np.stack([at[alpha], at[beta], others])
            return self.kernel_covariances[:, :, chosen[:, None], chosen]
        order = np.array([0, 2, 1])
        each = [
            theory.kernel_covariances[:, :, order[:, None], order]
            for theory in map(self.of_inputs, np.stack([alpha, beta], axis=1))
        ]
        most = max(len(one) for one in each)
        padded = [np.pad(one, ((0, most - len(one)), *[(0, 0)] * 3)) for one in each]
        return np.stack(padded, axis=-1)

    def _with_collinear(self, covariances: np.ndarray) -> np.ndarray:
        """Covariances (..., p, p) of all inputs from those of distinct ones."""
        if self.distinct is self:
            return covariances
        place, factor = self.collinear.of_pairs()
        return covariances[..., place[:, None], place] * np.outer(factor, factor)

    def _require_memory(self) -> None:
        inputs = self.gains.own.shape[1]
        entries = (len(self.layers.weights) * inputs * (inputs + 1) / 2) ** 2
        require_memory(
            f"G11 of {inputs} inputs",
            8 * _COPIES * entries,
            "use fewer inputs or layers, or ft.covariance_with(..., samples=10000), "
            "which contracts it with a matrix",
        )


def error_of(estimate: np.ndarray) -> np.ndarray:
    """The standard error of values with deviations (n, ...)."""
    return np.asarray(np.sqrt((estimate[1:] ** 2).sum(axis=0)))


def shift_of_covariances(
    theory: PairTheory, variances: np.ndarray, slopes: Truncated, own_shift: np.ndarray
) -> np.ndarray:
    """The estimate of N (⟨C⟩ − C*) of the covariances α < β: one loop."""
    layers, gains = theory.layers, theory.gains
    _, others, alpha, beta = gains.places
    a = layers.weights.reshape(len(own_shift), -1)[:, :1]
    sources = np.zeros((len(variances) + 1, len(a), len(others)))
    # Kernels of layers that nothing was added to do not fluctuate; some no layer sees.
    used = (np.abs(variances[0]).max(axis=(1, 2)) > 0) & (a[1:] > 0)
    curvature = curvatures(theory.signals, others, used)
    # What slopes leave out stands in front of the deviations of the variances.
    rows = np.delete(np.arange(len(sources)), 1)
    sources[rows, 1:] = np.einsum("eflp,nlefp->nlp", curvature, variances) / 2
    by_neurons = np.stack([slopes.values, slopes.left_out])
    sources[:2, 1:] += _of_neurons(a, layers, gains, by_neurons)
    sources *= a
    shift = np.zeros_like(sources)
    kernel, own = np.zeros_like(sources[:, 0]), np.zeros_like(own_shift[0])
    for m in range(1, len(a)):
        change = gains.pair[m] * kernel
        change[0] += gains.first[m] * own[alpha] + gains.second[m] * own[beta]
        shift[:, m] = sources[:, m] + change
        kernel = add_skip(layers.skips[m], kernel, shift[:, m])
        own = add_skip(layers.skips[m], own, own_shift[m])
    return shift


def _of_neurons(
    a: np.ndarray, layers: LayerCoefficients, gains: PairGains, slopes: np.ndarray
) -> np.ndarray:
    """Σ_{k<m} a_k Σ_ee' ⟨∂_e g^(m-1) ; g_e'^(k-1)⟩ ∂K_e^(m-1)/∂C_e'^(k), (2, L + 1, pairs)."""
    _, others, alpha, beta = gains.places
    size = len(a) - 1
    shift = np.zeros((2, size, len(others)))
    for k in range(1, size):
        # Of layer k to unit sources there, entry by source by pair.
        response = np.repeat(np.eye(3)[:, :, None], len(others), axis=2)
        for m in range(k + 1, size + 1):
            shift[:, m - 1] += a[k] * np.einsum("nefp,efp->np", slopes[:, k - 1, m - 1], response)
            if m < size:
                changes = np.stack(
                    [
                        gains.own[m][alpha] * response[0],
                        gains.own[m][beta] * response[1],
                        gains.pair[m] * response[2]
                        + gains.first[m] * response[0]
                        + gains.second[m] * response[1],
                    ]
                )
                response = add_skip(layers.skips[m], response, changes)
    return shift
