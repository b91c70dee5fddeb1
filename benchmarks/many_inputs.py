"""Kernels of many inputs: ratios to neural-tangents and to plain NumPy, times per pair, in one run.

All sides start from the inputs, are warmed up and take turns; the shortest time of each counts.
Times are those of the processor, so that other work on the machine does not count; run with
OMP_NUM_THREADS=1, for JAX is kept to one thread too. Some pairs are computed with 30 digits.
Plain NumPy takes the recursion over the layers on whole matrices. neural-tangents takes part if
it is installed. What is interpolated by ours (the maps of pairs) is made anew in every run that is
compared; a second call for the same network takes less, which is printed beside it.

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
from functools import cache, partial
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.inference import kernel_function

P, DEPTH, INPUT_DIM = 1000, 200, 100
WEIGHT, BIAS = 1.25, 0.05
COUNTS = (1000, 2000, 5000, 10000, 20000)
MANY = 5000
# Inputs and dimensions whose kernels are timed beside X Xᵀ, of an own φ too.
MOST, WIDE, OWN = 3000, 784, "tanh(1.1*h)*exp(-h**2/9)"
BESIDE = ("output_kernel", "tangent_kernel", "output_response")
# Kernels, and what neural-tangents computes for them; it has no response, for which the tangent
# kernel stands.
QUANTITIES = [
    (("output_kernel",), ("nngp",)),
    (("tangent_kernel",), ("ntk",)),
    (("output_kernel", "output_response"), ("nngp", "ntk")),
]
CASES = [
    ("erf", 1 / np.sqrt(DEPTH), "one norm"),
    ("erf", 1.0, "one norm"),
    ("erf", 1 / np.sqrt(DEPTH), "many norms"),
    ("erf", 1.0, "many norms"),
    ("relu", 1 / np.sqrt(DEPTH), "one norm"),
    ("relu", 1 / np.sqrt(DEPTH), "many norms"),
    ("relu", 1.0, "one norm"),
    ("relu", 1.0, "many norms"),
]


def seconds(task: Callable[[], Any], repeats: int) -> float:
    """The shortest processor time of a task that has been run before."""
    return min(timeit.repeat(task, timer=time.process_time, repeat=repeats, number=1))


def in_turns(tasks: list[Callable[[], Any]], repeats: int) -> list[float]:
    """The shortest processor times of tasks that have been run before and now take turns."""
    return [
        min(times)
        for times in zip(*([seconds(t, 1) for t in tasks] for _ in range(repeats)), strict=True)
    ]


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


def inputs(kind: str, count: int = P, seed: int = 0) -> np.ndarray:
    """Gaussian inputs, of one norm or with norms that spread by a factor of about two."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, INPUT_DIM))
    X *= np.sqrt(0.4 * INPUT_DIM) / np.linalg.norm(X, axis=1)[:, None]
    return X if kind == "one norm" else X * rng.uniform(0.7, 1.4, count)[:, None]


def ours(net: ft.ResidualNetwork, X: np.ndarray, quantities: tuple[str, ...]) -> list[np.ndarray]:
    """Kernels of inputs, with maps that are made anew each time."""
    forget()
    return known(net, X, quantities)


def known(net: ft.ResidualNetwork, X: np.ndarray, quantities: tuple[str, ...]) -> list[np.ndarray]:
    """The same with the maps that there are."""
    return [ft.kernel(net, quantity)(X) for quantity in quantities]


def forget() -> None:
    kernel_function._maps_of.cache_clear()


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


def tangents(
    net: ft.ResidualNetwork, X: np.ndarray, get: tuple[str, ...]
) -> tuple[Callable[[], Any], float] | None:
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
    compiled = jax.jit(partial(layers[2], x2=None, get=get)).lower(X).compile()
    needed = compiled.memory_analysis()
    size = (needed.temp_size_in_bytes + needed.output_size_in_bytes) / 1e6
    return lambda: jax.block_until_ready(compiled(X)), size


