"""Averages of products of functions of one variable each that are polynomials and signs.

A polynomial on every piece between kinks t is a sum of polynomials times sign(x − t); an error
function is the average of a sign over independent noise,

    erf(a x + b) = ⟨sign(x + b/a + n)⟩,   n ~ N(0, 1/(2a²)),   a > 0.

So ReLU, hard tanh, hard swish, erf and GELU, at any kinks, variances and correlations, average by
moments with signs (see `signed_moments`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
import sympy as sp
from numpy.polynomial import Polynomial

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.steps import branch, break_points, has_steps
from fieldtheory.averages.polynomial_pieces import signs
from fieldtheory.averages.polynomial_pieces.signed_moments import SignedMoments
from fieldtheory.averages.tolerance import tolerance

_x = sp.Dummy("x", real=True)
# Signs of a product that can be averaged.
MOST_SIGNS = 4
_HIGHEST_DEGREE = 24
# Standard deviations beyond which the Gaussian is left out.
_REACH = 9.0
# Averages done at once, so that the work arrays stay in the cache.
_TOGETHER = 1 << 13
# Rounding of the terms of an average relative to their sizes, and what is allowed of the functions.
_ROUNDING, _ALLOWED = 3e-16, 1e-9


class Part(NamedTuple):
    """Σ c (x − place)^power sign(x − place + n)^e with noise n.

    Parameters
    ----------
    place, noise : float
        The latter is the variance of n.
    terms : tuple of (int, int, float)
        power, e and c.
    """

    place: float
    noise: float
    terms: tuple[tuple[int, int, float], ...]


class Slot(NamedTuple):
    """A factor of a product: a sum of parts, a function of one variable."""

    variable: int
    parts: tuple[Part, ...]


Slots = tuple[Slot, ...]


def slots_of(F: sp.Expr, variables: Sequence[sp.Expr]) -> Slots | None:
    """F as a product of functions of one variable each; None if it is not one of this kind.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> slots_of(sp.Abs(x - 1), (x,))
    (Slot(variable=0, parts=(Part(place=1.0, noise=0.0, terms=((1, 1, 1.0),)),)),)
    >>> len(slots_of(sp.erf(x) ** 2 * sp.Max(0, y), (x, y)))
    3
    >>> slots_of(sp.tanh(x), (x,)) is None
    True
    """
    own: dict[int, list[sp.Expr]] = defaultdict(list)
    number = sp.S.One
    for factor in sp.Mul.make_args(F):
        inside = [i for i, v in enumerate(variables) if factor.has(v)]
        if len(inside) > 1 or factor.free_symbols - set(variables):
            return None
        if inside:
            own[inside[0]].append(factor)
        else:
            number *= factor
    found: list[Slot] = []
    for i, factors in sorted(own.items()):
        slots = _of_one(i, variables[i], factors)
        if slots is None:
            return None
        found += slots
    if sum(any(e for part in slot.parts for _, e, _ in part.terms) for slot in found) > MOST_SIGNS:
        return None
    if not number.is_number or not found:
        return None
    first, *rest = found
    scaled = tuple(
        part._replace(terms=tuple((p, e, float(number) * c) for p, e, c in part.terms))
        for part in first.parts
    )
    return (first._replace(parts=scaled), *rest)


def _of_one(i: int, x: sp.Expr, factors: Sequence[sp.Expr]) -> list[Slot] | None:
    whole = sp.Mul(*factors)
    if has_steps(whole):
        parts = _between_kinks(factors, x)
        return None if parts is None else [Slot(i, parts)]
    if whole.is_polynomial(x):
        return [Slot(i, (Part(0.0, 0.0, _terms(whole, x, sp.S.Zero, 0)),))]
    # Every error function is a sign of its own.
    bases: list[sp.Expr] = []
    polynomial = sp.S.One
    for factor in factors:
        base, power = factor.as_base_exp()
        if factor.is_polynomial(x):
            polynomial *= factor
        elif power.is_Integer and power > 0:
            bases += [base] * int(power)
        else:
            return None
    bases[0] *= polynomial
    slots = []
    for base in bases:
        parts = _with_error_functions(base, x)
        if parts is None:
            return None
        slots.append(Slot(i, parts))
    return slots


def _between_kinks(factors: Sequence[sp.Expr], x: sp.Expr) -> tuple[Part, ...] | None:
    """f = f_0 + Σ_t (f_t − f_{t−1}) (1 + sign(x − t))/2 for the product f of some factors."""
    powers = [factor.as_base_exp() for factor in factors]
    if not all(power.is_Integer and power > 0 for _, power in powers):
        return None
    found = []
    for base, power in powers:
        branches = _branches(base.xreplace({x: _x}))
        if branches is None:
            return None
        found.append((*branches, power))
    cuts = sorted({cut for own, _, _ in found for cut in own}, key=float)
    # The branch of every factor from one kink of the product to the next.
    pieces = []
    for number in range(len(cuts) + 1):
        passed = set(cuts[:number])
        at = [of[sum(cut in passed for cut in own)] ** power for own, of, power in found]
        pieces.append(sp.expand(sp.Mul(*at)))
    jumps = [(right - left) / 2 for left, right in pairwise(pieces)]
    even = pieces[0] + sp.Add(*jumps)
    parts = []
    for cut, jump in zip(cuts, jumps, strict=True):
        terms = _terms(even, _x, cut, 0) + _terms(jump, _x, cut, 1)
        parts.append(Part(float(cut), 0.0, terms))
        even = sp.S.Zero
    return None if any(p > _HIGHEST_DEGREE for t in parts for p, _, _ in t.terms) else tuple(parts)


@lru_cache(maxsize=256)
def _branches(f: sp.Expr) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]] | None:
    """The kinks of a function and the polynomials between them; None if they are none."""
    cuts: list[sp.Expr] = []
    if has_steps(f):
        try:
            cuts = break_points(f, _x)
        except ValueError:
            return None
    if not cuts:
        middles = [sp.S.Zero]
    else:
        middles = [cuts[0] - 1, *((a + b) / 2 for a, b in pairwise(cuts)), cuts[-1] + 1]
    pieces = [sp.expand(branch(f, _x, middle)) if cuts else f for middle in middles]
    if all(piece.is_polynomial(_x) and not piece.free_symbols - {_x} for piece in pieces):
        return tuple(cuts), tuple(pieces)
    return None


def _with_error_functions(f: sp.Expr, x: sp.Expr) -> tuple[Part, ...] | None:
    """f as a polynomial and polynomials times one error function each."""
    of_signs: dict[tuple[sp.Expr, sp.Expr], sp.Expr] = defaultdict(lambda: sp.S.Zero)
    polynomial = sp.S.Zero
    for term in sp.Add.make_args(sp.expand(f)):
        inside = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.erf)]
        if not inside:
            polynomial += term
            continue
        argument = inside[0].args[0]
        rest = term / inside[0]
        if len(inside) > 1 or not argument.is_polynomial(x) or sp.degree(argument, x) != 1:
            return None
        slope = argument.coeff(x, 1)
        place, noise = -argument.coeff(x, 0) / slope, 1 / (2 * slope**2)
        if not (slope.is_number and place.is_number and slope.is_real):
            return None
        of_signs[place, noise] += rest * sp.sign(slope)
    if not all(p.is_polynomial(x) and not p.free_symbols - {x} for p in of_signs.values()):
        return None
    if not polynomial.is_polynomial(x) or polynomial.free_symbols - {x} or not of_signs:
        return None
    parts = []
    for (place, noise), factor in of_signs.items():
        terms = _terms(polynomial, x, place, 0) + _terms(sp.expand(factor), x, place, 1)
        parts.append(Part(float(place), float(noise), terms))
        polynomial = sp.S.Zero
    return tuple(parts)


def _terms(f: sp.Expr, x: sp.Expr, place: sp.Expr, e: int) -> tuple[tuple[int, int, float], ...]:
    """A polynomial by powers of x − place."""
    if f == 0:
        return ()
    coefficients = sp.Poly(sp.expand(f.subs(x, x + place)), x).terms()
    return tuple((power, e, float(c)) for (power,), c in coefficients)


def averaged(slots: Slots) -> Callable[[np.ndarray], np.ndarray]:
    """⟨F⟩ as a function of covariances (m, d, d), positive semidefinite; shape (m,).

    Raises
    ------
    QuadratureError
        If its terms are so large that rounding exceeds the tolerance.
    """

    def compute(K: np.ndarray) -> np.ndarray:
        covariances = np.moveaxis(K, 0, -1)
        found, sizes = np.zeros((2, len(K)))
        near = [_is_near(part, K[:, slot.variable, slot.variable])
                for slot in slots for part in slot.parts]  # fmt: skip
        kinds, kind = np.unique(np.array(near), axis=1, return_inverse=True)
        for number, of_kind in enumerate(kinds.T):
            (index,) = np.nonzero(kind.ravel() == number)
            seen = _without_far(slots, of_kind.tolist())
            together = max(1, _TOGETHER // prod(len(slot.parts) for slot in seen))
            for start in range(0, len(index), together):
                some = index[start : start + together]
                with np.errstate(invalid="ignore"):
                    found[some], sizes[some] = _of_parts(seen, covariances[..., some])
        _require_digits(slots, covariances, found, sizes)
        return found

    return compute


def _is_near(part: Part, K: np.ndarray) -> np.ndarray:
    """Whether signals of these variances reach the place of a part."""
    return np.abs(part.place) <= _REACH * np.sqrt(K + part.noise)


def _without_far(slots: Slots, near: list[bool]) -> Slots:
    """Slots in which the signs of parts that are not near are constants."""
    found, numbers = [], iter(near)
    for slot in slots:
        parts = []
        polynomial = Polynomial([0.0])
        for part, is_near in zip(slot.parts, numbers, strict=False):
            if is_near:
                parts.append(part)
                continue
            for power, e, c in part.terms:
                sign = -np.sign(part.place) if e else 1.0
                polynomial += c * sign * Polynomial([-part.place, 1.0]) ** power
        if len(parts) < len(slot.parts):
            terms = tuple((p, 0, float(c)) for p, c in enumerate(polynomial.coef) if c)
            parts.append(Part(0.0, 0.0, terms))
        found.append(slot._replace(parts=tuple(parts)))
    return tuple(found)


def connected(first: Slots, second: Slots) -> Callable[[np.ndarray], np.ndarray] | None:
    """⟨F ; G⟩ of products of two signs each, with the digits that ⟨FG⟩ − ⟨F⟩⟨G⟩ has not."""
    slots = (*first, *second)
    if len(first) != 2 or len(second) != 2 or any(len(slot.parts) > 1 for slot in slots):
        return None
    parts = [slot.parts[0] for slot in slots]
    if not all(part.noise and [t[:2] for t in part.terms] == [(0, 1)] for part in parts):
        return None
    factor = float(np.prod([part.terms[0][2] for part in parts]))
    places = np.array([part.place for part in parts])
    chosen, noise = [slot.variable for slot in slots], [part.noise for part in parts]

    def compute(K: np.ndarray) -> np.ndarray:
        covariances = np.moveaxis(K[:, chosen][:, :, chosen], 0, -1) + np.diag(noise)[..., None]
        means = np.tile(-places[:, None], len(K)) if places.any() else None
        return factor * signs.connected(np.ascontiguousarray(covariances), means)

    return compute


def _of_parts(slots: Slots, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The average of a product of sums of parts, and the sum of the sizes of its terms."""
    combinations = list(product(*(slot.parts for slot in slots)))
    chosen: list[int] = []
    # Places and noise of the variables of the moments, in all combinations of parts.
    places, noise = [], []
    # Where the power and the sign of a slot are among these.
    at: list[tuple[int, int]] = []
    for number, slot in enumerate(slots):
        terms = [term for part in slot.parts for term in part.terms]
        noisy = any(part.noise for part in slot.parts)
        raised = not noisy or any(power for power, _, _ in terms)
        at.append((len(chosen), len(chosen) + int(raised and noisy)))
        for with_noise in [False] * raised + [True] * noisy:
            chosen.append(slot.variable)
            places.append([parts[number].place for parts in combinations])
            noise.append([with_noise * parts[number].noise for parts in combinations])
    size, count, m = len(chosen), len(combinations), K.shape[-1]
    extended = np.repeat(K[chosen][:, chosen][:, :, None], count, axis=2)
    extended[range(size), range(size)] += np.array(noise)[..., None]
    means = -np.repeat(np.array(places)[..., None], m, axis=2).reshape(size, -1)
    moments = SignedMoments(extended.reshape(size, size, -1), means if means.any() else None)
    kinds = [sorted({(p, e) for part in slot.parts for p, e, _ in part.terms}) for slot in slots]
    value, of_terms = np.zeros((2, m))
    for kind in product(*kinds):
        factors = np.array([_coefficient(parts, kind) for parts in combinations])
        if not factors.any():
            continue
        powers, with_sign = [0] * size, [0] * size
        for (power, e), (of_power, of_sign) in zip(kind, at, strict=True):
            powers[of_power] += power
            with_sign[of_sign] += e
        averages = moments.average(tuple(powers), tuple(with_sign)).reshape(count, m)
        value += factors @ averages
        of_terms += np.abs(factors) @ np.abs(averages)
    return value, of_terms


