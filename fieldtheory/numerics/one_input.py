"""The orders 1/N and 1/N² of networks of one input."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.mehler import natural_size
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.routes import SETTINGS, tolerance
from fieldtheory.compiling.translation import is_closed
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.kernels import limit_variances
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.neurons.finite_width import (
    Neurons,
    at_first_order,
    at_second_order,
    squares_of_layers,
)
from fieldtheory.numerics.neurons.interacting_neurons import SecondOrder
from fieldtheory.numerics.recursion import (
    accumulate,
    propagate,
    ratio,
    require_finite_layers,
    respond,
)
from fieldtheory.numerics.validity import warn_if_orders_are_close
from fieldtheory.theory.elementary_averages import X

# The most orders of Mehler's series, the least correlation that counts, and the share of the
# tolerance that orders beyond them and errors of coefficients may have.
_MOST_ORDERS, _WEAK, _SHARE = 512, 0.1, 1e-2


def signal_covariance(network: LayeredNetwork, K: np.ndarray) -> np.ndarray:
    """Cov(h^(k), h^(l)) = γ_{k+1} ... γ_l K^(k) for k <= l, shape (L + 1, L + 1).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> signal_covariance(ResidualNetwork(depth=1, skip_scale=0.5), np.array([1.0, 2.0]))
    array([[1. , 0.5],
           [0.5, 2. ]])
    """
    covariance = np.empty((len(K), len(K)))
    for k in range(len(K)):
        skips = np.concatenate([[1.0], np.cumprod(network.skip_scales[k:])])
        covariance[k, k:] = covariance[k:, k] = skips * K[k]
    return covariance


def connected_squares(
    network: LayeredNetwork, K: np.ndarray, C: np.ndarray | None = None
) -> np.ndarray:
    """⟨φ²(h^(k)) ; φ²(h^(l))⟩ for all layers, shape (L + 1, L + 1)."""
    averages = network_functions(network)
    if not is_closed(averages.averages.connected):
        neurons = Neurons.of(network, np.ones(len(K)), K, C)
        series = _by_series(neurons)
        return squares_of_layers(neurons) if series is None else series
    covariance = signal_covariance(network, K)
    # Signals that vanish do not fluctuate.
    (alive,) = np.nonzero(K > 0)
    one, other = np.triu_indices(len(alive))
    lower, upper = alive[one], alive[other]
    values = np.zeros((len(K), len(K)))
    values[lower, upper] = averages.connected(K[lower], K[upper], covariance[lower, upper])
    values[upper, lower] = values[lower, upper]
    return values


def _by_series(neurons: Neurons) -> np.ndarray | None:
    """Σ_{n>0} f_n(K_k) f_n(K_l) c_klⁿ, where no correlation of adjacent layers is too strong."""
    allowed = max(tolerance(), SETTINGS.first_order)
    strongest = float(np.max(np.abs(neurons.correlations), initial=_WEAK))
    if not strongest < 1 or np.log(_SHARE * allowed) < _MOST_ORDERS * np.log(strongest):
        return None
    order = int(np.ceil(np.log(_SHARE * allowed) / np.log(strongest)))
    values, errors = Coefficients(neurons.square, order)(neurons.K)
    own = natural_size(values, 1)
    if not (errors[:, 1:-1].max(axis=1) <= _SHARE * allowed * np.sqrt(own)).all():
        return None
    routes.record(routes.SERIES, own.size * (own.size + 1) // 2)
    n = np.arange(1, order + 1)
    if neurons.square.parity == 1:
        n = n[1::2]
    f, squares = values[:, n], np.diag(own)
    earlier = f.copy()
    for l, c in enumerate(neurons.correlations, start=1):
        earlier[:l] *= c**n
        squares[l, :l] = squares[:l, l] = earlier[:l] @ f[l]
    return squares


def source_covariance(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    K: np.ndarray,
    C: np.ndarray | None = None,
) -> np.ndarray:
    """S22/N, shape (L + 2, L + 2); row and column 0 vanish (F25 eq. (39) with σ²_w,out)."""
    S22 = np.zeros((network.depth + 2, network.depth + 2))
    weights = layers.weights[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        # ⟨φ⁴⟩ is not smaller.
        squares = network_functions(network).second_moment(K[:-1]) ** 2
        require_finite_layers("the covariance of the kernels", squares)
        S22[1:, 1:] = np.outer(weights, weights) * connected_squares(network, K[:-1], C)
    require_finite_layers("the covariance of the kernels", S22)
    return S22


def kernel_covariances(
    layers: LayerCoefficients, gains: np.ndarray, S22: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """N G11 = N G12 S22 G21, shape (L + 2, L + 2), and N Var K^(l), (L + 1,), of S22/N."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Cov(K, S) and Cov(K, K) by two forward substitutions, with the sources S of C.
        carried = layers.skips + gains
        mixed = accumulate(carried, S22)
        kernels = accumulate(carried, mixed.T)
        # Cov(C, S) and Cov(C, K).
        half, of_kernels = respond(gains, S22, mixed), respond(gains, mixed.T, kernels)
        G11 = respond(gains, half.T, of_kernels.T)
    require_finite_layers("the covariance of the kernels", G11)
    return G11, kernels.diagonal()[:-1].copy()


