"""Symbolic results as JAX functions: values, derivatives, transformations, errors."""

import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.nodes.float_forms import NUMPY
from fieldtheory.compiling import jax_functions
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.theory import notation
from tests.tables import slow

jax = pytest.importorskip("jax", reason="JAX is not installed (the extra jax)")
import jax.numpy as jnp  # noqa: E402

x, y, c = sp.symbols("x y c", real=True)
K, a, b, p = sp.symbols("K a b p", positive=True)
K2 = sp.Matrix([[a, c], [c, b]])
POINT = (0.7, 1.3, -0.4)


@pytest.fixture(autouse=True)
def float64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def second_moment(name):
    return GaussianAverage(ACTIVATIONS[name](x) ** 2, x, K)


def pair(name):
    phi = ACTIVATIONS[name]
    return GaussianAverage(phi(x) * phi(y), (x, y), K2)


def connected(name):
    phi = ACTIVATIONS[name]
    return ConnectedCorrelator(phi(x) ** 2, phi(y) ** 2, (x, y), K2)


def gradient(function, point):
    return [float(v) for v in jax.grad(function, argnums=tuple(range(len(point))))(*point)]


def precisely(arguments, entries, point, digits):
    with mpmath.workdps(digits):
        values = lambdify(arguments, entries, "mpmath")(*map(mpf, point))
        return np.array([float(v) for v in values])


# Derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["erf", slow("tanh"), "relu", slow("gelu")])
def test_second_moment_and_two_derivatives(name):
    """Against differences of the mpmath values, which know nothing of Price's theorem."""
    variance = 0.6
    moment = lambdify([K], second_moment(name), "jax")
    values = [float(f(variance)) for f in (moment, jax.grad(moment), jax.grad(jax.grad(moment)))]
    precise = lambdify([K], second_moment(name), "mpmath")
    with mpmath.workdps(16):
        expected = [float(mpmath.diff(precise, mpf(variance), n)) for n in range(3)]
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [slow("erf"), slow("tanh"), "relu"])
def test_pair_and_two_derivatives(name):
    expression = pair(name)
    function = lambdify([a, b, c], expression, "jax")
    second = [(a, a), (a, c), (c, c)]
    entries = [expression, *(expression.diff(s) for s in (a, b, c))]
    entries += [expression.diff(*s) for s in second]
    curvature = jax.hessian(function, argnums=(0, 1, 2))(*POINT)
    values = [function(*POINT), *gradient(function, POINT)]
    values += [curvature[0][0], curvature[0][2], curvature[2][2]]
    expected = precisely([a, b, c], entries, POINT, 15)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "covariance"),
    [
        slow("tanh", 1e-5),
        ("relu", -0.4),
        ("relu", 1e-5),
        slow("tanh", -0.4),
        slow("erf", -0.4),
        slow("erf", 1e-5),
    ],
)
def test_connected_and_gradient(name, covariance):
    """The gradient keeps its digits at weak coupling, where ⟨F;G⟩ is a small difference."""
    expression, point = connected(name), (0.7, 1.3, covariance)
    function = lambdify([a, b, c], expression, "jax")
    entries = [expression, *(expression.diff(s) for s in (a, b, c))]
    expected = precisely([a, b, c], entries, point, 16)
    np.testing.assert_allclose([function(*point), *gradient(function, point)], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["erf", slow("tanh"), slow("relu")])
def test_connected_with_one_variable(name):
    phi = ACTIVATIONS[name]
    variance = ConnectedCorrelator(phi(x) ** 2, phi(x) ** 2, x, K)
    function = lambdify([K], variance, "jax")
    expected = precisely([K], [variance, variance.diff(K)], (0.8,), 15)
    np.testing.assert_allclose([function(0.8), *gradient(function, (0.8,))], expected, rtol=1e-12)


