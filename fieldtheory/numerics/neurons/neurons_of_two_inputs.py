"""Order 1/N of two inputs from neurons that interact through their mean, in O(L).

As in `interacting_neurons`, with three kernels C_a, a = 11, 22, 12, in place of one: the signals of
a neuron are h' = γh + f with f ~ N(0, C), and C_a = C_a* + d_a with the mean d_a of the observable
D_a over the neurons of the layer before. With v_a = P_aᵀ 1 and Λ = P_0ᵀ the cumulants of one neuron
and of two,

    N(0, K*) + m/N    and    (1/N) Σ_a (v_a r_aᵀ + r_a v_aᵀ),

obey, with s_a = D_a + Σ_b (v_b (r_b·D_a) + r_b (v_b·D_a)) and δ_a = m·D_a,

    r_a' = γ² Λr_a + Λs_a + (1/2) Σ_b q_ab v_b,
    m'   = Λm + Σ_a (δ_a v_a + P_aᵀ s_a) + (1/2) Σ_ab q_ab P_aᵀ P_bᵀ 1,
    q_ab = ⟨D_a D_b⟩ + Σ_c ((v_c·D_a) (r_c·D_b) + (r_c·D_a) (v_c·D_b)).

Functions are coefficients in products of Hermite polynomials of z, h = Tz with K* = TTᵀ and T lower
triangular. Λ keeps their total order n, and P_a raises it by two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import binom

from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.neurons.hermite_modes import grid_modes, observables, square_of
from fieldtheory.theory.elementary_averages import X, Y

# The two inputs of each entry a.
_ENTRIES = (0, 0), (1, 1), (0, 1)
# Total orders tried one after the other, and by how much what they change must fall each time.
_COUNTS, _FALL = (48, 72, 108, 160, 224, 320), 0.1
# Least 1 − c² of signals; factors of its inverse cancel.
_SINGULAR = 1e-3
# Shifts smaller than this times their natural size are compared with that.
_NATURAL = 1e-5


class FirstOrderOfPair(NamedTuple):
    """What the kernels C^(1), ..., C^(L+1) of two inputs have at order 1/N; entries 11, 22, 12.

    Parameters
    ----------
    shift : ndarray, shape (L + 1, 3)
        N (⟨C⟩ − C*).
    covariance : ndarray, shape (L + 1, 3, 3)
        N Cov(C_a, C_b).
    """

    shift: np.ndarray
    covariance: np.ndarray


class _Orders(NamedTuple):
    """Total orders n below a count, all or the even ones; functions have the shape (n, k).

    Parameters
    ----------
    total : ndarray, shape (n,)
    first : ndarray, shape (k,)
        Of z_1; that of z_2 is the rest.
    """

    total: np.ndarray
    first: np.ndarray

    @property
    def rest(self) -> np.ndarray:
        """Of z_2, shape (n, k); negative where there is nothing."""
        return self.total[:, None] - self.first

    def raised(self, u: np.ndarray, factors: np.ndarray, by: int) -> np.ndarray:
        """u times factors, its total order raised by two and that of z_1 by as many."""
        found, step = np.zeros_like(u), 2 // int(self.total[1])
        size = u.shape[-1] - by
        found[..., step:, by:] = (factors * u)[..., :-step, :size]
        return found


def shift_of_covariance(
    network: LayeredNetwork, layers: LayerCoefficients, K: np.ndarray, allowed: float
) -> np.ndarray | None:
    """N (⟨C_12⟩ − C_12*) of C^(1), ..., C^(L+1), from as many orders as it needs.

    Parameters
    ----------
    network, layers, K
        As in `first_order_of_pair`.
    allowed : float
        Relative error.

    Returns
    -------
    ndarray, shape (L + 1,), or None
        None where few orders do not resolve it: of wide signals, of steep or kinked φ, and of
        nearly parallel signals; and where it is so small, of narrow signals, that it is a
        difference without digits.
    """
    own = np.sqrt(K[:, 0, 0] * K[:, 1, 1])
    if square_of(network).kinks or not own.all():
        return None
    c = K[:, 0, 1] / own
    if (1 - c * c < _SINGULAR).any():
        return None
    rough, before = None, np.inf
    for count in _counts(network, float(K[:, (0, 1), (0, 1)].max()), allowed):
        found = first_order_of_pair(network, layers, K, count)
        shift, q = found.shift[:, 2], found.covariance
        if rough is not None:
            natural = np.abs(c) * np.sqrt(q[:, 0, 0] * q[:, 1, 1]) / own
            size = np.abs(shift) + _NATURAL * natural
            error = float(ratio(np.abs(shift - rough), size).max())
            if error <= allowed:
                small = (np.abs(shift) < _NATURAL * natural) & (shift != 0)
                return None if small.any() else shift
            if error > _FALL * before:
                return None
            before = error
        rough = shift
    return None


def _counts(network: LayeredNetwork, K: float, allowed: float) -> tuple[int, ...]:
    """Total orders to try, from the coefficients of the observable of the widest signal alone."""
    (D,) = observables(square_of(network), np.ones(1), np.array([K]), _COUNTS[-1])
    orders = _COUNTS[-1] // len(D.coefficients) * np.arange(len(D.coefficients))
    # Two derivatives grow as n.
    terms = orders * D.coefficients**2
    missed = np.array([terms[orders >= count].sum() for count in _COUNTS]) / terms.sum()
    if missed[-2] > allowed:
        return ()
    return _COUNTS[int(np.argmax(missed <= np.sqrt(allowed))) :]


def first_order_of_pair(
    network: LayeredNetwork, layers: LayerCoefficients, K: np.ndarray, count: int
) -> FirstOrderOfPair:
    """⟨C⟩ − C* and the covariances of C of all layers at order 1/N.

    Parameters
    ----------
    network : LayeredNetwork
        Of a smooth φ.
    layers : LayerCoefficients
    K : ndarray, shape (L + 1, 2, 2)
        K*^(l) of the signals, positive definite.
    count : int
        Hermite polynomials of total orders below.

    Returns
    -------
    FirstOrderOfPair
    """
    observable = network_entries(network).averages.observable
    g = vectorised([X, Y], observable)
    even = observable.xreplace({X: -X, Y: -Y}) == observable
    first = np.arange(count)
    orders = _Orders(first[:: 2 if even else 1], first)
    roots = np.linalg.cholesky(K)
    shifts, covariances = [], []
    one = np.zeros((len(orders.total), count))
    one[0, 0] = 1.0
    v = _derivatives(orders, roots[0], one)
    r, m = np.zeros_like(v), np.zeros_like(one)
    for l, T in enumerate(roots):
        D, square = _observables(g, orders, T, float(layers.weights[l + 1]))
        vD, rD = (np.einsum("ank,bnk->ab", u, D) for u in (v, r))
        q = square + vD.T @ rD + rD.T @ vD
        shifts.append(np.einsum("nk,ank->a", m, D))
        covariances.append(q)
        if l == network.depth:
            break
        skip, following = float(network.skip_scales[l]), roots[l + 1]
        s = D + np.einsum("ab,ank->bnk", rD, v) + np.einsum("ab,ank->bnk", vD, r)
        moved = _moved(orders, skip * np.linalg.solve(following, T), np.stack([m, *r, *s]))
        v = _derivatives(orders, following, one)
        m = moved[0] + np.einsum("a,ank->nk", shifts[-1], v)
        for a, by_kernels in enumerate(q):
            halved = np.einsum("b,bnk->nk", by_kernels / 2, v)
            m += _derivatives(orders, following, moved[4 + a] + halved)[a]
            r[a] = skip**2 * moved[1 + a] + moved[4 + a] + halved
    return FirstOrderOfPair(np.array(shifts), np.array(covariances))


def _observables(
    g: Callable[..., Any], orders: _Orders, T: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """D_a without their means, shape (3, n, k), and ⟨D_a D_b⟩."""
    modes = grid_modes(len(orders.first), False)
    z, root, basis = modes.nodes, modes.roots, modes.basis
    h = T[0, 0] * z[:, None] + 0 * z, T[1, 0] * z[:, None] + T[1, 1] * z
    values = np.stack([np.broadcast_to(g(h[i], h[j]), h[0].shape) for i, j in _ENTRIES])
    weighted = weight * values * root[:, None] * root
    weighted -= np.einsum("aij,i,j->a", weighted, root, root)[:, None, None] * root[:, None] * root
    coefficients = basis @ weighted @ basis.T
    rest = np.maximum(orders.rest, 0)
    D = np.where(orders.rest >= 0, coefficients[:, orders.first, rest], 0.0)
    return D, np.einsum("aij,bij->ab", weighted, weighted)


def _derivatives(orders: _Orders, T: np.ndarray, u: np.ndarray) -> np.ndarray:
    """P_aᵀ u of u that is with the next layer already, h = Tz there; shape (3, n, k).

    In generating functions a derivative by h is a factor τ = T^{-T} t.
    """
    alpha, beta, delta = 1 / T[0, 0], -T[1, 0] / (T[0, 0] * T[1, 1]), 1 / T[1, 1]
    k, rest = orders.first, np.maximum(orders.rest, -1)
    by_11 = orders.raised(u, np.sqrt((k + 1.0) * (k + 2.0)), 2)
    by_12 = orders.raised(u, np.sqrt((k + 1.0) * (rest + 1.0)), 1)
    by_22 = orders.raised(u, np.sqrt((rest + 1.0) * (rest + 2.0)), 0)
    return np.stack(
        [
            (alpha**2 * by_11 + 2 * alpha * beta * by_12 + beta**2 * by_22) / 2,
            delta**2 * by_22 / 2,
            alpha * delta * by_12 + beta * delta * by_22,
        ]
    )


def _moved(orders: _Orders, A: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Λu, for z' = Az and noise; A is lower triangular, so that orders of z_2 become those of z_1.

    From the generating function: (a t_1 + b t_2)^i (d t_2)^(n−i) in powers of t_1 and t_2.
    """
    count, step = len(orders.first), int(orders.total[1])
    a, b, d = (x ** np.arange(count) for x in (A[0, 0], A[1, 0], A[1, 1]))
    before = orders.first - orders.first[:, None]
    mixed = np.where(before >= 0, a[:, None] * b[np.maximum(before, 0)], 0.0)
    left = d[np.maximum(orders.rest, 0)]
    matrices = _combinations(count, step) * mixed * left[:, None, :]
    return np.moveaxis(matrices @ np.moveaxis(u, 0, -1), -1, 0)


@lru_cache(maxsize=4)
def _combinations(count: int, step: int) -> np.ndarray:
    """√(C(i, k) C(n−k, i−k)), shape (n, k, i); zero beyond k <= i <= n."""
    n, k, i = np.ogrid[0:count:step, 0:count, 0:count]
    possible = (k <= i) & (i <= n)
    both = np.where(possible, binom(i, k) * binom(np.maximum(n - k, 0), np.maximum(i - k, 0)), 0)
    return np.sqrt(both)