def seen_by_neurons(
    network: LayeredNetwork, layers: LayerCoefficients, gains: np.ndarray, K: np.ndarray
) -> np.ndarray:
    """N Cov(K^(l), (h_i^(l))²) beyond Var K^(l), for one neuron i, shape (L + 1,).

        Σ_{k<=l} A²_lk Σ_m N G12^km β_m,   β_m = 2 a_m M'(K^(m-1)) Cov(h^(l), h^(m-1))²

    One neuron adds a_m g(h_i^(m-1))/N to the kernels of the layers m after it, which respond.

    ``gains`` are a_m M'(K^(m-1)), shape (L + 2,).
    """
    size = network.depth + 1
    beta = np.zeros((size, size))
    beta[1:] = 2 * gains[1:size, None] * signal_covariance(network, K[:-1])[:-1] ** 2
    beta = np.triu(beta)
    responses = propagate(layers.skips[:-1], gains[:-1], beta)
    return np.diagonal(accumulate(layers.skips[:-1], responses)).copy()


def mean_shift(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    gains: np.ndarray,
    C: np.ndarray,
    K: np.ndarray,
) -> np.ndarray:
    """N (⟨C⟩ − C*) to order 1/N, shape (L + 2,)."""
    averages = network_functions(network).averages
    if is_closed(averages.connected):
        # ⟨φ⁴⟩ of a polynomial may exceed float64 where its neurons do not.
        beyond = (OverflowError,) if averages.square.is_polynomial(X) else ()
        with suppress(*beyond), np.errstate(over="ignore", invalid="ignore"):
            return shift_by_closed_forms(network, layers, gains, C, K)
    # The kernel of the input does not fluctuate.
    return np.append(0.0, at_first_order(network, layers, (C, K)).shift)


def shift_by_closed_forms(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    gains: np.ndarray,
    C: np.ndarray,
    K: np.ndarray,
) -> np.ndarray:
    """N (⟨C⟩ − C*) to order 1/N, shape (L + 2,), from closed forms of ⟨φ²;φ²⟩."""
    size, averages = network.depth + 1, network_functions(network)
    covariance = signal_covariance(network, K[:-1])
    # Signals that vanish do not fluctuate, and those that no layer sees move nothing, whatever the
    # derivatives of their averages: those of two that are one may diverge.
    alive = np.flatnonzero((K[:-1] > 0) & (layers.weights[1:] > 0))
    one, other = np.tril_indices(len(alive), -1)
    later, earlier = alive[one], alive[other]
    slope = np.zeros((size, size))
    slope[earlier, later] = averages.connected_slope(
        K[later], K[earlier], covariance[later, earlier]
    )
    weights, S22 = layers.weights, np.zeros((size + 1, size + 1))
    S22[1:, 1:] = np.outer(weights[1:], weights[1:]) * connected_squares(network, K[:-1], C)
    _, variance = kernel_covariances(layers, gains, S22)
    # The response of K^(m-1) to C^(k).
    response = np.zeros((size, size))
    for k in range(size):
        growth = layers.skips[k + 1 : size] + gains[k + 1 : size]
        response[k:, k] = np.cumprod([1.0, *growth])
    sources = (slope.T[:, :-1] * weights[1:size] * response[:, 1:]).sum(axis=1)
    sources[alive] += averages.curvature(K[:-1][alive]) * variance[alive] / 2
    return propagate(layers.skips, gains, np.append(0.0, weights[1:] * sources))


# What there is if terms of order 1/N² are not resolved.
_WITHOUT = "; order=1 does without them"


