"""Averages over several variables and joint cumulants with mpmath: which rule for which integrand.

The rules are those of `fieldtheory.averages.many`: error functions by closed forms and Price's
theorem, functions that are a polynomial on either side of zero by moments of orthants, and what is
left by its moments on a grid, with guard digits where they nearly cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.high_precision import precise, precise_orthants
from fieldtheory.averages.high_precision.mp_rules import number
from fieldtheory.averages.integrals import tilting
from fieldtheory.averages.integrands.partitions import partitions
from fieldtheory.averages.integrands.steps import break_points, has_steps
from fieldtheory.averages.polynomial_pieces import orthants
from fieldtheory.averages.rules import CLOSED_FORM, PRICE

_GUARD = 10
_MOST_GUARD = 200

Matrix = list[list[Any]]


class Method(NamedTuple):
    """A rule by name, why it applies, and (K, digits) -> value."""

    name: str
    reason: str
    compute: Callable[[Matrix, int], Any]


def cumulant(
    functions: Sequence[sp.Expr], variables: Sequence[sp.Expr], K: Any, digits: int
) -> Any:
    """The average of one function, or the joint cumulant of several, to a number of digits.

    Parameters
    ----------
    functions : sequence of sympy.Expr
        Free of other symbols than the variables.
    variables : sequence of symbols, length 1 to 4
    K : matrix or nested list of numbers, shape (n, n)
    digits : int

    Returns
    -------
    mpmath.mpf

    Raises
    ------
    ValueError
        As `fieldtheory.averages.high_precision.precise.average`.
    PrecisionError
        If the digits are not reached.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> print(cumulant([x * y, x**2, y**2], (x, y), [[1, 0.5], [0.5, 1]], 20))
    2.5
    """
    with mpmath.workdps(digits + _GUARD):
        rows = K.tolist() if isinstance(K, sp.MatrixBase) else K
        entries = [[number(value) for value in row] for row in rows]
        return +method(tuple(functions), tuple(variables)).compute(entries, digits)


def method(functions: tuple[sp.Expr, ...], variables: tuple[sp.Expr, ...]) -> Method:
    """The first rule that holds."""
    for decide in (_tilted, _price, _orthants):
        found = decide(functions, variables)
        if found is not None:
            return found
    if len(functions) == 1:
        F = functions[0]
        return Method(
            *_grid(F, variables), lambda K, digits: precise.average(F, variables, K, digits)
        )
    name, reason = _grid(sp.Mul(*functions), variables)

    def by_moments(K: Matrix, digits: int) -> Any:
        return _from_moments(functions, variables, K, digits)

    return Method(name, f"moments, which nearly cancel: {reason}", by_moments)


def _grid(F: sp.Expr, variables: tuple) -> tuple[str, str]:
    if has_steps(F):
        for v in variables:
            break_points(F, v)
        return "panels", "kinks: Gauss-Legendre panels that end there"
    if len(variables) == 1:
        return "panels", "one variable: Gauss-Legendre panels"
    return "trapezoidal rule", "smooth functions, coupled on a grid by the Gaussian alone"


def _tilted(functions: tuple, variables: tuple) -> Method | None:
    if len(functions) > 1:
        return None
    terms = tilting.terms_of(functions[0], variables)
    if terms is None:
        return None
    reason = "at most two error functions and Gaussian factors: one angle of a tilted covariance"
    return Method(CLOSED_FORM, reason, lambda K, digits: _of_terms(terms, K))


def _of_terms(terms: Sequence[tilting.Term], K: Matrix) -> Any:
    total = mpmath.mpf(0)
    for term in terms:
        chosen = [index for index, _ in term.forms]
        determinant, tilted = _tilt(K, term.curvature, chosen)
        value = number(term.coefficient) / mpmath.sqrt(determinant)
        if term.forms:
            (i, p), (j, q) = ((index, number(slope)) for index, slope in term.forms)
            a, b, c = p * p * tilted[i][0], q * q * tilted[j][1], p * q * tilted[i][1]
            minor = max(a * b - c * c, mpmath.mpf(0))
            value *= 2 / mpmath.pi * mpmath.atan2(2 * c, mpmath.sqrt(1 + 2 * (a + b) + 4 * minor))
        total += value
    return total


def _tilt(K: Matrix, A: sp.ImmutableMatrix, chosen: Sequence[int]) -> tuple[Any, Matrix]:
    """det(1 + KA) and the chosen columns of (1 + KA)⁻¹K, by elimination."""
    size = range(len(K))
    curvature = {(k, j): number(A[k, j]) for k in size for j in size if A[k, j] != 0}
    rows = []
    for i in size:
        row = [mpmath.mpf(int(i == j)) for j in size]
        for (k, j), value in curvature.items():
            row[j] += K[i][k] * value
        rows.append([*row, *(K[i][c] for c in chosen)])
    determinant = mpmath.mpf(1)
    for p in size:
        # 1 + KA has no zero pivot: its leading minors are those of 1 + √A K √A, at least one.
        determinant *= rows[p][p]
        for r in size:
            if r != p and rows[r][p] != 0:
                factor = rows[r][p] / rows[p][p]
                rows[r] = [u - factor * v for u, v in zip(rows[r], rows[p], strict=True)]
    return determinant, [[v / rows[i][i] for v in rows[i][len(K) :]] for i in size]


def _price(functions: tuple, variables: tuple) -> Method | None:
    if len(functions) > 2 or not any(F.has(sp.erf) for F in functions):
        return None
    reason = "⟨∂_iF ∂_jG⟩ has a closed form: one integral over the coupling of F and G"
    if len(functions) == 2:
        path = tilting.path_of(*functions, variables)
        return None if path is None else Method(PRICE, reason, lambda K, d: _along(path, K, d))
    halves = tilting.halves_of(functions[0], variables)
    joint = None if halves is None else tilting.path_of(*halves, variables)
    if halves is None or joint is None:
        return None
    first, second = (tilting.terms_of(half, variables) or () for half in halves)

    def compute(K: Matrix, digits: int) -> Any:
        apart = _of_terms(first, K) * _of_terms(second, K)
        return apart + _along(joint, K, digits)

    reason = f"⟨FG⟩ = ⟨F⟩⟨G⟩ + ⟨F;G⟩ with F = {halves[0]}, and {reason}"
    return Method(PRICE, reason, compute)


def _along(path: tilting.Path, K: Matrix, digits: int) -> Any:
    """⟨F;G⟩ = ∫_0^1 dt Σ_ij K_ij ⟨∂_iF ∂_jG⟩."""
    chosen, split = [*path.first, *path.second], len(path.first)

    def slope(t: Any) -> Any:
        moving = [
            [K[i][j] * (1 if (r < split) == (s < split) else t) for s, j in enumerate(chosen)]
            for r, i in enumerate(chosen)
        ]
        return mpmath.fsum(
            K[i][j] * _of_terms(terms, moving) for i, j, terms in path.slopes if K[i][j] != 0
        )

    largest = max(K[i][i] for i in range(len(K)))
    halvings = 3 + max(0, int(mpmath.ceil(mpmath.log(max(largest, 1), 2))))
    return precise_orthants.integrated(slope, mpmath.mpf(1), halvings, digits, "Price's theorem")


def _orthants(functions: tuple, variables: tuple) -> Method | None:
    if not any(has_steps(F) for F in functions):
        return None
    if orthants.pieces_of(sp.Mul(*functions), variables) is None:
        return None

    def one(F: sp.Expr, K: Matrix, digits: int) -> Any:
        used = [i for i, v in enumerate(variables) if F.has(v)]
        pieces = orthants.pieces_of(F, [variables[i] for i in used])
        if pieces is None:
            raise PrecisionError(f"{F} is not a polynomial on either side of zero")
        return precise_orthants.averaged(pieces, [[K[i][j] for j in used] for i in used], digits)

    def compute(K: Matrix, digits: int) -> Any:
        return cancelling(functions, digits, lambda F, more: one(F, K, more))

    return Method("orthants", "a polynomial on either side of zero: moments of orthants", compute)


def _from_moments(functions: tuple, variables: tuple, K: Matrix, digits: int) -> Any:
    def one(F: sp.Expr, more: int) -> Any:
        used = [i for i, v in enumerate(variables) if F.has(v)]
        names = tuple(variables[i] for i in used)
        return method((F,), names).compute([[K[i][j] for j in used] for i in used], more)

    return cancelling(functions, digits, one)


def cancelling(functions: tuple, digits: int, moment: Callable[[sp.Expr, int], Any]) -> Any:
    """Σ over partitions of products of moments, with as many guard digits as they cancel."""
    guard = 2
    while guard <= _MOST_GUARD:
        with mpmath.workdps(digits + guard + _GUARD):
            known: dict[sp.Expr, Any] = {}
            terms = []
            for weight, blocks in partitions(functions):
                value = mpmath.mpf(int(weight))
                for block in blocks:
                    F = sp.Mul(*block)
                    if F not in known:
                        known[F] = moment(F, digits + guard)
                    value *= known[F]
                terms.append(value)
            total = mpmath.fsum(terms)
            largest = max(map(abs, terms))
            if largest == 0:
                return total
            if abs(total) > 0:
                lost = int(mpmath.ceil(mpmath.log10(largest / abs(total))))
                if lost <= guard:
                    return total
                guard = lost + 2 if lost <= digits + guard else 2 * guard + 10
            else:
                guard = 2 * guard + 10
    # Zero as far as can be seen: a cumulant that vanishes by symmetry.
    if abs(total) <= largest * mpmath.mpf(10) ** (-digits - guard // 2):
        return mpmath.mpf(0)
    raise PrecisionError(f"the cumulant of {functions} did not reach {digits} digits")
