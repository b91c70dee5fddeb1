"""Logarithms of kernels of waves that grow exponentially, against recursions of mpmath."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import erfc

import fieldtheory as ft
from fieldtheory.numerics.overflow import wave_layers
from tests.numerics.overflow.test_logarithms import layers, logs, network
from tests.tables import slow

TWO = np.array([[1.0, 0.3], [0.3, 2.0]])
K0S = {
    "moderate": np.array([[0.5, 0.2], [0.2, 1.0]]),
    "one wide": np.array([[0.3, 0.5], [0.5, 30.0]]),
    "wide": np.array([[1e5, 2e4], [2e4, 3e5]]),
    "one norm": np.array([[1.0, 0.3], [0.3, 1.0]]),
    "opposite": np.array([[1.0, -0.3], [-0.3, 1.0]]),
}
# φ = e^{rh} sin(wh) or e^{rh} cos(wh).
PHI = {
    "exp(h)*sin(h)": (1, 1, -1),
    "exp(h)*cos(h)": (1, 1, 1),
    "exp(-h)*sin(2*h)": (-1, 2, -1),
    "exp(h/2)*sin(h)": (0.5, 1, -1),
    "exp(h)*sin(h/2)": (1, 0.5, -1),
}
FIELDS = "log_kernels", "log_response", "log_tangent_kernels"


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(120):
        yield


def pair(phi, a, b, t):
    """⟨φφ⟩ and ⟨φ'φ'⟩, its derivative by t."""
    return wave_pair(*map(mpf, PHI[phi]), a, b, t)


def wave_pair(r, w, sign, a, b, t):
    even = mp.exp((r**2 - w**2) * (a + b) / 2 + (r**2 + w**2) * t) * mp.cos(r * w * (a - b))
    odd = mp.exp((r**2 - w**2) * ((a + b) / 2 + t)) * mp.expj(r * w * (a + b + 2 * t))
    slope = (r**2 + w**2) * even + sign * ((r**2 - w**2 + 2j * r * w) * odd).real
    return (even + sign * odd.real) / 2, slope / 2


def recursion(phi, net, K0):
    """(K_xx, K_yy, K_xy), χ and Θ of pairs as far as their exponents have digits."""
    kernels, chi, theta = [tuple(map(mpf, K0[[0, 1, 0], [0, 1, 1]]))], [mpf(1)], []
    theta.append(kernels[0][2])
    for skip, weight, bias in layers(net):
        a, b, t = kernels[-1]
        if max(a, b) > mpf(10) ** 100:
            break
        moments = [pair(phi, *K)[0] for K in ((a, a, a), (b, b, b), (a, b, t))]
        gain = skip + weight * pair(phi, a, b, t)[1]
        own = weight * moments[2] + bias
        kernels.append(
            tuple(skip * K + weight * m + bias for K, m in zip((a, b, t), moments, strict=True))
        )
        chi.append(gain * chi[-1])
        theta.append(gain * theta[-1] + own)
    return np.array([logs(K) for K in kernels]), logs(chi), logs(theta)


BESIDE = {
    "exp(h)*sin(h)+tanh(h)": [(1, 2, 0.3), (5, 6, 1), (20, 22, 10), (30, 31, -10), (80, 60, 20)],
    "exp(h)*sin(h)*tanh(h)": [(1, 2, 0.3), (5, 6, 1), (20, 22, 10), (30, 31, -10), (80, 60, 20)],
    "exp(h)*sin(h)*erf(h)": [(5, 6, 1), (80, 60, 20)],
    "exp(h)*sin(h)*sech(h/3)": [(1, 2, 0.3), (30, 31, -10)],
    "Abs(h)*exp(h)*sin(h)": [(1, 2, 0.3), (3, 4, -1)],
}
# Their waves C e^{rh} sin(h), and what is left, with the functions of a module.
RESTS = {
    "exp(h)*sin(h)+tanh(h)": (1, 1, lambda m, y: m.tanh(y)),
    "exp(h)*sin(h)*tanh(h)": (1, 1, lambda m, y: -m.sin(y) / m.cosh(y)),
    "exp(h)*sin(h)*erf(h)": (1, 1, lambda m, y: -m.exp(y) * m.sin(y) * m.erfc(y)),
    "exp(h)*sin(h)*sech(h/3)": (
        2,
        mpf(2) / 3,
        lambda m, y: -2 * m.sin(y) * m.exp(y / 3) / (m.exp(y / 3) + m.exp(-y / 3)),
    ),
}
NUMPY = SimpleNamespace(**{k: getattr(np, k) for k in ("exp", "sin", "cosh", "tanh")}, erfc=erfc)


def with_rest(phi, a, b, t):
    """⟨φφ⟩ of a wave and a rest: integrals over y of waves whose mean given y is known."""
    size, r, rest = RESTS[phi]

    def beside(a, b):
        def integrand(y):
            mean, v = t * y / b, a - t * t / b
            wave = mp.exp(r * mean + (r * r - 1) * v / 2) * mp.sin(mean + r * v)
            return size * rest(mp, y) * wave * mp.npdf(y, 0, s)

        s = mp.sqrt(b)
        places = {r * t + k * s for k in range(-16, 17, 2)} | {mpf(k) for k in range(-8, 9, 2)}
        return mp.quad(integrand, sorted(places))

    z = np.arange(-9, 9.01, 0.03)
    bell = 0.03 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    y = float(t / a) * np.sqrt(float(a)) * z[:, None] + np.sqrt(float(b - t * t / a)) * z
    steady = (rest(NUMPY, np.sqrt(float(a)) * z) * bell) @ rest(NUMPY, y) @ bell
    waves = size**2 * wave_pair(r, 1, -1, a, b, t)[0]
    return waves + beside(a, b) + beside(b, a) + steady


def with_kink(a, b, t):
    """⟨φφ⟩ of |h| e^h sin(h), whose mean given y has an error function."""

    def given(mean, v):
        shifted = mean + (1 + 1j) * v
        bent = shifted * mp.erf(shifted / mp.sqrt(2 * v))
        bent += mp.sqrt(2 * v / mp.pi) * mp.exp(-(shifted**2) / (2 * v))
        return (mp.exp((1 + 1j) * mean + 1j * v) * bent).imag

    def integrand(y):
        return abs(y) * mp.exp(y) * mp.sin(y) * given(t * y / b, a - t * t / b) * mp.npdf(y, 0, s)

    s = mp.sqrt(b)
    places = {b + t + k * s for k in range(-16, 17, 4)} | {k * s for k in range(-16, 17, 4)}
    return mp.quad(integrand, sorted(places))


PRODUCTS = [(phi, K) for phi, found in BESIDE.items() for K in found]


@pytest.mark.parametrize(
    ("phi", "K"),
    [
        case
        if case[1][0] == 3 or (case[0].endswith("tanh(h)") and case[1][0] > 20)
        else slow(*case)
        for case in PRODUCTS
    ],
)
def test_waves_beside_other_functions(phi, K):
    net = network(phi, 2, skip_scale=0.0, weight_variance=1.0, bias_variance=0.0)
    with mp.workdps(50):
        exact = with_rest(phi, *map(mpf, K)) if phi in RESTS else with_kink(*map(mpf, K))
        expected = float(mp.log(abs(exact)))
    a, b, t = K
    (found,) = quietly(ft.solve(net, [[a, t], [t, b]]), "log_kernels")
    assert found[1, 0, 1] == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.slow
def test_what_is_left_of_products_of_wide_signals():
    """Of e^h sin(h) sech(h/3), whose wave e^{2h/3} sin(h) vanishes over wide signals, nothing."""
    net = network("exp(h)*sin(h)*sech(h/3)", 5)
    (found,) = quietly(ft.solve(net, K0S["one norm"]), "log_kernels")
    skip, _, bias = layers(net)[0]
    carried = skip * mp.exp(found[3, 0, 1]) + bias
    assert found[3, 0, 0] > 50
    assert found[4, 0, 1] == pytest.approx(float(mp.log(carried)), rel=1e-13)


def test_products_behind_which_kernels_exceed_all_logarithms():
    """e^{2t} of inputs of one norm is positive, whatever the digits of their variance."""
    net = network("exp(h)*sin(h)*tanh(h)", 6)
    (found,) = quietly(ft.solve(net, K0S["one norm"]), "log_kernels")
    assert not np.isnan(found).any() and np.isposinf(found[-2:]).all()


def test_a_rest_that_vanishes_beside_waves():
    """So far out |h| is h where it counts, and tanh is nothing; single inputs are numbers."""
    K0 = K0S["wide"]
    for phi, plain in (
        ("exp(h)*sin(h)+tanh(h)", "exp(h)*sin(h)"),
        ("Abs(h)*exp(h)*sin(h)", "h*exp(h)*sin(h)"),
    ):
        nets = [network(each, 5, weight_variance=2.0, bias_variance=0.1) for each in (phi, plain)]
        for field in FIELDS:
            found, expected = (quietly(ft.solve(net, K0), field)[0] for net in nets)
            known = ~np.isnan(found)
            assert known[:2].all() and known[:, [0, 1], [0, 1]].all()
            np.testing.assert_allclose(found[known], expected[known], rtol=1e-14)
            (alone,) = quietly(ft.solve(nets[0], 1.0), field)
            assert not np.isnan(alone).any() and np.isposinf(alone[-2:]).all()


def quietly(solution, *fields):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ft.ValidityWarning)
        return [getattr(solution, field) for field in fields]


@pytest.mark.parametrize("phi", PHI)
@pytest.mark.parametrize("K0", K0S)
def test_two_inputs_where_there_are_digits(phi, K0):
    for parameters in ({}, {"branch_scale": 0.2}, {"skip_scale": 0.5}):
        net = network(phi, 20, weight_variance=2.0, bias_variance=0.1, **parameters)
        found, chi, theta = quietly(ft.solve(net, K0S[K0]), *FIELDS)
        exact, exact_chi, exact_theta = recursion(phi, net, K0S[K0])
        own, count = found[:, [0, 1], [0, 1]], len(exact)
        assert not np.isnan(own).any()
        np.testing.assert_allclose(own[:count], exact[:, :2], rtol=1e-11, atol=1e-11)
        given = ((found, exact[:, 2]), (chi, exact_chi), (theta, exact_theta))
        for values, expected in given:
            values = values[: len(expected), 0, 1]
            known = ~np.isnan(values)
            # Few layers are not known where float64 could hold the phases of all.
            assert known[np.append(True, exact[:-1, :2].max(axis=1) < 15)[: len(known)]].all()
            error = np.abs(values - expected[: len(values)])[known]
            assert (error <= 1e-6 * np.maximum(1, np.abs(values[known]))).all()


def test_signs_that_no_digits_tell():
    """e^{2t} cos(a − b) with a − b = 2.4e49 ± 1e34: no number and a warning, once per field.

    Variances, whose logarithms do not depend on phases, are there.
    """
    net = network("exp(h)*sin(h)", 7, weight_variance=2.0, bias_variance=0.1)
    solution = ft.solve(net, TWO)
    with pytest.warns(ft.ValidityWarning, match="12 of 36 log_kernels are NaN: their signs"):
        found = solution.log_kernels
    own = found[:, [0, 1], [0, 1]]
    assert not np.isnan(own).any() and np.isposinf(own[-3:]).all()
    assert np.isfinite(found[:3]).all() and np.isnan(found[3:, 0, 1]).all()
    for field in ("log_response", "log_tangent_kernels", "tangent_signs"):
        with pytest.warns(ft.ValidityWarning, match=f"{field} are NaN"):
            values = getattr(solution, field)
        assert np.isfinite(values[:3]).all() and np.isnan(values[4:, 0, 1]).all()
        assert not np.isnan(values[:, [0, 1], [0, 1]]).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solution.log_kernels is found
        assert np.isposinf(ft.solve(net, 1.0).log_kernels[-3:]).all()


def test_another_rounding_of_the_input_changes_what_is_not_known_alone():
    net = network("exp(h)*cos(h)", 30, branch_scale=0.2, weight_variance=2.0)
    moved = K0S["moderate"] * [[1 + 2e-16, 1], [1, 1 - 2e-16]]
    found, others = (
        quietly(ft.solve(net, K0), "log_kernels")[0] for K0 in (K0S["moderate"], moved)
    )
    np.testing.assert_array_equal(np.isnan(found), np.isnan(others))
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], others[known], rtol=1e-6, atol=1e-6)


def test_waves_that_vanish_leave_what_is_carried():
    """⟨φφ⟩ of e^{h/2} sin(h) is e^{-3(a + b)/8 + 5t/4}, nothing beside biases whatever its sign."""
    net = network("exp(h/2)*sin(h)", 60, weight_variance=2.0, bias_variance=0.25)
    K0 = np.array([[1e5, 1e3], [1e3, 3e5]])
    solution = ft.solve(net, K0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, chi, theta = (getattr(solution, field) for field in FIELDS)
    expected = np.append(1e3 + 0.25 * np.arange(61), net.readout_variances[1])
    np.testing.assert_allclose(found[:, 0, 1], np.log(expected), rtol=1e-13)
    np.testing.assert_allclose(chi[:, 0, 1], 0, atol=1e-13)
    np.testing.assert_allclose(theta[:, 0, 1], np.log(expected), rtol=1e-13)


def test_deep_networks_and_several_inputs():
    K0 = np.array([[0.5, 0.2, 0.1], [0.2, 1.0, -0.4], [0.1, -0.4, 0.5]])
    net = network("exp(h)*sin(h)", 400, weight_variance=2.0)
    found = quietly(ft.solve(net, K0), "log_kernels")[0]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        alone = quietly(ft.solve(net, K0[np.ix_([i, j], [i, j])]), "log_kernels")[0]
        np.testing.assert_array_equal(
            found[:, [i, i, j], [i, j, j]], alone[:, [0, 0, 1], [0, 1, 1]]
        )
    same = quietly(ft.solve(net, np.ones((2, 2))), *FIELDS)
    assert all((values == values[:, :1, :1]).all() for values in same[::2])
    assert not np.isnan(same[1]).any()


def test_batches():
    net = network("exp(h)*sin(h)", 4, branch_scale=[[0.3], [1.0]], weight_variance=2.0)
    together = quietly(ft.solve(net, TWO), *FIELDS)
    for i, scale in enumerate((0.3, 1.0)):
        alone = quietly(ft.solve(net.replace(branch_scale=scale), TWO), *FIELDS)
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_array_equal(all_of_them[i], one)


@pytest.mark.parametrize("name", ["response", "slope_square"])
def test_responses_take_no_average_of_the_readout(monkeypatch, name):
    """Theirs end with layer L: it is behind the variances K^(0), ..., K^(L-1) alone."""
    layered = wave_layers.wave_layers(network("exp(h)*sin(h)", 2), np.diagonal(TWO), 1)
    if name == "slope_square":
        pairs = np.triu_indices(2, 1)
        layered = wave_layers.wave_pairs(layered, np.diagonal(TWO), TWO[pairs], pairs)
    taken, around = [], wave_layers.around
    monkeypatch.setattr(
        wave_layers, "around", lambda *given: taken.append(given[1:3]) or around(*given)
    )
    found = layered.gains
    assert len(found.mantissa) == 2
    assert {each for each, _ in taken} == {name}
    kernels = layered.kernels.value
    assert {K[-1] for _, K in taken} == set(kernels[:2].ravel())


def test_products_that_become_no_waves():
    """Single inputs have numbers, two have them while float64 holds them, and a warning behind."""
    solution = ft.solve(network("exp(h)*sin(h)*h**2/sqrt(1+h**4)", 6), K0S["one norm"])
    for field in FIELDS:
        with pytest.warns(ft.ValidityWarning, match="or their averages do not converge"):
            found = getattr(solution, field)
        assert np.isfinite(found[:3]).all() and np.isnan(found[-1, 0, 1])
        assert not np.isnan(found[:, [0, 1], [0, 1]]).any()


@pytest.mark.parametrize("name", ["h/sqrt(1+h**2)", "h/(1+abs(h))", "2*atan(h)/pi"])
def test_waves_beside_algebraic_functions(name):
    """Which are 1 far out, where e^h sin(h) gives e^{2t}/2 of inputs of one norm."""
    net = network(f"exp(h)*sin(h)*{name}", 6, weight_variance=2.0, bias_variance=0.1)
    solution = ft.solve(net, K0S["one norm"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs, chi = solution.log_kernels, solution.log_response
    assert not np.isnan(logs).any() and not np.isnan(chi).any()
    assert np.isposinf(logs[-2:]).all() and np.isposinf(chi[-1]).all()
    for l in np.nonzero((logs[:-1, 0, 1] > 4) & np.isfinite(logs[1:, 0, 1]))[0]:
        twice = 2 * np.exp(logs[l, 0, 1])
        # Smaller by what 1 − A is at the variance.
        apart = 4 * np.exp(-logs[l, 0, 0] * (2 if "sqrt" in name else 1))
        assert logs[l + 1, 0, 1] == pytest.approx(twice, abs=1e-9 * twice + apart)
