"""⟨φ²;φ²⟩ of any φ over all magnitudes, relative to √(Var φ² Var φ²)."""

from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fieldtheory.networks.activation_text import activation_from_text
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from tests.oracles import correlators
from tests.tables import crossed

VARIANCES = [1e-8, 1e-6, 1e-4, 0.6, 30.0, 1e3]
CORRELATIONS = [s * r for r in (1e-8, 1e-4, 0.1, 0.9, 1 - 1e-9) for s in (1, -1)]


@cache
def connected(text, backend="numpy"):
    return layer_functions(activation_from_text(text), backend).connected


def relative_error(value, exact):
    return float(abs(value - exact) / abs(exact))


@pytest.mark.slow_but(19, 20)
@pytest.mark.parametrize(("text", "ratio"), crossed(correlators.EXACT, [1.0, 1.7]))
def test_elementary_functions(text, ratio):
    exact = correlators.EXACT[text]
    a, r = (k.ravel() for k in np.meshgrid(VARIANCES, CORRELATIONS))
    b = ratio * a
    c = r * np.sqrt(a * b)
    # Price's integral of erf does not cancel.
    with mpmath.workdps(20 if text == "erf(h)" else 80):
        expected = [exact(mpf(p), mpf(q), mpf(s)) for p, q, s in zip(a, b, c, strict=True)]
        sizes = [
            mpmath.sqrt(exact(mpf(p), mpf(p), mpf(p)) * exact(mpf(q), mpf(q), mpf(q)))
            for p, q in zip(a, b, strict=True)
        ]
    # Numbers beyond the range of float64.
    kept = np.array([size < 1e280 for size in sizes])
    values = connected(text)(a[kept], b[kept], c[kept])
    chosen = [(e, size) for e, size, k in zip(expected, sizes, kept, strict=True) if k]
    errors = [abs(v - e) / size for v, (e, size) in zip(values, chosen, strict=True)]
    assert max(errors) < 1e-12


@pytest.mark.parametrize(
    "text", ["exp(-h**2)", "h*exp(-h**2/2)", "max(0,h)", "max(0,h)+1", "sin(h)"]
)
def test_thirty_digits(text):
    """mpmath gives the digits of its precision, whatever cancels."""
    a, b = mpf("1e-3"), mpf("0.6")
    for r in ("1e-12", "-0.3"):
        c = mpf(r) * mpmath.sqrt(a * b)
        with mpmath.workdps(100):
            expected = correlators.EXACT[text](a, b, c)
        with mpmath.workdps(30):
            value = connected(text, "mpmath")(a, b, c)
        with mpmath.workdps(50):
            assert relative_error(value, expected) < 1e-28
