"""Deep networks of two inputs with φ = h for |h| > 1/2, else 0, in many digits of mpmath.

⟨φφ⟩ is one integral over a signal, of the other one given it; ⟨φ'φ'⟩ has δ-functions at ±1/2,
whose integrals are densities and error functions. Imports nothing of the package.
"""

from mpmath import mp

LAMBDA, DIGITS = mp.mpf("0.5"), 40


def layers(depth, skip, weight, bias, K_xx, K_yy, K_xy):
    """1 − c of layers 1, 2, ..., and the responses of the covariance there."""
    with mp.workdps(DIGITS):
        skip, weight, bias = (mp.mpf(v) for v in (skip**2, weight, bias))
        p, q, r = (mp.mpf(v) for v in (K_xx, K_yy, K_xy))
        chi, found = mp.one, []
        for _ in range(depth):
            chi *= skip + weight * slope(p, q, r)
            r = skip * r + weight * product(p, q, r) + bias
            p, q = (skip * k + weight * moment(k) + bias for k in (p, q))
            found.append((1 - r / mp.sqrt(p * q), chi))
        return zip(*found, strict=True)


def _above(x):
    """The probability of a normal number above x."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def moment(K):
    a = LAMBDA / mp.sqrt(K)
    return 2 * K * (a * mp.npdf(a) + _above(a))


def product(p, q, r):
    width, of_x = mp.sqrt(q - r * r / p), mp.sqrt(p)

    def given(mean):
        up, down = (LAMBDA - mean) / width, (LAMBDA + mean) / width
        return mean * (_above(up) + _above(down)) + width * (mp.npdf(up) - mp.npdf(down))

    return _beyond(lambda z: of_x * z * given(r * z / of_x), p, r, width)


def slope(p, q, r):
    width = mp.sqrt(q - r * r / p)

    def beyond(mean, width):
        return _above((LAMBDA - mean) / width) + _above((LAMBDA + mean) / width)

    found = _beyond(lambda z: beyond(r * z / mp.sqrt(p), width), p, r, width)
    for own, other in ((p, q), (q, p)):
        left = mp.sqrt(other - r * r / own)
        density = mp.npdf(LAMBDA, 0, mp.sqrt(own))
        found += 2 * LAMBDA * density * beyond(LAMBDA * r / own, left)
    both = sum(mp.npdf(b, LAMBDA * r / p, width) for b in (LAMBDA, -LAMBDA))
    return found + 2 * LAMBDA**2 * mp.npdf(LAMBDA, 0, mp.sqrt(p)) * both


def _beyond(f, p, r, width):
    """⟨f(z) θ(|x| − 1/2)⟩ of x = √p z and an even f, which changes where the other signal jumps."""
    first, jump = LAMBDA / mp.sqrt(p), LAMBDA * mp.sqrt(p) / abs(r)
    step = width * mp.sqrt(p) / abs(r)
    near = [jump + k * step for k in (-9, -5, -2, 0, 2, 5, 9)]
    cuts = sorted({first, *(k for k in near if k > first)})
    cuts += [cuts[-1] + k for k in (1, 4, 12)]
    return 2 * mp.quad(lambda z: mp.npdf(z) * f(z), cuts, maxdegree=6)
