"""Lambdified blocks, inverted densely, against `solve` and against the oracles."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.theory import notation as sym
from tests.examples import K0_PAIR, PHI, block, network, oracle
from tests.oracles import exact, hessian, recursion
from tests.rounding import assert_same
from tests.tables import crossed, slow

K0 = 0.4
GAMMAS = {"0": 0.0, "0.7": 0.7, "1": 1.0, "by layer": (0.9, 0.4, 1.0, 0.6)}


gammas = pytest.mark.parametrize("gamma", GAMMAS)
of_networks = pytest.mark.parametrize(
    ("depth", "gamma", "activation"),
    [(2, "1", "tanh"), *crossed([2, 1, 3], GAMMAS, ["erf", "relu"])]
    + [slow(4, gamma, activation) for gamma in GAMMAS for activation in ("erf", "relu")],
)
activations = pytest.mark.parametrize("activation", ["erf", "relu"])


def chosen(depth, activation, gamma):
    value = GAMMAS[gamma]
    return network(depth, activation, value[:depth] if isinstance(value, tuple) else value)


def close(left, right):
    """To 1e-12 of the largest entry, the propagators being of order 1/N."""
    scale = np.abs(right).max()
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-12 * scale)


@pytest.mark.slow_but(25)
@pytest.mark.parametrize("is_named", [False, True], ids=["open", "named"])
@of_networks
def test_inverse_of_the_lambdified_hessian_is_solve(depth, gamma, activation, is_named):
    """φ undetermined in the derivation, which takes it from the network, or named."""
    net, named = chosen(depth, activation, gamma), activation if is_named else None
    blocks = {n: block(n, depth, 1, named)(net, K0) for n in ("S11", "S12", "S21", "S22")}
    S = np.block([[blocks["S11"], blocks["S12"]], [blocks["S21"], blocks["S22"]]])
    G = -np.linalg.inv(S)
    size, solution = depth + 2, ft.solve(net, K0)
    close(G[:size, :size], solution.G11)
    close(G[:size, size:], solution.G12)
    close(G[size:, :size], solution.G12.T)
    assert not G[size:, size:].any()


@pytest.mark.slow_but(4, 8, 12, 13, 20, 24, 28, 29)
@pytest.mark.parametrize("depth", [1, 2, slow(3), slow(4)])
@gammas
@activations
def test_lambdified_propagators_are_solve(depth, gamma, activation):
    net = chosen(depth, activation, gamma)
    solution = ft.solve(net, K0)
    close(block("G12", depth)(net, K0), solution.G12)
    close(block("G21", depth)(net, K0), solution.G12.T)
    close(block("G11", depth)(net, K0), solution.G11)
    assert not block("G22", depth)(net, K0).any()


def full_matrix(solution):
    """Σ_m A²_lm Δ12^m0 of a pair from `full_response`: rows and columns (11), (12), (22)."""
    full, rows = solution.full_response, []
    for i, j in ((0, 0), (0, 1), (1, 1)):
        to_first, to_second, own = np.moveaxis(full[:, i, j], -1, 0)
        zero = np.zeros_like(own)
        rows.append(
            {(0, 0): (own, zero, zero), (1, 1): (zero, zero, own)}.get(
                (i, j), (to_first, own, to_second)
            )
        )
    return np.moveaxis(np.array(rows), -1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("derived", "gamma"), crossed([(1, None), (2, None), (1, "erf")], GAMMAS))
def test_two_inputs(derived, gamma):
    depth, activation = derived
    net = chosen(depth, "erf", gamma)
    inverse = -net.width * np.linalg.inv(block("S21", depth, 2, activation)(net, K0_PAIR))
    response = inverse.reshape(depth + 2, 3, depth + 2, 3)
    solution = ft.solve(net, K0_PAIR)
    entry = [(0, 0), (0, 1), (1, 1)]
    for p, (i, j) in enumerate(entry):
        close(response[:, p, :, p], net.width * solution.G12[:, :, i, j])
        close(response[:-1, p, 0, p], solution.residual_response[:, i, j])
        assert response[-1, p, 0, p] == pytest.approx(solution.output_response[i, j], rel=1e-12)
    A = np.array(recursion.skip_matrix(oracle(net)), dtype=float)
    kernels = np.einsum("lm,mpq->lpq", A**2, response[:-1, :, 0, :])
    close(kernels, full_matrix(solution))


@pytest.mark.slow_but(7)
@activations
@gammas
def test_blocks_against_the_oracle(activation, gamma):
    """Differences and quadrature of the definitions; the oracle divides by N."""
    net = chosen(3, activation, gamma)
    S21 = hessian.S21(oracle(net), K0, PHI[activation])
    S22 = hessian.S22(oracle(net), K0, PHI[activation])
    G11, G12, _, _ = hessian.propagator(hessian.hessian(S21, S22))
    np.testing.assert_allclose(block("S21", 3)(net, K0) / net.width, S21, rtol=0, atol=2e-12)
    np.testing.assert_allclose(block("S22", 3)(net, K0) / net.width, S22, rtol=0, atol=1e-13)
    solution = ft.solve(net, K0)
    np.testing.assert_allclose(solution.G12 * net.width, G12, rtol=0, atol=5e-12)
    np.testing.assert_allclose(solution.G11 * net.width, G11, rtol=0, atol=5e-12)


@pytest.mark.slow
def test_two_inputs_against_the_oracle():
    """The oracle orders the fields of a layer (11), (22), (12)."""
    net = network(2)
    order = [3 * l + entry for l in range(4) for entry in (0, 2, 1)]
    mine = block("S21", 2, 2)(net, K0_PAIR)[np.ix_(order, order)] / net.width
    theirs = hessian.S21(oracle(net), K0_PAIR, PHI["erf"]).reshape(12, 12)
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-12)
    closed = recursion.response(oracle(net), K0_PAIR, lambda *k: float(exact.erf_average(*k)))
    np.testing.assert_allclose(-np.linalg.inv(mine), closed.reshape(12, 12), rtol=0, atol=5e-12)


def test_values_of_the_symbols():
    from fieldtheory.theory.evaluation import symbol_values

    net = network(2)
    values = symbol_values(net, K0_PAIR, 2)
    assert values[sym.WIDTH] == 200
    assert values[sym.WEIGHT] ** 2 == pytest.approx(net.weight_variance)
    assert values[sym.READOUT_BIAS] ** 2 == pytest.approx(0.1)
    assert values[sym.branch_scale(2)] == pytest.approx(0.8)
    assert values[sym.data_kernel((0, 1), 2)] == 0.15
    assert values[sym.INPUT_WIDTH] == 1.0
    assert symbol_values(net, K0_PAIR, 2, "F25")[sym.INPUT_WIDTH] == pytest.approx(0.5)


def test_kernel_may_be_a_matrix_of_one_input():
    assert_same(block("S21", 1)(network(1), [[K0]]), block("S21", 1)(network(1), K0))
