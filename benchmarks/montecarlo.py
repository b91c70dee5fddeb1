"""Finite networks in one run: what the samplers, the variance reduction and the responses cost.

The exact sampler of kernels against explicit weights: F25's networks, N = 500, L = 20, 1000 of
them. Both methods are `simulate` in NumPy float64 with one job. Explicit weights take as long for
every network, so fewer are drawn and the time is scaled; set OMP_NUM_THREADS=1 to keep BLAS to one
thread.

Variance reduction: the error of 1000 networks in the last hidden layer gives the seconds for 1 %
of the 1/N shift of the mean, of the four-point vertex, and of the variance of the output kernel, by
plain sampling and with the control variate. Then the ratio of variance times cost, plain sampling
over the control variate; below 1 it does not pay. These are seconds of CPU time, which other work
on the machine does not change.
"""

from __future__ import annotations

import time

import numpy as np

from fieldtheory.montecarlo.perturbation import simulate_response
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import solve

NETWORKS = 1000
CONTROL = "control_variate"
DEEP = {
    "erf, rho = 1/L^(1/2)": {"branch_scale": 0.1},
    "erf, rho = 1": {"branch_scale": 1.0},
    "erf, gamma = 0.7": {"skip_scale": 0.7},
    "erf, gamma = 0": {"skip_scale": 0.0},
    "relu, rho = 1/L^(1/2)": {"branch_scale": 0.1, "activation": "relu"},
    "relu, rho = 0.2": {"branch_scale": 0.2, "activation": "relu"},
}


def seconds_per_network(
    network: ResidualNetwork, K0: object, method: str, samples: int, repeats: int
) -> float:
    """The shortest wall time after a run that warms it up."""
    simulate(network, K0, samples=20, method=method)
    times = []
    for seed in range(repeats):
        start = time.perf_counter()
        simulate(network, K0, samples=samples, method=method, seed=seed)
        times.append(time.perf_counter() - start)
    return min(times) / samples


def cost_and_errors(
    network: ResidualNetwork, K0: float, reduction: str | None
) -> tuple[float, dict[str, float]]:
    """CPU seconds for 1000 samples, and the standard errors of three quantities at depth L."""
    simulate(network, K0, samples=20, variance_reduction=reduction)
    start = time.process_time()
    found = simulate(network, K0, samples=NETWORKS, variance_reduction=reduction)
    seconds = time.process_time() - start
    return seconds, {
        "shift": found.kernel_mean_error[-2],
        "vertex": found.four_point_error[-1],
        "variance": found.covariance_error[-1, -1],
    }


def seconds_to_one_percent() -> None:
    print("CPU seconds for 1 % at depth 100, N = 500, one input: plain, control variate, ratio")
    for name, parameters in DEEP.items():
        network = ResidualNetwork(depth=100, width=500, **parameters)
        # The plain estimate of the shift is mostly noise.
        scale = simulate(network, 0.05, samples=NETWORKS, seed=1, variance_reduction=CONTROL)
        size = {
            "shift": (scale.kernel_mean - solve(network, 0.05).kernels)[-2],
            "vertex": scale.four_point[-1],
            "variance": scale.covariance[-1, -1],
        }
        runs = [cost_and_errors(network, 0.05, reduction) for reduction in (None, CONTROL)]
        print(f"  {name}: a network costs {runs[1][0] / runs[0][0]:.1f} times as much")
        for quantity, value in size.items():
            plain, reduced = (cost * (e[quantity] / value / 0.01) ** 2 for cost, e in runs)
            print(f"    {quantity:8s} {plain:10.3g} {reduced:10.3g} {plain / reduced:10.3g}")


def gains() -> None:
    print("plain variance times cost over reduced, N = 200, one input: shift, vertex, variance")
    for depth in (5, 20, 100):
        for activation, weight in (("erf", 1.25), ("relu", 2.0)):
            for gamma, rho in ((0.0, 1.0), (0.7, 0.8), (1.0, depth**-0.5)):
                network = ResidualNetwork(
                    depth=depth,
                    width=200,
                    activation=activation,
                    weight_variance=weight,
                    skip_scale=gamma,
                    branch_scale=rho,
                )
                cost, plain = cost_and_errors(network, 0.3, None)
                print(f"  L = {depth}, {activation}, gamma = {gamma:g}")
                seconds, reduced = cost_and_errors(network, 0.3, CONTROL)
                ratios = [cost / seconds * (plain[q] / reduced[q]) ** 2 for q in plain]
                print("    " + "".join(f"{ratio:10.3g}" for ratio in ratios))


def responses() -> None:
    print(
        "response of 1000 networks of N = 500, L = 20: CPU seconds, relative error of the output's"
    )
    network = ResidualNetwork(depth=20, width=500, branch_scale=0.3)
    for name, K0 in (("variance", 0.05), ("pair", [[0.05, 0.03], [0.03, 0.05]])):
        simulate_response(network, K0, samples=20)
        start = time.process_time()
        found = simulate_response(network, K0, samples=NETWORKS)
        seconds = time.process_time() - start
        error = found.output_response_error / found.output_response
        print(f"  {name:8s} {seconds:6.2f} {float(np.ravel(error)[min(1, error.size - 1)]):.2g}")


def main() -> None:
    print(f"seconds for {NETWORKS} networks of N = 500, L = 20: kernel, weights, ratio")
    for activation in ("erf", "relu"):
        network = ResidualNetwork(depth=20, width=500, activation=activation, branch_scale=0.3)
        for inputs, samples in ((1, NETWORKS), (20, 200)):
            K0 = 0.05 if inputs == 1 else 0.03 * np.eye(inputs) + 0.02
            kernel = NETWORKS * seconds_per_network(network, K0, "kernel", samples, 3)
            weights = NETWORKS * seconds_per_network(network, K0, "weights", 40, 2)
            print(
                f"  {activation:4s} P = {inputs:2d}: {kernel:7.2f} {weights:7.1f} "
                f"{weights / kernel:6.0f}"
            )
    print("seconds for 1000 networks of N = 500, one input: growth with depth")
    for depth in (20, 50, 100, 200):
        network = ResidualNetwork(depth=depth, width=500, branch_scale=1 / np.sqrt(depth))
        print(
            f"  L = {depth:3d}: {1000 * seconds_per_network(network, 0.05, 'kernel', 1000, 1):.2f}"
        )
    seconds_to_one_percent()
    gains()
    responses()


if __name__ == "__main__":
    main()
