"""Products φ(h_α)φ(h_β) of two Gaussian signals by their Hermite coefficients.

The signals h = R z of a pair are made of independent z, R lower triangular. With x = σ z_1 and
y = σ' (c z_1 + s z_2), coefficients of φ(y) are those of one signal,

    ⟨φ(y) h_i(z_1) h_j(z_2)⟩ = √((i+j)!/(i! j!)) c^i s^j ⟨φ(σ' z) h_{i+j}(z)⟩,

and φ(x) multiplies by the matrix ⟨h_k(z) φ(σ z) h_i(z)⟩. All integrals are over panels between the
breakpoints of φ, so that kinks and jumps need no case of their own.

Mehler's formula for functions f(z), g(w) of two pairs with the correlations X = ⟨z wᵀ⟩ is

    ⟨f(z) ; g(w)⟩ = Σ_{n>=1} f_nᵀ Sⁿ(X) g_n,    f_n = (⟨f h_i(z_1) h_{n-i}(z_2)⟩)_i,

where Sⁿ(X) is the n-th symmetric power of X. With the singular values s_1, s_2 of X = U S Vᵀ,
Sⁿ(X)ᵀ = exp(vG) D exp(−uG): rotations by the angles of U and V and D_i = s_1^i s_2^(n−i).
Coefficients of orders 0, ..., count − 1 are packed in one axis, by n and in it by i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fieldtheory.averages.quadrature.panelled_functions import WEIGHTS, Function
from fieldtheory.averages.quadrature.panels import nodes_of, subdivided
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.homogeneous import Lines, lines_of
from fieldtheory.numerics.recursion import ratio


@dataclass(frozen=True)
class _Settings:
    """Numbers of the Hermite coefficients of pairs."""

    # Phase that two Hermite functions may run through in a panel of 20 nodes.
    phase: float = 16.0
    # Where Hermite functions end beyond their turning points, and where the Gaussian ends.
    margin: float = 7.0
    reach: float = 13.0
    # Most orders of φ(y), and the share of the largest coefficient that is rounding.
    most: int = 1200
    rounding: float = 1e-17
    # Orders of an analytic φ(y) beyond those that are kept.
    beyond: int = 64
    # Correlation beyond which no more orders are taken.
    strong: float = 0.9999
    # Share of its deviation below which the second signal is a multiple of the first.
    parallel: float = 3e-8


_SETTINGS = _Settings()
# Matrices that are applied at once.
_TOGETHER = 1024


@dataclass(frozen=True, eq=False)
class Signals:
    """The signals of P inputs in layers 0, ..., L; pairs α <= β are those of `np.triu_indices`."""

    # ψ_k.
    functions: tuple[Function, ...]
    # (L + 1, P, P): Kernels of the hidden layers, and what each layer adds to them.
    K: np.ndarray
    C: np.ndarray
    # (L,): γ_1, ..., γ_L.
    skips: np.ndarray
    # Show progress bars on stderr.
    progress: bool = False

    @classmethod
    def of(
        cls, network: LayeredNetwork, K: np.ndarray, C: np.ndarray, progress: bool = False
    ) -> Signals:
        """Those of a network with the kernels K and C, each (L + 1, P, P)."""
        return cls(
            network_functions(network).functions, K, C, np.asarray(network.skip_scales), progress
        )

    def counted(self, steps: Sequence[int], title: str) -> Iterable[int]:
        """The same steps, counted by a progress bar if it is wanted."""
        return with_progress(steps, len(steps), title) if self.progress else steps

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """α and β of every pair."""
        first, second = np.triu_indices(self.K.shape[-1])
        return first, second

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """K_αα, K_ββ and K_αβ of every pair, each (L + 1, p)."""
        (first, second), own = self.pairs, np.diagonal(self.K, axis1=1, axis2=2)
        return own[:, first], own[:, second], self.K[:, first, second]

    @property
    def smooth(self) -> bool:
        """Whether φ is analytic."""
        return not any(len(each.kinks) for each in self.functions)

    @cached_property
    def lines(self) -> list[Lines] | None:
        """The lines on either side of zero that the φ_k are, None if one is something else."""
        lines = [lines_of(psi) for psi in self.functions]
        return None if None in lines else [each for each in lines if each]

    @cached_property
    def passed(self) -> np.ndarray:
        """A_lk, shape (L + 1, L + 1): the share of the signals of layer k in those of layer l."""
        A = np.zeros((len(self.K),) * 2)
        for k in range(len(A)):
            A[k:, k] = np.cumprod(np.append(1.0, self.skips[k : len(A) - 1]))
        return A

    @cached_property
    def idle(self) -> np.ndarray:
        """Layers 0, ..., L − 1 whose observables add nothing to the next one, shape (L,)."""
        return np.asarray(~self.C[1:].any(axis=(1, 2)))

    @cached_property
    def R(self) -> np.ndarray:
        """h = R z of the two signals of every pair, shape (2, 2, L + 1, p)."""
        return triangle(*self.entries)

    def between(
        self, k: int | np.ndarray, rows: np.ndarray, l: int | np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """X = ⟨z wᵀ⟩ of pairs in layer k with pairs in layers l >= k, shape (2, 2, m)."""
        members = np.array(self.pairs)
        covariance = self.K[k, members[:, None, rows], members[None, :, columns]]
        half = _solved(self.R[:, :, k, rows], covariance * self.passed[l, k])
        return np.swapaxes(_solved(self.R[:, :, l, columns], np.swapaxes(half, 0, 1)), 0, 1)


def triangle(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """R of signals with variances x and y and covariances xy, h = R z, shape (2, 2, ...).

    Examples
    --------
    >>> triangle(np.array(4.0), np.array(1.0), np.array(1.0)).round(3).tolist()
    [[2.0, 0.0], [0.5, 0.866]]
    """
    first, second = np.sqrt(x), np.sqrt(y)
    along = ratio(xy, first)
    across = np.sqrt(np.maximum((second - along) * (second + along), 0.0))
    across = np.where(across > _SETTINGS.parallel * second, across, 0.0)
    return np.array([[first, np.zeros_like(first)], [along, across]])


def _solved(R: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """R⁻¹ rows, zero for directions that R has not."""
    first = ratio(rows[0], R[0, 0])
    return np.stack([first, ratio(rows[1] - R[1, 0] * first, R[1, 1])])


class _Rule(NamedTuple):
    """Nodes z, and the Hermite functions h_n √weight there, shape (orders, nodes)."""

    z: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, functions: tuple[Function, ...], sigma: float, kept: int, orders: int) -> _Rule:
        """Those of signals of one deviation, for products of ``kept`` with ``orders`` functions."""
        width = min(1.75, _SETTINGS.phase / (np.sqrt(kept) + np.sqrt(orders)))
        reach = max(2 * np.sqrt(kept) + _SETTINGS.margin, _SETTINGS.reach)
        ends = [each.edges(_SETTINGS.reach * sigma) for each in functions if sigma > 0]
        ends += [each.kinks for each in functions if sigma > 0]
        edges = np.unique(np.concatenate([[0.0], *ends])) / (sigma or 1.0)
        edges = subdivided(edges, -reach, reach, width)
        nodes, half = nodes_of(edges[:-1], edges[1:])
        z, weights = nodes.ravel(), (half[:, None] * WEIGHTS).ravel()
        basis = np.empty((orders, len(z)))
        basis[0] = np.exp(-(z**2) / 4) * np.sqrt(weights / np.sqrt(2 * np.pi))
        basis[1] = z * basis[0]
        for n in range(1, orders - 1):
            basis[n + 1] = (z * basis[n] - np.sqrt(n) * basis[n - 1]) / np.sqrt(n + 1)
        return cls(z, basis)


class Expansion:
    """Hermite coefficients of orders below ``count`` of functions of the pairs of signals.

    Of all ``pairs`` if none are given.
    """

    def __init__(self, signals: Signals, count: int, pairs: np.ndarray | None = None) -> None:
        self.signals, self.count = signals, count
        self.pairs = np.arange(len(signals.pairs[0])) if pairs is None else pairs
        self.first, self.second = (members[self.pairs] for members in signals.pairs)
        self.R = signals.R[:, :, :, self.pairs]
        self._rules: dict[float, _Rule] = {}
        self._matrices: dict[tuple[Function, float], np.ndarray] = {}

    @cached_property
    def observables(self) -> np.ndarray:
        """Of g(h_α, h_β), shape (L + 1, pairs, orders)."""
        return self.products(0, 0)

    @cached_property
    def squares(self) -> np.ndarray:
        """Of g(h_α, h_α) and g(h_β, h_β), shape (2, L + 1, pairs, orders)."""
        n, i = packed_places(self.count)
        coefficients = np.zeros((2, *self.observables.shape))
        for l in range(coefficients.shape[1]):
            own, (c, s) = self._deviations(l), self._direction(l)
            for side, members in enumerate((self.first, self.second)):
                along, across = ((1 - side) + side * c, side * s)
                powers = along[:, None] ** np.arange(self.count)
                others = across[:, None] ** np.arange(self.count)
                shares = (
                    powers[:, i] * others[:, n - i] * _factors(self.count, self.count)[i, n - i]
                )
                for psi in self.signals.functions:
                    singles = {a: self._single(psi.square, own[a], 0) for a in set(members)}
                    coefficients[side, l] += shares * np.array([singles[a][n] for a in members])
        return coefficients

    @cached_property
    def by_kernels(self) -> np.ndarray:
        """Of ∂g/∂K_e, e = αα, ββ, αβ: of φ''φ/2, φφ''/2 and φ'φ', shape (3, L + 1, pairs, orders).

        By Price's theorem; derivatives of kinks and jumps lower the orders of coefficients.
        """
        if self.signals.smooth:
            return np.stack([self.products(2, 0) / 2, self.products(0, 2) / 2, self.products(1, 1)])
        if any(len(psi.jumping) for psi in self.signals.functions):
            by_x, by_y = (self._slope(self.observables, side) for side in range(2))
            mixed = self._slope(by_x, 1)
        else:
            by_x, by_y, mixed = (self.products(*orders) for orders in ((1, 0), (0, 1), (1, 1)))
        return np.stack([self._slope(by_x, 0) / 2, self._slope(by_y, 1) / 2, mixed])

    def _slope(self, f: np.ndarray, side: int) -> np.ndarray:
        """The coefficients of ∂f/∂x or ∂f/∂y from those of f, but for the last order."""
        n, i = (each[: packed_size(self.count - 1)] for each in packed_places(self.count))
        above = packed_size(n + 1)
        lowered = np.zeros((2, *f.shape))
        lowered[0, ..., : len(n)] = np.sqrt(i + 1.0) * f[..., above + i + 1]
        lowered[1, ..., : len(n)] = np.sqrt(n - i + 1.0) * f[..., above + i]
        by_y = ratio(lowered[1], self.R[1, 1][..., None])
        if side:
            return by_y
        return ratio(lowered[0] - self.R[1, 0][..., None] * by_y, self.R[0, 0][..., None])

    def products(self, i: int, j: int) -> np.ndarray:
        """Of Σ_k ψ_k^(i)(h_α) ψ_k^(j)(h_β), shape (L + 1, pairs, orders)."""
        coefficients = np.zeros((len(self.signals.K), len(self.pairs), packed_size(self.count)))
        for psi in self.signals.functions:
            f, g = _derivative(psi, i), _derivative(psi, j)
            for l in range(len(coefficients)):
                coefficients[l] += self._product(f, g, l)
        return coefficients

    def _product(self, f: Function, g: Function, l: int) -> np.ndarray:
        own, (c, s) = self._deviations(l), self._direction(l)
        distinct = self.first != self.second
        most = self._orders(float(np.abs(c[distinct]).max(initial=0.0)))
        singles = {b: self._single(g, own[b], most) for b in set(self.second[distinct])}
        n, i = packed_places(self.count)
        factors, powers = _factors(self.count, most), np.arange(most)[:, None]
        coefficients = np.zeros((len(self.pairs), len(n)))
        for a in set(self.first):
            others = np.flatnonzero(distinct & (self.first == a))
            if len(others):
                sizes = np.abs([singles[b] for b in self.second[others]])
                relevant = (sizes > _SETTINGS.rounding * sizes.max(axis=1, keepdims=True)).any(
                    axis=0
                )
                kept = min(most, 1 + int(np.flatnonzero(relevant).max(initial=0)))
                matrix = self._matrix(f, own[a], kept)
            for p in others:
                shifted = sliding_window_view(singles[self.second[p]], self.count)[:kept]
                across = s[p] ** np.arange(self.count)
                turned = shifted * factors[:kept] * c[p] ** powers[:kept] * across
                coefficients[p] = (matrix @ turned)[i, n - i]
            for p in np.flatnonzero(~distinct & (self.first == a)):
                diagonal = packed_size(np.arange(self.count) + 1) - 1
                coefficients[p, diagonal] = self._single(lambda h: f(h) * g(h), own[a], 0)
        return coefficients

    def _orders(self, c: float) -> int:
        """Orders of z_1 in φ(y) that matter: i has a negative binomial distribution given j."""
        c = min(c, _SETTINGS.strong)
        mean, spread = c * c / (1 - c * c), c / (1 - c * c)
        most = 24 + self.count * mean + 12 * spread * np.sqrt(self.count)
        # Those of analytic φ fall off as fast as the coefficients that are kept.
        limit = (
            self.count + _SETTINGS.beyond if self.signals.smooth else _SETTINGS.most - self.count
        )
        return int(min(most, max(limit, self.count)))

    def _deviations(self, l: int) -> np.ndarray:
        return np.sqrt(np.diagonal(self.signals.K[l]))

    def _direction(self, l: int) -> tuple[np.ndarray, np.ndarray]:
        """c and s of the second signals σ' (c z_1 + s z_2), 1 and 0 of those that vanish."""
        along, across = self.R[1, :, l]
        deviation = np.hypot(along, across)
        scale = np.where(deviation > 0, deviation, 1.0)
        return np.where(deviation > 0, along / scale, 1.0), across / scale

    def _rule(self, sigma: float, orders: int) -> _Rule:
        """Nodes and at least so many Hermite functions, those of the most orders asked for."""
        rule = self._rules.get(float(sigma))
        if rule is None or len(rule.basis) < orders:
            most = max(orders, self.count)
            rule = _Rule.of(self.signals.functions, sigma, self.count, most)
            self._rules[float(sigma)] = rule
        return rule

    def _single(self, function: Callable[..., np.ndarray], sigma: float, more: int) -> np.ndarray:
        """⟨f(σ z) h_n(z)⟩ of ``more`` orders than are kept."""
        rule = self._rule(sigma, self.count + more)
        return rule.basis[: self.count + more] @ (function(sigma * rule.z) * rule.basis[0])

    def _matrix(self, function: Function, sigma: float, orders: int) -> np.ndarray:
        """⟨h_k(z) f(σ z) h_i(z)⟩, shape (count, orders), of the most orders asked for."""
        matrix = self._matrices.get((function, float(sigma)))
        if matrix is None or matrix.shape[1] < orders:
            rule = self._rule(sigma, orders)
            half = rule.basis[: self.count] * function(sigma * rule.z)
            matrix = self._matrices[function, float(sigma)] = half @ rule.basis[:orders].T
        return matrix[:, :orders]


