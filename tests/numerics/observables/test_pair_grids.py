"""Correlators of four signals by rules on planes: closed forms, dense integrals, singular ones."""

import re
from functools import partial

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.polynomial_pieces import signs
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.numerics.observables.pair_grids import connected
from tests.oracles.several_inputs import of_factors
from tests.tables import slow


def product(phi, x, y):
    return phi(x) * phi(y)


def blocks(K):
    return K[:2, :2], K[2:, 2:], K[:2, 2:]


def signals(kind, scale, seed=0):
    """Factors of the covariances of four signals, shape (4, rank)."""
    rng = np.random.default_rng(seed)
    rank = {"plane": 2, "line": 1, "space": 3}.get(kind, 4)
    X = rng.normal(size=(4, rank))
    if kind == "near":
        X[1] = X[0] + 1e-3 * X[1]
        X[3] = -X[2] + 1e-3 * X[3]
    if kind == "shared":
        X[2] = X[0]
    if kind == "weak":
        X[:2, 2:] *= 1e-3
        X[2:, :2] *= 1e-3
    if kind == "equal":
        X[2:] = X[:2]
    return np.sqrt(scale) * X


KINDS = ("any", "near", "shared", "weak", "equal", "space", "plane", "line")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, slow(1000.0)])
def test_against_the_closed_form_of_error_functions(kind, scale):
    X = signals(kind, scale)
    K = X @ X.T
    exact = signs.connected((K + np.eye(4) / 2)[..., None])[0]
    found = connected(partial(product, erf), *blocks(K))
    assert abs(found - exact) < 1e-11 * min(1.0, scale**2)


PHI = {
    "tanh": np.tanh,
    "softplus": lambda h: np.logaddexp(0, h),
    "gaussian": lambda h: np.exp(-(h**2)),
    "sin": np.sin,
    "shifted": lambda h: np.tanh(h - 3),
    "mish": lambda h: h * np.tanh(np.logaddexp(0, h)),
}


@pytest.mark.parametrize("name", PHI)
@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("plane", 3.0),
        ("line", 3.0),
        slow("any", 0.5),
        slow("near", 0.5),
        slow("space", 3.0),
        slow("plane", 100.0),
        slow("line", 3000.0),
    ],
)
def test_against_dense_sums_over_the_factors(name, kind, scale):
    X, phi = signals(kind, scale, seed=3), PHI[name]
    exact, size = of_factors(phi, X)
    found = connected(partial(product, phi), *blocks(X @ X.T))
    assert abs(found - exact) < 1e-9 * size


def test_steps_that_are_not_resolved_are_an_error():
    K = np.eye(4) + 1
    with pytest.raises(QuadratureError, match="did not converge"):
        connected(partial(product, np.sign), *blocks(K))


def test_what_misses_the_error_names_one_that_takes_it():
    slope, K = 10, np.eye(4) + 1
    steep = partial(product, lambda h: erf(slope * h))
    with pytest.raises(QuadratureError, match="takes it") as caught:
        connected(steep, *blocks(K))
    rtol = float(re.search(r"rtol=(\S+)\)", str(caught.value))[1])
    with relative_tolerance(rtol):
        found = connected(steep, *blocks(K))
    exact = signs.connected((K + np.eye(4) / (2 * slope**2))[..., None])[0]
    assert abs(found - exact) < rtol


@pytest.mark.parametrize("text", ["exp(-1e5*h**2)", slow("exp(-1e6*(h-3)**2)")])
def test_bells_between_the_nodes_are_no_zero(text):
    net = ft.ResidualNetwork(depth=1, activation=text)
    with pytest.raises(QuadratureError, match="did not converge"):
        _ = ft.solve(net, [[1.0, 0.5], [0.5, 1.0]]).G11


@pytest.mark.parametrize("variances", [(30.0, 2.94), (1.0, 32.1)])
def test_waves_that_wide_signals_hardly_leave_anything_of(variances):
    """⟨sin² ; sin²⟩ = e^(−2(K + K')) (cosh(4κ) − 1)/4: small, but not as correlations are."""
    x, y = variances
    joint = 0.9 * min(x, y)
    planes = [np.full((2, 2), size) for size in (x, y, joint)]
    found = connected(lambda a, b: np.sin(a) * np.sin(b), *planes, odd=True)
    expected = np.exp(-2 * (x + y)) * (np.cosh(4 * joint) - 1) / 4
    assert abs(found - expected) < 1e-12


def test_the_shift_of_sines_of_parallel_inputs():
    """Between that of correlations beside one, where it is even."""
    net = ft.ResidualNetwork(depth=2, activation="sin", weight_variance=2)
    off = 1e-4 * np.arange(4)
    K = [[[1, c * 30**0.5], [c * 30**0.5, 30]] for c in 1 - off]
    shift = [ft.solve(net, each).mean_shift[-1, 0, 1] for each in K]
    assert shift[0] == pytest.approx(np.polyval(np.polyfit(off[1:], shift[1:], 2), 0), rel=1e-6)