@dataclass(frozen=True, eq=False)
class OneTheory:
    """Arrays over all layers, (L + 2,), or the hidden ones, (L + 1,), with their powers of 1/N.

    QuadratureError from a quantity of order 1/N² that is not resolved; a ValidityWarning where that
    order is not small.
    """

    network: LayeredNetwork
    # Of the network, and one variance.
    mean_field: MeanField

    @cached_property
    def limits_at_zero(self) -> tuple[np.ndarray, np.ndarray]:
        """C*^(l) and K^(l), variances of zero as limits of small ones where φ jumps at zero."""
        C, K = self.mean_field.variances
        K = limit_variances(self.network, K)
        return np.concatenate([K[:1], C[1:]]), K

    @cached_property
    def _covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """N G11 and N Var K^(l)."""
        field = self.mean_field
        C, K = self.limits_at_zero
        S22 = source_covariance(self.network, field.layers, K, C)
        return kernel_covariances(field.layers, field.moving_gains, S22)

    @cached_property
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m)), shape (L + 2, L + 2)."""
        return self._covariances[0] / self.network.width

    @cached_property
    def kernel_variance(self) -> np.ndarray:
        """Var K^(l)."""
        return self._covariances[1] / self.network.width

    @cached_property
    def mean_shift(self) -> np.ndarray:
        """⟨C^(l)⟩ − C*^(l) to order 1/N."""
        field = self.mean_field
        arguments = field.layers, field.moving_gains, *self.limits_at_zero
        return mean_shift(self.network, *arguments) / self.network.width

    @property
    def four_point(self) -> np.ndarray:
        """V^(l), see `Solution.four_point`."""
        field = self.mean_field
        by_neurons = seen_by_neurons(self.network, field.layers, field.moving_gains, field.kernels)
        return self.network.width * self.kernel_variance + 2 * by_neurons

    @property
    def mean_shift_2(self) -> np.ndarray:
        """The term of ⟨C^(l)⟩ of order 1/N²."""
        self._require(0, "mean")
        return self._from_input(self._second.shift)

    @property
    def variance_2(self) -> np.ndarray:
        """The term of Var C^(l) of order 1/N²."""
        self._require(1, "variance")
        return self._from_input(self._second.variance)

    @property
    def third_cumulant(self) -> np.ndarray:
        """⟨(C^(l) − ⟨C^(l)⟩)³⟩ to order 1/N²."""
        self._require(2, "third cumulant")
        return self._from_input(self._second.third_cumulant)

    @property
    def four_point_2(self) -> np.ndarray:
        """The term of V^(l) of order 1/N."""
        self._require(1, "variance")
        return self.mean_field.variances[1][:-1] ** 2 * self._second.pairing / self.network.width

    @property
    def order_ratio(self) -> np.ndarray:
        """See `order_ratio`."""
        self._require(0, "mean")
        self._require(1, "variance")
        return self._ratio(self._second)

    @property
    def resummed(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨C⟩ and Var C, see `Solution.resummed_variance`."""
        C, variance = self.mean_field.variances[0], np.diagonal(self.G11)
        return resummed(C, self.mean_shift, variance, self.mean_shift_2, self.variance_2)

    @cached_property
    def _resolved(self) -> tuple[SecondOrder, tuple[str, ...]]:
        """The coefficients of 1/N², and why its moments are not resolved; empty if they are."""
        field, variance = self.mean_field, self.network.width * np.diagonal(self.G11)
        chain = self.network, field.layers, self.limits_at_zero
        try:
            second, failures = at_second_order(*chain, variance)
        except QuadratureError as error:
            raise QuadratureError(f"at order 1/N²: {error}{_WITHOUT}") from None
        if not any(failures[:2]):
            warn_if_orders_are_close(self.network, self._ratio(second))
        return second, failures

    def _ratio(self, second: SecondOrder) -> np.ndarray:
        C, variance = self.mean_field.variances[0], np.diagonal(self.G11)
        terms = (self._from_input(term) for term in (second.shift, second.variance))
        return order_ratio(C, self.mean_shift, variance, *terms)

    @property
    def _second(self) -> SecondOrder:
        return self._resolved[0]

    def _require(self, quantity: int, name: str) -> None:
        if failure := self._resolved[1][quantity]:
            raise QuadratureError(f"the {name} at order 1/N²: {failure}{_WITHOUT}")

    def _from_input(self, coefficients: np.ndarray) -> np.ndarray:
        """The terms of order 1/N² of the layers, and that of the input, which is fixed."""
        return np.append(0.0, coefficients) / self.network.width**2


def order_ratio(
    C: np.ndarray, shift: np.ndarray, variance: np.ndarray, shift_2: np.ndarray, more: np.ndarray
) -> np.ndarray:
    """The larger of |v_2|/v_1 and |m_2|/(|m_1| + v_1/C*), with the terms v and m of C."""
    size = np.abs(shift) + ratio(variance, C)
    return np.maximum(ratio(np.abs(shift_2), size), ratio(np.abs(more), variance))


def resummed(
    C: np.ndarray, shift: np.ndarray, variance: np.ndarray, shift_2: np.ndarray, more: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """⟨C⟩ and Var C from the logarithms of the first two moments, expanded to order 1/N²."""
    m1, m2, v1, v2 = (
        ratio(x, C**k) for x, k in ((shift, 1), (shift_2, 1), (variance, 2), (more, 2))
    )
    with np.errstate(over="ignore", invalid="ignore"):
        mean = C * np.exp(m1 + m2 - m1**2 / 2)
        spread = mean**2 * np.expm1(v1 + v2 - 2 * m1 * v1 - v1**2 / 2)
    require_finite_layers("resummed_mean", mean)
    require_finite_layers("resummed_variance", spread)
    return mean, spread
