"""Logarithms of kernels and responses of φ that grow as no power, against recursions of mpmath."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import beyond_float
from fieldtheory.numerics.overflow.unlimited import (
    needs_unlimited,
    unlimited_layers,
    unlimited_pairs,
)
from tests.averages.growing.test_logarithmic_slopes import of_asinh as slope_of_asinh
from tests.numerics.overflow.test_logarithms import layers, logs, network
from tests.oracles import deep_kernels
from tests.tables import slow, some

TWO = np.array([[1.0, 0.3], [0.3, 2.0]])


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


CLOSED = {
    "exp": (network("exp(h)", 7), deep_kernels.exponential()),
    "slow exp": (network("exp(h)", 17, branch_scale=0.2), deep_kernels.exponential()),
    "feed-forward exp": (network("exp(h)", 7, skip_scale=0.0), deep_kernels.exponential()),
    "sinh": (network("sinh(h)", 9), deep_kernels.hyperbolic_sine()),
    "slow sinh": (network("sinh(h)", 26, branch_scale=0.3), deep_kernels.hyperbolic_sine()),
    "cosh tanh": (network("cosh(h)*tanh(h)", 9), deep_kernels.hyperbolic_sine()),
}


def with_logarithms(net, phi, K0):
    """How many layers have kernels whose logarithms float64 holds: up to one from below 1e308."""
    K = mpf(K0)
    for l, (skip, a, c) in enumerate(layers(net), start=1):
        if K > mpf(10) ** 307:
            return l
        K = skip * K + a * phi.M(K) + c
    return len(layers(net)) + 1


def padded(values, count):
    return np.concatenate([logs(values), np.full(count - len(values), np.inf)])


@pytest.mark.parametrize("case", CLOSED)
@pytest.mark.parametrize("K0", [0.1, 1.0, 400.0])
def test_one_input(case, K0):
    net, phi = CLOSED[case]
    count = with_logarithms(net, phi, K0)
    assert 1 < count <= net.depth
    solution = ft.solve(net, K0)
    kernels, responses = deep_kernels.one_input(phi, layers(net)[: count - 1], mpf(K0))
    expected = padded(kernels, net.depth + 2)
    # A logarithm is as exact as the kernel before it, to which it is proportional.
    np.testing.assert_allclose(solution.log_kernels, expected, rtol=1e-12, atol=1e-13)
    # The next response is that of a kernel that still is a number.
    found = solution.log_response
    np.testing.assert_allclose(found[: count - 1], logs(responses), rtol=1e-12, atol=1e-13)
    assert np.isposinf(found[count + 1 :]).all()
    theta = deep_kernels.tangents(phi, layers(net)[: count - 1], *[mpf(K0)] * 3)
    found = solution.log_tangent_kernels
    np.testing.assert_allclose(found[: count - 1], logs(theta)[:-1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("case", some(CLOSED, {"exp", "slow sinh"}))
def test_two_inputs(case):
    net, phi = CLOSED[case]
    net = net.replace(depth=with_logarithms(net, phi, TWO[1, 1]) - 2)
    solution = ft.solve(net, TWO)
    kernels, responses = deep_kernels.two_inputs(
        phi, layers(net), *map(mpf, TWO[[0, 1, 0], [0, 1, 1]])
    )
    found = solution.log_kernels[:, [0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(found, np.stack([logs(k) for k in kernels]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        solution.log_response[:, 0, 1], logs(responses), rtol=1e-12, atol=1e-12
    )
    theta = deep_kernels.tangents(phi, layers(net), *map(mpf, TWO[[0, 1, 0], [0, 1, 1]]))
    found = solution.log_tangent_kernels[:, 0, 1]
    np.testing.assert_allclose(found, logs(theta), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["exp(sqrt(1+h**2))", "h**2*exp(h/10)", "h*exp(h)"])
@pytest.mark.parametrize("K0", [0.5, TWO])
def test_exponential_functions_have_logarithms(name, K0):
    """They join the numbers where there are such, and none is undefined behind."""
    net = network(name, 10, weight_variance=2.0)
    solution = ft.solve(net, K0)
    for field in ("log_kernels", "log_response", "log_tangent_kernels"):
        values = getattr(solution, field)
        assert not np.isnan(values).any() and np.isposinf(values[-2:]).all()
        assert (np.isfinite(values).sum(axis=0) > 2).all()
    if K0 is not TWO:
        alone = ft.solve(net.replace(depth=1), K0).kernels[:2]
        np.testing.assert_allclose(solution.log_kernels[:2], np.log(alone), rtol=1e-12)


LOGARITHMIC = ["h*log(1+Abs(h))", "asinh(h)", "log(1+Abs(h))"]


@pytest.mark.parametrize("name", LOGARITHMIC)
def test_numbers_and_logarithms_join(name):
    """At the end of float64 the numbers of one and the logarithms of the other agree."""
    net = network(name, 5, skip_scale=2.0, bias_variance=0.0)
    K0 = 1e110 * TWO
    joined, alone = ft.solve(net.replace(depth=60), 1e265), ft.solve(net, 1e265)
    for field in ("kernels", "response"):
        expected = np.log(getattr(alone, field)[:-1])
        np.testing.assert_allclose(getattr(joined, f"log_{field}")[: len(expected)], expected)
    with mp.workdps(30):
        numbers, layered = ft.solve(net, K0), unlimited_pair(net, K0)
    np.testing.assert_allclose(layered[:-1], np.log(numbers.kernels[:-1, 0, 1]), rtol=1e-12)


def unlimited_pair(net, K0):
    own, pairs = K0[[0, 1], [0, 1]], np.triu_indices(2, 1)
    found = unlimited_layers(net, own, 1)
    return unlimited_pairs(found, own, K0[pairs], pairs).log_kernels[:, 0]


def test_kernels_that_grow_by_the_skip_connection_alone():
    """So far out log(1 + |h|) adds nothing to γ² K."""
    net = network("log(1+Abs(h))", 20, skip_scale=2.0)
    found = ft.solve(net, 1e280 * TWO)
    steps = np.diff(found.log_kernels[:-1], axis=0)
    np.testing.assert_allclose(steps, np.log(4), rtol=1e-9)
    np.testing.assert_allclose(np.diff(found.log_response, axis=0), np.log(4), rtol=1e-9)


def test_averages_that_are_nothing_beside_skip_connections_are_not_taken(monkeypatch):
    """Layers with K > 1e270 multiply by γ² to all digits; the readout alone has an average.

    That of logarithms is no integral at all.
    """
    taken, single = [], beyond_float.single
    monkeypatch.setattr(
        beyond_float, "single", lambda *given: taken.append(given[3]) or single(*given)
    )
    net = network("asinh(asinh(h))", 300, skip_scale=2.0)
    found = ft.solve(net, 1e280).log_kernels
    np.testing.assert_allclose(found[:-1], np.log(1e280) + np.log(4) * np.arange(301), rtol=1e-14)
    last = mpf(1e280) * mpf(4) ** 300
    assert set(taken) == {last}
    taken.clear()
    solution = ft.solve(net.replace(activation="asinh(h)"), 1e280)
    found, responses = solution.log_kernels, solution.log_response
    np.testing.assert_allclose(found[:-1], np.log(1e280) + np.log(4) * np.arange(301), rtol=1e-14)
    np.testing.assert_allclose(responses, np.log(4) * np.arange(301), rtol=1e-14)
    assert not taken
    # ⟨asinh²⟩ = ⟨ln²|2h|⟩ so far out, with ⟨ln|z|⟩ = −(γ + ln 2)/2 and Var ln|z| = π²/8.
    mean = mp.log(4 * last) / 2 - (mp.euler + mp.log(2)) / 2
    moment = net.readout_variances[0] * (mean**2 + mp.pi**2 / 8) + net.readout_variances[1]
    assert found[-1] == pytest.approx(float(mp.log(moment)), rel=1e-12)


def of_two(K, a, t):
    """⟨φφ⟩ and ⟨φ'φ'⟩ of asinh: φ' = ∫ ds e^{-s(1 + h²)}/√(πs), a sum of Gaussian averages."""
    s = np.exp(np.arange(-80.0, 5.0, 0.25))
    weights = 0.25 * np.sqrt(s / np.pi) * np.exp(-s)

    def slope(t):
        inner = (1 + 2 * s[:, None] * K) * (1 + 2 * s * a) - 4 * np.outer(s, s) * t**2
        return weights @ (1 / np.sqrt(inner)) @ weights

    x, w = np.polynomial.legendre.leggauss(24)
    covariance = t / 2 * sum(each * slope(t * (1 + at) / 2) for at, each in zip(x, w, strict=True))
    return covariance, slope(t)


