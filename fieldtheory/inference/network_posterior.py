"""The posterior of networks of finite width given labels: kernels, evidence, predictions.

Given the kernel C = C^(L+1) of the outputs, these are Gaussian: labels Y (P, d) with noise κ have

    ln p(Y|C) = −(d/2) ln det 2πA − ½ tr Yᵀ A⁻¹ Y,   A = C + κ,
    U = ∂ ln p/∂C = ½ [α αᵀ − d A⁻¹],   α = A⁻¹ Y.

C fluctuates from network to network by 1/N about C*, with the shift m of its mean and the
covariance G11. Averages over its law weighted with p(Y|C) are, to order 1/N,

    ⟨C^(l)⟩ = C* + m + Cov(C^(l), tr U C),
    ⟨f⟩ = f + f'·(m + Cov(C, tr U C)) + ½ f''·G11,
    ln p(Y) = ln p(Y|C*) + tr U m + ½ Var tr U C + ½ (∂² ln p)·G11.

The derivatives are those of `fieldtheory.inference.gaussian_process`.
The order 1/N of networks of this kind is F25 eqs. (38) to (42); their posterior is new.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.inference import learned_response
from fieldtheory.inference.gaussian_process import (
    Corrections,
    Regression,
    fluctuating,
    linear_response,
)
from fieldtheory.inference.learned_response import RespondingResult, labelled_inputs
from fieldtheory.montecarlo.sampling.gain_covariances import response_batches
from fieldtheory.montecarlo.sampling.linear_networks import COPIES, NEURONS, linear_networks
from fieldtheory.montecarlo.sampling.many_inputs import covariance_batches, mean_and_error
from fieldtheory.montecarlo.sampling.plan import BATCHES, given_kernel
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.recursion import accumulate, ratio
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import unpacked
from fieldtheory.numerics.validity import ValidityWarning

# Layers times pairs of inputs up to which G11 is computed as a whole, in seconds; paths for more.
ENTRIES, SAMPLES = 100, 4096
# Seconds of a path, a layer and a pair of inputs.
_SECONDS = 5e-9

FIELDS = fields_of(
    r"""
    labels | training output | Y | labels of the training inputs | always of_none
    residual_kernels | layer | \langle C^{(l)} \rangle_Y | posterior means of the residual kernels
        | always with_error panel=kernels column=C
    kernels | layer | \langle K^{(l)} \rangle_Y | posterior means of the kernels
        | always with_error panel=kernels column=K
    kernel_shift | layer | \langle K^{(l)} \rangle_Y - \langle K^{(l)} \rangle
        | posterior minus prior means of the kernels
        | always with_error panel=learned column=learned
    mean | input output | \langle f \rangle | means of the predictions
        | always with_error of_none
    variance | input output | \mathrm{Var}\,f | variances of the predictions
        | always with_error of_none
    mean_nngp | input output | \langle f \rangle_\infty
        | means of the predictions at infinite width | always of_none
    variance_nngp | input | \mathrm{Var}_\infty\,f
        | variances of the predictions at infinite width | always of_none
    log_evidence | - | \ln p(Y) | logarithm of the evidence | always with_error of_none
    log_evidence_nngp | - | \ln p_\infty(Y)
        | logarithm of the evidence at infinite width | always of_none
    expansion_ratio | - | \epsilon | relative size of the terms of order 1/N | always of_none
    """
)
FIELDS |= learned_response.FIELDS


@dataclass(frozen=True, eq=False)
class NetworkPosterior(RespondingResult):
    """Kernels and predictions of networks of finite width after P labels, from `posterior`.

    With Q inputs, the P training inputs first, and d outputs:

    =====================  ============  =========================================================
    field                  shape         meaning
    =====================  ============  =========================================================
    residual_kernels       (L+2, Q, Q)   posterior means of C^(l)
    kernels                (L+2, Q, Q)   posterior means of K^(l) = γ_l² K^(l-1) + C^(l), or of
                                         R^(l) of a `BlockNetwork`
    kernel_shift           (L+2, Q, Q)   what K^(l) learned: posterior minus prior mean at width N
    mean, variance         (Q, d)        of the outputs without noise, averaged over networks
    mean_nngp              (Q, d)        the mean at infinite width
    variance_nngp          (Q,)          the variance there, the same for every output
    log_evidence           ()            ln p(Y)
    log_evidence_nngp      ()            that of infinite width
    expansion_ratio        ()            how large the terms of order 1/N are, see below
    labels                 (P, d)        Y
    residual_response      (L+1, Q, Q)   ∂⟨C_αβ^(l)⟩/∂K_αβ^(0)
    response               (L+1, Q, Q)   ∂⟨K_αβ^(l)⟩/∂K_αβ^(0)
    response_shift         (L+1, Q, Q)   what labels add to it
    output_response        (Q, Q)        ∂⟨C_αβ^(L+1)⟩/∂K_αβ^(0)
    output_response_shift  (Q, Q)        what labels add to it
    =====================  ============  =========================================================

    For labels (P,) there is no axis d. Standard errors of what is sampled are in ``<name>_error``,
    zero where it is exact. ``expansion_ratio`` is the larger of the largest change of a kernel,
    |kernel_shift_αβ|/√(K_αα K_ββ), and the mean square of the relative fluctuations of the
    eigenvalues of A = C + κ over networks, about (P/N) times the share of C in A squared. The
    expansion holds where it is small: left out of the terms of order 1/N is about this fraction,
    more where they nearly cancel (docs/theory/posterior.md).

    Responses are computed when first asked for: by how much kernels of trained networks change
    where inputs are moved after training, one entry of K0 at a time. Entries of inputs with labels
    are those of further inputs at the same places, so that what was learned stays. They hold all of
    the order 1/N, that of the prior (``response_shift`` of `Solution`) and what labels add, as
    ``kernels`` do. The prior's is never sampled: it takes about a second for a pair of inputs, and
    ``response_shift`` does without it. See `fieldtheory.inference.learned_response`.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, width=100)
    >>> found = posterior(net, [[0.3, 0.1], [0.1, 0.2]], [1.0], noise_variance=0.1)
    >>> found.response_shift[:, 1, 1].round(4) + 0.0
    array([ 0.    ,  0.    , -0.0001, -0.0002])
    >>> found.kernels.shape, found.mean.shape, found
    ((5, 2, 2), (2,), NetworkPosterior(training=1, test=1, order=1, samples=None))
    """

    table = FIELDS
    settings = {"noise_variance": float, "order": int, "samples": int, "seed": int}  # noqa: RUF012

    kernel_shift: np.ndarray
    kernel_shift_error: np.ndarray
    mean_nngp: np.ndarray
    variance_nngp: np.ndarray
    log_evidence: np.ndarray
    log_evidence_error: np.ndarray
    log_evidence_nngp: np.ndarray
    expansion_ratio: np.ndarray
    order: int = 1
    samples: int | None = None
    seed: int = 0

    @property
    def _corrected(self) -> bool:
        return bool(self.order)

    def _response_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """From Cov(·, tr U C^(L+1)) as inputs without labels move."""
        if not self.order:
            none = np.zeros((2, self.network.depth + 2, self.inputs, self.inputs))
            return none, none
        C = self._prior.residual_kernels[-1]
        law = Regression.from_labels(C, self.labels, self.noise_variance)
        if self.network.markov:
            of_chain = self._prior.chain.responses_with_output(law.weights)
            residual, kernels = (np.stack([each, np.zeros_like(each)]) for each in of_chain)
            return residual, kernels
        *both, shares = response_batches(self._prior, law.weights, self.samples, self.seed)
        residual, kernels = (
            np.array([unpacked(each, True) for each in mean_and_error(batches, shares)])
            / self.network.width
            for batches in both
        )
        return residual, kernels

    def __repr__(self) -> str:
        return (
            f"NetworkPosterior(training={len(self.labels)}, "
            f"test={self.inputs - len(self.labels)}, order={self.order}, samples={self.samples})"
        )


@named_arguments
def posterior(
    network: DeepNetwork,
    K0: Any = None,
    Y: Any = None,
    noise_variance: float | None = None,
    order: int = 1,
    *,
    X: Any = None,
    X_test: Any = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool = False,
    exact: bool = False,
) -> NetworkPosterior:
    """Kernels and predictions of a network of finite width after labels, to order 1/N.

    Outputs are independent given the kernel, labels have independent Gaussian noise. The equations
    are those at the head of `fieldtheory.inference.network_posterior`; what `order` 1 leaves out is
    of order 1/N², if the number of labels does not grow with N.

    Parameters
    ----------
    network : ResidualNetwork, BlockNetwork or of a family like them
        Without batch axes.
    K0 : array_like, shape (Q, Q)
        Kernel of the inputs as in `solve`, the P training inputs first, test inputs after them.
    Y : array_like, shape (P,) or (P, d)
        Labels, 1 <= P <= Q.
    noise_variance : float
        κ > 0.
    order : {1, 0}
        The highest power of 1/N; 0 for infinite width alone.
    X, X_test : array_like, shapes (P, D) and (T, D), optional
        Data in place of K0: the inputs with labels, and those without.
    samples : int, optional
        Paths of neurons, at least 320. By default none where (L + 2) Q(Q + 1)/2 <= 100, so that G11
        is computed as a whole, as for every `BlockNetwork`, and 4096 otherwise.
    seed : int
        Seed of the random numbers, >= 0.
    progress : bool
        Show progress bars on stderr.
    exact : bool
        Compute G11 as a whole, without ``samples``, however many inputs and layers there are.

    Returns
    -------
    NetworkPosterior

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, K0 has no Cholesky factor with the noise, φ jumps and paths
        are sampled, or there is not enough memory, of which the message says how much is needed:
        about 1200 (L + 2) Q² bytes, and 12 (L + 2)² Q⁴ for the whole G11.

    Warns
    -----
    ValidityWarning
        If ``expansion_ratio`` exceeds 0.3.

    Notes
    -----
    The time of sampling grows as samples L Q²: 200 inputs and 20 layers take about 20 s.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, width=100, activation="erf", input_dim=2)
    >>> X, X_test = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]
    >>> found = posterior(net, Y=[1.0, -1.0], noise_variance=0.1, X=X, X_test=X_test)
    >>> found.mean.round(3) + 0.0
    array([ 0.875, -0.875,  0.   ])
    >>> bool(found.kernel_shift[-1, 0, 1] < 0 < found.kernel_shift[-1, 0, 0])
    True
    """
    # Relative changes from which on the expansion is doubtful.
    large = 0.3
    inputs = X
    if X is not None and X_test is not None:
        inputs = [validation.finite_array("X", X), validation.finite_array("X_test", X_test)]
        if {part.ndim for part in inputs} != {2} or len({part.shape[1] for part in inputs}) > 1:
            shapes = " and ".join(str(part.shape) for part in inputs)
            raise ValueError(f"X and X_test must have shapes (P, D) and (T, D), got {shapes}")
        inputs = np.concatenate(inputs)
    kernel, labels = labelled_inputs(network, given_kernel(network, K0, inputs)[0], Y, "posterior")
    if X is not None and len(labels) != len(X):
        raise ValueError(
            f"Y must have one label for each of the {len(X)} rows of X, got {len(labels)}; inputs "
            "without labels are X_test"
        )
    noise = validation.positive("noise_variance", noise_variance)
    if isinstance(order, bool) or order not in (0, 1):
        raise ValueError(f"order must be 0 or 1, the highest power of 1/N, got {order!r}")
    seed = validation.integer("seed", seed, 0)
    if network.markov:
        if samples is not None:
            raise not_there("samples", network)
    elif samples is not None:
        samples = validation.integer("samples", samples, BATCHES * NEURONS)
        if exact:
            raise ValueError(f"samples must be left out with exact=True, got {samples}")
    elif not exact and (network.depth + 2) * len(kernel) * (len(kernel) + 1) / 2 > ENTRIES:
        samples = SAMPLES
    solution = solve(network, kernel)
    law = Regression.from_labels(solution.residual_kernels[-1], labels, noise)
    settings: dict[str, Any] = {"labels": labels, "noise_variance": noise, "order": int(order)}
    settings |= {"samples": samples if order else None, "seed": seed}
    if not order:
        return _result(solution, law, None, settings)
    first = _corrections(solution, law, samples, seed, progress)
    result = _result(solution, law, first, settings)
    if samples is None:
        # Its G11 serves the responses.
        vars(result)["_prior"] = solution
    if result.expansion_ratio > large:
        warnings.warn(
            f"terms of order 1/N are {float(result.expansion_ratio):.2g} of what they correct, for "
            f"{len(labels)} labels at width {network.width}: the expansion holds for wider "
            "networks, fewer labels or more noise",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
    return result


def _corrections(
    solution: Any, law: Regression, samples: int | None, seed: int, progress: bool
) -> tuple[Corrections, Corrections]:
    """The terms of order 1/N, and their standard errors."""
    width = solution.network.width
    last = solution.network.depth + 1
    pulled, shares = covariance_batches(solution, law.weights, last, samples, seed, progress)
    pulled *= width
    batches: Any
    if samples is None:
        # A root of G11 in place of samples.
        values, vectors = np.linalg.eigh(solution.G11[-1, -1] * width)
        modes = unpacked((vectors * np.sqrt(len(values) * np.maximum(values, 0.0))).T, True)
        batches = [(modes, solution.mean_shift * width)]
    else:
        sizes = np.diff(np.linspace(0, samples // NEURONS, BATCHES + 1).astype(int))
        own = solution.chain.shift_of_variances
        batches = linear_networks(solution.network, solution.chain.pairs, own, sizes, seed)
        if progress:
            entries = (solution.network.depth + 2) * solution.inputs**2
            seconds, size = _SECONDS * samples * entries, 8e-9 * COPIES * entries
            title = f"posterior, about {seconds:.0f} s and {size:.1g} GB"
            batches = chunks.with_progress(batches, BATCHES, title)
    parts = [fluctuating(law, *batch) for batch in batches]
    equal = np.full(len(parts), 1 / len(parts))
    moments = [mean_and_error(np.stack(each), equal) for each in zip(*parts, strict=True)]
    mean, error = (Corrections(*each)._asdict() for each in zip(*moments, strict=True))
    covariance = (unpacked(each, True) for each in mean_and_error(pulled, shares))
    mean["covariance"], error["covariance"] = covariance
    for name, estimates in linear_response(law, unpacked(pulled[:, -1], True)).items():
        value, own = mean_and_error(estimates, shares)
        mean[name], error[name] = mean[name] + value, np.hypot(error[name], own)
    return Corrections(**mean), Corrections(**error)


def _result(
    solution: Any,
    law: Regression,
    corrections: tuple[Corrections, Corrections] | None,
    settings: dict[str, Any],
) -> NetworkPosterior:
    C, K = solution.residual_kernels, solution.kernels
    if corrections is None:
        none, kernels, outputs = np.zeros(()), np.zeros_like(C), np.zeros_like(law.mean)
        corrections = (Corrections(kernels, kernels, outputs, outputs, none, none),) * 2
    first, error = (Corrections(*(x / solution.network.width for x in c)) for c in corrections)
    shift, deviation = first.shift + first.covariance, np.hypot(error.shift, error.covariance)
    if solution.network.markov:
        # Nothing is sampled.
        learned = moved = uncertain = missed = np.zeros_like(K)
        if settings["order"]:
            learned = solution.chain.covariances_with_output(law.weights)[1]
            moved = learned + solution.kernel_shift
    else:
        skips = layer_coefficients(solution.network).skips
        parts = first.covariance, shift, deviation, error.covariance
        learned, moved, uncertain, missed = (accumulate(skips, part) for part in parts)
    sizes = np.sqrt(np.einsum("lii,ljj->lij", K, K))
    ratios = ratio(np.abs(learned), sizes)
    shape = (len(C[0]), *settings["labels"].shape[1:])
    variance = np.repeat(law.variance[:, None], law.labels.shape[1], axis=1)
    return NetworkPosterior(
        solution.network,
        solution.input_kernel,
        residual_kernels=C + shift,
        residual_kernels_error=deviation,
        kernels=K + moved,
        kernels_error=uncertain,
        kernel_shift=learned,
        kernel_shift_error=missed,
        mean=(law.mean + first.mean).reshape(shape),
        mean_error=error.mean.reshape(shape),
        variance=(variance + first.variance).reshape(shape),
        variance_error=error.variance.reshape(shape),
        mean_nngp=law.mean.reshape(shape),
        variance_nngp=law.variance,
        log_evidence=np.asarray(law.log_evidence + first.log_evidence),
        log_evidence_error=np.asarray(error.log_evidence),
        log_evidence_nngp=np.asarray(law.log_evidence),
        expansion_ratio=np.asarray(max(ratios.max(), first.fluctuations)),
        **settings,
    )
