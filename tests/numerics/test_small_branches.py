"""Mean shifts of two inputs where layers add little, so that neighbouring kernels nearly agree."""

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


@pytest.mark.parametrize(
    ("name", "K0"),
    [("relu", EQUAL), slow("abs", OPPOSED), slow("relu", OPPOSED), slow("abs", EQUAL)],
)
def test_the_limit_of_small_branches_is_approached_as_their_square(name, K0):
    """S(ρ) = S + S' ρ² + O(ρ³), from ρ where no digits are lost, holds down to 1e-5."""
    rho = np.array([1.5e-3, 3e-3, 6e-3, 1.2e-2])
    basis = rho[:, None] ** [0, 2, 3, 4]
    limit = np.linalg.solve(basis, [shift(name, one, K0) for one in rho])
    for small in (3e-4, 1e-4, 1e-5):
        expected = limit @ small ** np.array([0, 2, 3, 4])
        assert shift(name, small, K0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["elu", slow("hardtanh")])
def test_equal_inputs_are_one(name):
    """The same input twice, alone and next to a third one."""
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=0.1)
    two = np.array([[0.5, 0.15], [0.15, 0.4]])
    known = ft.solve(net, two).mean_shift
    again = [0, 1, 0]
    found = ft.solve(net, two[again][:, again]).mean_shift
    np.testing.assert_allclose(found, known[:, again][:, :, again], rtol=1e-12)
    same = ft.solve(net, np.full((2, 2), 0.5)).mean_shift
    np.testing.assert_allclose(same, np.broadcast_to(known[:, :1, :1], same.shape), rtol=1e-12)


WIDE_AND_NARROW = np.array([[1e4, 1.0], [1.0, 1e-4]])


@pytest.mark.parametrize("name", ["tanh", "hard tanh", "relu"])
@pytest.mark.parametrize("K0", [EQUAL + 0.5, WIDE_AND_NARROW], ids=["alike", "wide and narrow"])
@pytest.mark.parametrize(
    "parameters", [{"branch_scale": 0.0}, {"weight_variance": 0.0, "bias_variance": 0.0}]
)
def test_layers_that_add_nothing_shift_nothing(name, K0, parameters):
    net = ft.ResidualNetwork(depth=3, activation=name, **parameters)
    solution = ft.solve(net, K0)
    assert (solution.mean_shift == 0).all()
    assert (ft.solve(net, K0[0, 0]).mean_shift == 0).all()