def of_one(K):
    """⟨φ²⟩ and M' = ⟨φφ'h⟩/K of asinh."""
    z = np.exp(np.arange(-60.0, 3.0, 0.02))
    h, bell = np.sqrt(K) * z, 0.04 * z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    phi = np.arcsinh(h)
    return bell @ phi**2, bell @ (phi * h / np.sqrt(1 + h**2)) / K


@pytest.mark.parametrize(
    "activation", ["cos(2*h)+asinh(h)", slow("sign(h)*atan(h)*asinh(h)+sin(h)")]
)
def test_waves_that_are_nothing_beside_skip_connections_are_not_taken(monkeypatch, activation):
    """Layers with K > 1e100 multiply by γ² to all digits; the readout alone has averages."""
    taken = []
    for name in ("single", "pair"):
        average = getattr(beyond_float, name)
        place = 3 if name == "single" else 2

        def counted(*given, average=average, place=place):
            taken.append(max(np.atleast_1d(given[place])))
            return average(*given)

        monkeypatch.setattr(beyond_float, name, counted)
    found = ft.solve(network(activation, 400, skip_scale=2.0), 1e95 * TWO).log_kernels
    np.testing.assert_allclose(np.diff(found[:-1], axis=0), np.log(4), rtol=1e-12)
    assert not [K for K in taken if 4e100 < K < 1e300]


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.5, -0.5])
def test_responses_of_waves_of_two_inputs(c):
    """Waves of two signals average out: far out χ grows by γ²."""
    K0 = [[1.0, c], [c, 1.0]]
    found = ft.solve(network("cos(2*h)+asinh(h)", 600, skip_scale=2.0), K0).log_response
    steps = np.diff(found[:, 0, 1])
    np.testing.assert_allclose(steps[60:], np.log(4), rtol=1e-12)
    # ⟨φ'φ'⟩ of the first layer by 100 nodes a signal.
    z, w = np.polynomial.hermite_e.hermegauss(100)
    x, y = z[:, None], c * z[:, None] + np.sqrt(1 - c**2) * z
    slopes = [1 / np.sqrt(1 + h**2) - 2 * np.sin(2 * h) for h in (x, y)]
    average = w @ (slopes[0] * slopes[1]) @ w / (2 * np.pi)
    np.testing.assert_allclose(steps[0], np.log(4 + 1.25 * average), rtol=1e-9)


