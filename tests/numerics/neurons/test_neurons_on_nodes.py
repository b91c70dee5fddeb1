"""Order 1/N² on nodes: narrow noise, kinks and steep functions, against other derivations."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.neurons import finite_width
from fieldtheory.numerics.neurons.interacting_neurons import FirstOrder, first_order, second_order
from fieldtheory.numerics.neurons.neuron_pairs import Pairs
from fieldtheory.numerics.neurons.neurons_in_modes import in_modes
from fieldtheory.numerics.neurons.neurons_on_nodes import on_nodes
from tests.numerics.neurons.test_finite_width import (
    PHI,
    assert_agrees_with_neurons,
    coefficients,
    panels,
    solved,
    uniform,
)
from tests.oracles import neurons
from tests.tables import slow


def network(name, scale, skip=1.0, depth=3, **others):
    return ft.ResidualNetwork(
        depth=depth, activation=name, branch_scale=scale, skip_scale=skip, width=10**6, **others
    )


def sizes(solution):
    """What the coefficients of 1/N² are if kernels fluctuate by their size."""
    C, q = solution.residual_kernels[1:], np.diagonal(solution.G11)[1:]
    spread = solution.network.width**2 * q**2
    return np.array([ratio(spread, C**power) for power in (3, 2, 1)])


def on(net, K0, width=4.0, count=18):
    s = ft.solve(net, K0)
    chain = layer_coefficients(net), (s.residual_kernels, s.kernels)
    return second_order(on_nodes(net, *chain, width, count))


@pytest.mark.parametrize(
    ("scale", "skip"),
    [
        (0.9, 0.7),
        (0.1, 1.0),
        (0.02, 1.0),
        (0.5, 0.0),
        ((0.3, 0.7, 0.1), (1.0, -0.5, 1.0)),
        # Layers that add nothing: there is no noise between their nodes.
        ((0.3, 0.0, 0.0, 0.2), (1.0, -0.7, 0.5, 1.0)),
    ],
)
@pytest.mark.parametrize("name", ["erf", slow("gelu")])
def test_smooth_functions_on_nodes_and_in_modes(name, scale, skip):
    net = network(name, scale, skip, np.size(scale) if np.size(scale) > 1 else 3)
    net = net.replace(bias_variance=0.0)
    s = ft.solve(net, 0.5)
    layers, K = layer_coefficients(net), s.kernels[:-1]
    known = second_order(in_modes(net, layers, K, 384))
    found = on(net, 0.5)
    for x, y, size in zip(found[:3], known[:3], sizes(s), strict=True):
        np.testing.assert_array_less(np.abs(x - y), 1e-9 * (np.abs(y) + 1e-5 * size) + 1e-300)
    np.testing.assert_allclose(found.pairing, known.pairing, rtol=1e-9, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "hard_tanh"])
def test_kinks_of_layers_near_one_another(name):
    assert_agrees_with_neurons(name, uniform(2, 1.0, scale=0.4), 0.4, 1e-8)


def mean_of_one_hidden_layer(K, a, c, a_out):
    """1/N² of ⟨C^(2)⟩ for ReLU and γ = 1, from the moments of C^(1) given one neuron h.

    With F_k the derivatives by C of ⟨φ²(h + √C ξ)⟩ and C^(1) = C* + (1/N) Σ_j D(h_j) it is
    a ⟨F_2 (D² − q)/2 + F_3 (3 D q + κ)/6 + F_4 q²/8⟩, q = ⟨D²⟩, κ = ⟨D³⟩.
    """
    h, C = sp.symbols("h C", positive=True)
    slope = (1 + sp.erf(h / sp.sqrt(2 * C))) / 2  # ∂F/∂C
    start, kinked = a * K / 2 + c, sp.Symbol("D")
    q, kappa = a**2 * sp.Rational(5, 4) * K**2, a**3 * sp.Rational(11, 2) * K**3
    factors = (kinked**2 - q) / 2, (3 * kinked * q + kappa) / 6, q**2 / 8
    F = sum(slope.diff(C, j) * x for j, x in enumerate(factors, start=1)).subs(C, start)
    value = sp.lambdify([h, kinked], F, "mpmath")
    with mp.workdps(30):
        scale = mp.sqrt(start)

        def weighted(x):
            D = a * ((x**2 if x > 0 else 0) - K / 2)
            return value(x, D) * mp.exp(-(x**2) / (2 * K)) / mp.sqrt(2 * mp.pi * K)

        cuts = [n * scale for n in (-16, -8, -4, -2, 0, 2, 4, 8, 16)]
        return float(a_out * mp.quad(weighted, cuts))


@pytest.mark.parametrize("scale", [0.2, 0.05, 1e-3, slow(5e-4)])
def test_kinks_of_one_hidden_layer_near_the_input(scale):
    K0, net = 0.4, uniform(1, 1.0, scale=scale)
    _, G11, _, mean_2, *_ = coefficients(net, "relu", K0)
    exact = [sp.Rational(str(x)) for x in (K0, scale**2 * 1.25, scale**2 * 0.05, 1.4)]
    q, C = G11[2, 2], 1.4 * 0.5 * 0.4 + 0.1
    assert mean_2[2] == pytest.approx(mean_of_one_hidden_layer(*exact), abs=1e-14 * q**2 / C**3)


@pytest.mark.parametrize(
    ("name", "scale", "K0"),
    [
        slow("relu", 0.05, 0.5),
        ("hard_tanh", 0.1, 0.5),
        slow("tanh", 1.0, 1e3),
        slow("relu", 0.02, 0.5),
        slow("hard_tanh", 1e-3, 0.5),
    ],
)
def test_errors_are_those_that_are_asked_for(name, scale, K0, monkeypatch):
    net = network(name, scale)
    s = ft.solve(net, K0, order=2)
    N2 = net.width**2
    found = N2 * np.array([s.mean_shift_2, s.variance_2, s.third_cumulant])[:, 1:]
    finer = np.array(on(net, K0, 1.5, 24)[:3])
    allowed = 1e-8 * (np.abs(finer) + 1e-5 * sizes(s))
    assert (np.abs(found - finer) <= allowed).all()
    # The estimate exceeds the error: fewer nodes, or waves, are told from more.
    monkeypatch.setattr(finite_width, "_WAVES", ((0.1, 6.0), (0.1, 6.5)))
    monkeypatch.setattr(finite_width, "_PANELS", ((4.0, 9), (4.0, 18)))
    with pytest.raises(QuadratureError, match=r"\d+ nodes .* relative error .* in layer \d"):
        _ = ft.solve(net, K0, order=2).mean_shift_2


def test_order_one_on_nodes_is_that_of_closed_forms():
    """ReLU, whose averages over two layers are known; with kinks elsewhere nodes alone resolve."""
    net = network("relu", 0.05)
    s = ft.solve(net, 0.5)
    chain = layer_coefficients(net), (s.residual_kernels, s.kernels)
    found = first_order(on_nodes(net, *chain, 4.0, 18))
    q, C = net.width * np.diagonal(s.G11)[1:], s.residual_kernels[1:]
    shift = net.width * s.mean_shift[1:]
    np.testing.assert_array_less(
        np.abs(found.shift - shift), 1e-10 * (np.abs(shift) + 1e-5 * q / C)
    )
    np.testing.assert_allclose(found.variance, q, rtol=1e-12)
    assert np.isfinite(ft.solve(network("hard_tanh", 0.05), 0.5).mean_shift).all()


def test_kinks_aside_of_zero_take_nodes(monkeypatch):
    """Modes would take panels of their own in every layer."""

    def no_modes(*_):
        raise AssertionError("modes are slower")

    monkeypatch.setattr(finite_width, "in_modes", no_modes)
    net = uniform(3, 1.0)
    known = neurons.orders(net, 0.4, PHI["hard_tanh"][0], panels("hard_tanh", 0.4))
    mean = solved(net, "hard_tanh", 0.4, 1).mean_shift
    assert (np.abs(mean - known.mean_1) <= 1e-9 * (np.abs(known.mean_1) + 0.01 * known.C)).all()


def wave_with_kink(h):
    """cos(h) selu(1.5 h − 1.25)."""
    u = 1.5 * h - 1.25
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return np.cos(h) * scale * np.where(u > 0, u, alpha * np.expm1(np.minimum(u, 0)))


def test_nodes_resolve_what_is_narrow_beside_the_signals():
    """γ = 0, one layer: N shift = (a/2) M''(K) N Var K, on panels that end at the kink."""
    K0 = 100.0
    net = ft.ResidualNetwork(
        depth=1,
        activation="cos(h)*selu(1.5*h-1.25)",
        branch_scale=0.7,
        skip_scale=0.0,
        bias_variance=0.0,
    )
    z, w = np.polynomial.legendre.leggauss(40)

    def moments(K):
        cuts = np.unique(np.append(np.linspace(-12, 12, 241) * np.sqrt(K), 1.25 / 1.5))
        half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
        h, weights = (middle[:, None] + np.outer(half, z)).ravel(), np.outer(half, w).ravel()
        weights = weights * np.exp(-h * h / (2 * K)) / np.sqrt(2 * np.pi * K)
        g, u = wave_with_kink(h) ** 2, h * h / K
        mean = weights @ g
        return mean, weights @ (g - mean) ** 2, weights @ (g * (u * u - 6 * u + 3)) / (4 * K * K)

    a = 0.49 * 1.25
    mean, variance, _ = moments(K0)
    bent = moments(a * mean)[2]
    expected = 1.25 / 2 * bent * a**2 * variance
    assert ft.solve(net, K0).mean_shift[-1] * net.width == pytest.approx(expected, rel=1e-10)


def test_powers_of_signals_have_no_scale():
    """ReLU: nodes are those of narrow signals, and the coefficients powers of the variance."""
    net = network("relu", 1.0, depth=5, bias_variance=0.0)
    unit, wide = (ft.solve(net, K0, order=2) for K0 in (1.0, 1e24))
    for name, power in (("mean_shift_2", 1), ("variance_2", 2), ("third_cumulant", 3)):
        found = getattr(wide, name) / 1e24**power
        np.testing.assert_allclose(found, getattr(unit, name), rtol=1e-11, atol=1e-24)
    counts = []
    for s in (unit, wide):
        chain = layer_coefficients(net), (s.residual_kernels, s.kernels)
        counts.append({len(D.values) for D, _ in on_nodes(net, *chain, 8.0, 20)})
    assert counts[0] == counts[1]


def test_what_float64_does_not_hold_is_an_error_at_once():
    s = ft.solve(network("relu", 1.0, depth=400), 1.0, order=2)
    with pytest.raises(QuadratureError, match=r"exceed float64 from layer \d+"):
        _ = s.mean_shift_2


def test_layers_too_close_to_one_another_are_named():
    s = ft.solve(network("relu", 1e-4), 0.5, order=2)
    with pytest.raises(QuadratureError, match=r"\d+ nodes .* 131072: .* too close"):
        _ = s.mean_shift_2
    deep = ft.solve(network("relu", 1e-3, depth=400), 0.5, order=2)
    with pytest.raises(QuadratureError, match=r"\d+ nodes .* 32768: .* too close"):
        _ = deep.mean_shift_2


# φ² and its first two derivatives on either side of kinks, and where these are.
SQUARES = {
    "relu": (lambda h: np.where(h > 0, [h**2, 2 * h, 2 + 0 * h], 0.0), (0.0,)),
    "leaky_relu": (
        lambda h: np.where(h > 0, 1.0, 1e-4) * np.array([h**2, 2 * h, 2 + 0 * h]),
        (0.0,),
    ),
    "hard_swish": (
        lambda h: np.where(
            np.abs(h) < 3,
            [
                h**2 * (h + 3) ** 2 / 36,
                h * (h + 3) * (2 * h + 3) / 18,
                (6 * h**2 + 18 * h + 9) / 18,
            ],
            np.where(h > 0, [h**2, 2 * h, 2 + 0 * h], 0.0),
        ),
        (-3.0, 3.0),
    ),
    "hard_tanh": (
        lambda h: np.where(np.abs(h) < 1, [h**2, 2 * h, 2 + 0 * h], [1 + 0 * h, 0 * h, 0 * h]),
        (-1.0, 1.0),
    ),
    "softsign": (
        lambda h: np.array(
            [
                (h / (1 + np.abs(h))) ** 2,
                2 * h / (1 + np.abs(h)) ** 3,
                (2 - 4 * np.abs(h)) / (1 + np.abs(h)) ** 4,
            ]
        ),
        (0.0,),
    ),
    "elu": (
        lambda h: np.where(
            h > 0,
            [h**2, 2 * h, 2 + 0 * h],
            [np.expm1(h) ** 2, 2 * np.exp(h) * np.expm1(h), 4 * np.exp(2 * h) - 2 * np.exp(h)],
        ),
        (0.0,),
    ),
}


def variance_of_close_layers(name, K0):
    """1/N² of Var C^(2) over (ρ² σ²_w)³ for γ = 1 and ρ → 0.

    C^(2) is a mean of g(h + f) over neurons, with f of the variance C^(1) = a mean of g(h) + c, so
    that its fluctuations of order ρ⁶ are a³ (⟨(g − ⟨g⟩)² (g'' − ⟨g''⟩)⟩ + Cov(g, g'²)).
    """
    square, kinks = SQUARES[name]
    x, w = np.polynomial.legendre.leggauss(40)
    dev = np.sqrt(K0)
    cuts = np.unique([*np.linspace(-10 * dev, 10 * dev, 41), *kinks])
    half = np.diff(cuts)[:, None] / 2
    h = (cuts[1:, None] - half + half * x).ravel()

    def bell(h):
        return np.exp(-(h**2) / (2 * K0)) / np.sqrt(2 * np.pi * K0)

    weights = (half * w).ravel() * bell(h)
    g, slope, bent = square(h)
    mean = weights @ g
    # What g'' has at kinks.
    at = np.array(kinks)
    jumps = (square(at + 1e-9)[1] - square(at - 1e-9)[1]) * bell(at)
    curved = weights @ bent + jumps.sum()
    first = weights @ ((g - mean) ** 2 * (bent - curved)) + jumps @ (square(at)[0] - mean) ** 2
    return first + weights @ ((g - mean) * slope**2)


@pytest.mark.parametrize(
    ("name", "rtol"),
    [
        ("relu", 2e-6),
        ("softsign", 2e-6),
        slow("elu", 2e-6),
        slow("leaky_relu", 2e-6),
        # Of φ² with kinks the next power of ρ is one more, not two.
        slow("hard_tanh", 4e-3),
        slow("hard_swish", 4e-3),
    ],
)
def test_layers_that_add_a_millionth(name, rtol):
    """The leading coefficient."""
    rho = 1e-3
    s = ft.solve(network(name, rho), 0.5, order=2)
    found = s.variance_2[2] * s.network.width**2 / (rho**2 * 1.25) ** 3
    assert found == pytest.approx(variance_of_close_layers(name, 0.5), rel=rtol)


def test_many_layers_in_seconds_with_few_functions(monkeypatch):
    """Functions of two neurons stay sums of a few products."""
    net = network("relu", 0.1, depth=30)
    s = ft.solve(net, 0.5)
    ranks, of = [], Pairs.of

    def counted(*given):
        found = of(*given)
        ranks.append(found.basis.shape[1])
        return found

    monkeypatch.setattr(Pairs, "of", counted)
    kernels = s.residual_kernels, s.kernels
    second_order(on_nodes(net, layer_coefficients(net), kernels, 6.0, 13))
    assert len(ranks) == 30 and max(ranks) < 40


@pytest.mark.parametrize(("size", "counts"), [(1e-33, [128]), (1e-12, [128, 256, 512])])
def test_rounding_is_not_taken_for_orders_left_out(size, counts):
    """What the last modes add to a layer does not fall off if it is rounding of nearly nothing."""
    tried = []

    def compute(count):
        tried.append(count)
        windows = size * np.array([[[6.0, 8.0]]])
        return FirstOrder(np.ones(1), np.ones(1), windows, np.zeros(1))

    def scales(found):
        return [np.array([1e-7])]

    failures = finite_width._resolved(compute, scales, 128, 512, 1e-10)[1]
    assert tried == counts
    assert any(failures) == (size > 1e-20)
