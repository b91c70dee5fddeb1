"""The coefficients of 1/N and 1/N² of one input, each from two resolutions that are compared.

Neurons are Fourier series where φ² has no breakpoints and at most 4096 points resolve all layers,
else values on quadrature nodes. Both are computed twice, with 9/10 of the wave numbers or 4/5 of
the nodes of a panel: the difference is the error, which is compared with the tolerance. The
covariances of all pairs of layers are computed once, their sums over the earlier layer twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

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
    Observable,
    Run,
    SecondOrder,
    Step,
    first_order,
    second_order,
)
from fieldtheory.numerics.recursion import accumulate, ratio
from fieldtheory.theory.elementary_averages import X

if TYPE_CHECKING:
    from fieldtheory.numerics.neurons.fourier_basis import Spectrum

# Numbers of nodes of a panel stand for quadrature nodes.
Resolution: TypeAlias = "Spectrum | int"


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

    def resolutions(self, highest: int) -> tuple[Resolution, Resolution]:
        """Fourier series that resolve all layers, else a number of nodes; and a coarser one."""
        from scipy.fft import next_fast_len

        from fieldtheory.numerics.neurons.fourier_basis import Spectrum, spectrum_of

        fine = spectrum_of(self.square, self.K, self.skips, self.added, highest > 1)
        if fine is None:
            return _SETTINGS.nodes, _SETTINGS.fewer_nodes
        share = _SETTINGS.fewer_numbers
        numbers, points = (np.ceil(share * each).astype(int) for each in fine[1:])
        # Of prime numbers of points transforms are slow.
        fast = np.array([next_fast_len(n, real=True) for n in points.tolist()])
        return fine, Spectrum((1 + share) / 2 * fine.reach, numbers, fast)

    def layers(self, resolution: Resolution, highest: int) -> Layers:
        """In Fourier series or on nodes."""
        if isinstance(resolution, int):
            from fieldtheory.numerics.neurons.quadrature_nodes import on_nodes

            return on_nodes(self, resolution, highest)
        from fieldtheory.numerics.neurons.fourier_basis import in_fourier_series

        return in_fourier_series(self, resolution)

    def runs(self, resolution: Resolution) -> Iterable[Run]:
        """The same layers in runs."""
        if isinstance(resolution, int):
            return map(_alone, self.layers(resolution, 0))
        from fieldtheory.numerics.neurons.fourier_basis import runs_of_series

        return runs_of_series(self, resolution)

    def compared(
        self, compute: Callable[[Layers], Any], scales: Callable[[Any], np.ndarray], highest: int
    ) -> tuple[Any, np.ndarray, str]:
        """A result, the errors of its arrays relative to scales, and how it is represented."""
        with np.errstate(all="ignore"):
            fine, coarse = self.resolutions(highest)
            rough = compute(self.layers(coarse, highest))
            layers = list(self.layers(fine, highest))
            what = routes.NODES if isinstance(fine, int) else routes.FOURIER
            routes.record(what, len(layers))
            result = compute(layers)
            scale = scales(result)
            change = np.abs(np.stack(result[: len(scale)]) - np.stack(rough[: len(scale)]))
            errors = np.where(change > 0, change / scale, 0.0)
        return result, np.maximum(errors, self.missed([D.mean for D, _ in layers])), what

    def missed(self, means: Sequence[float] | np.ndarray) -> np.ndarray:
        """Errors of ⟨φ²⟩ of the layers relative to the largest."""
        missed = np.abs(means - self.moments) * (self.weights > 0)
        return missed / (self.moments.max() or 1.0)


def _alone(layer: tuple[Observable, Step | None]) -> Run:
    """A run of one layer."""
    D, step = layer
    to_next = None if step is None else lambda rows: step.to_next(0, rows.T).T
    return Run(
        D.density[None], D.averaging[None], np.array([D.square]), np.array([D.mean]), to_next
    )


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
        fine, coarse = neurons.resolutions(0)
        runs = list(neurons.runs(fine))
        squares = connected_squares(runs)
        root = np.sqrt(np.diagonal(squares) + _SETTINGS.constant * neurons.moments**2)
        weights = ratio(np.ones_like(root), root)
        rough = sums_of_squares(neurons.runs(coarse), weights)
        errors = ratio(np.abs(np.tril(squares) @ weights - rough), root)
    errors = np.maximum(errors, neurons.missed(np.concatenate([run.means for run in runs])))
    what = routes.NODES if isinstance(fine, int) else routes.FOURIER
    if failure := _failure(what, errors, max(tolerance(), SETTINGS.first_order)):
        raise QuadratureError(failure)
    return squares


def connected_squares(runs: Iterable[Run]) -> np.ndarray:
    """⟨D(h^(k)) ; D(h^(l))⟩ of all layers, shape (L + 1, L + 1): S22/N without row and column 0."""
    runs = list(runs)
    squares = np.diag(np.concatenate([run.squares for run in runs]))
    densities, start = np.zeros((0, runs[0].densities.shape[1])), 0
    for run in runs:
        end = start + len(run.squares)
        densities = np.concatenate([densities, run.densities])
        # Products on nodes beyond the highest order belong to the square, too.
        squares[start:end, :end] += np.tril(run.averaging @ densities.T, start - 1)
        if run.to_next is not None:
            densities, start = run.to_next(densities), end
    return squares + np.tril(squares, -1).T


def sums_of_squares(runs: Iterable[Run], weights: np.ndarray) -> np.ndarray:
    """Σ_{k<=l} w_k ⟨D(h^(k)) ; D(h^(l))⟩ of all layers, shape (L + 1,), in O(L)."""
    sums, total = [], np.zeros(1)
    for run in runs:
        own, weights = np.split(weights, [len(run.squares)])
        within = np.tril(run.averaging @ run.densities.T, -1) @ own
        sums.append(own * run.squares + within + (run.averaging * total).sum(axis=1))
        if run.to_next is not None:
            total = run.to_next(total + own @ run.densities)
    return np.concatenate(sums)


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
