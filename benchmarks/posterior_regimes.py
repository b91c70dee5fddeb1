"""Which theory of the posterior holds where: infinite width, order 1/N, the tilted saddle point.

Each is compared with a Markov chain of networks of width 32 (tests/oracles/neuron_chains.py), for
labels ±1 of random inputs. Columns: error of yᵀC^(L+1)y (in per cent of the posterior's), error
of the mean predictions at training and test inputs, and of their variances (root mean square, in
per cent), for NNGP / order 1/N / tilted; the last column has the errors of the chain itself.

    python benchmarks/posterior_regimes.py [steps]
"""

import sys
import time
import warnings

import numpy as np
from scipy.special import erf

import fieldtheory as ft
from tests.oracles import neuron_chains as chains

WIDTH, DIM, TEST, NOISE = 32, 20, 8, 0.1
PHI = {"erf": erf, "relu": lambda h: np.maximum(h, 0.0), "linear": lambda h: h}
WEIGHT = {"erf": 1.25, "relu": 2.0, "linear": 1.0}
# γ, ρ, L.
NETWORKS = ((1.0, 0.0, 1), (1.0, 0.3, 4), (1.0, 1.0, 1), (0.0, 1.0, 1))
RATIOS = (0.25, 1.0, 2.0)


def main(steps=8000, names=("erf", "relu")):
    print(f"N = {WIDTH}, noise {NOISE}, {steps} moves of the chain; per cent")
    print("phi    gamma rho L P/N |  yCy: NNGP 1/N tilted | mean | variance | chain")
    for name in names:
        for gamma, rho, depth in NETWORKS:
            for ratio in RATIOS:
                row(name, gamma, rho, depth, round(ratio * WIDTH), steps)


def row(name, gamma, rho, depth, count, steps):
    rng = np.random.default_rng(count)
    X = rng.standard_normal((count + TEST, DIM))
    y = np.sign(X @ rng.standard_normal(DIM))[:count]
    K0, weight = X @ X.T / DIM, WEIGHT[name]
    net = ft.ResidualNetwork(
        depth=depth,
        activation=name,
        branch_scale=rho,
        skip_scale=gamma,
        weight_variance=weight,
        bias_variance=0.0,
        width=WIDTH,
    )
    plain = chains.Net(PHI[name], depth, gamma, rho**2 * weight, 0.0, weight, 0.0, WIDTH)
    exact = chains.elliptical(plain, K0, y[:, None], NOISE, steps, 1)
    exact = exact._replace(mean=exact.mean[:, 0], variance=exact.variance[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.ValidityWarning)
        wide = ft.posterior(net, K0, y, NOISE, order=0)
        first = ft.posterior(net, K0, y, NOISE, order=1)
    start = time.process_time()
    tilted = ft.tilted_posterior(net, K0, y, NOISE, samples=100_000)
    seconds = time.process_time() - start
    theories = (wide, first, tilted)
    along = [y @ t.residual_kernels[-1][:count, :count] @ y for t in theories]
    truth = y @ exact.kernels[-1][:count, :count] @ y
    kernel = [100 * (value / truth - 1) for value in along]
    mean = [100 * rms(t.mean - exact.mean) / rms(exact.mean) for t in theories]
    variance = [100 * rms(t.variance - exact.variance) / rms(exact.variance) for t in theories]
    spread = np.linalg.norm(exact.kernels_error[-1]) / np.linalg.norm(exact.kernels[-1])
    chain = [100 * spread, 100 * rms(exact.mean_error) / rms(exact.mean)]
    numbers = " | ".join(
        " ".join(f"{x:6.1f}" for x in each) for each in (kernel, mean, variance, chain)
    )
    case = f"{name:6s} {gamma:.0f} {rho:.1f} {depth} {count / WIDTH:4.2f}"
    print(f"{case} | {numbers} | {seconds:.0f} s", flush=True)


def rms(values):
    return np.sqrt(np.mean(values**2))


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