@pytest.mark.slow
def test_connected_with_kinks_whose_second_derivative_is_a_delta():
    expression = ConnectedCorrelator(sp.Abs(x), sp.Abs(y), (x, y), K2)
    function = lambdify([a, b, c], expression, "jax")
    entries = [expression, *(expression.diff(s) for s in (a, b, c))]
    expected = precisely([a, b, c], entries, POINT, 15)
    np.testing.assert_allclose([function(*POINT), *gradient(function, POINT)], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["erf", "tanh", "relu"])
def test_third_cumulant_and_gradient(name):
    """Three functions, three variables: the slopes are cumulants themselves."""
    phi = ACTIVATIONS[name]
    z = sp.Symbol("z", real=True)
    d, e = sp.symbols("d e", real=True)
    measure = (x, y, z), [[a, c, d], [c, b, e], [d, e, K]]
    expression = ConnectedCorrelator(phi(x) ** 2, phi(y) ** 2, phi(z) ** 2, *measure)
    symbols, point = [a, b, K, c, d, e], (1.0, 1.2, 0.8, 0.5, 0.3, -0.25)
    function = jax.jit(jax.value_and_grad(lambdify(symbols, expression, "jax"), argnums=(0, 3)))
    value, slopes = function(*point)
    numpy = lambdify(symbols, [expression, expression.diff(a), expression.diff(c)])
    np.testing.assert_allclose([value, *slopes], numpy(*point), rtol=1e-9)


def test_parameters_of_the_integrand():
    expression = p * GaussianAverage(sp.erf(p * x) ** 2, x, K)
    values = gradient(lambdify([K, p], expression, "jax"), (0.6, 1.4))
    expected = precisely([K, p], [expression.diff(K), expression.diff(p)], (0.6, 1.4), 20)
    np.testing.assert_allclose(values, expected, rtol=1e-13)


def test_derivatives_pass_through_a_covariance_that_is_an_average():
    inner = second_moment("tanh")
    expression = GaussianAverage(sp.tanh(x) ** 2, x, p * inner + K) ** 2
    values = gradient(lambdify([K, p], expression, "jax"), (0.6, 1.4))
    expected = precisely([K, p], [expression.diff(K), expression.diff(p)], (0.6, 1.4), 20)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


# Singular covariances -------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.1, 1.7, 1e6])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_relu_of_identical_and_opposite_inputs(variance, transform):
    """⟨φφ⟩ = K/2 with ∂/∂K_xy = 1/2 and ∂/∂K_xx = 0; all vanish for y = −x."""
    function = lambdify([a, b, c], pair("relu"), "jax")
    both = transform(jax.value_and_grad(function, argnums=(0, 1, 2)))
    value, slopes = both(variance, variance, variance)
    np.testing.assert_allclose([value, *slopes], [variance / 2, 0, 0, 0.5], rtol=1e-15, atol=1e-15)
    value, slopes = both(variance, variance, -variance)
    np.testing.assert_allclose([value, *slopes], [0, 0, 0, 0], atol=1e-15 * max(variance, 1))


@pytest.mark.parametrize("name", ["erf", "tanh", slow("gelu")])
def test_gradient_of_identical_inputs(name):
    """For y = x the three derivatives add up to that of the second moment."""
    slopes = gradient(lambdify([a, b, c], pair(name), "jax"), (0.8, 0.8, 0.8))
    slope = jax.grad(lambdify([K], second_moment(name), "jax"))(0.8)
    assert sum(slopes) == pytest.approx(float(slope), rel=1e-13)


@pytest.mark.parametrize("sign", [1, -1])
def test_gradient_of_parallel_inputs_with_kinks(sign):
    """Hard tanh: ∓N(1; 0, K), which is ∓0.2076 at K = 1/2, and the probability of |h| < 1."""
    slopes = gradient(lambdify([a, b, c], pair("hard_tanh"), "jax"), (0.5, 0.5, sign * 0.5))
    density = np.exp(-1) / np.sqrt(np.pi)
    expected = [-sign * density, -sign * density, float(sp.erf(1))]
    np.testing.assert_allclose(slopes, expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["erf", "tanh", "relu"])
