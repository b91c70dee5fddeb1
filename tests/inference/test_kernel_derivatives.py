"""Derivatives of kernels by the parameters, against mpmath and against differences."""

import mpmath
import numpy as np
import pytest

import fieldtheory as ft

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


def exact_kernel(average, x, z, given):
    """K^(L+1) of two inputs by the recursion, typed here."""

    def products(a, b):
        both = mpmath.fdot(map(mpmath.mpf, a), map(mpmath.mpf, b)) / len(a)
        return given["readin_weight_variance"] * both + given["readin_bias_variance"]

    def moment(p):
        return p / 2 if average is relu_average else average(p, p, p)

    p, q, r = products(x, x), products(z, z), products(x, z)
    weight, bias = given["weight_variance"], given["bias_variance"]
    rho2, gamma2 = given["branch_scale"] ** 2, given["skip_scale"] ** 2
    for _ in range(DEPTH):
        means = moment(p), moment(q), average(p, q, r)
        p, q, r = (
            gamma2 * k + rho2 * (weight * mean + bias)
            for k, mean in zip((p, q, r), means, strict=True)
        )
    return given["readout_weight_variance"] * average(p, q, r) + given["readout_bias_variance"]


@pytest.mark.parametrize("name", list(GIVEN))
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_against_mpmath(name, activation):
    X = np.random.default_rng(0).standard_normal((3, 4))
    net = ft.ResidualNetwork(depth=DEPTH, activation=activation, **GIVEN)
    found = ft.kernel(net).derivative(name, X[:1], X[1:])
    average = {"erf": erf_average, "relu": relu_average}[activation]
    with mpmath.workdps(40):
        for value, z in zip(found[0], X[1:], strict=True):

            def moved(parameter, z=z):
                return exact_kernel(average, X[0], z, GIVEN | {name: parameter})

            expected = mpmath.diff(moved, mpmath.mpf(GIVEN[name]))
            np.testing.assert_allclose(value, float(expected), rtol=1e-12)


@pytest.mark.parametrize("name", ["weight_variance", "bias_variance", "branch_scale"])
@pytest.mark.parametrize("norms", ["one", "many"])
@pytest.mark.parametrize("layer", [None, 2])
def test_many_inputs_against_few(name, norms, layer):
    """The map of the derivative, and variances that follow others."""
    X = np.random.default_rng(1).standard_normal((60, 20))
    if norms == "one":
        X /= np.linalg.norm(X, axis=1)[:, None]
    net = ft.ResidualNetwork(depth=6, branch_scale=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], skip_scale=0.9)
    k = ft.kernel(net, "output_kernel" if layer is None else "kernel", layer)
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


def test_derivative_of_dask_arrays():
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(1).standard_normal((20, 5))
    k = ft.kernel(ft.ResidualNetwork(depth=3))
    lazy = k.derivative("bias_variance", da.from_array(X, 7))
    np.testing.assert_allclose(lazy.compute(), k.derivative("bias_variance", X), rtol=1e-12)


def test_bad_arguments():
    k = ft.kernel(ft.ResidualNetwork(depth=3))
    with pytest.raises(TypeError, match=r"unknown argument 'rho': did you mean branch_scale"):
        k.derivative("rho", [[1.0]])
    with pytest.raises(ValueError, match="quantity must be one of output_kernel, kernel for der"):
        ft.kernel(k.network, "output_response").derivative("bias_variance", [[1.0]])
    zero = ft.kernel(ft.ResidualNetwork(depth=3, weight_variance=0.0))
    with pytest.raises(ValueError, match="readin_weight_variance must be positive for the deriv"):
        zero.derivative("weight_variance", [[1.0]])
