"""`simulate_response`: responses of finite networks by finite differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.montecarlo.sampling import plan
from fieldtheory.montecarlo.sampling.block_moments import collected, drawn, moments_of_parts
from fieldtheory.montecarlo.sampling.forward import forward, in_tiles, tile_size
from fieldtheory.montecarlo.sampling.moments import Summary, jackknife
from fieldtheory.montecarlo.sampling.plan import Block
from fieldtheory.montecarlo.sampling.samplers import started
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork, deep_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import storage
from fieldtheory.numerics.covariance_roots import lower_root
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.recursion import accumulate
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import assembled

FIELDS = fields_of(
    r"""
    residual_response | hidden_layer | \partial \langle C^{(l)} \rangle / \partial C^{(m)}
        | responses of the residual kernels to that of the perturbed layer
        | with_error panel=responses
    response | hidden_layer | \partial \langle K^{(l)} \rangle / \partial C^{(m)}
        | responses of the kernels to the residual kernel of the perturbed layer
        | with_error panel=responses
    output_response | - | \partial \langle C^{(L+1)} \rangle / \partial C^{(m)}
        | response of the output kernel to the residual kernel of the perturbed layer | with_error
    step | - | \varepsilon | steps of the differences
    """
)


@dataclass(frozen=True, eq=False)
class SimulatedResponse(Computed):
    """Responses of random finite networks, each with its standard error in ``<name>_error``.

    With L the depth, and the axes of K0 in front or behind as in `Solution`:

    =================  =============================================  ============================
    field              shape for K0 of shape (), (P,) and (P, P)      meaning
    =================  =============================================  ============================
    residual_response  (L+1,), (P, L+1), (L+1, P, P)                  ∂⟨C^(l)⟩/∂C^(m), l = 0, ..., L
    response           the same                                       ∂⟨K^(l)⟩/∂C^(m)
    output_response    (), (P,), (P, P)                               ∂⟨C^(L+1)⟩/∂C^(m)
    step               (), (P,), (P, P)                               ε of the differences
    =================  =============================================  ============================

    where m is the perturbed ``layer``; for m = 0 they are η^(l), χ^(l) and χ^out. Of blocks K^(l)
    are the Gram matrices of the stream, which scatter at l = m already. For P inputs they are the
    (αβ) <- (αβ) entries. Standard errors come from the jackknife over ``batches`` independent
    batches (see `Ensemble`), and are 0 where the response is a constant, as at l = m. Different
    inputs, and different pairs of them, have independent networks.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, width=100)
    >>> r = ft.simulate_response(net, 0.3, samples=200, seed=1)
    >>> r.response.shape, float(r.response[0]), float(r.response_error[0])
    ((3,), 1.0, 0.0)
    """

    table = FIELDS
    settings = {"samples": int, "seed": int, "layer": int, "batches": int}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    samples: int
    seed: int
    layer: int
    step: np.ndarray
    batches: int
    residual_response: np.ndarray
    residual_response_error: np.ndarray
    response: np.ndarray
    response_error: np.ndarray
    output_response: np.ndarray
    output_response_error: np.ndarray

    def input_average(self, inputs: str = "random") -> dict[str, np.ndarray]:
        """Averages over the P inputs of a K0 of shape (P,), as in F25 Fig. 2 (b).

        Parameters
        ----------
        inputs : {"random", "fixed"}
            "random": the inputs were drawn from a distribution, and the average over it is
            estimated; the standard error holds the scatter of the inputs. "fixed": the average
            over these very inputs; the standard error is that of the networks alone.

        Returns
        -------
        dict of str to ndarray
            The fields and their errors, ``residual_response`` (L+1,) and so on.

        Raises
        ------
        ValueError
            If K0 is not of shape (P,) with P >= 2, or ``inputs`` is another word.

        Examples
        --------
        >>> from fieldtheory.montecarlo.perturbation import simulate_response
        >>> from fieldtheory.networks.residual import ResidualNetwork
        >>> net = ResidualNetwork(depth=3, width=100)
        >>> found = simulate_response(net, [0.2, 0.3, 0.4], samples=20).input_average()
        >>> found["residual_response"].shape, found["residual_response_error"].shape
        ((4,), (4,))
        """
        inputs = validation.choice("inputs", inputs, ("random", "fixed"))
        if self.input_kernel.ndim != 1 or len(self.input_kernel) < 2:
            raise ValueError(
                f"input_average needs K0 of shape (P,) with P >= 2, got {self.input_kernel.shape}"
            )
        count, averages = len(self.input_kernel), {}
        for name in (field.name for field in self.table.values() if field.error):
            values, errors = getattr(self, name), getattr(self, f"{name}_error")
            averages[name] = values.mean(axis=0)
            if inputs == "fixed":
                averages[f"{name}_error"] = np.sqrt((errors**2).sum(axis=0)) / count
            else:
                averages[f"{name}_error"] = values.std(axis=0, ddof=1) / np.sqrt(count)
        return averages

    def __repr__(self) -> str:
        net = self.network
        return (
            f"SimulatedResponse(depth={net.depth}, activation={net.activation.name}, "
            f"width={net.width}, samples={self.samples}, layer={self.layer}, seed={self.seed})"
        )


class _Problem(NamedTuple):
    """One entry that is perturbed: a variance, kernel (1, 1), or a covariance, kernel (2, 2)."""

    run: plan.Run
    layer: int
    step: float
    number: int


@named_arguments
def simulate_response(
    network: LayeredNetwork,
    K0: Any,
    *,
    samples: int = 1000,
    seed: int = 0,
    layer: int = 0,
    relative_step: float = 1e-4,
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> SimulatedResponse:
    """Perturb a kernel of random finite networks and measure the response; needs joblib.

    The definition of the response function, F25 eq. (31),

        Δ12^(lm) = lim_{ε → 0} [⟨C^(l)⟩_{m,ε} − ⟨C^(l)⟩_{m,0}] / ε,

    where the kernel C^(m) of every network is replaced by C^(m) + ε. It is taken as the central
    difference over ±ε of one and the same network, that is with common random numbers: the
    normals from which method "kernel" of `simulate` makes a network are those of +ε and of −ε.

    Parameters
    ----------
    network : LayeredNetwork or GramNetwork
        Without batch axes; its ``width`` is N. Of blocks for P <= N, or with LayerNorm P < N, and
        ``response`` is that of the Gram matrices that are drawn.
    K0 : float or array_like
        The input: a variance (), whose response is that of C^(l); a batch of P variances (P,), one
        input after the other; or the kernel (P, P) of P inputs. Of that every entry is perturbed
        alone: a covariance with the variances held fixed, as in F25 Fig. 7.
    samples : int
        Number of networks for every perturbed entry, at least 20.
    seed : int
        Seed of the random numbers, >= 0.
    layer : int
        The perturbed layer m, 0 <= m <= L; 0 is the input.
    relative_step : float
        ε as a fraction of the distance from C*^(m) to the next limit of that entry: 0 for a
        variance, ±(C_αα C_ββ)^(1/2) for a covariance. Between 0 and 1/2.
    directory, jobs, progress
        As for `simulate`.

    Returns
    -------
    SimulatedResponse

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the kernel lies at its limit, so that it cannot move both
        ways: a variance is 0, or two inputs are parallel.
    OverflowError
        If a kernel exceeds the range of float64.
    ImportError
        If joblib is missing.

    Notes
    -----
    The mean response is that of networks whose explicit weights are common to +ε and −ε. The
    scatter is not the same: for a variance it is smaller here, since the residuals of +ε and −ε
    differ in size only.

    The central difference is off by ε²/6 times the third derivative, of relative order 1e-8 for
    the step that is set, and rounding by 1e-12. Both are below the statistical error of any number
    of networks that can be drawn. It holds for activations without jumps; a jump makes the scatter
    grow as ε^(-1/2), which the standard error shows.

    The same seed gives the same numbers whatever the number of jobs.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=5, branch_scale=0.5, width=100)
    >>> r = simulate_response(net, 0.3, samples=200, seed=1)
    >>> r
    SimulatedResponse(depth=5, activation=erf, width=100, samples=200, layer=0, seed=1)
    >>> bool(np.abs(r.response - solve(net, 0.3).response).max() < 0.05)
    True
    >>> simulate_response(net, [[0.3, 0.1], [0.1, 0.3]], samples=20).response.shape
    (6, 2, 2)
    """
    deep_network(network, "simulate_response")
    kernel = validation.input_kernel_array("K0", K0)
    one = kernel[0] if kernel.ndim == 1 else kernel
    run = plan.checked_run(network, one, None, samples, seed, "kernel", False, False)
    layer = validation.integer("layer", layer, 0)
    if layer > network.depth:
        raise ValueError(f"layer must be at most the depth {network.depth}, got {layer}")
    if not 0 < validation.nonnegative("relative_step", relative_step) < 0.5:
        raise ValueError(f"relative_step must be between 0 and 0.5, got {relative_step!r}")
    problems = [
        _Problem(replace(run, kernel=K), layer, relative_step * _distance(network, K, layer), i)
        for i, K in enumerate(_perturbed(kernel))
    ]
    groups = plan.chunks_of(run.samples, plan.block_size(run), None)

    def specification() -> dict[str, Any]:
        return {
            "response": storage.attributes(network),
            "K0": kernel.tolist(),
            "layer": layer,
            "relative_step": relative_step,
            "samples": run.samples,
            "seed": run.seed,
        }

    parts = [(partial(_block, problem), blocks) for problem in problems for blocks in groups]
    results = drawn(parts, "simulate_response", specification, directory, jobs, progress)
    batches = [collected(groups, islice(results, len(groups)))[0] for _ in problems]
    # A progress bar ends with its results.
    next(results, None)
    estimates = [jackknife(mine, partial(_estimates, network)) for mine in batches]
    return SimulatedResponse(
        network,
        kernel,
        run.samples,
        run.seed,
        layer,
        step=_assembled(np.array([problem.step for problem in problems]), kernel),
        batches=len(batches[0]),
        **{
            name: _assembled(np.stack([row[name] for row in estimates]), kernel)
            for name in estimates[0]
        },
    )


def _perturbed(kernel: np.ndarray) -> Iterator[np.ndarray]:
    """The kernels (1, 1) of all variances, then (2, 2) of all pairs α < β."""
    if kernel.ndim < 2:
        yield from kernel.reshape(-1, 1, 1)
        return
    yield from np.diagonal(kernel).reshape(-1, 1, 1)
    for pair in zip(*np.triu_indices(len(kernel), 1), strict=True):
        yield kernel[np.ix_(pair, pair)]


def _distance(network: LayeredNetwork, kernel: np.ndarray, layer: int) -> float:
    """Distance by which the first entry of the last column of C*^(m) can change both ways."""
    matrix = solve(network, kernel).residual_kernels[layer]
    if len(kernel) == 1:
        if not matrix[0, 0] > 0:
            raise ValueError(
                f"K0 must give layer {layer} a variance > 0 to perturb, got {matrix[0, 0]!r}"
            )
        return float(matrix[0, 0])
    limit = np.sqrt(matrix[0, 0] * matrix[1, 1])
    # Closer to the limit the difference is rounding.
    if not limit - abs(matrix[0, 1]) > 1e-9 * limit:
        raise ValueError(
            f"K0 must have no parallel inputs: a covariance of {kernel[0, 1]:.6g} with variances "
            f"of {kernel[0, 0]:.6g} and {kernel[1, 1]:.6g} cannot move both ways"
        )
    return float(limit - abs(matrix[0, 1]))


def _assembled(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """The values of all problems on the first axis, in the shapes of `SimulatedResponse`."""
    if kernel.ndim == 0:
        return values[0]
    if kernel.ndim == 1:
        return values
    size, values = len(kernel), np.moveaxis(values, 0, -1)
    return assembled(values[..., :size], values[..., size:], np.triu_indices(size, 1))


def _estimates(network: LayeredNetwork, summary: Summary) -> dict[str, np.ndarray]:
    slopes = summary["slopes"].mean[:, 0]
    if network.markov:
        response = summary["streams"].mean[:, 0]
    else:
        response = accumulate(layer_coefficients(network).skips, slopes)[:-1]
    return {
        "residual_response": slopes[:-1],
        "response": response,
        "output_response": slopes[-1],
    }


def _block(problem: _Problem, block: Block) -> dict[str, np.ndarray]:
    """The moments of the slopes in all parts of a block, on the first axis."""
    # The keys of `simulate` have two numbers, so that its streams are others.
    key = (problem.layer, problem.number, block.number)
    generator = np.random.default_rng(np.random.SeedSequence(problem.run.seed, spawn_key=key))
    slopes = partial(_slopes, problem, generator)
    tiles = in_tiles(slopes, block.size, tile_size(2 * problem.run.drawn))
    parts = {n: np.concatenate([tile[n] for tile in tiles])[..., None] for n in tiles[0]}
    return moments_of_parts(parts, block)


def _slopes(
    problem: _Problem, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    """ΔC^(l)/2ε of every network and layer, (samples, L + 2), of a chain ΔR^(l)/2ε as well."""
    run, m, step = problem.run, problem.layer, problem.step
    network, size = run.network, run.inputs
    slopes = {"slopes": np.zeros((samples, network.depth + 2))}
    # Computed from the C of ±ε, it would carry rounding.
    slopes["slopes"][:, m] = 1.0
    if network.markov:
        slopes["streams"] = np.zeros((samples, network.depth + 1))
    # Eigenvectors would change sign or place where C moves a little.
    sampler = started(run, generator, samples, lower_root)
    start = np.broadcast_to(run.start, (2, samples, size, size))
    for l, C in forward(sampler, start, lambda l, C: _shifted(C, step) if l == m else C):
        if l < m:
            continue
        slopes["slopes"][:, l + 1] = (C[0] - C[1])[:, 0, -1] / (2 * step)
        if network.markov:
            R, _ = sampler.look(False)
            slopes["streams"][:, l] = (R[0] - R[1])[:, 0, -1] / (2 * step)
    return slopes


def _shifted(C: np.ndarray, step: float) -> np.ndarray:
    """C ± ε for the variance of one input, or the covariance of two; (2, n, size, size)."""
    size = C.shape[-1]
    entry = np.ones((1, 1)) if size == 1 else np.array([[0.0, 1.0], [1.0, 0.0]])
    shifted = C + np.array([step, -step])[:, None, None, None] * entry
    scale = np.prod(np.diagonal(shifted, axis1=-2, axis2=-1), axis=-1)
    determinant = scale - (shifted[..., 0, 1] ** 2 if size == 2 else 0.0)
    if (determinant < -1e-12 * np.abs(scale)).any():
        raise ValueError("relative_step must be smaller: a network has no kernel there")
    return shifted