def test_no_variance(name):
    moment = lambdify([K], second_moment(name), "jax")
    slope = {"erf": 4 / np.pi, "tanh": 1.0, "relu": 0.5}[name]
    assert float(moment(0.0)) == 0.0
    assert float(jax.grad(moment)(0.0)) == pytest.approx(slope, rel=1e-14)


def test_exact_differences_are_those_of_numpy():
    own = jax_functions.exact_differences()
    assert own.keys() == NUMPY.keys()
    rng = np.random.default_rng(0)
    A = np.exp(3 * rng.normal(size=1000))
    B = A * (1 + 1e-9 * rng.normal(size=1000))
    C = np.sqrt(A * B) * (1 - 1e-12 * rng.random(1000))
    exact = [
        float(max(Fraction(i) * Fraction(j) - Fraction(k) ** 2, 0))
        for i, j, k in zip(A, B, C, strict=True)
    ]
    compiled = jax.jit(own["determinant"])
    np.testing.assert_allclose(compiled(A, B, C), exact, rtol=1e-13, atol=1e-22)
    assert not np.any(compiled(A, A, A)) and not np.any(compiled(A, 4 * A, -2 * A))
    np.testing.assert_allclose(compiled(A, B[::-1], 0.3), determinant(A, B[::-1], 0.3), rtol=1e-15)
    vanishing = np.array([[0.0, 0.0, 0.3], [0.0, 0.2, 0.2], [0.0, 0.0, 0.1]])
    for name, arguments in (
        ("exponential_difference", (-A, -B, B - A)),
        ("difference_variance", (A, B, C)),
        ("arcsine", vanishing),
        ("angle_from_opposite", vanishing),
        ("angle_from_opposite", (A, B, C)),
    ):
        values = jax.jit(own[name])(*arguments)
        np.testing.assert_allclose(values, NUMPY[name](*arguments), rtol=1e-13)


# Transformations and shapes ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tanh", slow("relu")])
def test_jit_vmap_and_broadcasting(name):
    function = lambdify([a, b, c], pair(name), "jax")
    A, B, C = np.array([[0.5], [1.0]]), np.array([1.0, 2.0, 3.0]), 0.3
    expected = lambdify([a, b, c], pair(name))(A, B, C)
    for values in (function(A, B, C), jax.jit(function)(A, B, C)):
        assert values.dtype == np.float64 and values.shape == (2, 3)
        np.testing.assert_allclose(values, expected, rtol=1e-14)
    rows = jax.vmap(function, in_axes=(0, None, None))(A, B, C)
    np.testing.assert_allclose(rows, expected, rtol=1e-14)
    slopes = jax.jit(jax.vmap(jax.grad(function), in_axes=(None, 0, None)))(0.5, B, C)
    slope = lambdify([a, b, c], pair(name).diff(a))(0.5, B, C)
    np.testing.assert_allclose(slopes, slope, rtol=1e-13)
    forward = jax.jit(jax.jacfwd(lambda v: function(0.5, v, C)))(B)
    np.testing.assert_allclose(forward, jax.jacrev(lambda v: function(0.5, v, C))(B), rtol=1e-14)
    assert np.count_nonzero(forward) == 3


def test_callbacks_of_large_arrays_end():
    """Arrays that JAX copies in the background while the callback waits for them."""
    root = jax_functions._on_host(np.sqrt)
    values = jax.jit(lambda v: root(root(v) @ v.T))(jnp.full((400, 400), 0.25))
    np.testing.assert_allclose(values, np.sqrt(50), rtol=1e-14)


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_covariances_with_numbers(name):
    expression = pair(name).subs({a: 1, b: 2})
    function = lambdify([c], expression, "jax")
    values = function(0.5), jax.grad(function)(0.5)
    expected = lambdify([c], [expression, expression.diff(c)])(0.5)
    np.testing.assert_allclose(values, expected, rtol=1e-13)
    constant = lambdify([c], second_moment(name).subs(K, 2), "jax")(np.zeros(3))
    np.testing.assert_allclose(constant, [lambdify([], second_moment(name).subs(K, 2))()] * 3)