def _coefficient(parts: Sequence[Part], kinds: Sequence[tuple[int, ...]]) -> float:
    """Of the product of one term of each part, of these powers with or without a sign."""
    pairs = zip(parts, kinds, strict=True)
    return prod(sum(c for *own, c in part.terms if tuple(own) == kind) for part, kind in pairs)


def _require_digits(
    slots: Iterable[Slot], K: np.ndarray, found: np.ndarray, sizes: np.ndarray
) -> None:
    """QuadratureError where rounding of the terms is more than the tolerance of the functions."""
    allowed = max(tolerance(), _ALLOWED)
    if not np.isfinite(found).all():
        raise QuadratureError(
            "averages with kinks of variables that depend on each other linearly did not converge"
        )
    doubtful = _ROUNDING * sizes > allowed * np.abs(found)
    if not doubtful.any():
        return
    z, weights = np.polynomial.hermite_e.hermegauss(64)
    weights = weights / weights.sum()
    scale = np.ones(int(doubtful.sum()))
    for slot in slots:
        own = K[slot.variable, slot.variable][doubtful]
        x = np.sqrt(np.maximum(own, 0.0))[:, None] * z
        scale = scale * np.sqrt(_smoothed(slot, x) ** 2 @ weights)
    error = _ROUNDING * sizes[doubtful] / np.maximum(scale, np.finfo(float).tiny)
    if not (error <= allowed).all():
        raise QuadratureError(
            f"terms of averages with kinks cancel up to a relative error of {error.max():.1e}: "
            "the signals are too wide for their kinks, or hardly reach them; ask for a larger one "
            "(rtol=), or leave such signals out"
        )


def _smoothed(slot: Slot, x: np.ndarray) -> np.ndarray:
    """The function of a slot; signs with noise as signs."""
    total = np.zeros_like(x)
    for part in slot.parts:
        u = x - part.place
        for power, e, c in part.terms:
            total += c * u**power * (np.sign(u) if e else 1.0)
    return total
