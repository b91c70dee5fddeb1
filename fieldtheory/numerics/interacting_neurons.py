"""The kernels of finite networks from neurons that interact through their mean, in O(L).

The N neurons of a layer share one number, the kernel that the layer before adds,

    h_i^(l+1) = γ h_i^(l) + √C^(l+1) ξ_i,   C^(l+1) = a (1/N) Σ_j g(h_j^(l)) + c      (every N),

and are independent given it. With d = C − C* and P_j ψ(h) = (1/j!) ⟨(∂²/2)^j ψ(γh + f)⟩,
f ~ N(0, C*), the average of a function ψ(h_i^(l+1)) given the layer before is Σ_j d^j (P_j ψ)(h_i),
which is exact. The joint cumulants of n different neurons are of order N^{1−n}; expanding the
averages of products in d, and counting where d contains the same neuron, they close:

    one neuron      N(0, K*) + m_1/N + m_2/N²
    two             g_1/N + g_2/N²,    g_1 = e_2 rᵀ + r e_2ᵀ
    three           g_3/N²,            g_3 = e_2 ⊗ B + e_4 ⊗ E, symmetrised

as densities relative to the Gaussian, with e_n the Hermite polynomials of h/√K*. They are vectors
whose scalar product is the average of the product: coefficients in these polynomials
(`neurons_in_modes`) or values on nodes (`neurons_on_nodes`). In terms of the loops of the field
theory, order 1/N is one loop for ⟨C⟩ and none for Cov C; order 1/N² two loops, one, and none for
the third cumulant.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import factorial, sqrt
from typing import NamedTuple, Protocol, Self

import numpy as np

from fieldtheory.numerics.hermite_modes import Observable

# Σ (u wᵀ + w uᵀ) as the list of its u and w.
Outer = list[tuple[np.ndarray, np.ndarray]]


class Pairs(Protocol):
    """The symmetric functions g_2, B and E of two neurons, see the head of this file."""

    def applied(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three as matrices times u."""

    def moved(self, step: Step, inner: tuple[float, float], added: tuple[Outer, ...]) -> Self:
        """Those of the next layer.

            g_2' = P_0ᵀ g_2 P_0 + X + Xᵀ + ...,    X = P_1ᵀ (D_2 B + D_4 E) P_0
            B' = P_0ᵀ (c² B + β (D_2 B + D_4 E)) P_0 + ...,    E' = c⁴ P_0ᵀ E P_0 + ...

        with D_2, D_4 of ``inner`` and the outer products ``added`` to each.
        """


class Step(Protocol):
    """From the functions of one neuron in one layer to those of the next."""

    @property
    def correlation(self) -> float:
        """c, of the signals of the two layers."""

    @property
    def variance(self) -> float:
        """K*, in the next layer."""

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order in the next layer."""

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ applied to u, or to its columns, for j < 4."""


Layers = Iterable[tuple[Observable, Step | None]]


def of_the_mean(step: Step, j: int) -> float:
    """P_jᵀ applied to the Gaussian is its Hermite polynomial of order 2j times this."""
    scale = 1 / (2 * step.variance) if step.variance > 0 else 0.0
    return sqrt(factorial(2 * j)) / factorial(j) * scale**j


