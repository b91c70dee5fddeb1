"""Activations with jumps, cusps and kinks of their own, by graded sums; what is refused."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.criticality import critical_point
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.layer_averages.entries import entries

# φ, and where panels end.
FUNCTIONS = {
    "sign(h)*log(1+abs(h))": (lambda h: np.log1p(abs(h)) * np.sign(h), [0.0]),
    "h*Heaviside(h-1)": (lambda h: np.where(h > 1, h, 0.0), [0.0, 1.0]),
    "Heaviside(h)*exp(h)": (lambda h: np.where(h > 0, np.exp(h), 0.0), [0.0]),
    "abs(h)**1.5": (lambda h: abs(h) ** 1.5, [0.0]),
    "sqrt(abs(h))": (lambda h: abs(h) ** 0.5, [0.0]),
    "h*log(abs(h))": (lambda h: h * np.log(abs(h)), [0.0]),
    "exp(-sqrt(abs(h)))": (lambda h: np.exp(-(abs(h) ** 0.5)), [0.0]),
}
# φ' where ⟨φ'²⟩ is finite.
SLOPES = {
    "sign(h)*log(1+abs(h))": lambda h: 1 / (1 + abs(h)),
    "abs(h)**1.5": lambda h: 1.5 * abs(h) ** 0.5,
    "h*log(abs(h))": lambda h: np.log(abs(h)) + 1,
}
K = 0.7


def graded(kinks, variance):
    """Nodes and weights of N(0, variance), on panels that shrink by half towards the kinks."""
    x, w = np.polynomial.legendre.leggauss(20)
    dev = np.sqrt(variance)
    steps = 0.5 ** np.arange(60)
    cuts = [np.linspace(-13, 13, 40), *(k / dev + s * steps for k in kinks for s in (1, -1))]
    cuts = np.unique(np.concatenate([*cuts, np.array(kinks) / dev]))
    cuts = cuts[np.append(True, np.diff(cuts) > 1e-20)]
    z = ((cuts[1:] + cuts[:-1])[:, None] + np.diff(cuts)[:, None] * x).ravel() / 2
    weights = (np.diff(cuts)[:, None] / 2 * w).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return dev * z, weights


@pytest.mark.parametrize("text", FUNCTIONS)
def test_averages(text):
    phi, kinks = FUNCTIONS[text]
    averages = entries(as_activation(text))
    h, weights = graded(kinks, K)
    moment = weights @ phi(h) ** 2
    assert float(averages.second_moment(K)) == pytest.approx(moment, rel=1e-12)
    # Derivatives of the density stand for those of φ², which δ-functions would belong to.
    z = h / np.sqrt(K)
    slope = weights @ ((z**2 - 1) * phi(h) ** 2) / (2 * K)
    assert float(averages.susceptibility(K)) == pytest.approx(slope, rel=1e-11)
    curvature = weights @ ((z**4 - 6 * z**2 + 3) * phi(h) ** 2) / (4 * K**2)
    assert float(averages.curvature(K)) == pytest.approx(curvature, rel=1e-10)
    variance = weights @ phi(h) ** 4 - moment**2
    assert float(averages.connected(K, K, K)) == pytest.approx(variance, rel=1e-12)
    if text in SLOPES:
        square = weights @ SLOPES[text](h) ** 2
        assert float(averages.slope_square(K)) == pytest.approx(square, rel=1e-12)
    else:
        with pytest.raises(ValueError, match="activation must have no jumps and no slope"):
            _ = averages.slope_square


@pytest.mark.parametrize("text", FUNCTIONS)
def test_correlator_of_two_layers(text):
    """With y = x + w, w independent."""
    phi, kinks = FUNCTIONS[text]
    step = 0.9
    (x, a), (y, b) = graded(kinks, K), graded(kinks, K + step)
    (x, a), (y, b) = (x[a > 1e-40], a[a > 1e-40]), (y[b > 1e-40], b[b > 1e-40])
    # The density of y given x, over that of y.
    ratio = np.exp(y**2 / (2 * (K + step)) - (y - x[:, None]) ** 2 / (2 * step))
    ratio *= np.sqrt((K + step) / step)
    f, g = phi(x) ** 2 - a @ phi(x) ** 2, phi(y) ** 2 - b @ phi(y) ** 2
    found = float(entries(as_activation(text)).connected(K, K + step, K))
    assert found == pytest.approx((a * f) @ ratio @ (b * g), rel=1e-12)


def test_no_critical_point():
    for text in ("Heaviside(h)*exp(h)", "h*Heaviside(h-1)"):
        with pytest.raises(ValueError, match="has a finite ⟨φ'²⟩: activation must have no jumps"):
            critical_point(text)
    with pytest.raises(ValueError, match=r"^activation must have a critical point, exp has none: "):
        critical_point("exp")


def test_beyond_float64():
    net = ft.ResidualNetwork(depth=3, activation="Heaviside(h)*exp(h)")
    with pytest.raises(QuadratureError, match="the function exceeds the range of"):
        _ = ft.solve(net, 0.5).kernels


def test_ends_of_float64_are_no_jumps():
    assert ft.ResidualNetwork(depth=1, activation="exp(-h**2)*sqrt(1+h**2)").depth == 1
