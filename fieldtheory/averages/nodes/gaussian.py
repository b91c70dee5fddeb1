"""Gaussian averages as unevaluated SymPy nodes whose derivative is Price's theorem.

`simplified` is what an average is worth before any integral is done: constants, parity and
independence of its variables.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import sympy as sp
from sympy.core.evalf import prec_to_dps
from sympy.core.function import AppliedUndef
from sympy.utilities.iterables import connected_components

from fieldtheory.averages import precise
from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.averages.integrands.steps import second_derivative, sift, step_form
from fieldtheory.averages.nodes import deltas
from fieldtheory.averages.nodes.base import AverageNode, as_covariance, as_variables
from fieldtheory.averages.nodes.closed_forms import closed_form


class GaussianAverage(AverageNode):
    r"""The average ⟨F(h_1, ..., h_n)⟩ over centred Gaussian variables of covariance K.

    The node stays unevaluated. On construction it pulls out factors and summands without the
    variables, integrates out variables F does not use, drops odd integrands, and factorises over
    independent groups of variables. `expand` applies linearity, `doit` a closed form where one is
    known, `evalf` integrates numerically with mpmath. The derivative with respect to anything in
    K is Price's theorem,

        ∂/∂K_ij ⟨F⟩ = (1/2) ⟨∂_i ∂_j F⟩   for each entry of K,

    so that a symmetric pair i ≠ j counts twice (F25 eq. (137); eqs. (42) and (116) lack the
    factor 1/2 of a diagonal entry). With respect to a parameter of F it passes through.

    Parameters
    ----------
    F : sympy.Expr
        The integrand.
    variables : symbol or sequence of symbols
        h_1, ..., h_n, bound by the node.
    K : sympy.Expr or symmetric matrix, shape (n, n)
        Their covariance; a scalar for one variable.

    Raises
    ------
    ValueError
        If K is not symmetric, of the wrong size, not real or (as far as its numbers tell) not
        positive semidefinite, or a variable is repeated.
    TypeError
        If a variable is not a symbol.

    Examples
    --------
    >>> import sympy as sp
    >>> h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    >>> phi = sp.Function("phi")
    >>> average = GaussianAverage(phi(h) ** 2, h, K)
    >>> average.diff(K)
    <phi(h)*Derivative(phi(h), (h, 2)) + Derivative(phi(h), h)**2>_(K)
    >>> GaussianAverage(sp.erf(h) ** 2, h, K).doit()
    2*atan(2*K/sqrt(4*K + 1))/pi
    """

    def __new__(cls, F: Any, variables: Any, K: Any, evaluate: bool = True) -> Any:
        """Check the arguments; what is known at once is returned in place of a node."""
        F = sp.sympify(F)
        names = as_variables(variables)
        matrix = as_covariance(K, len(names))
        if evaluate:
            return simplified(cls, F, names, matrix)
        return sp.Expr.__new__(cls, F, names, matrix)

    @property
    def integrand(self) -> sp.Expr:
        """F."""
        return self.args[0]

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        F, variables, K = self.args
        total = sp.S.Zero
        if F.has(symbol) and symbol not in variables:
            total += GaussianAverage(F.diff(symbol), variables, K)
        for x, y, slope in self._entry_slopes(symbol):
            # Factors that do not depend on x stay factors of ∂_x² F.
            factor, cofactor = F.as_independent(x, as_Add=False) if x == y else (1, F)
            curvature = factor * second_derivative(cofactor, x, y)
            total += slope * GaussianAverage(curvature, variables, K)
        return total

    def _eval_expand_basic(self, **hints: Any) -> sp.Expr:
        F, variables, K = self.args
        expanded = sp.expand(F)
        if expanded.is_Add or expanded != F:
            terms = sp.Add.make_args(expanded)
            return sp.Add(*[GaussianAverage(term, variables, K) for term in terms])
        return self

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form where a rule exists, else the node, free of δ-functions if possible.

        With ``deltas=False`` a node without a closed form keeps its δ-functions.
        """
        F, variables, K = self.args
        F = F.doit(**hints) if hints.get("deep", True) else F
        if F.atoms(AppliedUndef):
            return GaussianAverage(F, variables, K)
        F = sift(F, tuple(variables))
        result = closed_form(F, tuple(variables), K)
        node = GaussianAverage(F, variables, K)
        if result is not None or not hints.get("deltas", True):
            return node if result is None else result
        # Constants come out of the average.
        return node.replace(lambda e: isinstance(e, GaussianAverage), without_deltas)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        if self.free_symbols or self.integrand.atoms(AppliedUndef):
            return self
        digits = prec_to_dps(prec)
        if len(self.variables) > 2 or self.integrand.has(sp.DiracDelta):
            value = self.doit()
            if value.has(sp.DiracDelta):
                return self
            if value != self:
                return value.evalf(digits)
        return sp.Float(
            precise.average(self.integrand, tuple(self.variables), self.covariance, digits), digits
        )

    def _sympystr(self, printer: Any) -> str:
        K = self.covariance
        measure = K[0, 0] if K.shape == (1, 1) else K.tolist()
        return f"<{printer._print(self.integrand)}>_({printer._print(measure)})"


