"""Logarithms of tangent kernels beyond float64, against recursions of mpmath."""

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from tests.numerics.infinite_width.test_logarithms import OPPOSITE, P, layers, network
from tests.oracles import deep_kernels
from tests.rounding import assert_same
from tests.tables import slow, some

# Two inputs at an angle of 1e-5, and two that differ in the last digits of their covariance.
NEAR = np.array([[1.0, 1 - 5e-11], [1 - 5e-11, 1.0]])
NEAREST = np.array([[1.0, 1 - 2**-48], [1 - 2**-48, 1.0]])
RAMP = deep_kernels.bent(1, 0)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def check(found, expected, digits=1e-12):
    """Logarithms of |Θ|: so many digits of Θ, but for the rounding of the logarithm itself."""
    logs = np.array([float(mpmath.log(abs(v))) for v in expected])
    np.testing.assert_allclose(found, logs, rtol=4e-16, atol=digits)


CLOSED = {
    **{
        f"unscaled ReLU, L = {depth}": (network("relu", depth, weight_variance=2.0), RAMP)
        for depth in (1, 100, 1000, 5000)
    },
    "feed-forward ReLU": (network("relu", 1100, skip_scale=0.0, weight_variance=5.0), RAMP),
    "large skips": (network("relu", 800, skip_scale=2.0, branch_scale=0.1), RAMP),
    "leaky ReLU": (network("leaky_relu", 1300, weight_variance=2.0), deep_kernels.bent(1, "0.01")),
    "linear": (network("linear", 1200, skip_scale=2.0), deep_kernels.bent(1, 1)),
    "schedule": (network("relu", 1100, branch_scale=lambda l, L: 1 + l / L), RAMP),
    "decay": (
        network("relu", 600, skip_scale=0.5, bias_variance=0.0, branch_scale=0.01),
        RAMP,
    ),
}
QUICK = {"unscaled ReLU, L = 1", "decay"}


@pytest.mark.parametrize("case", some(CLOSED, QUICK))
def test_one_input(case):
    net, phi = CLOSED[case]
    solution = ft.solve(net, 0.3)
    expected = deep_kernels.tangents(phi, layers(net), *[mpf(0.3)] * 3)
    assert solution.log_tangent_kernels.shape == (net.depth + 2,)
    check(solution.log_tangent_kernels, expected)
    assert (solution.tangent_signs == 1).all()


INPUTS = {"P": P, "opposite": OPPOSITE, "near": NEAR, "nearest": NEAREST}


QUICK_PAIRS = [("decay", inputs) for inputs in INPUTS]
NEAREST_TOO = ("linear", "unscaled ReLU, L = 100", "feed-forward ReLU")
PAIRS = [
    *QUICK_PAIRS,
    *((case, name) for case in CLOSED for name in ("P", "near")),
    *((case, "nearest") for case in NEAREST_TOO),
]


@pytest.mark.parametrize(
    ("case", "inputs"),
    [pair if pair in QUICK_PAIRS else slow(*pair) for pair in dict.fromkeys(PAIRS)],
)
def test_two_inputs(case, inputs):
    net, phi = CLOSED[case]
    K0 = INPUTS[inputs]
    solution = ft.solve(net, K0)
    expected = deep_kernels.tangents(phi, layers(net), *map(mpf, K0[[0, 1, 0], [0, 1, 1]]))
    check(solution.log_tangent_kernels[:, 0, 1], expected)
    signs = np.array([float(mpmath.sign(v)) for v in expected])
    np.testing.assert_array_equal(solution.tangent_signs[:, 0, 1], signs)
    assert (solution.log_tangent_kernels == solution.log_tangent_kernels.swapaxes(-1, -2)).all()


