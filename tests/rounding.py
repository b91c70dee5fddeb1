"""Numbers that two computations give are the same to rounding, not to the last bit."""

import numpy as np
import pytest

# Two computations of one number may take other instructions, threads or sums: what the promise
# gives for the largest entry, and what sums of terms that cancel leave.
RELATIVE, OF_LARGEST = 1e-9, 1e-13


def assert_same(found, expected):
    """Equality of shapes, and of numbers to the rounding of two computations."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=OF_LARGEST * largest)


def same(expected):
    """`pytest.approx` of the same."""
    return pytest.approx(expected, rel=RELATIVE, abs=0.0)