@lru_cache(maxsize=8)
def _factors(count: int, most: int) -> np.ndarray:
    """√((i+j)!/(i! j!)), shape (most, count)."""
    i, j = np.arange(most)[:, None], np.arange(1, count)
    return np.cumprod(np.hstack([np.ones((most, 1)), np.sqrt((i + j) / j)]), axis=1)


def _derivative(function: Function, order: int) -> Function:
    for _ in range(order):
        function = function.slope
    return function


def packed_size(count: Any) -> Any:
    """The number of coefficients of orders below ``count``."""
    return count * (count + 1) // 2


def block(n: int) -> slice:
    """Slice of the coefficients of order n."""
    return slice(n * (n + 1) // 2, (n + 1) * (n + 2) // 2)


def packed_places(count: int) -> tuple[np.ndarray, np.ndarray]:
    """n and i of all coefficients of orders below ``count``."""
    n = np.repeat(np.arange(count), np.arange(1, count + 1))
    return n, np.concatenate([np.arange(k + 1) for k in range(count)])


def singular_values(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Angles u and v and the values s_1 >= |s_2| of X = R(u) diag(s_1, s_2) R(v)ᵀ, each (m,)."""
    (a, b), (c, d) = X
    plus, minus = np.hypot(a + d, c - b) / 2, np.hypot(a - d, c + b) / 2
    total, difference = np.arctan2(c - b, a + d), np.arctan2(c + b, a - d)
    return (difference + total) / 2, (difference - total) / 2, plus + minus, plus - minus


def applied(X: np.ndarray, f: np.ndarray, count: int, negligible: float) -> np.ndarray:
    """Sⁿ(X)ᵀ f_n of all orders n > 0; zero for n = 0.

    Examples
    --------
    >>> X = np.array([[0.3, 0.1], [0.0, 0.5]])[:, :, None]
    >>> applied(X, np.eye(6)[:, 4:5], 3, 1e-12)[4, 0].round(12)  # of z_1 z_2
    np.float64(0.15)
    """
    mapped = np.zeros_like(f)
    for start in range(0, X.shape[-1], _TOGETHER):
        some = slice(start, start + _TOGETHER)
        mapped[:, some] = _applied(X[..., some], f[:, some], count, negligible)
    return mapped


def _applied(X: np.ndarray, f: np.ndarray, count: int, negligible: float) -> np.ndarray:
    u, v, large, small = singular_values(X)
    with np.errstate(divide="ignore"):
        needed = np.log(negligible) / np.minimum(np.log(large), -1e-300)
    order = np.argsort(-needed)
    orders = np.arange(count)[:, None]
    used = np.count_nonzero(needed > orders, axis=1)
    before, after = np.exp(-1j * orders * u[order]), np.exp(1j * orders * v[order])
    large, small = large[order] ** orders, small[order] ** orders
    # Coefficients of one order are contiguous.
    own, mapped = np.ascontiguousarray(f[:, order]), np.zeros(f.shape)
    for n in range(1, count):
        kept = int(used[n])
        if not kept:
            break
        part = _rotated(n, before[:, :kept], own[block(n), :kept])
        part *= large[: n + 1, :kept] * small[n::-1, :kept]
        mapped[block(n), :kept] = _rotated(n, after[:, :kept], part)
    result = np.empty_like(mapped)
    result[:, order] = mapped
    return result


def _rotated(n: int, phases: np.ndarray, f: np.ndarray) -> np.ndarray:
    """exp(θ G) f with ``phases`` exp(imθ), m = 0, 1, ...; f of shape (n + 1, m)."""
    even, odd = _generator(n)
    a, b = even.T @ f[::2], odd.T @ f[1::2]
    # Even and odd i share the frequencies n, n − 2, ...; one that is 0 stays.
    turns = phases[np.arange(n, 0, -2)]
    shared = len(b)
    rotated = np.empty_like(f)
    c, s = turns.real, turns.imag
    a[:shared], b = c * a[:shared] + s * b, c * b - s * a[:shared]
    rotated[::2], rotated[1::2] = even @ a, odd @ b
    return rotated


@lru_cache(maxsize=1024)
def _generator(n: int) -> tuple[np.ndarray, np.ndarray]:
    """G of order n, which joins even and odd i, by its singular vectors among either."""
    i = np.arange(n)
    steps = np.sqrt((n - i) * (i + 1.0))
    G = np.diag(steps, 1) - np.diag(steps, -1)
    even, _, odd = np.linalg.svd(G[::2, 1::2])
    return even, odd.T
