"""Fluctuations of several inputs: processor time and memory by the number of inputs and the depth.

G11, the vertex and the mean shift of P inputs, one entry of S22 by a rule of Gauss-Hermite in four
dimensions, and covariance_with from 10 000 sampled paths. Activations, numbers of inputs, depths
and relative errors are arguments, as in ``python benchmarks/fluctuations.py relu:3:20:1e-9
erf:20:20``, where the error is 1e-5 if it is left out; set OMP_NUM_THREADS=1 to keep BLAS to one
thread.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from scipy.special import erf

import fieldtheory as ft

CASES = ("erf:2:5", "erf:2:20", "erf:4:10", "erf:8:10", "relu:3:20", "tanh:3:20", "relu:8:10")


def solution(activation: str, inputs: int, depth: int, rtol: float) -> ft.Solution:
    """Of random inputs, with kernels that are known."""
    X = np.random.default_rng(0).standard_normal((inputs, 30))
    network = ft.ResidualNetwork(depth=depth, activation=activation, branch_scale=0.3)
    found = ft.solve(network, 0.4 * X @ X.T / 30, rtol=rtol)
    _ = found.kernels
    return found


def seconds(start: float) -> str:
    return f"{time.process_time() - start:9.2f}"


def naive_entry(count: int = 32) -> float:
    """The time of one entry of S22 by a product rule for four signals."""
    start = time.process_time()
    z, w = np.polynomial.hermite_e.hermegauss(count)
    w = w / w.sum()
    root = np.linalg.cholesky(0.3 * np.eye(4) + 0.1)
    values = erf(np.tensordot(root, np.array(np.meshgrid(z, z, z, z, indexing="ij")), 1))
    g, other = values[0] * values[1], values[2] * values[3]
    means = [np.einsum("abcd,a,b,c,d", f, w, w, w, w, optimize=True) for f in (g * other, g, other)]
    assert means[0] > means[1] * means[2]
    return time.process_time() - start


def main() -> None:
    naive = naive_entry()
    print(f"one entry by quadrature in four dimensions: {naive:.2g} s")
    columns = ("φ", "P", "L", "smooth", "G11", "V", "shift", "naive G11", "paths", "GB")
    print("".join(f"{name:>10}" for name in columns))
    for case in sys.argv[1:] or CASES:
        activation, *sizes, rtol = (*case.split(":"), "1e-5")[:4]
        inputs, depth = map(int, sizes)
        s, times = solution(activation, inputs, depth, float(rtol)), []
        for name in ("G11", "four_point", "mean_shift"):
            start = time.process_time()
            _ = getattr(s, name)
            times.append(seconds(start))
        entries = (depth + 1) * inputs * (inputs + 1) // 2
        start = time.process_time()
        ft.covariance_with(s, np.eye(inputs), samples=10_000)
        paths = seconds(start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        signals = s.chain.pairs.signals
        smooth = "yes" if signals.smooth else "no"
        line = [f"{activation:>10}{inputs:10d}{depth:10d}{smooth:>10}", *times]
        print(" ".join([*line, f"{naive * entries * (entries + 1) / 2:9.2g}", paths]), end="")
        print(f"{memory:10.2f}", flush=True)


if __name__ == "__main__":
    main()
