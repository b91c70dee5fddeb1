"""Numbers that two computations give are the same to rounding, not to the last bit."""

import numpy as np
import pytest

# Two computations of one number may take other instructions, threads or sums: what is promised of
# it, and what is left of terms of order one that cancel.
RELATIVE, CANCELLED = 1e-9, 1e-14


def assert_same(found, expected):
    """Equality of numbers to the rounding of two computations."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    atol = CANCELLED * max(1.0, largest)
    np.testing.assert_allclose(found, expected, rtol=RELATIVE, atol=atol)


def same(expected):
    """`pytest.approx` of a number, or of the numbers of a row of a table."""
    if isinstance(expected, dict):
        return {n: same(v) if isinstance(v, float) else v for n, v in expected.items()}
    return pytest.approx(expected, rel=RELATIVE, abs=CANCELLED)
