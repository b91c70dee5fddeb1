"""Trainer of all figures with trained networks: sizes, images, SGD in parts, accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.data import load_mnist
from fieldtheory.networks.residual import input_kernel
from fieldtheory.numerics.chunks import ordered_chunks
from fieldtheory.numerics.tangent.tangent_result import tangent_kernels


class Size(NamedTuple):
    """Numbers that a figure and its quick version do not share.

    The networks are pairs of a depth and a width, there are learning rates for each family of
    networks, and copies of every network.
    """

    networks: tuple[tuple[int, int], ...]
    images: int
    tested: int
    steps: int
    rates: tuple[tuple[float, ...], ...] = ()
    copies: int | None = None


class Run(NamedTuple):
    """A network, arguments of its module, the learning rate and the phases of its training.

    A phase is a number of steps, a factor of the rate, and the seed of the batches.
    """

    network: Any
    module: dict[str, Any]
    rate: float
    phases: Sequence[tuple[int, float, int]]
    batch_size: int
    momentum: float = 0.0
    # Whether read-in and readout are kept as they are drawn.
    inner: bool = False


def accuracy(module: Any, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Share of inputs whose class is that of the largest output, or the sign of the only one."""
    outputs = module.eval()(X).detach().numpy()
    classes = outputs.argmax(axis=-1) if outputs.shape[-1] > 1 else np.sign(outputs[..., 0])
    return np.asarray((classes == labels).mean(axis=-1))


def langevin_step(network: Any, X: np.ndarray, noise: float, share: float) -> float:
    """A step h of Langevin dynamics, h (1 + λ/κ) = share; 2 is the limit of stability."""
    theta = tangent_kernels(network, input_kernel(X, network)).tangent_kernels[-1]
    return float(share / (1 + np.linalg.eigvalsh(theta)[-1] / noise))


def ratio_of_means(values: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """The ratio of two means over networks, and its standard error."""
    ratio = float(values.mean() / others.mean())
    errors = [x.std(ddof=1) / len(x) ** 0.5 / x.mean() for x in (values, others)]
    return ratio, ratio * float(np.hypot(*errors))


def trained_in_parts(
    figure: str,
    runs: Sequence[Run],
    size: Size,
    scale: Callable[[np.ndarray], np.ndarray],
    seed: int,
    jobs: int | None,
    directory: str | Path | None,
    progress: bool,
) -> list[dict[str, np.ndarray]]:
    """The loss of every step and the accuracy of networks trained on the digits of MNIST."""
    seed = validation.integer("seed", seed, 0)
    tasks = [(i, run, size, scale, seed) for i, run in enumerate(runs)]
    return list(
        ordered_chunks(
            _trained, tasks, len(tasks), jobs, figure, directory=directory, progress=progress,
            specification={"figure": figure, "size": size, "seed": seed},
        )
    )  # fmt: skip


def _trained(task: tuple[int, Run, Size, Any, int]) -> tuple[int, dict[str, np.ndarray]]:
    from fieldtheory.training import DivergenceError, torch_module, train

    # isort: split
    # After it, since that says how to install it.
    import torch

    index, run, size, scale, seed = task
    digits = load_mnist(range(10), 5000)
    order = np.random.default_rng(seed).permutation(len(digits.samples))
    order = order[: size.images + size.tested]
    X, labels = scale(digits.samples[order]), np.asarray(digits.labels)[order]
    module = torch_module(
        run.network, inputs=X.shape[1], outputs=10, seed=seed, dtype="float32", **run.module
    )
    parameters = (module.layers if run.inner else module).parameters()
    optimiser = torch.optim.SGD(parameters, lr=1.0, momentum=run.momentum)
    options: dict[str, Any] = {"loss": "cross_entropy", "batch_size": run.batch_size}
    first, losses = slice(size.images), []
    try:
        for steps, factor, batches in run.phases:
            optimiser.param_groups[0]["lr"] = run.rate * factor
            options |= {"steps": steps, "seed": batches}
            losses += [*train(module, X[first], labels[first], optimiser, **options).loss]
    except DivergenceError as error:
        losses += [*error.history.loss]
    loss = np.full((sum(phase[0] for phase in run.phases), *np.shape(losses)[1:]), np.nan)
    loss[: len(losses)] = losses
    right = accuracy(module, X[size.images :], labels[size.images :])
    return index, {"loss": loss, "accuracy": right}
