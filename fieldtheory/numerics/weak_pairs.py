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
from fieldtheory.averages.quadrature import composite
from fieldtheory.averages.signs import rotations
from fieldtheory.numerics import weak_signals
from fieldtheory.numerics.kinked_features import Feature, centres, is_odd
from fieldtheory.numerics.kinked_planes import ORDER, RESOLUTIONS, Plane, WeakFactor, hermite
from fieldtheory.numerics.pair_modes import correlations, packed_places, triangle, unit_row
from fieldtheory.numerics.pair_observables import PairObservables, apply, kinked_features

# Correlations of pairs and of their two signals that are small, and the orders that count then.
WEAK, _SHARED, _COUNT = 5e-2, 1e-3, 13
_ORDERS = WeakFactor(0.0, np.zeros(_COUNT), np.ones(_COUNT))


def fill(signals: PairObservables, found: np.ndarray) -> None:
    """⟨g(h_α, h_β)^(k) ; g(h_γ, h_δ)^(l)⟩ of pairs that hardly correlate, in place.

    Parameters
    ----------
    signals : PairObservables
    found : ndarray, shape (L + 1, p, L + 1, p)
        Others are left as they are.
    """
    size, p = found.shape[:2]
    if is_odd(kinked_features(signals.network)):
        _fill_shared(signals, found)
    rows, columns = (places.ravel() for places in np.indices((p, p)))
    known: dict[tuple[int, int], np.ndarray] = {}
    for k in range(size):
        for l in range(k, size):
            X = signals.between(k, rows, l, columns)
            *_, largest, _ = rotations(X)
            (weak,) = np.nonzero((largest <= WEAK) & (largest > 0))
            if not len(weak):
                continue
            early, late = rows[weak], columns[weak]
            for layer, pairs in ((k, early), (l, late)):
                for pair in np.unique(pairs).tolist():
                    if (layer, pair) not in known:
                        known[layer, pair] = _coefficients(signals, layer, pair)
            f, g = (
                np.array([known[layer, pair] for pair in pairs.tolist()]).T
                for layer, pairs in ((k, early), (l, late))
            )
            values = np.sum(apply(X[..., weak], f, _COUNT) * g, axis=0)
            found[k, early, l, late] = found[l, late, k, early] = values
    if is_odd(kinked_features(signals.network)) and signals.has_kinks:
        _fill_alone(signals, found)


def _fill_alone(signals: PairObservables, found: np.ndarray) -> None:
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
        which = weak_signals.alone(K)
        unknown = np.isnan(found[k, rows, l, columns]) & ((k < l) | (rows <= columns))
        for n in np.flatnonzero((which >= 0) & unknown).tolist():
            with suppress(QuadratureError):
                value = weak_signals.correlator(
                    psi[0].function, centres(psi), K[..., n], int(which[n])
                )
                found[k, rows[n], l, columns[n]] = found[l, columns[n], k, rows[n]] = value


def _fill_shared(signals: PairObservables, found: np.ndarray) -> None:
    """⟨g(h_α, h_β)^(k) ; g(h_α, h_γ)^(l)⟩ of three inputs that hardly correlate, in place."""
    inputs = signals.K.shape[1]
    places = np.empty((inputs, inputs), dtype=int)
    places[signals.pairs] = places[signals.pairs[::-1]] = np.arange(len(signals.pairs[0]))
    for k, l in combinations_with_replacement(range(len(signals.K)), 2):
        if not signals.carried[l, k]:
            continue
        for alpha in range(inputs):
            for beta, gamma in permutations(set(range(inputs)) - {alpha}, 2):
                value = _shared(signals, k, l, alpha, beta, gamma)
                if value is not None:
                    early, late = places[alpha, beta], places[alpha, gamma]
                    found[k, early, l, late] = found[l, late, k, early] = value


def _shared(
    signals: PairObservables, k: int, l: int, alpha: int, beta: int, gamma: int
) -> float | None:
    """One of them, None if any of the inputs correlate more."""
    psi, (early, late) = kinked_features(signals.network), signals.K[[k, l]]
    A = float(signals.carried[l, k])
    own, others = (
        triangle(np.array([early[i, i], late[j, j]]), np.asarray(A * early[i, j]))
        for i, j in ((alpha, alpha), (beta, gamma))
    )
    across = np.array(
        [
            [early[alpha, beta], A * early[alpha, gamma]],
            [A * early[alpha, beta], late[alpha, gamma]],
        ]
    )
    X = correlations(own, across, others)
    if max(np.abs(X).max(), abs(unit_row(others)[0])) > _SHARED:
        return None
    f, g = _packed(_of_plane(psi, own)), _packed(_of_product(psi, others))
    total = apply(X[:, :, None], f[:, None], _COUNT)[:, 0] @ g + f[0] * g[0]
    means = [
        _of_product(psi, triangle(K[[alpha, i], [alpha, i]], K[alpha, i]))[0, 0]
        for K, i in ((early, beta), (late, gamma))
    ]
    return float(total - means[0] * means[1])


def _coefficients(signals: PairObservables, layer: int, pair: int) -> np.ndarray:
    """Those of g(h_α, h_β) in the order of `pair_modes`."""
    psi, R = kinked_features(signals.network), signals.R[:, :, layer, pair]
    weak = abs(unit_row(R)[0]) <= WEAK
    return _packed(_of_product(psi, R) if weak else _of_plane(psi, R))


def _packed(found: np.ndarray) -> np.ndarray:
    n, i = packed_places(_COUNT)
    return found[i, n - i]


def _of_plane(psi: Sequence[Feature], R: np.ndarray) -> np.ndarray:
    """⟨g(h) h_i(z_1) h_j(z_2)⟩ by panels."""
    plane, panel = Plane(R, centres(psi)), RESOLUTIONS[1].panel
    z, weights = composite(plane.cuts((1.0, 1.0), panel), ORDER)

    def functions(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sum([f.function(x) * f.function(y) for f in psi], axis=0)[None]

    given = plane.given(functions, z, _ORDERS, panel)[0, 0]
    return _ORDERS.averaged(given.T * weights, z)[:, 0].T


def _of_product(psi: Sequence[Feature], R: np.ndarray) -> np.ndarray:
    """The same of signals that are independent nearly, σ z_1 and σ' (c z_1 + s z_2).

    Of ψ(x) ψ(y) it is Σ_k ⟨h_k ψ h_i⟩ √((k + j)!/(k! j!)) c^k s^j ⟨ψ h_{k+j}⟩.
    """
    first, second = float(R[0, 0]), float(np.hypot(*R[1]))
    along, across = (float(x) for x in unit_row(R))
    n = np.arange(_COUNT)
    steps = np.cumprod(np.hstack([np.ones((_COUNT, 1)), np.sqrt((n[:, None] + n[1:]) / n[1:])]), 1)
    factors = steps * along ** n[:, None] * across**n
    found = np.zeros((_COUNT, _COUNT))
    wide = WeakFactor(0.0, np.zeros(2 * _COUNT), np.ones(2 * _COUNT))
    for f in psi:
        products = []
        for deviation in (first, second):
            line = Plane(np.array([[deviation, 0.0]]), centres(psi))
            z, weights = composite(line.cuts((1.0, 1.0), RESOLUTIONS[1].panel), ORDER)
            products.append((z, f.function(deviation * z) * weights))
        z, values = products[0]
        matrix = _ORDERS.averaged(hermite(_COUNT, z) * values, z)[:, 0]
        z, values = products[1]
        single = wide.averaged(values, z)[0]
        found += matrix.T @ (factors * single[n[:, None] + n])
    return found
