"""Derivatives of kernels by the parameters, against mpmath and against differences."""

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from tests.tables import crossed, slow

DEPTH = 4
GIVEN = {
    "weight_variance": 1.3,
    "bias_variance": 0.1,
    "branch_scale": 0.6,
    "skip_scale": 0.9,
    "readin_weight_variance": 0.8,
    "readin_bias_variance": 0.2,
    "readout_weight_variance": 1.7,
    "readout_bias_variance": 0.3,
}


def erf_average(p, q, r):
    return 2 / mpmath.pi * mpmath.asin(2 * r / mpmath.sqrt((1 + 2 * p) * (1 + 2 * q)))


def relu_average(p, q, r):
    angle = mpmath.acos(r / mpmath.sqrt(p * q))
    root = mpmath.sqrt(p * q)
    return root * (mpmath.sin(angle) + (mpmath.pi - angle) * mpmath.cos(angle)) / (2 * mpmath.pi)


def erf_slope(p, q, r):
    return 4 / mpmath.pi / mpmath.sqrt((1 + 2 * p) * (1 + 2 * q) - 4 * r * r)


def relu_slope(p, q, r):
    return (mpmath.pi - mpmath.acos(r / mpmath.sqrt(p * q))) / (2 * mpmath.pi)


def exact(quantity, functions, x, z, given):
    """K^(L+1), χ^out or Θ^(L+1) of two inputs by the recursion, typed here."""
    average, slope = functions

    def products(a, b):
        both = mpmath.fdot(map(mpmath.mpf, a), map(mpmath.mpf, b)) / len(a)
        return given["readin_weight_variance"] * both + given["readin_bias_variance"]

    def moment(p):
        return p / 2 if average is relu_average else average(p, p, p)

    p, q, r = products(x, x), products(z, z), products(x, z)
    weight, bias = given["weight_variance"], given["bias_variance"]
    rho2, gamma2 = given["branch_scale"] ** 2, given["skip_scale"] ** 2
    theta, chi = r, mpmath.mpf(1)
    for _ in range(DEPTH):
        gain = gamma2 + rho2 * weight * slope(p, q, r)
        means = moment(p), moment(q), average(p, q, r)
        theta, chi = gain * theta + rho2 * (weight * means[2] + bias), gain * chi
        p, q, r = (
            gamma2 * k + rho2 * (weight * mean + bias)
            for k, mean in zip((p, q, r), means, strict=True)
        )
    kernel = given["readout_weight_variance"] * average(p, q, r) + given["readout_bias_variance"]
    gain = given["readout_weight_variance"] * slope(p, q, r)
    return {
        "output_kernel": kernel,
        "output_response": gain * chi,
        "tangent_kernel": gain * theta + kernel,
    }[quantity]


@pytest.mark.parametrize("name", list(GIVEN))
@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("quantity", ["output_kernel", "output_response", "tangent_kernel"])
def test_against_mpmath(name, activation, quantity):
    X = np.random.default_rng(0).standard_normal((3, 4))
    net = ft.ResidualNetwork(depth=DEPTH, activation=activation, **GIVEN)
    found = ft.kernel(net, quantity).derivative(name, X[:1], X[1:])
    functions = {"erf": (erf_average, erf_slope), "relu": (relu_average, relu_slope)}[activation]
    with mpmath.workdps(40):
        for value, z in zip(found[0], X[1:], strict=True):

            def moved(parameter, z=z):
                return exact(quantity, functions, X[0], z, GIVEN | {name: parameter})

            expected = mpmath.diff(moved, mpmath.mpf(GIVEN[name]))
            np.testing.assert_allclose(value, float(expected), rtol=1e-10, atol=1e-12)


def by_differences(k, name, *inputs):
    """The derivative by differences of the sixth order, right to 1e-11 of k."""
    given = getattr(k.network, name)

    def at(change):
        changed = k.network.replace(**{name: given * (1 + change)})
        return ft.kernel(changed, k.quantity, k.layer)(*inputs)

    def step(h):
        return (at(h) - at(-h)) / (2 * h * given)

    return (64 * step(0.005) - 20 * step(0.01) + step(0.02)) / 45


