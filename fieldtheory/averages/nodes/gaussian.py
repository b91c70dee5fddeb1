"""Gaussian averages as unevaluated SymPy nodes whose derivative is Price's theorem."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.core.evalf import prec_to_dps
from sympy.core.function import AppliedUndef

from fieldtheory.averages import precise
from fieldtheory.averages.integrands.simplification import simplified
from fieldtheory.averages.integrands.steps import second_derivative, sift
from fieldtheory.averages.nodes import closed_forms
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.binding import as_covariance, as_variables


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

    def _eval_is_real(self) -> bool | None:
        return self.integrand.is_real

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        F, variables, K = self.args
        total = sp.S.Zero
        if F.has(symbol) and symbol not in variables:
            total += GaussianAverage(F.diff(symbol), variables, K)
        for x, y, slope in self._entry_slopes(symbol):
            total += slope * GaussianAverage(_curvature(F, x, y), variables, K)
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
        F = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        if F.atoms(AppliedUndef):
            return GaussianAverage(F, self.variables, self.covariance)
        F = sift(F, tuple(self.variables))
        result = closed_forms.closed_form(F, tuple(self.variables), self.covariance)
        node = GaussianAverage(F, self.variables, self.covariance)
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


def _curvature(F: sp.Expr, x: sp.Expr, y: sp.Expr) -> sp.Expr:
    """∂_x ∂_y F; factors that do not depend on x stay factors of ∂_x² F."""
    if x != y:
        return second_derivative(F, x, y)
    factor, cofactor = F.as_independent(x, as_Add=False)
    return factor * second_derivative(cofactor, x, x)


def without_deltas(node: sp.Expr, doit: bool = True) -> sp.Expr:
    """The average with δ-functions integrated out; the node itself where that is impossible.

    What is left to average over other variables is put in closed form unless ``doit`` is false;
    then densities are calls of `closed_forms.DENSITY`.

    Examples
    --------
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

    density = closed_forms.density if doit else closed_forms.DENSITY
    conditional = closed_forms.Conditional(average, density)
    split = closed_forms.without_deltas(F, tuple(variables), K, conditional)
    return node if split is None else GaussianAverage(split[0], variables, K) + split[1]
