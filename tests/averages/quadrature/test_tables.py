"""Tables of Hermite coefficients against integrals of one variance, over all magnitudes."""

import numpy as np
import pytest

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import Coefficients, integrated
from fieldtheory.networks.activations import as_activation, h

STEEP = ["where(h>1,tanh(h),0)", "tanh(h)", "softsign", "hard_sigmoid", "exp(-abs(h))", "swish"]


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
