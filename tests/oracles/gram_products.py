"""Deep linear networks of two matrices without a norm: exact moments of their Gram matrices.

x' = γ x + ρ W' W x with W, W' of Gaussian entries of variance s/N, s'/M, N units and M hidden
ones. Given R = x xᵀ/N, C is a times a Wishart matrix of M degrees of freedom over M, a = ρ² s s',
and R' a noncentral one of N. Isserlis' theorem gives ⟨R_αβ R_γδ⟩, T[α, β, γ, δ], layer by layer.
"""

import numpy as np


def paired(T):
    """T_αγβδ + T_αδβγ."""
    return T.transpose(0, 2, 1, 3) + T.transpose(0, 2, 3, 1)


def products(T, degrees):
    """⟨S_αβ S_γδ⟩ of Wishart matrices of so many degrees of freedom over them, given their mean."""
    return T + paired(T) / degrees


def gram_moments(K0, depth, a, skip, width, hidden):
    """⟨R^(l)⟩, ⟨C^(l)⟩, and the variances of both, of the layers l = 0, ..., L, (L + 1, P, P)."""
    own = np.einsum("ab,cd->abcd", K0, K0)
    T, mean = products(own, width), np.asarray(K0, dtype=float)
    C_mean, C_second = mean, own
    rows = []
    for l in range(depth + 1):
        if l:
            C_mean, C_second = a * mean, a**2 * products(T, hidden)
            # R C in all four positions that two factors x f of one unit give.
            mixed = skip**2 * a * (paired(T) + paired(T.transpose(1, 0, 2, 3)))
            mean = (skip**2 + a) * mean
            T = (skip**4 + 2 * skip**2 * a) * T + products(C_second, width) + mixed / width
        variances = (
            np.einsum("abab->ab", second) - first**2
            for second, first in ((T, mean), (C_second, C_mean))
        )
        rows.append((mean, C_mean, *variances))
    return tuple(map(np.array, zip(*rows, strict=True)))
