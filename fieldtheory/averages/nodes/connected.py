"""Connected correlators: the joint cumulants of functions of Gaussian variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import sympy as sp
from sympy.core.evalf import prec_to_dps
from sympy.core.function import AppliedUndef
from sympy.utilities.iterables import connected_components

from fieldtheory.averages import precise
from fieldtheory.averages.integrands.steps import (
    first_derivative,
    reduced_product,
    second_derivative,
)
from fieldtheory.averages.nodes.base import AverageNode, as_covariance, as_variables
from fieldtheory.averages.nodes.gaussian import GaussianAverage, common_factor, parity, used_in
from fieldtheory.averages.precise import partitions


class ConnectedCorrelator(AverageNode):
    r"""The joint cumulant ⟨F_1;...;F_n⟩ of n >= 2 functions of centred Gaussian variables.

        ⟨F_1;...;F_n⟩ = ∂^n/∂J_1...∂J_n ln ⟨exp Σ_k J_k F_k⟩ at J = 0
                      = Σ_π (−1)^(|π|−1) (|π|−1)! Π_{B ∈ π} ⟨Π_{k ∈ B} F_k⟩

    with π the partitions of the functions; ⟨F;G⟩ = ⟨FG⟩ − ⟨F⟩⟨G⟩ (F25 eq. (40)). It is
    symmetric and linear in its functions: constants are dropped, factors pulled out. It vanishes
    where one function is constant, where the functions fall into independent groups, or where all
    have a parity and the product is odd. One function alone gives the average. Derivatives stay
    connected: Price's theorem for cumulants is

        ∂/∂K_ij ⟨F_1;...;F_n⟩ = (1/2) Σ_k ⟨∂_i∂_j F_k; F_others⟩
                              + (1/2) Σ_{k≠l} ⟨∂_iF_k ∂_jF_l; F_others⟩   for each entry of K.

    `doit` writes it by closed forms, `rewrite(GaussianAverage)` by averages, `evalf` integrates.

    Parameters
    ----------
    *functions : sympy.Expr
        F_1, ..., F_n, each of any of the variables.
    variables : symbol or sequence of symbols
        The bound Gaussian variables h_1, ..., h_m.
    K : sympy.Expr or symmetric matrix, shape (m, m)
        Their covariance.

    Raises
    ------
    ValueError, TypeError
        As for `GaussianAverage`; TypeError without a function.

    Examples
    --------
    >>> import sympy as sp
    >>> h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    >>> ConnectedCorrelator(h**2, h**2, h, K).doit()
    2*K**2
    >>> ConnectedCorrelator(h**2, h**2, h**2, h, K).doit()
    8*K**3
    """

    def __new__(cls, *args: Any) -> Any:
        """Check the arguments; zero and equal ones are found here."""
        if len(args) < 3:
            raise TypeError(f"expected functions, variables and K, got {len(args)} arguments")
        *functions, variables, K = args
        names = as_variables(variables)
        matrix = as_covariance(K, len(names))
        if len(functions) == 1:
            return GaussianAverage(functions[0], names, matrix)
        parts, groups, factors = [], [], []
        for F in map(sp.sympify, functions):
            F = F.as_independent(*names, as_Add=True)[1] if F.is_Add else F
            factor, F = common_factor(F, names)
            parts.append(F)
            groups.append(set(used_in(F, names)))
            factors.append(factor)
        if not all(groups):
            return sp.S.Zero
        # It vanishes where a split of the functions makes independent groups.
        linked = [
            (k, l)
            for k, l in combinations(range(len(groups)), 2)
            if any(matrix[i, j] != 0 for i in groups[k] for j in groups[l])
        ]
        if len(connected_components((range(len(groups)), linked))) > 1:
            return sp.S.Zero
        parities = [parity(F, set(names)) for F in parts]
        if None not in parities and parities.count(-1) % 2 == 1:
            return sp.S.Zero
        # The cumulant is symmetric: one node, whatever the order of functions and variables.
        places = {names[i]: i for i in set().union(*groups)}
        inside = sorted(places, key=sp.default_sort_key)
        used = [places[v] for v in inside]
        ordered = sorted(parts, key=lambda f: (sorted(map(str, f.free_symbols)), str(f)))
        node = sp.Expr.__new__(cls, *ordered, sp.Tuple(*inside), matrix.extract(used, used))
        return sp.Mul(*factors) * node

    def _eval_rewrite_as_GaussianAverage(self, *args: Any, **hints: Any) -> sp.Expr:
        variables, K = self.variables, self.covariance
        return sp.Add(
            *[
                weight
                * sp.Mul(*[GaussianAverage(sp.Mul(*block), variables, K) for block in blocks])
                for weight, blocks in partitions(self.functions)
            ]
        )

    def _eval_derivative(self, symbol: sp.Expr) -> sp.Expr:
        functions, variables, K = self.functions, self.variables, self.covariance
        total = sp.S.Zero
        for k, F in enumerate(functions):
            if F.has(symbol) and symbol not in variables:
                total += _cumulant([*_without(functions, k), F.diff(symbol)], variables, K)
        return total + sp.Add(
            *[slope * self._price(x, y) for x, y, slope in self._entry_slopes(symbol)]
        )

    def _price(self, x: sp.Expr, y: sp.Expr) -> sp.Expr:
        """Twice the derivative by one entry of the covariance, that of x and y."""
        functions, variables, K = self.functions, self.variables, self.covariance
        total = sp.S.Zero
        for k, F in enumerate(functions):
            if F.has(x) and F.has(y):
                others = _without(functions, k)
                total += _cumulant([*others, second_derivative(F, x, y)], variables, K)
        for k, l in product(range(len(functions)), repeat=2):
            F, G = functions[k], functions[l]
            if k != l and F.has(x) and G.has(y):
                joined = reduced_product(
                    first_derivative(F, x), first_derivative(G, y), tuple(variables)
                )
                total += _cumulant([*_without(functions, k, l), joined], variables, K)
        return total

    def _eval_expand_basic(self, **hints: Any) -> sp.Expr:
        parts = [sp.Add.make_args(sp.expand(F)) for F in self.functions]
        if all(len(terms) == 1 for terms in parts):
            return self
        return sp.Add(
            *[ConnectedCorrelator(*choice, *self.args[-2:]) for choice in product(*parts)]
        )

    def doit(self, **hints: Any) -> sp.Expr:
        """The closed form where every average has one, else the node itself."""
        variables, K = self.variables, self.covariance
        averages: dict[sp.Expr, sp.Expr] = {}
        total: list[sp.Expr] = []
        for weight, blocks in partitions(self.functions):
            products = [sp.Mul(*block) for block in blocks]
            for F in products:
                if F not in averages:
                    averages[F] = GaussianAverage(F, variables, K).doit(**hints)
            if any(averages[F].has(GaussianAverage) for F in products):
                evaluated = [F.doit(**hints) for F in self.functions]
                return ConnectedCorrelator(*evaluated, variables, K)
            # Multiplied out, since equal terms of the parts cancel.
            factors = [sp.Add.make_args(averages[F]) for F in products]
            total += [weight * sp.Mul(*choice) for choice in product(*factors)]
        return sp.Add(*total)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        if self.free_symbols or any(F.atoms(AppliedUndef) for F in self.functions):
            return self
        if len(self.variables) > 2 and not (closed := self.doit()).has(AverageNode):
            return closed.evalf(prec_to_dps(prec))
        digits = prec_to_dps(prec)
        value = precise.cumulant(self.functions, tuple(self.variables), self.covariance, digits)
        return sp.Float(value, digits)

    def _sympystr(self, printer: Any) -> str:
        inside = " ; ".join(printer._print(F) for F in self.functions)
        return f"<{inside}>_{self.covariance.tolist()}"


def two_factors(node: AverageNode) -> tuple[sp.Expr, sp.Expr, sp.Symbol, sp.Symbol] | None:
    """F(x), G(y), x and y of ⟨F(x);G(y)⟩, None for other nodes."""
    variables = tuple(node.variables)
    if len(node.functions) != 2 or len(variables) > 2:
        return None
    F, G = node.functions
    if len(variables) == 1:
        x, y = variables[0], sp.Dummy("y", real=True)
        return F, G.xreplace({x: y}), x, y
    x, y = variables
    if F.has(y) or G.has(x):
        F, G = G, F
    return None if F.has(y) or G.has(x) else (F, G, x, y)


def _without(functions: Sequence[sp.Expr], *left_out: int) -> list[sp.Expr]:
    return [F for k, F in enumerate(functions) if k not in left_out]


def _cumulant(functions: Sequence[sp.Expr], variables: sp.Tuple, K: sp.Matrix) -> sp.Expr:
    node = ConnectedCorrelator(*functions, variables, K)
    # δ-functions can be integrated out of averages only.
    if node.has(ConnectedCorrelator) and node.has(sp.DiracDelta):
        return node.rewrite(GaussianAverage)
    return node
