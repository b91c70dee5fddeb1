"""The tilted saddle point beside deepbays (pip install deepbays) for feed-forward networks, P = N.

deepbays has one scale for every layer (R. Pacelli et al., Nature Machine Intelligence 5, 1497
(2023)), no skips. Both and infinite width are compared with a Markov chain of networks (tests/
oracles/neuron_chains.py): root-mean-square errors of mean predictions and of their variances at
test inputs, in per cent; "chain" is the standard error of the chain's means.

    python benchmarks/deepbays_posterior.py [steps]
"""

import contextlib
import importlib
import io
import sys
import time
from unittest import mock

import numpy as np
import torch

import fieldtheory as ft
from benchmarks.posterior_regimes import DIM, NOISE, PHI, WIDTH, rms
from tests.oracles import neuron_chains as chains

# deepbays imports CuPy, for kernels on GPUs that are not used here.
for name in ("cupy", "cupy.cuda", "cupyx", "cupyx.scipy", "cupyx.scipy.linalg"):
    sys.modules.setdefault(name, mock.MagicMock())
rkgp = importlib.import_module("deepbays.rkgp")

TEST = 20


def main(steps=4000):
    print(
        "phi  hidden | mean: NNGP deepbays tilted | variance: the same | chain | s: deepbays tilted"
    )
    for name in ("erf", "relu"):
        for hidden in (1, 2, 3):
            row(name, hidden, steps)


def row(name, hidden, steps):
    rng = np.random.default_rng(hidden)
    X = rng.standard_normal((WIDTH + TEST, DIM))
    y = np.sign(X @ rng.standard_normal(DIM))[:WIDTH]
    K0, a = X @ X.T / DIM, {"erf": 1.0, "relu": 2.0}[name]
    gamma, rho = (1.0, 0.0) if hidden == 1 else (0.0, 1.0)
    depth = max(hidden - 1, 1)
    net = ft.ResidualNetwork(
        depth=depth, activation=name, branch_scale=rho, skip_scale=gamma, weight_variance=a,
        bias_variance=0.0, width=WIDTH,
    )  # fmt: skip
    plain = chains.Net(PHI[name], depth, gamma, rho**2 * a, 0.0, a, 0.0, WIDTH)
    exact = chains.elliptical(plain, K0, y[:, None], NOISE, steps, 1)
    wide = ft.posterior(net, K0, y, NOISE, order=0)
    seconds = [time.process_time()]
    mean, variance = renormalised(name, hidden, a, X[:WIDTH], y, X[WIDTH:])
    seconds.append(time.process_time())
    tilted = ft.tilted_posterior(net, K0, y, NOISE, samples=100_000)
    seconds.append(time.process_time())
    true, spread = exact.mean[WIDTH:, 0], exact.variance[WIDTH:, 0]
    means = (wide.mean[WIDTH:], mean, tilted.mean[WIDTH:])
    variances = (wide.variance[WIDTH:], variance, tilted.variance[WIDTH:])
    errors = [100 * rms(found - true) / rms(true) for found in means]
    errors += [100 * rms(found - spread) / rms(spread) for found in variances]
    errors += [100 * rms(exact.mean_error[WIDTH:]) / rms(true), *np.diff(seconds)]
    print(f"{name} {hidden} " + " ".join(f"{value:6.1f}" for value in errors), flush=True)


def renormalised(name, hidden, a, X, y, X_test):
    """Mean and variance of deepbays at the test inputs."""
    with contextlib.redirect_stdout(io.StringIO()):
        if hidden == 1:
            model = rkgp.FC_1HL(WIDTH, NOISE, 1.0, 1 / a, name)
            model.preprocess(X, y)
        else:
            model = rkgp.FC_deep(hidden, WIDTH, NOISE, [1.0, *[1 / a] * hidden], name)
            model.preprocess(X, torch.as_tensor(y))
        model.optimize()
        mean = np.asarray(model.predict(X_test))
    if hidden == 1:
        prior, cross = model.orderParam * model.K0, model.rK0X
    else:
        prior, cross = model.rK0L, model.rK0XL
    return mean, np.asarray(prior) - np.sum(np.asarray(model.K0_invK) * np.asarray(cross), axis=1)


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
