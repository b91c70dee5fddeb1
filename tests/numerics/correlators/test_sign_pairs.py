"""Fluctuations of sign and Heaviside, whose layers differ by the root of what they add."""

import mpmath as mp
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.correlators import sign_pairs
from fieldtheory.numerics.one_input.fluctuations import source_covariance
from fieldtheory.numerics.several_inputs import pair_blocks
from tests.numerics.pair_examples import network
from tests.oracles import signs
from tests.tables import slow

K0 = np.array([[1.0, 0.5, 0.2], [0.5, 0.7, 0.1], [0.2, 0.1, 0.4]])
PAIRS = list(zip(*np.triu_indices(3), strict=True))
# φ = m + d sign(h).
VALUES = {"sign": (0.0, 1.0), "heaviside": (0.5, 0.5)}


def exact_kernels(net):
    """K of the layers 0, ..., L with all digits, by the arcsine law."""
    m, d = map(mp.mpf, VALUES[net.activation.name])
    layers = layer_coefficients(net)
    found = [mp.matrix(K0.tolist())]
    for l in range(1, net.depth + 1):
        K, a, c = found[-1], mp.mpf(layers.weights[l]), mp.mpf(layers.biases[l])
        added = mp.matrix(3, 3)
        for i in range(3):
            for j in range(3):
                seen = signs.of_two(K, i, j) if i != j else 1
                added[i, j] = a * (m**2 + d**2 * seen) + c
        found.append(mp.mpf(net.skip_scale) ** 2 * K + added)
    return found


def joint(kernels, gamma, k, l, four):
    """The covariance of two inputs of layer k and two of layer l."""
    places = [(k, four[0]), (k, four[1]), (l, four[2]), (l, four[3])]
    found = mp.matrix(4, 4)
    for x, (i, one) in enumerate(places):
        for y, (j, other) in enumerate(places):
            found[x, y] = kernels[min(i, j)][one, other] * mp.mpf(gamma) ** abs(i - j)
    return found


def correlator(name, K, four):
    m, d = map(mp.mpf, VALUES[name])
    found = (m * d) ** 2 * mp.fsum(signs.of_two(K, i, j) for i in (0, 1) for j in (2, 3))
    if four[0] != four[1] and four[2] != four[3]:
        found += d**4 * signs.of_four(K)
    return found


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("gamma", [0.7, 1.0])
@pytest.mark.parametrize("rho", [slow(1e-2), slow(1e-4), slow(1e-6), 1e-8, slow(1e-10)])
@pytest.mark.parametrize("four", [(0, 1, 0, 1), (0, 1, 2, 1), (0, 0, 0, 1), (1, 1, 1, 1)])
def test_correlators_of_two_layers(name, gamma, rho, four):
    net = network(name, gamma, 2, branch_scale=rho)
    theory = ft.solve(net, K0).pair_theory
    observed = sign_pairs.connected(theory.signals, 1, np.array(four)[:, None], np.array([2]))
    with mp.workdps(40):
        K = joint(exact_kernels(net), gamma, 1, 2, four)
        expected = correlator(name, K, four)
    assert observed[0] == pytest.approx(float(expected), abs=1e-14)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("rho", [1e-2, 1e-8])
def test_fluctuations_hold_them(name, rho):
    """S22 of all pairs in two layers, and of one input, where its square is known by hand."""
    net = network(name, 0.7, 1, branch_scale=rho)
    s, weights = ft.solve(net, K0), layer_coefficients(net).weights[1:]
    G11, N = s.G11, net.width
    with mp.workdps(40):
        kernels = exact_kernels(net)
        m, d = map(mp.mpf, VALUES[name])
        for i in range(3):
            K = joint(kernels, 0.7, 0, 1, (i, i, i, i))
            alone = float(4 * (m * d) ** 2 * signs.of_two(K, 0, 2) * mp.fprod(weights) / N)
            place = PAIRS.index((i, i))
            # Signs of one input do not respond to its variance.
            assert G11[1, 2, place, place] == pytest.approx(alone, rel=1e-13)
            found = ft.solve(net, K0[i, i]).G11[1, 2]
            assert found == pytest.approx(alone, rel=1e-13)


