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

as coefficients in the Hermite polynomials of h/√K*, in which P_j lowers the order by 2j and
multiplies by powers of the correlation of the two layers. In terms of the loops of the field
theory, order 1/N is one loop for ⟨C⟩ and none for Cov C; order 1/N² two loops, one, and none for
the third cumulant.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial
from typing import NamedTuple

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.hermite_modes import Observable, observables, square_of


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
    modes : int
        Orders of Hermite polynomials used.
    """

    shift: np.ndarray
    variance: np.ndarray
    windows: np.ndarray
    missed: np.ndarray
    modes: int


class SecondOrder(NamedTuple):
    """N² times what the kernels C^(1), ..., C^(L+1) have at order 1/N², shapes (L + 1,).

    Parameters
    ----------
    shift, variance, third_cumulant : ndarray
    pairing : ndarray
        N² times the term of ⟨h_i² ; h_j²⟩/K² of two neurons i ≠ j of the hidden layers.
    windows : ndarray, shape (L + 1, 3, 2)
    missed : ndarray, shape (L + 1,)
    modes : int
        As in `FirstOrder`.
    """

    shift: np.ndarray
    variance: np.ndarray
    third_cumulant: np.ndarray
    pairing: np.ndarray
    windows: np.ndarray
    missed: np.ndarray
    modes: int


class _Step(NamedTuple):
    """From the modes of one layer to those of the next.

    Parameters
    ----------
    powers : ndarray, shape (n,)
        cⁿ, c the correlation of the two signals.
    falling : list of ndarray, shape (n,)
        √(n!/(n−2j)!)/j! for j = 0, ..., 4.
    scale : float
        1/(2K'), K' the variance in the next layer.
    stride : int
        Between the orders kept.
    """

    powers: np.ndarray
    falling: list[np.ndarray]
    scale: float
    stride: int

    def lowering(self, j: int) -> np.ndarray:
        """What P_j multiplies the modes by, besides the powers: √(n!/(n−2j)!)/(j! (2K')^j)."""
        return self.falling[j] * self.scale**j

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ applied to the coefficients u."""
        shift = 2 * j // self.stride
        found = np.zeros_like(u)
        found[shift:] = self.lowering(j)[shift:] * self.powers[:-shift] * u[:-shift]
        return found

    def of_the_mean(self, j: int) -> float:
        """The one coefficient that P_jᵀ gives the Gaussian, of order 2j."""
        return float(self.falling[j][2 * j // self.stride]) * self.scale**j


class _Layer(NamedTuple):
    """What a layer shows of m_1 and r: N ⟨d⟩, N ⟨d²⟩, N ⟨d;h_n⟩, and r·D."""

    shift: float
    variance: float
    coupling: np.ndarray
    overlap: float


def first_order(
    network: LayeredNetwork, layers: LayerCoefficients, K: np.ndarray, count: int
) -> FirstOrder:
    """⟨C⟩ − C* and Var C of all layers at order 1/N, with Hermite polynomials below ``count``.

        r' = c² Λr + β Λs + (β²/2) q e_2,    m_1' = Λm_1 + δ v_1 + P_1ᵀs + q v_2
        s = D + g_1 D,    q = ⟨D²⟩ + D·g_1 D,    δ = D·m_1,    v_j = P_jᵀ 1,  β = v_1·e_2

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    K : ndarray, shape (L + 1,)
        K*^(l) of the signals.
    count : int

    Returns
    -------
    FirstOrder
    """
    shifts, variances, last, missed = [], [], [], []
    r = m = np.zeros(0)
    for D, step in _layers(network, layers, K, count):
        if not len(r):
            r = m = np.zeros(len(D.coefficients))
        seen = _seen(D, r, m)
        shifts.append(seen.shift)
        variances.append(seen.variance)
        d, two = D.coefficients, _places(D.modes.orders)[0]
        last.append([windows(m * d), windows(2 * d[two] * r * d)])
        missed.append(D.missed)
        if step is not None:
            r, m = _next_pair(step, seen, r), _next_mean(step, seen, m)
    errors = np.array(last), np.array(missed)
    return FirstOrder(np.array(shifts), np.array(variances), *errors, count)


def second_order(
    network: LayeredNetwork, layers: LayerCoefficients, K: np.ndarray, count: int
) -> SecondOrder:
    """⟨C⟩, Var C and the third cumulant of C of all layers at order 1/N².

    Parameters
    ----------
    network, layers, K, count
        As in `first_order`.

    Returns
    -------
    SecondOrder
    """
    found, last, missed = [], [], []
    state = None
    for D, step in _layers(network, layers, K, count):
        state = _State.start(len(D.coefficients)) if state is None else state
        seen = _seen(D, state.r, state.m1)
        more = _seen_twice(D, seen, state)
        two, _ = _places(D.modes.orders)
        pairing = 2 * state.g2[two, two]
        found.append((more.shift, more.variance, more.third_cumulant, pairing))
        last.append([windows(terms) for terms in more.terms])
        missed.append(D.missed)
        if step is not None:
            state = _next_state(step, D, seen, more, state)
    shift, variance, third_cumulant, pairing = np.array(found).T
    errors = np.array(last), np.array(missed)
    return SecondOrder(shift, variance, third_cumulant, pairing, *errors, count)


class _State(NamedTuple):
    """The cumulants of one, two and three neurons, see the head of this file; g_2 is g2."""

    m1: np.ndarray
    m2: np.ndarray
    r: np.ndarray
    g2: np.ndarray
    B: np.ndarray
    E: np.ndarray

    @staticmethod
    def start(size: int) -> _State:
        """Independent Gaussian neurons."""
        return _State(*[np.zeros(size)] * 3, *[np.zeros((size, size))] * 3)


class _Second(NamedTuple):
    """What a layer shows at order 1/N².

    Parameters
    ----------
    shift, variance, third_cumulant : float
        N² times the terms of ⟨d⟩, ⟨d;d⟩ and ⟨d;d;d⟩.
    coupling, twice : ndarray
        N² times those of ⟨d;h_n⟩ and ⟨d;d;h_n⟩.
    h2D, rD, BD, ED : ndarray
        Coefficients of the products h_2 D and (Σ_n r_n h_n) D, and the matrices applied to D.
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


def _layers(
    network: LayeredNetwork, layers: LayerCoefficients, K: np.ndarray, count: int
) -> Iterator[tuple[Observable, _Step | None]]:
    """The observable of every layer l = 0, ..., L and the step to the next one."""
    weights, square = layers.weights[1:], square_of(network)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.where(K[1:] > 0, 1 / (2 * K[1:]), 0.0)
        correlations = np.where(K[1:] > 0, network.skip_scales * np.sqrt(K[:-1] / K[1:]), 0.0)
    falling: list[np.ndarray] = []
    for l, D in enumerate(observables(square, weights, K, count)):
        stride = int(D.modes.orders[1])
        orders = stride * np.arange(len(D.coefficients))
        falling = falling or [_falling(orders, j) for j in range(5)]
        if l == network.depth:
            yield D, None
        else:
            yield D, _Step(correlations[l] ** orders, falling, scales[l], stride)


def _falling(orders: np.ndarray, j: int) -> np.ndarray:
    """√(n!/(n−2j)!)/j!."""
    product = np.prod([np.maximum(orders - i, 0) for i in range(2 * j)], axis=0, dtype=float)
    return np.sqrt(product) / factorial(j) * np.ones(len(orders))


def windows(terms: np.ndarray) -> list[float]:
    """Sums of the sizes of the terms in the third and in the last quarter of the orders."""
    size = len(terms)
    sums = np.add.reduceat(np.abs(terms), [size // 2, 3 * size // 4])
    return [float(value) for value in sums]


def _places(orders: np.ndarray) -> tuple[int, int]:
    """Where the orders 2 and 4 are."""
    return 2 // int(orders[1]), 4 // int(orders[1])


def _seen(D: Observable, r: np.ndarray, m: np.ndarray) -> _Layer:
    two, _ = _places(D.modes.orders)
    d = D.coefficients
    overlap = float(r @ d)
    coupling = d + d[two] * r
    coupling[two] += overlap
    variance = D.square + 2 * d[two] * overlap
    return _Layer(float(m @ d), variance, coupling, overlap)


def _next_pair(step: _Step, seen: _Layer, r: np.ndarray) -> np.ndarray:
    two, beta = 2 // step.stride, step.of_the_mean(1)
    following = step.powers * (step.powers[two] * r + beta * seen.coupling)
    following[two] += beta**2 / 2 * seen.variance
    return following


def _next_mean(step: _Step, seen: _Layer, m: np.ndarray) -> np.ndarray:
    two, four = 2 // step.stride, 4 // step.stride
    following = step.powers * m + step.to_next(1, seen.coupling)
    following[two] += seen.shift * step.of_the_mean(1)
    following[four] += seen.variance * step.of_the_mean(2)
    return following


def _seen_twice(D: Observable, seen: _Layer, state: _State) -> _Second:
    """What d shows of the cumulants; where it contains the same neuron, products with D occur."""
    two, four = _places(D.modes.orders)
    d, modes, values = D.coefficients, D.modes, D.values
    overlap = seen.overlap
    d2, d4 = d[two], d[four]

    def product(u: np.ndarray) -> np.ndarray:
        # A cumulant does not change with the constant part of a function.
        found = modes.multiply(values, u)
        found[0] = 0.0
        return found

    square = modes.project(values**2)
    square[0] = 0.0
    unit = np.zeros(len(d))
    unit[two] = 1.0
    h2D, rD = product(unit), product(state.r)
    BD, ED, g2D = state.B @ d, state.E @ d, state.g2 @ d
    coupling = product(state.m1) + g2D - (seen.coupling - d)
    variance = square @ state.m1 + d @ g2D - 2 * d2 * overlap
    twice = square + 2 * (overlap * h2D + d2 * rD) + square[two] * state.r + 2 * (d2 * BD + d4 * ED)
    twice[two] += state.r @ square + d @ BD
    twice[four] += d @ ED
    third = modes.mean(values**3) + 3 * (square[two] * overlap + (state.r @ square) * d2)
    third += 3 * (d2 * (d @ BD) + d4 * (d @ ED))
    shift = float(state.m2 @ d)
    terms = state.m2 * d, square * state.m1 + d * g2D, 3 * d * (square[two] * state.r + d2 * BD)
    return _Second(shift, float(variance), float(third), coupling, twice, h2D, rD, BD, ED, terms)


def _next_state(step: _Step, D: Observable, seen: _Layer, more: _Second, state: _State) -> _State:
    """The cumulants of the next layer, term by term in the powers of d of every neuron."""
    two, four = _places(D.modes.orders)
    d2, d4 = D.coefficients[two], D.coefficients[four]
    delta, q, kappa = seen.shift, seen.variance, more.third_cumulant
    power, to_next = step.powers, step.to_next
    v1, v2, v3, v4 = (np.zeros(len(power)) for _ in range(4))
    e2, e4 = np.zeros(len(power)), np.zeros(len(power))
    e2[two] = e4[four] = 1.0
    for j, v in enumerate((v1, v2, v3, v4), start=1):
        v[2 * j // step.stride] = step.of_the_mean(j)
    s, r, m1 = seen.coupling, state.r, state.m1
    s0, r0, twice0, h2D0, ED0 = (power * u for u in (s, r, more.twice, more.h2D, more.ED))
    e20, e40 = power * e2, power * e4
    both = more.rD + more.BD
    both0 = power * both
    s1, r1, m11, twice1, e21 = (to_next(1, u) for u in (s, r, m1, more.twice, e2))
    s2 = to_next(2, s)

    moved = np.outer(power, power)
    B, E = state.B * moved, state.E * moved
    inner = d2 * B + d4 * E
    lowered = np.zeros_like(inner)
    shift = 2 // step.stride
    lowered[shift:] = step.lowering(1)[shift:, None] * inner[:-shift]

    # Half of g_2: of two neurons the first with at least as many factors d.
    half = [
        (to_next(1, more.h2D), r0),
        (r1, h2D0),
        (to_next(1, both), e20),
        (e21, both0),
        (to_next(1, more.ED), e40),
        (to_next(1, e4), ED0),
        (delta * e21, r0),
        (delta * r1, e20),
        (v1, power * more.coupling + q * m11 + twice1 + delta * s1),
        (m11, s0),
        (v2, twice0 + 2 * delta * s0 + 2 * q * s1),
        (2 * s2, s0),
        (q * to_next(2, e2), r0),
        (q * to_next(2, r), e20),
        (3 * q * v3, s0 + q * v1),
        ((kappa + 2 * delta * q) * v2 + 3 * q * s2, v1),
        (more.variance / 2 * v1, v1),
        (q * e21, r1),
        (s1 / 2, s1),
        (q * q * v2, v2),
    ]
    pairs = lowered + _outer(half)
    beta, beta2, lowest = v1[two], v2[four], e21[four]
    three = [
        (beta * h2D0, r0),
        (beta * both0, e20),
        (beta * ED0, e40),
        (power[two] * r1 + beta * s1, s0),
        (e2, beta**2 / 2 * twice0 + beta * q * power[two] * r1 + beta**2 * q * s1),
        (beta * q * lowest * e4, r0),
        (beta**3 * kappa / 6 * e2, e2),
    ]
    four_times = [
        (lowest * s0, r0),
        (beta2 * s0, s0),
        (2 * q * beta2 * beta * e2, s0),
        (q**2 * beta2 * beta**2 * e2, e2),
    ]
    m2 = power * state.m2 + more.shift * v1 + delta * m11 + to_next(1, more.coupling)
    m2 += (more.variance + delta**2) * v2 + q * to_next(2, m1) + 2 * delta * s2
    m2 += to_next(2, more.twice) + (kappa + 3 * delta * q) * v3 + 3 * q * to_next(3, s)
    m2 += 3 * q**2 * v4
    return _State(
        m1=_next_mean(step, seen, m1),
        m2=m2,
        r=_next_pair(step, seen, r),
        g2=state.g2 * moved + pairs + pairs.T,
        B=power[two] * B + beta * inner + _symmetric(three),
        E=power[four] * E + _symmetric(four_times),
    )


def _outer(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Σ u wᵀ."""
    left, right = zip(*pairs, strict=True)
    return np.stack(left, axis=1) @ np.stack(right)


def _symmetric(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Σ (u wᵀ + w uᵀ)."""
    found = _outer(pairs)
    return found + found.T
