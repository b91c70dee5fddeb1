"""Gaussian averages in float64 by composite Gauss-Legendre rules with an error estimate.

Panels are refined around zero and the kinks of the integrand (see `panels`), so that neither a
large variance nor a kink spoils the rule. The error is the difference of two orders; a rule that
misses the tolerance is repeated with more nodes, and raises if that does not help.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import line_sizes
from fieldtheory.averages.integrals.panels import breakpoints, evenly, graded_cuts
from fieldtheory.averages.quadrature.gauss_legendre import composite, legendre
from fieldtheory.averages.tolerance import DEFAULT, tolerance

# Gaussian tail beyond the reach: 2e-22, times any polynomial of the activation.
_REACH = 9.8


class Stage(NamedTuple):
    """Nodes on a panel, parts into which every panel is cut, and where to end.

    The end moves out, so that two stages differ if the tail matters after all.
    """

    order: int
    parts: int
    reach: float


_STAGES = (
    Stage(16, 1, _REACH),
    Stage(24, 1, 10.6),
    Stage(36, 1, 11.8),
    Stage(54, 1, 13.6),
    # Steep functions, and those that are large in the tail only.
    Stage(30, 4, 18.0),
    Stage(36, 16, 24.0),
    Stage(42, 64, 32.0),
)
# Stages of whole panels.
_WHOLE = 4
# Nodes of panels that are halved, the share of the tolerance that each of them may take, how often
# they are halved, and how many may be left.
_HALVED_ORDER, _SHARE, _HALVINGS, _MOST_PANELS = 20, 1e-5, 16, 2**15
# More halvings of the panels beside a kink where it may be that of √|h| or h log|h|.
_TO_SINGULARITIES = 40
# Largest ratio of ⟨|f|⟩ to |⟨f⟩| of an integral by parts.
_CANCELLING = 8.0
# An estimated error below which a form is right, and by how many of it the other one may differ.
_SMALL, _SURE = 1e-6, 100.0
# Relative error of an integral at least.
_ROUNDED = float(np.finfo(float).eps)
# Variances from which on the terms of a derivative of an average cancel.
_WIDE = 100.0
# That ratio where both are zero: another form is better if it converges.
_VANISHING = 1e300
# Variances integrated together, so that the work arrays stay in the cache.
_CHUNK = 256
_TINY = float(np.finfo(float).tiny)
_NORM = math.sqrt(2 * math.pi)


def average_1d(f: Callable, K: np.ndarray, kinks: Sequence[float] = ()) -> np.ndarray:
    """⟨f(h)⟩_{N(0,K)} for every entry of an array of variances.

    Parameters
    ----------
    f : callable
        Vectorised integrand.
    K : array_like
        Variances >= 0, any shape.
    kinks : sequence of float
        Where f is not smooth.

    Returns
    -------
    ndarray, the shape of ``K``

    Raises
    ------
    QuadratureError
        If two orders differ by more than a tenth of the tolerance (see `tolerance`) times the
        average of |f|, or a hundredth of its maximum under the Gaussian where that is larger.

    Examples
    --------
    >>> float(average_1d(np.square, np.array(3.0)).round(12))
    3.0
    """
    values, _, errors = _with_sizes(lambda h, K: f(h), K, kinks)
    _require_accuracy(np.asarray(K, dtype=float), errors)
    return values


def average_about(
    f: Callable, K: np.ndarray, means: np.ndarray, kinks: Sequence[float] = ()
) -> np.ndarray:
    """⟨f(h)⟩ of variables with the variances K and means, arrays that broadcast.

    Variances below zero count as zero. The rest is that of `average_1d`.

    Examples
    --------
    >>> float(average_about(np.square, 3.0, 2.0).round(12))
    7.0
    """
    K, means = np.broadcast_arrays(np.asarray(K, dtype=float), np.asarray(means, dtype=float))
    flat, about = np.maximum(K.ravel(), 0.0), means.ravel()
    values, errors = np.broadcast_to(f(about), flat.shape).astype(float), np.zeros(len(flat))
    level = np.ceil(np.log2(np.maximum(flat, 1.0)) / 2)
    for power in set(level[flat > 0]):
        (index,) = np.nonzero((level == power) & (flat > 0))
        for start in range(0, len(index), _CHUNK):
            part = index[start : start + _CHUNK]
            found = _same_panels(lambda h, _: f(h), flat[part], int(power), kinks, about[part])
            values[part], _, errors[part] = found
    _require_accuracy(flat, errors)
    return values.reshape(K.shape)[()]


def _require_accuracy(K: np.ndarray, errors: np.ndarray) -> None:
    """QuadratureError where two orders differ too much."""
    bad = ~(errors <= 0.1 * tolerance())
    if np.isnan(errors[bad]).any():
        variance = K[bad & np.isnan(errors)].min()
        raise QuadratureError(
            f"an average at the variance {variance:.6g} did not reach the relative tolerance "
            f"{tolerance():g}: the function exceeds the range of float64, or has no value, at "
            "numbers of that variance"
        )
    if bad.any():
        raise QuadratureError(
            f"an average at the variance {K[bad].min():.6g} did not reach the relative tolerance "
            f"{tolerance():g}: two orders differ by {errors.max():.1e}; ask for a larger one "
            "(rtol=)"
        )


def by_parts_1d(
    forms: Sequence[tuple[Callable, Callable]],
    otherwise: Callable,
    K: np.ndarray,
    kinks: Sequence[float] = (),
) -> np.ndarray:
    """One quantity given as several averages p(K) ⟨f(h, K)⟩, each entry by one that keeps digits.

    Integration by parts (Stein's lemma) gives averages of one value, whose integrands cancel for
    small or for large variances.

    Parameters
    ----------
    forms : sequence of (f, p)
        Integrand of h and K, vectorised, and prefactor.
    otherwise : callable
        The same quantity as a function of K, for the entries where all forms cancel so much that
        digits are lost; where it does not converge, that form is taken which cancels least.
    K, kinks
        As for `average_1d`.

    Returns
    -------
    ndarray, the shape of ``K``

    Raises
    ------
    QuadratureError
        If no form converges, nor the other where it may be used: below a variance of 100.

    Examples
    --------
    >>> forms = [(lambda h, K: 2 * h**2, np.reciprocal)]
    >>> float(by_parts_1d(forms, lambda K: np.full(K.shape, 2.0), np.array(3.0)).round(12))
    2.0
    """
    K = np.asarray(K, dtype=float)
    best, errors = np.zeros(K.shape), np.zeros(K.shape)
    losses, left = np.full(K.shape, np.inf), np.full(K.shape, np.inf)
    some = K > 0
    for f, prefactor in forms:
        if not some.any():
            break
        value, size, error = _with_sizes(f, K[some], kinks)
        with np.errstate(all="ignore"):
            # Nothing at all is what rounding leaves of an even function at tiny arguments.
            loss = np.where(size > 0, size / np.abs(value), _VANISHING)
            loss[~(error <= 0.1 * tolerance())] = np.inf
            value = value * prefactor(K[some])
        better = np.isfinite(value) & (loss < losses[some])
        best[some] = np.where(better, value, best[some])
        losses[some] = np.where(better, loss, losses[some])
        # Of the value: the loss times what rounding leaves at least.
        left[some] = np.where(better, loss * np.maximum(error, _ROUNDED), left[some])
        errors[some] = error
        some = (K > 0) & (losses > 1.5)
    # The other form would cancel there without a word.
    _require_accuracy(K, np.where(np.isinf(losses) & (K > _WIDE), errors, 0.0))
    bad = ~(losses <= np.where(K > _WIDE, K, _CANCELLING)) & ~(left <= DEFAULT)
    if bad.any():
        try:
            other = otherwise(K[bad])
        except QuadratureError:
            if not np.isfinite(losses[bad]).all():
                raise
            return best
        # It may cancel too.
        with np.errstate(invalid="ignore"):
            lost = np.abs(other - best[bad]) > _SURE * left[bad] * np.abs(best[bad])
        best[bad] = np.where(lost & (left[bad] <= _SMALL), best[bad], other)
    return best


def subdivided(cuts: np.ndarray, parts: int) -> np.ndarray:
    """Every panel cut into equal parts; the cuts may carry leading axes."""
    if parts == 1:
        return cuts
    inside = cuts[..., :-1, None] + np.diff(cuts)[..., None] * np.arange(parts) / parts
    return np.concatenate([inside.reshape(*cuts.shape[:-1], -1), cuts[..., -1:]], axis=-1)


def _with_sizes(
    f: Callable, K: np.ndarray, kinks: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨f⟩, ⟨|f|⟩ and the relative error of every variance.

    Those of one power of four share their panels.
    """
    K = np.asarray(K, dtype=float)
    flat = K.ravel()
    if len(flat) == 1 and 0 < flat[0] < math.inf:
        # One layer after the other asks for one variance.
        level = max(0, math.ceil(math.log2(flat[0]) / 2))
        return tuple(_same_panels(f, flat, level, kinks).reshape(3, *K.shape))
    values, sizes, errors = np.zeros((3, len(flat)))
    if (flat == 0).any():
        values[flat == 0] = np.ravel(f(np.zeros(1), np.zeros(1)))[0]
        sizes = np.abs(values)
    level = np.ceil(np.log2(np.maximum(flat, 1.0)) / 2)
    for power in set(level[flat > 0]):
        (index,) = np.nonzero((level == power) & (flat > 0))
        for start in range(0, len(index), _CHUNK):
            part = index[start : start + _CHUNK]
            found = _same_panels(f, flat[part], int(power), kinks)
            values[part], sizes[part], errors[part] = found
    return values.reshape(K.shape), sizes.reshape(K.shape), errors.reshape(K.shape)


def _same_panels(
    f: Callable,
    K: np.ndarray,
    level: int,
    kinks: Sequence[float],
    means: np.ndarray | None = None,
) -> np.ndarray:
    deviation = np.sqrt(K)[:, None]
    about = np.zeros((len(K), 1)) if means is None else means[:, None]
    centres = (np.array([0.0, *kinks]) - about) / deviation

    def rule(stage: Stage, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if kinks or means is not None:
            steps = level + _TO_SINGULARITIES if kinks and stage.parts > 1 else level
            cuts = graded_cuts(centres[left], steps, 1.0, stage.reach)
            even = np.tile(evenly(1.0, stage.reach), (len(cuts), 1))
            cuts = np.sort(np.concatenate([cuts, even], axis=1), axis=1)
            nodes, weights = composite(subdivided(cuts, stage.parts), stage.order)
            weights, bell = weights / _NORM, _bell(nodes)
        else:
            nodes, weights, bell = _rule(level, stage)
        terms = bell * f(about[left] + deviation[left] * nodes, K[left, None])
        if kinks:
            # Panels of no width lie on the kinks, where log|h| and its like have no value.
            terms = np.where(weights == 0, 0.0, terms)
        return terms, weights

    if tuple(kinks) == (0.0,) and means is None:
        found = _refined_beside_zero(f, K, rule)
    else:
        found = _refined(rule, len(K))
    last = _STAGES[-1]
    # What is narrow beside the signals is halved out, one integral after the other.
    for i in np.nonzero(np.isfinite(found[2]) & (found[2] > 0.1 * tolerance()))[0]:
        cuts = breakpoints(sorted({0.0, *centres[i]}), 0.5**level, last.reach)
        integrand = partial(_weighted_by_bell, f, about[i], deviation[i], K[i, None])
        better = _halved(integrand, subdivided(np.array(cuts), last.parts))
        found[:, i] = min(found[:, i], better, key=lambda each: each[2])
    return found


def _weighted_by_bell(
    f: Callable, about: np.ndarray, deviation: np.ndarray, K: np.ndarray, z: np.ndarray
) -> np.ndarray:
    values = f(about + deviation * z.reshape(1, -1), K[None])
    return _bell(z) * np.broadcast_to(values, (1, z.size)).reshape(z.shape)


@np.errstate(all="ignore")
def _halved(integrand: Callable, cuts: np.ndarray) -> np.ndarray:
    """As `_refined` for one integral, with panels halved where that changes them."""
    x, w = legendre(_HALVED_ORDER)

    def panels(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        half = (right - left)[:, None] / 2
        terms = integrand((left + right)[:, None] / 2 + half * x)
        sums = [(each * half * w).sum(axis=1) / _NORM for each in (terms, np.abs(terms))]
        return sums[0], sums[1], float(np.abs(terms).max())

    left, right = cuts[:-1], cuts[1:]
    coarse, sizes, highest = panels(left, right)
    allowed = _SHARE * tolerance() * sizes.sum()
    scale = max(sizes.sum(), 0.01 * highest, _TINY)
    value = size = error = 0.0
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        parts = np.stack([left, middle]), np.stack([middle, right])
        fine, sizes = (
            each.reshape(2, -1) for each in panels(*(part.ravel() for part in parts))[:2]
        )
        change = np.abs(fine.sum(axis=0) - coarse)
        good = change <= allowed
        value, size = value + fine[:, good].sum(), size + sizes[:, good].sum()
        error += change[good].sum()
        left, right = (part[:, ~good].ravel() for part in parts)
        coarse = fine[:, ~good].ravel()
        if not len(left) or len(left) > _MOST_PANELS:
            break
    # Where arguments are rounded halves go on changing, by nothing that counts.
    value, size = value + coarse.sum(), size + sizes[:, ~good].sum()
    return np.array([value, size, (error + change[~good].sum()) / max(size, scale)])


@lru_cache(maxsize=128)
def _rule(level: int, stage: Stage) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and the Gaussian on panels refined around zero."""
    cuts = np.array(breakpoints([0.0], 0.5**level, stage.reach))
    nodes, weights = composite(subdivided(cuts, stage.parts), stage.order)
    return nodes, weights / _NORM, _bell(nodes)


def _refined_beside_zero(f: Callable, K: np.ndarray, rule: Callable) -> np.ndarray:
    """`_refined`; where whole panels do not resolve cusps, in the logarithms of signals."""
    allowed = 0.1 * tolerance()
    found = _refined(rule, len(K), _WHOLE)

    def in_parts(left: np.ndarray) -> np.ndarray:
        return _refined(lambda stage, some: rule(stage, left[some]), len(left))

    def of_sizes(left: np.ndarray) -> np.ndarray:
        return line_sizes.with_sizes(f, K[left], allowed)

    for otherwise in (of_sizes, in_parts):
        (left,) = np.nonzero(~(found[2] <= allowed))
        if len(left):
            new = otherwise(left)
            found[:, left] = np.where(new[2] < found[2, left], new, found[:, left])
    return found


def _refined(rule: Callable, count: int, stages: int = len(_STAGES)) -> np.ndarray:
    """⟨f⟩, ⟨|f|⟩ and relative errors of ``count`` integrals, refined while two orders differ.

    The rule maps a stage and the integrals left to the terms of their sums, and the weights.
    """
    allowed, left = 0.1 * tolerance(), np.arange(count)
    with np.errstate(all="ignore"):
        found = _judged(rule(_STAGES[1], left), _sum(*rule(_STAGES[0], left)))
        bad = ~(found[2] <= allowed)
        if not bad.any():
            return found
        left, previous = left[bad], found[0, bad]
        for stage in _STAGES[2:stages]:
            new = _judged(rule(stage, left), previous)
            # Rounding does not shrink where panels are cut into parts.
            better = (stage.parts <= 4) | (new[2] < 0.5 * found[2, left])
            found[:, left] = new
            bad = better & ~(new[2] <= allowed)
            left, previous = left[bad], new[0, bad]
            if not len(left):
                break
    return found


def _judged(terms_and_weights: tuple[np.ndarray, np.ndarray], previous: np.ndarray) -> np.ndarray:
    """⟨f⟩, ⟨|f|⟩ and the relative difference from the value before."""
    terms, weights = terms_and_weights
    sizes = np.abs(terms)
    value, size = _sum(terms, weights), _sum(sizes, weights)
    scale = np.maximum(np.maximum(size, 0.01 * sizes.max(axis=1)), _TINY)
    return np.array([value, size, np.abs(value - previous) / scale])


def _sum(terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return terms @ weights if weights.ndim == 1 else (weights * terms).sum(axis=1)


def _bell(z: np.ndarray) -> np.ndarray:
    return np.exp(-z * z / 2)
