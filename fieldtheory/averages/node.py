"""Gaussian averages as unevaluated SymPy nodes whose derivative is Price's theorem."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.averages.steps import has_steps, second_derivative, sift, step_form


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
        If K is not symmetric, of the wrong size or numerically indefinite on its diagonal, or a
        variable is repeated.

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
        names = sp.Tuple(*_as_sequence(variables))
        matrix = _as_covariance(K, len(names))
        if len(set(names)) != len(names):
            raise ValueError(f"variables must be different from each other, got {names}")
        if evaluate:
            return _simplified(cls, F, names, matrix)
        return _node(cls, F, names, matrix)

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
        return (self.integrand.free_symbols - self.variables.free_symbols) | _symbols(
            self.covariance
        )

    def _eval_is_real(self) -> bool | None:
        return self.integrand.is_real

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        F, variables, K = self.args
        if symbol in variables:
            return sp.S.Zero
        total = sp.S.Zero
        if F.has(symbol):
            total += GaussianAverage(F.diff(symbol), variables, K)
        if symbol not in _symbols(K):
            return total
        for i, x in enumerate(variables):
            for j, y in enumerate(variables[: i + 1]):
                slope = K[i, j].diff(symbol)
                if slope != 0:
                    weight = slope / 2 if i == j else slope
                    total += weight * GaussianAverage(second_derivative(F, x, y), variables, K)
        return total

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        F, variables, K = self.args
        if old in variables:
            return self
        clash = [v for v in variables if v in sp.sympify(new).free_symbols]
        if clash:
            fresh = {v: sp.Dummy(v.name, **v.assumptions0) for v in clash}
            F, variables = F.xreplace(fresh), variables.xreplace(fresh)
        if old in _symbols(K) or not old.is_Symbol:
            K = K.subs(old, new)
        return GaussianAverage(F.subs(old, new), variables.subs(old, new), K)

    def _xreplace(self, rule: Any) -> tuple[sp.Expr, bool]:
        if self in rule:
            return rule[self], True
        F, variables, K = self.args
        # A joint covariance is large and most replacements touch the integrand alone.
        free = all(key.is_Symbol and key not in _symbols(K) for key in rule)
        parts = [part._xreplace(rule) for part in ((F, variables) if free else self.args)]
        if not any(changed for _, changed in parts):
            return self, False
        new = [part for part, _ in parts]
        return GaussianAverage(*new, *((K,) if free else ())), True

    def _eval_expand_basic(self, **hints: Any) -> sp.Expr:
        F, variables, K = self.args
        expanded = sp.expand(F)
        if expanded.is_Add or expanded != F:
            terms = sp.Add.make_args(expanded)
            return sp.Add(*[GaussianAverage(term, variables, K) for term in terms])
        return self

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form where a rule exists, else the node itself."""
        from fieldtheory.averages.closed_forms import closed_form

        F = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        if F.atoms(sp.core.function.AppliedUndef):
            return GaussianAverage(F, self.variables, self.covariance)
        F = sift(F, tuple(self.variables))
        result = closed_form(F, tuple(self.variables), self.covariance)
        return GaussianAverage(F, self.variables, self.covariance) if result is None else result

    def _eval_evalf(self, prec: int) -> sp.Expr:
        from fieldtheory.averages.precise import average

        if self.free_symbols or self.integrand.atoms(sp.core.function.AppliedUndef):
            return self
        digits = sp.core.evalf.prec_to_dps(prec)
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
        names = sp.Tuple(*_as_sequence(variables))
        matrix = _as_covariance(K, len(names))
        F, names_f, factor_f = _observable(F, names)
        G, names_g, factor_g = _observable(G, names)
        used = [i for i, v in enumerate(names) if v in names_f or v in names_g]
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
        return ((F.free_symbols | G.free_symbols) - bound) | _symbols(self.covariance)

    def _eval_is_real(self) -> bool | None:
        return self.rewrite(GaussianAverage).is_real

    def _eval_rewrite_as_GaussianAverage(self, *args: Any, **hints: Any) -> sp.Expr:
        (F, G), variables, K = self.observables, self.variables, self.covariance
        apart = GaussianAverage(F, variables, K) * GaussianAverage(G, variables, K)
        return GaussianAverage(F * G, variables, K) - apart

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        return self.rewrite(GaussianAverage).diff(symbol)

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        if old in self.variables:
            return self
        return ConnectedCorrelator(*[arg.subs(old, new) for arg in self.args])

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form where every average has one, else the node itself."""
        result = self.rewrite(GaussianAverage).doit(**hints)
        if not result.has(GaussianAverage):
            return result
        (F, G), variables, K = self.observables, self.variables, self.covariance
        return ConnectedCorrelator(F.doit(**hints), G.doit(**hints), variables, K)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        # Guard digits: the two terms nearly cancel where the variables are weakly coupled.
        return sp.N(self.rewrite(GaussianAverage)._eval_evalf(prec + 40), n=_digits(prec))

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
            (averages if is_average else others).extend(
                [base] * int(power) if is_average else [factor]
            )
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
    joint_averages = {key[0].integrand: key[0] for key in coefficients if len(key) == 1}
    gathered = []
    for first, second in [key for key in coefficients if len(key) == 2]:
        joint = joint_averages.get(first.integrand * second.integrand)
        coefficient = -coefficients[first, second]
        if joint is None or coefficients[(joint,)] != coefficient:
            continue
        coefficients[first, second] = coefficients[(joint,)] = sp.S.Zero
        connected = ConnectedCorrelator(
            first.integrand, second.integrand, joint.variables, joint.covariance
        )
        gathered.append(coefficient * connected)
    return gathered


@lru_cache(maxsize=4096)
def _symbols(matrix: sp.ImmutableMatrix) -> frozenset:
    return frozenset(matrix.free_symbols)


def _digits(prec: int) -> int:
    return int(prec / 3.3219280948873626) + 1


def _as_sequence(variables: Any) -> Iterable:
    return variables if isinstance(variables, list | tuple | sp.Tuple) else (sp.sympify(variables),)


def _as_covariance(K: Any, size: int) -> sp.ImmutableMatrix:
    if isinstance(K, sp.ImmutableDenseMatrix):
        matrix = K
    elif hasattr(K, "__len__") or isinstance(K, sp.MatrixBase):
        matrix = sp.ImmutableMatrix(K)
    else:
        matrix = sp.ImmutableMatrix([[K]])
    if matrix.shape != (size, size):
        raise ValueError(
            f"K must have shape ({size}, {size}), one row for each variable, got {matrix.shape}"
        )
    if matrix != matrix.T:
        raise ValueError(f"K must be symmetric, got {matrix.tolist()}")
    negative = [matrix[i, i] for i in range(size) if matrix[i, i].is_negative]
    if negative:
        raise ValueError(f"K must be positive semidefinite, got the variance {negative[0]}")
    return matrix


def _node(cls: type, F: sp.Expr, names: sp.Tuple, K: sp.ImmutableMatrix) -> sp.Expr:
    return sp.Expr.__new__(cls, F, names, K)


def _simplified(cls: type, F: sp.Expr, names: sp.Tuple, K: sp.ImmutableMatrix) -> sp.Expr:
    certain = {v: sp.S.Zero for i, v in enumerate(names) if K[i, i] == 0}
    if certain:
        F = F.subs(certain)
    used = _used(F, names)
    if not used:
        return F
    if len(used) < len(names):
        names, K = sp.Tuple(*[names[i] for i in used]), K.extract(used, used)
    constant, F = F.as_independent(*names, as_Add=True) if F.is_Add else (sp.S.Zero, F)
    factor, F = _common_factor(F, names)
    if _is_odd(F, names):
        return constant
    groups = _independent_groups(F, K, names)
    if len(groups) == 1:
        return constant + factor * _node(cls, F, names, K)
    parts = [
        _simplified(cls, part, sp.Tuple(*[names[i] for i in group]), K.extract(group, group))
        for part, group in groups
    ]
    return constant + factor * sp.Mul(*parts)


def _used(F: sp.Expr, names: sp.Tuple) -> list[int]:
    present = F.free_symbols
    return [i for i, v in enumerate(names) if (v in present if v.is_Symbol else F.has(v))]


def _common_factor(F: sp.Expr, names: sp.Tuple) -> tuple[sp.Expr, sp.Expr]:
    """Split F into a factor without the variables, common to all summands, and the rest."""
    if not F.is_Add:
        return F.as_independent(*names, as_Add=False)
    split = [term.as_independent(*names, as_Add=False) for term in F.args]
    numbers, symbols = zip(*[c.as_coeff_Mul() for c, _ in split], strict=True)
    factor = sp.gcd(list(numbers)) if all(n.is_Rational for n in numbers) else sp.S.One
    if len(set(symbols)) == 1:
        factor *= symbols[0]
    return factor, sp.Add(*[(c / factor) * rest for c, rest in split])


def _observable(F: sp.Expr, names: sp.Tuple) -> tuple[sp.Expr, list[sp.Expr], sp.Expr]:
    """F without the constants a connected correlator drops, its variables, and its factor."""
    if F.is_Add:
        F = F.as_independent(*names, as_Add=True)[1]
    factor, F = _common_factor(F, names)
    return F, [names[i] for i in _used(F, names)], factor


def _is_odd(F: sp.Expr, names: sp.Tuple) -> bool:
    if F.atoms(sp.core.function.AppliedUndef) or F.has(sp.exp, sp.Derivative):
        return False
    mirrored = F.xreplace({v: -v for v in names})
    if has_steps(F):
        return sp.expand(step_form(mirrored) + step_form(F)) == 0
    return mirrored.doit() == -F


def _independent_groups(
    F: sp.Expr, K: sp.ImmutableMatrix, names: sp.Tuple
) -> list[tuple[sp.Expr, list[int]]]:
    """Factors of F that depend on mutually independent variables, with those variables."""
    factors = sp.Mul.make_args(F)
    if len(names) == 1 or len(factors) == 1:
        return [(F, list(range(len(names))))]
    label = list(range(len(names)))

    def merge(i: int, j: int) -> None:
        old, new = label[i], label[j]
        label[:] = [new if value == old else value for value in label]

    used = [_used(factor, names) for factor in factors]
    for i in range(len(names)):
        for j in range(i):
            if K[i, j] != 0:
                merge(i, j)
    for indices in used:
        for j in indices[1:]:
            merge(indices[0], j)
    return [
        (
            sp.Mul(*[f for f, ix in zip(factors, used, strict=True) if label[ix[0]] == value]),
            [i for i, v in enumerate(label) if v == value],
        )
        for value in sorted(set(label))
    ]
