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
    "erf with large skips": (network("erf", 1200, skip_scale=2.0), deep_kernels.error_function()),
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
NEAREST_TOO = ("erf with large skips", "unscaled ReLU, L = 100", "feed-forward ReLU")
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


@pytest.mark.parametrize("name", some(["gelu", "elu", "softplus", "swish"], {"gelu"}))
def test_pairs_of_relatives_of_relu(name):
    net = network(name, 250, weight_variance=2.0)
    for K0 in (1e250 * P, 1e250 * OPPOSITE):
        found = ft.solve(net, K0).log_tangent_kernels[:, 0, 1]
        expected = deep_kernels.tangents(RAMP, layers(net), *map(mpf, K0[[0, 1, 0], [0, 1, 1]]))
        check(found, expected)


TRAINED = {
    "readout alone": {"weight_rates": [0] * 31 + [1], "bias_rates": 0},
    "read-in not": {"weight_rates": [0] + [0.5] * 31, "bias_rates": [0] + [2.0] * 31},
    "standard": {"parametrization": "standard", "weight_rates": 0.3},
}


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_trained(name):
    net = network("relu", 30, weight_variance=1e12, width=200, input_dim=50, bias_variance=0.5)
    given = TRAINED[name]
    for K0 in (0.7, OPPOSITE):
        found = ft.tangent_kernels(net, K0, **given)
        few = ft.tangent_kernels(net.replace(depth=10), K0, **shorter(given))
        with np.errstate(divide="ignore"):
            numbers = np.log(np.abs(few.tangent_kernels))
        np.testing.assert_allclose(found.log_tangent_kernels[:11], numbers[:11], rtol=1e-12)
        assert found.log_tangent_kernels[-1].max() > 710
        with pytest.raises(OverflowError, match="or ask for log_"):
            found.tangent_kernels  # noqa: B018
    w, b = mpf(1e12), mpf(0.5)
    if name == "standard":
        first = (mpf(0.3) * 50 / w, 1 - mpf(0.3) * 50 / w * b)
        each = [first, *[(mpf(0.3) * 200, mpf(1))] * 31]
    else:
        rates = zip(*(found_rates(given[k]) for k in ("weight_rates", "bias_rates")), strict=True)
        each = [(of_w * w, of_b * b) for of_w, of_b in rates]
        each[0] = (mpf(0), mpf(0))
    expected = deep_kernels.tangents(
        RAMP, layers(net), *map(mpf, OPPOSITE[[0, 1, 0], [0, 1, 1]]), trained=each
    )
    found = ft.tangent_kernels(net, OPPOSITE, **given)
    start = next(l for l, v in enumerate(expected) if v != 0)
    check(found.log_tangent_kernels[start:, 0, 1], expected[start:])
    assert (found.log_tangent_kernels[:start, 0, 1] == -np.inf).all()
    signs = [float(mpmath.sign(v)) for v in expected]
    np.testing.assert_array_equal(found.tangent_signs[:, 0, 1], signs)


def shorter(given):
    cut = {key: [*v[:11], v[-1]] for key, v in given.items() if isinstance(v, list)}
    return given | cut


def found_rates(rate):
    return map(mpf, rate if isinstance(rate, list) else [rate] * 32)


def test_numbers_that_do_not_overflow():
    net = network("relu", 20, branch_scale=[[0.1], [0.3]])
    for K0 in (0.3, P):
        solution = ft.solve(net, K0)
        expected = np.log(solution.tangent_kernels)
        assert_same(solution.log_tangent_kernels, expected)
        other = ft.tangent_kernels(net, K0, weight_rates=0.5)
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


def test_jumps_are_refused():
    net = network("sign(h)", 80, skip_scale=1e5)
    assert np.isfinite(ft.solve(net, 0.3).log_kernels).all()
    with pytest.raises(ValueError, match="must have no jumps"):
        ft.solve(net, 0.3).log_tangent_kernels  # noqa: B018


def test_files(tmp_path):
    found = ft.tangent_kernels(network("relu", 60, weight_variance=1e12), P)
    logs = found.log_tangent_kernels
    with pytest.warns(UserWarning, match="tangent_kernels is left out: the kernel exceeds"):
        found.save(tmp_path / "theta.nc")
    loaded = ft.TangentKernels.load(tmp_path / "theta.nc")
    np.testing.assert_array_equal(vars(loaded)["log_tangent_kernels"], logs)
