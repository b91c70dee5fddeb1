"""Roots of Chebyshev series."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from fieldtheory.averages.quadrature.chebyshev_series import nodes, transform
from fieldtheory.scaling.chebyshev_roots import roots


@pytest.mark.parametrize("root", [-0.999, -0.3, 0.0, 1e-9, 0.7])
def test_roots(root):
    x = nodes(20)
    functions = [x - root, (x - root) ** 3, np.expm1(9 * (x - root)), np.arctan(30 * (x - root))]
    series = transform(20) @ np.array(functions).T
    found = roots(series)
    np.testing.assert_allclose(found[0], root, atol=1e-14)
    size = np.abs(series).max(axis=0)
    assert (np.abs(chebyshev.chebval(found, series, tensor=False)) < 1e-14 * size).all()


def test_no_root():
    assert np.isnan(roots(np.array([[2.0], [1.0]]))).all()