@lru_cache(maxsize=64)
def raising(size: int, stride: int, j: int) -> np.ndarray:
    """√((n+2j)!/(n! (2j)!)) of the orders n that P_jᵀ does not raise beyond the last."""
    orders = stride * np.arange(2 * j // stride, size)
    products = [(orders - i) / (i + 1) for i in range(2 * j)]
    return np.sqrt(np.prod(products, axis=0, dtype=float))


class FirstOrder(NamedTuple):
    """N times what the kernels C^(1), ..., C^(L+1) have at order 1/N, shapes (L + 1,).

    Parameters
    ----------
    shift : ndarray
        N (⟨C⟩ − C*).
    variance : ndarray
        N Var C.
    windows : ndarray, shape (L + 1, 2, 2)
        What the modes in the third and in the last quarter of the orders add to the two.
    missed : ndarray, shape (L + 1,)
        Relative errors of averages on the nodes of the layers.
    """

    shift: np.ndarray
    variance: np.ndarray
    windows: np.ndarray
    missed: np.ndarray


class SecondOrder(NamedTuple):
    """N² times what the kernels C^(1), ..., C^(L+1) have at order 1/N², shapes (L + 1,).

    Parameters
    ----------
    shift, variance, third_cumulant : ndarray
    pairing : ndarray
        N² times the term of ⟨h_i² ; h_j²⟩/K² of two neurons i ≠ j of the hidden layers.
    windows : ndarray, shape (L + 1, 3, 2)
    missed : ndarray, shape (L + 1,)
        As in `FirstOrder`.
    """

    shift: np.ndarray
    variance: np.ndarray
    third_cumulant: np.ndarray
    pairing: np.ndarray
    windows: np.ndarray
    missed: np.ndarray


class _Layer(NamedTuple):
    """What a layer shows of m_1 and r: N ⟨d⟩, N ⟨d²⟩, N ⟨d;h_n⟩, and r·D."""

    shift: float
    variance: float
    coupling: np.ndarray
    overlap: float


def first_order(layers: Layers) -> FirstOrder:
    """⟨C⟩ − C* and Var C of all layers at order 1/N.

        r' = c² Λr + β Λs + (β²/2) q e_2,    m_1' = Λm_1 + δ v_1 + P_1ᵀs + q v_2,    Λ = P_0ᵀ
        s = D + g_1 D,    q = ⟨D²⟩ + D·g_1 D,    δ = D·m_1,    v_j = P_jᵀ 1,  β = v_1·e_2

    Parameters
    ----------
    layers : iterable
        The observable D of every layer l = 0, ..., L and the step to the next one, None at the end.

    Returns
    -------
    FirstOrder
    """
    shifts, variances, last, missed = [], [], [], []
    r = m = np.zeros(0)
    for D, step in layers:
        if not len(r):
            r = m = np.zeros(len(D.coefficients))
        seen = _seen(D, r, m)
        shifts.append(seen.shift)
        variances.append(seen.variance)
        d, space = D.coefficients, D.space
        d2 = d @ space.unit(2)
        last.append([space.windows(m * d), space.windows(2 * d2 * r * d)])
        missed.append(D.missed)
        if step is not None:
            r, m = _next_pair(step, seen, r), _next_mean(step, seen, m)
    return FirstOrder(np.array(shifts), np.array(variances), np.array(last), np.array(missed))


def second_order(layers: Layers, pairs: Pairs) -> SecondOrder:
    """⟨C⟩, Var C and the third cumulant of C of all layers at order 1/N².

    Parameters
    ----------
    layers : iterable
        As in `first_order`.
    pairs : Pairs
        Those of the first layer, which vanish.

    Returns
    -------
    SecondOrder
    """
    found, last, missed = [], [], []
    state = None
    for D, step in layers:
        if state is None:
            zero = np.zeros(len(D.coefficients))
            state = _State(zero, zero, zero, pairs)
        seen = _seen(D, state.r, state.m1)
        more = _seen_twice(D, seen, state)
        e2 = D.space.unit(2)
        pairing = 2 * (e2 @ state.pairs.applied(e2)[0])
        found.append((more.shift, more.variance, more.third_cumulant, pairing))
        last.append([D.space.windows(terms) for terms in more.terms])
        missed.append(D.missed)
        if step is not None:
            state = _next_state(step, D, seen, more, state)
    shift, variance, third_cumulant, pairing = np.array(found).T
    return SecondOrder(shift, variance, third_cumulant, pairing, np.array(last), np.array(missed))


class _State(NamedTuple):
    """The cumulants of one neuron, r, and those of two and three neurons."""

    m1: np.ndarray
    m2: np.ndarray
    r: np.ndarray
    pairs: Pairs


class _Second(NamedTuple):
    """What a layer shows at order 1/N².

    Parameters
    ----------
    shift, variance, third_cumulant : float
        N² times the terms of ⟨d⟩, ⟨d;d⟩ and ⟨d;d;d⟩.
    coupling, twice : ndarray
        N² times those of ⟨d;h_n⟩ and ⟨d;d;h_n⟩.
    h2D, rD, BD, ED : ndarray
        The products e_2 D and r D, and the matrices applied to D.
    terms : tuple of ndarray, shape (n,)
        What every order adds to the first three.
    """

    shift: float
    variance: float
    third_cumulant: float
    coupling: np.ndarray
    twice: np.ndarray
    h2D: np.ndarray
    rD: np.ndarray
    BD: np.ndarray
    ED: np.ndarray
    terms: tuple[np.ndarray, ...]


def _seen(D: Observable, r: np.ndarray, m: np.ndarray) -> _Layer:
    d, e2 = D.coefficients, D.space.unit(2)
    overlap, d2 = float(r @ d), d @ e2
    variance = D.square + 2 * d2 * overlap
    return _Layer(float(m @ d), variance, d + d2 * r + overlap * e2, overlap)


def _next_pair(step: Step, seen: _Layer, r: np.ndarray) -> np.ndarray:
    beta = of_the_mean(step, 1)
    following = step.to_next(0, step.correlation**2 * r + beta * seen.coupling)
    return following + beta**2 / 2 * seen.variance * step.unit(2)


def _next_mean(step: Step, seen: _Layer, m: np.ndarray) -> np.ndarray:
    following = step.to_next(0, m) + step.to_next(1, seen.coupling)
    following += seen.shift * of_the_mean(step, 1) * step.unit(2)
    return following + seen.variance * of_the_mean(step, 2) * step.unit(4)


def _seen_twice(D: Observable, seen: _Layer, state: _State) -> _Second:
    """What d shows of the cumulants; where it contains the same neuron, products with D occur."""
    d, space, values = D.coefficients, D.space, D.values
    e2, e4 = space.unit(2), space.unit(4)
    d2, d4, overlap = d @ e2, d @ e4, seen.overlap

    def product(u: np.ndarray) -> np.ndarray:
        return space.centred(space.multiply(values, u))

    square = space.centred(space.project(values**2))
    square2 = square @ e2
    h2D, rD = product(e2), product(state.r)
    g2D, BD, ED = state.pairs.applied(d)
    coupling = product(state.m1) + g2D - (seen.coupling - d)
    variance = square @ state.m1 + d @ g2D - 2 * d2 * overlap
    twice = square + 2 * (overlap * h2D + d2 * rD) + square2 * state.r + 2 * (d2 * BD + d4 * ED)
    twice += (state.r @ square + d @ BD) * e2 + (d @ ED) * e4
    third = space.mean(values**3) + 3 * (square2 * overlap + (state.r @ square) * d2)
    third += 3 * (d2 * (d @ BD) + d4 * (d @ ED))
    shift = float(state.m2 @ d)
    terms = state.m2 * d, square * state.m1 + d * g2D, 3 * d * (square2 * state.r + d2 * BD)
    return _Second(shift, float(variance), float(third), coupling, twice, h2D, rD, BD, ED, terms)


def _next_state(step: Step, D: Observable, seen: _Layer, more: _Second, state: _State) -> _State:
    """The cumulants of the next layer, term by term in the powers of d of every neuron."""
    before2, before4 = (D.space.unit(order) for order in (2, 4))
    d2, d4 = D.coefficients @ before2, D.coefficients @ before4
    delta, q, kappa = seen.shift, seen.variance, more.third_cumulant
    to_next, c2 = step.to_next, step.correlation**2
    beta, beta2, beta3, beta4 = (of_the_mean(step, j) for j in (1, 2, 3, 4))
    e2, e4 = step.unit(2), step.unit(4)
    v1, v2, v3, v4 = beta * e2, beta2 * e4, beta3 * step.unit(6), beta4 * step.unit(8)
    s, r, m1 = seen.coupling, state.r, state.m1
    s0, r0, twice0, h2D0, ED0 = (to_next(0, u) for u in (s, r, more.twice, more.h2D, more.ED))
    e20, e40 = c2 * e2, c2**2 * e4
    both = more.rD + more.BD
    both0 = to_next(0, both)
    s1, r1, m11, twice1, e21 = (to_next(1, u) for u in (s, r, m1, more.twice, before2))
    s2 = to_next(2, s)

    # Half of g_2: of two neurons the first with at least as many factors d.
    half = [
        (to_next(1, more.h2D), r0),
        (r1, h2D0),
        (to_next(1, both), e20),
        (e21, both0),
        (to_next(1, more.ED), e40),
        (to_next(1, before4), ED0),
        (delta * e21, r0),
        (delta * r1, e20),
        (v1, to_next(0, more.coupling) + q * m11 + twice1 + delta * s1),
        (m11, s0),
        (v2, twice0 + 2 * delta * s0 + 2 * q * s1),
        (2 * s2, s0),
        (q * to_next(2, before2), r0),
        (q * to_next(2, r), e20),
        (3 * q * v3, s0 + q * v1),
        ((kappa + 2 * delta * q) * v2 + 3 * q * s2, v1),
        (more.variance / 2 * v1, v1),
        (q * e21, r1),
        (s1 / 2, s1),
        (q * q * v2, v2),
    ]
    lowest = e21 @ e4
    three = [
        (beta * h2D0, r0),
        (beta * both0, e20),
        (beta * ED0, e40),
        (c2 * r1 + beta * s1, s0),
        (e2, beta**2 / 2 * twice0 + beta * q * c2 * r1 + beta**2 * q * s1),
        (beta * q * lowest * e4, r0),
        (beta**3 * kappa / 6 * e2, e2),
    ]
    four_times = [
        (lowest * s0, r0),
        (beta2 * s0, s0),
        (2 * q * beta2 * beta * e2, s0),
        (q**2 * beta2 * beta**2 * e2, e2),
    ]
    m2 = to_next(0, state.m2) + more.shift * v1 + delta * m11 + to_next(1, more.coupling)
    m2 += (more.variance + delta**2) * v2 + q * to_next(2, m1) + 2 * delta * s2
    m2 += to_next(2, more.twice) + (kappa + 3 * delta * q) * v3 + 3 * q * to_next(3, s)
    m2 += 3 * q**2 * v4
    return _State(
        m1=_next_mean(step, seen, m1),
        m2=m2,
        r=_next_pair(step, seen, r),
        pairs=state.pairs.moved(step, (d2, d4), (half, three, four_times)),
    )