def without_deltas(node: sp.Expr, doit: bool = True) -> sp.Expr:
    """The average with δ-functions integrated out; the node itself where that is impossible.

    >>> import sympy as sp
    >>> x, y = sp.symbols("x y", real=True)
    >>> node = GaussianAverage(sp.DiracDelta(x) * y**2, (x, y), [[2, 1], [1, 2]])
    >>> without_deltas(node)
    3/(4*sqrt(pi))
    """
    if not (isinstance(node, GaussianAverage) and node.integrand.has(sp.DiracDelta)):
        return node
    F, variables, K = node.args

    def average(*args: Any) -> sp.Expr:
        expression = GaussianAverage(*args)
        if doit:
            return expression.doit()
        return expression.replace(
            lambda e: isinstance(e, GaussianAverage), lambda e: without_deltas(e, doit=False)
        )

    density = deltas.density if doit else deltas.DENSITY
    conditional = deltas.Conditional(average, density)
    split = deltas.without_deltas(F, tuple(variables), K, conditional)
    return node if split is None else GaussianAverage(split[0], variables, K) + split[1]


_ODD = (sp.erf, sp.erfi, sp.tanh, sp.sinh, sp.asinh, sp.sin, sp.tan, sp.atan, sp.sign)
_EVEN = (sp.cos, sp.cosh, sp.Abs)


def simplified(
    cls: type,
    F: sp.Expr,
    names: sp.Tuple,
    K: sp.ImmutableMatrix,
    notes: list[str] | None = None,
) -> sp.Expr:
    """The average ⟨F⟩ as a ``cls`` node over the variables it needs, times and plus constants."""
    done = [] if notes is None else notes
    certain = {v: sp.S.Zero for i, v in enumerate(names) if K[i, i] == 0}
    if certain:
        F = F.subs(certain)
        done.append("a variable without variance is zero")
    used = used_in(F, names)
    if not used:
        return F
    if len(used) < len(names):
        names, K = sp.Tuple(*[names[i] for i in used]), K.extract(used, used)
        done.append("unused variables integrated out")
    constant, F = F.as_independent(*names, as_Add=True) if F.is_Add else (sp.S.Zero, F)
    factor, F = common_factor(F, names)
    if constant != 0:
        done.append("constant summand taken out")
    if factor != 1:
        done.append("constant factor taken out")
    sign = parity(F, set(names))
    if sign == -1 or (sign is None and has_steps(F) and _is_odd_by_steps(F, names)):
        done.append("odd integrand dropped")
        return constant
    groups = _independent_groups(F, K, names)
    if len(groups) == 1:
        return constant + factor * sp.Expr.__new__(cls, F, names, K)
    done.append(f"{len(groups)} independent groups of variables")
    parts = [
        simplified(cls, part, sp.Tuple(*[names[i] for i in group]), K.extract(group, group), notes)
        for part, group in groups
    ]
    return constant + factor * sp.Mul(*parts)


def used_in(F: sp.Expr, names: sp.Tuple) -> list[int]:
    """The places of the variables that an expression has."""
    present = F.free_symbols
    return [i for i, v in enumerate(names) if (v in present if v.is_Symbol else F.has(v))]


def common_factor(F: sp.Expr, names: sp.Tuple) -> tuple[sp.Expr, sp.Expr]:
    """Split F into a factor without the variables, common to all summands, and the rest."""
    if not F.is_Add:
        return F.as_independent(*names, as_Add=False)
    split = [term.as_independent(*names, as_Add=False) for term in F.args]
    numbers, symbols = zip(*[c.as_coeff_Mul() for c, _ in split], strict=True)
    factor = sp.gcd(list(numbers)) if all(n.is_Rational for n in numbers) else sp.S.One
    if len(set(symbols)) == 1:
        factor *= symbols[0]
    return factor, sp.Add(*[(c / factor) * remainder for c, remainder in split])


def _is_odd_by_steps(F: sp.Expr, names: sp.Tuple) -> bool:
    """Whether F, whose parity its functions do not tell, is odd once it is written by steps."""
    if F.atoms(AppliedUndef) or F.has(sp.exp):
        return False
    # One point, where it may not be odd, spares expanding its steps.
    point = {v: sp.Rational(2 * i + 3, 7) for i, v in enumerate(names)}
    sides = [F.xreplace({v: s * x for v, x in point.items()}).evalf(15) for s in (1, -1)]
    if all(side.is_Float or side.is_Rational for side in sides):
        if abs(sum(sides)) > sp.Float(1e-6) * sum(map(abs, sides)):
            return False
    return sp.expand(step_form(F.xreplace({v: -v for v in names})) + step_form(F)) == 0


def parity(F: sp.Expr, names: set) -> int | None:
    """1 if F is even, −1 if it is odd in the variables together, else None."""
    if F in names:
        return -1
    if not F.has_xfree(names):
        return 1
    parities = [parity(arg, names) for arg in F.args]
    if F.is_Add:
        return parities[0] if len(set(parities)) == 1 else None
    if all(sign == 1 for sign in parities):
        return 1
    if None in parities:
        return None
    if F.is_Mul:
        return int(sp.prod(parities))
    if F.is_Pow and F.exp.is_Integer:
        return 1 if F.exp.is_even else -1
    if isinstance(F, _ODD):
        return -1
    return 1 if isinstance(F, _EVEN) else None


def _independent_groups(
    F: sp.Expr, K: sp.ImmutableMatrix, names: sp.Tuple
) -> list[tuple[sp.Expr, list[int]]]:
    """Factors of F that depend on mutually independent variables, with those variables."""
    factors = sp.Mul.make_args(F)
    if len(names) == 1 or len(factors) == 1:
        return [(F, list(range(len(names))))]
    used = [used_in(factor, names) for factor in factors]
    pairs = [(i, j) for i, j in combinations(range(len(names)), 2) if K[i, j] != 0]
    pairs += [(indices[0], j) for indices in used for j in indices[1:]]
    groups = map(sorted, connected_components((range(len(names)), pairs)))
    return [
        (sp.Mul(*[f for f, own in zip(factors, used, strict=True) if own[0] in group]), group)
        for group in sorted(groups)
    ]
