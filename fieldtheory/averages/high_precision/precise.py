"""Gaussian averages with mpmath, to any number of digits.

One variable: Gauss-Legendre panels that end at the kinks. Two variables: the integrand is a sum of
products f(x) g(y), so on a grid in x and y only the Gaussian couples the two; for smooth f and g
the trapezoidal rule converges exponentially, and on its even grid exp(−κ x_i y_j) is a running
product. Kinks take Gauss-Legendre panels on the same grid, and strongly correlated or inseparable
integrands the panels in whitened variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import mpmath
import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.high_precision import precise_grid
from fieldtheory.averages.high_precision.mp_rules import legendre, number, reach_of
from fieldtheory.averages.integrals.panels import breakpoints
from fieldtheory.averages.integrands.narrow import narrow_cuts
from fieldtheory.averages.integrands.removable import limit_at_zero
from fieldtheory.averages.integrands.steps import break_points, has_steps

# Digits carried beyond those asked for.
_GUARD = 8
_MAX_REFINEMENTS = 4
MOST_VARIABLES = 4


def average(F: sp.Expr, variables: Sequence[sp.Expr], K: Any, digits: int = 50) -> Any:
    """⟨F⟩_{N(0,K)} to a given number of digits.

    Parameters
    ----------
    F : sympy.Expr
        Integrand, free of other symbols. It may have kinks and jumps on h_i = const.
    variables : sequence of symbols, length 1 to 4
    K : matrix or nested list of numbers, shape (n, n)
        Covariance, positive semidefinite; for one and two variables it may be singular.
    digits : int
        Correct digits, relative to the average of |F|.

    Returns
    -------
    mpmath.mpf

    Raises
    ------
    ValueError
        For more than four variables or an indefinite K; for three and four also if K is singular
        or F is no sum of products of functions of one variable.
    PrecisionError
        If two successive rules do not agree to ``digits``.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> print(average(x**4, (x,), sp.Matrix([[2]]), digits=20))
    12.0
    """
    size = len(variables)
    if not 1 <= size <= MOST_VARIABLES:
        raise ValueError(f"variables must be one to {MOST_VARIABLES}, got {size}")
    with mpmath.workdps(digits + _GUARD):
        rows = K.tolist() if isinstance(K, sp.MatrixBase) else K
        entries = [[number(value) for value in row] for row in rows]
        if size > 2:
            return precise_grid.average(F, tuple(variables), entries, digits)
        rule = _rule(F, tuple(variables), entries, digits)
        previous = rule(0)
        for level in range(1, _MAX_REFINEMENTS):
            current = rule(level)
            scale = max(abs(current[0]), current[1])
            if abs(current[0] - previous[0]) <= scale * mpmath.mpf(10) ** (-digits):
                return +current[0]
            previous = current
    raise PrecisionError(f"the average of {F} did not reach {digits} digits")


def _rule(F: sp.Expr, variables: tuple, K: list, digits: int) -> Callable[[int], tuple[Any, Any]]:
    """The integral and the integral of |F| as a function of the level of refinement."""
    points = [[mpmath.mpf(0), *map(number, _kinks(F, v))] for v in variables]

    def order(level: int) -> int:
        return int((0.6 * digits + 10) * 1.3**level)

    if len(variables) == 2:
        products = _products(F, variables)
        determinant = K[0][0] * K[1][1] - K[0][1] ** 2
        if products and determinant > K[0][0] * K[1][1] / 20:
            if not has_steps(F) and not any(narrow_cuts(F, v) for v in variables):
                return lambda level: _even_grid(products, K, determinant, digits, level)
            return lambda level: _panel_grid(
                products, K, points, order(level), _reach(digits, level)
            )
    function = sp.lambdify(list(variables), F, modules="mpmath")
    integrate = _one if len(variables) == 1 else _two
    return lambda level: integrate(function, K, points, order(level), _reach(digits, level))


def _products(F: sp.Expr, variables: tuple) -> list[tuple[Callable, Callable]]:
    """F as Σ f(x) g(y), as functions; empty where it is not of that form."""
    x, y = variables
    parts: list[tuple[sp.Expr, sp.Expr]] = []
    for term in sp.Add.make_args(F):
        split = separated(term, x, y)
        if split is None:
            return []
        parts += split
    return [(_continued(f, x), _continued(g, y)) for f, g in parts]


def _continued(f: sp.Expr, x: sp.Expr) -> Callable:
    """f as a function, by its limit at zero where a denominator vanishes there."""
    function = sp.lambdify([x], f, modules="mpmath", cse=True)
    limit = limit_at_zero(f, x)
    if limit is None:
        return function
    return lambda value: number(limit) if value == 0 else function(value)


def separated(term: sp.Expr, x: sp.Expr, y: sp.Expr) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """A product as Σ f(x) g(y); only factors that mix the variables are expanded."""
    factors = sp.Mul.make_args(term)
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


def _even_grid(
    products: list, K: list, determinant: Any, digits: int, level: int
) -> tuple[Any, Any]:
    # Nearest singularities at distance π/2 (tanh) and the width of the conditional Gaussians.
    exponent = mpmath.log(10) * (digits + _GUARD)
    narrow = mpmath.sqrt(determinant / max(K[0][0], K[1][1]))
    step = min(mpmath.pi**2 / exponent, narrow * mpmath.pi * mpmath.sqrt(2 / exponent))
    step /= mpmath.mpf(1.25) ** level
    reach = _reach(digits, level)
    counts = [int(reach * mpmath.sqrt(K[i][i]) / step) + 1 for i in range(2)]
    grids = [[(step * i, step) for i in range(-n, n + 1)] for n in counts]
    ratio = mpmath.exp(K[0][1] / determinant * step**2)

    def row(i: int) -> Any:
        factor = ratio ** (i - counts[0])
        value = factor ** (-counts[1])
        for _ in grids[1]:
            yield value
            value *= factor

    return _grid_sum(products, K, determinant, grids, row)


def _panel_grid(products: list, K: list, points: list, order: int, reach: Any) -> tuple[Any, Any]:
    determinant = K[0][0] * K[1][1] - K[0][1] ** 2
    grids = []
    for i in range(2):
        deviation = mpmath.sqrt(K[i][i])
        # A few wide panels of high order: every node pair costs an exponential.
        cuts = {-reach, -reach / 4, reach / 4, reach, *(p / deviation for p in points[i])}
        rule = _composite(sorted(cuts), 3 * order // 2)
        grids.append([(deviation * z, deviation * weight) for z, weight in rule])
    coupling = K[0][1] / determinant

    def row(i: int) -> Any:
        slope = coupling * grids[0][i][0]
        return (mpmath.exp(slope * y) for y, _ in grids[1])

    return _grid_sum(products, K, determinant, grids, row)


def _grid_sum(
    products: list, K: list, determinant: Any, grids: list, row: Callable
) -> tuple[Any, Any]:
    """Σ_ij f(x_i) g(y_j) N(x_i, y_j; 0, K); ``row(i)`` gives the coupling for all j."""
    own = (K[1][1] / (2 * determinant), K[0][0] / (2 * determinant))
    weights = [[w * mpmath.exp(-own[i] * z * z) for z, w in grids[i]] for i in range(2)]
    columns = [
        [w * g(y) for w, (y, _) in zip(weights[1], grids[1], strict=True)] for _, g in products
    ]
    total = size = mpmath.mpf(0)
    for i, (x, _) in enumerate(grids[0]):
        coupling = list(row(i))
        for (f, _), column in zip(products, columns, strict=True):
            inner = mpmath.fdot(coupling, column)
            term = weights[0][i] * f(x) * inner
            total += term
            size += abs(term)
    norm = 1 / (2 * mpmath.pi * mpmath.sqrt(determinant))
    return norm * total, norm * size


def mpf(value: sp.Expr, digits: int) -> Any:
    """A SymPy number as an mpmath number of that many digits."""
    with mpmath.workdps(digits):
        return number(value)


def _kinks(F: sp.Expr, variable: sp.Expr) -> list[sp.Expr]:
    kinks = break_points(F, variable) if has_steps(F) and F.has(variable) else []
    return [*kinks, *map(sp.Float, narrow_cuts(F, variable))]


def _one(f: Callable, K: list, points: list, order: int, reach: Any) -> tuple[Any, Any]:
    deviation = mpmath.sqrt(K[0][0])
    if deviation == 0:
        return f(mpmath.mpf(0)), mpmath.mpf(0)
    centres = [p / deviation for p in points[0]]
    return _sum(lambda z: f(deviation * z), centres, _scale(deviation), order, reach)


def _two(f: Callable, K: list, points: list, order: int, reach: Any) -> tuple[Any, Any]:
    (a, c), (_, b) = K
    if a == 0:
        return _one(lambda y: f(mpmath.mpf(0), y), [[b]], points[1:], order, reach)
    deviation = mpmath.sqrt(a)
    residual = b - c * c / a
    rounding = mpmath.mpf(10) ** (_GUARD - mpmath.mp.dps)
    if residual < -abs(b) * rounding:
        raise ValueError(f"K must be positive semidefinite, got the determinant {a * residual}")
    spread = mpmath.sqrt(max(residual, mpmath.mpf(0)))
    tiny = spread <= mpmath.sqrt(b) * rounding / 100
    moved = [k * deviation / c for k in points[1]] if c != 0 else []
    centres = [k / deviation for k in points[0]] + moved

    def inner(z: Any) -> Any:
        x, mean = deviation * z, c / deviation * z
        if tiny:
            return f(x, mean)
        shifted = [(k - mean) / spread for k in points[1]]
        return _sum(lambda w: f(x, mean + spread * w), shifted, _scale(spread), order, reach)[0]

    return _sum(inner, centres, _scale(deviation), order, reach)


def _scale(deviation: Any) -> Any:
    return min(mpmath.mpf(1), 1 / deviation)


def _reach(digits: int, level: int) -> Any:
    return reach_of(digits + _GUARD, level)


def _sum(f: Callable, centres: list, scale: Any, order: int, reach: Any) -> tuple[Any, Any]:
    """∫ f(z) N(z; 0, 1) dz and the same of |f| by the composite rule."""
    norm = 1 / mpmath.sqrt(2 * mpmath.pi)
    cuts = breakpoints(centres, scale, reach)
    terms = [w * mpmath.exp(-z * z / 2) * f(z) for z, w in _composite(cuts, order)]
    return norm * mpmath.fsum(terms), norm * mpmath.fsum(map(abs, terms))


def _composite(cuts: list, order: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of the Gauss-Legendre rule on every panel."""
    rule = []
    for left, right in pairwise(cuts):
        middle, half = (left + right) / 2, (right - left) / 2
        rule += [(middle + half * x, half * w) for x, w in legendre(order, mpmath.mp.prec)]
    return rule