def test_responses_of_two_inputs_behind_skip_connections():
    """Of the readout, whose kernels exceed all numbers, no response is taken."""
    net = network("asinh(h)", 520, skip_scale=2.0, weight_variance=1.5, bias_variance=0.2)
    solution = ft.solve(net, TWO)
    kernels, responses = solution.log_kernels, solution.log_response
    (K, a), t, chi = np.diagonal(TWO), TWO[0, 1], np.zeros(2)
    for l in range(1, 31):
        own, response = of_one(K)
        covariance, slope = of_two(K, a, t)
        chi += np.log(4 + 1.5 * np.array([response, slope]))
        averages = np.array([own, of_one(a)[0], covariance])
        K, a, t = 4 * np.array([K, a, t]) + 1.5 * averages + 0.2
        np.testing.assert_allclose(kernels[l][[0, 1, 0], [0, 1, 1]], np.log([K, a, t]), rtol=1e-12)
        np.testing.assert_allclose(responses[l, 0], chi, rtol=1e-12)
    # What is left of branches and biases, 1e-17 of the kernels, is nothing.
    deep = np.log(4) * np.arange(len(kernels) - 31)[:, None]
    expected = np.log([K, a, t]) + deep
    np.testing.assert_allclose(kernels[30:-1][:, [0, 1, 0], [0, 1, 1]], expected, rtol=1e-12)
    np.testing.assert_allclose(responses[30:, 0], chi + deep, rtol=1e-12)


