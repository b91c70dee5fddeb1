"""Correlators of the observables of two pairs of inputs by the averages over their four signals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages import ConnectedCorrelator, many
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import tensor
from fieldtheory.averages.integrands.steps import has_steps
from fieldtheory.averages.rules import CLOSED_FORM, PRICE, entry_indices
from fieldtheory.averages.tolerance import relative_tolerance, tolerance
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.correlators import sign_pairs
from fieldtheory.numerics.correlators.common_factors import FourSignals
from fieldtheory.numerics.kinks.kinked_features import centres, is_odd
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.observables import pair_grids
from fieldtheory.numerics.observables.pair_observables import (
    PAIR_TOLERANCE,
    PairObservables,
    kinked_features,
)
from fieldtheory.theory.elementary_averages import X, Y

# Which of the distinct signals stand in the first and in the second observable; ~i is minus one.
Pattern = tuple[int, int, int, int]
# Correlators found at once, and what the progress bar says.
_TOGETHER, _TITLE = 1 << 18, "G11, pairs of pairs"
# Seconds of a correlator without a closed form, beside and per node, with kinks and without, and
# those allowed in all, and those that are announced.
_KINKED, _SMOOTH, LONGEST, _LONG = (5e-3, 5e-7), (1e-3, 1e-7), 7200.0, 600.0
# Seconds of a correlator in closed form, with kinks that are not all at zero.
_CLOSED = 3e-4
# Correlators that tell how long all of them take.
_ASKED = 200
# Seconds of the slopes of one matrix per node of four signals.
_SLOPES = 4.5e-7
# What there is instead.
_NOT_RESOLVED = (
    "leave one of these nearly parallel inputs out, or ask for a larger error, "
    "solve(..., rtol=1e-6)"
)
# Variances of signals of which closed forms have too few digits, relative to kinks: below, above.
_NARROW, _WIDE = 1e-3, 1e3
# Differences of averages relative to deviations that have nine digits, and relative to products of
# sizes that are rounding.
_DIGITS, _ROUNDING = 1e-7, 1e-15


def by_averages(signals: PairObservables, known: np.ndarray | None = None) -> np.ndarray:
    """⟨g(h_α, h_β)^(k) ; g(h_γ, h_δ)^(l)⟩ of all layers and pairs, shape (L + 1, p, L + 1, p).

    Closed forms, some milliseconds for each entry at most, and integrals (see `seconds_needed`);
    those that are ``known`` are not NaN.
    """
    K, members, carried = _layers_at_once(signals)
    size, p = members.shape[1:]
    g = network_entries(signals.network).averages.observable
    found = np.full((size, p, size, p), np.nan) if known is None else known
    if not network_entries(signals.network).second_moment(np.zeros(1))[0]:
        # φ of signals that vanish does, and has no averages over what is beside kinks.
        still = signals.still(np.arange(p))
        found[still] = 0.0
        found[:, :, still] = 0.0
    unknown = np.isnan(found)
    if not has_closed_form(g):
        _one_by_one(signals, K, members, found)
        return found
    together = max(1, _TOGETHER // p**2)
    inputs, of_signs = signals.K.shape[-1], sign_pairs.have_two_values(signals)
    lost, odd = without_digits(signals), is_odd(kinked_features(signals.network))
    for k in signals.counted(range(size), _TITLE):
        for start in range(k, size, together):
            later = slice(start, start + together)
            block = found[k, :, later]
            rows, l, columns = np.nonzero(np.isnan(block))
            # Layers are independent without skip connections.
            joined = carried[k, start + l] != 0
            block[rows[~joined], l[~joined], columns[~joined]] = 0.0
            kept = joined & ~(lost[k, rows] | lost[start + l, columns])
            rows, l, columns = rows[kept], l[kept], columns[kept]
            # Many pairs: what one layer has is too much for one array.
            for first in range(0, len(rows), _TOGETHER):
                some = slice(first, first + _TOGETHER)
                one, later_ones, other = rows[some], l[some], columns[some]
                four = np.concatenate([members[:, k, one], members[:, start + later_ones, other]])
                independent = _apart(K, four) | (odd & _alone(K, four))
                values = np.empty(four.shape[1])
                since = of_signs & (start + later_ones > k)
                values[~since] = _connected_if_known(g, K, four[:, ~since])
                after = (start + later_ones)[since]
                values[since] = sign_pairs.connected(signals, k, four[:, since] % inputs, after)
                block[one, later_ones, other] = np.where(independent, 0.0, values)
            found[later, :, k] = np.moveaxis(block, 0, -1)
    if np.isnan(found).any():
        _one_by_one(signals, K, members, found)
    if odd and not of_signs:
        _require_digits(signals, found, unknown)
    return found


def _alone(K: np.ndarray, four: np.ndarray) -> np.ndarray:
    """Whether one of four signals (4, m) is independent of the others, shape (m,)."""
    # Signals that vanish are limits, not independent of themselves.
    joined = np.array([[(K[i, j] != 0) | (i == j) for j in four] for i in four])
    return np.any(np.count_nonzero(joined, axis=1) == 1, axis=0)


def _apart(K: np.ndarray, four: np.ndarray) -> np.ndarray:
    """Whether the first two of four signals (4, m) are independent of the others, shape (m,)."""
    first, second = four[:2, None], four[None, 2:]
    return np.all((K[first, second] == 0) & (first != second), axis=(0, 1))


def is_closed(signals: PairObservables) -> bool:
    """Whether closed forms have all correlators, with their digits."""
    g = network_entries(signals.network).averages.observable
    return has_closed_form(g) and not without_digits(signals).any()


def seconds_of_closed(signals: PairObservables) -> float:
    """About how many seconds a correlator in closed form takes, 0 for microseconds."""
    psi = kinked_features(signals.network)
    quick = all(each.has_orthants or not each.jumps for each in psi) or sign_pairs.have_two_values(
        signals
    )
    return 0.0 if quick else _CLOSED


def without_digits(signals: PairObservables) -> np.ndarray:
    """Pairs with a signal of which closed forms have too few digits, shape (L + 1, p).

    They are differences, but for φ that are homogeneous: of terms of size one for narrow signals,
    and of powers of the distance from kinks for wide ones.
    """
    psi = kinked_features(signals.network)
    # Of error functions the scale on which they change is one.
    kinks = [abs(jump.place) for each in psi for jump in each.jumps] or [1.0]
    if not any(kinks):
        return np.zeros((len(signals.K), len(signals.pairs[0])), dtype=bool)
    own = np.diagonal(signals.K, axis1=1, axis2=2) / max(kinks) ** 2
    least, most = (
        choose(*(own[:, members] for members in signals.pairs))
        for choose in (np.minimum, np.maximum)
    )
    return (least > 0) & ((least < _NARROW) | (signals.has_kinks & (most > _WIDE)))


def _require_digits(signals: PairObservables, found: np.ndarray, unknown: np.ndarray) -> None:
    """QuadratureError if differences of averages of odd φ are small, but not zero.

    They are as small as correlations are.
    """
    size, p = found.shape[:2]
    square = found.reshape(size * p, -1)
    deviations = np.sqrt(np.maximum(np.diagonal(square), 0.0))
    share = np.divide(
        np.abs(square),
        np.outer(deviations, deviations),
        out=np.ones_like(square),
        where=np.outer(deviations, deviations) > 0,
    )
    # Of φ² that hardly fluctuates, as of sign(h), deviations are rounding too.
    own = network_entries(signals.network).second_moment(np.diagonal(signals.K, axis1=1, axis2=2))
    sizes = np.sqrt(np.prod([own[:, members] for members in signals.pairs], axis=0)).ravel()
    seen = np.abs(square) > _ROUNDING * np.outer(sizes, sizes)
    seen &= share > pair_grids.NOTHING
    lost = unknown.reshape(square.shape) & seen & (share < _DIGITS)
    if lost.any():
        raise QuadratureError(
            f"fluctuations of inputs of which some correlate by {share[lost].min():.1g} and others "
            "much more are differences without digits: "
            "leave some of them out"
        )


def _layers_at_once(signals: PairObservables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The covariance of all signals, those of every pair (2, L + 1, p), and A both ways."""
    size, inputs = signals.K.shape[:2]
    first, second = signals.pairs
    # Inputs of every layer, those that are the same by the first of them.
    one = np.tile(np.arange(inputs), (size, 1))
    for a, b, equal in zip(first, second, signals.same(np.arange(len(first))).T, strict=True):
        one[equal, b] = np.minimum(one[equal, b], a)
    layers = np.arange(size)
    earlier = np.minimum.outer(layers, layers)
    carried = np.tril(signals.carried) + np.tril(signals.carried, -1).T
    # Signals are counted layer by layer.
    blocks = carried[:, :, None, None] * signals.K[earlier]
    K = np.swapaxes(blocks, 1, 2).reshape(size * inputs, size * inputs)
    members = np.array([inputs * layers[:, None] + one[:, side] for side in signals.pairs])
    return K, members, carried


