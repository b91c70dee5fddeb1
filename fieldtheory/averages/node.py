"""Gaussian averages as unevaluated SymPy nodes whose derivative is Price's theorem."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import sympy as sp
from sympy.core.evalf import prec_to_dps
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter

from fieldtheory.averages.binding import (
    as_covariance,
    as_variables,
    covariance_symbols,
    replaced,
    substituted,
)
from fieldtheory.averages.simplification import observable, simplified
from fieldtheory.averages.steps import second_derivative, sift


class GaussianAverage(sp.Expr):
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

    is_commutative = True

    def __new__(cls, F: Any, variables: Any, K: Any, evaluate: bool = True) -> Any:
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

    @property
    def variables(self) -> sp.Tuple:
        """The bound variables h_1, ..., h_n."""
        return self.args[1]

    @property
    def covariance(self) -> sp.ImmutableMatrix:
        """K, shape (n, n)."""
        return self.args[2]

    @property
    def bound_symbols(self) -> list[sp.Expr]:
        return list(self.variables)

    @property
    def free_symbols(self) -> set:
        return (self.integrand.free_symbols - self.variables.free_symbols) | covariance_symbols(
            self.covariance
        )

    def _eval_is_real(self) -> bool | None:
        return self.integrand.is_real

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        F, variables, K = self.args
        total = sp.S.Zero
        if F.has(symbol) and symbol not in variables:
            total += GaussianAverage(F.diff(symbol), variables, K)
        if symbol not in covariance_symbols(K):
            return total
        for i, x in enumerate(variables):
            for j, y in enumerate(variables[: i + 1]):
                slope = K[i, j].diff(symbol)
                if slope != 0:
                    weight = slope / 2 if i == j else slope
                    total += weight * GaussianAverage(second_derivative(F, x, y), variables, K)
        return total

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        return GaussianAverage(*substituted(self, old, new))

    def _xreplace(self, rule: Any) -> tuple[sp.Expr, bool]:
        if self in rule or not isinstance(rule, Mapping):
            return super()._xreplace(rule)
        args, changed = replaced(self, rule)
        return (GaussianAverage(*args), True) if changed else (self, False)

    def _eval_expand_basic(self, **hints: Any) -> sp.Expr:
        F, variables, K = self.args
        expanded = sp.expand(F)
        if expanded.is_Add or expanded != F:
            terms = sp.Add.make_args(expanded)
            return sp.Add(*[GaussianAverage(term, variables, K) for term in terms])
        return self

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form where a rule exists, else the node, free of δ-functions if possible."""
        from fieldtheory.averages.closed_forms import closed_form

        F = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        if F.atoms(AppliedUndef):
            return GaussianAverage(F, self.variables, self.covariance)
        F = sift(F, tuple(self.variables))
        result = closed_form(F, tuple(self.variables), self.covariance)
        node = GaussianAverage(F, self.variables, self.covariance)
        return without_deltas(node) if result is None else result

    def _eval_evalf(self, prec: int) -> sp.Expr:
        from fieldtheory.averages.precise import average

        if self.free_symbols or self.integrand.atoms(AppliedUndef):
            return self
        digits = prec_to_dps(prec)
        if self.integrand.has(sp.DiracDelta):
            value = self.doit()
            return self if value.has(sp.DiracDelta) else value.evalf(digits)
        return sp.Float(
            average(self.integrand, tuple(self.variables), self.covariance, digits), digits
        )

    def _sympystr(self, printer: Any) -> str:
        K = self.covariance
        measure = K[0, 0] if K.shape == (1, 1) else K.tolist()
        return f"<{printer._print(self.integrand)}>_({printer._print(measure)})"

    def _latex(self, printer: LatexPrinter) -> str:
        return (
            rf"\left\langle {printer._print(self.integrand)} \right\rangle"
            rf"_{{{measure_latex(printer, self.variables, self.covariance)}}}"
        )