@pytest.mark.parametrize("rho", [1e-4, 1e-8])
def test_one_input_of_other_steps(rho):
    """⟨θ(x − 1) ; θ(y − 1)⟩ of layers 0 and 1, whose angle is as small as the branch."""
    net = network("heaviside(h-1)", 1.0, 1, branch_scale=rho, bias_variance=0.0)
    a, K = layer_coefficients(net).weights[1:], mp.mpf(1)
    with mp.workdps(40):
        p = mp.erfc(1 / mp.sqrt(2)) / 2
        later = K + mp.mpf(a[0]) * p
        end, start = mp.atan2(K, mp.sqrt(K * later - K**2)), mp.mpf(0)

        def density(theta):
            t = mp.sqrt(K * later) * mp.sin(theta)
            return mp.exp(-(K + later - 2 * t) / (2 * (K * later - t**2))) / (2 * mp.pi)

        expected = mp.quad(density, [start, 1, end])
    S22 = source_covariance(net, *_chain(net))
    assert S22[1, 2] / (a[0] * a[1]) == pytest.approx(float(expected), rel=1e-13)


def _chain(net):
    s = ft.solve(net, 1.0)
    return layer_coefficients(net), s.kernels, s.residual_kernels


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("gamma", [-0.6, 1.0])
@pytest.mark.parametrize("K", [K0[:2, :2], [[1.0, -0.3], [-0.3, 0.2]], [[1, 0.999], [0.999, 1.0]]])
def test_slopes_by_common_factors(name, gamma, K, monkeypatch):
    """A route that knows nothing of arcsines."""
    signals = ft.solve(network(name, gamma, 3), K).pair_theory.signals
    chosen = signals, np.array([1]), np.ones((4, 1), dtype=bool)
    found = pair_blocks.slopes(*chosen)
    monkeypatch.setattr(sign_pairs, "have_two_values", lambda _: False)
    np.testing.assert_allclose(found, pair_blocks.slopes(*chosen), rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.7, 1.0])
@pytest.mark.parametrize("rho", [1e-2, 1e-8])
def test_slopes_are_derivatives(gamma, rho):
    """By K_xx and K_xy of the later of two layers, of 50 digits."""
    net = network("sign", gamma, 2, branch_scale=rho)
    signals = ft.solve(net, K0[:2, :2]).pair_theory.signals
    found = sign_pairs.slopes(signals, np.array([0]), np.array([1]))[1, 2, :, 2, 0]
    with mp.workdps(50):
        K = joint(exact_kernels(net), gamma, 2, 1, (0, 1, 0, 1))
        step = mp.mpf(rho) ** 2 * mp.mpf(10) ** -14
        for e, (i, j) in enumerate(((0, 0), (1, 1), (0, 1))):
            ends = []
            for sign in (1, -1):
                moved = K.copy()
                moved[i, j] = moved[j, i] = K[i, j] + sign * step
                ends.append(signs.of_four(moved))
            expected = float((ends[0] - ends[1]) / (2 * step))
            assert found[e] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("gamma", [0.7, 1.0])
def test_mean_shift_at_tiny_branches(name, gamma):
    """That of the output is ρ c + ρ² c' + ..., with c = 0 for the odd sign."""
    power = 2 if name == "sign" else 1
    shifts = [
        ft.solve(network(name, gamma, 3, branch_scale=rho), K0[:2, :2]).mean_shift[-1, 0, 1]
        / rho**power
        for rho in (1e-6, 1e-8, 1e-10)
    ]
    assert shifts[1] == pytest.approx(shifts[2], rel=1e-6, abs=0)
    extrapolated = shifts[1] + (shifts[1] - shifts[0]) / 99
    assert extrapolated == pytest.approx(shifts[2], rel=2e-10, abs=0)
