"""Correlators of φ(h) = A h + B |h|, a line on either side of zero: ReLU and its relatives.

Products φ(h_α)φ(h_β) and their derivatives by kernels are sums of products of four factors h, |h|,
sign h and 2 δ(h). Their averages are reduced by partial integration and by conditions h = 0,

    ⟨h_i F⟩ = Σ_j K_ij ⟨∂_j F⟩,   |h| = h sign h,   ⟨2 δ(h_i) F⟩ = √(2/(π K_ii)) ⟨F⟩_{h_i = 0},

to ⟨sign h_i sign h_j⟩ = 1 − 2 θ_ij/π with the angle θ_ij of two signals. Only four factors |h| or
sign h are not a closed form. Between two pairs of signals, whose cross-covariance R is scaled by t,
Price's theorem gives d⟨FG⟩/dt = Σ_ij R_ij ⟨∂_i F ∂_j G⟩; after two or three derivatives δ-functions
are in every term, and Taylor's formula leaves one integral over t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.several_inputs.pair_expansions import Signals, singular_values

# The derivatives of h, |h| and sign h.
_SLOPES = {"h": "1", "a": "s", "s": "d"}


@dataclass(frozen=True)
class _Settings:
    """Numbers of the integrals over angles."""

    # Ratio of the distances of panel edges from t = 1, nodes of a panel, and the last distance:
    # beyond it the integrand, with its weight, is rounding.
    ratio: float = 4.0
    nodes: int = 12
    last: float = 1e-12
    # The angle between two signals below which that is taken: rounding is its inverse.
    angle: float = 1e-6
    # Points that are evaluated, and entries that are prepared at once.
    together: int = 1 << 14
    entries: int = 1 << 18


_SETTINGS = _Settings()

# A product of factors of two signals with its coefficient.
Terms = list[tuple[float, str]]


class Lines:
    """Products of two φ as sums of factors h, |h| ("a"), sign h ("s"), 2 δ(h) ("d") and 1.

    Several φ_k are summed over.
    """

    def __init__(self, signals: Signals) -> None:
        A, B = (np.array([getattr(each, name) for each in signals.lines or ()]) for name in "AB")
        self._AA, self._AB, self._BB = float(A @ A), float(A @ B), float(B @ B)

    def observable(self, same: bool) -> Terms:
        """g(x, y), of one signal if they are the same."""
        if same:
            return [(self._AA + self._BB, "hh"), (2 * self._AB, "ha")]
        return [(self._AA, "hh"), (self._AB, "ha"), (self._AB, "ah"), (self._BB, "aa")]

    def by_kernels(self) -> list[Terms]:
        """∂g/∂K_xx, ∂g/∂K_yy and ∂g/∂K_xy, but for constants."""
        half, even = self._AB / 2, self._BB / 2
        return [
            [(half, "dh"), (even, "da")],
            [(half, "hd"), (even, "ad")],
            [(self._AB, "s1"), (self._AB, "1s"), (self._BB, "ss")],
        ]


def correlators(signals: Signals) -> np.ndarray:
    """⟨g ; g⟩ of all layers and pairs, shape (L + 1, p, L + 1, p)."""
    lines, size, (alpha, beta) = Lines(signals), len(signals.K), signals.pairs
    covariances, p = np.empty((size, len(alpha)) * 2), len(alpha)
    rows, columns = np.indices((p, p)).reshape(2, -1)
    for k, l, some in _layer_pairs(signals, 0, rows, "correlators, layers"):
        place = k, rows[some], l, columns[some]
        values = np.empty(len(k))
        for one in (True, False):
            for other in (True, False):
                kinds = (alpha == beta)[place[1]] == one, (alpha == beta)[place[3]] == other
                (at,) = np.nonzero(kinds[0] & kinds[1])
                k_at, rows_at, l_at, columns_at = (each[at] for each in place)
                terms = lines.observable(one), lines.observable(other)
                values[at] = correlated(signals, k_at, rows_at, l_at, columns_at, *terms)
        covariances[place] = covariances[l, columns[some], k, rows[some]] = values
    return covariances


def correlators_by_kernels(signals: Signals, pairs: np.ndarray) -> np.ndarray:
    """⟨∂_e g^(l) ; g_e'^(k)⟩, shape (L + 1, L + 1, 3, 3, pairs), by k < l, e, e'."""
    lines, size, (alpha, beta) = Lines(signals), len(signals.K), signals.pairs
    own = np.flatnonzero(alpha == beta)
    covariances = np.zeros((size, size, 3, 3, len(pairs)))
    sources = own[alpha[pairs]], own[beta[pairs]], pairs
    for k, l, some in _layer_pairs(signals, 1, pairs, "mean_shift, layers"):
        for e, derivative in enumerate(lines.by_kernels()):
            for other, of in enumerate(sources):
                place = k, of[some], l, pairs[some]
                terms = lines.observable(other < 2), derivative
                covariances[k, l, e, other, some] = correlated(signals, *place, *terms)
    return covariances


def _layer_pairs(
    signals: Signals, distance: int, entries: np.ndarray, title: str
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Layers k and l >= k + ``distance`` and indices of entries, all of them in several parts."""
    k, l = np.triu_indices(len(signals.K), distance)
    count = len(k) * len(entries)
    parts = range(-(-count // _SETTINGS.entries))
    for part in signals.counted(parts, title):
        every = np.arange(part * _SETTINGS.entries, min((part + 1) * _SETTINGS.entries, count))
        layers, some = np.divmod(every, len(entries))
        yield k[layers], l[layers], some


def correlated(
    signals: Signals,
    k: np.ndarray,
    rows: np.ndarray,
    l: np.ndarray,
    columns: np.ndarray,
    one: Terms,
    other: Terms,
) -> np.ndarray:
    """⟨F ; G⟩ of F of pairs in layers k and G of pairs in layers l >= k, shape (m,)."""
    X = signals.between(k, rows, l, columns)
    R, distinct = zip(*(_factors(signals, *at) for at in ((k, rows), (l, columns))), strict=True)
    X = np.stack([X[0], X[1] * distinct[0]])
    X = np.stack([X[:, 0], X[:, 1] * distinct[1]], axis=1)
    u, v, *values = singular_values(X)
    s = np.clip(values, -1.0, 1.0)
    first, second = _turned(R[0], u), _turned(R[1], v)
    covariances = np.zeros(len(u))
    panels = (
        np.ceil(np.log(1 / np.maximum(1 - s[0], _SETTINGS.last)) / np.log(_SETTINGS.ratio)).astype(
            int
        )
        + 1
    )
    for count in np.unique(panels):
        (some,) = np.nonzero(panels == count)
        for part in np.array_split(
            some, -(-len(some) * count * _SETTINGS.nodes // _SETTINGS.together)
        ):
            signs = _FourSignals(first[..., part], second[..., part], s[:, part], int(count))
            covariances[part] = sum(
                a * b * signs.correlator(F + G) for a, F in one for b, G in other if a * b
            )
    return covariances


def _factors(signals: Signals, l: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R of h = R z with angles between signals that are held, and whether these are."""
    R = np.array(signals.R[:, :, l, pairs])
    different = np.not_equal(*(members[pairs] for members in signals.pairs))
    least = _SETTINGS.angle * np.hypot(R[1, 0], R[1, 1])
    distinct = R[1, 1] > least
    R[1, 1] = np.where(distinct | ~different, R[1, 1], least)
    return R, distinct


def _turned(R: np.ndarray, angle: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([R[:, 0] * c + R[:, 1] * s, R[:, 1] * c - R[:, 0] * s], axis=1)


@lru_cache(maxsize=32)
def _graded(panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes 1 − t, t from 0 to 1, and weights, on panels that narrow towards t = 1."""
    edges = np.append(_SETTINGS.ratio ** -np.arange(panels), 0.0)
    x, w = leggauss(_SETTINGS.nodes)
    middle, half = (edges[:-1] + edges[1:]) / 2, (edges[:-1] - edges[1:]) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


class _FourSignals:
    """Averages of two pairs of signals, R₁ z and R₂ w with ⟨z wᵀ⟩ = diag(s).

    ``first`` and ``second`` are R, (2, 2, m), and s (2, m).
    """

    def __init__(self, first: np.ndarray, second: np.ndarray, s: np.ndarray, panels: int) -> None:
        self._cross = np.einsum("iam,am,jam->ijm", first, s, second)
        self._complements, self._weights = _graded(panels)
        t = 1 - self._complements
        alone = np.sqrt((1 - s[..., None] * t) * (1 + s[..., None] * t))
        rows = np.zeros((4, 4, s.shape[1], len(t)))
        rows[:2, :2] = first[..., None]
        rows[2:, :2] = second[..., None] * s[..., None] * t
        rows[2:, 2:] = second[..., None] * alone
        self._along = _Averages(rows.reshape(4, 4, -1))
        ends = np.zeros((4, 4, s.shape[1]))
        ends[:2, :2], ends[2:, :2] = first, second * s
        ends[2:, 2:] = second * np.sqrt((1 - s) * (1 + s))
        self._full = _Averages(ends)

    def correlator(self, kinds: str) -> Any:
        """⟨F ; G⟩ of two factors each."""
        if "h" in kinds or "d" in kinds or "1" in kinds:
            return self._full.average(kinds) - self._disconnected(kinds)
        return self._changed(kinds, 0)

    def _disconnected(self, kinds: str) -> Any:
        return self._full.average(kinds[:2] + "11") * self._full.average("11" + kinds[2:])

    def _changed(self, kinds: str, n: int) -> Any:
        """∫ (1 − t)ⁿ/n! f'(t) dt with f(t) = ⟨FG⟩."""
        return sum(
            self._cross[i, j] * self._integral(_derived(_derived(kinds, i), 2 + j), n)
            for i in range(2)
            for j in range(2)
        )

    def _integral(self, kinds: str, n: int) -> Any:
        """∫ (1 − t)ⁿ/n! ⟨FG⟩ dt."""
        if "d" not in kinds:
            return self._disconnected(kinds) / factorial(n + 1) + self._changed(kinds, n + 1)
        values = self._along.average(kinds)
        weights = self._weights * self._complements**n / factorial(n)
        return values.reshape(-1, len(weights)) @ weights


def _derived(kinds: str, i: int) -> str:
    return kinds[:i] + _SLOPES[kinds[i]] + kinds[i + 1 :]


class _Averages:
    """⟨F⟩ of up to four signals that are rows (4, 4, m) times independent normal variables.

    Of four factors at least one is h or 2 δ(h).
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self._units = {frozenset[int](): rows}, dict[frozenset[int], np.ndarray]()
        self._values: dict[tuple[str, frozenset[int]], Any] = {}

    def average(self, kinds: str, zero: frozenset[int] = frozenset()) -> Any:
        """⟨F⟩, given that some of the signals are zero."""
        if (kinds.count("s") + kinds.count("h")) % 2:
            return 0.0
        if (kinds, zero) not in self._values:
            self._values[kinds, zero] = self._average(kinds, zero)
        return self._values[kinds, zero]

    def _average(self, kinds: str, zero: frozenset[int]) -> Any:
        if "d" in kinds:
            i = kinds.index("d")
            reduced = self.average(kinds[:i] + "1" + kinds[i + 1 :], zero | {i})
            return np.sqrt(2 / np.pi) * ratio(1.0, _norm(self._conditional(zero)[i])) * reduced
        if "h" in kinds or "a" in kinds:
            i = kinds.index("h" if "h" in kinds else "a")
            rows = self._conditional(zero)
            left = _derived(kinds, i)
            return sum(
                _dot(rows[i], rows[j]) * self.average(_derived(left, j), zero)
                for j in range(4)
                if left[j] != "1"
            )
        signs = [i for i in range(4) if kinds[i] == "s"]
        if not signs:
            return 1.0
        x, y = (self._unit(i, zero) for i in signs)
        return 1 - 4 / np.pi * np.arctan2(_norm(x - y), _norm(x + y))

    def _conditional(self, zero: frozenset[int]) -> np.ndarray:
        """The rows of signals given that some are zero."""
        if zero not in self._rows:
            last = max(zero)
            before = zero - {last}
            along = self._unit(last, before)
            rows = self._conditional(before)
            self._rows[zero] = rows - _dot(rows, along[None])[:, None] * along
        return self._rows[zero]

    def _unit(self, i: int, zero: frozenset[int]) -> np.ndarray:
        row = self._conditional(zero)[i]
        return ratio(row, _norm(row))


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x * y).sum(axis=-2)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(_dot(x, x))
