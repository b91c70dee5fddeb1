"""How kernels respond to the kernel of the input, and those of many inputs at the output alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from fieldtheory.numerics.infinite_width import gains, kernels
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.pair_maps import pair_map
from fieldtheory.numerics.pair_maps.pair_recursions import OutputRecursion
from fieldtheory.numerics.recursion import propagate
from fieldtheory.numerics.symmetric_matrices import assembled


@dataclass(frozen=True, eq=False)
class ResponseTheory:
    """N ⟨· C̃^(0)⟩, the derivatives by K^(0) over ν_0, each found when first asked for."""

    mean_field: MeanField
    # ν_0; 1 for the derivatives themselves.
    input_width: float

    @cached_property
    def own(self) -> tuple[Any, ...]:
        """η^(l) and χ^(l) of single inputs, the output last, in the shape of their variances."""
        return self._to_the_input(self.mean_field.own_skips, self.mean_field.own_gains)

    @cached_property
    def of_pairs(self) -> tuple[Any, ...]:
        """The same of pairs of inputs."""
        return self._to_the_input(self.mean_field.pair_skips, self.mean_field.pair_gains)

    @property
    def residual_response(self) -> np.ndarray:
        """η^(l), shape (..., L + 1) or (..., L + 1, P, P)."""
        pair = self.mean_field.has_matrix and self.of_pairs[0][:-1]
        return self.mean_field.assembled(self.own[0][:-1], pair)

    @property
    def response(self) -> np.ndarray:
        """χ^(l), shape (..., L + 1) or (..., L + 1, P, P)."""
        own = self._reported(self.own[1])
        pair = self.mean_field.has_matrix and self._reported(self.of_pairs[1], pairs=True)
        return self.mean_field.assembled(own, pair)

    def _reported(self, chi: np.ndarray, pairs: bool = False) -> np.ndarray:
        """∂s(K^(l)) of ∂K^(l) of the layers 0, ..., L."""
        field = self.mean_field
        if (stream := field.carried()) is None:
            return chi[:-1]
        arguments = field.pair_arguments if pairs else field.variances[1:]
        inner = [each[:-1] for each in arguments]
        slope = stream.pair(*inner, order=1)[3] if pairs else stream.own(*inner, order=1)[1]
        return slope * chi[:-1]

    @property
    def output_kernel(self) -> np.ndarray:
        """K^(L+1), shape (...) or (..., P, P), without the other layers of pairs of inputs."""
        own = self.mean_field.variances[1][-1]
        return self._output_matrix(0, own) if self.mean_field.has_matrix else own

    @property
    def output_response(self) -> np.ndarray:
        """χ^out, in the same shape, from the responses of all layers where these are there."""
        own = self.own[1][-1]
        if not self.mean_field.has_matrix:
            return own
        if "of_pairs" in vars(self):
            return assembled(own, self.of_pairs[1][-1], self.mean_field.pairs)
        return self._output_matrix(1, own)

    @property
    def by_variances(self) -> tuple[np.ndarray, np.ndarray]:
        """∂K_αβ^(l)/∂K_αα^(0) and ∂K_αβ^(l)/∂K_ββ^(0), 0 for α = β, shapes (..., L + 1, P, P)."""
        field, variance, pairs = self.mean_field, self.own[1], self.mean_field.pairs
        sources = gains.cross_gains(field.network, field.variances[1], field.covariances[1], pairs)
        stream, arguments = field.carried(), field.pair_arguments
        found = []
        for entry, (source, index) in enumerate(zip(sources, pairs, strict=True)):
            if stream is not None:
                inner = (each[:-2] for each in arguments)
                by_own = stream.pair(*inner, order=1)[1 + entry]
                source[1:-1] += field.layers.skips[1:-1] * by_own
            moved = variance[..., index]
            chi = gains.driven_response(field.pair_skips, field.pair_gains, source, moved)
            if stream is not None:
                slopes = stream.pair(*(each[:-1] for each in arguments), order=1)
                chi[:-1] = slopes[3] * chi[:-1] + slopes[1 + entry] * moved[:-1]
            found.append(chi[:-1])
        first, second = found
        zeros = np.zeros_like(variance[:-1])
        return (
            field.assembled(zeros, first, lower=second),
            field.assembled(zeros, second, lower=first),
        )

    @property
    def propagator(self) -> np.ndarray:
        """Δ12^lm = N ⟨C^(l) C̃^(m)⟩, shape (L + 2, L + 2) or (L + 2, L + 2, P, P)."""
        field = self.mean_field
        size = field.network.depth + 2
        sources = np.eye(size)
        sources[0, 0] = 1 / self.input_width
        if not field.has_matrix:
            return propagate(field.own_skips, field.own_gains, sources)

        for l, gain in enumerate(field.pair_gains):
            gains.require_finite_gain(gain, l)

        def columns(skips: np.ndarray, gain: np.ndarray) -> np.ndarray:
            rows = np.repeat(sources[:, :, None], gain.shape[-1], axis=-1)
            return propagate(skips, gain, rows)

        own = columns(field.own_skips, field.own_gains)
        pair = columns(field.pair_skips, field.pair_gains)
        return assembled(own, pair, field.pairs)

    def _to_the_input(self, skips: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, ...]:
        derivatives = gains.responses(skips, gain)
        nu = self.input_width
        return derivatives if nu == 1.0 else tuple(derivative / nu for derivative in derivatives)

    @cached_property
    def _output_matrices(self) -> np.ndarray:
        """K^(L+1) and χ^out of all pairs of inputs, but for the diagonals; see `pair_map`."""
        field = self.mean_field
        recursion = partial(OutputRecursion, rows=(0, 1), layer=field.network.depth + 1)
        matrices = pair_map.output_matrices(
            recursion, field.network, field.variances[1], field.input_kernel
        )
        matrices[1] /= self.input_width
        return matrices

    def _output_matrix(self, index: int, own: np.ndarray) -> np.ndarray:
        """One of `_output_matrices`, or OverflowError with the layer, from a pair that meets it."""
        field = self.mean_field
        values, inputs = self._output_matrices[index], np.arange(own.shape[-1])
        values[..., inputs, inputs] = own
        finite = np.isfinite(values).all(axis=tuple(range(values.ndim - 2)))
        if not finite.all():
            i, j = (members[:1] for members in np.nonzero(~finite))
            K0 = field.input_kernel[..., i, j]
            kernel = kernels.covariances(field.network, field.variances, K0, (i, j))[1]
            of_pairs = gains.covariance_gains(field.network, field.variances[1], kernel, (i, j))
            gains.responses(field.layers.skips, of_pairs)
        return values