def _one_by_one(
    signals: PairObservables, K: np.ndarray, members: np.ndarray, found: np.ndarray
) -> None:
    """What is not known, one correlator after the other, at any width of the signals."""
    (k, rows, l, columns), distinct, places = _left(members, found)
    g = network_entries(signals.network).averages.observable
    closed = has_closed_form(g)
    psi = [feature.function for feature in kinked_features(signals.network)]
    kinked = _four_signals(signals, K)

    def observable(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sum([each(x) * each(y) for each in psi], axis=0)

    def correlator(one: np.ndarray) -> float:
        first, second, across = _blocks(K, one)
        if not across.any() or (kinked.odd and _alone(K, one[:, None])[0]):
            return 0.0
        if signals.has_kinks:
            try:
                return kinked.connected(one)
            except QuadratureError:
                if not closed:
                    raise
                return float(connected(g, K, one[:, None])[0])
        return pair_grids.connected(observable, first, second, across, kinked.odd)

    values = np.zeros(distinct.shape[1])
    for number in signals.counted(range(len(values)), _TITLE):
        values[number] = correlator(distinct[:, number])
    found[k, rows, l, columns] = found[l, columns, k, rows] = values[places.ravel()]


def _left(
    members: np.ndarray, found: np.ndarray
) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Places of what is not known once, its different four signals, and which are whose."""
    p = members.shape[2]
    k, rows, l, columns = np.nonzero(np.isnan(found))
    once = (k * p + rows) <= (l * p + columns)
    k, rows, l, columns = k[once], rows[once], l[once], columns[once]
    four = np.concatenate([members[:, k, rows], members[:, l, columns]])
    # Equal inputs make of different pairs one.
    distinct, places = np.unique(four, axis=1, return_inverse=True)
    return (k, rows, l, columns), distinct, places


def _four_signals(signals: PairObservables, K: np.ndarray) -> FourSignals:
    known = kinked_features(signals.network)
    return FourSignals([each.function for each in known], centres(known), K, is_odd(known))


def _blocks(K: np.ndarray, four: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariances of the first two of four signals, of the others, and of those with these."""
    own, others = four[:2], four[2:]
    return K[np.ix_(own, own)], K[np.ix_(others, others)], K[np.ix_(own, others)]


def seconds_needed(signals: PairObservables, known: np.ndarray) -> float:
    """About how many seconds `by_averages` takes for φ without closed forms.

    Parameters
    ----------
    signals : PairObservables
    known : ndarray, shape (L + 1, p, L + 1, p)
        NaN where correlators are asked for.
    """
    K, members, _ = _layers_at_once(signals)
    unknown = np.flatnonzero(np.isnan(known))
    if not len(unknown):
        return 0.0
    k, rows, l, columns = np.unravel_index(unknown[:: max(1, len(unknown) // _ASKED)], known.shape)
    four = np.concatenate([members[:, k, rows], members[:, l, columns]])
    # Equal inputs make of different pairs one; both orders of two pairs are one.
    sizes = [np.unique(pairs, axis=1).shape[1] for pairs in np.swapaxes(members, 0, 1)]
    count = len(unknown) / 2 * float(np.mean(sizes) / members.shape[2]) ** 2
    kinked = _four_signals(signals, K)
    overhead, per_node = _KINKED if signals.has_kinks else _SMOOTH
    nodes = [
        kinked.nodes(one) if signals.has_kinks else pair_grids.nodes(*_blocks(K, one))
        for one in four.T
    ]
    return count * (overhead + per_node * float(np.mean(nodes)))


def require_time(
    signals: PairObservables, quantity: str, seconds: float, instead: str, orders: int = 0
) -> None:
    """QuadratureError if what is asked for takes too long, with what there is ``instead``.

    A warning if it takes more than minutes. By Hermite polynomials of so many ``orders``, if any.
    """
    if seconds <= min(_LONG, LONGEST):
        return
    inputs, widest = signals.K.shape[-1], f"signals of variances up to {signals.K.max():.3g}"
    why = f"of integrals, as {widest} are not resolved by Hermite polynomials"
    if orders:
        why = f"of sums, as {widest} take {orders} orders of Hermite polynomials"
    _announced(f"{quantity} of {inputs} inputs in {len(signals.K)} layers", seconds, why, instead)


def _announced(what: str, seconds: float, why: str, instead: str) -> None:
    """QuadratureError where something takes longer than the longest, else a warning."""
    if seconds > LONGEST:
        hours = seconds / 3600
        digits = 0 if hours >= 10 else 1
        raise QuadratureError(f"{what} takes about {hours:,.{digits}f} hours {why}: {instead}")
    minutes = f"{seconds / 60:.2g} minutes"
    warnings.warn(
        f"{what} takes about {minutes} {why}; if that is too long, {instead}",
        stacklevel=validation.level_of_user(),
    )


def connected(g: sp.Expr, K: np.ndarray, four: np.ndarray) -> np.ndarray:
    """⟨g(h_a, h_b) ; g(h_c, h_d)⟩, shape (m,).

    Parameters
    ----------
    g : sympy.Expr
        In the symbols ``X`` and ``Y``.
    K : ndarray, shape (n, n)
        The covariance of the signals.
    four : ndarray of int, shape (4, m)
        a, b, c and d of every correlator.

    Examples
    --------
    >>> connected(X * Y, np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0], [1], [0], [1]]))
    array([7.])
    """
    # Which of the four is the first to be the same signal.
    places = np.stack([np.argmax(four[: i + 1] == four[i], axis=0) for i in range(4)])
    found = np.empty(four.shape[1])
    # Correlators with as many distinct signals in the same places at once.
    code = np.array([64, 16, 4, 1]) @ places
    for kind in np.unique(code):
        (index,) = np.nonzero(code == kind)
        at = places[:, index[0]]
        distinct = np.unique(at)
        a, b, c, d = np.searchsorted(distinct, at).tolist()
        signals = four[distinct][:, index]
        upper = np.triu_indices(len(distinct))
        entries = K[signals[upper[0]], signals[upper[1]]]
        found[index] = _compiled(g, (a, b, c, d))(*entries)
    return found


def _connected_if_known(g: sp.Expr, K: np.ndarray, four: np.ndarray) -> np.ndarray:
    """`connected`, NaN where terms of closed forms cancel."""
    try:
        return connected(g, K, four)
    except QuadratureError:
        if (count := four.shape[1]) == 1:
            return np.array([np.nan])
        halves = four[:, : count // 2], four[:, count // 2 :]
        return np.concatenate([_connected_if_known(g, K, half) for half in halves])


def four_signals_are_quick(network: LayeredNetwork) -> bool:
    """Whether correlators of four signals take milliseconds, not tens: no integrals over kinks.

    Examples
    --------
    >>> from fieldtheory.networks import ResidualNetwork
    >>> [four_signals_are_quick(ResidualNetwork(depth=1, activation=n)) for n in ("relu", "elu")]
    [True, False]
    """
    smooth = not any(psi.jumps for psi in kinked_features(network))
    return smooth or has_closed_form(network_entries(network).averages.observable)


@lru_cache(maxsize=64)
def has_closed_form(g: sp.Expr) -> bool:
    """Whether correlators of four different signals are one integral over closed forms at most."""
    correlator, _ = _correlator(g, (0, 1, 2, 3))
    if many.signed(correlator) is not None:
        return True
    nodes = correlator.atoms(ConnectedCorrelator)
    return all(many.rule(node).name in (PRICE, CLOSED_FORM) for node in nodes)


class NoClosedForm(QuadratureError):
    """Averages over wedges between kinks away from zero."""


def slopes(g: sp.Expr, K: np.ndarray) -> np.ndarray:
    """∂_e ⟨g(x, y) ; g_e'⟩ with g_e' = g(u, u), g(v, v), g(u, v), shape (3, 3, ...).

    By the entries e = K_xx, K_yy, K_xy of the covariance alone, as if x and y belonged to a layer
    after that of u and v.

    Parameters
    ----------
    g : sympy.Expr
        Symmetric, in the symbols ``X`` and ``Y``.
    K : ndarray, shape (4, 4, ...)
        The covariance of x, y, u and v.

    Examples
    --------
    >>> slopes(X * Y, np.array([[2.0, 0, 1, 0], [0, 2, 0, 1], [1, 0, 2, 0], [0, 1, 0, 2]]))[2]
    array([0., 0., 0.])

    Raises
    ------
    NoClosedForm
        If kinks away from zero leave averages over wedges.
    QuadratureError
        If averages of nearly parallel wide signals take too long, or miss 1e-9 or ``rtol``.
    """
    if not has_steps(g):
        _require_time_of_slopes(g, K)
    found = np.empty((3, 3, *K.shape[2:]))
    # Of v = u and of v = −u the covariance is singular.
    one = (K[2, 2] == K[3, 3]) & (np.abs(K[2, 3]) == K[2, 2]) & (K[2, 2] > 0)
    same, opposite = one & (K[2, 3] > 0), one & (K[2, 3] < 0)
    for where, v in ((same, 2), (opposite, ~2), (~one, 3)):
        if where.any():
            found[:, :, where] = _slopes(g, K[:, :, where], v)
    return found


def _slopes(g: sp.Expr, K: np.ndarray, v: int) -> np.ndarray:
    """`slopes` of matrices (4, 4, n) in which v is the second signal u, minus it, or its own."""
    exchanged = K[[1, 0, 3, 2]][:, [1, 0, 3, 2]]
    found = np.empty((3, 3, *K.shape[2:]))
    both = (0, 1, 2, v)
    for source, pattern in ((0, (0, 1, 2, 2)), (2, both)):
        for e in range(3):
            if (e, source) != (1, 2):
                found[e, source] = _of_matrices(g, pattern, e, K)
    # g is symmetric: the rest follows with the inputs exchanged.
    for e, other in ((0, 1), (1, 0), (2, 2)):
        found[e, 1] = _of_matrices(g, (0, 1, 2, 2), other, exchanged)
    found[1, 2] = _of_matrices(g, both, 0, exchanged)
    return found


def _of_matrices(g: sp.Expr, pattern: Pattern, e: int, K: np.ndarray) -> np.ndarray:
    upper = np.triu_indices(max(pattern) + 1)
    entries = K[upper].reshape(len(upper[0]), -1)
    try:
        slope = _compiled(g, pattern, e)
    except ValueError:
        raise NoClosedForm(
            "the shift of means: two inputs are too nearly parallel for an activation with kinks "
            "away from zero; leave one of them out"
        ) from None
    if has_steps(g):
        return np.asarray(slope(*entries)).reshape(K.shape[2:])
    # As exact as the other ways to find what pairs have.
    allowed = max(tolerance(), PAIR_TOLERANCE)
    try:
        with relative_tolerance(allowed), np.errstate(over="ignore"):
            return np.asarray(slope(*entries)).reshape(K.shape[2:])
    except QuadratureError:
        raise QuadratureError(
            f"the shift of means of two inputs, of {_signals_of(K)}, misses the relative error "
            f"{allowed:.1g}: {_NOT_RESOLVED}"
        ) from None


def _require_time_of_slopes(g: sp.Expr, K: np.ndarray) -> None:
    """QuadratureError if the integrals of `slopes` take too long, a warning if minutes."""
    matrices = np.moveaxis(K.reshape(4, 4, -1), -1, 0)
    asked = matrices[:: max(1, len(matrices) // _ASKED)]
    nodes = np.mean([tensor.nodes_needed(one) for one in asked]) if len(asked) else 0.0
    seconds = _SLOPES * float(nodes) * len(matrices)
    if seconds <= min(_LONG, LONGEST) or not _is_integrated(g):
        return
    what = f"the shift of means of two inputs, of {_signals_of(K)},"
    _announced(what, seconds, "of integrals", _NOT_RESOLVED)


def _signals_of(K: np.ndarray) -> str:
    """The widest signals among matrices (4, 4, ...), and how they correlate."""
    own = K.reshape(4, 4, -1)
    n = int(np.argmax(own[0, 0]))
    x, y, c = own[0, 0, n], own[1, 1, n], own[0, 1, n] / np.sqrt(own[0, 0, n] * own[1, 1, n])
    return f"signals of the variances {x:.4g} and {y:.4g} and the correlation {c:.6g}"


@lru_cache(maxsize=64)
def _is_integrated(g: sp.Expr) -> bool:
    """Whether slopes of a smooth g are integrals over four signals."""
    correlator, K = _correlator(g, (0, 1, 2, 3))
    nodes = correlator.diff(K[0, 0]).atoms(ConnectedCorrelator)
    return any(many.rule(node).name not in (PRICE, CLOSED_FORM) for node in nodes)


@lru_cache(maxsize=64)
def _compiled(g: sp.Expr, pattern: Pattern, e: int | None = None) -> Callable[..., np.ndarray]:
    """The correlator of a pattern, or its derivative by an entry e of the first observable.

    Of the entries of the covariance in the order of `np.triu_indices`.
    """
    correlator, K = _correlator(g, pattern)
    count = K.shape[0]
    upper = [(i, j) for i in range(count) for j in range(i, count)]
    if e is not None:
        correlator = correlator.diff((K[0, 0], K[1, 1], K[0, 1])[e])
    elif (rule := many.signed(correlator)) is not None:
        function, order = rule.function, [upper.index(place) for place in entry_indices(count)]
        return lambda *entries: function(*(entries[i] for i in order))
    return lambdify([K[place] for place in upper], correlator, "numpy")


def _correlator(g: sp.Expr, pattern: Pattern) -> tuple[sp.Expr, sp.Matrix]:
    """⟨g(h_a, h_b) ; g(h_c, h_d)⟩ and the covariance of the distinct signals."""
    count = max(pattern) + 1
    h = sp.symbols(f"h0:{count}", real=True)
    K = sp.Matrix(count, count, lambda i, j: sp.Symbol(f"K{min(i, j)}{max(i, j)}", real=True))
    a, b, c, d = (h[place] if place >= 0 else -h[~place] for place in pattern)
    observables = [g.subs({X: u, Y: v}, simultaneous=True) for u, v in ((a, b), (c, d))]
    return ConnectedCorrelator(*observables, h, K), K
