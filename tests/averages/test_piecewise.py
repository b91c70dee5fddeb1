"""Activations whose kinks cancel, are irrational or not between polynomials, against panels."""

import numpy as np
import pytest
from scipy.special import erfc, expit

import fieldtheory as ft

GOLDEN = (1 + np.sqrt(5)) / 2


def ramp(h):
    return np.maximum(h, 0.0)


def tent(h):
    return ramp(1 - abs(h))


def parabola(h):
    return np.clip(h**2 - h, -0.1, 1)


# Spellings of one φ, φ, φ' between breakpoints (None: φ jumps), and the breakpoints.
KINDS = [
    (
        ("max(0,1-abs(h))", "relu(1-abs(h))", "max(0,min(h+1,1-h))"),
        tent,
        lambda h: np.where(abs(h) < 1, -np.sign(h), 0),
        (-1, 0, 1),
    ),
    (
        ("sign(h)*min(abs(h),1)", "hard tanh", "where(abs(h)<1,h,sign(h))"),
        lambda h: np.clip(h, -1, 1),
        lambda h: np.where(abs(h) < 1, 1, 0),
        (-1, 1),
    ),
    (
        ("min(abs(h),1)", "clip(abs(h),0,1)", "1-max(0,1-abs(h))"),
        lambda h: np.minimum(abs(h), 1),
        lambda h: np.where(abs(h) < 1, np.sign(h), 0),
        (-1, 0, 1),
    ),
    (
        ("max(0,h**2-h-1)", "relu(h**2-h-1)", "(h**2-h-1+abs(h**2-h-1))/2"),
        lambda h: ramp(h**2 - h - 1),
        lambda h: np.where(h**2 - h > 1, 2 * h - 1, 0),
        (1 - GOLDEN, GOLDEN),
    ),
    (
        ("clip(h**2-h,-0.1,1)", "max(-0.1,min(1,h**2-h))", "min(1,max(-0.1,h**2-h))"),
        parabola,
        lambda h: np.where(parabola(h) == h**2 - h, 2 * h - 1, 0),
        (1 - GOLDEN, 0.5 - np.sqrt(0.15), 0.5 + np.sqrt(0.15), GOLDEN),
    ),
    (
        ("min(h**2-h,1)", "1+min(h**2-h-1,0)"),
        lambda h: np.minimum(h**2 - h, 1),
        lambda h: np.where(h**2 - h < 1, 2 * h - 1, 0),
        (1 - GOLDEN, GOLDEN),
    ),
    (
        ("where(h>1,tanh(h),0)", "heaviside(h-1)*tanh(h)"),
        lambda h: np.where(h > 1, np.tanh(h), 0),
        None,
        (1,),
    ),
    (
        ("where(h>1,sin(h),h)", "h+heaviside(h-1)*(sin(h)-h)"),
        lambda h: np.where(h > 1, np.sin(h), h),
        None,
        (1,),
    ),
    (
        ("where(abs(h)>0.5,tanh(h),0)", "tanh(h)*heaviside(abs(h)-0.5)"),
        lambda h: np.where(abs(h) > 0.5, np.tanh(h), 0),
        None,
        (-0.5, 0.5),
    ),
    (("min(h,0)+max(h,0)", "linear"), lambda h: h, np.ones_like, ()),
    (("clip(tanh(h),-1,1)", "tanh"), np.tanh, lambda h: 1 - np.tanh(h) ** 2, ()),
    (
        ("relu(sigmoid(h))", "sigmoid"),
        lambda h: 1 / (1 + np.exp(-h)),
        lambda h: 1 / (2 + 2 * np.cosh(h)),
        (),
    ),
    (
        ("max(0,cos(h)-h)", "relu(cos(h)-h)"),
        lambda h: ramp(np.cos(h) - h),
        lambda h: np.where(np.cos(h) > h, -np.sin(h) - 1, 0),
        (0.7390851332151607,),
    ),
    # φ ∝ h^4, h^5 and h^8 next to zero: no bisection resolves φ^4 with 16 nodes.
    (
        ("(tanh(h)-2*gelu(h))*h**2", "h**2*tanh(h)-2*h**2*gelu(h)"),
        lambda h: (np.tanh(h) - h * erfc(-h / np.sqrt(2))) * h**2,
        lambda h: (
            2 * h * np.tanh(h)
            + (h / np.cosh(h)) ** 2
            - 3 * h**2 * erfc(-h / np.sqrt(2))
            - h**3 * np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2)
        ),
        (),
    ),
    (
        ("(sin(h)-h)*log(1+h**2)",),
        lambda h: (np.sin(h) - h) * np.log1p(h**2),
        lambda h: (np.cos(h) - 1) * np.log1p(h**2) + (np.sin(h) - h) * 2 * h / (1 + h**2),
        (),
    ),
    # Poles of one piece where another one holds.
    (
        ("max(softsign(h+1),silu(h))", "max(silu(h),(h+1)/(1+abs(h+1)))"),
        lambda h: np.maximum(h * expit(h), (h + 1) / (1 + abs(h + 1))),
        lambda h: np.where(
            h * expit(h) > (h + 1) / (1 + abs(h + 1)),
            expit(h) * (1 + h * expit(-h)),
            1 / (1 + abs(h + 1)) ** 2,
        ),
        (-1.3837272716101684, -1, 0.919612181322059),
    ),
    # SymPy finds no factors of exact numbers near a kink.
    (
        ("elu(h)*sqrt(1+(h+0.5)**2)",),
        lambda h: np.where(h > 0, h, np.expm1(h)) * np.sqrt(1 + (h + 0.5) ** 2),
        lambda h: (
            np.where(h > 0, 1, np.exp(h)) * np.sqrt(1 + (h + 0.5) ** 2)
            + np.where(h > 0, h, np.expm1(h)) * (h + 0.5) / np.sqrt(1 + (h + 0.5) ** 2)
        ),
        (0,),
    ),
]
# Other spellings are the same function: those of two inputs are compared below.
CASES = [
    pytest.param(text, *kind[1:], marks=[pytest.mark.slow] * (i > 0), id=text)
    for kind in KINDS
    for i, text in enumerate(kind[0])
]