def test_responses_of_nearly_parallel_inputs():
    """K − K_αβ =: D grows by γ² D + a ∫_0^D ⟨φ'φ'⟩ dD', of 1 − c = 1e-9 too."""
    net = network("asinh(h)", 520, skip_scale=2.0, weight_variance=1.5, bias_variance=0.2)
    K0 = np.array([[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]])
    solution = ft.solve(net, K0)
    K, D, chi = 1.0, 1 - K0[0, 1], 0.0
    s = np.exp(np.arange(-150.0, 5.0, 0.25))
    weights = 0.25 * np.sqrt(s / np.pi) * np.exp(-s)
    x, w = np.polynomial.legendre.leggauss(14)

    def slope(D):
        inner = 1 + 2 * K * (s[:, None] + s) + 4 * np.outer(s, s) * D * (2 * K - D)
        return weights @ (1 / np.sqrt(inner)) @ weights

    for l in range(1, 71):
        chi += np.log(4 + 1.5 * slope(D))
        # Powers of D beside its logarithms are smooth in D = p^3.
        p = (1 + x) / 2
        integral = sum(
            each * 1.5 * q * q * D * slope(D * q**3) for q, each in zip(p, w, strict=True)
        )
        K, D = 4 * K + 1.5 * of_one(K)[0] + 0.2, 4 * D + 1.5 * integral
        assert solution.log_response[l, 0, 1] == pytest.approx(chi, rel=1e-12)
        assert solution.log_kernels[l, 0, 1] == pytest.approx(np.log(K - D), rel=1e-12)
    steps = np.diff(solution.log_response[70:, 0, 1])
    np.testing.assert_allclose(steps, np.log(4), rtol=1e-12)


@pytest.mark.parametrize(
    "name", some(["log(1+Abs(h))", "sign(h)*log(1+Abs(h))", "asinh(h)"], {"asinh(h)"})
)
def test_tangents_of_logarithms_behind_skip_connections(name):
    """⟨φ'²⟩ of the readout is that of small signals alone, 1/√K of what it is at another K."""
    net = network(name, 600, skip_scale=2.0)
    solution = ft.solve(net, [[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]])
    for field in ("log_kernels", "log_response", "log_tangent_kernels"):
        values = getattr(solution, field)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(np.diff(values[100:600], axis=0), np.log(4), rtol=1e-11)


def test_tangent_kernels_take_no_averages_that_are_nothing_beside_what_is_carried(monkeypatch):
    taken, single = [], beyond_float.single
    monkeypatch.setattr(
        beyond_float, "single", lambda *given: taken.append(given[3]) or single(*given)
    )
    net = network("asinh(asinh(h))", 520, skip_scale=2.0)
    found = ft.solve(net, 1.0).log_tangent_kernels
    np.testing.assert_allclose(np.diff(found[50:-1]), np.log(4), rtol=1e-12)
    # Those of the readout.
    assert len(set(taken)) == 1


def test_batches_identical_inputs_and_zero_covariances():
    net = network("sinh(h)", 4, branch_scale=[[0.3], [1.0]], bias_variance=0.0)
    together = ft.solve(net, TWO)
    for i, scale in enumerate((0.3, 1.0)):
        alone = ft.solve(net.replace(branch_scale=scale), TWO)
        for field in ("log_kernels", "log_response"):
            np.testing.assert_array_equal(getattr(together, field)[i], getattr(alone, field))
    net = net.replace(branch_scale=1.0)
    same = ft.solve(net, np.ones((2, 2))).log_kernels
    assert (same == same[:, :1, :1]).all() and np.isposinf(same[-1]).all()
    apart = ft.solve(net, np.eye(2)).log_kernels[:, 0, 1]
    assert (apart == -np.inf).all()


