"""Order 1/N of φ that is narrow or wavy beside its signals, with kinks or not, on dense panels."""

import time

import numpy as np
import pytest
from scipy.special import erf, erfc

import fieldtheory as ft
from tests.oracles import equal_norms
from tests.oracles.panelled_layers import first_order
from tests.tables import slow

pytestmark = pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")

# φ, as text and of arrays, and where it has kinks or is steep.
STEEP_AND_KINK = (
    "tanh(20*h - 30) + relu(h)",
    lambda h: np.tanh(20 * h - 30) + np.maximum(h, 0),
    [0, 1.5],
)
WAVE_AND_RAMP = (
    "sin(3*h)*hard_tanh(h)",
    lambda h: np.sin(3 * h) * np.clip(h, -1, 1),
    [-1, 1],
)
WAVE_AND_JUMP = ("cos(3*h) + Heaviside(h - 1)", lambda h: np.cos(3 * h) + (h > 1), [1])
BELL_AND_KINK = (
    "exp(-(10*h - 0.58)**2)*squared_relu(3*h)",
    lambda h: np.exp(-((10 * h - 0.58) ** 2)) * np.maximum(3 * h, 0) ** 2,
    [0, 0.058],
)
KINK_AND_JUMP = ("Abs(0.61*h) + Heaviside(1.1*h)", lambda h: np.abs(0.61 * h) + (h > 0), [0])
WAVE_AND_KINK = (
    "leaky_relu(2.5*h + 1.44) + cos(6.3*h - 20.8)",
    lambda h: np.maximum(2.5 * h + 1.44, 0.025 * h + 0.0144) + np.cos(6.3 * h - 20.8),
    [-0.576],
)
TAIL = (
    "gelu(2.3*h - 5.59)",
    lambda h: (2.3 * h - 5.59) * erfc((5.59 - 2.3 * h) / np.sqrt(2)) / 2,
    [2.43],
)


def mish(h):
    return h * np.tanh(np.logaddexp(0, h))


def compare(phi, variance, gamma, rtol=1e-10):
    text, function, places = phi
    G11, shift, response = first_order(function, places, variance, gamma=gamma)
    net = ft.ResidualNetwork(depth=3, activation=text, skip_scale=gamma, width=1)
    s = ft.solve(net, variance)
    scale = np.sqrt(np.outer(np.diagonal(G11), np.diagonal(G11)))
    assert (np.abs(s.G11 - G11) <= rtol * scale).all()
    np.testing.assert_allclose(s.mean_shift, shift, rtol=0, atol=rtol * np.abs(shift).max())
    assert s.output_response == pytest.approx(response[-1], rel=1e-10, abs=1e-13)


@pytest.mark.parametrize(
    ("phi", "variance", "gamma"),
    [
        slow(STEEP_AND_KINK, 3.0, 1.0),
        slow(STEEP_AND_KINK, 30.0, 1.0),
        (STEEP_AND_KINK, 300.0, 1.0),
        (STEEP_AND_KINK, 300.0, 0.0),
        # Integrals by parts lose less than the derivative as it stands, which cancels.
        (STEEP_AND_KINK, 30.0, 0.7),
        (WAVE_AND_RAMP, 300.0, 1.0),
        # Waves of higher orders than those that seem to converge.
        (WAVE_AND_RAMP, 30.0, 0.7),
        slow(WAVE_AND_JUMP, 300.0, 1.0),
        (WAVE_AND_JUMP, 30.0, 1.0),
        (BELL_AND_KINK, 0.5, 1.0),
        # The inner average of Price's theorem is infinite at equal signals.
        (KINK_AND_JUMP, 3.0, 0.7),
        (KINK_AND_JUMP, 300.0, 1.0),
        # Constants come out of the averages whose δ-functions are integrated.
        slow(WAVE_AND_KINK, 0.1, 0.7),
        # 1 + erf(u) of large negative u, and its square written out.
        (TAIL, 1e-6, 0.7),
    ],
)
def test_against_dense_panels(phi, variance, gamma):
    compare(phi, variance, gamma)


@pytest.mark.parametrize(
    ("phi", "places"),
    [
        ((BELL_AND_KINK[0], BELL_AND_KINK[1]), BELL_AND_KINK[2]),
        (("mish(h + 0.123)*mish(h)", lambda h: mish(h + 0.123) * mish(h)), [0]),
    ],
)
def test_products_take_seconds(phi, places):
    """Expanded closed forms, and derivatives that nothing asks for, took up to half a minute."""
    start = time.perf_counter()
    text, function = phi
    found = ft.solve(ft.ResidualNetwork(depth=3, activation=text, width=1), 0.5).G11
    assert time.perf_counter() - start < 15
    expected = first_order(function, places, 0.5)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("text", "phi", "variance", "gamma", "step"),
    [
        ("tanh(h)", np.tanh, 1.0, 0.7, 0.2),
        ("1/(1 + (2*h - 1.25)**2)", lambda h: 1 / (1 + (2 * h - 1.25) ** 2), 30.0, 0.7, 0.12),
        ("erf(3*h - 1.25)", lambda h: erf(3 * h - 1.25), 30.0, 0.0, 0.12),
        slow("erf(3*h - 1.25)", lambda h: erf(3 * h - 1.25), 30.0, 0.7, 0.12),
        # Two rules agreed on a shift that was 1.5e-5 off.
        ("erf(10*h)", lambda h: erf(10 * h), 1.0, 0.7, 0.05),
        slow("tanh(5*h - 3)", lambda h: np.tanh(5 * h - 3), 1.0, 0.7, 0.05),
    ],
)
def test_two_inputs_of_wide_signals(text, phi, variance, gamma, step):
    G11, shift = equal_norms.first_order(phi, variance, 0.5, 2, gamma, step)
    net = ft.ResidualNetwork(depth=2, activation=text, skip_scale=gamma, width=1)
    s = ft.solve(net, variance * np.array([[1, 0.5], [0.5, 1]]))
    deviations = np.sqrt(np.einsum("lili->li", G11))
    scale = np.einsum("li,mj->limj", deviations, deviations)
    found = np.moveaxis(s.G11, 1, 2)
    assert (np.abs(found - G11) <= 1e-10 * scale).all()
    found = s.mean_shift[:, [0, 0, 1], [0, 1, 1]]
    np.testing.assert_allclose(found, shift, rtol=0, atol=1e-10 * np.abs(shift).max())
