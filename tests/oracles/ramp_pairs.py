"""The mean shift of two inputs of φ(h) = s₊ max(h, 0) + s₋ min(h, 0), one layer, to all digits.

Averages of products of φ, φ' and φ'' = (s₊ − s₋) δ by Stein's lemma, down to moments of signs.
"""

from functools import cache

import mpmath as mp

# What tells copies of a signal apart, relative to its variance; half its digits are seen.
_APART = mp.mpf(10) ** -34


def _given_zero(K, i):
    """The covariance of the others where signal i is zero."""
    rest = [j for j in range(len(K)) if j != i]
    return [[K[a][b] - K[a][i] * K[b][i] / K[i][i] for b in rest] for a in rest]


def _arc(K, a, b):
    """⟨sgn(h_a) sgn(h_b)⟩."""
    c = K[a][b] / mp.sqrt(K[a][a] * K[b][b])
    return 2 / mp.pi * mp.asin(max(-1, min(1, c)))


@cache
def _four_signs(K):
    """⟨sgn sgn sgn sgn⟩, from two pairs that are independent on."""

    def slope(t):
        T = [[K[a][b] * (t if (a < 2) != (b < 2) else 1) for b in range(4)] for a in range(4)]
        total = mp.mpf(0)
        for i in (0, 1):
            for j in (2, 3):
                root = mp.sqrt(T[i][i] * T[j][j] - T[i][j] ** 2)
                left = _given_zero(_given_zero(T, j), i)
                total += K[i][j] * 2 / (mp.pi * root) * _arc(left, 0, 1)
        return total

    # The integrand has roots at t = 1, whose scales go down to small angles.
    cuts = [0, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    grown = mp.quad(lambda s: slope(1 - s**4) * 4 * s**3, cuts)
    return _arc(K, 0, 1) * _arc(K, 2, 3) + grown


class Ramp:
    """φ' = mean + half sgn."""

    def __init__(self, plus, minus):
        self.mean, self.half = (mp.mpf(plus) + minus) / 2, (mp.mpf(plus) - minus) / 2

    def average(self, orders, K):
        """⟨Π_i φ^(orders_i)(h_i)⟩, orders 0, 1, 2, of four signals at most."""
        n = len(orders)
        if 2 in orders:
            i = orders.index(2)
            factor = 2 * self.half / mp.sqrt(2 * mp.pi * K[i][i])
            return factor * self.average(orders[:i] + orders[i + 1 :], _given_zero(K, i))
        if 0 in orders:
            # φ = h φ', and h is a derivative by every signal.
            i, total = orders.index(0), mp.mpf(0)
            for j in range(n):
                raised = [o + (k == i) + (k == j) for k, o in enumerate(orders)]
                total += K[i][j] * self.average(raised, K)
            return total
        pairs = mp.fsum(_arc(K, a, b) for a in range(n) for b in range(a))
        found = self.mean**n
        if n > 1:
            found += self.mean ** (n - 2) * self.half**2 * pairs
        if n == 4:
            found += self.half**4 * _four_signs(tuple(map(tuple, K)))
        return found


def shift(plus, minus, K0, rho):
    """N (⟨C_12⟩ − C_12*) of the readout, γ = σ_w² = 1, no biases; as `pair_shift` has it."""
    phi, a = Ramp(plus, minus), mp.mpf(rho) ** 2
    K0 = [[mp.mpf(x) for x in row] for row in K0]
    entries = (0, 0), (1, 1), (0, 1)

    def covariance(places):
        def one(p, q):
            (l, i), (k, j) = places[p], places[q]
            shared = K1 if l == k == 1 else K0
            return shared[i][j] * (1 + _APART * (p + 1) * (p == q))

        return [[one(p, q) for q in range(len(places))] for p in range(len(places))]

    off = phi.average([0, 0], covariance([(0, 0), (0, 1)]))
    squares = [(phi.mean**2 + phi.half**2) * K0[i][i] for i in (0, 1)]
    means = [*squares, off]
    K1 = [[K0[i][j] + a * (squares[i] if i == j else off) for j in (0, 1)] for i in (0, 1)]
    total = mp.mpf(0)
    at, units = (K1[0][0], K1[1][1], K1[0][1]), ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    step = (at[0] - abs(at[2])) * mp.mpf(10) ** -12
    slopes = ((2, 0), mp.mpf(1) / 2), ((0, 2), mp.mpf(1) / 2), ((1, 1), mp.mpf(1))
    for e, f in ((e, f) for e in range(3) for f in range(3)):
        places = [(0, i) for i in (*entries[e], *entries[f])]
        fluctuation = phi.average([0] * 4, covariance(places)) - means[e] * means[f]
        curved = mp.diff(
            lambda x, y, c: phi.average([0, 0], [[x, c], [c, y]]),
            at,
            tuple(p + q for p, q in zip(units[e], units[f], strict=True)),
            h=step,
        )
        total += a**2 * curved * fluctuation / 2
    for (orders, factor), entry, mean in zip(slopes, entries, means, strict=True):
        places = [(1, 0), (1, 1), *((0, i) for i in entry)]
        seen = phi.average([*orders, 0, 0], covariance(places))
        alone = phi.average(list(orders), covariance(places[:2]))
        total += a * factor * (seen - alone * mean)
    return total
