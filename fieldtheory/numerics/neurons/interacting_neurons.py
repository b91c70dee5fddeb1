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

as densities relative to the Gaussian, with e_n the Hermite polynomials of h/√K*. They are vectors:
Fourier coefficients (`fourier_basis`) or values on quadrature nodes (`quadrature_nodes`). What is
averaged over them is a vector, too, the average being the scalar product. In terms of the loops of
the field theory, order 1/N is one loop for ⟨C⟩ and none for Cov C; order 1/N² two loops, one, and
none for the third cumulant.

Functions of two neurons are sums of products of a few functions of one. They stay few: what a layer
adds is a product of what it shows of single neurons, and noise makes all functions alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import factorial, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

# What is dropped of a sum of products, relative to its largest parts.
_DROPPED = 1e-12
# Columns that LAPACK reflects at once.
_WORK = 64

# Σ w (u vᵀ + v uᵀ) as the list of its w and the names of u and v.
Products = Iterable[tuple[float, str, str]]


class Pairs(NamedTuple):
    """The symmetric functions g_2, B and E of `interacting_neurons`, Σ_ab u_a core_ab u_b."""

    # (n, k): The vectors u, orthonormal.
    basis: np.ndarray
    # (3, k, k)
    cores: np.ndarray

    @staticmethod
    def none() -> Pairs:
        """Independent neurons."""
        return Pairs(np.zeros((0, 0)), np.zeros((3, 0, 0)))

    def applied(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three as matrices times u."""
        if not self.basis.size:
            return np.zeros(len(u)), np.zeros(len(u)), np.zeros(len(u))
        parts = self.basis.T @ u
        g2, B, E = (self.basis @ (core @ parts) for core in self.cores)
        return g2, B, E

    @staticmethod
    def of(
        blocks: Mapping[tuple[int, int], np.ndarray],
        bases: tuple[np.ndarray, ...],
        vectors: Mapping[str, np.ndarray],
        added: tuple[Products, ...],
    ) -> Pairs:
        """A sum of cores between bases and of products of vectors; what is negligible is dropped.

        ``blocks`` has the cores (3, k, k) between two bases by their numbers, ``added`` the
        products of vectors that are added to each of the three.
        """
        columns = [*bases, np.stack(list(vectors.values()), axis=1)]
        starts = np.cumsum([0, *(part.shape[1] for part in columns)])
        cores = np.zeros((3, starts[-1], starts[-1]))
        for (row, column), core in blocks.items():
            rows, others = slice(*starts[row : row + 2]), slice(*starts[column : column + 2])
            cores[:, rows, others] += core
        place = dict(zip(vectors, range(starts[-2], starts[-1]), strict=True))
        for core, products in zip(cores, added, strict=True):
            for weight, one, other in products:
                core[place[one], place[other]] += weight
                core[place[other], place[one]] += weight
        reflections, scales = np.linalg.qr(np.concatenate(columns, axis=1), mode="raw")
        R = np.triu(reflections.T[: len(scales)])
        cores = R @ cores @ R.T
        norms = np.abs(cores).max(axis=(1, 2))
        if not norms.any():
            return Pairs.none()
        all_cores = np.concatenate(cores[norms > 0] / norms[norms > 0, None, None], axis=1)
        left, triangle, _ = linalg.qr(all_cores, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(triangle))
        left = left[:, sizes > _DROPPED * sizes[0]]
        basis = np.zeros((reflections.shape[1], left.shape[1]), order="F")
        basis[: len(left)] = left
        basis = lapack.dormqr("L", "N", reflections.T, scales, basis, _WORK * left.shape[1])[0]
        return Pairs(basis, left.T @ cores @ left)


class Space(Protocol):
    """Functions of a neuron as densities, and what averages functions over them, as vectors."""

    @property
    def averaging_2(self) -> np.ndarray:
        """Averaging vector for the Hermite polynomial h_2."""

    def project(self, values: np.ndarray) -> np.ndarray:
        """The density of a function with these values on the nodes."""

    def averaging(self, values: np.ndarray) -> np.ndarray:
        """Vector whose scalar product with a density averages a function."""

    def multiply(self, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """The densities, one or one a row, of the products with a function on the nodes."""

    def mean(self, values: np.ndarray) -> float:
        """⟨F⟩ of the values of a function on the nodes."""

    def unit(self, order: int) -> np.ndarray:
        """The density of the Hermite polynomial h_n, n <= 8."""

    def centred(self, vectors: np.ndarray) -> np.ndarray:
        """The densities of F − ⟨F⟩."""


class Observable(NamedTuple):
    """Contribution of a layer to the next kernel, D(h) = a (g(h, h) − ⟨g⟩), for h ~ N(0, K)."""

    # How functions of h are represented.
    space: Space
    # (m,): D on the nodes.
    values: np.ndarray
    # (n,): D as a density, and what averages D.
    density: np.ndarray
    averaging: np.ndarray
    # ⟨D²⟩.
    square: float
    # ⟨g⟩ on the nodes.
    mean: float


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


class Run(NamedTuple):
    """Consecutive layers k, ..., l whose averages of pairs are the products of two matrices."""

    # (n, ·): D as densities of the first layer, and what averages D over these, for later layers.
    densities: np.ndarray
    averaging: np.ndarray
    # (n,): ⟨D²⟩ and ⟨g⟩.
    squares: np.ndarray
    means: np.ndarray
    # The rows of these densities as those of the first layer after the run, None at the end.
    to_next: Callable[[np.ndarray], np.ndarray] | None


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
    """N (⟨C⟩ − C*) and N Var C of C^(1), ..., C^(L+1) at order 1/N, shapes (L + 1,)."""

    shift: np.ndarray
    variance: np.ndarray


class SecondOrder(NamedTuple):
    """N² times what the kernels C^(1), ..., C^(L+1) have at order 1/N², shapes (L + 1,)."""

    shift: np.ndarray
    variance: np.ndarray
    third_cumulant: np.ndarray
    # N² times the term of ⟨h_i² ; h_j²⟩/K² of two neurons i ≠ j of the hidden layers.
    pairing: np.ndarray


class _Layer(NamedTuple):
    """Averages of a layer over m_1 and r: N ⟨d⟩, N ⟨d²⟩, N ⟨d;h_n⟩, and r·D."""

    shift: float
    variance: float
    coupling: np.ndarray
    overlap: float


def first_order(layers: Layers) -> FirstOrder:
    """⟨C⟩ − C* and Var C of all layers at order 1/N.

        r' = c² Λr + β Λs + (β²/2) q e_2,    m_1' = Λm_1 + δ v_1 + P_1ᵀs + q v_2,    Λ = P_0ᵀ
        s = D + g_1 D,    q = ⟨D²⟩ + D·g_1 D,    δ = D·m_1,    v_j = P_jᵀ 1,  β = v_1·e_2

    ``layers`` has the observable D of every layer l = 0, ..., L and the step to the next one, None
    at the end.
    """
    shifts, variances = [], []
    r = m = np.zeros(0)
    for D, step in layers:
        if not len(r):
            r = m = np.zeros(len(D.density))
        layer = _layer_statistics(D, r, m)
        shifts.append(layer.shift)
        variances.append(layer.variance)
        if step is not None:
            r, m = _next_pair(step, layer, r), _next_mean(step, layer, m)
    return FirstOrder(np.array(shifts), np.array(variances))


def second_order(layers: Layers) -> SecondOrder:
    """⟨C⟩, Var C and the third cumulant of C of all layers at order 1/N²."""
    moments = []
    state = None
    for D, step in layers:
        if state is None:
            zero = np.zeros(len(D.density))
            state = _State(zero, zero, zero, Pairs.none())
        layer = _layer_statistics(D, state.r, state.m1)
        more = _seen_twice(D, layer, state)
        e2 = D.space.averaging_2
        pairing = 2 * (e2 @ state.pairs.applied(e2)[0])
        moments.append((more.shift, more.variance, more.third_cumulant, pairing))
        if step is not None:
            state = _next_state(step, D, layer, more, state)
    return SecondOrder(*np.array(moments).T)


class _State(NamedTuple):
    """The cumulants of one neuron, r, and those of two and three neurons."""

    m1: np.ndarray
    m2: np.ndarray
    r: np.ndarray
    pairs: Pairs


class _Second(NamedTuple):
    """Averages of a layer at order 1/N²."""

    # N² times the terms of ⟨d⟩, ⟨d;d⟩ and ⟨d;d;d⟩.
    shift: float
    variance: float
    third_cumulant: float
    # N² times those of ⟨d;h_n⟩ and ⟨d;d;h_n⟩.
    coupling: np.ndarray
    twice: np.ndarray
    # The products e_2 D and r D, and the matrices applied to D.
    h2D: np.ndarray
    rD: np.ndarray
    BD: np.ndarray
    ED: np.ndarray


def _layer_statistics(D: Observable, r: np.ndarray, m: np.ndarray) -> _Layer:
    d, e2 = D.averaging, D.space.unit(2)
    overlap, d2 = float(d @ r), d @ e2
    variance = D.square + 2 * d2 * overlap
    return _Layer(float(d @ m), variance, D.density + d2 * r + overlap * e2, overlap)


def _next_pair(step: Step, layer: _Layer, r: np.ndarray) -> np.ndarray:
    beta = of_the_mean(step, 1)
    following = step.to_next(0, step.correlation**2 * r + beta * layer.coupling)
    return following + beta**2 / 2 * layer.variance * step.unit(2)


def _next_mean(step: Step, layer: _Layer, m: np.ndarray) -> np.ndarray:
    following = step.to_next(0, m) + step.to_next(1, layer.coupling)
    following += layer.shift * of_the_mean(step, 1) * step.unit(2)
    return following + layer.variance * of_the_mean(step, 2) * step.unit(4)


def _seen_twice(D: Observable, layer: _Layer, state: _State) -> _Second:
    """Averages of d over the cumulants; products with D occur where it contains the same neuron."""
    d, space, values = D.averaging, D.space, D.values
    e2, e4 = space.unit(2), space.unit(4)
    d2, d4, overlap = d @ e2, d @ e4, layer.overlap

    squared = values**2 - D.square
    square, averaged = space.centred(space.project(squared)), space.averaging(squared)
    square2 = averaged @ e2
    h2D, rD, m1D = space.centred(space.multiply(values, np.stack([e2, state.r, state.m1])))
    g2D, BD, ED = state.pairs.applied(d)
    coupling = m1D + g2D - (layer.coupling - D.density)
    variance = averaged @ state.m1 + d @ g2D - 2 * d2 * overlap
    twice = square + 2 * (overlap * h2D + d2 * rD) + square2 * state.r + 2 * (d2 * BD + d4 * ED)
    twice += (averaged @ state.r + d @ BD) * e2 + (d @ ED) * e4
    third = space.mean(values**3) + 3 * (square2 * overlap + (averaged @ state.r) * d2)
    third += 3 * (d2 * (d @ BD) + d4 * (d @ ED))
    shift = float(state.m2 @ d)
    return _Second(shift, float(variance), float(third), coupling, twice, h2D, rD, BD, ED)


def _next_state(step: Step, D: Observable, layer: _Layer, more: _Second, state: _State) -> _State:
    """The cumulants of the next layer, term by term in the powers of d of every neuron."""
    before2, before4 = (D.space.unit(order) for order in (2, 4))
    d2, d4 = D.averaging @ before2, D.averaging @ before4
    delta, q, kappa = layer.shift, layer.variance, more.third_cumulant
    to_next, c2 = step.to_next, step.correlation**2
    beta, beta2, beta3, beta4 = (of_the_mean(step, j) for j in (1, 2, 3, 4))
    e2, e4, e6, e8 = (step.unit(order) for order in (2, 4, 6, 8))
    s, m1 = layer.coupling, state.m1
    sources = {"s": s, "r": state.r, "h2D": more.h2D, "rD": more.rD + more.BD, "ED": more.ED}
    sources |= {"twice": more.twice, "coupling": more.coupling}
    seen_once = _next_vectors(step, 0, sources | {"m2": state.m2})
    seen_twice = _next_vectors(step, 1, sources | {"e2": before2, "e4": before4, "m": m1})
    m11, s2 = seen_twice["P1 m"], to_next(2, s)
    vectors = seen_once | seen_twice | {"e2": e2, "e4": e4, "e6": e6}
    vectors |= {"P2 e2": to_next(2, before2), "P2 r": to_next(2, state.r), "P2 s": s2}
    coupling1, twice1, m20 = (vectors.pop(f"P{n}") for n in ("1 coupling", "1 twice", "0 m2"))
    vectors["one"] = vectors.pop("P0 coupling") + twice1

    # Half of g_2: of two neurons the first with at least as many factors d. P_jᵀ 1 and P_0ᵀ e_n
    # are Hermite polynomials times β_j and cⁿ.
    half = [
        (1.0, "P1 h2D", "P0 r"),
        (1.0, "P1 r", "P0 h2D"),
        (c2, "P1 rD", "e2"),
        (1.0, "P1 e2", "P0 rD"),
        (c2**2, "P1 ED", "e4"),
        (1.0, "P1 e4", "P0 ED"),
        (delta, "P1 e2", "P0 r"),
        (delta * c2, "P1 r", "e2"),
        (beta, "e2", "one"),
        (beta * q, "e2", "P1 m"),
        (beta * delta, "e2", "P1 s"),
        (1.0, "P1 m", "P0 s"),
        (beta2, "e4", "P0 twice"),
        (2 * delta * beta2, "e4", "P0 s"),
        (2 * q * beta2, "e4", "P1 s"),
        (2.0, "P2 s", "P0 s"),
        (q, "P2 e2", "P0 r"),
        (q * c2, "P2 r", "e2"),
        (3 * q * beta3, "e6", "P0 s"),
        (3 * q**2 * beta3 * beta, "e6", "e2"),
        ((kappa + 2 * delta * q) * beta2 * beta, "e4", "e2"),
        (3 * q * beta, "P2 s", "e2"),
        (more.variance / 2 * beta**2, "e2", "e2"),
        (q, "P1 e2", "P1 r"),
        (0.5, "P1 s", "P1 s"),
        (q**2 * beta2**2, "e4", "e4"),
    ]
    lowest = sqrt(6) * beta * c2
    three = [
        (beta, "P0 h2D", "P0 r"),
        (beta * c2, "P0 rD", "e2"),
        (beta * c2**2, "P0 ED", "e4"),
        (c2, "P1 r", "P0 s"),
        (beta, "P1 s", "P0 s"),
        (beta**2 / 2, "e2", "P0 twice"),
        (beta * q * c2, "e2", "P1 r"),
        (beta**2 * q, "e2", "P1 s"),
        (beta * q * lowest, "e4", "P0 r"),
        (beta**3 * kappa / 6, "e2", "e2"),
    ]
    four_times = [
        (lowest, "P0 s", "P0 r"),
        (beta2, "P0 s", "P0 s"),
        (2 * q * beta2 * beta, "e2", "P0 s"),
        (q**2 * beta2 * beta**2, "e2", "e2"),
    ]
    v1, v2 = beta * e2, beta2 * e4
    m2 = m20 + more.shift * v1 + delta * m11 + coupling1
    m2 += (more.variance + delta**2) * v2 + q * to_next(2, m1) + 2 * delta * s2
    m2 += to_next(2, more.twice) + (kappa + 3 * delta * q) * beta3 * e6 + 3 * q * to_next(3, s)
    m2 += 3 * q**2 * beta4 * e8
    return _State(
        m1=_next_mean(step, layer, m1),
        m2=m2,
        r=_next_pair(step, layer, state.r),
        pairs=_next_pairs(step, state.pairs, (d2, d4), vectors, (half, three, four_times)),
    )


def _next_vectors(step: Step, j: int, vectors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """P_jᵀ applied to the vectors, with the names of the results."""
    columns = step.to_next(j, np.stack(list(vectors.values()), axis=1))
    return {f"P{j} {name}": column for name, column in zip(vectors, columns.T, strict=True)}


def _next_pairs(
    step: Step,
    pairs: Pairs,
    inner: tuple[float, float],
    vectors: dict[str, np.ndarray],
    added: tuple[Products, ...],
) -> Pairs:
    """Those of the next layer.

        g_2' = P_0ᵀ g_2 P_0 + X + Xᵀ + ...,    X = P_1ᵀ (D_2 B + D_4 E) P_0
        B' = P_0ᵀ (c² B + β (D_2 B + D_4 E)) P_0 + ...,    E' = c⁴ P_0ᵀ E P_0 + ...

    with D_2, D_4 of ``inner`` and the products of vectors ``added`` to each.
    """
    if not pairs.basis.size:
        return Pairs.of({}, (), vectors, added)
    c2, beta, (g2, B, E) = step.correlation**2, of_the_mean(step, 1), pairs.cores
    both = inner[0] * B + inner[1] * E
    crossed = np.stack([both, 0 * B, 0 * B])
    blocks = {
        (0, 0): np.stack([g2, c2 * B + beta * both, c2**2 * E]),
        (1, 0): crossed,
        (0, 1): crossed,
    }
    bases = step.to_next(0, pairs.basis), step.to_next(1, pairs.basis)
    return Pairs.of(blocks, bases, vectors, added)
