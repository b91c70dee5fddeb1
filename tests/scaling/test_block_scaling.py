"""The optimal scaling of networks of blocks against maxima of a recursion written out."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import fieldtheory as ft
from tests.oracles.differences import derivative

SINE = {
    "depth": 5,
    "activation": "sin",
    "inner_weight_variance": 3.0,
    "outer_weight_variance": 1.3,
    "inner_bias_variance": 0.1,
    "readout_weight_variance": 0.6,
}


def output(net, K0, rho):
    """The output kernel of sin, whose averages are elementary, for a matrix K0."""

    def read(X):
        own = np.diagonal(X) + net.epsilon
        return X if net.normalization is None else X / np.sqrt(own[:, None] * own)

    X = np.asarray(K0, dtype=float)
    for gamma in np.broadcast_to(net.skip_scale, net.depth):
        Q = 3.0 * read(X) + 0.1
        q = np.diagonal(Q)
        even = np.exp(-(q[:, None] + q) / 2)
        a = even * np.sinh(Q)
        if net.gated:
            a = a * read(X)
        carried = read(X) if net.norm_position == "post" else X
        X = gamma**2 * carried + rho**2 * 1.3 * a
    return 0.6 * read(X)


def best(net, K0, a, b, bounds=(0.01, 3.0)):
    """The ρ with the largest ∂C_ab/∂K0_ab, by differences, around the highest point of a grid."""

    def height(rho):
        def moved(x):
            K = np.array(K0, dtype=float)
            K[a, b] = K[b, a] = x
            return output(net, K, rho)[a, b]

        return -np.log(abs(derivative(moved, K0[a][b], 0.2 * K0[a][b])))

    grid = np.geomspace(*bounds, 60)
    top = int(np.argmin([height(rho) for rho in grid]))
    assert 0 < top < len(grid) - 1
    around = grid[top - 1], grid[top + 1]
    return minimize_scalar(height, bounds=around, method="bounded", options={"xatol": 1e-9}).x


CASES = {
    "one input, ε": ({"epsilon": 2.0}, [[0.3]]),
    "pre": ({}, [[1.0, 0.9], [0.9, 1.2]]),
    "gate": ({"gated": True}, [[1.0, 0.9], [0.9, 1.2]]),
    "post": ({"norm_position": "post", "skip_scale": 0.9}, [[1.0, 0.95], [0.95, 1.0]]),
}


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("name", CASES)
def test_maximum_is_that_of_the_recursion(name):
    options, K0 = CASES[name]
    net = ft.BlockNetwork(**SINE | options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rho = np.atleast_2d(ft.optimal_scaling(net, K0 if len(K0) > 1 else K0[0][0]))
    assert rho[0, -1] == pytest.approx(best(net, K0, 0, len(K0) - 1), rel=2e-6)
    assert rho[-1, 0] == rho[0, -1]
    if len(K0) > 1:
        assert np.isnan(np.diagonal(rho)).all()


NET = ft.BlockNetwork(**SINE)


def test_without_maximum():
    alone = "that of one input of a BlockNetwork"
    with pytest.raises(ValueError, match=f"{alone} vanishes for every ρ$"):
        ft.optimal_scaling(NET, 0.3)
    linear = NET.replace(activation="gelu", normalization=None)
    with pytest.raises(ValueError, match=f"{alone} has none up to ρ = "):
        ft.optimal_scaling(linear, [0.3, 0.2])
    with pytest.warns(UserWarning, match="K0 has 1 of 1 entries with ρ.* = 0: their response is"):
        assert ft.optimal_scaling(NET.replace(epsilon=0.1), 0.3) == 0
    with pytest.warns(UserWarning) as said:
        assert np.isnan(ft.optimal_scaling(linear, [[0.3, 0.1], [0.1, 0.4]])).all()
    words = [str(each.message) for each in said]
    assert "of one input of a BlockNetwork has none up" in words[0]
    assert words[1].startswith("K0 has 1 of 1 pairs of inputs without ρ*") and len(words) == 2


@pytest.mark.slow
def test_deep_networks_beyond_float64():
    """Scales at which kernels overflow are searched as far as they are numbers."""
    net = NET.replace(depth=150, activation="gelu", normalization=None)
    with pytest.raises(ValueError, match="has none up to ρ = "):
        ft.optimal_scaling(net, 0.3)


REFUSED = {
    "method='deep_limit' is not there for a BlockNetwork": {"method": "deep_limit"},
    "labels is not there for a BlockNetwork": {"labels": [1.0], "noise_variance": 0.1},
    "proven is not there for a BlockNetwork": {"proven": True, "digits": 20},
    "order must be left out but for deep_limit, got 2": {"order": 2},
    "network must have weight variances > 0 to respond": {
        "network": NET.replace(readout_weight_variance=0.0)
    },
    "network must not have batch axes": {"network": NET.replace(skip_scale=[[1.0], [0.9]])},
    "K0 must be": {"K0": -1.0},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message):
    with pytest.raises((TypeError, ValueError), match=message):
        ft.optimal_scaling(**{"network": NET, "K0": 0.3} | REFUSED[message])


@pytest.mark.parametrize("spread", [1.01, 2.0, 7.0])
def test_a_spread_of_shares(spread):
    """(K0 + L ρ²)/(K0 + ρ²) behind a norm; parts of the tangent kernel of ReLU have the same."""
    net, rho = (
        ft.BlockNetwork(depth=8, activation="relu"),
        (0.3 * (spread - 1) / (8 - spread)) ** 0.5,
    )
    for of in ("shares", "parts"):
        assert ft.spread_scaling(net, 0.3, spread, of) == pytest.approx(rho, rel=1e-9)
    # Layers of sign(h) add the same to every stream.
    sign = ft.ResidualNetwork(depth=8, activation="sign", weight_variance=1.0, bias_variance=0.0)
    assert ft.spread_scaling(sign, 0.3, spread) == pytest.approx(rho, rel=1e-9)
    tanh = ft.ResidualNetwork(depth=8, activation="tanh")
    rho = ft.spread_scaling(tanh, 0.3, 1.5, "parts")
    parts = ft.tangent_kernels(tanh.replace(branch_scale=rho), 0.3).parts.sum(0)
    assert parts[1] == pytest.approx(1.5 * parts[-2], rel=1e-9)
    with pytest.raises(ValueError, match="that of the shares is between 1 and 1"):
        ft.spread_scaling(net.replace(norm_position="post"), 0.3, spread)


def test_the_width_for_a_deviation():
    """Var K/K² is 2/N of N units whose branches add nothing, 5/N behind one layer of ReLU."""
    net = ft.BlockNetwork(depth=3, branch_scale=0.0, width=3, expansion=8 / 3)
    assert ft.required_width(net, [[1.0, 0.2], [0.2, 0.3]], 0.05) == 800
    relu = ft.FeedForwardNetwork(depth=1, activation="relu", weight_variance=2, bias_variance=0)
    assert ft.required_width(relu, 0.7, 0.02) == 12500
    with pytest.raises(ValueError, match="deviation must be a finite real number > 0"):
        ft.required_width(relu, 0.7, 0.0)