# Rates of all weights and biases of the read-in, the layers and the readout.
TRAINED = {
    "readout alone": ({"weight": (0, 0, 1), "bias": (0, 0, 0)}, "ntk"),
    "read-in not": ({"weight": (0, 0.5, 0.5), "bias": (0, 2, 2)}, "ntk"),
    "standard": ({"weight": (0.3, 0.3, 0.3), "bias": (1, 1, 1)}, "standard"),
}


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_trained(name):
    net = network("relu", 30, weight_variance=1e12, width=200, input_dim=50, bias_variance=0.5)
    by_kind, parametrization = TRAINED[name]
    rates = {
        f"{place}{kind}": rate
        for kind, each in by_kind.items()
        for place, rate in zip(("readin_", "", "readout_"), each, strict=True)
    }
    for K0 in (0.7, OPPOSITE):
        found = ft.tangent_kernels(net, K0, rates, parametrization)
        few = ft.tangent_kernels(net.replace(depth=10), K0, rates, parametrization)
        with np.errstate(divide="ignore"):
            numbers = np.log(np.abs(few.tangent_kernels))
        np.testing.assert_allclose(found.log_tangent_kernels[:11], numbers[:11], 1e-12, 1e-14)
        assert found.log_tangent_kernels[-1].max() > 710
        with pytest.raises(OverflowError, match="exceeds the range of float64"):
            found.tangent_kernels  # noqa: B018
    w, b = (mpf(1e12), mpf(0.5)) if parametrization == "ntk" else (mpf(200), mpf(1))
    first, hidden, last = zip(*by_kind.values(), strict=True)
    each = [(mpf(of_w) * w, mpf(of_b) * b) for of_w, of_b in (first, *[hidden] * 30, last)]
    if parametrization == "standard":
        of_readin = mpf(0.3) * 50 / mpf(1e12)
        each[0] = (of_readin, 1 - of_readin * mpf(0.5))
    expected = deep_kernels.tangents(
        RAMP, layers(net), *map(mpf, OPPOSITE[[0, 1, 0], [0, 1, 1]]), trained=each
    )
    found = ft.tangent_kernels(net, OPPOSITE, rates, parametrization)
    start = next(l for l, v in enumerate(expected) if v != 0)
    check(found.log_tangent_kernels[start:, 0, 1], expected[start:])
    assert (found.log_tangent_kernels[:start, 0, 1] == -np.inf).all()
    signs = [float(mpmath.sign(v)) for v in expected]
    np.testing.assert_array_equal(found.tangent_signs[:, 0, 1], signs)


def test_numbers_that_do_not_overflow():
    net = network("relu", 20, branch_scale=[[0.1], [0.3]])
    for K0 in (0.3, P):
        solution = ft.solve(net, K0)
        expected = np.log(solution.tangent_kernels)
        assert_same(solution.log_tangent_kernels, expected)
        other = ft.tangent_kernels(net, K0, {"weight": 0.5})
        assert_same(other.log_tangent_kernels, np.log(other.tangent_kernels))
        assert (other.tangent_signs == 1).all()


def test_batches_zero_inputs_and_identical_inputs():
    net = network("relu", 60, skip_scale=[[1.0], [1.1], [0.5]], weight_variance=1e12)
    for K0 in (0.3, P):
        together = ft.solve(net, K0).log_tangent_kernels
        for i, skip in enumerate((1.0, 1.1, 0.5)):
            alone = ft.solve(net.replace(skip_scale=skip), K0).log_tangent_kernels
            np.testing.assert_allclose(together[i], alone, rtol=1e-12)
    net = network("relu", 60, bias_variance=0.0, weight_variance=1e12)
    found = ft.solve(net, [[0.0, 0.0], [0.0, 1.0]])
    assert (found.log_tangent_kernels[:, 0] == -np.inf).all()
    assert (found.tangent_signs[:, 0] == 0).all()
    assert np.isfinite(found.log_tangent_kernels[:, 1, 1]).all()
    same = ft.solve(net, np.ones((2, 2))).log_tangent_kernels
    assert (same == same[:, :1, :1]).all()


def test_files(tmp_path):
    found = ft.tangent_kernels(network("relu", 60, weight_variance=1e12), P)
    logs = found.log_tangent_kernels
    with pytest.warns(UserWarning, match="tangent_kernels is left out: the kernel exceeds"):
        found.save(tmp_path / "theta.nc")
    loaded = ft.TangentKernels.load(tmp_path / "theta.nc")
    np.testing.assert_array_equal(vars(loaded)["log_tangent_kernels"], logs)
