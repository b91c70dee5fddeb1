"""`solve` and the result it returns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.tolerance import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.doors import door
from fieldtheory.networks.family import (
    CONVENTIONS,
    LayeredNetwork,
    checked_network,
    input_width,
)
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import (
    angles,
    decorrelations,
    equal_inputs,
    finite_width,
    fluctuations,
    gains,
    kernels,
    logarithms,
    pair_map,
    tangents,
    unlimited,
    vanishing_signals,
    wave_averages,
    wave_layers,
)
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.interacting_neurons import SecondOrder
from fieldtheory.numerics.output_law import OutputLaw, OutputMoments, edgeworth, nearest_mixture
from fieldtheory.numerics.pair_fluctuations import PairGains
from fieldtheory.numerics.pair_observables import PairObservables
from fieldtheory.numerics.pair_recursions import OutputRecursion, TangentRecursion
from fieldtheory.numerics.pair_theory import PairTheory
from fieldtheory.numerics.result import Result
from fieldtheory.numerics.scaled_numbers import Scaled, scaled
from fieldtheory.numerics.scaled_pairs import scaled_pairs
from fieldtheory.numerics.substitution import accumulate, propagate
from fieldtheory.numerics.symmetric_matrices import assembled, unpacked
from fieldtheory.numerics.validity import (
    warn_if_not_small,
    warn_if_orders_are_close,
    warn_if_unknown,
    warn_of_left_out,
)

# What there is if terms of order 1/N² are not found.
_WITHOUT = "; order=1 does without them"


def field(compute: Callable[[Any], np.ndarray]) -> cached_property[np.ndarray]:
    """A field of `Solution`: kept once computed, refused where the table does not define it."""

    @wraps(compute)
    def checked(solution: Solution) -> np.ndarray:
        solution._require(compute.__name__)
        with relative_tolerance(solution.rtol):
            return compute(solution)

    return cached_property(checked)


@dataclass(frozen=True, eq=False)
class Solution(Result):
    """The theory of one network in numbers; every field is computed when first asked for.

    With L the depth, P the number of inputs and ``...`` the batch axes of ``branch_scale``,
    ``skip_scale`` and K0:

    =====================  ================================  =====================================
    field                  shape                             meaning
    =====================  ================================  =====================================
    residual_kernels       (..., L+2) or (..., L+2, P, P)    C*^(l), last entry the output kernel
    kernels                the same                          K^(l), last entry the output kernel
    residual_response      (..., L+1) or (..., L+1, P, P)    η^(l) = ∂C^(l)/∂K^(0)
    response               the same                          χ^(l) = ∂K^(l)/∂K^(0)
    output_kernel          (...) or (..., P, P)              K^(L+1)
    output_response        the same                          χ^out
    tangent_kernels        (..., L+2) or (..., L+2, P, P)    Θ^(l), last entry that of the output
    output_tangent_kernel  (...) or (..., P, P)              Θ^(L+1)
    log_kernels            (..., L+2) or (..., L+2, P, P)    ln|K^(l)|, whatever its size
    log_response           (..., L+1) or (..., L+1, P, P)    ln|χ^(l)|, whatever its size
    log_tangent_kernels    (..., L+2) or (..., L+2, P, P)    ln|Θ^(l)|, whatever its size
    tangent_signs          (..., L+2) or (..., L+2, P, P)    the signs of Θ^(l): 1, 0 or −1
    decorrelation          (..., L+2, P, P)                  1 − K_αβ/√(K_αα K_ββ)
    full_response          (..., L+1, P, P, 3)               ∂K_αβ by (K_αα, K_ββ, K_αβ) of inputs
    G12                    (L+2, L+2) or (L+2, L+2, P, P)    response propagator, with its 1/N
    G11                    (L+2, L+2) or (L+2, L+2, p, p)    Cov(C^(l), C^(m))
    kernel_variance        (L+1,) or (L+1, P, P)             Var K^(l)
    mean_shift             (L+2,) or (L+2, P, P)             ⟨C^(l)⟩ − C*^(l) to order 1/N
    kernel_shift           the same                          ⟨K^(l)⟩ − K*^(l) to order 1/N
    four_point             (L+1,) or (L+1, p, p)             four-point vertex V^(l)
    output_kurtosis        () or (P,)                        3 Var C/C*² of the output
    mean_shift_2           (L+2,)                            1/N² of ⟨C^(l)⟩, with ``order=2``
    kernel_shift_2         (L+2,)                            1/N² of ⟨K^(l)⟩, with ``order=2``
    variance_2             (L+2,)                            1/N² of Var C^(l), with ``order=2``
    third_cumulant         (L+2,)                            ⟨(C^(l) − ⟨C^(l)⟩)³⟩, with ``order=2``
    four_point_2           (L+1,)                            1/N of V^(l), with ``order=2``
    order_ratio            (L+2,)                            1/N² relative to 1/N, with ``order=2``
    resummed_mean          (L+2,)                            ⟨C^(l)⟩ from its logarithm, ``order=2``
    resummed_variance      (L+2,)                            Var C^(l) from ln⟨C²⟩, with ``order=2``
    =====================  ================================  =====================================

    Responses of P inputs are the (αβ) <- (αβ) entries (F25 eqs. (128)-(130)), exact for moving
    one kernel entry alone; ``full_response`` has those to the two variances as well.

    The tangent kernel Θ^(l) = Σ_θ ∂h_iα^(l)/∂θ ∂h_iβ^(l)/∂θ (SR section 5 and eq. (9)) is that of
    all weights σ_w w_ij/√N and biases σ_b b_i, trained as the w_ij and b_i of variance one (SR;
    Jacot et al., arXiv:1806.07572), read-in and readout among them; see `tangent_kernels` for
    others. It needs ⟨φ'²⟩, which φ with jumps do not have.

    Where inputs are identical, their covariances equal the variances to the last bit.
    All fluctuations contain their powers of 1/N, so that ⟨C⟩ = C* + mean_shift + mean_shift_2 and
    Var C = diag G11 + variance_2, up to 1/N³. The four-point vertex of two neurons i ≠ j is
    V^(l)/N = ⟨h_i² h_j²⟩ − ⟨h_i²⟩⟨h_j²⟩, of P inputs ⟨h_iα h_iβ ; h_jγ h_jδ⟩, the excess kurtosis
    of an output ⟨y⁴⟩/⟨y²⟩² − 3.

    ``log_kernels``, ``log_response`` and ``log_tangent_kernels`` are there where kernels leave the
    range of float64, see `logarithms`, also for φ that grows faster than any power (exp(h)) or
    between powers (h log(1 + |h|)), see `unlimited`. They are −∞ where a kernel or response
    vanishes, and ∞ where the logarithm exceeds float64 too: that of the kernel of exp(h) is
    proportional to the kernel before it. Of waves that grow exponentially (exp(h) sin(h)) the
    covariance of two inputs of different norms is that of a phase as large as the variances: where
    roundings of K0 and of the parameters change its sign, or its logarithm by 1e-6 of it, entries
    are NaN, with a `ValidityWarning`, as is what depends on them; variances have logarithms
    throughout, see `wave_layers`. So are covariances of waves beside other functions
    (exp(h) sin(h) + tanh(h)) where neither is nothing beside the other and waves cancel all digits
    of their averages, see `wave_averages`. The absolute error of logarithms is a few roundings of
    them, 1e-13 where they are 500: so many digits of the kernel itself are known. Logarithms of
    covariances lose digits where they are small against the variances.

    ``decorrelation`` keeps its digits where it is small, see `decorrelations`: to 1e-12 for ReLU,
    leaky ReLU and |x| and, for inputs of one norm, for smooth φ; 1e-8 for other kinks; to an
    absolute 1e-15 for other φ and inputs of different norms.
    ``response`` and ``tangent_kernels`` of ReLU, leaky ReLU and |x| are right to 1e-12 at all
    angles; those of other φ with kinks at the angle θ of two inputs to about 1e-16/θ.

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

    network: LayeredNetwork
    input_kernel: np.ndarray
    convention: str = "derivative"
    rtol: float = DEFAULT_TOLERANCE
    order: int = 1
    progress: bool = False

    @field
    def residual_kernels(self) -> np.ndarray:
        """C*^(l)."""
        return self._assembled(self._variances[0], self._has_matrix and self._covariances[0])

    @field
    def kernels(self) -> np.ndarray:
        """K^(l)."""
        return self._assembled(self._variances[1], self._has_matrix and self._covariances[1])

    @field
    def residual_response(self) -> np.ndarray:
        """η^(l), with η^(0) = 1, or N/d_in in the convention of F25."""
        pair = self._has_matrix and self._pair_responses[0][:-1]
        return self._assembled(self._own_responses[0][:-1], pair)

    @field
    def response(self) -> np.ndarray:
        """χ^(l), with χ^(0) = 1, or N/d_in in the convention of F25."""
        pair = self._has_matrix and self._pair_responses[1][:-1]
        return self._assembled(self._own_responses[1][:-1], pair)

    @field
    def output_kernel(self) -> np.ndarray:
        """K^(L+1)."""
        own = self._variances[1][-1]
        if not self._has_matrix:
            return own
        if "kernels" in vars(self):
            return self.kernels[..., -1, :, :].copy()
        return self._output_matrix(0, own)

    @field
    def output_response(self) -> np.ndarray:
        """χ^out = ∂K^(L+1)/∂K^(0)."""
        own = self._own_responses[1][-1]
        if not self._has_matrix:
            return own
        if "_pair_responses" in vars(self):
            return assembled(own, self._pair_responses[1][-1], self._pairs)
        return self._output_matrix(1, own)

    @field
    def tangent_kernels(self) -> np.ndarray:
        """Θ^(l), with Θ^(0) = C^(0) and Θ^(l) = (γ_l² + a_l ⟨φ'φ'⟩) Θ^(l-1) + C^(l)."""
        return self.trained_tangents()

    @field
    def output_tangent_kernel(self) -> np.ndarray:
        """Θ^(L+1) = a_{L+1} ⟨φ'φ'⟩ Θ^(L) + C^(L+1)."""
        if "tangent_kernels" in vars(self):
            return self._at_output(self.tangent_kernels)
        return self.trained_output_tangent()

    @field
    def log_kernels(self) -> np.ndarray:
        """ln|K^(l)|, also where K^(l) exceeds float64."""
        if self._kernels_stay:
            return logarithms.of_array(self.kernels)
        own, pairs = self._beyond_float64
        found = self._assembled(own.log_kernels, self._has_matrix and pairs.log_kernels)
        warn_if_unknown("log_kernels", found)
        return found

    @field
    def log_response(self) -> np.ndarray:
        """ln|χ^(l)|, also where χ^(l) exceeds float64."""
        if self._stays_in_float64("response"):
            return logarithms.of_array(self.response)
        layers, pairs = self._beyond_float64
        depth = self.network.depth
        own = logarithms.log_responses(layers.gains, depth)
        pair = self._has_matrix and logarithms.log_responses(pairs.gains, depth)
        found = self._assembled(own, pair) - np.log(self._input_width)
        warn_if_unknown("log_response", found)
        return found

    @field
    def log_tangent_kernels(self) -> np.ndarray:
        """ln|Θ^(l)|, also where Θ^(l) exceeds float64."""
        found = self._scaled_tangents.log
        warn_if_unknown("log_tangent_kernels", found)
        return found

    @field
    def tangent_signs(self) -> np.ndarray:
        """1, 0 or −1, the sign of Θ^(l), also where Θ^(l) exceeds float64."""
        found = np.sign(self._scaled_tangents.mantissa)
        warn_if_unknown("tangent_signs", found)
        return found

    @field
    def decorrelation(self) -> np.ndarray:
        """1 − K_αβ^(l)/√(K_αα^(l) K_ββ^(l)), 0 on the diagonal."""
        first, second = (self._single_inputs[..., index] for index in self._pairs)
        K0 = self.input_kernel[..., *self._pairs]
        if (self._single_inputs == 0).any():
            raise ValueError("decorrelation needs positive variances, got 0 in K0")
        initial = angles.of_input(first, second, K0)
        found = decorrelations.of_pairs(self._scaled, initial, self._pairs)
        return self._assembled(np.zeros(self._scaled.kernels.mantissa.shape), found)

    @field
    def full_response(self) -> np.ndarray:
        """∂K_αβ^(l)/∂(K_αα, K_ββ, K_αβ)^(0) on the last axis; a variance responds in the last."""
        pairs, variance = self._pairs, self._own_responses[1]
        sources = gains.cross_gains(self.network, self._variances[1], self._covariances[1], pairs)
        parts = [
            gains.driven_response(self._chain.skips, self._pair_gains, source, variance[..., index])
            for source, index in zip(sources, pairs, strict=True)
        ]
        zeros = np.zeros_like(variance[:-1])
        to_first = self._assembled(zeros, parts[0][:-1], lower=parts[1][:-1])
        to_second = self._assembled(zeros, parts[1][:-1], lower=parts[0][:-1])
        return np.stack([to_first, to_second, self.response], axis=-1)

    @field
    def G12(self) -> np.ndarray:
        """⟨C^(l) C̃^(m)⟩ = Δ12^lm / N; for P inputs of the (αβ) <- (αβ) entries."""
        size = self.network.depth + 2
        sources = np.eye(size)
        sources[0, 0] = 1 / self._input_width
        skips = self._chain.skips
        if not self._has_matrix:
            return propagate(skips, self._own_gains, sources) / self.network.width

        def columns(gain: np.ndarray) -> np.ndarray:
            rows = np.repeat(sources[:, :, None], gain.shape[-1], axis=-1)
            return propagate(skips, gain, rows)

        own, pair = columns(self._own_gains), columns(self._pair_gains)
        return assembled(own, pair, self._pairs) / self.network.width

    @field
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m)) to order 1/N (F25 eq. (131)); of P inputs for all pairs of pairs."""
        if self._has_matrix:
            G11 = self.pair_theory.G11
            same = np.diagonal(np.diagonal(G11), axis1=0, axis2=1)
            warn_if_not_small(
                self.network, same[:, self.pair_theory.gains.places[0]], self._variances[0]
            )
            return G11
        C, K = self._seen
        S22 = fluctuations.source_covariance(self.network, self._chain, K, C)
        gains, width = self._moving_gains, self.network.width
        G11 = fluctuations.kernel_covariance(self._chain, gains, S22, width)
        warn_if_not_small(self.network, np.diagonal(G11), self._variances[0])
        return G11

    @field
    def kernel_variance(self) -> np.ndarray:
        """Var K^(l) to order 1/N."""
        if self._has_matrix:
            return unpacked(np.diagonal(self.pair_theory.kernel_covariance, axis1=1, axis2=2), True)
        return fluctuations.accumulated_variance(self._chain, self.G11)

    @field
    def mean_shift(self) -> np.ndarray:
        """⟨C^(l)⟩ − C*^(l) to order 1/N: one loop, see `interacting_neurons`."""
        width = self.network.width
        C, K = self._seen
        if self._has_matrix:
            theory = self.pair_theory
            own = [
                self._shift_of_one(theory.layers, C[:, i], K[:, i], self._moving_gains[:, i])
                for i in range(self.inputs)
            ]
            return unpacked(theory.shift(np.stack(own, axis=-1)), True) / width
        return self._shift_of_one(self._chain, C, K, self._moving_gains) / width

    @field
    def kernel_shift(self) -> np.ndarray:
        """⟨K^(l)⟩ − K*^(l) to order 1/N, by K^(l) = γ_l² K^(l-1) + C^(l), exact for the means."""
        return accumulate(layer_coefficients(self.network).skips, self.mean_shift)

    @field
    def four_point(self) -> np.ndarray:
        """V^(l), from Var K^(l) and the covariances of K^(l) with what its neurons add to kernels.

            V/N = Var K + 2 Σ_{k<=l} A²_lk Σ_m G12^km β_m,
            β_m = a_m ⟨h^(l)² ; g(h^(m-1))⟩ = 2 a_m M'(K^(m-1)) Cov(h^(l), h^(m-1))²

        PDLT-B (B.26) has the terms of the last layer only.
        """
        if self._has_matrix:
            return self.pair_theory.four_point
        gains, K = self._moving_gains, self.kernels
        seen = fluctuations.seen_by_neurons(self.network, self._chain, gains, K)
        return self.network.width * self.kernel_variance + 2 * seen

    @field
    def output_kurtosis(self) -> np.ndarray:
        """⟨y⁴⟩/⟨y²⟩² − 3 = 3 Var C^(L+1)/C*^(L+1)² to order 1/N; 0 where the output vanishes."""
        variance, mean = self.G11[-1, -1], self._variances[0][-1]
        if self._has_matrix:
            variance = np.diagonal(variance)[self.pair_theory.gains.places[0]]
        return 3 * ratio(ratio(variance, mean), mean)

    @field
    def mean_shift_2(self) -> np.ndarray:
        """The term of ⟨C^(l)⟩ of order 1/N²: two loops."""
        return self._second_order(0) / self.network.width**2

    @field
    def kernel_shift_2(self) -> np.ndarray:
        """The term of ⟨K^(l)⟩ of order 1/N²."""
        return accumulate(layer_coefficients(self.network).skips, self.mean_shift_2)

    @field
    def variance_2(self) -> np.ndarray:
        """The term of Var C^(l) of order 1/N²: one loop."""
        return self._second_order(1) / self.network.width**2

    @field
    def third_cumulant(self) -> np.ndarray:
        """⟨(C^(l) − ⟨C^(l)⟩)³⟩ to order 1/N²."""
        return self._second_order(2) / self.network.width**2

    @field
    def four_point_2(self) -> np.ndarray:
        """The next term of the four-point vertex: N ⟨h_i² ; h_j²⟩ = four_point + four_point_2."""
        self._second_order(1)
        return self._variances[1][:-1] ** 2 * self._second[0].pairing / self.network.width

    @field
    def order_ratio(self) -> np.ndarray:
        """By how much the terms of order 1/N² are smaller than those of order 1/N.

        The larger of |variance_2|/Var C and |mean_shift_2|/(|mean_shift| + Var C/C*).
        """
        return self._ratio_of_orders(*(self._second_order(quantity) for quantity in (0, 1)))

    @field
    def resummed_mean(self) -> np.ndarray:
        """⟨C^(l)⟩ from the expansion of its logarithm, see `resummed_variance`."""
        return self._resummed[0]

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
        return self._resummed[1]

    def output_law(self, method: str = "mixture") -> OutputLaw:
        """The law of one output y at the width of the network, to the order of the solution.

        Given the output kernel C = C^(L+1), y is Gaussian of variance C, and C fluctuates:
        p(y) = ⟨N(y; 0, C)⟩, for one input.

        Parameters
        ----------
        method : {"mixture", "edgeworth"}
            "mixture": the average over a positive law of C with the mean and variance of the
            solution: the gamma law at order 1; at order 2 the generalised gamma law, which has the
            third cumulant as well, with `resummed_mean` and `resummed_variance`. Outside the
            expansion, where no positive law has all of these, it is the gamma law of order 1, or,
            if the mean to order 1/N is below the variance of the bias, that of mean C*.
            "edgeworth": the expansion of p(y) itself in 1/N, a Gaussian with Hermite
            polynomials, which may be negative.

        Returns
        -------
        OutputLaw
            With ``pdf(y)``, ``cdf(y)``, ``sf(y)`` and ``ppf(p)``; an output is beyond ±t
            with probability ``2 * sf(t)``.

        Raises
        ------
        ValueError
            If the output vanishes, or there are several inputs.

        Warns
        -----
        ValidityWarning
            With what "mixture" leaves out, where no positive law has all moments.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> net = ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.3, width=30)
        >>> law = ft.solve(net, 0.5, order=2).output_law()
        >>> law.ppf([0.01, 0.5, 0.99]).round(3)
        array([-1.701,  0.   ,  1.701])
        """
        validation.choice("method", method, ("mixture", "edgeworth"))
        self._require("G12", "output_law")
        if self._has_matrix:
            raise ValueError(
                f"output_law is for one input, got K0 of shape {self.input_kernel.shape}: solve "
                "with the variance of one of them"
            )
        if method == "edgeworth":
            return edgeworth(self._output_moments)
        law, left_out = nearest_mixture(self._output_moments)
        warn_of_left_out(self.network, left_out)
        return law

    def output_density(self, y: Any, method: str = "mixture") -> np.ndarray:
        """The density of one output at y, a number or an array, see `output_law`.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> s = ft.solve(ft.ResidualNetwork(depth=5, branch_scale=0.3, width=30), 0.5)
        >>> s.output_density([0.0, 1.0], method="edgeworth").round(4)
        array([0.5421, 0.214 ])
        """
        return self.output_law(method).pdf(y)

    def __repr__(self) -> str:
        net = self.network
        return (
            f"Solution(depth={net.depth}, activation={net.activation.name}, "
            f"inputs={self.inputs}, width={net.width})"
        )

    def _require(self, name: str, what: str = "") -> None:
        """Raise ValueError unless the field is defined for this network and K0.

        ``what`` is what the message speaks of, if not of the field.
        """
        row, name = self.table[name], what or name
        if not self._has_order(row):
            raise ValueError(f"{name} needs solve(..., order={row.loops}), got order={self.order}")
        if not row.batches and self.network.batch_shape:
            raise ValueError(f"{name} needs one network, got scales with batch axes")
        if not row.batches and self.input_kernel.ndim not in (0, 2):
            raise ValueError(f"{name} needs one kernel, got shape {self.input_kernel.shape}")
        if not row.defined(self._has_matrix):
            number = {"one": "one input", "several": "several inputs"}[row.inputs]
            raise ValueError(f"{name} is for {number}, got K0 of shape {self.input_kernel.shape}")

    def _has_order(self, field: Field) -> bool:
        return field.loops <= self.order

    def _is_defined(self, field: Field) -> bool:
        return self._has_order(field) and super()._is_defined(field)

    @cached_property
    def _second(self) -> tuple[SecondOrder, tuple[str, ...]]:
        variance = self.network.width * np.diagonal(self.G11)
        try:
            found, failures = finite_width.at_second_order(
                self.network, self._chain, self._seen, variance
            )
        except QuadratureError as error:
            raise QuadratureError(f"at order 1/N²: {error}{_WITHOUT}") from None
        if not any(failures[:2]):
            terms = (self._from_input(values) for values in (found.shift, found.variance))
            warn_if_orders_are_close(self.network, self._ratio_of_orders(*terms))
        return found, failures

    def _second_order(self, quantity: int) -> np.ndarray:
        """N² times the mean (0), the variance (1) or the third cumulant (2) at order 1/N²."""
        found, failures = self._second
        if failures[quantity]:
            name = ("mean", "variance", "third cumulant")[quantity]
            raise QuadratureError(f"the {name} at order 1/N²: {failures[quantity]}{_WITHOUT}")
        terms = found.shift, found.variance, found.third_cumulant
        return self._from_input(terms[quantity])

    def _ratio_of_orders(self, shift: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Terms of order 1/N², times N², relative to those of order 1/N."""
        first, N = np.diagonal(self.G11), self.network.width
        size = np.abs(self.mean_shift) + ratio(first, self.residual_kernels)
        ratios = ratio(np.abs(shift), size), ratio(np.abs(variance), first)
        return np.maximum(*ratios) / N**2

    @cached_property
    def pair_theory(self) -> PairTheory:
        """What the fluctuations of several inputs are made of."""
        own, joint = self._variances[1], self._covariances[1]
        of_pairs = gains.gains_of_fluctuations(
            self.network, own, joint, self._pairs, self._pair_gains
        )
        moved = PairGains(self._moving_gains, *of_pairs)
        layers = layer_coefficients(self.network)
        seen = vanishing_signals.seen_kernels(
            self.network, self.kernels[:-1], self.residual_kernels[:-1]
        )
        moved, kernel, added = equal_inputs.made_one(self.network, moved, *seen)
        signals = PairObservables(self.network, kernel, added, self.progress)
        return PairTheory(layers, moved, signals)

    def _shift_of_one(
        self, layers: LayerCoefficients, C: np.ndarray, K: np.ndarray, gains: np.ndarray
    ) -> np.ndarray:
        """N (⟨C⟩ − C*) of one input, all of shape (L + 2,)."""
        if not network_entries(self.network).has_closed_kinks:
            with suppress(QuadratureError):
                first = finite_width.at_first_order(self.network, layers, (C, K))
                return self._from_input(first.shift)
        S22 = fluctuations.source_covariance(self.network, layers, K, C)
        G11 = fluctuations.kernel_covariance(layers, gains, S22, 1)
        variance = fluctuations.accumulated_variance(layers, G11)
        return fluctuations.shift_by_averages(self.network, layers, gains, (C, K), variance)

    @cached_property
    def _resummed(self) -> tuple[np.ndarray, np.ndarray]:
        return finite_width.resummed(
            self.residual_kernels,
            self.mean_shift,
            np.diagonal(self.G11),
            self.mean_shift_2,
            self.variance_2,
        )

    @cached_property
    def _output_moments(self) -> OutputMoments:
        C = float(self.residual_kernels[-1])
        if C == 0:
            raise ValueError("the output vanishes: it has no density")
        found = OutputMoments(
            leading=C,
            floor=float(self._chain.biases[-1]),
            shift=float(self.mean_shift[-1]),
            variance=float(self.G11[-1, -1]),
        )
        if self.order == 1:
            return found
        try:
            mean, spread = float(self.resummed_mean[-1]), float(self.resummed_variance[-1])
        except OverflowError:
            # No law has them; the expansion of the density does without.
            mean = spread = np.inf
        return found._replace(
            order=2,
            shift_2=float(self.mean_shift_2[-1]),
            variance_2=float(self.variance_2[-1]),
            third_cumulant=float(self.third_cumulant[-1]),
            mean=mean,
            spread=spread,
        )

    def _from_input(self, of_layers: np.ndarray) -> np.ndarray:
        """The kernel of the input does not fluctuate."""
        return np.concatenate([[0.0], of_layers])

    @cached_property
    def _pairs(self) -> tuple[Any, ...]:
        return np.triu_indices(self.inputs, 1)

    @cached_property
    def _chain(self) -> LayerCoefficients:
        trailing = int(self._has_matrix)
        return layer_coefficients(self.network, trailing, self._variances[0].ndim - 1 - trailing)

    @property
    def _single_inputs(self) -> np.ndarray:
        K0 = self.input_kernel
        return np.diagonal(K0, axis1=-2, axis2=-1) if self._has_matrix else K0

    @cached_property
    def _variances(self) -> tuple[Any, ...]:
        return kernels.variances(self.network, self._single_inputs, int(self._has_matrix))

    @cached_property
    def _seen(self) -> tuple[np.ndarray, np.ndarray]:
        """C*^(l) and K^(l) of single inputs as φ that jumps at zero sees them."""
        C, K = self._variances
        seen = vanishing_signals.seen(self.network, K)
        return np.concatenate([seen[:1], C[1:]]), seen

    @cached_property
    def _scaled(self) -> logarithms.ScaledLayers:
        own = self._single_inputs
        return logarithms.scaled_layers(self.network, own, int(self._has_matrix))

    @cached_property
    def _beyond_float64(self) -> tuple[Any, Any]:
        """The layers of single inputs and of pairs, None for one input, in numbers of any size."""
        own, inputs = self._single_inputs, int(self._has_matrix)
        covariance = self.input_kernel[..., *self._pairs] if inputs else None
        layers: Any
        of_pairs: Any = scaled_pairs
        if not unlimited.needs_unlimited(self.network):
            layers = self._scaled
        elif wave_averages.has_growing_waves(self.network):
            layers = wave_layers.wave_layers(self.network, own, inputs)
            of_pairs = wave_layers.wave_pairs
        else:
            layers = unlimited.unlimited_layers(self.network, own, inputs)
            of_pairs = unlimited.unlimited_pairs
        pairs = None if covariance is None else of_pairs(layers, own, covariance, self._pairs)
        return layers, pairs

    def _stays_in_float64(self, name: str) -> bool:
        """Whether a field of kernels or responses can be computed and loses no digits."""
        if name != "kernels" and not self._kernels_stay:
            return False
        try:
            return not logarithms.leaves_float64(getattr(self, name))
        except ArithmeticError:
            return False

    @cached_property
    def _kernels_stay(self) -> bool:
        return self._stays_in_float64("kernels")

    @cached_property
    def _covariances(self) -> tuple[Any, ...]:
        K0 = self.input_kernel[..., *self._pairs]
        return kernels.covariances(self.network, self._variances, K0, self._pairs)

    @cached_property
    def _output_matrices(self) -> np.ndarray:
        recursion = partial(OutputRecursion, rows=(0, 1), layer=self.network.depth + 1)
        found = pair_map.output_matrices(
            recursion, self.network, self._variances[1], self.input_kernel
        )
        found[1] /= self._input_width
        return found

    @cached_property
    def _own_gains(self) -> np.ndarray:
        K = self._variances[1]
        return gains.variance_gains(self.network, K, int(self._has_matrix))

    @cached_property
    def _moving_gains(self) -> np.ndarray:
        """`_own_gains`, zero by variances that vanish, as they do at any width."""
        moving = self._own_gains.copy()
        moving[1:][self._variances[1][:-1] == 0] = 0.0
        return moving

    def trained_tangents(self, trained: tangents.Trained | None = None) -> np.ndarray:
        """Θ^(l) with what is said to be trained, everything if left out; see `tangent_kernels`."""
        own, K = self._own_tangents(trained), self._variances
        if not self._has_matrix:
            return self._assembled(own, None)
        sources, kernel = self._covariances
        if trained is not None:
            pairs = self._pairs
            sources = tangents.own_of_pairs(self.network, trained, K[1], kernel, pairs)
        same = kernels.identical(K[0][0], kernel[0], self._pairs)
        of_same = own[..., self._pairs[0]]
        chain = self._chain.skips, self._pair_gains, sources
        return self._assembled(own, tangents.tangents(*chain, same, of_same))

    def trained_output_tangent(self, trained: tangents.Trained | None = None) -> np.ndarray:
        """Θ^(L+1) alone, which takes memory for a few matrices."""
        own = self._own_tangents(trained)[-1]
        if not self._has_matrix:
            return own
        K, batch = self._variances[1], own.shape[:-1]
        if batch or not (own > 0).all():
            whole = tangents.Trained.everything(self.network) if trained is None else trained
            given = K, own, self.input_kernel[..., *self._pairs], self._pairs
            pairs = tangents.output_tangents(self.network, whole, *given)[1]
            found = assembled(own, pairs, self._pairs)
        else:
            found = np.empty((1, *self.input_kernel.shape))
            maps = pair_map.PairMaps(TangentRecursion(self.network, trained))
            maps.fill(found, self.input_kernel, np.concatenate([K, own[None]]))
            np.fill_diagonal(found := found[0], own)
        if not np.isfinite(found).all():
            # The recursion that keeps the layers says which of them.
            self.trained_tangents(trained)
        return found

    def scaled_tangents(self, trained: tangents.Trained | None = None) -> Scaled:
        """Θ^(l) as `trained_tangents` gives it, whatever its size."""
        if self._kernels_stay:
            with suppress(ArithmeticError):
                return scaled(self.trained_tangents(trained))
        whole = tangents.Trained.everything(self.network) if trained is None else trained
        layers, pairs = self._beyond_float64
        own = layers.tangents(whole)
        if not self._has_matrix:
            return Scaled(*(self._assembled(part, None) for part in own))
        K0, first = self._single_inputs, self._pairs[0]
        same = kernels.identical(K0, self.input_kernel[..., *self._pairs], self._pairs)
        parts = zip(own, pairs.tangents(whole), strict=True)
        return Scaled(
            *(self._assembled(one, np.where(same, one[..., first], pair)) for one, pair in parts)
        )

    @cached_property
    def _scaled_tangents(self) -> Scaled:
        return self.scaled_tangents()

    def _own_tangents(self, trained: tangents.Trained | None) -> np.ndarray:
        C, K = self._variances
        trailing = int(self._has_matrix)
        slopes = tangents.slope_gains(self.network, K, trailing)
        if trained is not None:
            C = tangents.own_of_inputs(self.network, trained, K, trailing)
        return tangents.tangents(self._chain.skips, slopes, C)

    def _at_output(self, layers: np.ndarray) -> np.ndarray:
        """The entry of the output of a field of all layers."""
        return (layers[..., -1, :, :] if self._has_matrix else layers[..., -1]).copy()

    @cached_property
    def _pair_gains(self) -> np.ndarray:
        K, kernel = self._variances[1], self._covariances[1]
        return gains.covariance_gains(self.network, K, kernel, self._pairs)

    @cached_property
    def _own_responses(self) -> tuple[Any, ...]:
        return self._to_the_input(gains.responses(self._chain.skips, self._own_gains))

    @cached_property
    def _pair_responses(self) -> tuple[Any, ...]:
        return self._to_the_input(gains.responses(self._chain.skips, self._pair_gains))

    @property
    def _input_width(self) -> float:
        return input_width(self.network, self.convention)

    def _to_the_input(self, derivatives: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """N ⟨· C̃^(0)⟩, the derivatives by K^(0) over ν_0."""
        nu = self._input_width
        return derivatives if nu == 1.0 else tuple(found / nu for found in derivatives)

    def _output_matrix(self, index: int, own: np.ndarray) -> np.ndarray:
        """One of `_output_matrices`, or OverflowError with the layer, from a pair that meets it."""
        values, inputs = self._output_matrices[index], np.arange(self.inputs)
        values[..., inputs, inputs] = own
        finite = np.isfinite(values).all(axis=tuple(range(values.ndim - 2)))
        if not finite.all():
            i, j = (members[:1] for members in np.nonzero(~finite))
            K0, variances = self.input_kernel[..., i, j], self._variances
            kernel = kernels.covariances(self.network, variances, K0, (i, j))[1]
            of_pairs = gains.covariance_gains(self.network, variances[1], kernel, (i, j))
            gains.responses(self._chain.skips, of_pairs)
        return values

    def _assembled(self, own: np.ndarray, pair: Any, lower: Any = None) -> np.ndarray:
        """Layer axis behind the batch axes, pairs as symmetric matrices."""
        if self._has_matrix:
            return np.moveaxis(assembled(own, pair, self._pairs, lower), 0, -3)
        return np.moveaxis(own, 0, -1)


@door
@named_arguments
def solve(
    network: LayeredNetwork,
    K0: Any,
    convention: str = "derivative",
    rtol: float = DEFAULT_TOLERANCE,
    order: int = 1,
    progress: bool = False,
) -> Solution:
    """Kernels, responses and fluctuations of a network for given inputs.

    Parameters
    ----------
    network : LayeredNetwork
        Its ``branch_scale`` and ``skip_scale`` may have leading batch axes.
    K0 : float or array_like
        Kernel of the input: a variance, an array of variances (a batch), or a covariance matrix
        (..., P, P) of P inputs. See `input_kernel`. A variance of zero is the limit of small ones:
        where φ jumps at zero, as sign(h) and Heaviside(h) do, averages do not see φ(0), but φ on
        either side, so that ⟨φ⟩ is the mean of both.
    convention : {"derivative", "F25"}
        "derivative": η, χ, χ^out and N G12 are derivatives by the kernel of the input, with
        η^(0) = 1 (F25 eq. (57)). "F25": they are N ⟨· C̃^(0)⟩ with ν_0 = d_in/N, from
        ``network.input_dim``, so that η^(0) = N/d_in (F25, after eq. (51)): N/d_in times the
        derivatives. Responses to other layers, kernels and fluctuations are the same.
    rtol : float
        Relative error that the integrals over signals have to reach, from 1e-14 to 0.1; the
        default is 1e-12. A larger one admits activations whose integrals converge slowly or
        cancel. Closed forms and series are as exact as they are. The terms of order 1/N of the
        means are found to 1e-10, those of order 1/N² to 1e-8, or to ``rtol`` where it is larger,
        of themselves or, where they nearly cancel, of 1e-5 of their natural size, powers of
        Var C/C*² times C*. At order 1/N² layers that add less than about 1e-5 of their kernel
        (ReLU, ``branch_scale=0.003``) are too close to one another if φ has kinks or is steep,
        which an error says.
    order : {1, 2}
        Up to which power of 1/N fields are defined; 2 for those of order 1/N².
    progress : bool
        Show progress bars on stderr while G11 and mean_shift of several inputs are computed.

    Returns
    -------
    Solution

    Raises
    ------
    TypeError, ValueError
        If K0 is not finite, not symmetric, not positive semidefinite or of the wrong shape, or
        another argument is not of the stated kind. From a field, if it is not defined for this K0,
        order or activation.
    QuadratureError
        From a field, if an average misses ``rtol``.

    Warns
    -----
    ValidityWarning
        From a field, if kernels fluctuate by half of their mean at order 1/N, or if the terms of
        order 1/N² exceed a tenth of those of order 1/N; or if logarithms depend on digits that
        float64 does not have, and are NaN.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20, branch_scale=0.3)
    >>> s = solve(net, 0.05)
    >>> round(float(s.output_response), 6)
    1.715363
    >>> round(float(solve(net, 0.05, convention="F25").output_response), 6)
    8.576814
    >>> s = solve(net.replace(width=50), 0.05, order=2)
    >>> mean = s.residual_kernels + s.mean_shift + s.mean_shift_2
    >>> variance = np.diagonal(s.G11) + s.variance_2
    >>> bool(s.order_ratio.max() < 0.1)
    True
    """
    checked = checked_network(network)
    kernel = validation.input_kernel_array("K0", K0)
    validation.choice("convention", convention, CONVENTIONS)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    if isinstance(order, bool) or order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, the highest power of 1/N, got {order!r}")
    return Solution(checked, kernel, convention, rtol, int(order), progress)