def main() -> None:
    if tangents(network("erf", 1.0), np.ones((2, 2)), ("nngp",)) is None:
        print("neural-tangents is not installed: compared with plain NumPy alone")
    threads = os.environ.get("OMP_NUM_THREADS", "not set, use 1")
    print(f"{P} inputs, depth {DEPTH}; OMP_NUM_THREADS: {threads}; JAX: one thread")
    print(f"a matrix takes {8e-6 * P**2:.0f} MB; kernels differ relative to the variances")
    for activation, rho, kind in CASES:
        compare(network(activation, rho), inputs(kind), f"{activation}, rho = {rho:.3g}, {kind}")
    for activation in ("erf", "relu"):
        X = inputs("many norms", MANY)
        title = f"{MANY} inputs: {activation}, rho = 1/sqrt(L), many norms"
        compare(network(activation, 1 / np.sqrt(DEPTH)), X, title, QUANTITIES[1:2], repeats=1)
    for depth in (200, 1000):
        for phi in ("erf", OWN):
            for kind in ("one norm", "many norms"):
                beside_products(phi, depth, kind)
    for quantity in ("output_kernel", "tangent_kernel"):
        for kind in ("one norm", "many norms"):
            per_pair(network("erf", 1 / np.sqrt(DEPTH)), kind, quantity)


def compare(
    net: ft.ResidualNetwork,
    X: np.ndarray,
    title: str,
    wanted: list[tuple[tuple[str, ...], tuple[str, ...]]] = QUANTITIES,
    repeats: int = 3,
) -> None:
    print(title)
    for quantities, get in wanted:
        task = partial(ours, net, X, quantities)
        found, peak = task(), memory(task)
        sides = []
        if "output_kernel" in quantities and "output_response" in quantities:
            sides.append(("plain NumPy", partial(plain, net, X), memory(partial(plain, net, X))))
        compiled = tangents(net, X, get)
        if compiled is not None:
            sides.append((f"neural-tangents {get}", *compiled))
        values = [[np.asarray(value) for value in slow()] for _, slow, _ in sides]
        fast, warm, *slow = in_turns(
            [task, partial(known, net, X, quantities), *(side[1] for side in sides)], repeats
        )
        text = f"  {' and '.join(quantities)}: {fast:.3f} s, with maps made before {warm:.3f} s"
        print(f"{text}, {peak:.0f} MB{of_exact(net, X, quantities, found)}")
        for (side, _, peak), value, time_ in zip(sides, values, slow, strict=True):
            text = f"    {side:34s} {time_:6.2f} s  {peak:4.0f} MB  ratio {time_ / fast:5.1f}"
            text += "  differences"
            for one, ours_, of in zip(value, found, quantities, strict=True):
                if of != "output_response" or side == "plain NumPy":
                    text += f" {difference(one, ours_):.0e}"
            if side != "plain NumPy":
                text += of_exact(net, X, quantities, value)
            print(text, flush=True)


def of_exact(
    net: ft.ResidualNetwork, X: np.ndarray, quantities: tuple[str, ...], found: list[np.ndarray]
) -> str:
    """The largest relative errors of kernels of a few inputs, diagonal and not."""
    text = ""
    for matrix, quantity in zip(found, quantities, strict=True):
        if quantity == "output_response":
            continue
        errors = []
        for i, j in ((0, 0), (0, 1), (2, 3)):
            expected = exact(net.activation.name, float(net.branch_scale), X[i], X[j])[quantity]
            errors.append(float(abs(mpf(float(matrix[i, j])) / expected - 1)))
        text += f", error {max(errors):.0e}"
    return text


