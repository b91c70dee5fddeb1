"""Averages of signs of Gaussian variables with mpmath, however nearly some determine others."""

import mpmath as mp


def of_two(K, i, j):
    """⟨s_i s_j⟩."""
    return 2 / mp.pi * mp.asin(K[i, j] / mp.sqrt(K[i, i] * K[j, j]))


def _given(K, i, j, p, q):
    """The covariance of h_p and h_q given h_i = h_j = 0."""
    across = K[p, i] * (K[j, j] * K[q, i] - K[i, j] * K[q, j])
    across += K[p, j] * (K[i, i] * K[q, j] - K[i, j] * K[q, i])
    return K[p, q] - across / (K[i, i] * K[j, j] - K[i, j] ** 2)


def of_four(K):
    """⟨s_0 s_1 ; s_2 s_3⟩: the covariances of the groups times t = 1 − e^(−w) (Plackett 1954)."""

    def slope(w):
        rest = mp.exp(-w)
        M = K.copy()
        for i in (0, 1):
            for j in (2, 3):
                M[i, j] = M[j, i] = (1 - rest) * K[i, j]
        total = mp.mpf(0)
        for i in (0, 1):
            for j in (2, 3):
                p, q = 1 - i, 5 - j
                of_p, of_q = (_given(M, i, j, one, one) for one in (p, q))
                angle = mp.asin(_given(M, i, j, p, q) / mp.sqrt(of_p * of_q))
                det = M[i, i] * M[j, j] - M[i, j] ** 2
                total += K[i, j] / mp.sqrt(det) * angle
        return (2 / mp.pi) ** 2 * total * rest

    # As far as the precision sees.
    cuts = [5 * n for n in range(int(mp.mp.prec * mp.log(2) / 5) + 1)]
    return mp.quad(slope, cuts, method="gauss-legendre", maxdegree=4)
