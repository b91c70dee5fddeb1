"""Blocks of several inputs, raw derivatives of the action and cumulants as NumPy functions."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.compiling.functions import lambdify
from fieldtheory.compiling.translation import resolve
from fieldtheory.theory import notation as sym
from tests.examples import K0_PAIR, PHI, derivation, network, oracle
from tests.oracles import hessian, quadrature, recursion
from tests.tables import crossed, slow

x, y, z = sp.symbols("x y z", real=True)
a, b, c, d, e, f = sp.symbols("a b c d e f", real=True)
K3 = sp.Matrix([[a, d, e], [d, b, f], [e, f, c]])
POINT = (1.0, 1.2, 0.8, 0.5, 0.3, -0.25)


def moments(phi, K):
    """⟨φφ;φφ⟩ of all pairs of four variables by the trapezoidal rule in whitened coordinates."""
    values, vectors = np.linalg.eigh(K)
    z = 0.36 * np.arange(-22, 23)
    rest = np.stack(np.meshgrid(z, z, z, indexing="ij")).reshape(3, -1)
    pairs = [(i, j) for i in range(4) for j in range(i, 4)]
    first, second, total = np.zeros(10), np.zeros((10, 10)), 0.0
    for z0 in z:
        weights = np.exp(-(z0**2 + np.sum(rest**2, axis=0)) / 2)
        used = weights > 1e-18
        nodes = np.vstack([np.full(used.sum(), z0), rest[:, used]])
        h = phi((vectors * np.sqrt(values)) @ nodes)
        products = np.array([h[i] * h[j] for i, j in pairs])
        first += products @ weights[used]
        second += (products * weights[used]) @ products.T
        total += weights[used].sum()
    covariance = second / total - np.outer(first, first) / total**2
    return {(p, q): covariance[k, l] for k, p in enumerate(pairs) for l, q in enumerate(pairs)}


def expected_block(net, phi):
    """S22 / N of two inputs and one hidden layer from the saddle point and `moments`."""
    other = oracle(net)
    C = hessian.saddle(other, K0_PAIR, phi)
    weights, A = recursion.weight_terms(other), recursion.skip_matrix(other).astype(float)
    joint = np.block([[np.tensordot(A[k] * A[l], C[:-1], 1) for l in range(2)] for k in range(2)])
    found = moments(phi, joint)
    block = np.zeros((9, 9))
    fields = [(k, pair) for k in range(3) for pair in sym.pairs(2)]
    for row, (k, (i, j)) in enumerate(fields):
        for column, (l, (s, t)) in enumerate(fields):
            if k and l:
                first = tuple(sorted((2 * (k - 1) + i, 2 * (k - 1) + j)))
                second = tuple(sorted((2 * (l - 1) + s, 2 * (l - 1) + t)))
                block[row, column] = weights[k] * weights[l] * found[first, second]
    return block


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["erf", slow("tanh")])
def test_two_inputs_against_the_oracle(activation):
    net = network(1, activation)
    block = derivation(1, 2).lambdify("S22")(net, K0_PAIR) / net.width
    np.testing.assert_allclose(block, expected_block(net, PHI[activation]), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("activation", [slow("erf"), "tanh", slow("relu")])
def test_propagator_of_two_inputs(activation):
    """G11 = G12 S22 G21 in numbers; each input alone is the network with one input."""
    net = network(1, activation)
    G11, G12, S22 = (
        derivation(1, 2).lambdify(name)(net, K0_PAIR) for name in ("G11", "G12", "S22")
    )
    np.testing.assert_allclose(G11, G12 @ S22 @ G12.T, rtol=1e-10, atol=1e-14)
    for sample, first in ((0, 0), (1, 2)):
        alone = derivation(1).lambdify("G11")(net, K0_PAIR[sample, sample])
        fields = [first + 3 * layer for layer in range(3)]
        np.testing.assert_allclose(G11[np.ix_(fields, fields)], alone, rtol=1e-10, atol=1e-14)


# Derivatives of the action ----------------------------------------------------------------------


def numbers(*expressions):
    """A value for every symbol of some derivatives of the action."""
    symbols = sorted(set().union(*(e.free_symbols for e in expressions)), key=str)
    return {symbol: 0.4 + 0.05 * k for k, symbol in enumerate(symbols)}


@pytest.mark.parametrize("activation", [slow("erf"), "tanh", slow("relu")])
def test_third_derivative_of_the_action(activation):
    """∂³S/∂C̃∂C̃∂C of connected correlators, of averages, and by differences."""
    action = derivation(2, 1, activation).network_action
    second, C = action.derivative((2, 3)), action.kernels[1]
    connected, raw = second.diff(C), second.rewrite(GaussianAverage).diff(C)
    values = numbers(raw, connected, second)
    symbols = list(values)
    fast = [lambdify(symbols, entry)(*values.values()) for entry in (raw, connected)]
    assert fast[0] == pytest.approx(float(fast[1]), rel=1e-10)
    step = 1e-4
    moved = [{**values, C: values[C] + s * step} for s in (1, -1)]
    pair = lambdify(symbols, second)
    difference = (pair(*moved[0].values()) - pair(*moved[1].values())) / (2 * step)
    assert fast[1] == pytest.approx(float(difference), rel=1e-6)


def test_third_cumulant_of_the_action():
    """∂³S/∂C̃∂C̃∂C̃ is N a a a ⟨φ²;φ²;φ²⟩."""
    action = derivation(2, 1, "tanh").network_action
    third = action.derivative((1, 2, 3))
    assert len(third.atoms(ConnectedCorrelator)) == 1 and not third.atoms(GaussianAverage)
    values = numbers(third)
    found = lambdify(list(values), third)(*values.values())
    by_averages = lambdify(list(values), third.rewrite(GaussianAverage))(*values.values())
    assert found == pytest.approx(float(by_averages), rel=1e-8)


# Cumulants and their derivatives ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "symbol"), crossed(["erf", "tanh", "relu"], [a, d, f]))
def test_derivative_of_a_third_cumulant(activation, symbol):
    phi = ft.networks.activations.ACTIVATIONS[activation]
    node = ConnectedCorrelator(phi(x) ** 2, phi(y) * phi(x), phi(z) ** 2, (x, y, z), K3)
    symbols = [a, b, c, d, e, f]
    value, slope = lambdify(symbols, node), lambdify(symbols, node.diff(symbol))
    k, step = symbols.index(symbol), 1e-3
    differences = 0.0
    for order, weight in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
        up, down = (np.array(POINT) + s * order * step * np.eye(6)[k] for s in (1, -1))
        differences += weight * float(value(*up) - value(*down)) / step
    assert float(slope(*POINT)) == pytest.approx(differences, rel=1e-8, abs=1e-11)


def test_backends_agree():
    node = ConnectedCorrelator(sp.tanh(x) ** 2, sp.tanh(y), sp.tanh(y), (x, y), K3[:2, :2])
    symbols, point = [a, b, d], (1.0, 1.2, 0.5)
    with mpmath.workdps(15):
        expected = float(lambdify(symbols, node, "mpmath")(*map(mpf, point)))
    assert float(lambdify(symbols, node)(*point)) == pytest.approx(expected, rel=1e-9)


def test_delta_functions_of_several_variables():
    """⟨δ(x) y² |z|⟩ conditions y and z on x = 0."""
    node = GaussianAverage(sp.DiracDelta(x) * y**2 * sp.Abs(z), (x, y, z), K3)
    value = float(lambdify([a, b, c, d, e, f], node)(*POINT))
    A, B, C, D, E, F = POINT
    conditional = [[B - D * D / A, F - D * E / A], [F - D * E / A, C - E * E / A]]
    expected = quadrature.average2(lambda u, v: u * u * np.abs(v), conditional)
    assert value == pytest.approx(expected / np.sqrt(2 * np.pi * A), rel=1e-11)


def test_elementary_functions_have_closed_forms():
    node = ConnectedCorrelator(sp.cos(x) * y, sp.exp(z), (x, y, z), K3)
    found = resolve(node, "numpy", {})
    assert found.name == "closed form"
    value = float(lambdify([a, b, c, d, e, f], node)(*POINT))
    K = np.array(K3.subs(dict(zip((a, b, c, d, e, f), POINT, strict=True))), dtype=float)
    expected = quadrature.average_smooth(
        lambda u, v, s: np.cos(u) * v * np.exp(s), K, 0.25, 10
    ) - quadrature.average_smooth(lambda u, v, s: np.cos(u) * v, K, 0.25, 10) * np.exp(0.4)
    assert value == pytest.approx(expected, rel=1e-10)
