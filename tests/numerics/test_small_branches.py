"""Mean shifts of two inputs where layers add little, so that neighbouring kernels nearly agree."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from tests.tables import slow

EQUAL = np.array([[0.5, 0.15], [0.15, 0.5]])
OPPOSED = np.array([[0.5, -0.2], [-0.2, 0.3]])
PARALLEL = np.array([[0.5, 0.499], [0.499, 0.5]])


def shift(name, rho, K0):
    """N (⟨C⟩ − C*)/ρ⁴ of the second layer."""
    net = ft.ResidualNetwork(depth=2, activation=name, branch_scale=rho, skip_scale=1.0)
    return net.width * ft.solve(net, K0).mean_shift[2, 0, 1] / rho**4


@pytest.mark.parametrize("K0", [EQUAL, OPPOSED])
@pytest.mark.parametrize("name", ["elu", "abs", slow("softsign"), "relu"])
def test_the_limit_of_small_branches_is_approached_as_their_square(name, K0):
    """S(ρ) = S + S' ρ² + O(ρ³), from ρ where no digits are lost, holds down to 1e-5."""
    rho = np.array([1.5e-3, 3e-3, 6e-3, 1.2e-2])
    basis = rho[:, None] ** [0, 2, 3, 4]
    limit = np.linalg.solve(basis, [shift(name, one, K0) for one in rho])
    for small in (3e-4, 1e-4, 1e-5):
        expected = limit @ small ** np.array([0, 2, 3, 4])
        assert shift(name, small, K0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["relu", "abs"])
def test_closed_forms_that_would_lose_digits_say_so(name):
    assert shift(name, 1e-3, PARALLEL) == pytest.approx(shift(name, 5e-4, PARALLEL), rel=1e-2)
    for rho in (1e-4, 1e-5):
        with pytest.raises(QuadratureError, match=r"layers add .* of their kernel.*leave one"):
            shift(name, rho, PARALLEL)
