"""Kernel and response of many inputs: ratios to neural-tangents and to plain NumPy, in one run.

All sides start from the inputs and are warmed up. Times are those of the processor, so that other
work on the machine does not count; run with OMP_NUM_THREADS=1, for JAX is kept to one thread too.
Plain NumPy takes the recursion over the layers on whole matrices. neural-tangents takes part if
it is installed; its tangent kernel stands for the response, which it does not have:

    pip install jax==0.5.3 jaxlib==0.5.3 numpy scipy frozendict
    pip install --no-deps neural-tangents==0.6.5
"""

from __future__ import annotations

import os
import sys
import time
import timeit
import tracemalloc
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fieldtheory as ft

P, DEPTH, INPUT_DIM = 1000, 200, 100
WEIGHT, BIAS = 1.25, 0.05
CASES = [
    ("erf", 1 / np.sqrt(DEPTH), "one norm"),
    ("erf", 1.0, "one norm"),
    ("erf", 1 / np.sqrt(DEPTH), "many norms"),
    ("erf", 1.0, "many norms"),
    ("relu", 1 / np.sqrt(DEPTH), "one norm"),
    ("relu", 1 / np.sqrt(DEPTH), "many norms"),
]


def seconds(task: Callable[[], Any], repeats: int) -> float:
    """The shortest processor time of a task that has been run before."""
    return min(timeit.repeat(task, timer=time.process_time, repeat=repeats, number=1))


def memory(task: Callable[[], Any]) -> float:
    """The peak of new memory of a task in NumPy, in MB."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def network(activation: str, rho: float) -> ft.ResidualNetwork:
    return ft.ResidualNetwork(
        depth=DEPTH,
        activation=activation,
        branch_scale=rho,
        weight_variance=WEIGHT,
        bias_variance=BIAS,
        readin_bias_variance=0.0,
    )


def inputs(kind: str) -> np.ndarray:
    """Gaussian inputs, of one norm or with norms that spread by a factor of about two."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((P, INPUT_DIM))
    X *= np.sqrt(0.4 * INPUT_DIM) / np.linalg.norm(X, axis=1)[:, None]
    return X if kind == "one norm" else X * rng.uniform(0.7, 1.4, P)[:, None]


def ours(net: ft.ResidualNetwork, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = ft.solve(net, ft.input_kernel(X, net))
    return s.output_kernel, s.output_response


def plain(net: ft.ResidualNetwork, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The recursion on whole matrices; its response is that of covariances, also in diagonals."""
    average = {"erf": erf_averages, "relu": relu_averages}[net.activation.name]
    rho2 = float(net.branch_scale) ** 2
    K = WEIGHT * (X @ X.T) / X.shape[1]
    chi = np.ones_like(K)
    for _ in range(DEPTH):
        moment, slope = average(K)
        chi *= 1 + rho2 * WEIGHT * slope
        K += rho2 * (WEIGHT * moment + BIAS)
    moment, slope = average(K)
    return WEIGHT * moment + BIAS, WEIGHT * slope * chi


def erf_averages(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = 1 + 2 * np.diagonal(K)
    root = np.sqrt(np.multiply.outer(spread, spread) - 4 * K * K)
    return 2 / np.pi * np.arctan2(2 * K, root), 4 / np.pi / root


def relu_averages(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    variance = np.diagonal(K)
    root = np.sqrt(np.maximum(np.multiply.outer(variance, variance) - K * K, 0))
    slope = 0.25 + np.arctan2(K, root) / (2 * np.pi)
    return root / (2 * np.pi) + K * slope, slope


def tangents(net: ft.ResidualNetwork, X: np.ndarray) -> tuple[Callable[[], Any], float] | None:
    """The kernels of neural-tangents compiled for the inputs, and what XLA says of memory, in MB.

    None if it is not installed.
    """
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    # Only its empirical kernels use this part, which needs TensorFlow.
    sys.modules["neural_tangents.experimental"] = types.ModuleType("neural_tangents.experimental")
    try:
        import jax
        from neural_tangents import stax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    # Erf() is erf(x) and Relu() max(x, 0); a Dense layer makes W_std² K + b_std² of a kernel K.
    phi = {"erf": stax.Erf, "relu": stax.Relu}[net.activation.name]()
    rho, W, b = float(net.branch_scale), np.sqrt(WEIGHT), np.sqrt(BIAS)
    branch = stax.serial(phi, stax.Dense(1, W_std=rho * W, b_std=rho * b))
    block = stax.serial(stax.FanOut(2), stax.parallel(branch, stax.Identity()), stax.FanInSum())
    layers = stax.serial(
        stax.Dense(1, W_std=W, b_std=0.0),
        stax.repeat(block, DEPTH),
        phi,
        stax.Dense(1, W_std=W, b_std=b),
    )
    compiled = jax.jit(partial(layers[2], x2=None, get=("nngp", "ntk"))).lower(X).compile()
    needed = compiled.memory_analysis()
    size = (needed.temp_size_in_bytes + needed.output_size_in_bytes) / 1e6
    return lambda: jax.block_until_ready(compiled(X)), size


def main() -> None:
    if tangents(network("erf", 1.0), np.ones((2, 2))) is None:
        print("neural-tangents is not installed: compared with plain NumPy alone")
    threads = os.environ.get("OMP_NUM_THREADS", "not set, use 1")
    print(f"{P} inputs, depth {DEPTH}; OMP_NUM_THREADS: {threads}; JAX: one thread")
    print(f"an output matrix takes {8e-6 * P**2:.0f} MB; kernels differ relative to the variances")
    for activation, rho, kind in CASES:
        compare(network(activation, rho), inputs(kind), f"{activation}, rho = {rho:.3g}, {kind}")


def compare(net: ft.ResidualNetwork, X: np.ndarray, title: str) -> None:
    kernel, response = ours(net, X)
    fast, peak = seconds(partial(ours, net, X), 5), memory(partial(ours, net, X))
    scale = np.sqrt(np.multiply.outer(np.diagonal(kernel), np.diagonal(kernel)))
    off = ~np.eye(len(X), dtype=bool)
    print(f"{title}\n  {'fieldtheory':15s} {fast:6.2f} s  {peak:4.0f} MB")
    sides = [("plain NumPy", partial(plain, net, X), memory(partial(plain, net, X)))]
    compiled = tangents(net, X)
    if compiled is not None:
        sides.append(("neural-tangents", *compiled))
    for name, task, peak in sides:
        values = [np.asarray(value) for value in task()]
        slow = seconds(task, 2)
        error = (np.abs(values[0] - kernel) / scale).max()
        text = f"  {name:15s} {slow:6.2f} s  {peak:4.0f} MB  ratio {slow / fast:5.1f}"
        text += f"  kernels differ by {error:.0e}"
        if name == "plain NumPy":
            text += f", responses of pairs by {np.abs(values[1] / response - 1)[off].max():.0e}"
        print(text, flush=True)


if __name__ == "__main__":
    main()