@pytest.mark.slow
def test_matrices_lists_and_constants():
    entries = sp.Matrix([[second_moment("tanh"), 0], [K, sp.Integer(2)]])
    values = lambdify([K], entries, "jax")(np.array([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(values, lambdify([K], entries)(np.array([0.5, 1.0, 2.0])))
    assert values.shape == (3, 2, 2) and values.dtype == np.float64
    slopes = jax.jacfwd(lambdify([K], entries, "jax"))(0.5)
    assert slopes.shape == (2, 2)
    np.testing.assert_array_equal(slopes[:, 1], 0.0)
    nested = jax.jit(lambdify([K], [second_moment("erf"), [K, 1]], "jax"))(np.float32(0.5))
    assert float(nested[1][0]) == 0.5 and nested[1][1].dtype == np.float64
    assert lambdify([K], sp.Integer(3), "jax")(np.zeros(4)).shape == (4,)
    assert lambdify([], [sp.Rational(1, 3)], "jax")()[0] == 1 / 3


FUNCTIONS = {
    "steps": sp.Heaviside(x) + 2 * sp.sign(x) + sp.Abs(x) + sp.Max(x, c, 0) + sp.Min(x, c),
    "pieces": sp.Piecewise((x, sp.And(x > 0, c < 1)), (sp.exp(x) - 1, True)),
    "special": sp.erf(x) * sp.erfc(c) + sp.loggamma(x + 4) + sp.gamma(c + 2),
    "roots": sp.sqrt(1 + x**2) ** 3 + 1 / sp.sqrt(2 + x) + sp.atan2(x, c) + sp.pi / (x**2 + 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_outside_averages(name):
    expression = FUNCTIONS[name] * second_moment("erf")
    X, C = np.array([-0.7, 0.2, 1.4]), 0.3
    function = jax.jit(lambdify([x, c, K], expression, "jax"))
    expected = lambdify([x, c, K], expression)(X, np.full(3, C), 0.5)
    np.testing.assert_allclose(function(X, C, 0.5), expected, rtol=1e-14)
    slope = jax.vmap(jax.grad(function), in_axes=(0, None, None))(X, C, 0.5)
    step = 1e-3
    differences = sum(
        w * (function(X + k * step, C, 0.5) - function(X - k * step, C, 0.5)) / step
        for k, w in enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), start=1)
    )
    np.testing.assert_allclose(slope, differences, rtol=1e-10, atol=1e-12)


def test_root_of_a_determinant_that_rounding_made_negative():
    root = lambdify([x], sp.sqrt(x), "jax")
    assert float(root(-1e-17)) == 0.0
    assert float(jax.grad(root)(4.0)) == 0.25


# Hyperparameters of a network --------------------------------------------------------------------


def in_hyperparameters(expression, derivation):
    """With the saddle point put in, as a function of ρ, σ_w, σ_b and K_0 alone."""
    solved: dict = {}
    for kernel, value in derivation.saddle_point.kernels.items():
        solved[kernel] = value.xreplace(solved)
    rho = sp.Symbol("rho", positive=True)
    layers = range(1, derivation.depth + 1)
    fixed = {notation.INPUT_WIDTH: sp.S.One}
    fixed |= {notation.skip_scale(layer): sp.S.One for layer in layers}
    fixed |= {notation.branch_scale(layer): rho for layer in ("", *layers)}
    fixed |= {notation.READOUT_WEIGHT: notation.WEIGHT, notation.READOUT_BIAS: notation.BIAS}
    fixed |= {notation.WIDTH: sp.S.One}
    data = notation.data_kernel((0, 0), 1)
    return expression.xreplace(solved).xreplace(fixed), [
        rho, notation.WEIGHT, notation.BIAS, data,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("activation", "depth", "block", "entry"),
    [
        ("erf", 2, "saddle_point", None),
        slow("erf", 2, "G12", (3, 0)),
        slow("relu", 2, "G12", (3, 0)),
        ("tanh", 1, "G12", (2, 0)),
        slow("relu", 2, "G11", (2, 2)),
        slow("tanh", 1, "G11", (2, 2)),
        slow("erf", 3, "G12", (4, 0)),
        slow("erf", 1, "G11", (2, 2)),
    ],
)
def test_gradient_by_the_hyperparameters_of_a_network(activation, depth, block, entry):
    """χ^out = G12[L+1, 0], a kernel, and a fluctuation, against SymPy's derivative in mpmath."""
    derivation = ft.derive(depth=depth, activation=activation)
    quantity = (
        list(derivation.saddle_point.kernels.values())[-1]
        if entry is None
        else derivation.block(block)[entry]
    )
    expression, symbols = in_hyperparameters(quantity, derivation)
    point = (0.4, 1.1, 0.2, 0.3)
    value, slopes = jax.jit(
        jax.value_and_grad(lambdify(symbols, expression, "jax"), argnums=(0, 1, 2, 3))
    )(*point)
    entries = [expression, *(expression.diff(s) for s in symbols)]
    expected = precisely(symbols, entries, point, 16)
    np.testing.assert_allclose([value, *slopes], expected, rtol=1e-12)


def test_a_block_and_its_value_for_a_network():
    derivation = ft.derive(depth=2, activation="erf")
    block, symbols = in_hyperparameters(derivation.block("G12"), derivation)
    values = lambdify(symbols, block, "jax")(0.4, 1.1, 0.2, 0.3)
    net = ft.ResidualNetwork(
        depth=2, branch_scale=0.4, weight_variance=1.21, bias_variance=0.04, width=1
    )
    np.testing.assert_allclose(values, ft.solve(net, 0.3).G12, rtol=1e-12)


# Errors -------------------------------------------------------------------------------------------


def test_missing_jax(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "jax"]:
        monkeypatch.setitem(sys.modules, name, None)
    for expression in (second_moment("erf"), K**2):
        with pytest.raises(ImportError, match=r"needs jax: pip install fieldtheory-networks\[jax"):
            lambdify([K], expression, "jax")


@pytest.mark.parametrize("expression", [second_moment("tanh"), K**2])
def test_float32_is_refused(expression):
    function = lambdify([K], expression, "jax")
    jax.config.update("jax_enable_x64", False)
    for call in (lambda: function(0.5), lambda: lambdify([K], expression, "jax")):
        with pytest.raises(ValueError, match=r'jax.config.update\("jax_enable_x64", True\)'):
            call()


phi = sp.Function("phi")


@pytest.mark.parametrize(
    ("arguments", "expression", "message"),
    [
        ([K], second_moment("erf") * p, "arguments must contain every symbol .* missing p"),
        ([], second_moment("tanh"), "arguments must contain every symbol .* missing K"),
        ([K, p], GaussianAverage(sp.tanh(p * x) ** 2, x, K), "must have a number for p inside"),
        ([K], GaussianAverage(phi(x), x, K), "expression must have a known"),
        ([a, b, c], ConnectedCorrelator(phi(x), phi(y), (x, y), K2), "must have a known"),
    ],
)
def test_errors(arguments, expression, message):
    with pytest.raises(ValueError, match=message):
        lambdify(arguments, expression, "jax")


def test_an_integral_that_does_not_converge_raises():
    function = lambdify([K], GaussianAverage(sp.cos(sp.sinh(x)), x, K), "jax")
    with pytest.raises(jax.errors.JaxRuntimeError, match="did not reach"):
        function(30.0).block_until_ready()