def test_signs_of_tangent_kernels_beyond_all_logarithms():
    """Of opposite inputs of an odd φ all of them are negative."""
    solution = ft.solve(network("sinh(h)", 12, bias_variance=0.0), [[1.0, -0.9], [-0.9, 1.0]])
    found = solution.log_tangent_kernels[:, 0, 1]
    assert not np.isnan(found).any() and np.isposinf(found[-3:]).all()
    assert (solution.tangent_signs[:, 0, 1] == -1).all()
    # ⟨φφ⟩ of exp(h/2) is positive, Θ is not, and ⟨φ'φ'⟩ Θ is larger.
    opposite = [[1.0, 1e-6 - 1], [1e-6 - 1, 1.0]]
    solution = ft.solve(network("exp(h/2)", 12, skip_scale=2.0), opposite)
    assert np.isposinf(solution.log_tangent_kernels[-3:, 0, 1]).all()


def test_what_grows_as_a_power_does_without():
    assert not any(needs_unlimited(network(name, 1)) for name in ("relu", "gelu", "h**3", "cos(h)"))
    assert all(needs_unlimited(network(name, 1)) for name in LOGARITHMIC)


def test_decorrelation_says_what_it_needs():
    with pytest.raises(OverflowError, match="needs φ that grows as a power of its argument"):
        ft.solve(network("exp(h)", 7), TWO).decorrelation  # noqa: B018


def far_out(K, rate, size):
    """ln ⟨φ²⟩ where φ ~ size e^{rate h} alone counts."""
    return float(2 * rate**2 * mpf(K) + 2 * mp.log(size))


FAR_OUT = {
    "exp(h)*tanh(h)": (1, 1),
    "exp(h)*erf(h)": (1, 1),
    "exp(h)+softplus(h)": (1, 1),
    "exp(h)*(1-tanh(h/4))": (mpf(1) / 2, 2),
    "sinh(h)/cosh(h/2)": (mpf(1) / 2, mp.sqrt(2)),
    "exp(h)*sech(h/3)": (mpf(2) / 3, 2),
    "exp(h)/(1+exp(h/2))": (mpf(1) / 2, 1),
}


@pytest.mark.parametrize("name", FAR_OUT)
@pytest.mark.parametrize("K0", [1e4, 1e60, 1e200, [[4e5, 5e4], [5e4, 6e5]]])
def test_signals_whose_functions_exceed_all_numbers(name, K0):
    """What 0·∞ and ∞/∞ are, and differences that cancel, is told by the exponential rate."""
    net = network(name, 6, skip_scale=1.0, weight_variance=1.0, bias_variance=0.0)
    solution = ft.solve(net, K0)
    largest = np.max(K0)
    assert solution.log_kernels[1].max() == pytest.approx(
        far_out(largest, *FAR_OUT[name]), rel=1e-12
    )
    for field in ("log_kernels", "log_response", "log_tangent_kernels"):
        values = getattr(solution, field)
        assert not np.isnan(values).any() and np.isposinf(values[-2:]).all()


