"""Mean shifts of two inputs where layers add little, so that neighbouring kernels nearly agree."""

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from tests.tables import slow

EQUAL = np.array([[0.5, 0.15], [0.15, 0.5]])
OPPOSED = np.array([[0.5, -0.2], [-0.2, 0.3]])


def shift(name, rho, K0):
    """N (⟨C⟩ − C*)/ρ⁴ of the second layer."""
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=rho, skip_scale=1.0)
    return net.width * ft.solve(net, K0).mean_shift[2, 0, 1] / rho**4


@pytest.mark.parametrize("K0", [EQUAL, OPPOSED])
@pytest.mark.parametrize("name", ["abs", "relu"])
def test_the_limit_of_small_branches_is_approached_as_their_square(name, K0):
    """S(ρ) = S + S' ρ² + O(ρ³), from ρ where no digits are lost, holds down to 1e-5."""
    rho = np.array([1.5e-3, 3e-3, 6e-3, 1.2e-2])
    basis = rho[:, None] ** [0, 2, 3, 4]
    limit = np.linalg.solve(basis, [shift(name, one, K0) for one in rho])
    for small in (3e-4, 1e-4, 1e-5):
        expected = limit @ small ** np.array([0, 2, 3, 4])
        assert shift(name, small, K0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rho", [0.3, 1e-3])
def test_opposite_inputs_with_kinks(rho):
    """φ = |x|: with h_2 = −h_1 in layer 0 all g_e are one square, of which Price's theorem counts.

    N (⟨C_12⟩ − C*) of layer 2 is a³ K0² Σ_ee' ∂_e∂_e' M + 2 a² K0² Σ_ee' s_e ∂_e∂_e' M with the
    s of e = 11, 22, 12 being 1, 1, −1 and M = ⟨|x| |y|⟩.
    """
    net = ft.ResidualNetwork(depth=2, activation="abs", branch_scale=rho, width=1)
    K0 = 0.4
    net = net.replace(weight_variance=1, bias_variance=0)
    found = ft.solve(net, [[K0, -K0], [-K0, K0]]).mean_shift[2, 0, 1]

    def moment(x, y, xy):
        c = xy / mpmath.sqrt(x * y)
        return 2 / mpmath.pi * mpmath.sqrt(x * y) * (mpmath.sqrt(1 - c * c) + c * mpmath.asin(c))

    with mpmath.workdps(40):
        a, K = mpmath.mpf(rho) ** 2, mpmath.mpf(K0)
        at = K + a * K, K + a * K, -K + a * K
        units = np.eye(3, dtype=int)
        twice = [[mpmath.diff(moment, at, tuple(e + f)) for f in units] for e in units]
        sums = [mpmath.fsum(row) for row in twice]
        expected = a**3 * K**2 * sum(sums) + 2 * a**2 * K**2 * (sums[0] + sums[1] - sums[2])
    assert found == pytest.approx(float(expected), rel=1e-6, abs=0)


@pytest.mark.parametrize("name", ["elu", slow("hardtanh")])
def test_equal_inputs_are_one(name):
    """The same input twice, alone and next to a third one."""
    net = ft.ResidualNetwork(depth=3, activation=name, branch_scale=0.1)
    two = np.array([[0.5, 0.15], [0.15, 0.4]])
    known = ft.solve(net, two).mean_shift
    again = [0, 1, 0]
    found = ft.solve(net, two[again][:, again]).mean_shift
    np.testing.assert_allclose(found, known[:, again][:, :, again], rtol=1e-12)
    same = ft.solve(net, np.full((2, 2), 0.5)).mean_shift
    np.testing.assert_allclose(same, np.broadcast_to(known[:, :1, :1], same.shape), rtol=1e-12)