def nodes(points, variance):
    """Gauss-Legendre panels between breakpoints: h and the weights of N(0, variance)."""
    x, w = np.polynomial.legendre.leggauss(20)
    dev = np.sqrt(variance)
    edges = np.unique([*np.linspace(-11, 11, 90), *(np.array(points) / dev)])
    half = np.diff(edges) / 2
    z = (edges[1:] + edges[:-1])[:, None] / 2 + half[:, None] * x
    weights = half[:, None] * w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return dev * z.ravel(), weights.ravel()


def network(text, **options):
    return ft.ResidualNetwork(depth=1, activation=text, **options)


@pytest.mark.slow_but(23)
@pytest.mark.parametrize(("text", "phi", "slope", "points"), CASES)
def test_one_input(text, phi, slope, points):
    """M, M' by derivatives of the density, and ⟨φ'²⟩ through the tangent kernel."""
    for K in (0.02, 0.5, 7.0):
        net = network(text, weight_variance=1.0, bias_variance=0.0, branch_scale=1.0)
        solution = ft.solve(net, K)
        h, w = nodes(points, K)
        moment, size = w @ phi(h) ** 2, w @ phi(h) ** 2
        assert solution.residual_kernels[1] == pytest.approx(moment, abs=1e-12 * size)
        chi = 1 + w @ (phi(h) ** 2 * (h**2 / K - 1)) / (2 * K)
        assert solution.response[1] == pytest.approx(chi, abs=1e-11 * (1 + size / K))
        if slope is not None:
            # Θ_1 = K_0 + M(K_0) + K_0 ⟨φ'²⟩ of a network without biases.
            square = w @ slope(h) ** 2
            tangent = K + moment + K * square
            found = ft.solve(net, K).tangent_kernels[1]
            assert found == pytest.approx(tangent, rel=1e-11)


@pytest.mark.slow_but(9, 10, 11)
@pytest.mark.parametrize("kind", KINDS, ids=[kind[0][0] for kind in KINDS])
def test_spellings_agree_with_two_inputs(kind):
    K0 = np.array([[0.6, 0.25], [0.25, 0.9]])
    kernels = [ft.solve(network(text), K0).kernels for text in kind[0]]
    for other in kernels[1:]:
        assert other == pytest.approx(kernels[0], rel=1e-12)


def test_the_simulation_draws_the_same_activation():
    """sign(h) min(|h|, 1) was drawn as a step."""
    one, other = (
        ft.simulate(network(text, width=50), 1.0, samples=20, seed=3)
        for text in ("sign(h)*min(abs(h),1)", "hard tanh")
    )
    assert one.mean == pytest.approx(other.mean, rel=1e-13)
