"""Every field for twenty activations that people use, against Hermite coefficients of φ alone."""

import warnings

import numpy as np
import pytest

import fieldtheory as ft
from tests.oracles.hermite import Averages
from tests.tables import some

DEPTH, SCALE = 3, 0.7


def elu(u, scale=1.0, alpha=1.0):
    return scale * np.where(u > 0, u, alpha * np.expm1(np.minimum(u, 0)))


# Text as a user would type it, φ in NumPy, its kinks, and the variance of the input.
TABLE = {
    "softsign": ("h/(1 + abs(h))", lambda u: u / (1 + np.abs(u)), (0,), 0.5),
    "hard tanh": ("max(-1, min(1, h))", lambda u: np.clip(u, -1, 1), (-1, 1), 0.5),
    "ELU": ("elu", elu, (0,), 0.5),
    "SELU": ("selu", lambda u: elu(u, 1.0507009873554805, 1.6732632423543772), (0,), 0.5),
    "CELU": ("celu", elu, (0,), 2.0),
    "softplus": ("log(1 + exp(h))", lambda u: np.logaddexp(0, u), (), 0.5),
    "mish": ("h*tanh(log(1 + exp(h)))", lambda u: u * np.tanh(np.logaddexp(0, u)), (), 0.5),
    "hard swish": ("hard_swish", lambda u: u * np.clip(u + 3, 0, 6) / 6, (-3, 3), 2.0),
    "ReLU6": ("relu6", lambda u: np.clip(u, 0, 6), (0, 6), 4.0),
    "squared ReLU": ("max(h, 0)**2", lambda u: np.maximum(u, 0) ** 2, (0,), 0.3),
    "arctan": ("atan(h)", np.arctan, (), 0.5),
    "Gaussian": ("exp(-h**2)", lambda u: np.exp(-(u**2)), (), 0.5),
    "|x|": ("abs(h)", np.abs, (0,), 0.5),
    "sign": ("sign(h)", np.sign, (0,), 0.5),
    "Heaviside": ("heaviside", lambda u: np.heaviside(u, 0.5), (0,), 0.5),
    "cos": ("cos(h)", np.cos, (), 0.5),
    "x²": ("h**2", np.square, (), 0.3),
    "x³": ("h**3", lambda u: u**3, (), 0.1),
    "log cosh": ("log(cosh(h))", lambda u: np.logaddexp(u, -u) - np.log(2), (), 0.5),
    "x/√(1 + x²)": ("h/sqrt(1 + h**2)", lambda u: u / np.sqrt(1 + u * u), (), 0.5),
}


def network(text, depth=DEPTH, **changes):
    return ft.ResidualNetwork(depth=depth, activation=text, branch_scale=SCALE).replace(**changes)


def weights(net):
    """a_l and c_l of the layers 1..L+1."""
    rho = np.array(net.branch_scale if np.ndim(net.branch_scale) else [net.branch_scale])
    scales = [*np.broadcast_to(rho, net.depth) ** 2, 1.0]
    return [(s * net.weight_variance, s * net.bias_variance) for s in scales]


def one_input(net, averages, K0):
    """C*, K, η, χ, N G12 and N G11 with γ = 1, by matrices."""
    coefficients, size = weights(net), net.depth + 2
    C, K, chi, slopes = [K0], [K0], [1.0], []
    for a, c in coefficients:
        C.append(a * averages.moment(K[-1]) + c)
        slopes.append(a * averages.slope(K[-1]))
        K.append(K[-1] + C[-1])
        chi.append(chi[-1] * (1 + slopes[-1]))
    S21, S22 = -np.eye(size), np.zeros((size, size))
    for k, (a, _) in enumerate(coefficients, 1):
        S21[k, :k] = slopes[k - 1]
        for l, (b, _) in enumerate(coefficients, 1):
            low, high = sorted((K[k - 1], K[l - 1]))
            S22[k, l] = a * b * averages.connected(low, high, low)
    G12 = -np.linalg.inv(S21)
    K[-1], out = C[-1], slopes[-1] * chi[-2]
    eta = [1.0, *(s * x for s, x in zip(slopes[:-1], chi[:-2], strict=True))]
    return np.array(C), np.array(K), np.array(eta), np.array(chi[:-1]), out, G12, G12 @ S22 @ G12.T


# SymPy takes a second for each: quick are these.
ONE_INPUT = {"softsign", "SELU", "hard swish", "mish", "sign", "x³", "x/√(1 + x²)"}


@pytest.mark.slow_but(13)
@pytest.mark.parametrize("name", some(TABLE, ONE_INPUT))
def test_fields_of_one_input(name):
    text, phi, kinks, K0 = TABLE[name]
    net = network(text)
    C, K, eta, chi, out, G12, G11 = one_input(net, Averages(phi, kinks), K0)
    s = ft.solve(net, K0)
    np.testing.assert_allclose(s.residual_kernels, C, rtol=1e-11)
    np.testing.assert_allclose(s.kernels, K, rtol=1e-11)
    np.testing.assert_allclose(s.residual_response, eta, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(s.response, chi, rtol=1e-10)
    np.testing.assert_allclose(s.output_response, out, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(s.G12 * net.width, G12, rtol=1e-10, atol=1e-11)
    with warnings.catch_warnings():
        # h² and h³ fluctuate too much for 1/N at this width, which is no matter here.
        warnings.simplefilter("ignore", ft.ValidityWarning)
        found = s.G11 * net.width
    # Squares of sign do not fluctuate: what the oracle has is the rounding of ⟨φ²⟩².
    atol = 1e-11 * np.abs(G11).max() + 1e-14 * np.square(C).max()
    np.testing.assert_allclose(found, G11, rtol=1e-9, atol=atol)
    variance = [G11[: l + 1, : l + 1].sum() for l in range(DEPTH + 1)]
    np.testing.assert_allclose(s.kernel_variance * net.width, variance, rtol=1e-9, atol=1e-11)


@pytest.mark.slow_but(14)
@pytest.mark.parametrize("name", some(TABLE, {"softsign", "Heaviside"}))
def test_fields_of_two_inputs(name):
    text, phi, kinks, K0 = TABLE[name]
    net, averages = network(text), Averages(phi, kinks)
    p, q, r = K0, 1.4 * K0, 0.4 * K0
    triangle = np.eye(3)
    kernels = [(p, q, r)]
    for a, c in weights(net):
        moments = averages.moment(p), averages.moment(q), averages.product(p, q, r)
        gains = np.diag([a * averages.slope(p), a * averages.slope(q), 0.0])
        gains[2] = a * np.array(averages.product_slopes(p, q, r))
        before = triangle
        residual = a * np.array(moments) + c
        triangle = before + gains @ before
        p, q, r = np.array([p, q, r]) + residual
        kernels.append((p, q, r))
    kernels[-1] = tuple(residual)
    s = ft.solve(net, [[K0, 0.4 * K0], [0.4 * K0, 1.4 * K0]])
    found = np.stack([s.kernels[:, 0, 0], s.kernels[:, 1, 1], s.kernels[:, 0, 1]], axis=1)
    np.testing.assert_allclose(found, kernels, rtol=1e-10)
    # ∂K_αβ by (K_αα, K_ββ, K_αβ) after all hidden layers.
    np.testing.assert_allclose(s.full_response[-1, 0, 1], before[2], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(s.output_response[0, 1], gains[2, 2] * before[2, 2], rtol=1e-9)
