"""`solve` for networks of two populations: `BlockNetwork` and its like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.grams.gram_fluctuations import GramFluctuations
from fieldtheory.grams.gram_responses import propagators, responses, tangent_parts, tangents
from fieldtheory.grams.gram_theory import GramChain
from fieldtheory.networks.dispatch import missing, residual_only
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import FIELDS as OF_SOLUTION
from fieldtheory.numerics.fields import GRAM_FIELDS
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.result import Computed, field
from fieldtheory.numerics.shift_response import by_covariances, by_variances
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import assembled, unpacked
from fieldtheory.numerics.validity import SHIFT, warn_if_not_small, warn_if_spread

# Errors of the others are not estimated, and there are no numbers beyond float64.
_LEFT_OUT = "tangent_signs", "mean_shift_error", "four_point_error", "response_shift_error"
FIELDS = {
    name: row
    for name, row in OF_SOLUTION.items()
    if row.loops == 1 and not name.startswith("log_") and name not in _LEFT_OUT
}
FIELDS |= GRAM_FIELDS
# Its kernels are no sum of residual kernels.
FIELDS["kernel_shift"] = replace(FIELDS["kernel_shift"], sum_of="")


@dataclass(frozen=True, eq=False)
class GramSolution(Computed):
    """The theory of a network of blocks in numbers; every field is computed when first asked for.

    R^(l) is the Gram matrix (1/N) Σ_i h_i h_i of the stream, behind the norm for post-norm and
    about the mean over the units for LayerNorm, K^(l) its limit for N → ∞; C^(l) is the covariance
    of what block l adds, C^(0) that of the read-in and C^(L+1) of the outputs. With L the depth, P
    inputs, p = P(P+1)/2, and ``...`` the batch axes of the scales and K0:

    =======================  ================================  =====================================
    field                    shape                             meaning
    =======================  ================================  =====================================
    residual_kernels         (..., L+2) or (..., L+2, P, P)    C*^(l), last entry the output kernel
    kernels                  the same                          K^(l), last entry the output kernel
    residual_response        (..., L+1) or (..., L+1, P, P)    ∂C^(l)/∂K^(0)
    response                 the same                          ∂K^(l)/∂K^(0)
    output_kernel            (...) or (..., P, P)              K^(L+1)
    output_response          the same                          χ^out
    tangent_kernels          (..., L+2) or (..., L+2, P, P)    Θ^(l), last entry that of the output
    output_tangent_kernel    (...) or (..., P, P)              Θ^(L+1)
    shares                   (..., L+1) or (..., L+1, P)       C^(l) over γ² K^(l-1) + C^(l)
    decorrelation            (..., L+2, P, P)                  1 − K_αβ/√(K_αα K_ββ)
    full_response            (..., L+1, P, P, 3)               ∂K_αβ by (K_αα, K_ββ, K_αβ) of inputs
    G12                      (L+2, L+2) or (L+2, L+2, P, P)    response propagator, with its 1/N
    G11                      (L+2, L+2) or (L+2, L+2, p, p)    Cov(C^(l), C^(m))
    G11_error                (L+2, L+2, p, p)                  its error, several inputs
    stream_covariance        (L+1, L+1) or (L+1, L+1, p, p)    Cov(R^(l), R^(m))
    kernel_variance          (L+1,) or (L+1, P, P)             Var R^(l)
    mean_shift               (L+2,) or (L+2, P, P)             ⟨C^(l)⟩ − C*^(l) to order 1/N
    kernel_shift             the same                          ⟨R^(l)⟩ − K^(l) to order 1/N
    response_shift           (L+1,) or (L+1, P, P)             ∂/∂K^(0) of kernel_shift
    output_response_shift    () or (P, P)                      the same of the output
    residual_response_shift  (L+1,) or (L+1, P, P)             ∂/∂K^(0) of mean_shift
    four_point               (L+1,) or (L+1, p, p)             four-point vertex V^(l)
    output_kurtosis          () or (P,)                        3 Var C/⟨C⟩² of the output
    =======================  ================================  =====================================

    The other conventions are those of `Solution`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.BlockNetwork(depth=3, width=64), 1.0)
    >>> s.kernels.round(6), s.G11.shape
    (array([1., 2., 3., 4., 1.]), (5, 5))
    """

    table = FIELDS
    settings: ClassVar = {"rtol": float}

    network: GramNetwork  # type: ignore[assignment]
    input_kernel: np.ndarray
    rtol: float = DEFAULT_TOLERANCE

    @field
    def residual_kernels(self) -> np.ndarray:
        """C*^(l)."""
        return self._laid_out(self._chain.states[0])

    @field
    def kernels(self) -> np.ndarray:
        """K^(l), last the kernel of the output."""
        residual, stream = self._chain.states[0], self._chain.stream
        return self._laid_out(np.concatenate([stream, residual[-1:]]))

    @field
    def output_kernel(self) -> np.ndarray:
        """K^(L+1)."""
        return self._last(self.kernels)

    @field
    def residual_response(self) -> np.ndarray:
        """∂C_αβ^(l)/∂K_αβ^(0)."""
        return self._laid_out(self._responses[0][:-1, 2])

    @field
    def response(self) -> np.ndarray:
        """∂K_αβ^(l)/∂K_αβ^(0)."""
        return self._laid_out(self._responses[1][:, 2])

    @field
    def output_response(self) -> np.ndarray:
        """χ^out = ∂K_αβ^(L+1)/∂K_αβ^(0)."""
        return self._last(self._laid_out(self._responses[0][:, 2]))

    @field
    def full_response(self) -> np.ndarray:
        """∂K_αβ^(l)/∂(K_αα, K_ββ, K_αβ)^(0) on the last axis; a variance responds in the last."""
        first, second, own = (
            self._laid_out(each) for each in np.moveaxis(self._responses[1], 1, 0)
        )
        # Below the diagonal α and β are exchanged.
        lower = np.tri(self.inputs, k=-1, dtype=bool)
        variances = np.where(lower, second, first), np.where(lower, first, second)
        return np.stack([*variances, own], axis=-1)

    @field
    def shares(self) -> np.ndarray:
        """C^(l)/(γ_l² K^(l-1) + C^(l)): of the mean square behind block l what the block adds."""
        own = self._chain.pairs.own
        shares = self._chain.states[0][:-1, ..., own] / self._chain.states[1][..., own]
        return (
            np.moveaxis(shares, 0, -2) if self._has_matrix else np.moveaxis(shares[..., 0], 0, -1)
        )

    @field
    def decorrelation(self) -> np.ndarray:
        """1 − K_αβ^(l)/√(K_αα^(l) K_ββ^(l)), 0 on the diagonal."""
        own = np.sqrt(np.diagonal(self.kernels, axis1=-2, axis2=-1))
        size = own[..., :, None] * own[..., None, :]
        return np.where(np.eye(self.inputs, dtype=bool), 0.0, 1 - self.kernels / size)

    @field
    def tangent_kernels(self) -> np.ndarray:
        """Θ^(l) of everything trained, last that of the output; see `tangent_kernels`."""
        return self.trained(np.ones(len(self.network.trained)))

    @field
    def output_tangent_kernel(self) -> np.ndarray:
        """Θ^(L+1)."""
        return self._last(self.tangent_kernels)

    def trained(self, rates: np.ndarray) -> np.ndarray:
        """Θ^(l) for a learning rate of every kind of parameters."""
        return self._laid_out(tangents(self._chain, rates))

    def trained_parts(self, rates: np.ndarray) -> np.ndarray:
        """What kinds and layers add to Θ^(L+1)."""
        parts = unpacked(tangent_parts(self._chain, rates), self._has_matrix)
        return np.moveaxis(parts, (0, 1), (-4, -3) if self._has_matrix else (-2, -1))

    @field
    def G12(self) -> np.ndarray:
        """⟨C^(l) C̃^(m)⟩ of the (αβ) <- (αβ) entries."""
        return unpacked(propagators(self._chain), self._has_matrix) / self.network.width

    @field
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m)) to order 1/N."""
        return self._without_pairs(self._fluctuations.covariances.residual)

    @field
    def G11_error(self) -> np.ndarray:
        """Errors of G11, zero where it is exact."""
        return self._without_pairs(self._fluctuations.missed)

    @field
    def stream_covariance(self) -> np.ndarray:
        """Cov(R^(l), R^(m)) to order 1/N."""
        return self._without_pairs(self._fluctuations.stream_covariances)

    @field
    def kernel_variance(self) -> np.ndarray:
        """Var R^(l) to order 1/N."""
        return self._variance

    @field
    def four_point(self) -> np.ndarray:
        """V^(l) = N ⟨h_iα h_iβ ; h_jγ h_jδ⟩ for i ≠ j: N Cov(R, R) without a unit with itself."""
        theory = self._fluctuations
        return self._without_pairs(theory.stream_variances - theory.of_one_unit)

    @field
    def mean_shift(self) -> np.ndarray:
        """⟨C^(l)⟩ − C*^(l) to order 1/N."""
        return unpacked(self._shifts[0], self._has_matrix) / self.network.width

    @field
    def kernel_shift(self) -> np.ndarray:
        """⟨R^(l)⟩ − K^(l) to order 1/N, last that of the output."""
        return self._shift_of_kernels

    @field
    def residual_response_shift(self) -> np.ndarray:
        """∂/∂K^(0) of the mean shift of C^(l)."""
        return self._response_shifts[: self.network.depth + 1]

    @field
    def response_shift(self) -> np.ndarray:
        """∂/∂K^(0) of the mean shift of R^(l)."""
        return self._response_shifts[self.network.depth + 2 :]

    @field
    def output_response_shift(self) -> np.ndarray:
        """∂/∂K^(0) of the mean shift of C^(L+1)."""
        return self._response_shifts[self.network.depth + 1]

    @field
    def output_kurtosis(self) -> np.ndarray:
        """⟨y⁴⟩/⟨y²⟩² − 3 = 3 Var C/⟨C⟩² of C^(L+1)."""
        own = self._chain.pairs.own
        variance = np.diagonal(self._square(self.G11)[-1, -1])[own]
        mean = self._chain.states[0][-1, own]
        kurtosis = 3 * ratio(ratio(variance, mean), mean)
        return kurtosis if self._has_matrix else kurtosis[0]

    def __repr__(self) -> str:
        net = self.network
        return (
            f"GramSolution(depth={net.depth}, activation={net.activation.name}, "
            f"inputs={self.inputs}, width={net.width})"
        )

    def __getattr__(self, name: str) -> Any:
        raise missing(self, name)

    @cached_property
    def _chain(self) -> GramChain:
        K0 = self.input_kernel
        return GramChain(self.network, K0 if self._has_matrix else K0[..., None, None])

    @cached_property
    def _responses(self) -> Any:
        return responses(self._chain)

    @cached_property
    def _fluctuations(self) -> GramFluctuations:
        return GramFluctuations(self._chain)

    def covariance_with_output(self, U: np.ndarray) -> np.ndarray:
        """Cov(R^(l), Tr U C^(L+1)), last that of C^(L+1), shape (L + 2, P, P)."""
        theory = self._fluctuations
        layers = np.array([*theory.with_output, theory.covariances.residual[-1, -1]])
        traces = (unpacked(layers, True) * U).sum(axis=(-1, -2))
        return unpacked(traces, True)

    @property
    def _variance(self) -> np.ndarray:
        V = np.diagonal(self._fluctuations.stream_variances, axis1=1, axis2=2)
        return unpacked(V, self._has_matrix) / self.network.width

    @property
    def _shift_of_kernels(self) -> np.ndarray:
        residual, stream = self._shifts
        shift = np.concatenate([stream, residual[-1:]])
        return unpacked(shift, self._has_matrix) / self.network.width

    @cached_property
    def _spread(self) -> np.ndarray:
        """The relative standard deviations of the kernels that layers see; see `warn_if_spread`."""
        at = self._chain.pairs.own
        own = self._fluctuations.variances[:, at, at] / self.network.width

        def curvatures() -> np.ndarray:
            K0 = np.diag(self.input_kernel) if self._has_matrix else self.input_kernel[None]
            each = (GramChain(self.network, K[None, None]).curved for K in K0)
            return np.stack([curved.hessian[2, 2, :, 0] for curved in each], axis=-1)

        return warn_if_spread(self.network, self._variance, self.kernels, own, curvatures)

    @cached_property
    def _shift(self) -> np.ndarray:
        return warn_if_not_small(self.network, SHIFT, self._shift_of_kernels, self.kernels)

    @cached_property
    def _shifts(self) -> tuple[np.ndarray, np.ndarray]:
        return self._fluctuations.shifts

    @cached_property
    def _response_shifts(self) -> np.ndarray:
        """∂ of the mean shifts of all C^(l) and of R^(l) by K^(0), (2L + 3, ...)."""
        chi = np.concatenate([each[:, 2] for each in self._responses])
        values, pairs = np.empty_like(chi), self._chain.pairs
        own, K = pairs.own, self._chain.inputs

        def shift(kernels: Iterable[np.ndarray]) -> np.ndarray:
            """Of the last entry of kernels."""
            chains = (GramFluctuations(GramChain(self.network, kernel)) for kernel in kernels)
            each = [
                np.concatenate(chain.shifts)[:, len(chain.chain.input_kernel) - 1]
                for chain in chains
            ]
            return np.stack(each, axis=-1)[None]

        def of_pairs(covariances: np.ndarray) -> np.ndarray:
            return shift(assembled(members, covariances[:, None], np.triu_indices(2, 1)))

        values[:, own] = by_variances(lambda k: shift(k[:, None, None]), K[own], chi[:, own])[0]
        if len(others := pairs.others):
            members = K[own][np.stack([pairs.alpha[others], pairs.beta[others]], axis=-1)]
            largest = np.sqrt(members.prod(axis=1))
            arguments = K[others], largest, False, chi[:, others]
            values[:, others] = by_covariances(of_pairs, *arguments)[0]
        return unpacked(values, self._has_matrix) / self.network.width

    def _laid_out(self, layers: np.ndarray) -> np.ndarray:
        """Layers behind the batch axes, inputs as matrices."""
        return np.moveaxis(unpacked(layers, self._has_matrix), 0, -3 if self._has_matrix else -1)

    def _last(self, layers: np.ndarray) -> np.ndarray:
        return (layers[..., -1, :, :] if self._has_matrix else layers[..., -1]).copy()

    def _without_pairs(self, values: np.ndarray) -> np.ndarray:
        """Fields of one input have no axes of pairs."""
        return values if self._has_matrix else values[..., 0, 0]

    def _square(self, G11: np.ndarray) -> np.ndarray:
        return G11 if self._has_matrix else G11[..., None, None]


