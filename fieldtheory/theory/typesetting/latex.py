"""LaTeX of expressions in the notation of the papers, in the order in which one writes by hand.

Averages carry the measure N(0, K^(l)) of their layer, or N(0, K) for signals of several layers,
instead of its entries; derivatives of φ are primes; coefficients stand before fields and fields
before averages; the branch stands before its bias.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.theory.notation import natural

_PMATRIX_COLUMNS = 10
_LAYER = re.compile(r"\^\{\((.*?)\)\}")
# Symbols by the start of their name, in the order of a product.
_GREEK = r"\nu", r"\rho", r"\sigma", r"\gamma", r"\phi"
_SYMBOLS = (("N", "M"), *_GREEK, ("C^", "X^"), "K^", r"\tilde")
_OTHER = len(_SYMBOLS)
# Ranks of what follows the symbols in a product; `LayerQuantity` takes some of them.
COEFFICIENT, SKIP, FIELD, FUNCTION, AVERAGE, BRACKET, SUM = (
    1.5,
    4.5,
    6,
    *range(_OTHER + 1, _OTHER + 5),
)
_BIASES = (r"\sigma_{b", "c_", r"\mathrm{bias")
_NAMES = {"log": r"\ln", "erf": r"\operatorname{erf}", "Max": r"\max"}


@dataclass(frozen=True, kw_only=True, repr=False)
class Typeset:
    """A result that a notebook shows by its formulas, LaTeX from a `Derivation`."""

    formulas: Callable[[], str] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        names = [f.name for f in fields(self) if f.name != "formulas"]
        return f"{type(self).__name__}({', '.join(names)})"

    def _repr_latex_(self) -> str | None:
        return None if self.formulas is None else f"$${self.formulas()}$$"


class TheoryPrinter(LatexPrinter):
    """SymPy's LaTeX printer with the measures, primes and orders of the papers.

    Expressions that it has printed once it does not print again: in a propagator of ten layers
    the same averages stand thousands of times.
    """

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        super().__init__(settings)
        self._printed: dict[sp.Expr, str] = {}

    def _print(self, expr: Any, **options: Any) -> str:
        if options or not isinstance(expr, sp.Expr):
            return super()._print(expr, **options)
        if expr not in self._printed:
            self._printed[expr] = super()._print(expr)
        return self._printed[expr]

    def measure(self, variables: sp.Tuple, K: sp.ImmutableMatrix) -> str:
        """N(0, K^(l)) for one layer, N(0, K) for several; Q of hidden units, Σ of a stream."""
        layers = [_LAYER.search(str(v)) for v in variables]
        if not all(layers):
            covariance = K[0, 0] if K.shape == (1, 1) else K
            return rf"\mathcal{{N}}\left(0, {self._print(covariance)}\right)"
        names = {match.group(1) for match in layers if match}
        index = rf"^{{({names.pop()})}}" if len(names) == 1 else ""
        letter = {"u": "Q", "v": "Q", "x": r"\Sigma"}.get(str(variables[0])[0], "K")
        return rf"\mathcal{{N}}(0, {letter}{index})"

    def ordered_terms(self, expr: sp.Add) -> list[sp.Expr]:
        """The terms of a sum: by layer, what is averaged after what is not, biases last."""
        if not expr.is_commutative:
            return self._as_ordered_terms(expr)
        terms = sorted(expr.args, key=self._term_key)
        if terms[0].is_Number and (terms[0].is_negative or expr.is_integer):
            terms.append(terms.pop(0))
        elif terms[0].could_extract_minus_sign() and not any(
            # The place of these among others is that of the papers, whatever their sign.
            r"\langle" in self._print(term) or term.has(sp.KroneckerDelta)
            for term in terms
        ):
            positive = [term for term in terms if not term.could_extract_minus_sign()]
            terms.sort(key=lambda term: term not in positive[:1])
        return terms

    def ordered_factors(self, expr: sp.Mul) -> tuple[sp.Expr, list[sp.Expr], list[sp.Expr]]:
        """The number of a product, its factors above the line and those below it."""
        number, factors = expr.as_coeff_Mul()
        above, below = [], []
        for factor in sp.Mul.make_args(factors):
            base, power = factor.as_base_exp()
            if power.is_Number and power.is_negative and factor.func is not sp.exp:
                below.append(base**-power)
            elif factor is not sp.S.One:
                above.append(factor)
        return number, sorted(above, key=self._factor_key), sorted(below, key=self._factor_key)

    def _term_key(self, term: sp.Expr) -> tuple[Any, ...]:
        text = self._print(term)
        layers = [int(i) for i in re.findall(r"\^\{\((\d+)\)", text)]
        last = r"\ln" in text or r"\tilde{C}^{(L" in text
        bias = any(name in text for name in _BIASES) and r"\langle" not in text
        ranks = [_rank(factor) for factor in sp.Mul.make_args(term.as_coeff_Mul()[1])]
        averages = ranks.count(AVERAGE) + (r"\langle" in text)
        return (
            bias,
            last,
            SUM in ranks,
            max(layers, default=-1),
            averages,
            sum(rank >= 0 for rank in ranks),
            natural(text),
        )

    def _factor_key(self, factor: sp.Expr) -> tuple[Any, ...]:
        key = natural(self._print(factor))
        if getattr(factor, "latest", False):
            key = tuple((-number, text) for number, text in key)
        return _rank(factor), key

    def _print_Add(self, expr: sp.Add, order: Any = None) -> str:
        text = ""
        for term in self.ordered_terms(expr):
            printed = self._print(term)
            joint = "" if not text else " " if printed.startswith("-") else " + "
            text += joint + (f"- {printed[1:].lstrip()}" if printed.startswith("-") else printed)
        return text

    def _print_Mul(self, expr: sp.Mul) -> str:
        if not expr.is_commutative:
            return super()._print_Mul(expr)
        number, above, below = self.ordered_factors(expr)
        if not number.is_Rational:
            above, number = [abs(number), *above], -sp.S.One if number.is_negative else sp.S.One
        sign = "- " if number.is_negative else ""
        p, q = (str(n) if n != 1 else "" for n in (abs(number).p, abs(number).q))
        if not (q or below):
            return sign + (self.product(above, first=p) or "1")
        if self._settings["fold_short_frac"] and len(below) + bool(q) == 1:
            over, under = (self.product(x, y, bracket=True) for x, y in ((above, p), (below, q)))
            return f"{sign}{over or '1'} / {under}"
        # A factor before a wide numerator is better than a line below it.
        if above and re.search(r"\\(langle|sum|prod|sqrt\{.*frac)", self.product(above)):
            numerator = self.product(above, bracket=True)
            return rf"{sign}\frac{{{p or 1}}}{{{self._folded(below, q)}}} {numerator}"
        return rf"{sign}\frac{{{self._folded(above, p) or '1'}}}{{{self._folded(below, q)}}}"

    def _folded(self, factors: list[sp.Expr], first: str) -> str:
        """Factors above or below a line, where inner fractions stand on the line."""
        text = self.product(factors, first)
        if r"\frac" not in text:
            return text
        return TheoryPrinter({"order": None, "fold_short_frac": True}).product(factors, first)

    def product(self, factors: list[sp.Expr], first: str = "", bracket: bool = False) -> str:
        """Factors side by side, sums in brackets."""
        texts = [first] if first else []
        for factor in factors:
            text = self._print(factor)
            alone = len(factors) == 1 and not (first or bracket)
            if isinstance(factor, sp.Add) and not alone:
                text = rf"\left({text}\right)"
            texts.append(text)
        return " ".join(texts)

    def _print_Derivative(self, expr: sp.Derivative) -> str:
        function, *counts = expr.args
        if not isinstance(function, sp.core.function.AppliedUndef) or len(counts) > 1:
            return super()._print_Derivative(expr)
        name, order = self._print(sp.Symbol(type(function).__name__)), int(counts[0][1])
        prime = "'" * order if order < 4 else rf"^{{({order})}}"
        return rf"{name}{prime}({self._arguments(function)})"

    def _arguments(self, function: sp.Expr) -> str:
        return ", ".join(self._print(a) for a in function.args)

    def _print_Function(self, expr: sp.Expr, exp: str | None = None) -> str:
        name = type(expr).__name__
        if isinstance(expr, sp.core.function.AppliedUndef):
            power = f"^{{{exp}}}" if exp else ""
            return rf"{self._print(sp.Symbol(name))}({self._arguments(expr)}){power}"
        if name == "log" and exp is None and is_average(expr.args[0]):
            return rf"\ln {self._print(expr.args[0])}"
        if name in ("tanh", "sinh", "cosh", "erf", "erfc", "sin", "cos", "exp", "log"):
            function = {"erfc": r"\operatorname{erfc}"}.get(name, _NAMES.get(name, rf"\{name}"))
            power = f"^{{{exp}}}" if exp else ""
            if name == "log" and exp:
                return rf"\left(\ln{self.bracketed(self._arguments(expr))}\right){power}"
            return rf"{function}{power}{self.bracketed(self._arguments(expr))}"
        return super()._print_Function(expr, exp)

    def _print_log(self, expr: sp.Expr, exp: str | None = None) -> str:
        return self._print_Function(expr, exp)

    _print_erf = _print_erfc = _print_log

    def _print_ExpBase(self, expr: sp.Expr, exp: str | None = None) -> str:
        if expr.args[0].is_Add or expr.has(AverageNode, sp.Sum):
            return self._print_Function(expr, exp)
        return super()._print_ExpBase(expr, exp)

    @staticmethod
    def bracketed(text: str) -> str:
        """Text in brackets, which grow where it is high."""
        if r"\frac" in text or r"\sum" in text or r"\left" in text:
            return rf"\left({text}\right)"
        return f"({text})"

    def _print_Pow(self, expr: sp.Pow) -> str:
        base, power = expr.as_base_exp()
        if power.is_Integer and power > 0:
            if isinstance(base, sp.Derivative):
                return f"{self._print(base)}^{{{power}}}"
            if isinstance(base, sp.Symbol) and "^" in base.name:
                return rf"\left({self._print(base)}\right)^{{{power}}}"
        return super()._print_Pow(expr)

    def sum_sign(self, expr: sp.Sum | sp.Product) -> str:
        """The signs of sums or a product with their limits."""
        name = r"\sum" if isinstance(expr, sp.Sum) else r"\prod"
        limits = [(i, self._print(a), self._print(b)) for i, a, b in expr.limits]
        return " ".join(rf"{name}_{{{i}={a}}}^{{{b}}}" for i, a, b in limits)

    def _print_Sum(self, expr: sp.Sum | sp.Product) -> str:
        return f"{self.sum_sign(expr)} {self.product([expr.function], bracket=True)}"

    _print_Product = _print_Sum

    def _print_MatrixBase(self, expr: sp.MatrixBase) -> str:
        return matrix([[self._print(entry) for entry in row] for row in expr.tolist()])


def matrix(rows: list[list[str]]) -> str:
    """A matrix of texts in brackets; `pmatrix` stops at ten columns."""
    body = r" \\ ".join(" & ".join(row) for row in rows)
    columns = len(rows[0])
    if columns <= _PMATRIX_COLUMNS:
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
    return rf"\left(\begin{{array}}{{{'c' * columns}}} {body} \end{{array}}\right)"


def latex(value: Any) -> str:
    """LaTeX of an expression, matrix or equation in the notation of the papers.

    Examples
    --------
    >>> from fieldtheory.averages import GaussianAverage
    >>> from fieldtheory.theory.notation import kernel, phi, signal
    >>> h = signal(1)
    >>> print(latex(GaussianAverage(phi(h).diff(h) ** 2, h, kernel(1))))
    \\left\\langle \\phi'(h^{(1)})^{2} \\right\\rangle_{\\mathcal{N}(0, K^{(1)})}
    """
    return TheoryPrinter({"order": None}).doprint(value)


def is_average(expr: sp.Expr) -> bool:
    """Whether an expression is printed as ⟨...⟩ with a measure."""
    return hasattr(expr, "measure_latex")


def _rank(factor: sp.Expr) -> float:
    """The place of a factor in a product: coefficients, fields, functions, averages, sums."""
    base = factor.as_base_exp()[0]
    if (own := getattr(base, "rank", None)) is not None:
        return own
    if base.is_number:
        return -1
    if isinstance(base, sp.Symbol):
        for rank, start in enumerate(_SYMBOLS):
            if base.name.startswith(start):
                return rank
        return _OTHER
    if isinstance(base, sp.Derivative):
        return FUNCTION + int(base.derivative_count) / 10
    places = {AverageNode: AVERAGE, sp.Add: BRACKET, sp.Sum: SUM, sp.Product: SUM}
    return next((place for kind, place in places.items() if isinstance(base, kind)), FUNCTION)


_INDEX = r"_\{(?:[^{}]|\{[^{}]*\})*\}"
# φ, its derivatives and their squares at a signal h^(l), perhaps of an input or neuron.
_PHI = re.compile(rf"\\phi('*)\(h({_INDEX})?\^\{{(\([^()]*\))\}}({_INDEX})?\)(\^\{{2\}})?")
_CONNECTED = re.compile(rf" ?\\,;(?: ?\\,)?(.*?\\rangle(?:{_INDEX})?)", re.DOTALL)
# Single letters, not those of words and labels.
_BLOCKS = re.compile(r"(?<!\\mathcal\{)(?<![A-Za-z\\])([SG])(?![A-Za-z0-9-])")


def in_letters(text: str, notation: str | None = "F25") -> str:
    r"""LaTeX of derived formulas with the letters of F25, symbol by symbol.

    >>> shown = r"S_{22} = \langle \phi'(h^{(k)})^{2} \,;\, \phi(h^{(l)}) \rangle"
    >>> print(in_letters(shown))
    \mathcal{S}_{22} = \langle \bigl[\phi^{\prime,(k)}\bigr]^{2}, \phi^{(l)} \rangle^{c}
    """
    if notation is None:
        return text
    text = _CONNECTED.sub(r",\1^{c}", text)
    return _BLOCKS.sub(r"\\mathcal{\1}", _PHI.sub(_of_layer, text))


def _of_layer(match: re.Match[str]) -> str:
    primes, before, layer, after, square = match.groups()
    derivative = r"\prime" * len(primes) + "," if primes else ""
    letter = rf"\phi{before or after or ''}^{{{derivative}{layer}}}"
    return rf"\bigl[{letter}\bigr]{square}" if square else letter
