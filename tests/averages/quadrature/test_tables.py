"""Tables of Hermite coefficients against integrals of one variance, over all magnitudes."""

import numpy as np
import pytest

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import Coefficients, integrated
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.networks.activations import as_activation, h

STEEP = ["where(h>1,tanh(h),0)", "tanh(h)", "softsign", "hard_sigmoid", "exp(-abs(h))", "swish"]


@pytest.mark.slow_but(2)
@pytest.mark.parametrize("name", STEEP)
@pytest.mark.parametrize("order", [8, 32])
def test_tables_at_all_variances(name, order):
    function = function_of(as_activation(name).expression, h)
    K = np.geomspace(2e-8, 9e5, 27)
    found, errors = Coefficients(function, order)(K)
    exact = np.array([integrated(function, each, order)[0] for each in K])
    size = np.sqrt(exact[:, -1:])
    # Where φ is seen in the far tail alone, the table knows that it has fewer digits.
    assert (np.abs(found - exact)[:, :-1] <= 1e-13 * size + errors[:, :-1]).all()
    seen = (errors[:, 0] <= 1e-13 * size[:, 0]) | (name != STEEP[0])
    assert np.count_nonzero(seen) > 14
    np.testing.assert_allclose(found[seen, -1], exact[seen, -1], rtol=1e-13)


def test_a_constant_does_not_hide_jumps():
    """f_1 and f_2 of c + h² + θ(h − 1) do not depend on c."""
    steps = [
        Function(lambda h, c=c: c + h**2 + (h > 1), lambda h: 2 * h, (1.0,)) for c in (0.0, 50.0)
    ]
    plain, raised = (Coefficients(step, 2)(np.array([0.6]))[0][0, 1:-1] for step in steps)
    np.testing.assert_allclose(raised, plain, rtol=0, atol=1e-13)