@solve.register(GramNetwork)  # type: ignore[attr-defined,untyped-decorator]
@named_arguments
def solve_grams(
    network: GramNetwork, K0: Any, rtol: float = DEFAULT_TOLERANCE, order: int = 1
) -> GramSolution:
    """Kernels, responses and fluctuations of a network of blocks for given inputs.

    Parameters
    ----------
    network : GramNetwork
        Such as a `BlockNetwork`; its scales may have leading batch axes.
    K0 : float or array_like
        Kernel of the read-in: a variance, an array of variances (a batch), or a covariance matrix
        (..., P, P) of P inputs.
    rtol : float
        As for other networks.
    order : int
        1; terms of order 1/N² of these networks are not there.

    Returns
    -------
    GramSolution

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed; if a variance is zero where a norm divides by it. From
        ``mean_shift``, for φ with kinks and parallel inputs.

    Warns
    -----
    ValidityWarning
        From a field of order 1/N, if the Gram matrices of the hidden layers fluctuate by half of
        them, or a mean is shifted by half of the kernel, once each.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.BlockNetwork(depth=12, activation="silu", gated=True, branch_scale=0.2)
    >>> ft.solve(net, [[1.0, 0.5], [0.5, 1.0]]).kernels[-1].round(4)
    array([[1.    , 0.4081],
           [0.4081, 1.    ]])
    """
    kernel = validation.input_kernel_array("K0", K0)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    if order != 1:
        if order == 2:
            raise residual_only("order=2", network)
        raise ValueError(f"order must be 1 for a {type(network).__name__}, got {order!r}")
    return GramSolution(network, kernel, rtol)
