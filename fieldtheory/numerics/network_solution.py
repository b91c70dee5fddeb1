"""The result of `solve` in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork, input_width
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.logarithms import Logarithms, decorrelation, log
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.markov.markov_theory import MarkovTheory
from fieldtheory.numerics.neuron_paths import NeuronPaths
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.response_theory import ResponseTheory
from fieldtheory.numerics.result import field
from fieldtheory.numerics.symmetric_matrices import unpacked
from fieldtheory.numerics.tangent.tangent_theory import TangentTheory, WithTangents
from fieldtheory.numerics.validity import SHIFT, warn_if_not_small


@dataclass(frozen=True, eq=False)
class Solution(WithTangents):
    """The theory of one network in numbers; every field is computed when first asked for.

    With L the depth, P the number of inputs and ``...`` the batch axes of ``branch_scale``,
    ``skip_scale`` and K0:

    =======================  ==============================  =====================================
    field                    shape                           meaning
    =======================  ==============================  =====================================
    residual_kernels         (..., L+2) or (..., L+2, P, P)  C*^(l), last entry the output kernel
    kernels                  the same                        K^(l), last entry the output kernel
    residual_response        (..., L+1) or (..., L+1, P, P)  η^(l) = ∂C^(l)/∂K^(0)
    response                 the same                        χ^(l) = ∂K^(l)/∂K^(0)
    output_kernel            (...) or (..., P, P)            K^(L+1)
    output_response          the same                        χ^out
    tangent_kernels          (..., L+2) or (..., L+2, P, P)  Θ^(l), last entry that of the output
    output_tangent_kernel    (...) or (..., P, P)            Θ^(L+1)
    log_kernels              (..., L+2) or (..., L+2, P, P)  ln|K^(l)|, see below
    log_response             (..., L+1) or (..., L+1, P, P)  ln|χ^(l)|
    log_tangent_kernels      (..., L+2) or (..., L+2, P, P)  ln|Θ^(l)|
    tangent_signs            (..., L+2) or (..., L+2, P, P)  the signs of Θ^(l): 1, 0 or −1
    decorrelation            (..., L+2, P, P)                1 − K_αβ/√(K_αα K_ββ)
    full_response            (..., L+1, P, P, 3)             ∂K_αβ by (K_αα, K_ββ, K_αβ) of inputs
    shares                   (..., L+1) or (..., L+1, P)     C^(l)/(γ_l² K^(l-1) + C^(l))
    G12                      (L+2, L+2) or (L+2, L+2, P, P)  response propagator, with its 1/N
    G11                      (L+2, L+2) or (L+2, L+2, p, p)  Cov(C^(l), C^(m))
    G11_error                (L+2, L+2, p, p)                its error, several inputs
    stream_covariance        (L+1, L+1) or (L+1, L+1, p, p)  Cov(R^(l), R^(m)), of blocks
    kernel_variance          (L+1,) or (L+1, P, P)           Var K^(l)
    stream_variance          the same                        Var R^(l), R = (1/N) Σ_i h_i h_i
    mean_shift               (L+2,) or (L+2, P, P)           ⟨C^(l)⟩ − C*^(l) to order 1/N
    mean_shift_error         (L+2, P, P)                     its error, several inputs
    kernel_shift             the same                        ⟨K^(l)⟩ − K*^(l) to order 1/N
    response_shift           (L+1,) or (L+1, P, P)           ∂/∂K^(0) of kernel_shift
    response_shift_error     (L+1, P, P)                     its error, several inputs
    output_response_shift    () or (P, P)                    the same of the output
    residual_response_shift  (L+1,) or (L+1, P, P)           ∂/∂K^(0) of mean_shift
    four_point               (L+1,) or (L+1, p, p)           four-point vertex V^(l)
    four_point_error         (L+1, p, p)                     its error, several inputs
    output_kurtosis          () or (P,)                      3 Var C/⟨C⟩² of the output
    mean_shift_2             (L+2,)                          1/N² of ⟨C^(l)⟩, with ``order=2``
    kernel_shift_2           (L+2,)                          1/N² of ⟨K^(l)⟩, with ``order=2``
    variance_2               (L+2,)                          1/N² of Var C^(l), with ``order=2``
    third_cumulant           (L+2,)                          ⟨(C^(l) − ⟨C^(l)⟩)³⟩, with ``order=2``
    four_point_2             (L+1,)                          1/N of V^(l), with ``order=2``
    order_ratio              (L+2,) or (L+2, P)              1/N² relative to 1/N, with ``order=2``
    resummed_mean            (L+2,)                          ⟨C^(l)⟩ from its logarithm, ``order=2``
    resummed_variance        (L+2,)                          Var C^(l) from ln⟨C²⟩, with ``order=2``
    =======================  ==============================  =====================================

    Notes
    -----
    Responses of P inputs are the (αβ) <- (αβ) entries (F25 eqs. (128)-(130)), exact for moving
    one kernel entry alone; ``full_response`` has those to the two variances as well.

    Of blocks (`BlockNetwork`) R^(l) = (1/N) Σ_i h_i h_i is the Gram matrix of the stream, behind
    the norm where this is behind the sum, and K^(l) its mean for N → ∞. C^(l) are the conditional
    covariances of what the branches add. R^(l) fluctuates by its N units as well:
    ``kernel_variance`` and ``kernel_shift`` are those of R^(l), the last entry of the latter that
    of the output, and ``stream_covariance`` is of all layers. Of layers of one matrix K^(l) is a
    conditional covariance itself, K^(l) = γ_l² K^(l-1) + C^(l), which ``kernel_variance`` and
    ``kernel_shift`` are of; there is no ``stream_covariance``. ``shares`` says what each layer
    adds to the mean square behind it.

    The tangent kernel Θ^(l) = Σ_θ ∂h_iα^(l)/∂θ ∂h_iβ^(l)/∂θ (SR section 5 and eq. (9)) is that of
    all weights σ_w w_ij/√N and biases σ_b b_i, trained as the w_ij and b_i of variance one (SR;
    Jacot et al., arXiv:1806.07572), read-in and readout among them; see `tangent_kernels` for
    others. It needs ⟨φ'²⟩, which φ with jumps do not have.

    ⟨K⟩ responds by ``response + response_shift``, to order 1/N. The shifts of responses are
    differences of mean shifts, checked and right to about 1e-8 of themselves, or to what the errors
    of mean shifts leave; in them parallel inputs move to one side. Variances must not be zero.

    Where inputs are identical, their covariances equal the variances to the last bit.
    ``G11``, ``mean_shift`` and ``four_point`` of several inputs are right to
    about 1e-9 of their natural sizes, C²/N, C/N and K²: shifts that are much smaller, as those of
    |h| for nearly parallel inputs, have few digits or none.
    All fluctuations contain their powers of 1/N, so that ⟨C⟩ = C* + mean_shift + mean_shift_2 and
    Var C = diag G11 + variance_2, up to 1/N³. The four-point vertex of two neurons i ≠ j is
    V^(l)/N = ⟨h_i² h_j²⟩ − ⟨h_i²⟩⟨h_j²⟩, of P inputs ⟨h_iα h_iβ ; h_jγ h_jδ⟩, the excess kurtosis
    of an output ⟨y⁴⟩/⟨y²⟩² − 3.

    ``log_kernels``, ``log_response`` and ``log_tangent_kernels`` are there where kernels leave the
    range of float64, for φ that is a line on either side of zero (ReLU, leaky ReLU, |h|, linear) in
    layers without a norm; those of other φ raise the OverflowError of the field itself. They are −∞
    where a kernel or response vanishes. Their absolute error is a few roundings of them, 1e-13
    where they are 500. Logarithms of covariances lose digits where these are small against the
    variances.

    Inputs that differ from parallel or opposite ones by the rounding of K0 alone, 1 − |c| < 2e-15,
    are parallel. ``decorrelation`` keeps its digits where it is small, to 1e-12, for ReLU, leaky
    ReLU and |h| and, for inputs of one norm, for smooth φ; else its absolute error is 1e-15 in
    every layer. ``response`` and ``tangent_kernels`` of ReLU, leaky ReLU and |h|, and of smooth φ,
    are right to 1e-12 at all angles; those of other φ with kinks at the angle θ of two signals to
    about 1e-16/θ in every layer.

    ``output_kernel``, ``output_response`` and ``output_tangent_kernel`` alone take memory for a few
    matrices (P, P) and are fast for many inputs, most of all for inputs of one norm: see
    `pair_map`. They agree with the fields of all layers to a relative 1e-12, or to as many digits
    as rounding leaves those.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=2), 0.05)
    >>> s.kernels.shape, s.G11.shape, bool(s.kernels[-1] == s.output_kernel)
    ((4,), (4, 4), True)
    """

    table = FIELDS
    settings: ClassVar = {"convention": str, "rtol": float, "order": int}

    network: DeepNetwork
    input_kernel: np.ndarray
    convention: str = "derivative"
    rtol: float = DEFAULT_TOLERANCE
    order: int = 1
    progress: bool = False

    @field
    def residual_kernels(self) -> np.ndarray:
        """C*^(l)."""
        return self._mean_field.residual_kernels

    @field
    def kernels(self) -> np.ndarray:
        """K^(l)."""
        return self._mean_field.kernels

    @field
    def residual_response(self) -> np.ndarray:
        """η^(l), with η^(0) = 1, or N/d_in in the convention of F25."""
        return self._responses.residual_response

    @field
    def response(self) -> np.ndarray:
        """χ^(l), with χ^(0) = 1, or N/d_in in the convention of F25."""
        return self._responses.response

    @field
    def output_kernel(self) -> np.ndarray:
        """K^(L+1)."""
        if self._has_matrix and "kernels" in vars(self):
            return self._mean_field.at_output(self.kernels)
        return self._responses.output_kernel

    @field
    def output_response(self) -> np.ndarray:
        """χ^out = ∂K^(L+1)/∂K^(0)."""
        return self._responses.output_response

    @field
    def log_kernels(self) -> np.ndarray:
        """ln|K^(l)|, also where K^(l) of ReLU and its relatives exceeds float64."""
        return self._logarithms.kernels if self._logarithms else log(self.kernels)

    @field
    def log_response(self) -> np.ndarray:
        """ln|χ^(l)|, also where χ^(l) of ReLU and its relatives exceeds float64."""
        if self._logarithms:
            return self._logarithms.response - np.log(self._responses.input_width)
        return log(self.response)

    @field
    def shares(self) -> np.ndarray:
        """C^(l)/(γ_l² K^(l-1) + C^(l)): of the mean square behind layer l what the layer adds."""
        C, K = self._mean_field.variances
        return np.moveaxis(ratio(C[:-1], K[:-1]), 0, -2 if self._has_matrix else -1)

    @field
    def decorrelation(self) -> np.ndarray:
        """1 − K_αβ^(l)/√(K_αα^(l) K_ββ^(l)), 0 on the diagonal."""
        return decorrelation(self._mean_field)

    @field
    def full_response(self) -> np.ndarray:
        """∂K_αβ^(l)/∂(K_αα, K_ββ, K_αβ)^(0) on the last axis; a variance responds in the last."""
        return np.stack([*self._responses.by_variances, self.response], axis=-1)

    @field
    def G12(self) -> np.ndarray:
        """⟨C^(l) C̃^(m)⟩ = Δ12^lm / N; for P inputs of the (αβ) <- (αβ) entries."""
        return self._responses.propagator / self.network.width

    @field
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m)) to order 1/N (F25 eq. (131)); of P inputs for all pairs of pairs."""
        return self.chain.of_inputs.G11

    @field
    def G11_error(self) -> np.ndarray:
        """Errors of G11 of several inputs, zero where it is exact.

        Standard errors where correlators are averages over sampled paths of a neuron, and what is
        about left out where their Hermite coefficients fall off too slowly, by less than 1e-4.
        """
        return self.chain.of_inputs.G11_error

    @field
    def stream_covariance(self) -> np.ndarray:
        """Cov(R^(l), R^(m)) of the Gram matrices of the stream to order 1/N."""
        return self.chain.of_inputs.stream_covariance

    @field
    def kernel_variance(self) -> np.ndarray:
        """Var K^(l) to order 1/N."""
        return self.chain.of_inputs.kernel_variance

    @field
    def stream_variance(self) -> np.ndarray:
        """Var R^(l) of the Gram matrix (1/N) Σ_i h_iα h_iβ of the stream, of any family.

        N Var R = V + K_αα K_ββ + K_αβ²: of two units, and of one with itself.
        """
        K, V = self.kernels[:-1], self.four_point
        own = np.diagonal(K, axis1=1, axis2=2) if self._has_matrix else K
        squares = own[:, :, None] * own[:, None] if self._has_matrix else K**2
        V = unpacked(np.diagonal(V, axis1=1, axis2=2), True) if self._has_matrix else V
        return (V + squares + K**2) / self.network.width

    @field
    def mean_shift(self) -> np.ndarray:
        """⟨C^(l)⟩ − C*^(l) to order 1/N: one loop, see `interacting_neurons`, `fluctuations`."""
        return self.chain.mean_shifts[0]

    @field
    def mean_shift_error(self) -> np.ndarray:
        """Errors of the mean shift of several inputs, zero where it is exact; see `G11_error`."""
        return self.chain.mean_shifts[1]

    @field
    def kernel_shift(self) -> np.ndarray:
        """⟨K^(l)⟩ − K*^(l) to order 1/N."""
        return self.chain.kernel_shift

    @field
    def residual_response_shift(self) -> np.ndarray:
        """∂/∂K^(0) of the mean shift of C^(l): what the order 1/N adds to η^(l)."""
        return self.response_shifts[0][0, :-1]

    @field
    def response_shift(self) -> np.ndarray:
        """∂/∂K^(0) of the mean shift of K^(l): what the order 1/N adds to χ^(l)."""
        return self.response_shifts[1][0]

    @field
    def response_shift_error(self) -> np.ndarray:
        """Errors of ``response_shift`` of several inputs, zero where the mean shift is exact."""
        return self.response_shifts[1][1]

    @field
    def output_response_shift(self) -> np.ndarray:
        """∂/∂K^(0) of the mean shift of K^(L+1): what the order 1/N adds to χ^out."""
        return self.response_shifts[0][0, -1]

    @cached_property
    def response_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """∂ of the mean shifts of C^(l) and of K^(l), (2, L + 2, ...) and (2, L + 1, ...)."""
        nu = input_width(self.network, self.convention)
        eta = np.concatenate([self.residual_response, self.output_response[None]]) * nu
        residual, stream = self.chain.response_shifts(eta)
        return residual / nu, stream / nu

    @field
    def four_point(self) -> np.ndarray:
        """V^(l), from Var K^(l) and the covariances of K^(l) with what its neurons add to kernels.

            V/N = Var K + 2 Σ_{k<=l} A²_lk Σ_m G12^km β_m,
            β_m = a_m ⟨h^(l)² ; g(h^(m-1))⟩ = 2 a_m M'(K^(m-1)) Cov(h^(l), h^(m-1))²

        PDLT-B (B.26) has the terms of the last layer only.
        """
        return self.chain.of_inputs.four_point

    @field
    def four_point_error(self) -> np.ndarray:
        """Errors of the vertex of several inputs, zero where it is exact; see `G11_error`."""
        return self.chain.of_inputs.four_point_error

    @field
    def output_kurtosis(self) -> np.ndarray:
        """⟨y⁴⟩/⟨y²⟩² − 3 = 3 Var C/⟨C⟩² of C^(L+1), to the order of the solution.

        0 where the output vanishes; of several inputs to order 1/N.
        """
        variance, mean = self.G11[-1, -1], self._mean_field.variances[0][-1]
        if self._has_matrix:
            variance = np.diagonal(variance)[np.equal(*np.triu_indices(self.inputs))]
        elif self.order == 2:
            shift = ratio(self.mean_shift[-1], mean)
            variance = variance + self.variance_2[-1] - 2 * variance * shift
        return 3 * ratio(ratio(variance, mean), mean)

    @field
    def mean_shift_2(self) -> np.ndarray:
        """The term of ⟨C^(l)⟩ of order 1/N²: two loops."""
        return self.chain.one.mean_shift_2

    @field
    def kernel_shift_2(self) -> np.ndarray:
        """The term of ⟨K^(l)⟩ of order 1/N²."""
        return self.chain.kernel_shift_2

    @field
    def variance_2(self) -> np.ndarray:
        """The term of Var C^(l) of order 1/N²: one loop."""
        return self.chain.one.variance_2

    @field
    def third_cumulant(self) -> np.ndarray:
        """⟨(C^(l) − ⟨C^(l)⟩)³⟩ to order 1/N²."""
        return self.chain.one.third_cumulant

    @field
    def four_point_2(self) -> np.ndarray:
        """The next term of the four-point vertex: N ⟨h_i² ; h_j²⟩ = four_point + four_point_2."""
        return self.chain.one.four_point_2

    @field
    def order_ratio(self) -> np.ndarray:
        """By how much the terms of order 1/N² are smaller than those of order 1/N.

        The larger of |variance_2|/Var C and |mean_shift_2|/(|mean_shift| + Var C/C*); of several
        inputs that of each of them alone.
        """
        if not self._has_matrix:
            return self.chain.one.order_ratio
        each = (self.chain.alone(i).order_ratio for i in range(self.inputs))
        return np.stack([*each], axis=-1)

    @field
    def resummed_mean(self) -> np.ndarray:
        """⟨C^(l)⟩ from the expansion of its logarithm, see `resummed_variance`."""
        return self.chain.one.resummed[0]

    @field
    def resummed_variance(self) -> np.ndarray:
        """Var C^(l) from the expansions of ln⟨C⟩ and ln⟨C²⟩ to order 1/N².

            ln(⟨C⟩/C*) = m_1 + m_2 − m_1²/2,    ln(⟨C²⟩/⟨C⟩²) = v_1 + v_2 − 2 m_1 v_1 − v_1²/2

        Layers multiply the kernels of unbounded φ, and logarithms add: for feed-forward networks
        without bias, N = 20 and L = 8, the variance is off by −0.5 % (linear) and −4 % (ReLU) where
        G11 + variance_2 is off by −7 % and −24 %. Bounded φ forgets, and it is no better: −1.3 %
        and −0.3 % (± 0.4 %) for erf with N = L = 20. Neither holds where ``order_ratio`` exceeds
        1; the variance may then be negative.
        """
        return self.chain.one.resummed[1]

    def __repr__(self) -> str:
        net = self.network
        return (
            f"Solution(depth={net.depth}, activation={net.activation.name}, "
            f"inputs={self.inputs}, width={net.width})"
        )

    def has_order(self, field: Field) -> bool:
        """Whether the solution is of the power of 1/N of a field, and the family has it."""
        return field.loops <= self.order and field.name not in self.network.without

    def _is_defined(self, field: Field) -> bool:
        return self.has_order(field) and super()._is_defined(field)

    @cached_property
    def chain(self) -> Any:
        """The theory of order 1/N, of neurons' paths or of a Markov chain."""
        if self.network.markov:
            return MarkovTheory(self._mean_field)
        assert isinstance(self.network, LayeredNetwork)
        return NeuronPaths(self.network, self._mean_field, self.progress)

    @cached_property
    def _mean_field(self) -> MeanField:
        return MeanField(self.network, self.input_kernel)

    @cached_property
    def _responses(self) -> ResponseTheory:
        return ResponseTheory(self._mean_field, input_width(self.network, self.convention))

    @cached_property
    def _logarithms(self) -> Logarithms | None:
        lines = network_functions(self.network).lines
        return Logarithms(self._mean_field, lines) if lines else None

    @cached_property
    def _tangents(self) -> TangentTheory:
        return TangentTheory(self._mean_field)

    @cached_property
    def _spread(self) -> np.ndarray:
        return self.chain.spread(self.kernels)

    @cached_property
    def _shift(self) -> np.ndarray:
        shift = self.chain.kernel_shift
        return warn_if_not_small(self.network, SHIFT, shift, self.kernels)
