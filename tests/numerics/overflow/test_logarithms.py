"""Logarithms of kernels and responses beyond float64, against recursions of mpmath."""

import warnings

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.numerics.layer_averages.asymptotes import lines_of
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import power_of
from fieldtheory.numerics.overflow import logarithms, scaled_pairs
from tests.oracles import deep_kernels
from tests.tables import slow, some

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
    "square": (network(h**2, 40), deep_kernels.square()),
    "cube": (network(h**3, 300, branch_scale=0.3), deep_kernels.cube()),
    "erf with large skips": (network("erf", 1200, skip_scale=2.0), deep_kernels.error_function()),
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
    if case not in ("square", "cube"):
        error = np.abs(solution.log_kernels - logs(kernels))
        assert error.max() <= 4e-16 * np.abs(solution.log_kernels).max() + 1e-13


@pytest.mark.parametrize(
    "case",
    some(
        [name for name in CLOSED if name != "unscaled ReLU"], {"ReLU without bias", "cube", "decay"}
    ),
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


NEAR_RELU = ["softplus", "gelu", "swish", "elu"]


@pytest.mark.parametrize("name", some(NEAR_RELU, {"gelu", "elu"}))
def test_relatives_of_relu(name):
    """Behind 1e13 they are lines with what is left of order 1/K, and grow as ReLU does."""
    net = network(name, 250, weight_variance=2.0)
    K0 = 1e250 * P
    solution = ft.solve(net, K0)
    phi = deep_kernels.bent(1, 0)
    kernels, responses = deep_kernels.two_inputs(
        phi, layers(net), *map(mpf, K0[[0, 1, 0], [0, 1, 1]])
    )
    found = solution.log_kernels[:, [0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(found, np.stack([logs(k) for k in kernels]), rtol=1e-12)
    np.testing.assert_allclose(
        solution.log_response[:, 0, 1], logs(responses), rtol=1e-12, atol=2e-12
    )


@pytest.mark.parametrize("name", ["softplus", "gelu"])
def test_the_lines_join_the_integrals(name):
    """At the variance from which on the lines are used, averages by quadrature agree."""
    net, K, c = network(name, 1), 2.0**45, 0.3
    lines = lines_of(net.activation(ft.networks.activations.h))
    averages = network_entries(net)
    assert lines.covariance(K, K, c) == pytest.approx(averages.covariance(K, K, c * K), rel=1e-12)
    expected = averages.covariance_susceptibility(K, K, c * K)
    assert lines.slope(K, K, 1 - c) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("phi", "power"),
    [
        ("relu", 1),
        ("softplus", 1),
        ("x + sin(x)", 1),
        (h**2, 2),
        (h**3, 3),
        (h**12, 12),
        ("erf", 0),
    ],
)
def test_powers(phi, power):
    assert power_of(network_entries(network(phi, 1)), 1).moment == power


def test_logarithms_of_what_does_not_overflow_are_those_of_the_numbers():
    net = network("relu", 20, branch_scale=[[0.1], [0.3]])
    for K0 in (0.3, P):
        solution = ft.solve(net, K0, convention="F25")
        np.testing.assert_array_equal(solution.log_kernels, np.log(solution.kernels))
        np.testing.assert_array_equal(solution.log_response, np.log(solution.response))


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


@pytest.mark.parametrize("convention", ["derivative", "F25"])
def test_batches_of_kernels_that_underflow(convention):
    """From one layer to the next, in every member of a batch."""
    net = ft.FeedForwardNetwork(
        depth=8, activation=h**2, bias_variance=0.0, weight_variance=0.25, input_dim=200
    )
    phi, nu = deep_kernels.square(), net.input_dim / net.width if convention == "F25" else 1.0
    scales = np.array([1e-100, 1e-3])
    own, pairs = (
        ft.solve(net, K0, convention=convention) for K0 in (scales, scales[:, None, None] * P)
    )
    for i, scale in enumerate(scales):
        kernels, responses = deep_kernels.one_input(phi, layers(net), mpf(scale))
        np.testing.assert_allclose(own.log_kernels[i], logs(kernels), rtol=1e-12)
        expected = logs(responses) - np.log(nu)
        np.testing.assert_allclose(own.log_response[i], expected, rtol=1e-12, atol=1e-14)
        theta = deep_kernels.tangents(phi, layers(net), *[mpf(scale)] * 3)
        np.testing.assert_allclose(own.log_tangent_kernels[i], logs(theta), rtol=1e-12)
        entries = [mpf(float(k)) for k in scale * P[[0, 1, 0], [0, 1, 1]]]
        kernels, responses = deep_kernels.two_inputs(phi, layers(net), *entries)
        found = pairs.log_kernels[i][:, [0, 1, 0], [0, 1, 1]]
        np.testing.assert_allclose(found, [logs(k) for k in kernels], rtol=1e-12)
        expected = logs(responses) - np.log(nu)
        found = pairs.log_response[i][:, 0, 1]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        theta = deep_kernels.tangents(phi, layers(net), *entries)
        np.testing.assert_allclose(pairs.log_tangent_kernels[i][:, 0, 1], logs(theta), rtol=1e-12)
        found = ft.tangent_kernels(net, scales[:, None, None] * P).log_tangent_kernels[i]
        np.testing.assert_allclose(found[:, 0, 1], logs(theta), rtol=1e-12)


def test_zero_inputs_and_zero_covariances():
    net = network("relu", 1500, bias_variance=0.0, weight_variance=2.0)
    found = ft.solve(net, [[0.0, 0.0], [0.0, 1.0]]).log_kernels
    assert (found[:, 0] == -np.inf).all() and np.isfinite(found[:, 1, 1]).all()
    odd = network(h**3, 30, bias_variance=0.0)
    assert (ft.solve(odd, np.eye(2)).log_kernels[:, 0, 1] == -np.inf).all()
    same = ft.solve(net, np.ones((2, 2))).log_kernels
    assert (same == same[:, :1, :1]).all()


def test_zero_covariances_of_odd_functions_are_numbers():
    """Those of independent inputs have nothing to lose; those that underflow have."""
    assert not logarithms.leaves_float64(np.array([[1.0, 0.0], [2.0, 0.0]]))
    assert not logarithms.leaves_float64(np.array([[1.0, 0.0], [2.0, 0.3]]))
    assert logarithms.leaves_float64(np.array([[1.0, 1e-200], [2.0, 0.0]]))
    assert logarithms.leaves_float64(np.array([[1.0, 0.2], [2.0, 1e-300]]))


@pytest.mark.parametrize("exponent", range(300, 304))
def test_halved_variances_are_those_of_powers(exponent):
    """At which averages are closed."""
    net = network("h*sqrt(1+h**2)", 1)
    start = power_of(network_entries(net), 1).start
    near = logarithms.scaled_layers(net, np.array(0.6 * 2.0**exponent)).near[0]
    assert 2.0**start <= near < 2.0 ** (start + 2)


def test_lines_that_are_approached_slowly():
    """sqrt(1 + h^2) is |h| where nothing else counts, and the kernels of both go on alike."""
    slow, exact = network("sqrt(1+h**2)", 1100), network("abs(h)", 1100)
    for field in ("log_kernels", "log_response"):
        found, expected = (getattr(ft.solve(net, 1e60 * P), field) for net in (slow, exact))
        np.testing.assert_allclose(found[:-1], expected[:-1], rtol=1e-12, atol=1e-10)
    single = ft.solve(slow, 0.3).log_kernels
    # M = 1 + K and M' = 1 exactly.
    kernels, K = [mpf(0.3)], mpf(0.3)
    for skip, a, c in layers(slow):
        K = skip * K + a * (1 + K) + c
        kernels.append(K)
    np.testing.assert_allclose(single, logs(kernels), rtol=1e-12)


def test_logarithms_beyond_float64_are_infinite():
    net = network(h**3, 700)
    solution = ft.solve(net, 1.0)
    for values in (solution.log_kernels, solution.log_response, solution.log_tangent_kernels):
        assert np.isfinite(values[:600]).all() and np.isposinf(values[-2:]).all()
    found = ft.solve(net, P).log_kernels
    assert np.isposinf(found[-1]).all()


def test_logarithms_next_to_the_end_of_float64_have_a_mean():
    """Of max(0, x)² ln K doubles in every layer; the sum of two of 1e308 exceeds float64."""
    net = network("Max(0, x)**2", 1100, weight_variance=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ft.solve(net, 10 * P).log_kernels
    last = np.isfinite(found).all(axis=(1, 2)).nonzero()[0][-1]
    assert found[last].min() > np.finfo(float).max / 2
    mean = found[last, 0, 0] / 2 + found[last, 1, 1] / 2
    np.testing.assert_allclose(found[last, 0, 1], mean, rtol=1e-12)
    assert np.isposinf(found[last + 2 :]).all()


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


@pytest.mark.parametrize("activation", some(["relu", "leaky_relu", "abs(h)"], {"relu"}))
@pytest.mark.parametrize("kernel", [1e120 * P, slow(1e120 * OPPOSITE)])
def test_pairs_whose_variances_have_no_product_in_float64(activation, kernel):
    net = network(activation, 150, weight_variance=2.0, bias_variance=0.0)
    solution = ft.solve(net, kernel)
    for name in ("kernels", "response"):
        found = np.log(np.abs(getattr(solution, name)[1:]))
        np.testing.assert_allclose(found, getattr(solution, f"log_{name}")[1:], rtol=1e-13)
    assert solution.kernels[-1].min() > 1e160
    whole = ft.solve(net, kernel).output_kernel
    np.testing.assert_allclose(whole, solution.kernels[-1], rtol=1e-12)


def test_correlations_below_float64():
    """They fall off by 2/π a layer, to 1e-490."""
    net = network("erf", 2500, skip_scale=0.0, weight_variance=1e4, bias_variance=0.0)
    solution = ft.solve(net, [[1.0, 0.3], [0.3, 2.0]])
    phi, of_layers = deep_kernels.error_function(), layers(net)
    exact, responses = deep_kernels.two_inputs(phi, of_layers, mpf(1), mpf(2), mpf(0.3))
    tangents = deep_kernels.tangents(phi, of_layers, mpf(1), mpf(2), mpf(0.3))
    found = solution.log_kernels[:, 0, 1]
    assert found[-1] < np.log(1e-308) - 300
    np.testing.assert_allclose(found, logs([K[2] for K in exact]), rtol=1e-12)
    np.testing.assert_allclose(solution.log_response[:, 0, 1], logs(responses), rtol=1e-12)
    np.testing.assert_allclose(solution.log_tangent_kernels[:, 0, 1], logs(tangents), rtol=1e-12)


def test_correlations_of_odd_functions_without_closed_forms_below_float64():
    """c' = a ⟨φ'⟩² c/K' of the fixed point K'."""
    net = network("tanh", 2500, skip_scale=0.0, weight_variance=1e4, bias_variance=0.0)
    found = ft.solve(net, [[1.0, -0.3], [-0.3, 2.0]]).log_kernels
    with mp.workdps(20):
        K = mp.exp(mpf(found[-2, 0, 0]))
        ends = [-40, -3, 0, 3, 40]
        slope = mp.quad(lambda x: mp.sech(x) ** 2 * mp.npdf(x, 0, mp.sqrt(K)), ends)
    steps = np.diff(found[1000:-1, 0, 1])
    np.testing.assert_allclose(steps, float(mp.log(1e4 * slope**2)), rtol=1e-9)


@pytest.mark.parametrize("activation", ["h*sin(h)", "h*cos(h)"])
def test_covariances_that_variances_leave_behind(activation):
    """Waves of different inputs average out, so that biases alone add to K_αβ."""
    net = network(activation, 2200, weight_variance=1.0, bias_variance=0.25)
    found = ft.solve(net, [[1.0, 0.3], [0.3, 2.0]]).log_kernels
    assert found[-2, 0, 0] > 800
    grows = np.diff(np.exp(found[100:-1, 0, 1]))
    # Logarithms near 7 of covariances near 600.
    np.testing.assert_allclose(grows, 0.25, rtol=1e-9)
    np.testing.assert_allclose(np.diff(found[100:-1, 0, 0]), np.log(1.5), rtol=1e-12)


@pytest.mark.parametrize("beyond", [1e30, slow(1e3)])
def test_averages_that_do_not_converge_are_unknown_beside_others(monkeypatch, beyond):
    """Of one of three pairs ⟨φφ⟩ is not found once the variances are large: NaN with a warning."""
    net = network("h+tanh(h)", 260, skip_scale=1.0, weight_variance=20.0)
    K0 = np.array([[1.0, 0.2, -0.8], [0.2, 2.0, 0.9], [-0.8, 0.9, 3.0]])
    expected = ft.solve(net, K0)
    expected = {field: getattr(expected, field) for field in FIELDS}
    of_pairs, of_one = scaled_pairs.pair_averages, logarithms.single_average

    def pairs(net, name, K_xx, K_yy, c, delta=None):
        if ((c < 0) & (K_yy > beyond)).any():
            raise QuadratureError("not resolved")
        return of_pairs(net, name, K_xx, K_yy, c, delta)

    monkeypatch.setattr(scaled_pairs, "pair_averages", pairs)
    solution = ft.solve(net, K0)
    with pytest.warns(ft.ValidityWarning, match="log_kernels are NaN"):
        found = solution.log_kernels
    unknown = np.isnan(found)
    assert unknown[-1, 0, 2] and unknown[-1, 2, 0] and unknown.sum() == 2 * unknown[:, 0, 2].sum()
    np.testing.assert_array_equal(found[~unknown], expected["log_kernels"][~unknown])
    for field in FIELDS[1:]:
        with pytest.warns(ft.ValidityWarning, match=f"{field} are NaN"):
            found = getattr(solution, field)
        assert np.isnan(found[-1, 0, 2])
        known = ~np.isnan(found)
        assert known.sum() >= found.size - 2 * len(found)
        np.testing.assert_array_equal(found[known], expected[field][known])

    def single(net, name, K):
        if (K > beyond).any():
            raise QuadratureError("not resolved")
        return of_one(net, name, K)

    monkeypatch.setattr(logarithms, "single_average", single)
    with pytest.warns(ft.ValidityWarning, match="log_kernels are NaN"):
        found = ft.solve(net, K0).log_kernels
    assert np.isnan(found[-1]).all() and np.isfinite(found[:2]).all()
    with pytest.raises(QuadratureError, match="does not converge"):
        ft.solve(net, K0).decorrelation  # noqa: B018


def test_responses_of_powers_that_jump():
    """⟨φ'²⟩ diverges, ⟨φ'φ'⟩ = (K_xx K_yy + 2 K_xy²)/4 and M' = 5K²/4 are all far out."""
    net = network("h**3/6+Heaviside(h+1)", 30, skip_scale=0.0)
    solution = ft.solve(net, [[1.0, 0.5], [0.5, 1.0]])
    kernels, weight = solution.log_kernels[5:-2], np.log(net.weight_variance)
    steps = np.diff(solution.log_response[5:], axis=0)
    np.testing.assert_allclose(
        steps[:, 0, 0], weight + np.log(1.25) + 2 * kernels[:, 0, 0], rtol=1e-12
    )
    c = np.exp(kernels[:, 0, 1] - kernels[:, 0, 0])
    expected = weight + np.log((1 + 2 * c**2) / 4) + 2 * kernels[:, 0, 0]
    np.testing.assert_allclose(steps[:, 0, 1], expected, rtol=1e-11)
    with pytest.raises(ValueError, match="tangent kernel"):
        solution.log_tangent_kernels  # noqa: B018


@pytest.mark.slow
def test_growing_parts_that_cancel_beside_waves():
    """e^h − e^h θ(h) is ∞ − ∞ in float64 where each of both is taken for an amplitude."""
    net = network("sin(h)*tanh(h)+h**2*elu(h)", 8, skip_scale=0.0, weight_variance=2.0)
    solution = ft.solve(net, [[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps = np.diff(solution.log_response[4:], axis=0)
        kernels = solution.log_kernels[4:-2]
    # φ' is 3h² for h > 0: ⟨φ'φ'⟩ is 27 K²/2 of parallel signals, M' = 3 · 15 K²/2.
    np.testing.assert_allclose(steps[:, 0, 0], np.log(45) + 2 * kernels[:, 0, 0], rtol=1e-10)
    np.testing.assert_allclose(steps[:, 0, 1], np.log(27) + 2 * kernels[:, 0, 0], atol=1e-3)
