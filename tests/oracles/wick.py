"""Moments of a zero-dimensional field theory by brute force, in exact fractions.

    <c^E> = integral over (c, c~) of c^E exp(sum over n, m of V_nm c~^n c^m / (n! m!) / eps)

expanded in eps about Gaussian fields with <cc> = eps A, <c c~> = eps B, <c~ c~> = 0. Every moment
of the Gaussian is counted by pairing, every power of the interaction multiplied out.
"""

from fractions import Fraction
from math import comb, factorial


def gaussian_moment(p, q, A, B):
    """<c^p c~^q>: the conjugates choose partners among the c, the others pair up."""
    rest = p - q
    if rest < 0 or rest % 2:
        return Fraction(0)
    chosen = Fraction(factorial(p), factorial(rest)) * B**q
    pairings = Fraction(factorial(rest), 2 ** (rest // 2) * factorial(rest // 2))
    return chosen * pairings * A ** (rest // 2)


def moments(vertices, A, B, most, order):
    """<c^E> for E = 0 ... most as lists of coefficients of sqrt(eps)^k, k = 0 ... order.

    Fields are in units of sqrt(eps), so that a vertex of n + m fields brings sqrt(eps)^(n + m - 2).
    Not normalised: E = 0 is the partition function.
    """
    # Terms of exp(interaction): (power of c, of c~, of sqrt(eps)) -> coefficient.
    power = {(0, 0, 0): Fraction(1)}
    total = dict(power)
    for k in range(1, order + 1):
        new = {}
        for (p, q, e), weight in power.items():
            for (n, m), V in vertices.items():
                key = (p + m, q + n, e + n + m - 2)
                if key[2] <= order:
                    value = weight * V / (factorial(n) * factorial(m) * k)
                    new[key] = new.get(key, 0) + value
        power = new
        for key, weight in power.items():
            total[key] = total.get(key, 0) + weight
    found = []
    for E in range(most + 1):
        series = [Fraction(0)] * (order + 1)
        for (p, q, e), weight in total.items():
            series[e] += weight * gaussian_moment(p + E, q, A, B)
        found.append(series)
    return found


def cumulants(vertices, A, B, most, order):
    """<c>, <c;c>, ... up to ``most``, each a list of coefficients of sqrt(eps)^k."""
    partition, *raw = moments(vertices, A, B, most, order)
    normed = [[Fraction(1), *[Fraction(0)] * order]]
    for series in raw:
        quotient = []
        for k in range(order + 1):
            rest = series[k] - sum(quotient[j] * partition[k - j] for j in range(k))
            quotient.append(rest / partition[0])
        normed.append(quotient)
    found = []
    for n in range(1, most + 1):
        value = list(normed[n])
        for j in range(1, n):
            product = _times(found[j - 1], normed[n - j], order)
            value = [v - comb(n - 1, j - 1) * x for v, x in zip(value, product, strict=True)]
        found.append(value)
    return found


def _times(one, other, order):
    return [sum(one[j] * other[k - j] for j in range(k + 1)) for k in range(order + 1)]
