"""The methods of simulation follow one law: that of explicit weights, and exact results."""

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork, ParameterLaw
from tests.oracles import diffusion_paths
from tests.tables import slow

# Of some thousand normal numbers none lies beyond.
LARGEST_Z = 4.5
SMALLEST_P = 1e-4
DRAWS = 4000

FUNCTIONS = {
    "tanh": np.tanh,
    "linear": lambda u: u,
    "relu": lambda u: np.maximum(u, 0.0),
    "swish": lambda u: u / (1 + np.exp(-u)),
    "sin": np.sin,
    "softsign": lambda u: u / (1 + np.abs(u)),
}
SLOPES = {"tanh": (1.0, 0.0), "linear": (1.0, 0.0), "swish": (0.5, 0.5), "sin": (1.0, 0.0)}
GENERAL = [[0.5, -1.0, 2.0], [0.0, 0.3, 1.0]]

# φ, ψ, width, Z, and what differs from the defaults.
NETWORKS = [
    ("tanh", "linear", 4, [0.0, 1.0], {}),
    ("swish", "linear", 3, [0.5], {"weight_variance": 0.7, "bias_variance": 2.0}),
    ("relu", "tanh", 2, [-1.0, 1.0], {}),
    ("sin", "relu", 5, [1.0, 1.0, -2.0], {"bias_variance": 0.3}),
    slow("tanh", "tanh", 1, [0.0, 1.0], {}),
    ("softsign", "linear", 2, [0.0, -1.0, 1.0, 2.0, 3.0], {"horizon": 0.5}),
    ("tanh", "sin", 3, GENERAL, {"bias_variance": 0.0}),
    slow("linear", "linear", 1, [1.0], {"bias_variance": 0.0}),
    slow("swish", "swish", 6, [0.0, 1.0, 2.0], {"weight_variance": 0.0}),
]


def network(phi, psi, width, changes, depth=6):
    return DiffusionNetwork(
        depth=depth, width=width, activation=phi, input_activation=psi, **changes
    )


def start_of(net, Z):
    Z = np.asarray(Z, float)
    return np.repeat(Z[:, None], net.width, axis=1) if Z.ndim == 1 else Z


def scores(found, samples, name):
    """(simulated − oracle) over the error of both, at the last layer; 0 where both do not vary."""
    values = samples[name]
    scale = len(values) / (len(values) - 1) if "vari" in name else 1.0
    mean, error = values.mean(axis=0) * scale, values.std(axis=0) / len(values) ** 0.5
    error = np.hypot(error, getattr(found, f"{name}_error")[-1])
    difference = getattr(found, name)[-1] - mean
    tiny = 1e-12 * (1 + np.abs(mean))
    return np.where(np.abs(difference) < tiny, 0.0, difference / np.maximum(error, 1e-300))


def p_values(found, outputs):
    """Of the two samples of outputs, of every input and of sums of neighbours."""
    both = [np.hstack([y, y[:, 1:] - 0.5 * y[:, :-1]]) for y in (found.outputs, outputs)]
    for f, s in zip(*(y.T for y in both), strict=True):
        yield stats.ks_2samp(f, s).pvalue if np.ptp(s) else float(np.ptp(f) == 0)


def assert_one_law(found, path, psi):
    samples = diffusion_paths.statistics(path, None, psi)
    for name in samples:
        assert np.abs(scores(found, samples, name)).max() < LARGEST_Z, name
    assert min(p_values(found, path[:, -1, :, 0])) > SMALLEST_P


@pytest.mark.parametrize("method", ["kernel", "weights"])
@pytest.mark.parametrize("phi, psi, width, Z, changes", NETWORKS)
def test_networks(phi, psi, width, Z, changes, method):
    net = network(phi, psi, width, changes)
    draw = diffusion_paths.iid(width, net.weight_variance, net.bias_variance)
    path = diffusion_paths.network(
        *(FUNCTIONS[phi], FUNCTIONS[psi], start_of(net, Z)),
        *(net.depth, net.horizon, draw, DRAWS, 3),
    )
    found = ft.simulate(net, Z, samples=DRAWS, seed=1, method=method)
    assert_one_law(found, path, FUNCTIONS[psi])


