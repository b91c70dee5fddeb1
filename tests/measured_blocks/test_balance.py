"""Solutions of (B.45): roots that are typed or found by np.roots, branches, and no solution."""

import numpy as np
import pytest

from fieldtheory.measured_blocks.estimates import critical_branch

RATIOS = [(1.0, 0.0), (2.5, 0.0), (0.3, 0.4), (0.3, -0.4), (4.0, -1.9), (1e-12, 0.3), (1e12, -1e5)]
SKIPS = [0.0, 1e-9, 0.6, 0.99, 1 - 1e-12]


@pytest.mark.parametrize(("square", "overlap"), RATIOS)
@pytest.mark.parametrize("skip", SKIPS)
def test_branch_is_the_positive_root(skip, square, overlap):
    found = critical_branch(skip, square, overlap)
    roots = np.roots([square, 2 * skip * overlap, skip**2 - 1])
    (positive,) = roots[roots > 0]
    np.testing.assert_allclose(found, positive, rtol=1e-4 if skip > 0.999 else 1e-9)
    factor = skip**2 + 2 * skip * found * overlap + found**2 * square
    np.testing.assert_allclose(factor, 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("skip", "square", "overlap", "expected"),
    [
        (1.0, 1.0, 0.0, np.nan),
        (1.0, 1.0, 0.3, np.nan),
        (1.0, 0.5, -0.3, 1.2),
        # 2 ξ² − 2.2 ξ + 0.21 = 0 has the roots 0.105590 and 0.994410.
        (1.1, 2.0, -1.0, 0.9944097),
        (1.5, 1.0, -0.5, np.nan),
        (1.5, 1.0, 0.5, np.nan),
    ],
)
def test_branch_where_the_skip_alone_does_not_decay(skip, square, overlap, expected):
    np.testing.assert_allclose(critical_branch(skip, square, overlap), expected, rtol=1e-6)


def test_branch_goes_through_one_without_a_jump():
    skips = 1 + np.array([-1e-6, 0.0, 1e-6])
    np.testing.assert_allclose(critical_branch(skips, 0.5, -0.3), 1.2, rtol=1e-5)
