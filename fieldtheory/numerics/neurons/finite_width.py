"""The coefficients of 1/N and 1/N² of one input, each from two resolutions that are compared.

Neurons are Fourier series where φ² has no breakpoints and at most 4096 points resolve all layers,
else values on quadrature nodes. Both are computed twice, with 9/10 of the wave numbers or 4/5 of
the nodes of a panel: the difference is the error, which is compared with the tolerance. The
covariances of all pairs of layers are computed once, their sums over the earlier layer twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.routes import SETTINGS, tolerance
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.neurons.interacting_neurons import (
    FirstOrder,
    Layers,
    SecondOrder,
    first_order,
    second_order,
)
from fieldtheory.numerics.recursion import accumulate, ratio
from fieldtheory.theory.elementary_averages import X

if TYPE_CHECKING:
    from fieldtheory.numerics.neurons.fourier_basis import Spectrum


@dataclass(frozen=True)
class _Settings:
    """Resolutions that are compared, and errors."""

    # Nodes of a panel, and those and the wave numbers of the coarser resolution.
    nodes: int = 20
    fewer_nodes: int = 16
    fewer_numbers: float = 0.9
    # Errors that one may want to take.
    acceptable: float = 0.05
    # Corrections smaller than this times their natural size are compared with that.
    natural: float = 1e-5
    # φ² of an input that is zero is constant: rounding leaves 1e-15 of the kernels, 1e-9 of this.
    constant: float = 1e-6
    # Layers whose factors are multiplied before they multiply the densities of earlier ones.
    layers: int = 16


_SETTINGS = _Settings()


class Neurons(NamedTuple):
    """State of the neurons of a network at the saddle point."""

    # φ².
    square: Function
    # (L + 1,): a_1, ..., a_{L+1}.
    weights: np.ndarray
    # (L + 1,): The variances of the signals, and M(K) = ⟨φ²⟩.
    K: np.ndarray
    moments: np.ndarray
    # (L,): Of the signals of one layer and the next, and √(C/K) of the next.
    correlations: np.ndarray
    noise: np.ndarray
    # (L,): γ, and C of the next.
    skips: np.ndarray
    added: np.ndarray

    @classmethod
    def of(
        cls, network: LayeredNetwork, weights: np.ndarray, K: np.ndarray, C: np.ndarray | None
    ) -> Neurons:
        """Those of a network whose layers add C^(l) to the variances K^(l), l = 0, ..., L."""
        entries, skips = (
            network_functions(network),
            np.broadcast_to(network.skip_scales, len(K) - 1),
        )
        before, after = K[:-1], K[1:]
        added = after - skips**2 * before if C is None else C[1 : len(K)]
        added = np.maximum(added, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            correlations = np.where(after > 0, skips * np.sqrt(before / after), 0.0)
            # Layers without signals are uncorrelated with all others.
            noise = np.where(after > 0, np.sqrt(added / after), 1.0)
        square, expression = Function(np.ones_like), entries.averages.square
        if expression.has(X):
            square = function_of(expression, X)
        else:
            # Layers that add a constant do not fluctuate.
            weights = np.zeros(len(K))
        moments = np.asarray(entries.second_moment(K), dtype=float)
        return cls(square, weights, K, moments, correlations, noise, skips, added)

    def spectrum(self, highest: int) -> Spectrum | None:
        """The Fourier series that resolve all layers, None if nodes have to."""
        from fieldtheory.numerics.neurons.fourier_basis import spectrum_of

        return spectrum_of(self.square, self.K, self.skips, self.added, highest > 1)

    def resolved(self, spectrum: Spectrum | None, coarser: bool, highest: int) -> Layers:
        """The layers in Fourier series, or on nodes without a spectrum."""
        if spectrum is not None:
            from scipy.fft import next_fast_len

            from fieldtheory.numerics.neurons.fourier_basis import Spectrum, in_fourier_series

            if coarser:
                share = _SETTINGS.fewer_numbers
                numbers, points = (np.ceil(share * each).astype(int) for each in spectrum[1:])
                # Of prime numbers of points transforms are slow.
                fast = np.array([next_fast_len(n, real=True) for n in points.tolist()])
                spectrum = Spectrum((1 + share) / 2 * spectrum.reach, numbers, fast)
            return in_fourier_series(self, spectrum)
        from fieldtheory.numerics.neurons.quadrature_nodes import on_nodes

        count = _SETTINGS.fewer_nodes if coarser else _SETTINGS.nodes
        return on_nodes(self, count, highest)

    def compared(
        self, compute: Callable[[Layers], Any], scales: Callable[[Any], np.ndarray], highest: int
    ) -> tuple[Any, np.ndarray, str]:
        """A result, the errors of its arrays relative to scales, and how it is represented."""
        with np.errstate(all="ignore"):
            spectrum = self.spectrum(highest)
            rough = compute(self.resolved(spectrum, True, highest))
            layers = list(self.resolved(spectrum, False, highest))
            what = routes.NODES if spectrum is None else routes.FOURIER
            routes.record(what, len(layers))
            result = compute(layers)
            scale = scales(result)
            change = np.abs(np.stack(result[: len(scale)]) - np.stack(rough[: len(scale)]))
            errors = np.where(change > 0, change / scale, 0.0)
        return result, np.maximum(errors, self.missed(layers)), what

    def missed(self, layers: Layers) -> np.ndarray:
        """Errors of ⟨φ²⟩ of the layers relative to the largest."""
        means = np.array([D.mean for D, _ in layers])
        missed = np.abs(means - self.moments) * (self.weights > 0)
        return missed / (self.moments.max() or 1.0)


def at_first_order(
    network: LayeredNetwork, layers: LayerCoefficients, kernels: tuple[np.ndarray, np.ndarray]
) -> FirstOrder:
    """The coefficients of 1/N."""
    C, K = kernels
    # Signals of small branches hardly fluctuate, and means are shifted by no more than they do.
    share = ratio(accumulate(layers.skips[:-1], np.append(0.0, C[1:-1])), K[:-1])

    def scales(result: FirstOrder) -> np.ndarray:
        q = np.abs(result.variance)
        shift = np.abs(result.shift) + _SETTINGS.natural * share * ratio(q, C[1:])
        sizes = np.stack([shift + _SETTINGS.constant * C[1:], q + _SETTINGS.constant * C[1:] ** 2])
        return np.maximum.accumulate(sizes, axis=1)

    neurons = Neurons.of(network, layers.weights[1:], K[:-1], C[:-1])
    result, errors, what = neurons.compared(first_order, scales, 1)
    for row in errors:
        if failure := _failure(what, row, max(tolerance(), SETTINGS.first_order)):
            raise QuadratureError(failure)
    return result


def squares_of_layers(neurons: Neurons) -> np.ndarray:
    """⟨φ²(h^(k)) ; φ²(h^(l))⟩ of all layers, shape (L + 1, L + 1), of neurons with the weights 1.

    QuadratureError if an entry misses 1e-9, or ``rtol``, of the geometric mean of the variances of
    φ².
    """
    with np.errstate(all="ignore"):
        spectrum = neurons.spectrum(0)
        layers = list(neurons.resolved(spectrum, False, 0))
        squares = connected_squares(layers)
        root = np.sqrt(np.diagonal(squares) + _SETTINGS.constant * neurons.moments**2)
        weights = ratio(np.ones_like(root), root)
        rough = sums_of_squares(neurons.resolved(spectrum, True, 0), weights)
        errors = ratio(np.abs(np.tril(squares) @ weights - rough), root)
    errors = np.maximum(errors, neurons.missed(layers))
    what = routes.NODES if spectrum is None else routes.FOURIER
    if failure := _failure(what, errors, max(tolerance(), SETTINGS.first_order)):
        raise QuadratureError(failure)
    return squares


def connected_squares(layers: Layers) -> np.ndarray:
    """⟨D(h^(k)) ; D(h^(l))⟩ of all layers, shape (L + 1, L + 1): S22/N without row and column 0."""
    layers = list(layers)
    squares, earlier, start = np.zeros((len(layers), len(layers))), np.zeros((0, 0)), 0
    for l, (D, step) in enumerate(layers):
        if l == start:
            # The densities of the layers from there on, and what averages D of them.
            recent, averaging = np.empty((2, _SETTINGS.layers, len(D.density)))
            factors = np.ones(len(D.density))
        last = l - start + 1
        recent[last - 1], averaging[last - 1] = D.density, D.averaging * factors
        squares[l, start : l + 1] = recent[:last] @ D.averaging
        # Products on nodes beyond the highest order belong to the square, too.
        squares[l, l] = D.square
        if step is not None and step.factors is not None and last < _SETTINGS.layers:
            factors *= step.factors
            recent[:last] *= step.factors
            continue
        if start:
            squares[start : l + 1, :start] = averaging[:last] @ earlier.T
        if step is not None:
            densities = [earlier * factors, recent[:last]] if start else [recent[:last]]
            earlier = step.to_next(0, np.concatenate(densities).T).T
            start = l + 1
    return squares + np.tril(squares, -1).T


def sums_of_squares(layers: Layers, weights: np.ndarray) -> np.ndarray:
    """Σ_{k<=l} w_k ⟨D(h^(k)) ; D(h^(l))⟩ of all layers, shape (L + 1,), in O(L)."""
    sums, total = [], None
    for (D, step), weight in zip(layers, weights, strict=True):
        sums.append(weight * D.square)
        if total is not None:
            sums[-1] += D.averaging @ total
        added = weight * D.density
        total = added if total is None else total + added
        if step is not None:
            total = step.to_next(0, total)
    return np.array(sums)


def at_second_order(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    kernels: tuple[np.ndarray, np.ndarray],
    variance: np.ndarray,
) -> tuple[SecondOrder, tuple[str, ...]]:
    """The coefficients of 1/N², and which of them are not resolved."""
    C, K = kernels
    with np.errstate(over="ignore"):
        q2 = variance[1:] ** 2
    if not np.isfinite(q2).all():
        layer = int(np.argmin(np.isfinite(q2))) + 1
        raise QuadratureError(f"squares of variances exceed float64 from layer {layer} on")

    def scales(result: SecondOrder) -> np.ndarray:
        sizes = [
            np.abs(values) + _SETTINGS.natural * ratio(q2, C[1:] ** (3 - k))
            for k, values in enumerate(result[:3])
        ]
        return np.maximum.accumulate(np.stack(sizes), axis=1)

    neurons = Neurons.of(network, layers.weights[1:], K[:-1], C[:-1])
    result, errors, what = neurons.compared(second_order, scales, 3)
    allowed = max(tolerance(), SETTINGS.second_order)
    return result, tuple(_failure(what, row, allowed) for row in errors)


def _failure(what: str, errors: np.ndarray, allowed: float) -> str:
    """Why the errors of the layers are too large, empty if they are not."""
    errors = np.where(np.isnan(errors), np.inf, errors)
    layer = int(np.argmax(errors))
    error = float(errors[layer])
    if error <= allowed:
        return ""
    said = (
        f"{what} leave a relative error of {error:.1g} in layer {layer + 1}, "
        f"allowed is {allowed:.1g}"
    )
    if error < _SETTINGS.acceptable:
        return f"{said}; solve(..., rtol={2 * error:.1g}) takes it"
    return f"{said}: the activation is too steep, or the layers are too close to one another"