UGLY = ["tanh", "x**3/9 - x", "x + sin(3*x)", "leaky_relu", "gaussian"]


@pytest.mark.slow_but(13)
@pytest.mark.parametrize(
    ("activation", "quantity"), crossed(UGLY, ["tangent_kernel", "output_response", "response"])
)
def test_any_activation_against_differences(activation, quantity):
    """With identical and nearly parallel inputs, blocks and diagonals."""
    X = np.random.default_rng(0).standard_normal((4, 5))
    X[2], X[3] = X[0], -2 * X[0] + 0.03 * X[1]
    net = ft.ResidualNetwork(depth=2, activation=activation, **GIVEN)
    k = ft.kernel(net, quantity, 2 if quantity == "response" else None)
    for name in ("weight_variance", "bias_variance", "branch_scale"):
        for inputs in ([X], [X[:2], X[1:]]):
            found, expected = k.derivative(name, *inputs), by_differences(k, name, *inputs)
            np.testing.assert_allclose(
                found, expected, rtol=0, atol=1e-10 * np.abs(k(*inputs)).max()
            )


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("quantity", ["output_response", "tangent_kernel"])
@pytest.mark.parametrize("activation", ["relu", slow("hard_tanh")])
@pytest.mark.parametrize("name", ["weight_variance", "bias_variance"])
def test_nearly_identical_inputs(quantity, activation, name):
    """P rises as the angle; its derivative is known as well as the angle is."""
    x, step = np.random.default_rng(3).standard_normal((2, 4))
    k = ft.kernel(ft.ResidualNetwork(depth=DEPTH, activation=activation, **GIVEN), quantity)
    # Of differences in a step of half a per cent.
    rounding = 2 * np.finfo(float).eps / (5e-3 * GIVEN[name])
    for distance in (1e-2, 1e-4, 1e-6):
        z = x + distance * step
        found = k.derivative(name, x[None], z[None])
        if quantity == "tangent_kernel":
            diagonal = k.derivative(name, x[None])
            np.testing.assert_allclose(found, diagonal, rtol=10 * distance)
        if activation == "relu":
            with mpmath.workdps(40):
                expected = mpmath.diff(
                    lambda v, z=z: exact(
                        quantity, (relu_average, relu_slope), x, z, GIVEN | {name: v}
                    ),
                    mpmath.mpf(GIVEN[name]),
                )
            error = np.abs(found - float(expected)).item()
            assert error <= (rounding + 4e-15 / distance) * k(x[None]).item()


@pytest.mark.parametrize("quantity", ["output_response", slow("tangent_kernel")])
def test_parallel_inputs_and_kinks(quantity):
    """They stay parallel without biases, so that ReLU has a derivative; with one it has none."""
    X = np.array([[1.0, -0.5], [3.0, -1.5], [-1.0, 0.5], [0.0, 0.0]])
    net = ft.ResidualNetwork(depth=3, activation="relu", branch_scale=0.5, bias_variance=0.0)
    k = ft.kernel(net, quantity)
    for name in ("weight_variance", "branch_scale"):
        found = k.derivative(name, X)
        np.testing.assert_allclose(found, by_differences(k, name, X), rtol=1e-5, atol=1e-7)
        # Without biases Θ(x, 3x) = 3 Θ(x, x), and responses are those of one input.
        factor = 3 if quantity == "tangent_kernel" else 1
        np.testing.assert_allclose(found[0, 1], factor * found[0, 0], rtol=1e-12)
    for other in (X[1:2], X[2:3]):
        with pytest.raises(ValueError, match="no finite derivative by bias_variance: φ has kinks"):
            k.derivative("bias_variance", X[:1], other)
    assert np.isfinite(ft.kernel(net).derivative("bias_variance", X[:3])).all()