@pytest.mark.parametrize("place", [0, 1, -2])
@pytest.mark.parametrize("K0", [0.5, 20.0, 400.0, 1e200])
def test_jumps_of_functions_that_grow_exponentially(place, K0):
    """⟨θ(h − a) e^{2h}⟩ = e^{2K} Φ(2√K − a/√K), and its derivative by K."""
    net = network(f"exp(h)*Heaviside(h-({place}))", 1, skip_scale=0.0, bias_variance=0.0)
    K, a = mpf(K0), mpf(place)
    above = 2 * mp.sqrt(K) - a / mp.sqrt(K)
    moment = mp.log(mp.ncdf(above)) + 2 * K
    slope = 1 / mp.sqrt(K) + a / (2 * K * mp.sqrt(K))
    response = mp.log(2 * mp.ncdf(above) + slope * mp.npdf(above)) + 2 * K
    weight = mp.log(mpf(net.weight_variance))
    solution = ft.solve(net, K0)
    assert solution.log_kernels[1] == pytest.approx(float(moment + weight), rel=1e-12)
    assert solution.log_response[1] == pytest.approx(float(response + weight), rel=1e-12)


def test_waves_that_grow():
    """⟨h⁴ sin²h⟩, and nothing of two inputs but what skip connections and biases carry."""
    net = network("h**2*sin(h)", 60, bias_variance=0.25)
    solution = ft.solve(net, 3 * TWO)
    K, kernels = mpf(3), [mpf(3)]
    for skip, a, c in layers(net):
        decay = mp.exp(-2 * K) if K < 1e6 else 0
        K = skip * K + a * (3 * K**2 - decay * (3 * K**2 - 24 * K**3 + 16 * K**4)) / 2 + c
        kernels.append(K)
    np.testing.assert_allclose(solution.log_kernels[:, 0, 0], logs(kernels), rtol=1e-12)
    grows = np.diff(np.exp(solution.log_kernels[5:-1, 0, 1]))
    np.testing.assert_allclose(grows, 0.25, rtol=1e-12)
    assert solution.log_kernels[-2, 0, 0] > 1e17
    np.testing.assert_allclose(solution.log_response[5:, 0, 1], solution.log_response[5, 0, 1])


def test_exponential_waves():
    net = network("exp(h)*sin(h)", 7)
    K = mpf(200)
    alone = ft.solve(net, float(K)).log_kernels
    moment = mp.exp(2 * K) * (1 - mp.exp(-2 * K) * mp.cos(4 * K)) / 2
    weight, bias = mpf(net.weight_variance), mpf(net.bias_variance)
    assert alone[1] == pytest.approx(float(mp.log(K + weight * moment + bias)), rel=1e-12)
    assert np.isposinf(alone[3:]).all()


def test_exponential_waves_of_two_inputs():
    """⟨φφ⟩ = (e^{2 K_xy} cos(K_xx − K_yy) − cos(K_xx + K_yy + 2 K_xy))/2."""
    net = network("exp(h)*sin(h)", 7)
    equal = np.array([[1.0, 0.3], [0.3, 1.0]])
    solution = ft.solve(net, equal)
    (K, t), kernels, responses = (mpf(1), mpf(0.3)), [], [mpf(1)]
    for skip, a, c in layers(net)[:3]:
        kernels.append(t)
        slope = mp.exp(2 * t) + mp.sin(2 * K + 2 * t) if K < 1e6 else mp.exp(2 * t)
        responses.append(responses[-1] * (skip + a * slope))
        far = mp.cos(2 * K + 2 * t) if K < 1e6 else 0
        own = mp.exp(2 * K) - (mp.cos(4 * K) if K < 1e6 else 0)
        K, t = skip * K + a * own / 2 + c, skip * t + a * (mp.exp(2 * t) - far) / 2 + c
    found = solution.log_kernels[:, 0, 1]
    np.testing.assert_allclose(found[:3], logs(kernels), rtol=1e-11)
    np.testing.assert_allclose(solution.log_response[:4, 0, 1], logs(responses), rtol=1e-11)
    assert np.isposinf(found[-2:]).all()
    # Of different norms the variances are known, and what phases of 2e49 leave unknown is no error.
    with pytest.warns(ft.ValidityWarning, match="log_kernels are NaN: their signs or sizes depend"):
        found = ft.solve(net, TWO).log_kernels
    alone = [ft.solve(net, float(K)).log_kernels for K in np.diagonal(TWO)]
    np.testing.assert_array_equal(np.diagonal(found, axis1=1, axis2=2).T, alone)


