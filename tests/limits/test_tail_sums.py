"""Sums over infinitely many layers."""

import math

import numpy as np
import pytest
from mpmath import mp

from fieldtheory.limits.tail_sums import TailSum
from tests.oracles.depth_limit import decreasing, decreasing_tail

SUMS = {
    "squares": (lambda l: l**-2.0, lambda n: mp.zeta(2, n + 1)),
    "nearly 1/l": (lambda l: l**-1.02, lambda n: mp.zeta(mp.mpf("1.02"), n + 1)),
    "high power": (lambda l: l**-7.0, lambda n: mp.zeta(7, n + 1)),
    "geometric": (lambda l: 0.98**l, lambda n: mp.mpf("0.98") ** (n + 1) / mp.mpf("0.02")),
    "decreasing": (decreasing, decreasing_tail),
}


@pytest.mark.parametrize("first", [256, 1000])
@pytest.mark.parametrize("name", SUMS)
def test_sums(name, first):
    f, exact = SUMS[name]
    tail = TailSum(f, first)
    assert tail.whole == pytest.approx(float(exact(first)), rel=3e-12)
    for x in (first + 1, 3 * first):
        assert tail.after(x) == pytest.approx(float(exact(x)), rel=3e-12)
    assert tail.after(np.inf) == 0


@pytest.mark.parametrize(
    "f, exact",
    [
        (lambda l: 1 / (l * math.log(l) ** 3), lambda u: 1 / (2 * u**2)),
        (lambda l: 1 / (l * math.log(l) ** 1.5), lambda u: 2 / u**0.5),
        (
            lambda l: (1 + 1 / math.log(l)) / (l * math.log(l) ** 2),
            lambda u: 1 / u + 1 / (2 * u**2),
        ),
        (lambda l: 1 / (l**1.3 * math.log(l) ** 2), None),
    ],
)
def test_slow_sums(f, exact):
    """The integral is known, to which the sum has a correction from 1/24 of the slope on."""
    tail = TailSum(f, 1000)
    middle = 1000.5
    u = math.log(middle)
    integral = exact(u) if exact else quad_of(f, u)
    slope = (f(middle + 1) - f(middle - 1)) / 2
    assert tail.whole == pytest.approx(integral + slope / 24, rel=1e-12)


def quad_of(f, u):
    nodes, weights = np.polynomial.legendre.leggauss(60)
    v = u + 50 + 50 * nodes
    return float(
        50 * sum(w * math.exp(x) * f(math.exp(x)) for w, x in zip(weights, v, strict=True))
    )


@pytest.mark.parametrize(
    "f, reason",
    [
        (lambda l: 1.0, "diverges"),
        (lambda l: 1 / l, "diverges"),
        (lambda l: l**-0.98, "diverges"),
        (lambda l: 1 / (l * math.log(l)), "diverges"),
        (lambda l: 1 / (l * math.log(l) * math.log(math.log(l)) ** 2), "too slowly"),
        (lambda l: (1 + 0.5 * math.sin(l)) / l**2, "smooth"),
        (lambda l: (1 + int(l) % 2) / l**2, "smooth"),
        (lambda l: math.nan, "nan"),
    ],
)
def test_what_is_refused(f, reason):
    with pytest.raises(ValueError, match=reason):
        _ = TailSum(f, 512).whole


@pytest.mark.parametrize("name", ["squares", "nearly 1/l", "decreasing"])
def test_steps_at_what_remains(name):
    f, _ = SUMS[name]
    tail = TailSum(f, 256)
    for x in (256, 300.5, 1e3, 1e6):
        assert tail.step(tail.after(x)) == pytest.approx(f(x + 0.5), rel=1e-6)
    assert tail.step(0.0) == 0