@pytest.mark.slow_but(0, 1, 6, 7, 8, 9, 10, 11)
@pytest.mark.parametrize("name", ["weight_variance", "bias_variance", "branch_scale"])
@pytest.mark.parametrize("norms", ["one", "many"])
@pytest.mark.parametrize(
    ("quantity", "layer"),
    [("output_kernel", None), ("kernel", 2), ("output_response", None), ("tangent_kernel", None)],
)
def test_many_inputs_against_few(name, norms, quantity, layer):
    """The map of the derivative, and variances that follow others."""
    X = np.random.default_rng(1).standard_normal((60, 20))
    if norms == "one":
        X /= np.linalg.norm(X, axis=1)[:, None]
    net = ft.ResidualNetwork(depth=6, branch_scale=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], skip_scale=0.9)
    k = ft.kernel(net, quantity, layer)
    whole, block = k.derivative(name, X), k.derivative(name, X[:40], X[40:])
    np.testing.assert_allclose(block, whole[:40, 40:], rtol=0, atol=1e-12 * np.abs(whole).max())
    few = k.derivative(name, X[:3])
    np.testing.assert_allclose(few, whole[:3, :3], rtol=0, atol=1e-12 * np.abs(whole).max())
    given, h = getattr(net, name), 1e-5
    more, less = (
        ft.kernel(net.replace(**{name: (np.asarray(given) + step).tolist()}), k.quantity, layer)
        for step in (h, -h)
    )
    np.testing.assert_allclose(few, (more(X[:3]) - less(X[:3])) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize("name", [name for name in GIVEN if name.endswith("variance")])
def test_derivatives_by_deviations(name):
    """By σ with σ² as the argument, in mpmath."""
    x, z = [0.3, -1.0], [0.8, 0.5]

    def kernel(deviation):
        given = GIVEN | {name: deviation**2}
        return exact("tangent_kernel", (erf_average, erf_slope), x, z, given)

    with mpmath.workdps(40):
        expected = mpmath.diff(kernel, mpmath.sqrt(GIVEN[name]))
    k = ft.kernel(ft.ResidualNetwork(depth=DEPTH, activation="erf", **GIVEN), "tangent_kernel")
    found = k.derivative(name.replace("variance", "deviation"), [x], [z])
    assert found[0, 0] == pytest.approx(float(expected), rel=1e-10)


def test_derivative_of_dask_arrays():
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(1).standard_normal((20, 5))
    k = ft.kernel(ft.ResidualNetwork(depth=3))
    lazy = k.derivative("bias_variance", da.from_array(X, 7))
    np.testing.assert_allclose(lazy.compute(), k.derivative("bias_variance", X), rtol=1e-12)
    net = ft.ResidualNetwork(depth=3, activation="relu", bias_variance=0.0)
    parallel = da.from_array(np.array([[1.0, -0.5], [3.0, -1.5]]), 2)
    lazy = ft.kernel(net, "tangent_kernel").derivative("bias_variance", parallel)
    with pytest.raises(ValueError, match="no finite derivative by bias_variance"):
        lazy.compute()


@pytest.mark.parametrize("bias", [0.0, 1e-9, 1e-6])
def test_derivatives_at_the_smallest_values(bias):
    """By σ_b² of a linear network, whose kernel is linear in it, and by ρ."""
    net = ft.ResidualNetwork(depth=3, activation="linear", branch_scale=0.5, bias_variance=bias)
    k, X = ft.kernel(net, "kernel", layer=3), np.array([[0.3, 0.4]])
    found, other = (k.derivative(name, X)[0, 0] for name in ("bias_variance", "branch_scale"))
    growth = 1 + 0.25 * 1.25
    # Biases of the read-in and of the layers.
    assert found == pytest.approx(growth**3 + 0.25 * (1 + growth + growth**2), rel=1e-10)
    # K^(3) = a³ K0 + (1 + a + a²) ρ² σ_b² with a = 1 + ρ² σ_w².
    by_growth = (1.25 * 0.125 + bias) * 3 * growth**2 + 0.25 * bias * (1 + 2 * growth)
    by_rho = by_growth * 1.25 + bias * (1 + growth + growth**2)
    assert other == pytest.approx(2 * 0.5 * by_rho, rel=1e-10)


def test_small_parameters_by_which_kernels_change_fast():
    """Biases turn parallel inputs of ReLU by an angle that goes as their root."""
    net = ft.ResidualNetwork(depth=2, activation="relu", bias_variance=1e-6)
    k, X = ft.kernel(net, "output_response"), np.array([[1.0, -0.5], [3.0, -1.5]])
    expected = by_differences(k, "bias_variance", X)
    found = k.derivative("bias_variance", X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