@pytest.mark.parametrize("K0", [1e4, 1e50, 1e100, 1e200])
def test_kernels_whose_functions_exceed_float64(K0):
    """0·∞ and ∞/∞ are no zeros."""
    with pytest.raises((QuadratureError, OverflowError)):
        ft.solve(network("sinh(h)/cosh(h/2)", 1), K0).kernels  # noqa: B018


@pytest.mark.slow
def test_tangent_kernels_of_logarithms():
    """The readout's ⟨φ'φ'⟩, with weight at all sizes of two signals, beside a large Θ^(L)."""
    net = network("asinh(h)", 600, skip_scale=2.0, weight_variance=1.5)
    solution = ft.solve(net, [[1.0, 0.3], [0.3, 1.0]])
    K, a, t = map(mp.exp, solution.log_kernels[-2][[0, 1, 0], [0, 1, 1]])
    last = mp.exp(solution.log_kernels[-1, 0, 1])
    before, found = map(mp.exp, solution.log_tangent_kernels[-2:, 0, 1])
    _, weight, _ = layers(net)[-1]
    expected = weight * slope_of_asinh(K, a, t) * before + last
    assert found / expected == pytest.approx(1, rel=1e-11)


@pytest.mark.parametrize("gamma", [0.7, 2.0])
def test_cosh_beside_waves(gamma):
    """⟨φφ⟩ = e^{(K_xx + K_yy)/2} cosh K_xy + e^{-(K_xx + K_yy)/2} sinh K_xy."""
    net = network("cosh(h)+sin(h)", 600, skip_scale=gamma)
    found = ft.solve(net, [[1.0, -0.5], [-0.5, 1.0]]).log_kernels
    (K, t), kernels = (mpf(1), mpf(-0.5)), [[mpf(1), mpf(-0.5)]]
    for skip, a, c in layers(net)[:3]:
        both = [mp.exp(K) * mp.cosh(s) + mp.exp(-K) * mp.sinh(s) for s in (K, t)]
        K, t = (skip * s + a * average + c for s, average in zip((K, t), both, strict=True))
        kernels.append([K, t])
    expected = [logs(each) for each in kernels]
    np.testing.assert_allclose(found[:4, 0], expected, rtol=1e-11, atol=1e-12)
    assert np.isposinf(found[5:]).all()


GROWING = {
    "exp": lambda p, q, r: (p + q) / 2 + r,
    "sinh": lambda p, q, r: (p + q) / 2 + mp.log(mp.sinh(r)),
    "cosh(h)": lambda p, q, r: (p + q) / 2 + mp.log(mp.cosh(r)),
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("large", [100.0, 1000.0])
@pytest.mark.parametrize("apart", [1e-3, 1e-9])
def test_nearly_parallel_inputs_of_different_norms(name, large, apart):
    """Squares of the larger signal come from rare ones, which the product does not have."""
    r = (1 - apart) * np.sqrt(1e-6 * large)
    net = ft.ResidualNetwork(depth=3, activation=name, weight_variance=2.0, bias_variance=0.05)
    found = ft.solve(net, [[1e-6, r], [r, large]]).log_kernels[1, 0, 1]
    with mp.workdps(30):
        p, q, r = mp.mpf(1e-6), mp.mpf(large), mp.mpf(r)
        expected = mp.log(2 * mp.exp(GROWING[name](p, q, r)) + r + mp.mpf(0.05))
    assert found == pytest.approx(float(expected), rel=1e-14)


def test_responses_of_identical_inputs_of_jumps_away_from_zero():
    """⟨φ'φ'⟩ of parallel signals is infinite; integrals beside the jumps took minutes."""
    net = ft.ResidualNetwork(depth=550, activation="hardshrink", skip_scale=2.0)
    found = ft.solve(net, [[1.0, 1.0], [1.0, 1.0]]).log_response
    assert np.isposinf(found[1:, 0, 1]).all() and found[0, 0, 1] == 0
    assert np.isfinite(found[:, 0, 0]).all()
