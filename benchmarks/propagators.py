"""Numeric propagators: ratios to naive versions and growth with depth, in one run.

The naive G11 takes every entry of S22 by a 64x64 Gauss-Hermite rule and inverts S21 densely; the
naive batch is a Python loop over `solve`. Both sides are warmed up. Times are those of the
processor, so that other work on the machine does not count; set OMP_NUM_THREADS=1 to keep BLAS to
one thread.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import erf

import fieldtheory as ft

FUNCTIONS = {"erf": erf, "tanh": np.tanh}


def seconds(task: Callable[[], object], repeats: int = 3) -> float:
    """The shortest processor time of a task after a run that warms it up."""
    task()
    return min(timeit.repeat(task, timer=time.process_time, repeat=repeats, number=1))


def naive_G11(network: ft.ResidualNetwork, K0: float) -> np.ndarray:
    """G11 from dense blocks, every average by Gauss-Hermite quadrature; ρ and γ = 1 constant."""
    phi = FUNCTIONS[network.activation.name]
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    weights = weights / weights.sum()
    rho2, size = float(network.branch_scale) ** 2, network.depth + 2
    a = np.full(size, rho2 * network.weight_variance)
    a[-1] = network.readout_variances[0]
    K = [K0]
    for _ in range(network.depth):
        moment = weights @ phi(np.sqrt(K[-1]) * nodes) ** 2
        K.append(K[-1] + rho2 * (network.weight_variance * moment + network.bias_variance))
    S21, S22 = -np.eye(size), np.zeros((size, size))
    for k in range(1, size):
        h = np.sqrt(K[k - 1]) * nodes
        slope = weights @ (phi(h) ** 2 * (nodes**2 - 1)) / (2 * K[k - 1])
        S21[k, :k] = a[k] * slope
        for l in range(1, k + 1):
            spread = np.sqrt(max(K[k - 1] - K[l - 1], 0.0))
            x = np.sqrt(K[l - 1]) * nodes
            F, G = phi(x) ** 2, phi(x[:, None] + spread * nodes) ** 2
            joint = weights @ (F[:, None] * G) @ weights
            connected = joint - (weights @ F) * (weights @ G @ weights)
            S22[k, l] = S22[l, k] = a[k] * a[l] * connected
    G12 = -np.linalg.inv(S21)
    return G12 @ S22 @ G12.T / network.width


def output_response(network: ft.ResidualNetwork) -> np.ndarray:
    return ft.solve(network, 0.05).output_response


def full_G12(network: ft.ResidualNetwork) -> np.ndarray:
    return ft.solve(network, 0.05).G12


def full_G11(network: ft.ResidualNetwork) -> np.ndarray:
    return ft.solve(network, 0.05).G11


def main() -> None:
    print("naive / solve, full G11 of one input")
    for name in FUNCTIONS:
        for depth in (50, 200):
            net = ft.ResidualNetwork(depth=depth, activation=name, branch_scale=0.3)
            fast, slow = ft.solve(net, 0.05).G11, naive_G11(net, 0.05)
            error = np.abs(slow[1:, 1:] / fast[1:, 1:] - 1).max()
            slow_time = seconds(partial(naive_G11, net, 0.05))
            ratio = slow_time / seconds(partial(full_G11, net), 20)
            print(f"  {name:5s} L = {depth:3d}: {ratio:6.0f}   (they differ by {error:.0e})")
    print("loop / batch, output response of 1000 values of rho at L = 200")
    rho = np.linspace(0.01, 1, 1000)
    net = ft.ResidualNetwork(depth=200)
    batch = seconds(partial(output_response, net.replace(branch_scale=rho[:, None])))
    loop = seconds(lambda: [output_response(net.replace(branch_scale=r)) for r in rho], 1)
    print(f"  {loop / batch:6.0f}")
    print("growth with depth for erf, milliseconds: K and response, G12, G11")
    for depth in (50, 100, 200, 400, 800, 1600, 3200):
        net = ft.ResidualNetwork(depth=depth, branch_scale=1 / np.sqrt(depth))
        tasks = (
            partial(output_response, net),
            partial(full_G12, net),
            partial(full_G11, net),
        )
        times = [1e3 * seconds(t, 1) for t in tasks]
        print(f"  L = {depth:4d}: " + " ".join(f"{t:9.1f}" for t in times))


if __name__ == "__main__":
    main()
