"""What the two inputs of every pair alone have: correlators, and derivatives by their kernels.

By Hermite coefficients where these resolve the signals; else, for φ with kinks and wide signals, by
the factors that the two inputs have in common, and by the averages themselves where these fail or
are moments of orthants.
Entries are e = αα, ββ, αβ, and g_e = g(h_α, h_α), g(h_β, h_β), g(h_α, h_β).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.correlators import (
    distinct_pairs,
    four_inputs,
    later_layers,
    sign_pairs,
    weak_pairs,
)
from fieldtheory.numerics.correlators.distinct_inputs import DistinctInputs
from fieldtheory.numerics.correlators.later_signals import LaterSignal
from fieldtheory.numerics.correlators.two_inputs import TwoInputs
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.kinks import odd_pairs, parallel_curvatures
from fieldtheory.numerics.kinks.kinked_features import is_odd
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.parallel_signals import are_parallel
from fieldtheory.numerics.observables.pair_modes import packed_size
from fieldtheory.numerics.observables.pair_observables import (
    PairObservables,
    feature_expressions,
    kinked_features,
    places_of_jumps,
)
from fieldtheory.numerics.observables.two_layers import TwoLayers
from fieldtheory.numerics.one_input.fluctuations import connected_squares

# ∂_e as derivatives by x and by y and a factor, for (αα), (ββ), (αβ).
_SLOPES = ((2, 0, 0.5), (0, 2, 0.5), (1, 1, 1.0))
# What the progress bar of `slopes` says.
_SLOPES_TITLE = "mean_shift, slopes"
# Seconds of a pair of layers by common factors, and per node of correlators and of slopes.
_OVERHEAD, _PER_NODE = 1e-2, (1e-7, 2.5e-7)
# Seconds of a function that is brought back from layer to layer, per cube of its Hermite orders.
_PER_ORDERS = 5e-10
# Seconds that other ways may take before series in correlations of different inputs are taken, and
# correlations of which these do not have the digits.
_QUICK, _LITTLE = 2.0, 1e-5
# Pairs of layers that tell how long all of them take.
_ASKED = 50
# What layers add relative to their kernels, below which derivatives of closed forms lose digits,
# about 1e-16 over it, and below which too many.
_ADDS_LITTLE, _ADDS_TOO_LITTLE = 1e-5, 1e-7
# Pairs of which closed forms beside jumps take longer to derive than integrals by common factors.
_FEW_PAIRS = 3
# A variance that is as good as none, relative to another.
_NARROW = 1e-32
# Coefficients of one function that are held at once.
_TOGETHER = 1 << 23


def seconds_needed(signals: PairObservables, slopes: bool) -> float:
    """About how many seconds `correlators` of all pairs α < β take, or `slopes`.

    Those of closed forms, which are quick, count as none, and so do those of smooth φ without
    Hermite coefficients, whose planes do not follow the noise of nearly parallel signals.
    """
    if _of_distinct(signals, slopes):
        return distinct_pairs.seconds_needed(signals, slopes)
    return _seconds_otherwise(signals, slopes)


def _of_distinct(signals: PairObservables, slopes: bool) -> DistinctInputs | None:
    """Series in correlations of different inputs where these are quicker than the other ways."""
    inputs = signals.K.shape[-1]
    seconds = _seconds_otherwise(signals, slopes)
    if not (signals.resolved or signals.has_kinks):
        # At least.
        seconds = _OVERHEAD * inputs * (inputs - 1) / 2 * _layers_asked(signals, slopes)
    if seconds <= max(_QUICK, distinct_pairs.seconds_needed(signals, slopes)):
        return None
    found = DistinctInputs(signals)
    return found if found.resolved else None


def hardly_correlate(signals: PairObservables, pairs: np.ndarray) -> np.ndarray:
    """Pairs, by their places among these, of which series lose digits that other ways find.

    Those of odd φ, as what they leave is small.
    """
    if not is_odd(kinked_features(signals.network)):
        return np.zeros(0, dtype=int)
    alpha, beta = (members[pairs] for members in signals.pairs)
    own = np.sqrt(np.diagonal(signals.K, axis1=1, axis2=2))
    both = np.abs(signals.K[:, alpha, beta])
    little = (both > 0) & (both < _LITTLE * own[:, alpha] * own[:, beta])
    return np.flatnonzero(little.any(axis=0))


def _seconds_otherwise(signals: PairObservables, slopes: bool) -> float:
    """The same without series in correlations of different inputs."""
    if signals.resolved:
        inputs, layers = signals.K.shape[-1], len(np.triu_indices(len(signals.K), int(slopes))[0])
        brought = 3 * inputs * (inputs - 1) / 2 * layers
        return float(brought * _PER_ORDERS * signals.count**3)
    if not signals.has_kinks:
        return 0.0
    quick = _has_orthants(signals) or sign_pairs.have_two_values(signals)
    if not slopes and four_inputs.is_closed(signals):
        size, inputs = signals.K.shape[:2]
        entries = (3 * size) ** 2 / 2 * inputs * (inputs - 1) / 2
        return four_inputs.seconds_of_closed(signals) * entries
    if slopes and quick:
        return 0.0
    pairs = np.flatnonzero(signals.pairs[0] != signals.pairs[1])
    found_at_once = (signals.turned(pairs) != 0) | (slopes & signals.vanish(pairs))
    pairs = pairs[~found_at_once]
    first, second = np.triu_indices(len(signals.K), int(slopes))
    count = len(pairs) * len(first)
    nodes, seconds = [], _PER_NODE[int(slopes)]
    for n in range(0, count, max(1, count // _ASKED)):
        # Every pair of inputs for other layers.
        number, layer = n % len(pairs), n % len(first)
        two = _two_inputs(signals, pairs[number])
        nodes.append(two.nodes(int(first[layer]), int(second[layer])))
    if not nodes:
        return 0.0
    count = len(pairs) * _layers_asked(signals, slopes)
    return count * (_OVERHEAD + seconds * float(np.mean(nodes)))


def _layers_asked(signals: PairObservables, slopes: bool) -> int:
    """Of how many pairs of layers integrals are taken: of layers that are alike of few."""
    size, weights = len(signals.K), layer_coefficients(signals.network).weights[1:-1]
    if (weights == weights[0]).all():
        return sum(later_layers.asked(size - k - int(slopes)) for k in range(size))
    return len(np.triu_indices(size, int(slopes))[0])


def curvatures(signals: PairObservables, pairs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """⟨∂_e ∂_e' g⟩ of pairs α < β in all layers, shape (3, 3, L + 1, pairs).

    Parameters
    ----------
    signals : PairObservables
    pairs : ndarray of int
    used : ndarray of bool, shape (L + 1, pairs)
        Where they are asked for; zero elsewhere.
    """
    found = np.zeros((3, 3, *used.shape))
    if signals.resolved:
        means = {
            orders: np.concatenate(
                [signals.projected(*orders, some)[..., 0] for some in _blocks(signals, pairs)],
                axis=1,
            )
            for orders in ((4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
        }
        for (e, (i, j, c)), (f, (k, l, d)) in product(enumerate(_SLOPES), repeat=2):
            found[e, f] = np.where(used, c * d * means[i + k, j + l], 0.0)
        return found
    alpha, beta = (members[pairs] for members in signals.pairs)
    own = np.diagonal(signals.K, axis1=1, axis2=2)
    x, y, xy = (k[used] for k in (own[:, alpha], own[:, beta], signals.K[:, alpha, beta]))
    xx, mixed, of_x, crossed = _curvature(signals, x, y, xy)
    yy, _, of_y, _ = _curvature(signals, y, x, xy)
    found[:, :, used] = [[xx, mixed, of_x], [mixed, yy, of_y], [of_x, of_y, crossed]]
    return found


def _curvature(
    signals: PairObservables, x: np.ndarray, y: np.ndarray, xy: np.ndarray
) -> np.ndarray:
    """∂²⟨g(x, y)⟩ by K_xx twice, by K_xx and K_yy, by K_xx and K_xy, by K_xy twice, (4, m)."""
    psi, found = feature_expressions(signals.network), np.empty((4, len(x)))
    given = np.zeros(len(x), dtype=bool)
    if signals.has_kinks and parallel_curvatures.are_finite(psi):
        given = parallel_curvatures.are_near(x, y, xy)
        if not (_has_orthants(signals) or sign_pairs.have_two_values(signals)):
            given |= (x > 0) & (y > 0) & ~odd_pairs.are_weak(signals.network, x, y, xy)
        entries = x[given], y[given], xy[given]
        found[:, given] = parallel_curvatures.covariance_curvature(psi, *entries)
    if not given.all():
        averages = odd_pairs.covariance_curvature(signals.network)
        found[:, ~given] = averages(x[~given], y[~given], xy[~given])
    return found


def slopes(signals: PairObservables, pairs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """∂_e ⟨g^(l) ; g_e'^(k)⟩ by the kernels of the later layer, k < l, of g = g(h_α, h_β).

    Parameters are those of `curvatures`.

    Returns
    -------
    ndarray, shape (L + 1, L + 1, 3, 3, pairs)
        By k, l, e, e'; zero elsewhere.
    """
    if inputs := _of_distinct(signals, True):
        found = _by_series(inputs, pairs, distinct_pairs.slopes, 1, _SLOPES_TITLE)
        np.copyto(found, 0.0, where=~used[:, None, None])
        if (little := hardly_correlate(signals, pairs)).size:
            found[..., little] = _slopes_otherwise(signals, pairs[little], used[:, little])
        return found
    return _slopes_otherwise(signals, pairs, used)


def _slopes_otherwise(signals: PairObservables, pairs: np.ndarray, used: np.ndarray) -> np.ndarray:
    """`slopes` without series in correlations of different inputs."""
    if signals.resolved:

        def moved(some: np.ndarray) -> list[np.ndarray]:
            return [c * signals.projected(i, j, some) for i, j, c in _SLOPES]

        found = _by_modes(signals, pairs, moved, 1, _SLOPES_TITLE)
        np.copyto(found, 0.0, where=~used[:, None, None])
        return found
    size = len(used)
    found = np.zeros((size, size, 3, 3, len(pairs)))
    left = np.ones(len(pairs), dtype=bool)
    if sign_pairs.have_two_values(signals):
        found = sign_pairs.slopes(signals, *(members[pairs] for members in signals.pairs))
        np.copyto(found, 0.0, where=~used[:, None, None])
        return found
    added = _least_added(signals, pairs)
    missed: QuadratureError | None = None
    by_factors = used.any(axis=0) & (not _has_orthants(signals) or added < _ADDS_LITTLE)
    if places_of_jumps(signals.network):
        few = len(pairs) <= _FEW_PAIRS
        by_factors |= used.any(axis=0) & (few | _are_parallel(signals, pairs))
    for number in signals.counted(np.flatnonzero(by_factors), _SLOPES_TITLE):
        two = _two_inputs(signals, pairs[number])
        try:
            for k, block in enumerate(two.slopes()):
                found[k, k + 1 :, ..., number] = np.moveaxis(block, -1, 0)
            left[number] = False
        except QuadratureError as error:
            missed = error
    if missed and added < _ADDS_TOO_LITTLE:
        raise QuadratureError(
            f"the shift of means: {missed}; closed forms have fewer digits, as layers add "
            f"{added:.1g} of their kernel: ask for a larger error, solve(..., rtol=1e-6), or for "
            "a larger branch_scale"
        )
    np.copyto(found, 0.0, where=~(used & ~left)[:, None, None])
    try:
        _averaged_slopes(signals, pairs, used & left, found)
    except four_inputs.NoClosedForm as error:
        raise (QuadratureError(f"the shift of means: {missed}") if missed else error) from None
    return found


def correlators(signals: PairObservables, pairs: np.ndarray, title: str) -> np.ndarray:
    """⟨g_e^(k) ; g_e'^(l)⟩ of pairs α < β in all layers, shape (L + 1, L + 1, 3, 3, pairs).

    The title is that of the progress bar.
    """
    size = len(signals.K)
    if inputs := _of_distinct(signals, False):
        found = _by_series(inputs, pairs, distinct_pairs.correlators, 0, title)
        for number in hardly_correlate(signals, pairs):
            found[..., number] = _unresolved(signals, pairs[number])
    elif signals.resolved:
        found = _by_modes(signals, pairs, lambda some: _observables(signals, some), 0, title)
        # By layers k <= l and the entry of the later one first.
        found = np.swapaxes(found, 2, 3)
    else:
        found = np.zeros((size, size, 3, 3, len(pairs)))
        for number in signals.counted(range(len(pairs)), title):
            found[..., number] = _unresolved(signals, pairs[number])
    later, earlier = np.tril_indices(size, -1)
    found[later, earlier] = np.swapaxes(found[earlier, later], 1, 2)
    return found


def _unresolved(signals: PairObservables, pair: int) -> np.ndarray:
    """`correlators` of one pair, of layers k <= l, shape (L + 1, L + 1, 3, 3)."""
    two = _two_inputs(signals, pair)
    if (known := of_one_input(signals, pair)) is not None:
        return known
    by_factors = not four_inputs.is_closed(signals)
    same = signals.same(np.array([pair])).any()
    if by_factors and not same:
        with suppress(QuadratureError):
            return _by_factors(signals, two)
    try:
        return _by_averages(signals, two)
    except QuadratureError:
        if not (by_factors and same):
            raise
        return _by_factors(signals, two)


def _by_factors(signals: PairObservables, two: TwoInputs) -> np.ndarray:
    size = len(signals.K)
    found = np.zeros((size, size, 3, 3))
    for k, block in enumerate(two.correlators()):
        found[k, k:] = np.moveaxis(block, -1, 0)
    for e in range(2):
        found[:, :, e, e] = connected_squares(signals.network, two.K[:, e, e], two.C[:, e, e])
    return found


def _by_averages(signals: PairObservables, two: TwoInputs) -> np.ndarray:
    size, network = len(signals.K), signals.network
    order, alone = [0, 2, 1], PairObservables(network, two.K, two.C)
    known = np.full((size, 3, size, 3), np.nan)
    for own, place in enumerate((0, 2)):
        known[:, place, :, place] = connected_squares(
            network, two.K[:, own, own], two.C[:, own, own]
        )
    fill_weak(alone, 1, np.array([0, 2, 1]), known)
    weak_pairs.fill(alone, known, four_inputs.is_closed(alone))
    found = four_inputs.by_averages(alone, known)
    return np.transpose(found[:, order][..., order], (0, 2, 1, 3))


def of_one_input(signals: PairObservables, pair: int) -> np.ndarray | None:
    """`_unresolved` of inputs that are one up to a factor, all layers k and l; None of others.

    Averages over signals that rounding sets apart would have the root of that at kinks.
    """
    factor = float(signals.turned(np.array([pair]))[0])
    if not factor:
        return None
    first = signals.pairs[0][pair]
    own, added = signals.K[:, first, first], signals.C[:, first, first]
    found = connected_squares(signals.network, own, added)
    factors = np.array([1.0, factor**2, factor])
    return found[:, :, None, None] * factors[:, None] * factors


def fill_weak(signals: PairObservables, pair: int, places: np.ndarray, found: np.ndarray) -> None:
    """⟨g_e^(k) ; g_e'^(l)⟩ of two inputs that hardly correlate in layer k, in place, of odd φ.

    Closed forms of these are differences. Of other φ an input sees the means of another, so that
    but for ⟨g_αα ; g_ββ⟩ nothing is small. What integrals do not find is left as it is.

    Parameters
    ----------
    signals : PairObservables
    pair : int
    places : ndarray of int, shape (3,)
        Of e = αα, ββ and αβ.
    found : ndarray, shape (L + 1, p, L + 1, p)
    """
    if not is_odd(kinked_features(signals.network)) or sign_pairs.have_two_values(signals):
        return
    two = _two_inputs(signals, pair)
    for k in np.flatnonzero(two.correlates_little(weak_pairs.WEAK)).tolist():
        with suppress(QuadratureError):
            values = two.of_layer(k)
            for e, f in product(range(3), range(3)):
                if e != f or e == 2:
                    found[k, places[e], k:, places[f]] = values[e, f]
                    found[k:, places[f], k, places[e]] = values[e, f]


def _least_added(signals: PairObservables, pairs: np.ndarray) -> float:
    """The least variance that a layer adds to some signal, relative to it."""
    inputs = np.unique([members[pairs] for members in signals.pairs])
    added, whole = (
        np.diagonal(kernel, axis1=1, axis2=2)[1:, inputs] for kernel in (signals.C, signals.K)
    )
    return float(np.min(ratio(added, whole), initial=1.0, where=added > 0))


def _are_parallel(signals: PairObservables, pairs: np.ndarray) -> np.ndarray:
    """Whether the two signals of a layer are parallel, where closed forms of jumps are 0/0."""
    alpha, beta = (members[pairs] for members in signals.pairs)
    own = np.diagonal(signals.K, axis1=1, axis2=2)
    parallel = are_parallel(own[:, alpha], own[:, beta], signals.K[:, alpha, beta])
    return np.asarray(parallel.any(axis=0))


def _has_orthants(signals: PairObservables) -> bool:
    """Whether averages are moments of orthants, which are quicker."""
    return all(psi.has_orthants for psi in kinked_features(signals.network))


def _two_inputs(signals: PairObservables, pair: int) -> TwoInputs:
    chosen = [members[pair] for members in signals.pairs]
    K, C = (kernel[:, chosen][:, :, chosen] for kernel in (signals.K, signals.C))
    return TwoInputs(kinked_features(signals.network), K, C, signals.carried)


def _by_modes(
    signals: PairObservables,
    pairs: np.ndarray,
    moved: Callable[[np.ndarray], list[np.ndarray]],
    gap: int,
    title: str,
) -> np.ndarray:
    """⟨f_e^(l) ; g_e'^(k)⟩ of functions f by coefficients, l >= k + gap, by k, l, e, e', pair.

    The functions of some pairs are ``moved`` of these.
    """
    size, blocks = len(signals.K), _blocks(signals, pairs)
    found = np.zeros((size, size, 3, 3, len(pairs)))
    ends = np.cumsum([len(some) for some in blocks])
    for step in signals.counted(range(size * len(blocks)), title):
        number, k = divmod(step, size)
        some = blocks[number]
        if k == 0:
            functions, observables = moved(some), np.stack(_observables(signals, some))
        place = slice(ends[number] - len(some), ends[number])
        for e, function in enumerate(functions):
            if k + gap < size:
                early = signals.brought_back(function[k + gap :], k, some)
                met = np.einsum("lps,fps->lfp", early[..., 1:], observables[:, k, :, 1:])
                found[k, k + gap :, e, :, place] = met
    return found


def _by_series(
    inputs: DistinctInputs,
    pairs: np.ndarray,
    blocks: Callable[[DistinctInputs, TwoLayers, Sequence[LaterSignal]], np.ndarray],
    gap: int,
    title: str,
) -> np.ndarray:
    """The same of all layers by the ``blocks`` of two of them."""
    signals = inputs.signals
    size = len(signals.K)
    found = np.zeros((size, size, 3, 3, len(pairs)))
    alpha, beta = (members[pairs] for members in signals.pairs)
    number = np.zeros(signals.K.shape[1:], dtype=int)
    first, second = np.triu_indices(len(number), 1)
    number[first, second] = np.arange(len(first))
    layers = [two for two in inputs.layers if two.l >= two.k + gap]
    for n in signals.counted(range(len(layers)), title):
        two = layers[n]
        found[two.k, two.l] = blocks(inputs, two, inputs.later(two))[..., number[alpha, beta]]
    return found


def _blocks(signals: PairObservables, pairs: np.ndarray) -> list[np.ndarray]:
    """The pairs in parts whose coefficients fit into little memory."""
    together = max(1, _TOGETHER // (len(signals.K) * packed_size(signals.count)))
    return np.array_split(pairs, max(1, -(-len(pairs) // together)))


def _observables(signals: PairObservables, pairs: np.ndarray) -> list[np.ndarray]:
    """The coefficients of g_e of some pairs."""
    return [*signals.squares(pairs), signals.observables[:, pairs]]


def _averaged_slopes(
    signals: PairObservables, pairs: np.ndarray, used: np.ndarray, found: np.ndarray
) -> None:
    g = network_entries(signals.network).averages.observable
    alpha, beta = (members[pairs] for members in signals.pairs)
    of_pair = np.array([alpha, beta])
    # Kernels of the two inputs, entry by entry, by layers and pairs.
    K = np.array([[signals.K[:, i, j] for j in of_pair] for i in of_pair])
    # Without skip connections layers are independent.
    skip = np.tril(signals.carried, -1).T[:, :, None]
    earlier, later, pair = np.nonzero((skip != 0) & used)
    if not len(pair):
        return
    early, late = K[:, :, earlier, pair], K[:, :, later, pair]
    still = np.array([early[i, i] == 0 for i in range(2)])
    if _has_orthants(signals):
        # Those of a point are a limit.
        for i in range(2):
            early[i, i] = np.where(still[i], _NARROW * late[i, i], early[i, i])
    across = skip[earlier, later, 0] * early
    upper = np.concatenate([late, across], axis=1)
    joint = np.concatenate([upper, np.concatenate([across, early], axis=1)])
    factor = np.ones(len(pair))
    if signals.is_homogeneous:
        factor = _made_equal(joint)
    slopes = four_inputs.slopes(g, joint) * np.stack([factor**0, factor**2, factor])[None]
    if not network_entries(signals.network).second_moment(np.zeros(1))[0]:
        slopes[:, :2][:, still] = 0.0
        slopes[:, 2, still.any(axis=0)] = 0.0
    found[earlier, later, :, :, pair] = np.moveaxis(slopes, -1, 0)


def _made_equal(K: np.ndarray) -> np.ndarray:
    """λ of the covariances (4, 4, n) where v = ±λu, and of ±u in place of v there; else 1."""
    x, y, xy = K[2, 2], K[3, 3], K[2, 3]
    parallel = are_parallel(x, y, xy) & (x != y)
    sign, factor = np.sign(xy), np.ones_like(x)
    factor[parallel] = np.sqrt(y[parallel] / x[parallel])
    for i in (0, 1, 2):
        K[i, 3] = K[3, i] = np.where(parallel, sign * K[i, 2], K[i, 3])
    K[3, 3] = np.where(parallel, x, y)
    return factor
