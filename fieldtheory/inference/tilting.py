r"""The posterior where the number P of labels is of the order of the width N.

Given the kernel C = C^(L+1) of the outputs, labels Y (P, d) with noise κ are Gaussian,

    ln p(Y|C) = −(d/2) ln det 2πA − ½ tr YᵀA⁻¹Y,   A = C + κ.

The path h^(0), ..., h^(L) of one neuron has the residuals f^(l) ~ N(0, C^(l)), of which C^(0) = K0
does not fluctuate. The saddle point of S(C, C̃) + ln p(Y|C) is

    C^(l) = a_l ⟨φφᵀ⟩ + c_l,   C̃^(l) = ∂ ln Z/∂C^(l)  (l <= L),   C̃^(L+1) = U/N,
    Z = ⟨exp Σ_l a_l φᵀ(h^(l-1)) C̃^(l) φ(h^(l-1))⟩,   U = ½ [A⁻¹YYᵀA⁻¹ − d A⁻¹],

with averages ⟨φφᵀ⟩ over paths tilted by that exponential. It is exact for N → ∞ where U grows as N
at fixed P. For P ~ N it is not: the eigenvalues of C, a sum over N neurons, scatter by O(1), and U
of the mean is not the mean of U. What one neuron does to ln p(Y|C) is exact by the formula of
Sherman and Morrison. With Σ = C^(L+1) − c_{L+1}, the mean u of A⁻¹Y, and the mean G of A⁻¹ less
the covariance of A⁻¹Y, it gives

    C̃^(L+1) = (u uᵀ − d G)/(2N), with r in front in Z,   r = 1/(1 + tr ΣG/N),
    u = (κ + c + r Σ)⁻¹ Y,   G = (κ + c + r_b Σ)⁻¹,   r_b = r [1 + r tr uᵀΣu/(dN)],

which is what is solved here. Hidden layers keep C̃^(l) = ∂ ln Z/∂C^(l). The mean prediction is kᵀu
with k = rΣ + c of test and training inputs, the variance that of a Gaussian process with the kernel
r_b Σ + c. For linear φ all layers are exact, see `fieldtheory.inference.linear_posterior`. Small C̃
gives the covariances of `covariance_with`: C − C* = Cov(C, tr UC), without the mean shift.

A readout of mean-field size, f = (s/N) Σ_j w_j φ_j, has the prior kernel s² C/N and noise s² κ/N:
the case above with the labels √N Y/s. There U grows as N, and for N → ∞ at fixed P the saddle point
is exact in all layers, with r = 1 and

    C̃^(L+1) = A⁻¹YYᵀA⁻¹/(2s²),   mean prediction kᵀA⁻¹Y.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.inference import learned_response
from fieldtheory.inference.learned_response import RespondingResult, labelled_inputs
from fieldtheory.inference.linear_posterior import Linear, Tilted
from fieldtheory.inference.tilted_blocks import BLOCKS, Blocks, sampled_blocks
from fieldtheory.inference.tilted_paths import (
    MEAN_FIELD,
    STANDARD,
    Balance,
    Neuron,
    Pace,
    sampled,
)
from fieldtheory.inference.tilted_response import Responses, second_derivatives
from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.montecarlo.sampling.many_inputs import mean_and_error
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.recursion import accumulate
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.validity import ValidityWarning

# Independent runs, whose scatter gives the errors; samples, and the fewest chains of a run.
RUNS, SAMPLES, _FEWEST = 8, 400_000, 10
# N where only the limit N → ∞ is asked for: 1/N is below rounding.
_LIMIT = 2.0**52

FIELDS = fields_of(
    r"""
    labels | training output | Y | labels of the training inputs | always of_none
    residual_kernels | layer | \langle C^{(l)} \rangle_Y | residual kernels at the saddle point
        | always with_error panel=kernels column=C
    kernels | layer | \langle K^{(l)} \rangle_Y | kernels at the saddle point
        | always with_error panel=kernels column=K
    conjugate_kernels | layer | \tilde C^{(l)} | conjugate kernels at the saddle point
        | always with_error panel=conjugate_kernels column=conjugate
    mean | input output | \langle f \rangle | means of the predictions | always with_error of_none
    variance | input output | \mathrm{Var}\,f | variances of the predictions
        | always with_error of_none
    """
)
FIELDS |= learned_response.FIELDS


@dataclass(frozen=True, eq=False)
class TiltedPosterior(RespondingResult):
    """Kernels and predictions after labels where P ~ N, the result of `tilted_posterior`.

    With Q inputs, the P training inputs first, and d outputs (no axis d for labels (P,)):

    ====================  ============  ==========================================================
    field                 shape         meaning
    ====================  ============  ==========================================================
    residual_kernels      (L+2, Q, Q)   C^(l)
    kernels               (L+2, Q, Q)   K^(l) = γ_l² K^(l-1) + C^(l), or R^(l) of a `BlockNetwork`
    conjugate_kernels     (L+2, Q, Q)   C̃^(l), ∂ ln p(Y)/∂C^(l) over N; zero for test inputs
    mean, variance        (Q, d)        of the outputs without noise; variance 0 with readout_scale
    labels                (P, d)        Y
    residual_response     (L+1, Q, Q)   ∂C_αβ^(l)/∂K_αβ^(0)
    response              (L+1, Q, Q)   ∂K_αβ^(l)/∂K_αβ^(0)
    output_response       (Q, Q)        ∂C_αβ^(L+1)/∂K_αβ^(0)
    ====================  ============  ==========================================================

    Responses are of inputs that are moved after training, labelled ones as further inputs at their
    places, as in `NetworkPosterior`, with ``response_shift`` and ``output_response_shift`` against
    the prior. They take the time of the posterior again, when first asked for, and φ with a
    continuous slope, see `fieldtheory.inference.tilted_response`. Standard errors are in
    ``<name>_error``, from independent runs; zero for linear networks.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, activation="linear", width=4)
    >>> tilted_posterior(net, [[0.3, 0.1], [0.1, 0.2]], [1.0], noise_variance=0.1)
    TiltedPosterior(training=1, test=1, samples=None)
    """

    table = FIELDS
    settings = {"noise_variance": float, "samples": int, "seed": int, "readout_scale": float}  # noqa: RUF012

    conjugate_kernels: np.ndarray
    conjugate_kernels_error: np.ndarray
    samples: int | None = None
    seed: int = 0
    readout_scale: float | None = None

    def __repr__(self) -> str:
        count = len(self.labels)
        return (
            f"TiltedPosterior(training={count}, test={self.inputs - count}, samples={self.samples})"
        )

    def _response_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """Of inputs without labels: of linear φ the kernel of such an input, otherwise of paths."""
        settings = self.labels, self.noise_variance
        if self.network.markov:
            raise not_there("a response after labels of tilted_posterior", self.network)
        if self.samples is None:
            # Two further inputs, orthogonal to all: K0 is 1 for one and 0 for the other.
            padded = np.pad(self.input_kernel, (0, 2))
            padded[-2, -2] = 1.0
            more = tilted_posterior(
                self.network, padded, *settings, readout_scale=self.readout_scale
            )
            C = more.residual_kernels[:, -2, -2] - more.residual_kernels[:, -1, -1]
            residual = np.tile(C[None, :, None, None], (1, 1, *self.input_kernel.shape))
        else:
            neuron, pace = _neuron(self.network, self.input_kernel, *settings, self.readout_scale)
            second = second_derivatives(self.network)
            watches = [Responses(neuron, second, self.inputs, pace) for _ in range(RUNS)]
            moves, start = iter(range(RUNS * pace.moves)), self._prior.residual_kernels
            run = [each.move for each in watches]
            _sampled(neuron, pace, start, self.samples, self.seed, moves, run)
            residual = np.stack([each.residual for each in watches])
        skips, prior = layer_coefficients(self.network).skips, self._prior
        shares, shifts = np.full(len(residual), 1 / len(residual)), []
        for values, before in (
            (residual, prior.residual_response),
            (np.stack([accumulate(skips, each) for each in residual]), prior.response),
        ):
            values = values - np.concatenate([before, prior.output_response[None]])
            shifts.append(np.stack(mean_and_error(values, shares)))
        return shifts[0], shifts[1]


@named_arguments
def tilted_posterior(
    network: LayeredNetwork,
    K0: Any,
    Y: Any,
    noise_variance: float,
    *,
    readout_scale: float | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: bool = False,
) -> TiltedPosterior:
    """Kernels and predictions after P ~ N labels, at the tilted saddle point.

    The equations are those at the head of `fieldtheory.inference.tilting`: K. Fischer et al.,
    Critical feature learning in deep neural networks, ICML (2024), with skip connections, and with
    the fluctuations of the output kernel, which do not vanish for P ~ N. For linear φ the result is
    exact for P, N → ∞; for others where the fluctuations of the hidden kernels are small as well,
    as they are for one hidden layer and for small branches.

    Parameters
    ----------
    network : ResidualNetwork, BlockNetwork or of a family like them
        Without batch axes; φ without jumps.
    K0 : array_like, shape (Q, Q)
        Kernel of the inputs as in `solve`, the P training inputs first, test inputs after them.
    Y : array_like, shape (P,) or (P, d)
        Labels, 1 <= P <= Q. r is the same for all of several outputs unless φ is linear.
    noise_variance : float
        κ > 0.
    readout_scale : float, optional
        s > 0 of a readout of mean-field size, N → ∞ at fixed P: outputs are s/√N times those of the
        network, f = (s/N) Σ_j w_j φ_j + s b/√N with w_j of variance σ²_w,out, and labels have the
        noise s² κ/N, so that κ keeps its part of C^(L+1) + κ and Langevin dynamics have the
        temperature s² κ/N. s → ∞ is the lazy limit. By default outputs have the size 1/√N.
    samples : int
        Paths of a neuron that are averaged over, at least 20000, or 40000 with ``readout_scale``;
        without meaning for linear φ. Of blocks hidden units, at least 24000, whatever φ is.
    seed : int
        Seed of the random numbers, >= 0.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    TiltedPosterior

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.
    ArithmeticError
        If there is no saddle point, or it is not reached: labels that are large beside the outputs
        of the prior, with φ that grows as h or without ``readout_scale``. Fresh paths, which follow
        the tilt from the prior on, decide.

    Warns
    -----
    ValidityWarning
        If φ is not linear and there are at most N/8 labels, where kernels and variances are nearer
        to the posterior than those of infinite width, but means are not; if sampled kernels still
        drift, or paths do not follow the tilt.

    Notes
    -----
    **Blocks** have two populations, and both are tilted: see `fieldtheory.inference.tilted_blocks`.
    ``kernels`` are R^(l) of the stream, as in `NetworkPosterior`, and there are no responses.

    **Readout of mean-field size.** s is the scale of the output of L. Chizat, E. Oyallon, F. Bach,
    NeurIPS (2019), 1/s the γ_0 of C. Lauditi, B. Bordelon, C. Pehlevan, ICML (2025), N/s² the χ of
    N. Rubin et al., ICML (2025). The saddle point is that of I. Seroussi, G. Naveh,
    Z. Ringel, Nat. Commun. 14, 908 (2023), and A. van Meegen, H. Sompolinsky, Nat. Commun. 16, 3354
    (2025); skips, biases and depth are those of the network. Kernels change by their own size and
    predictions have no variance: it is of order 1/N. One hidden layer has one saddle point, the
    minimum of a convex function of A⁻¹Y. Deeper networks may have several: of linear ones it is the
    lowest, of others that to which the lazy limit leads as labels grow from zero. Labels √N Y/s
    without ``readout_scale`` are the same network at its finite N, to leading order.

    The time of sampling grows as samples L Q (P + Q) from some 50 inputs on: P = 50, L = 3 take
    50 s on one core with the samples of the default. Noise of the sampled tilts biases kernels by a
    part of order 1/samples. Kernels are averages of products over paths, so that they are positive
    semidefinite at every step; that the paths have the tilted law is checked by an identity,
    ⟨ξ·ξ⟩ − dim ξ = ⟨ξ·∂W/∂ξ⟩, and by kernels of fresh paths. φ that is bounded has saddle points
    for labels of any size, which ``readout_scale`` reaches; with φ that grows as h, labels some ten
    times as large as the outputs of the prior are refused.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> net = ft.ResidualNetwork(depth=2, activation="linear", width=10, input_dim=1)
    >>> found = tilted_posterior(net, ft.input_kernel(X, net), X[:10, 0], noise_variance=0.01)
    >>> found.mean.shape, found.residual_kernels.shape
    ((12,), (4, 12, 12))
    >>> bool(np.abs(found.mean - X[:, 0]).max() < 0.02)
    True
    """
    # Labels per neuron up to which mean predictions are worse than at infinite width.
    few_labels = 1 / 8
    kernel, labels = labelled_inputs(network, K0, Y, "tilted_posterior")
    noise = validation.positive("noise_variance", noise_variance)
    if readout_scale is not None:
        readout_scale = validation.positive("readout_scale", readout_scale)
    neuron, pace = _neuron(network, kernel, labels, noise, readout_scale)
    kept = RUNS * (pace.moves - pace.left_out)
    samples = validation.integer("samples", samples, _FEWEST * kept)
    seed = validation.integer("seed", seed, 0)
    scale = f"at width {network.width}"
    if readout_scale is not None:
        scale = f"and readout_scale={readout_scale:g}"
    case = (
        f"for {len(labels)} labels up to {np.abs(labels).max():.3g} with noise_variance={noise:g} "
        f"{scale}"
    )
    functions: Any = network_functions(network)
    parts = functions.factors if network.markov else (functions,)
    linear = not network.markov and functions.features[0].is_Symbol and len(functions.features) == 1
    if linear:
        law = neuron.a, neuron.c, neuron.skips, kernel, neuron.Y, noise, neuron.width
        runs = [Linear(*law).solve(case)]
    else:
        if any(len(psi.jumping) for part in parts for psi in part.functions):
            raise ValueError(f"the activation must not jump, got {network.activation.name}")
        count = len(labels)
        if readout_scale is None and count <= few_labels * network.width:
            warnings.warn(
                f"{count} labels are few for width {network.width}: mean predictions are not "
                "better than those of infinite width; posterior has the order 1/N of all kernels",
                ValidityWarning,
                stacklevel=validation.level_of_user(),
            )
        moves: Iterable[int] = range(RUNS * pace.moves)
        if progress:
            moves = chunks.with_progress(moves, RUNS * pace.moves, "moves of tilted_posterior")
        moves = iter(moves)
        start = solve(network, kernel).residual_kernels
        pairs = _sampled(neuron, pace, start, samples, seed, moves)
        # A bar ends with its moves.
        next(moves, None)
        runs = [run for run, _ in pairs]
        _check(pairs, network.activation.name, case)
    if readout_scale is not None:
        factor = _LIMIT**0.5 / readout_scale
        runs = [run._replace(mean=run.mean / factor, variance=0 * run.variance) for run in runs]
    moments = _moments(layer_coefficients(network).skips, runs, kernel, labels)
    used = None if linear else samples
    return TiltedPosterior(
        network, kernel, labels, noise, **moments,
        samples=used, seed=seed, readout_scale=readout_scale,
    )  # fmt: skip


def _neuron(
    network: Any,
    kernel: np.ndarray,
    labels: np.ndarray,
    noise: float,
    readout_scale: float | None,
) -> tuple[Any, Pace]:
    """A `Neuron`, or `Blocks`, with the labels as they look to it, and the pace of its paths."""
    width, factor, pace = float(network.width), 1.0, STANDARD
    if readout_scale is not None:
        width, factor, pace = _LIMIT, _LIMIT**0.5 / readout_scale, MEAN_FIELD
    targets = factor * labels.reshape(len(labels), -1)
    if network.markov:
        return Blocks.of(network, kernel, targets, noise, width), BLOCKS
    layers, gammas = layer_coefficients(network), np.asarray(network.skip_scales)
    psi, slopes = feature_functions(network), feature_functions(network, slopes=True)
    a, c = layers.weights.ravel(), layers.biases.ravel()
    return Neuron(psi, slopes, a, c, gammas, targets, noise, width), pace


def _sampled(
    neuron: Neuron | Blocks,
    pace: Pace,
    start: np.ndarray,
    samples: int,
    seed: int,
    moves: Iterator[int],
    watches: Sequence[Callable[..., None] | None] = (),
) -> list[tuple[Tilted, Balance]]:
    """The runs of so many paths, each with its own random numbers."""
    chains = samples // (RUNS * (pace.moves - pace.left_out))
    seeds = np.random.SeedSequence(seed).spawn(RUNS)
    if isinstance(neuron, Blocks):
        return [sampled_blocks(neuron, chains, each, moves, pace) for each in seeds]
    return [
        sampled(neuron, start, chains, each, moves, pace, watch)
        for each, watch in zip(seeds, watches or [None] * RUNS, strict=True)
    ]


def _check(runs: list[tuple[Tilted, Balance]], activation: str, case: str) -> None:
    """ArithmeticError if the paths have not the tilted law; a warning if kernels still drift."""
    # Standard errors beyond which drift, residual and excess are sure; the drift that is reported,
    # and the residual beyond which there is no saddle point, of the sizes of kernels.
    sure, relative, astray = 5.0, 0.02, 0.05
    # Excess of the force that is reported, and beyond which there is no saddle point. It is below
    # 0.12 for labels of the size of the outputs; for labels that are ten times as large kernels of
    # φ that grows as h oscillate by their own size.
    unbalanced, lost = 0.25, 0.5
    drifts, residuals, spread, force, pull = (
        np.array(each) for each in zip(*(balance for _, balance in runs), strict=True)
    )
    shares = np.full(len(runs), 1 / len(runs))
    # Of every run, since forces that paths do not follow have no mean to speak of.
    size = np.maximum(pull, np.maximum(abs(force), abs(spread)))
    excess, error = mean_and_error((force - spread) / size, shares)
    excess *= excess > sure * error
    sizes = np.mean([np.diagonal(run.residual_kernels, 0, 1, 2) for run, _ in runs], axis=0)
    sizes = np.sqrt(sizes[:, :, None] * sizes[:, None])
    sizes[sizes == 0.0] = 1.0

    def largest(values: np.ndarray) -> float:
        mean, error = mean_and_error(values / sizes, shares)
        # Of a few runs some of many entries have small errors by chance.
        error = np.maximum(error, np.sqrt(np.mean(error**2, axis=(1, 2), keepdims=True)))
        return float(np.max(np.where(abs(mean) > sure * error, abs(mean), 0.0)))

    drift = largest(drifts)
    residual = largest(residuals) if np.isfinite(residuals).all() else np.inf
    advice = "scale the labels down, or use more noise or a wider network"
    if excess > lost or residual > astray:
        reason = f"the tilt grows faster than paths of {activation} follow"
        if residual > astray:
            reason = f"the tilt is not that of fresh paths of {activation}: off by {residual:.1%}"
        raise ArithmeticError(f"no saddle point was reached {case}: {reason}; {advice}")
    if drift > relative or excess > unbalanced:
        warnings.warn(
            f"the sampled kernels are not at rest {case}: they drift by "
            f"{drift:.1%}, and the force on paths is off by {excess:.0%}; {advice}",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )


def _moments(
    skips: np.ndarray, runs: list[Tilted], kernel: np.ndarray, labels: np.ndarray
) -> dict[str, Any]:
    """Means over the runs and their standard errors, the fields of the result."""
    count, shape = len(labels), (len(kernel), *labels.shape[1:])
    C, tilts, mean, variance = (
        np.stack(values) for values in zip(*(r[:4] for r in runs), strict=True)
    )
    kernels = [accumulate(skips, r[0]) if r.kernels is None else r.kernels for r in runs]
    conjugate = np.zeros_like(C)
    conjugate[:, :, :count, :count] = tilts
    shares = np.full(len(runs), 1 / len(runs))
    moments: dict[str, Any] = {}
    for name, values in (
        ("residual_kernels", C),
        ("kernels", np.stack(kernels)),
        ("conjugate_kernels", conjugate),
        ("mean", mean.reshape(-1, *shape)),
        ("variance", variance.reshape(-1, *shape)),
    ):
        moments[name], moments[f"{name}_error"] = mean_and_error(values, shares)
    return moments
