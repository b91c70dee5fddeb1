"""The optimal scaling: ratios to a scalar optimiser and to loops, in one run.

The other side of the first ratio calls `scipy.optimize.minimize_scalar` on the output response of
`solve` for one pair of inputs after the other; a few pairs are measured and scaled up to all. Both
sides are warmed up. Times are those of the processor, so that other work on the machine does not
count; set OMP_NUM_THREADS=1 to keep BLAS to one thread.
"""

from __future__ import annotations

import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy import optimize

import fieldtheory as ft
from fieldtheory.data import load_digits, normalise

DEPTH, IMAGES, MEASURED = 200, 20, 5
# Own data, as a first call in a fresh process: activations, numbers of inputs, method or grid.
# Of the activations that people use these have a largest response in ρ.
# For the others it is an error.
ACTIVATIONS = ("erf", "cos", "sin", "exp(-x**2)", "tanh", "atan(x)", "x/sqrt(1+x**2)")
ACTIVATIONS += ("x/(1+abs(x))", "hard_tanh", "relu6")
INPUTS, FEATURES, OWN_DEPTH, GRID = (2, 5, 16), 12, 50, 200
METHODS = ("response", "deep_limit", "grid")
BOUNDS = (1e-3, 1.0)


def seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """The shortest processor time of a task after a run that warms it up."""
    task()
    return min(timeit.repeat(task, timer=time.process_time, repeat=repeats, number=1))


def own_data(activation: str, method: str, inputs: int, unequal: bool = False) -> float:
    """The processor time of a first call for a kernel of random inputs."""
    samples = np.random.default_rng(1).normal(size=(inputs, FEATURES))
    norms = 1 if unequal else np.linalg.norm(samples, axis=1, keepdims=True) / FEATURES**0.5
    kernel = 0.05 * (samples / norms) @ (samples / norms).T / FEATURES
    network = ft.ResidualNetwork(depth=OWN_DEPTH, activation=activation)
    start = time.process_time()
    if method == "grid":
        scalings = np.linspace(1e-3, 1.5, GRID)[:, None] * np.ones(OWN_DEPTH)
        _ = ft.solve(network.replace(branch_scale=scalings), kernel).output_response
    else:
        ft.optimal_scaling(network, kernel, method=method)
    return time.process_time() - start


def first_call(activation: str, method: str, inputs: int, unequal: bool) -> float:
    """`own_data` in a fresh process; NaN for an error."""
    call = f"own_data({activation!r}, {method!r}, {inputs}, {unequal})"
    code = f"from scaling import own_data; print({call})"
    run = [sys.executable, "-W", "ignore", "-c", code]
    folder = Path(__file__).parent
    text = subprocess.run(run, cwd=folder, capture_output=True, text=True).stdout
    return float(text) if text else float("nan")


def first_calls() -> None:
    """Every activation by both methods and by the grid, with the ratios that are promised."""
    print(f"seconds of a first call, L = {OWN_DEPTH}; the last columns are ratios of `response`")
    columns = ("response", "deep_limit", "grid", "to erf", "to deep_limit", "to grid")
    for inputs in INPUTS:
        print(f"P = {inputs}".ljust(24) + "".join(f"{name:>14s}" for name in columns))
        tasks = [(a, False) for a in ACTIVATIONS] + [("softsign", True)]
        erf = float("nan")
        for activation, unequal in tasks:
            found = [first_call(activation, m, inputs, unequal) for m in METHODS]
            erf = found[0] if activation == "erf" else erf
            ratios = [found[0] / other for other in (erf, *found[1:])]
            name = activation + (" (norms)" if unequal else "")
            print(f"  {name:22s}" + "".join(f"{value:14.2f}" for value in (*found, *ratios)))


def digits_kernel(network: ft.ResidualNetwork) -> np.ndarray:
    """The input kernel of images of the digits 0 and 3, all of the variance 0.05."""
    network = network.replace(readin_bias_variance=0.0)
    samples = load_digits(count=IMAGES).samples
    return ft.input_kernel(normalise(samples, 0.05, network.readin_variances[0]), network)


def by_scalar_optimiser(network: ft.ResidualNetwork, pair: np.ndarray) -> float:
    """ρ* of the covariance in a (2, 2) kernel."""

    def loss(rho: float) -> float:
        return -ft.solve(network.replace(branch_scale=rho), pair).output_response[0, 1]

    return optimize.minimize_scalar(loss, bounds=BOUNDS).x


def all_pairs(network: ft.ResidualNetwork) -> None:
    kernel = digits_kernel(network)
    pairs = np.triu_indices(IMAGES, 1)
    count = len(pairs[0])
    print(f"covariances of {count} pairs of {IMAGES} images, L = {network.depth}")
    optima = ft.optimal_scaling(network, kernel)[pairs]
    fast = seconds(partial(ft.optimal_scaling, network, kernel))
    chosen = np.linspace(0, count - 1, MEASURED).astype(int)
    each = [kernel[np.ix_(pair, pair)] for pair in np.transpose(pairs)[chosen]]
    found = [by_scalar_optimiser(network, pair) for pair in each]
    slow = seconds(lambda: [by_scalar_optimiser(network, pair) for pair in each], 1)
    slow *= count / MEASURED
    print(f"  one call {fast:.2f} s, a scalar optimiser per pair {slow:.0f} s")
    error = np.abs(optima[chosen] / found - 1).max()
    print(f"  ratio {slow / fast:.0f}   (they differ by {error:.0e})")
    for order in (1, 2):
        limit = partial(ft.optimal_scaling, network, kernel, method="deep_limit", order=order)
        error = np.abs(limit()[pairs] / optima - 1).max()
        print(f"  deep limit, order {order}: {seconds(limit):.2f} s, error at most {error:.0e}")


def many_networks() -> None:
    weights, biases = np.meshgrid(np.linspace(0.5, 3, 20), np.linspace(0, 0.1, 10))
    networks = [
        ft.ResidualNetwork(depth=100, weight_variance=weight, bias_variance=bias)
        for weight, bias in zip(weights.ravel(), biases.ravel(), strict=True)
    ]
    batch = seconds(partial(ft.optimal_scaling, networks, 0.05))
    loop = seconds(lambda: [ft.optimal_scaling(network, 0.05) for network in networks], 1)
    print(f"{len(networks)} networks, one input, L = 100")
    print(f"  one call {batch:.2f} s, loop {loop:.1f} s, ratio {loop / batch:.0f}")


def against_depth() -> None:
    pair = [[0.05, 0.03], [0.03, 0.05]]
    deep = {"method": "deep_limit", "order": 2}
    print("milliseconds: one input, exact and deep limit (order 2); a pair of inputs, the same")
    for depth in (50, 100, 200, 400, 800):
        network = ft.ResidualNetwork(depth=depth)
        tasks = [
            partial(ft.optimal_scaling, network, kernel, **options)
            for kernel in (0.05, pair)
            for options in ({}, deep)
        ]
        print(f"  L = {depth:4d}: " + " ".join(f"{1e3 * seconds(t, 1):9.1f}" for t in tasks))


def main() -> None:
    first_calls()
    all_pairs(ft.ResidualNetwork(depth=DEPTH))
    many_networks()
    against_depth()


if __name__ == "__main__":
    main()