DIFFUSIONS = [
    ("sde", "tanh", "linear", 4, [0.0, 1.0], {}),
    ("sde", "swish", "tanh", 3, [0.5, 1.0, -1.0], {"weight_variance": 3.0}),
    slow("sde", "sin", "sin", 2, GENERAL[:1], {"bias_variance": 0.0}),
    ("gram", "tanh", "linear", 6, [0.0, 1.0], {}),
    ("gram", "linear", "linear", 3, GENERAL, {"bias_variance": 0.4}),
    ("gram", "tanh", "linear", 1, [0.0, 1.0], {}),
    slow("gram", "tanh", "linear", 2, [1.0, 1.0], {}),
    ("gram", "sin", "linear", 4, [0.0, -1.0, 2.0], {}),
    ("gram", "tanh", "linear", 5, [0.5, -1.0, 2.0], {"bias_variance": 0.0}),
    slow("gram", "tanh", "linear", 30, [0.5], {"weight_variance": 2.0}),
]


@pytest.mark.parametrize("method, phi, psi, width, Z, changes", DIFFUSIONS)
def test_diffusions(method, phi, psi, width, Z, changes):
    Z = [row[:width] for row in Z] if np.ndim(Z) == 2 else Z
    net = network(phi, psi, width, changes)
    draw = diffusion_paths.iid(width, net.weight_variance, net.bias_variance)

    def variance(features):
        squares = (features**2).mean(axis=-1, keepdims=True)
        return net.bias_variance + net.weight_variance * squares

    path = diffusion_paths.diffusion(
        *(*SLOPES[phi], variance, FUNCTIONS[psi], start_of(net, Z)),
        *(net.depth, net.horizon, draw, DRAWS, 3),
    )
    found = ft.simulate(net, Z, samples=DRAWS, seed=1, method=method)
    assert_one_law(found, path, FUNCTIONS[psi])


ROWS = np.array([[1.0, 0.5], [0.5, 2.0]])
COLUMNS = np.array([[0.6, -0.2], [-0.2, 0.5]])
MEAN = {"weight_mean": [[0.3, 0.0], [-0.5, 0.2]], "bias_mean": [0.4, -0.4]}
BIAS = np.array([[0.5, 0.3], [0.3, 0.5]])
LAWS = {
    "matrix normal": ParameterLaw(
        row_covariance=ROWS, column_covariance=COLUMNS, bias_covariance=BIAS, **MEAN
    ),
    "full": ParameterLaw(weight_covariance=np.kron(COLUMNS, ROWS), bias_covariance=BIAS, **MEAN),
}


# Columns of the weights one below the other.
DRAW = diffusion_paths.gaussian(np.kron(COLUMNS, ROWS), BIAS)
START = np.array([[0.5, 0.5], [-1.0, -1.0]])
PATHS = FUNCTIONS["linear"], START, 6, 1.0, DRAW, DRAWS, 3, [np.array(m) for m in MEAN.values()]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("phi", ["tanh", "swish"])
def test_parameter_laws(law, phi):
    net = DiffusionNetwork(depth=6, width=2, activation=phi, parameter_law=LAWS[law])
    path = diffusion_paths.network(FUNCTIONS[phi], *PATHS)
    found = ft.simulate(net, [0.5, -1.0], samples=DRAWS, seed=1, method="weights")
    assert_one_law(found, path, FUNCTIONS["linear"])
    # The means of the neurons differ: the covariance is about each of them.
    pooled = path[:, -1].var(axis=(0, 2)) - np.diagonal(found.covariance[-1])
    assert (pooled / np.diagonal(found.covariance_error[-1])).max() > 5


@pytest.mark.parametrize("law", LAWS)
def test_diffusions_of_parameter_laws(law):
    net = DiffusionNetwork(depth=6, width=2, activation="swish", parameter_law=LAWS[law])

    def variance(x):
        return np.diag(BIAS) + np.diag(ROWS) * np.einsum("npi,ij,npj->np", x, COLUMNS, x)[..., None]

    found = ft.simulate(net, [0.5, -1.0], samples=DRAWS, seed=1, method="sde")
    path = diffusion_paths.diffusion(*SLOPES["swish"], variance, *PATHS)
    assert_one_law(found, path, FUNCTIONS["linear"])
