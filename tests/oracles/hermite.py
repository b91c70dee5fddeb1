"""Averages from Hermite coefficients of phi and phi^2 alone: no derivative of phi is needed.

With phi_n(K) = <phi(sqrt(K) z) He_n(z)>/sqrt(n!) and c the correlation of x and y,

    <phi(x) phi(y)> = sum_n c^n phi_n phi_n
    d/dKxy: sum_n n c^(n-1) phi_n phi_n / sqrt(Kxx Kyy)
    d/dKxx = (1/2) <phi''(x) phi(y)> = sum_n c^n sqrt((n+1)(n+2)) phi_(n+2) phi_n / (2 Kxx)

M(K) = <phi^2>, M'(K) = F_2/(sqrt(2) K) with F = phi^2, and <F(x);F(y)> = sum_(n>0) c^n F_n F_n.
Jumps and kinks need the panels to end there, and many coefficients.
"""

import numpy as np

ORDER = 1500
# Hermite functions of the highest order reach to sqrt(4 ORDER); beyond, coefficients are zero.
REACH = 2 * np.sqrt(ORDER) + 6


def coefficients(f, K, kinks=(), order=ORDER):
    """f_n for n < order, by Gauss-Legendre panels of width 0.25 that end at the kinks."""
    dev = np.sqrt(K)
    cuts = {*np.arange(-REACH, REACH, 0.25), REACH, *(k / dev for k in kinks)}
    cuts = np.array(sorted(c for c in cuts if abs(c) <= REACH))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(cuts)[:, None] / 2
    z = ((cuts[1:] + cuts[:-1])[:, None] / 2 + half * nodes).ravel()
    # Split evenly between the two, exp(-z^2/2) neither under- nor overflows in the recursion.
    bell = np.exp(-z * z / 4) / (2 * np.pi) ** 0.25
    with np.errstate(all="ignore"):
        values = np.where(bell > 0, (half * weights).ravel() * f(dev * z) * bell, 0.0)
    found, before, now = np.empty(order), np.zeros_like(z), bell
    for n in range(order):
        found[n] = values @ now
        before, now = now, (z * now - np.sqrt(n) * before) / np.sqrt(n + 1)
    return found


class Averages:
    """The averages of one activation; coefficients are kept by variance."""

    def __init__(self, phi, kinks=()):
        self.functions = {
            "phi": phi,
            "square": lambda h: phi(h) ** 2,
            "fourth": lambda h: phi(h) ** 4,
        }
        self.kinks, self.kept = kinks, {}

    def of(self, which, K):
        key = which, float(K)
        if key not in self.kept:
            self.kept[key] = coefficients(self.functions[which], K, self.kinks)
        return self.kept[key]

    def moment(self, K):
        return self.of("square", K)[0]

    def slope(self, K):
        return self.of("square", K)[2] / (np.sqrt(2) * K)

    def connected(self, Kxx, Kyy, Kxy):
        if Kxx == Kyy == Kxy:
            return self.of("fourth", Kxx)[0] - self.of("square", Kxx)[0] ** 2
        return self._sum("square", Kxx, Kyy, Kxy)[1:].sum()

    def product(self, Kxx, Kyy, Kxy):
        return self._sum("phi", Kxx, Kyy, Kxy).sum()

    def product_slopes(self, Kxx, Kyy, Kxy):
        """Derivatives of <phi phi> by (Kxx, Kyy, Kxy)."""
        n = np.arange(ORDER)
        terms = self._sum("phi", Kxx, Kyy, Kxy)
        own = []
        for first, second in ((Kxx, Kyy), (Kyy, Kxx)):
            raised = np.sqrt((n + 1) * (n + 2))[:-2] * self.of("phi", first)[2:] / first
            powers = (Kxy / np.sqrt(Kxx * Kyy)) ** n[:-2]
            own.append((powers * raised * self.of("phi", second)[:-2]).sum() / 2)
        return *own, (n[1:] * terms[1:]).sum() / Kxy

    def _sum(self, which, Kxx, Kyy, Kxy):
        powers = (Kxy / np.sqrt(Kxx * Kyy)) ** np.arange(ORDER)
        return powers * self.of(which, Kxx) * self.of(which, Kyy)
