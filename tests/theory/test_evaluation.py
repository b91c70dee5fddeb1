"""Lambdified blocks, inverted densely, against `solve` and against the oracles."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.examples import K0_PAIR, block, network, oracle
from tests.oracles import recursion
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