@cache
def _of_bytes(activation: str, rho: float, x: bytes, z: bytes) -> dict[str, Any]:
    """Output and tangent kernel of two inputs with 30 digits, from closed forms typed here."""
    with mpmath.workdps(30):
        W, b, r2 = mpf(WEIGHT), mpf(BIAS), mpf(rho) ** 2
        average = {"erf": exact_erf, "relu": exact_relu}[activation]
        x_, z_ = (np.frombuffer(v) for v in (x, z))
        products = [(x_, x_), (x_, z_), (z_, z_)]
        K = [W * mpmath.fdot(u.tolist(), v.tolist()) / len(u) for u, v in products]
        theta = K[1]
        for layer in range(DEPTH + 1):
            square, skip = (r2, 1) if layer < DEPTH else (mpf(1), 0)
            moments = [average(p, q, r) for p, r, q in ((K[0], K[0], K[0]), K, (K[2], K[2], K[2]))]
            C = [square * (W * moment + b) for moment, _ in moments]
            theta = (skip + square * W * moments[1][1]) * theta + C[1]
            K = [skip * k + c for k, c in zip(K, C, strict=True)]
        return {"output_kernel": K[1], "tangent_kernel": theta}


def exact(activation: str, rho: float, x: np.ndarray, z: np.ndarray) -> dict[str, Any]:
    return _of_bytes(activation, rho, x.tobytes(), z.tobytes())


def exact_erf(p: Any, q: Any, r: Any) -> tuple[Any, Any]:
    root = mpmath.sqrt((1 + 2 * p) * (1 + 2 * q) - 4 * r * r)
    return 2 / mpmath.pi * mpmath.atan2(2 * r, root), 4 / mpmath.pi / root


def exact_relu(p: Any, q: Any, r: Any) -> tuple[Any, Any]:
    root = mpmath.sqrt(max(p * q - r * r, mpf(0)))
    slope = mpf(1) / 4 + mpmath.atan2(r, root) / (2 * mpmath.pi)
    return root / (2 * mpmath.pi) + r * slope, slope


def difference(value: np.ndarray, found: np.ndarray) -> float:
    """The largest between two inputs, relative to the variances."""
    scale = np.sqrt(np.multiply.outer(np.diagonal(found), np.diagonal(found)))
    off = ~np.eye(len(found), dtype=bool)
    return float((np.abs(value - found) / np.abs(scale))[off].max())


def beside_products(phi: str, depth: int, kind: str) -> None:
    """Ratios of kernels, with the maps that there are, to X Xᵀ of the same inputs."""
    net = network("erf", depth**-0.5).replace(activation=phi, depth=depth, input_dim=WIDE)
    X = np.random.default_rng(0).standard_normal((MOST, WIDE))
    if kind == "one norm":
        X *= np.sqrt(WIDE) / np.linalg.norm(X, axis=1)[:, None]
    tasks = [partial(np.matmul, X, X.T)]
    tasks += [partial(ft.kernel(net, quantity), X) for quantity in BESIDE]
    for task in tasks:
        task()
    product, *times = in_turns(tasks, 3)
    ratios = ", ".join(f"{q} {t / product:.2f}" for q, t in zip(BESIDE, times, strict=True))
    print(f"{MOST} inputs of {WIDE}, {kind}, {phi}, L = {depth}, over X X^T: {ratios}", flush=True)


def per_pair(net: ft.ResidualNetwork, kind: str, quantity: str) -> None:
    """Times of a kernel, and of one that is symmetric, for growing numbers of inputs.

    The largest k(X) takes 3.2 GB.
    """
    print(f"{quantity} of erf, rho = 1/sqrt(L), {kind}: ns for an entry of k(X), and of k(X, Z)")
    k, Z = ft.kernel(net, quantity), inputs(kind, seed=1)
    for count in COUNTS:
        X = inputs(kind, count)
        forget()
        whole, block = (seconds(partial(k, X, other), 2) for other in (None, Z))
        text = f"  {count:6d} inputs: {1e9 * whole / count**2:5.1f}"
        print(f"{text} {1e9 * block / (count * len(Z)):5.1f}", flush=True)


if __name__ == "__main__":
    main()
