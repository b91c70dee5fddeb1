"""Gaussian averages and joint cumulants with mpmath, to any number of digits.

One variable: Gauss-Legendre panels between breakpoints. Two variables of the correlation c:

    ⟨f(x) g(y)⟩ = Σ_n c^n f_n g_n,   f_n = ⟨f(√K_xx z) h_n(z)⟩   (F. G. Mehler 1866)

with the orthonormal Hermite polynomials h_n; what is left after the order n is at most
|c|^(n+1) √((⟨f²⟩ − Σ f_k²)(⟨g²⟩ − Σ g_k²)) (Parseval). Strong correlations, and functions that are
no sum of products, take panels of x, and for each node panels of y given x. Every integral is done
by rules of growing order until two of them agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isqrt
from typing import Any

import mpmath
import sympy as sp
from sympy.utilities.iterables import multiset_partitions

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.precise_rules import (
    PRECISE,
    Integrand,
    composite,
    hermite_coefficients,
    kinks_and_start,
    number,
    panel_ends,
    reach_of,
    rule_order,
)

Value = tuple[Any, Any]


def average(F: sp.Expr, variables: Sequence[sp.Expr], K: Any, digits: int = 50) -> Any:
    """⟨F⟩_{N(0,K)} of one or two variables to a given number of digits.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> print(average(x**4, (x,), sp.Matrix([[2]]), digits=20))
    12.0
    """
    if not 1 <= len(variables) <= 2:
        raise ValueError(
            f"variables must be one or two, got {len(variables)}: averages over more have digits "
            "where they have a closed form"
        )
    with mpmath.workdps(digits + PRECISE.guard):
        rule = _rule(F, tuple(variables), _entries(K), digits)
        return +_agreed(rule, digits, f"the average of {F}")


def cumulant(
    functions: Sequence[sp.Expr], variables: Sequence[sp.Expr], K: Any, digits: int
) -> Any:
    """The joint cumulant ⟨F_1;...;F_n⟩ to a number of digits of itself; ⟨F⟩ of one function.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> print(cumulant([x * y, x**2, y**2], (x, y), [[1, 0.5], [0.5, 1]], 20))
    2.5
    """
    functions, variables = tuple(functions), tuple(variables)
    with mpmath.workdps(digits + PRECISE.guard):
        entries = _entries(K)
        if len(functions) == 1:
            return average(functions[0], variables, entries, digits)
        sides = [[v for v in variables if F.has(v)] for F in functions]
        if len(functions) == 2 and sorted(sides, key=str) == [[v] for v in variables]:
            if sides[0] != [variables[0]]:
                functions = functions[::-1]
            if _is_weak(entries):
                rule = _series([functions], variables, entries, digits, True)
                return +_agreed(rule, digits, f"the cumulant of {functions}", relative=True)
    return _from_moments(functions, variables, entries, digits)


def mpf(value: Any, digits: int) -> Any:
    """A number of SymPy, or any other, as an mpmath number of that many digits."""
    with mpmath.workdps(digits):
        return number(value)


def _entries(K: Any) -> list[list[Any]]:
    rows = K.tolist() if isinstance(K, sp.MatrixBase) else K
    return [[number(value) for value in row] for row in rows]


def _agreed(rule: Callable[[int], Value], digits: int, what: str, relative: bool = False) -> Any:
    """The value of the first rule that agrees with the one before, relative to value and size."""
    previous, least = rule(0)[0], mpmath.mpf(10) ** (-digits)
    for level in range(1, PRECISE.levels):
        value, size = rule(level)
        if abs(value - previous) <= least * max(abs(value), size * (least if relative else 1)):
            return value
        previous = value
    raise PrecisionError(f"{what} did not reach {digits} digits")


def _rule(F: sp.Expr, variables: tuple, K: list, digits: int) -> Callable[[int], Value]:
    """⟨F⟩ and its scale as a function of the level."""
    kinks, begins, pieces = map(list, zip(*(kinks_and_start(F, v) for v in variables), strict=True))
    starts = [begin / mpmath.sqrt(K[i][i]) for i, begin in enumerate(begins) if K[i][i] > 0]
    start = max(starts, default=0)

    one = len(variables) == 1
    function = sp.lambdify(list(variables), pieces[0] if one else F, modules="mpmath", cse=True)

    def panels(level: int) -> Value:
        rule = rule_order(digits, level), reach_of(digits, level, start)
        return (_one if one else _two)(function, K, kinks, *rule)

    if one:
        return panels
    products = separated(F, *variables)
    is_regular = K[0][1] ** 2 < K[0][0] * K[1][1]
    if not products or not (_is_weak(K) or (is_regular and not any(kinks))):
        return panels
    series = _series(products, variables, K, digits, False)

    def series_or_panels(level: int) -> Value:
        try:
            return series(level)
        except PrecisionError:
            return panels(level)

    return series if _is_weak(K) else series_or_panels


# Mehler's series -------------------------------------------------------------------------------


def _is_weak(K: list) -> bool:
    (a, c), (_, b) = K
    return bool(a > 0 and b > 0 and c * c <= a * b * PRECISE.strong**2)


def _series(
    products: Sequence[tuple[sp.Expr, ...]],
    variables: tuple,
    K: list,
    digits: int,
    is_connected: bool,
) -> Callable[[int], Value]:
    """Σ ⟨f(x) g(y)⟩, or of ⟨f(x) ; g(y)⟩, and Σ √(⟨f²⟩⟨g²⟩)."""
    roots = [mpmath.sqrt(K[i][i]) for i in range(2)]
    c = K[0][1] / (roots[0] * roots[1])
    least = mpmath.mpf(10) ** (-digits - PRECISE.guard // 2)
    # The logarithm of c = 0 is −∞: two orders.
    needed = 2 + int((1 + is_connected) * mpmath.log(least) / mpmath.log(abs(c)))
    most = needed if _is_weak(K) else min(needed, PRECISE.orders)
    pairs = [
        [(Integrand.of(f, v), root) for f, v, root in zip(pair, variables, roots, strict=True)]
        for pair in products
    ]

    def rule(level: int) -> Value:
        sums = [_mehler_sum(pair, c, most, level, least, is_connected) for pair in pairs]
        return mpmath.fsum(value for value, _ in sums), mpmath.fsum(size for _, size in sums)

    return rule


def _mehler_sum(pair: list, c: Any, most: int, level: int, least: Any, is_connected: bool) -> Value:
    """⟨f(x) g(y)⟩ or ⟨f(x) ; g(y)⟩ until the remainder is small, and √(⟨f²⟩⟨g²⟩)."""
    series = hermite_coefficients(pair, most, level)
    (mean_f, own_f), (mean_g, own_g) = series.moments
    size = mpmath.sqrt((own_f + mean_f**2) * (own_g + mean_g**2))
    scale = mpmath.ldexp(mpmath.sqrt(own_f * own_g), -2 * series.bits)
    total = mpmath.mpf(0) if is_connected else mean_f * mean_g
    # A connected sum counts by itself.
    share = least if is_connected else mpmath.mpf(1)
    for n, values, left in series.rows:
        total += scale * c**n * int(values.prod())
        remainder = scale * abs(c) ** (n + 1) * isqrt(left.prod() << 2 * series.bits)
        if remainder <= least * max(abs(total), share * size):
            return total, size
        if n == PRECISE.orders // PRECISE.share and most == PRECISE.orders:
            if remainder > least ** (mpmath.mpf(1) / PRECISE.share) * size:
                break
    if abs(c) ** most > least:
        raise PrecisionError(f"{most} orders of the series at the correlation {c} are few")
    return total, size


# Panels ----------------------------------------------------------------------------------------


def _one(f: Callable, K: list, kinks: list, order: int, reach: Any) -> Value:
    deviation = mpmath.sqrt(K[0][0])
    if deviation == 0:
        return f(mpmath.mpf(0)), mpmath.mpf(0)
    cuts = [k / deviation for k in kinks[0]]
    return _sum(lambda z: f(deviation * z), cuts, min(1, 1 / deviation), order, reach)


def _two(f: Callable, K: list, kinks: list, order: int, reach: Any) -> Value:
    """Panels of x, and of y = (c/a) x + √(b − c²/a) w for each x."""
    (a, c), (_, b) = K
    if a == 0:
        return _one(lambda y: f(mpmath.mpf(0), y), [[b]], kinks[1:], order, reach)
    deviation, residual = mpmath.sqrt(a), b - c * c / a
    rounding = mpmath.mpf(10) ** (PRECISE.guard - mpmath.mp.dps)
    if residual < -abs(b) * rounding:
        raise ValueError(f"K must be positive semidefinite, got the determinant {a * residual}")
    spread = mpmath.sqrt(max(residual, mpmath.mpf(0)))
    is_line = spread <= mpmath.sqrt(b) * rounding / 100
    met = [k * deviation / c for k in kinks[1]] if c != 0 else []

    def inner(z: Any) -> Any:
        x, mean = deviation * z, c / deviation * z
        if is_line:
            return f(x, mean)
        cuts = [(k - mean) / spread for k in kinks[1]]
        return _sum(lambda w: f(x, mean + spread * w), cuts, min(1, 1 / spread), order, reach)[0]

    cuts = [k / deviation for k in kinks[0]] + met
    # Over y given x, kinks of y are smooth on the scale of the spread.
    smoothed = [spread * deviation / abs(c)] if met and not is_line else []
    return _sum(inner, cuts, min(1, 1 / deviation, *smoothed), order, reach)


def _sum(f: Callable, kinks: list, scale: Any, order: int, reach: Any) -> Value:
    """∫ f(z) N(z; 0, 1) dz and the same of |f|."""
    rule = composite(panel_ends(kinks, scale, reach), order)
    terms = [w * mpmath.exp(-z * z / 2) * f(z) for z, w in rule]
    norm = 1 / mpmath.sqrt(2 * mpmath.pi)
    return norm * mpmath.fsum(terms), norm * mpmath.fsum(map(abs, terms))


# Cumulants -------------------------------------------------------------------------------------


def _from_moments(functions: tuple, variables: tuple, K: list, digits: int) -> Any:
    """Σ over partitions of products of averages, with as many guard digits as they cancel."""
    guard = 2
    while guard <= PRECISE.cancelled:
        with mpmath.workdps(digits + guard + PRECISE.guard):
            terms = _terms(functions, variables, K, digits + guard)
            total, largest = mpmath.fsum(terms), max(map(abs, terms))
            if largest == 0:
                return total
            lost = mpmath.log10(largest / abs(total)) if total else mpmath.inf
            if lost <= guard:
                return total
            guard = int(lost) + 3 if lost <= digits + guard else 2 * guard + 10
    if abs(total) <= largest * mpmath.mpf(10) ** (-digits - guard // 2):
        return mpmath.mpf(0)
    raise PrecisionError(f"the cumulant of {functions} did not reach {digits} digits")


def _terms(functions: tuple, variables: tuple, K: list, digits: int) -> list[Any]:
    """The products of averages of all partitions, with their weights."""
    averages: dict[sp.Expr, Any] = {}
    terms = []
    for weight, blocks in partitions(functions):
        value = mpmath.mpf(int(weight))
        for block in blocks:
            F = sp.Mul(*block)
            if F not in averages:
                used = [i for i, v in enumerate(variables) if F.has(v)]
                inside = [[K[i][j] for j in used] for i in used]
                averages[F] = average(F, [variables[i] for i in used], inside, digits)
            value *= averages[F]
        terms.append(value)
    return terms


def separated(F: sp.Expr, x: sp.Expr, y: sp.Expr) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """F as Σ f(x) g(y), the pairs (f, g); None if it is no such sum.

    >>> x, y = sp.symbols("x y", real=True)
    >>> separated(sp.tanh(x) * (x + y), x, y)
    [(x*tanh(x), 1), (tanh(x), y)]
    """
    factors = sp.Mul.make_args(F)
    mixed = sp.Mul(*[f for f in factors if f.has(x) and f.has(y)])
    if any(f.has(x) and f.has(y) for piece in mixed.args for f in sp.Mul.make_args(piece)):
        # Not otherwise: products of denominators, multiplied out, are none.
        mixed = sp.expand(mixed)
    only_y = sp.Mul(*[f for f in factors if f.has(y) and not f.has(x)])
    only_x = sp.Mul(*[f for f in factors if not f.has(y)])
    by_y: dict[sp.Expr, sp.Expr] = {}
    for piece in sp.Add.make_args(mixed):
        in_y: list[sp.Expr] = []
        in_x: list[sp.Expr] = []
        for factor in sp.Mul.make_args(piece):
            if factor.has(x) and factor.has(y):
                return None
            (in_y if factor.has(y) else in_x).append(factor)
        key = sp.Mul(*in_y)
        by_y[key] = by_y.get(key, sp.S.Zero) + sp.Mul(*in_x)
    return [(only_x * f, only_y * g) for g, f in by_y.items()]


def partitions(functions: Sequence[Any]) -> Iterator[tuple[sp.Integer, list[tuple]]]:
    """The partitions of some functions into blocks, each with its weight in the cumulant.

    >>> for weight, blocks in partitions("FG"):
    ...     print(weight, blocks)
    1 [('F', 'G')]
    -1 [('F',), ('G',)]
    """
    for blocks in multiset_partitions(list(range(len(functions)))):
        size = len(blocks)
        weight = sp.Integer((-1) ** (size - 1)) * sp.factorial(size - 1)
        yield weight, [tuple(functions[k] for k in block) for block in blocks]
