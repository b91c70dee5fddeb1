"""Averages of piecewise linear functions of two Gaussian variables, by one integral with mpmath.

F(h) = v + s h + sum_i d_i (h - t_i)_+. Given x, the variable y is Gaussian with mean r x / p and
variance q - r^2 / p, and the averages of F(y) and F'(y) over it are in closed form.
"""

from itertools import pairwise

import mpmath
from mpmath import mp, mpf

from .precise import _nodes

# In standard deviations: how far to integrate, and cuts on either side of a smeared kink.
REACH = 14
AROUND = (-14, -9, -5, -3, -1.5, 0, 1.5, 3, 5, 9, 14)
# Nodes on a panel.
ORDER = 22


def averages(line, kinks, p, q, r):
    """<F(x) F(y)> and <F'(x) F'(y)>; line is (v, s), kinks a list of (t, d), |r| < sqrt(p q)."""
    p, q, r, v, s = map(mpf, (p, q, r, *line))
    kinks = [(mpf(t), mpf(d)) for t, d in kinks]
    dev, slope, spread = mpmath.sqrt(p), r / p, mpmath.sqrt(q - r * r / p)

    def plain(h):
        inside = [(t, d) for t, d in kinks if h > t]
        return v + s * h + sum(d * (h - t) for t, d in inside), s + sum(d for _, d in inside)

    def smeared(mean):
        value, gradient = v + s * mean, s
        for t, d in kinks:
            z = (mean - t) / spread
            above = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
            value += d * ((mean - t) * above + spread * mpmath.npdf(z))
            gradient += d * above
        return value, gradient

    cuts = {mpf(k) for k in range(-REACH, REACH + 1)}
    for t, _ in kinks:
        cuts.add(t / dev)
        if slope:
            cuts |= {(t + k * spread) / (slope * dev) for k in AROUND}
    cuts = sorted(cut for cut in cuts if abs(cut) <= REACH)
    terms = []
    for start, end in pairwise(cuts):
        for z, weight in _nodes(start, end, ORDER):
            weight, x = weight * mpmath.npdf(z), dev * z
            both = zip(plain(x), smeared(slope * x), strict=True)
            terms.append([weight * here * there for here, there in both])
    return [mpmath.fsum(column) for column in zip(*terms, strict=True)]


def digits(value):
    """A reference as a float, checked to carry more digits than that."""
    assert mp.dps >= 20
    return float(value)
