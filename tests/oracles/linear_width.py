"""Deep linear residual networks at every width N, exactly, as polynomials in eps = 1/N.

With q = |h|^2/N and C = a q + c the next q, given q, is C/N times a noncentral chi-square of N
degrees of freedom and noncentrality gamma^2 q N/C. Its cumulants are polynomials in q:

    k1 = gamma^2 q + C,   k2 = eps (2 C^2 + 4 gamma^2 q C),   k3 = eps^2 (8 C^3 + 24 gamma^2 q C^2).
"""

from sympy import Poly, Rational, symbols

eps, q = symbols("eps q")


def conditional_moments(G, C, e):
    """E of 1 and the next q, q^2 and q^3, given q, for G = gamma^2 and 1/N = e."""
    k1, k2 = G * q + C, e * (2 * C**2 + 4 * G * q * C)
    k3 = e**2 * (8 * C**3 + 24 * G * q * C**2)
    return [1, k1, k2 + k1**2, k3 + 3 * k1 * k2 + k1**3]


def joint_cumulants(moment):
    """Of one to three layers, from the means of products of the C of layers."""

    def cumulant(*layers):
        if len(layers) == 1:
            return moment(layers)
        if len(layers) == 2:
            return moment(layers) - moment(layers[:1]) * moment(layers[1:])
        i, j, k = (moment((layer,)) for layer in layers)
        pairs = [moment((layers[x], layers[y])) for x, y in ((1, 2), (0, 2), (0, 1))]
        return moment(layers) - i * pairs[0] - j * pairs[1] - k * pairs[2] + 2 * i * j * k

    return cumulant


def kernel_cumulants(K0, weights, biases, skips):
    """Joint cumulants of C^(0) ... C^(L+1) up to the third: (l, ...) -> Poly in eps.

    a_l and c_l are for l = 1, ..., L + 1, skips are gamma_l for l = 1, ..., L.
    """
    K0 = Rational(K0)
    a, c = ([*map(Rational, values)] for values in (weights, biases))
    g = [*map(Rational, skips)]

    def step(layer, f):
        """E[f(q_layer) | q_(layer-1)] for a polynomial f of degree up to three."""
        if layer == 0:
            raw = conditional_moments(0, K0, eps)
        else:
            raw = conditional_moments(g[layer - 1] ** 2, a[layer - 1] * q + c[layer - 1], eps)
        coefficients = Poly(f, q).all_coeffs()[::-1]
        return sum(x * raw[n] for n, x in enumerate(coefficients))

    def moment(layers):
        """E of the product of the C of some layers, the latest averaged first."""
        value = 1
        for layer in range(max(layers), 0, -1):
            value *= (a[layer - 1] * q + c[layer - 1]) ** layers.count(layer)
            value = step(layer - 1, Poly(value, q, eps).as_expr())
        return Poly(value, eps) * K0 ** layers.count(0)

    return joint_cumulants(moment)