class ConnectedCorrelator(sp.Expr):
    r"""The connected correlator ⟨F;G⟩ = ⟨FG⟩ − ⟨F⟩⟨G⟩ (F25 eq. (40)).

    The node vanishes where F or G is constant or the two depend on independent variables.
    `doit` writes it by averages and their closed forms; `rewrite(GaussianAverage)` by averages.

    Parameters
    ----------
    F, G : sympy.Expr
        The two observables.
    variables : symbol or sequence of symbols
        The bound Gaussian variables.
    K : sympy.Expr or symmetric matrix, shape (n, n)
        Their covariance.

    Examples
    --------
    >>> import sympy as sp
    >>> h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    >>> ConnectedCorrelator(h**2, h**2, h, K).doit()
    2*K**2
    """

    is_commutative = True

    def __new__(cls, F: Any, G: Any, variables: Any, K: Any) -> Any:
        F, G = sp.sympify(F), sp.sympify(G)
        names = as_variables(variables)
        matrix = as_covariance(K, len(names))
        F, names_f, factor_f = observable(F, names)
        G, names_g, factor_g = observable(G, names)
        used = [i for i, v in enumerate(names) if v in names_f or v in names_g]
        # ⟨F;G⟩ = ⟨G;F⟩ is one node, whatever the order of the observables and the variables.
        used.sort(key=lambda i: sp.default_sort_key(names[i]))
        F, G = sorted((F, G), key=lambda f: (sorted(map(str, f.free_symbols)), str(f)))
        coupled = any(
            matrix[i, j] != 0
            for i in used
            for j in used
            if names[i] in names_f and names[j] in names_g
        )
        if not (names_f and names_g and coupled):
            return sp.S.Zero
        node = sp.Expr.__new__(
            cls, F, G, sp.Tuple(*[names[i] for i in used]), matrix.extract(used, used)
        )
        return factor_f * factor_g * node

    @property
    def observables(self) -> tuple[sp.Expr, sp.Expr]:
        """F and G."""
        return self.args[0], self.args[1]

    @property
    def variables(self) -> sp.Tuple:
        """The bound variables."""
        return self.args[2]

    @property
    def covariance(self) -> sp.ImmutableMatrix:
        """K, shape (n, n)."""
        return self.args[3]

    bound_symbols = property(lambda self: list(self.variables))

    @property
    def free_symbols(self) -> set:
        bound = self.variables.free_symbols
        F, G = self.observables
        return ((F.free_symbols | G.free_symbols) - bound) | covariance_symbols(self.covariance)

    def _eval_is_real(self) -> bool | None:
        return True if all(part.is_real for part in self.observables) else None

    def _eval_rewrite_as_GaussianAverage(self, *args: Any, **hints: Any) -> sp.Expr:
        (F, G), variables, K = self.observables, self.variables, self.covariance
        apart = GaussianAverage(F, variables, K) * GaussianAverage(G, variables, K)
        return GaussianAverage(F * G, variables, K) - apart

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        return self.rewrite(GaussianAverage).diff(symbol)

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        return ConnectedCorrelator(*substituted(self, old, new))

    def _xreplace(self, rule: Any) -> tuple[sp.Expr, bool]:
        if self in rule or not isinstance(rule, Mapping):
            return super()._xreplace(rule)
        args, changed = replaced(self, rule)
        return (ConnectedCorrelator(*args), True) if changed else (self, False)

    def _eval_expand_basic(self, **hints: Any) -> sp.Expr:
        F, G = (sp.Add.make_args(sp.expand(part)) for part in self.observables)
        if len(F) == len(G) == 1:
            return self
        return sp.Add(*[ConnectedCorrelator(f, g, *self.args[2:]) for f, g in product(F, G)])

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form where every average has one, else the node itself."""
        (F, G), variables, K = self.observables, self.variables, self.covariance
        joint, *apart = (
            sp.Add.make_args(GaussianAverage(f, variables, K).doit(**hints)) for f in (F * G, F, G)
        )
        # Multiplied out, since equal terms of the two parts cancel.
        result = sp.Add(*joint, *[-f * g for f, g in product(*apart)])
        if not result.has(GaussianAverage):
            return result
        return ConnectedCorrelator(F.doit(**hints), G.doit(**hints), variables, K)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        if self.free_symbols:
            return self
        digits, guard = prec_to_dps(prec), 10
        terms = sp.Add.make_args(self.rewrite(GaussianAverage))
        for _ in range(2):
            values = [term.evalf(digits + guard) for term in terms]
            total = sp.Add(*values)
            if not total.is_Float or total == 0:
                return self if total.has(GaussianAverage) else total
            # The two terms nearly cancel where the variables are weakly coupled.
            lost = int(sp.log(max(map(abs, values)) / abs(total), 10)) + 2
            if lost <= guard:
                break
            guard += lost
        return sp.Float(total, digits)

    def _sympystr(self, printer: Any) -> str:
        F, G = self.observables
        return f"<{printer._print(F)} ; {printer._print(G)}>_{self.covariance.tolist()}"

    def _latex(self, printer: LatexPrinter) -> str:
        F, G = (printer._print(part) for part in self.observables)
        measure = measure_latex(printer, self.variables, self.covariance)
        return rf"\left\langle {F} \,;\, {G} \right\rangle_{{{measure}}}"


def measure_latex(printer: LatexPrinter, variables: sp.Tuple, K: sp.ImmutableMatrix) -> str:
    """The subscript of an average; printers with a ``measure`` method choose the notation."""
    named = getattr(printer, "measure", None)
    if named is not None:
        return named(variables, K)
    shown = K[0, 0] if K.shape == (1, 1) else K
    return rf"\mathcal{{N}}\left(0, {printer._print(shown)}\right)"


def expand_averages(expr: sp.Expr) -> sp.Expr:
    """Expand products around averages and sums inside them, not what stands further inside."""
    nodes = expr.atoms(GaussianAverage, ConnectedCorrelator)
    linear = {a: a._eval_expand_basic() for a in nodes if isinstance(a, GaussianAverage)}
    expr = expr.xreplace({a: new for a, new in linear.items() if new != a})
    masks = {a: sp.Dummy() for a in expr.atoms(GaussianAverage, ConnectedCorrelator)}
    expanded = sp.expand(expr.xreplace(masks))
    return expanded.xreplace({mask: a for a, mask in masks.items()})


def gather_connected(expr: sp.Expr) -> sp.Expr:
    """Write every ⟨FG⟩ − ⟨F⟩⟨G⟩ in an expression as a connected correlator.

    Parameters
    ----------
    expr : sympy.Expr
        A polynomial in Gaussian averages.

    Returns
    -------
    sympy.Expr
        Equal to ``expr``; what is not of that form is left as it stands.
    """
    coefficients: dict[tuple, sp.Expr] = {}
    rest = []
    for term in sp.Add.make_args(expand_averages(expr)):
        averages, others = [], []
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            is_average = isinstance(base, GaussianAverage) and power in (1, 2)
            if is_average:
                averages += [base] * int(power)
            else:
                others.append(factor)
        if len(averages) in (1, 2):
            key = tuple(sorted(averages, key=sp.default_sort_key))
            coefficients[key] = coefficients.get(key, sp.S.Zero) + sp.Mul(*others)
        else:
            rest.append(term)
    gathered = _gather(coefficients)
    remaining = [c * sp.Mul(*key) for key, c in coefficients.items() if c != 0]
    return sp.Add(*rest, *remaining, *gathered)


def _gather(coefficients: dict[tuple, sp.Expr]) -> list[sp.Expr]:
    """Move matching terms out of ``coefficients`` into connected correlators."""
    single = {key[0]: key for key in coefficients if len(key) == 1}
    gathered = []
    for first, second in [key for key in coefficients if len(key) == 2]:
        coefficient = -coefficients[first, second]
        for joint, key in single.items():
            if coefficients[key] == coefficient and _joins(joint, first, second):
                coefficients[first, second] = coefficients[key] = sp.S.Zero
                F, G = first.integrand, second.integrand
                connected = ConnectedCorrelator(F, G, joint.variables, joint.covariance)
                gathered.append(coefficient * connected)
                break
    return gathered


def _joins(joint: GaussianAverage, first: GaussianAverage, second: GaussianAverage) -> bool:
    """Whether ``joint`` averages the product of the two integrands over the same measure."""
    if joint.integrand != first.integrand * second.integrand:
        return False
    variables, K = joint.variables, joint.covariance
    return all(GaussianAverage(part.integrand, variables, K) == part for part in (first, second))


def without_deltas(node: sp.Expr) -> sp.Expr:
    """The average with δ-functions integrated out; the node itself where that is impossible."""
    from fieldtheory.averages import closed_forms

    if not (isinstance(node, GaussianAverage) and node.integrand.has(sp.DiracDelta)):
        return node
    F, variables, K = node.args
    split = closed_forms.without_deltas(
        F, tuple(variables), K, lambda *args: GaussianAverage(*args).doit()
    )
    return node if split is None else GaussianAverage(split[0], variables, K) + split[1]
