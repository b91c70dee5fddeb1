"""Observables g(h_α, h_β) of wide signals or with kinks by more Hermite coefficients.

These fall off slowly: those of φ(h_β) are kept far beyond those of the product, and integrals end
at kinks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.kinks.kinked_planes import BESIDE, graded
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.observables.pair_modes import packed_size
from fieldtheory.numerics.observables.pair_observables import (
    PairObservables,
    features,
    kinked_features,
    left_out_of,
    variances_of_orders,
)
from fieldtheory.numerics.observables.pair_powers import block
from fieldtheory.numerics.observables.product_rules import (
    Function,
    ProductRule,
    even_rule,
    panel_rule,
)

# Orders of φ(h) that products are made of, and pairs that tell how many orders it takes.
MOST, _ASKED = 1088, 8
# Deviations from which on even nodes may miss how φ changes about zero.
_WIDE = 3.0
# What an octave of orders has of the one before at most, and how much more may be beyond.
_SLOWEST, _SAFETY = 0.9, 3.0


def panel_ends(signals: PairObservables) -> tuple[float, ...]:
    """Where panels end: at kinks, or about zero, where φ changes, if signals are wide.

    Nowhere if even nodes do, as they must beside signals that vanish.
    """
    places = {kink.place for psi in kinked_features(signals.network) for kink in psi.jumps}
    own = np.diagonal(signals.K, axis1=1, axis2=2)
    widest = float(np.sqrt(own.max(initial=0.0)))
    if places or widest <= _WIDE or not own.all():
        return tuple(sorted(places))
    beside = graded(BESIDE, widest)
    return (*(-beside[::-1]).tolist(), 0.0, *beside.tolist())


def expanded(
    signals: PairObservables, count: int, layers: Sequence[int] | np.ndarray, pairs: np.ndarray
) -> np.ndarray:
    """The coefficients of orders below ``count``, shape (layers, pairs, orders)."""
    products = [(psi[0], psi[0]) for psi in features(signals.network)]
    ends = panel_ends(signals)
    how: ProductRule = panel_rule(count, MOST, ends) if ends else even_rule(count, MOST)
    found = signals.expanded(products, count, pairs, layers, how)
    first, second = (members[pairs] for members in signals.pairs)
    (same,) = np.nonzero(first == second)
    if ends and len(same):
        # Of one signal products of orders converge as slowly as the orders fall off.
        own = np.sqrt(np.diagonal(signals.K, axis1=1, axis2=2)[layers][:, first[same]])
        alone = how.single(_observable(signals), own.ravel())[:, :count]
        values = np.zeros((*own.shape, packed_size(count)))
        values[..., [block(n).stop - 1 for n in range(count)]] = alone.reshape(*own.shape, count)
        found[:, same] = values
    return found


def left_out(signals: PairObservables, count: int) -> tuple[float, float]:
    """What orders from ``count`` on add to variances of the widest pairs, and integrals miss.

    The latter of the averages of these pairs, relative to deviations.
    """
    own = np.diagonal(signals.K, axis1=1, axis2=2)
    layer = int(np.argmax(own.sum(axis=1)))
    K = signals.K[layer]
    sizes = own[layer][np.array(signals.pairs)].sum(axis=0)
    widest = np.sort(np.argsort(-sizes, kind="stable")[:_ASKED])
    found = expanded(signals, count, [layer], widest)[0]
    first, second = (members[widest] for members in signals.pairs)
    moments = network_entries(signals.network)
    expected = moments.covariance(own[layer, first], own[layer, second], K[first, second])
    apart = np.abs(found[:, 0] - expected)
    deviation = np.sqrt((found[:, 1:] ** 2).sum(axis=-1)).max()
    missed = apart.max() / deviation if deviation else np.inf
    beyond = (_left_out_by_kinks if signals.has_kinks else left_out_of)(found, count)
    return tuple(np.nan_to_num([beyond, missed], nan=np.inf).tolist())


def _left_out_by_kinks(found: np.ndarray, count: int) -> float:
    """The same as `left_out_of` of coefficients that fall off as powers, up to waves of n."""
    of_orders = variances_of_orders(found, count)
    before, last = np.add.reduceat(of_orders, [count // 4, count // 2], axis=1).T
    fall = np.minimum(ratio(last, before), _SLOWEST)
    return float(np.max(ratio(_SAFETY * last * fall / (1 - fall), of_orders.sum(axis=1))))


def _observable(signals: PairObservables) -> Function:
    """g(h, h)."""
    psi = [each[0] for each in features(signals.network)]
    return lambda h: np.sum([f(h) ** 2 for f in psi], axis=0)
