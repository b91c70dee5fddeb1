"""What the cumulants are in Hermite polynomials: g_1 = e_2 rᵀ + r e_2ᵀ, and g_3 of e_2 and e_4.

Every term of the next g_1 and g_3 has a factor ψ_{a,2} or ψ_{a,4}, the coefficient of h_2 or h_4 of
one of the functions: the form that the code keeps, from which B and E are read off.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations

import sympy as sp

from neurons.counting import next_cumulant, seen
from neurons.cumulants import Average, Cumulant, D, Moved, Seen, arguments, function

CORRELATION = sp.Symbol("c", positive=True)
LOWERED = sp.Symbol(r"\lambda", positive=True)


class Mode(sp.Function):
    """The coefficient of h_n of ψ_a, or of D for a = 0."""

    def _latex(self, printer, exp: str = "") -> str:
        n, a = self.args
        shown = rf"\psi_{{{a},{n}}}" if a else f"D_{{{n}}}"
        return rf"{shown}^{{{exp}}}" if exp else shown


class Linear(sp.Function):
    """r of a function."""

    def _latex(self, printer, exp: str = "") -> str:
        power = f"^{{{exp}}}" if exp else ""
        return f"r{power}({arguments(self.args, printer)})"


class Contact(sp.Function):
    """The coefficient of h_2 of a product with D."""

    def _latex(self, printer, exp: str = "") -> str:
        return rf"({arguments(self.args, printer)})_{{2}}"


class _Form(sp.Function):
    """A symmetric form of two functions."""

    @classmethod
    def eval(cls, first, second):
        ordered = sorted((first, second), key=sp.default_sort_key)
        return None if ordered == [first, second] else cls(*ordered)

    def _latex(self, printer, exp: str = "") -> str:
        return f"{type(self).__name__}({arguments(self.args, printer)})"


class B(_Form):
    """What stands beside e_2 in g_3."""


class E(_Form):
    """What stands beside e_4 in g_3."""


def lowering(j: int) -> sp.Symbol:
    """⟨P_j h_{2j}⟩."""
    return sp.Symbol(rf"\beta_{{{j}}}", positive=True)


def mode(n: int, f: sp.Expr) -> sp.Expr:
    """The coefficient of h_n: P_j lowers the order by 2j."""
    if f == D:
        return Mode(n, 0)
    if f.is_Mul:
        return Contact(f)
    j, a = f.args
    steps = {(0, 2): CORRELATION**2, (0, 4): CORRELATION**4, (1, 2): LOWERED}
    return steps[int(j), n] * Mode(n + 2 * int(j), a)


def in_modes(formula: sp.Expr) -> sp.Expr:
    """A formula for functions of zero mean with g_1, g_3 and u of their form in modes."""

    def average(f: sp.Expr) -> sp.Expr:
        if f.func is not Moved:
            return Average(f)
        j, a = f.args
        return lowering(int(j)) * Mode(2 * j, a) if j else sp.S.Zero

    def cumulant(order: sp.Expr, *f: sp.Expr) -> sp.Expr:
        if len(f) == 2 and order == 1:
            return mode(2, f[0]) * Linear(f[1]) + mode(2, f[1]) * Linear(f[0])
        if len(f) == 3:
            parts = [(f[i], [x for k, x in enumerate(f) if k != i]) for i in range(3)]
            return sp.Add(
                *[form(*two) * mode(n, x) for x, two in parts for n, form in ((2, B), (4, E))]
            )
        return Cumulant(order, *f)

    def shown(order: sp.Expr, count: sp.Expr, *f: sp.Expr) -> sp.Expr:
        if len(f) < 2:
            return Seen(order, count, *f)
        in_cumulants = seen(int(count), (function(1), function(2)))[int(order)]
        named = dict(zip((function(1), function(2)), f, strict=True))
        return in_cumulants.subs(named, simultaneous=True)

    opened = formula.replace(Seen, shown)
    return sp.expand(opened.replace(Average, average).replace(Cumulant, cumulant))


def share(formula: sp.Expr, n: int) -> sp.Expr:
    """What stands beside ψ_{1,n}; two factors of one kind share a term, h_2 goes before h_4."""
    found = []
    for term in sp.Add.make_args(formula):
        factors = term.as_powers_dict()
        places = {k: [a for a in (1, 2, 3) if factors[Mode(k, a)]] for k in (2, 4)}
        assert places[2] or places[4], f"{term} is not of this form"
        if 1 in places[n] and not (n == 4 and places[2]):
            found.append(term / Mode(n, 1) / len(places[n]))
    return sp.Add(*found)


@cache
def next_pair() -> sp.Expr:
    """r'(ψ_2)."""
    formula = in_modes(next_cumulant(2)[1])
    found = share(formula, 2)
    assert sp.expand(formula - Mode(2, 1) * found - Mode(2, 2) * renamed(found, {2: 1})) == 0
    return found


@cache
def next_forms() -> tuple[sp.Expr, sp.Expr]:
    """B'(ψ_2, ψ_3) and E'(ψ_2, ψ_3)."""
    formula = in_modes(next_cumulant(3)[2])
    two, four = share(formula, 2), share(formula, 4)
    whole = []
    for a, first, second in ((1, 2, 3), (2, 1, 3), (3, 1, 2)):
        names = {2: first, 3: second}
        whole.append(Mode(2, a) * renamed(two, names) + Mode(4, a) * renamed(four, names))
    assert sp.expand(formula - sp.Add(*whole)) == 0
    return two, four


def renamed(formula: sp.Expr, names: dict[int, int]) -> sp.Expr:
    """With other functions ψ_a."""

    def name(a: sp.Expr) -> int:
        return names.get(int(a), int(a))

    moved = formula.replace(Moved, lambda j, a: Moved(j, name(a)))
    return moved.replace(Mode, lambda n, a: Mode(n, name(a)))


def representatives(formula: sp.Expr, functions: tuple[int, ...]) -> list[sp.Expr]:
    """One of the terms that permutations of the functions make of each other."""
    rest, found = set(sp.Add.make_args(formula)), []
    for term in sorted(rest, key=_order):
        if term in rest:
            found.append(term)
            orders = permutations(functions)
            images = {renamed(term, dict(zip(functions, p, strict=True))) for p in orders}
            assert images <= rest, "the formula is not symmetric"
            rest -= images
    return found


def _order(term: sp.Expr) -> tuple[int, int, str]:
    """Few derivatives first."""
    derivatives = sum(int(f.args[0]) for f in sp.preorder_traversal(term) if f.func is Moved)
    return derivatives, len(term.as_powers_dict()), str(term)
