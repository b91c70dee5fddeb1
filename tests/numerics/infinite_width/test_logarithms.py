"""Logarithms of kernels and responses beyond float64, against recursions of mpmath."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from tests.oracles import deep_kernels
from tests.rounding import assert_same
from tests.tables import some

FIELDS = "log_kernels", "log_response", "log_tangent_kernels"
h = sp.Symbol("h", real=True)
P = np.array([[0.3, 0.1], [0.1, 0.5]])
OPPOSITE = np.array([[1.5, -0.7], [-0.7, 0.5]])


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def network(activation, depth, **parameters):
    return ft.ResidualNetwork(depth=depth, activation=activation, **parameters)


def layers(net):
    """(γ², a, c) of every layer and the readout, of the numbers of a network."""
    rho, gamma = net.branch_scales.tolist(), net.skip_scales.tolist()
    w, b = mpf(net.weight_variance), mpf(net.bias_variance)
    found = [
        (mpf(g) ** 2, mpf(r) ** 2 * w, mpf(r) ** 2 * b) for r, g in zip(rho, gamma, strict=True)
    ]
    out = (mpf(v) for v in net.readout_variances)
    return [*found, (mpf(0), *out)]


def logs(values):
    return np.array([float(mpmath.log(abs(v))) for v in values])


CLOSED = {
    "unscaled ReLU": (network("relu", 2000, weight_variance=2.0), deep_kernels.bent(1, 0)),
    "ReLU without bias": (network("relu", 1500, bias_variance=0.0), deep_kernels.bent(1, 0)),
    "leaky ReLU": (network("leaky_relu", 1300, weight_variance=2.0), deep_kernels.bent(1, "0.01")),
    "|x|": (network("abs(h)", 1400, weight_variance=0.8), deep_kernels.bent(1, -1)),
    "linear": (network("linear", 1200, skip_scale=2.0), deep_kernels.bent(1, 1)),
    "schedule": (
        network("relu", 1100, branch_scale=lambda l, L: 1 + l / L),
        deep_kernels.bent(1, 0),
    ),
    "decay": (
        network("relu", 600, skip_scale=0.5, bias_variance=0.0, branch_scale=0.01),
        deep_kernels.bent(1, 0),
    ),
}


@pytest.mark.parametrize("case", some(CLOSED, list(CLOSED)[::2]))
def test_one_input(case):
    net, phi = CLOSED[case]
    solution = ft.solve(net, 0.3)
    kernels, responses = deep_kernels.one_input(phi, layers(net), mpf(0.3))
    assert solution.log_kernels.shape == (net.depth + 2,)
    np.testing.assert_allclose(solution.log_kernels, logs(kernels), rtol=1e-12)
    np.testing.assert_allclose(solution.log_response, logs(responses), rtol=1e-12, atol=1e-14)
    if case == "decay":
        assert solution.kernels[-1] == 0
        return
    for name in ("kernels", "output_kernel", "residual_kernels"):
        with pytest.raises(OverflowError, match="^the kernel exceeds .* or ask for log_kernels$"):
            getattr(solution, name)
    # Of the kernel itself as many digits as rounding of its logarithm leaves.
    error = np.abs(solution.log_kernels - logs(kernels))
    assert error.max() <= 4e-16 * np.abs(solution.log_kernels).max() + 1e-13


@pytest.mark.parametrize(
    "case",
    some([name for name in CLOSED if name != "unscaled ReLU"], {"ReLU without bias", "decay"}),
)
def test_two_inputs(case):
    net, phi = CLOSED[case]
    K0 = OPPOSITE if "ReLU" in case else P
    net = net.replace(depth=1030) if net.depth > 1100 else net
    solution = ft.solve(net, K0)
    kernels, responses = deep_kernels.two_inputs(
        phi, layers(net), *map(mpf, K0[[0, 1, 0], [0, 1, 1]])
    )
    found = solution.log_kernels[:, [0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(found, np.stack([logs(k) for k in kernels]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        solution.log_response[:, 0, 1], logs(responses), rtol=1e-12, atol=2e-12
    )
    assert (solution.log_kernels == solution.log_kernels.swapaxes(-1, -2)).all()
    alone = ft.solve(net, K0[0, 0])
    np.testing.assert_allclose(solution.log_response[:, 0, 0], alone.log_response, rtol=1e-14)


def test_batches_and_conventions():
    net = network("relu", 1100, skip_scale=[[1.0], [1.1], [0.0]], weight_variance=2.0)
    for K0 in (0.3, P):
        together = ft.solve(net, K0, convention="F25")
        for i, skip in enumerate((1.0, 1.1, 0.0)):
            alone = ft.solve(net.replace(skip_scale=skip), K0)
            for name in ("log_kernels", "log_response"):
                shift = -np.log(net.input_dim / net.width) if name == "log_response" else 0.0
                found, expected = getattr(together, name)[i], getattr(alone, name) + shift
                # Correlations near 1 know the angle to the root of their rounding only.
                near = name == "log_response" and skip == 0
                np.testing.assert_allclose(found, expected, rtol=1e-9 if near else 1e-12)


def test_zero_inputs_and_zero_covariances():
    net = network("relu", 1500, bias_variance=0.0, weight_variance=2.0)
    found = ft.solve(net, [[0.0, 0.0], [0.0, 1.0]]).log_kernels
    assert (found[:, 0] == -np.inf).all() and np.isfinite(found[:, 1, 1]).all()
    odd = network("linear", 1500, bias_variance=0.0, weight_variance=2.0)
    assert (ft.solve(odd, np.eye(2)).log_kernels[:, 0, 1] == -np.inf).all()
    same = ft.solve(net, np.ones((2, 2))).log_kernels
    assert (same == same[:, :1, :1]).all()


@pytest.mark.parametrize("text", ["gelu", "exp(h)", "h**3", "sqrt(1+h**2)"])
def test_other_functions_have_logarithms_of_numbers(text):
    s = ft.solve(network(text, 1), P)
    for name in FIELDS:
        of = getattr(s, name.removeprefix("log_"))
        assert_same(getattr(s, name), np.log(np.abs(of)))
    beyond = ft.solve(network(text, 1500, weight_variance=4.0), 30.0)
    for name in FIELDS:
        with pytest.raises(OverflowError, match="exceeds the range of float64 in layer"):
            getattr(beyond, name)


def test_tables_files_plots_and_sweeps(tmp_path):
    net = network("relu", 1100, weight_variance=2.0)
    for K0 in (0.3, P):
        solution = ft.solve(net, K0)
        expected = {"log_kernels": solution.log_kernels, "log_response": solution.log_response}
        if K0 is P:
            expected["decorrelation"] = solution.decorrelation
        with pytest.warns(UserWarning, match="left out: the kernel exceeds"):
            labelled = solution.to_xarray()
        with pytest.warns(UserWarning, match="left out: the kernel exceeds"):
            solution.save(tmp_path / "s.nc")
        with pytest.warns(UserWarning, match="left out: the kernel exceeds"):
            assert solution.plot().axes[0].get_ylabel() == "logarithms"
        loaded = ft.Solution.load(tmp_path / "s.nc")
        for name, values in expected.items():
            np.testing.assert_array_equal(labelled[name], values)
            np.testing.assert_array_equal(vars(loaded)[name], values)
            assert name in solution._repr_html_()
    over = {"branch_scale": ["none", "uniform"]}
    grid = ft.sweep(net, 0.3, over=over, of=["log_kernels", "log_response"])
    found = grid.log_kernels.sel(branch_scale="none")
    np.testing.assert_allclose(found, ft.solve(net, 0.3).log_kernels, rtol=1e-14)
