"""Correlators of pairs of inputs that hardly correlate, whatever φ is and however wide the signals.

Where all correlations X of one pair of signals with another are small, few Hermite orders of the
observables count, in ⟨g ; g⟩ = Σ_n g_nᵀ Sⁿ(X) g_n. Differences of averages keep no digits there.
Two pairs αβ and αγ of odd φ share an input, but their correlator is as small as the correlations:
the two signals of α make one pair, those of β and γ the other, of ψ ψ instead of g. Where one
signal alone hardly correlates with three that do, averages over it are series (`weak_signals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations_with_replacement, permutations

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.polynomial_pieces.signs import rotations
from fieldtheory.numerics.correlators import weak_signals
from fieldtheory.numerics.kinks.kinked_features import Feature, centres, is_odd
from fieldtheory.numerics.kinks.kinked_planes import ORDER, RESOLUTIONS, Plane, WeakFactor, hermite
from fieldtheory.numerics.observables.pair_modes import (
    correlations,
    packed_places,
    triangle,
    unit_row,
)
from fieldtheory.numerics.observables.pair_observables import (
    PairObservables,
    apply,
    kinked_features,
)

# Correlations of pairs and of their two signals that are small, those of which series are shorter
# than integrals over four signals, and the orders that count up to either.
WEAK, MODERATE = 5e-2, 0.3
_COUNTS = ((WEAK, 13), (0.15, 22), (MODERATE, 36))
# A correlation of one signal with others that leaves differences of closed forms twelve digits.
_FEW_DIGITS = 1e-4


def fill(signals: PairObservables, found: np.ndarray, closed: bool) -> None:
    """⟨g(h_α, h_β)^(k) ; g(h_γ, h_δ)^(l)⟩ of pairs that hardly correlate, in place.

    Parameters
    ----------
    signals : PairObservables
    found : ndarray, shape (L + 1, p, L + 1, p)
        Others are left as they are.
    closed : bool
        Whether closed forms have those that correlate with all their digits.
    """
    size, p = found.shape[:2]
    bound = WEAK if closed else MODERATE
    series = _Series(signals)
    if is_odd(series.psi):
        _fill_shared(series, found, bound)
    rows, columns = (places.ravel() for places in np.indices((p, p)))
    for k, l in combinations_with_replacement(range(size), 2):
        X = signals.between(k, rows, l, columns)
        *_, largest, _ = rotations(X)
        below = 0.0
        for upper, count in _COUNTS:
            (some,) = np.nonzero((largest > below) & (largest <= min(upper, bound)))
            below = upper
            if not len(some):
                continue
            early, late = rows[some], columns[some]
            f, g = (
                np.array([series.of_pair(layer, pair, count) for pair in pairs.tolist()]).T
                for layer, pairs in ((k, early), (l, late))
            )
            values = np.sum(apply(X[..., some], f, count) * g, axis=0)
            found[k, early, l, late] = found[l, late, k, early] = values
    if is_odd(series.psi):
        _fill_alone(signals, found, _FEW_DIGITS if closed else weak_signals.WEAK)


def _fill_alone(signals: PairObservables, found: np.ndarray, weak: float) -> None:
    """⟨g ; g⟩ of four signals of which one hardly correlates with the others, in place.

    What is known already is left, and so is what integrals do not find.
    """
    psi, p = kinked_features(signals.network), found.shape[1]
    rows, columns = (places.ravel() for places in np.indices((p, p)))
    inputs = np.array([members[pairs] for pairs in (rows, columns) for members in signals.pairs])
    for k, l in combinations_with_replacement(range(len(found)), 2):
        K = signals.K[k][inputs[:, None], inputs]
        K[:2, 2:] *= signals.carried[l, k]
        K[2:, :2] *= signals.carried[l, k]
        K[2:, 2:] = signals.K[l][inputs[2:, None], inputs[2:]]
        which = weak_signals.alone(K, weak)
        unknown = np.isnan(found[k, rows, l, columns]) & ((k < l) | (rows <= columns))
        for n in np.flatnonzero((which >= 0) & unknown).tolist():
            with suppress(QuadratureError):
                value = weak_signals.correlator(
                    psi[0].function, centres(psi), K[..., n], int(which[n])
                )
                found[k, rows[n], l, columns[n]] = found[l, columns[n], k, rows[n]] = value


def _fill_shared(series: _Series, found: np.ndarray, bound: float) -> None:
    """⟨g(h_α, h_β)^(k) ; g(h_α, h_γ)^(l)⟩ of three inputs that hardly correlate, in place."""
    signals = series.signals
    inputs = signals.K.shape[1]
    places = np.empty((inputs, inputs), dtype=int)
    places[signals.pairs] = places[signals.pairs[::-1]] = np.arange(len(signals.pairs[0]))
    for k, l in combinations_with_replacement(range(len(signals.K)), 2):
        if not signals.carried[l, k]:
            continue
        for alpha in range(inputs):
            for beta, gamma in permutations(set(range(inputs)) - {alpha}, 2):
                value = _shared(series, k, l, (alpha, beta, gamma), bound)
                if value is not None:
                    early, late = places[alpha, beta], places[alpha, gamma]
                    found[k, early, l, late] = found[l, late, k, early] = value


def _shared(
    series: _Series, k: int, l: int, inputs: tuple[int, int, int], bound: float
) -> float | None:
    """One of them, None if any of the inputs α, β, γ correlate more."""
    (alpha, beta, gamma), (early, late) = inputs, series.signals.K[[k, l]]
    A = float(series.signals.carried[l, k])
    own, others = (series.two_layers(k, l, *pair) for pair in ((alpha, alpha), (beta, gamma)))
    across = np.array(
        [
            [early[alpha, beta], A * early[alpha, gamma]],
            [A * early[alpha, beta], late[alpha, gamma]],
        ]
    )
    X = correlations(own, across, others)
    largest = max(np.abs(X).max(), abs(unit_row(others)[0]))
    if largest > bound:
        return None
    count = _count(largest)
    f, g = (series.of_layers(k, l, *pair, count) for pair in ((alpha, alpha), (beta, gamma)))
    total = apply(X[:, :, None], f[:, None], count)[:, 0] @ g + f[0] * g[0]
    means = [series.of_layers(m, m, alpha, i, count)[0] for m, i in ((k, beta), (l, gamma))]
    return float(total - means[0] * means[1])


class _Series:
    """Hermite coefficients of products of ψ of two signals, of each once.

    Parameters
    ----------
    signals : PairObservables
    """

    def __init__(self, signals: PairObservables) -> None:
        self.signals, self.psi = signals, kinked_features(signals.network)
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def two_layers(self, k: int, l: int, i: int, j: int) -> np.ndarray:
        """R of the signals of the input i in layer k and of j in layer l >= k."""
        early, late = self.signals.K[[k, l]]
        joint = np.asarray(float(self.signals.carried[l, k]) * early[i, j])
        return triangle(np.array([early[i, i], late[j, j]]), joint)

    def of_pair(self, layer: int, pair: int, count: int) -> np.ndarray:
        """Those of g(h_α, h_β) in one layer, in the order of `pair_modes`."""
        first, second = (int(members[pair]) for members in self.signals.pairs)
        return self.of_layers(layer, layer, first, second, count)

    def of_layers(self, k: int, l: int, i: int, j: int, count: int) -> np.ndarray:
        """Those of Σ ψ(h_i^(k)) ψ(h_j^(l))."""
        key = (k, l, i, j, count)
        if key not in self._known:
            R = self.two_layers(k, l, i, j)
            bound = next(upper for upper, orders in _COUNTS if orders == count)
            weak = abs(unit_row(R)[0]) <= bound
            found = (_of_product if weak else _of_plane)(self.psi, R, count)
            n, first = packed_places(count)
            self._known[key] = found[first, n - first]
        return self._known[key]


def _count(correlation: float) -> int:
    """Orders that count."""
    return next(count for upper, count in _COUNTS if correlation <= upper)


def _orders(count: int) -> WeakFactor:
    return WeakFactor(0.0, np.zeros(count), np.ones(count))


def _of_plane(psi: Sequence[Feature], R: np.ndarray, count: int) -> np.ndarray:
    """⟨g(h) h_i(z_1) h_j(z_2)⟩ by panels."""
    plane, panel, orders = Plane(R, centres(psi)), RESOLUTIONS[1].panel, _orders(count)
    z, weights = composite(plane.cuts((1.0, 1.0), panel), ORDER)

    def functions(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sum([f.function(x) * f.function(y) for f in psi], axis=0)[None]

    given = plane.given(functions, z, orders, panel)[0, 0]
    return orders.averaged(given.T * weights, z)[:, 0].T


def _of_product(psi: Sequence[Feature], R: np.ndarray, count: int) -> np.ndarray:
    """The same of signals that are independent nearly, σ z_1 and σ' (c z_1 + s z_2).

    Of ψ(x) ψ(y) it is Σ_k ⟨h_k ψ h_i⟩ √((k + j)!/(k! j!)) c^k s^j ⟨ψ h_{k+j}⟩.
    """
    first, second = float(R[0, 0]), float(np.hypot(*R[1]))
    along, across = (float(x) for x in unit_row(R))
    n = np.arange(count)
    steps = np.cumprod(np.hstack([np.ones((count, 1)), np.sqrt((n[:, None] + n[1:]) / n[1:])]), 1)
    factors = steps * along ** n[:, None] * across**n
    found = np.zeros((count, count))
    orders, wide = _orders(count), _orders(2 * count)
    for f in psi:
        products = []
        for deviation in (first, second):
            line = Plane(np.array([[deviation, 0.0]]), centres(psi))
            z, weights = composite(line.cuts((1.0, 1.0), RESOLUTIONS[1].panel), ORDER)
            products.append((z, f.function(deviation * z) * weights))
        z, values = products[0]
        matrix = orders.averaged(hermite(count, z) * values, z)[:, 0]
        z, values = products[1]
        single = wide.averaged(values, z)[0]
        found += matrix.T @ (factors * single[n[:, None] + n])
    return found
