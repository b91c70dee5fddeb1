"""The results of a residual network in the letters and factors of F25, equation by equation.

𝒮 and 𝒢 for S and G, ⟨A, B⟩^c for ⟨A ; B⟩, φ^(l) for φ(h^(l)), coefficients written out behind the
averages, and the conjugate signals h̃ that the package integrates out. The averages, coefficients
and derivatives are those of the action; where the paper prints others, as σ_w² for σ²_w,out in
(39), (41), (49), (113) and (115), these are the ones that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import sympy as sp

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.definitions import Notation, pair_signals
from fieldtheory.theory.elementary_averages import K_XX, K_XY, X, Y, layer_averages
from fieldtheory.theory.formulas import GENERIC, SATURATION
from fieldtheory.theory.latex import FUNCTION, TheoryPrinter
from fieldtheory.theory.layout import Equation

_P, _C = "_{p}", "_{p}^{c}"
_COVARIANCE = Equation(r"\mathcal{G}_{11}", r"\mathcal{G}_{12} \mathcal{S}_{22} \mathcal{G}_{21}")
_TRANSPOSED = Equation(r"\mathcal{G}_{21}", r"\mathcal{G}_{12}^{\mathsf{T}}")
_VANISHING = Equation(r"\mathcal{G}_{22}", "0")


class F25Notation(Notation):
    """How F25 writes the theory, every equation for itself."""

    together = False

    def definitions(self, equations: Iterable[Any], stationary: bool = True) -> list[Equation]:
        """ν_l, the kernels in the averages and the measure of averages, where they occur."""
        shown = list(equations)
        text = " ".join(f"{e.left} {e.right}" for e in shown)
        lefts = tuple(e.left for e in shown)
        found = []
        if _C in text:
            found.append(_connected(self))
        if r"\nu" in text:
            width = r"1 \quad (l \geq 1), \qquad \nu_{0} = d_{\mathrm{in}} / N"
            found.append(Equation(r"\nu_{l}", width))
        if "K^{(" in text and not any(left.startswith("K") for left in lefts):
            found += _kernels(self)
        if _P in text and not any(r"\dots" in left for left in lefts):
            found.append(_measure(_Letters(self)))
        return found


class _Printer(TheoryPrinter):
    """φ^(l) for φ(h^(l)), derivatives before φ, squares of φ as products."""

    def _print(self, expr: sp.Expr, **options: bool) -> str:
        if isinstance(expr, sp.core.function.AppliedUndef) and not options:
            return self.of_layer(expr)
        if isinstance(expr, AverageNode):
            inside = ", ".join(super(_Printer, self)._print(F) for F in expr.functions)
            return rf"\bigl\langle {inside} \bigr\rangle_{{{expr.measure_latex(self)}}}"
        return super()._print(expr, **options)

    def of_layer(self, function: sp.Expr, order: int = 0) -> str:
        """A function of a signal, or a derivative, with the layer and input of the signal."""
        layer, sample = str(function.args[0]).removeprefix("h^{").split("}", 1)
        primes = r"\prime" * order + ("," if order else "")
        return rf"\phi{sample}^{{{primes}{layer}}}"

    def _primed(self, function: sp.Expr, order: int) -> str:
        return self.of_layer(function, order)

    def _factor_key(self, factor: sp.Expr) -> tuple[float, tuple[tuple[int, str], ...]]:
        rank, key = super()._factor_key(factor)
        base = factor.as_base_exp()[0]
        return (FUNCTION - rank if isinstance(base, sp.Derivative) else rank), key

    def _print_Pow(self, expr: sp.Pow) -> str:
        base, power = expr.as_base_exp()
        if isinstance(base, sp.core.function.AppliedUndef) and power == 2:
            return f"{self._print(base)} {self._print(base)}"
        if isinstance(base, sp.Derivative):
            return rf"\left[{self._print(base)}\right]^{{{power}}}"
        return super()._print_Pow(expr)


_print = _Printer({"order": None}).doprint


def _cases(*rows: tuple[str, str]) -> str:
    body = r" \\ ".join(f"{value} & {where}" for value, where in rows)
    return rf"\begin{{cases}} {body} \end{{cases}}"


class _Letters:
    """What the equations are made of, for one input or several."""

    def __init__(self, n: Notation) -> None:
        self.several = n.matrices
        self.hidden, self.readout = n.layers.hidden("l"), n.layers.readout
        pairs = (r"_{\alpha \beta}", r"_{\gamma \delta}")
        self.pair, self.other = pairs if n.matrices else ("", "")
        self.star = r"_{\alpha \beta, *}" if n.matrices else "_{*}"
        product = (r"(X X^{\mathsf{T}})" + self.pair) if n.matrices else r"x^{\mathsf{T}} x"
        weight, bias = _print(sym.READIN_WEIGHT**2), _print(sym.READIN_BIAS**2)
        self.data = rf"\frac{{{weight}}}{{d_{{\mathrm{{in}}}}}} {product} + {bias}"
        self.sources = rf"\frac{{{weight}}}{{N}} {product} + \nu_{{0}} {bias}"
        ends = (r"_{\alpha}", r"_{\beta}") if n.matrices else ("", "")
        self.first, self.second = ends
        self.by_layer = _cases(
            (_print(self.hidden.weight), r"k \leq L"), (_print(self.readout.weight), "k = L + 1")
        )

    def phi(self, layer: str, names: str = "alpha beta") -> str:
        """φφ of a layer."""
        if not self.several:
            return rf"\phi^{{({layer})}} \phi^{{({layer})}}"
        return " ".join(rf"\phi_{{\{name}}}^{{({layer})}}" for name in names.split())

    def kernel(self, layer: str, measure: str) -> str:
        """C*^(l) from an average of the layer before."""
        return self._affine(layer, lambda inside: rf"\langle {inside} \rangle_{{{measure}}}")

    def _affine(self, layer: str, average: Callable[[str], str]) -> str:
        of = self.readout if layer == "L + 1" else self.hidden
        before = "L" if layer == "L + 1" else f"{layer} - 1"
        return f"{_print(of.weight)} {average(self.phi(before))} + {_print(of.bias)}"

    def source(self, layer: str) -> str:
        """The exponential by which C̃^(l) couples to φφ."""
        inside = self._affine(layer, lambda phi: phi)
        return rf"\exp\bigl( \tilde{{C}}{self.pair}^{{({layer})}} \bigl[ {inside} \bigr] \bigr)"

    def free(self, layer: str, before: str = "", kernel: str = "C") -> str:
        """The exponent of the signals of a layer and their conjugates."""
        at, index = f"^{{({layer})}}", self.star if kernel == "C*" else self.pair
        square = rf"\bigl[ \tilde{{h}}{at} \bigr]^{{2}}"
        if self.several:
            square = rf"\tilde{{h}}{self.second}{at}"
        front = rf"\tilde{{h}}{self.first}{at} " if self.several else ""
        moved = f"h{self.first}{at}"
        if before:
            moved = rf"\bigl[ {moved} - h{self.first}^{{({before})}} \bigr]"
        quadratic = rf"{front}C{index}{at} {square}"
        return rf"\tilde{{h}}{self.first}{at} {moved} + \frac{{1}}{{2}} {quadratic}"

    def signals(self, layer: str) -> str:
        """The integrals over the signals of a layer and their conjugates."""
        sign = r"\mathcal{D}" if self.several else r"\mathrm{d}"
        return rf"\int {sign} h^{{({layer})}} \int {sign} \tilde{{h}}^{{({layer})}}"

    def second_derivative(self, first: str, second: str, at: str = "") -> str:
        """∂²𝒮 by two fields of layers l and k."""
        other = at or self.other
        by = rf"\partial {first}{self.pair}^{{(l)}} \partial {second}{other}^{{(k)}}"
        return rf"\frac{{\partial^{{2}}}}{{{by}}} \mathcal{{S}}"


def _action(n: Notation) -> list[Equation]:
    of = _Letters(n)
    if n.matrices:
        prior = (
            r"\tilde{y}_{\alpha}^{\mathsf{T}} y_{\alpha} + \frac{1}{2} "
            r"\tilde{y}_{\alpha}^{\mathsf{T}} C_{\alpha \beta}^{(L + 1)} \tilde{y}_{\beta}"
        )
        left, measure = "p(Y|X)", r"\mathcal{D}"
    else:
        prior = (
            r"\tilde{y}^{\mathsf{T}} y + \frac{1}{2} C^{(L + 1)} \tilde{y}^{\mathsf{T}} \tilde{y}"
        )
        left, measure = "p(y|x)", r"\mathrm{d}"
    tilde = rf"\tilde{{C}}{of.pair}"
    note = r"\text{sums with } \tilde{C} \text{ over } \alpha \leq \beta" if n.matrices else ""
    readin = rf"{of.free('0')} + {tilde}^{{(0)}} \bigl[ {of.sources} \bigr]"
    return [
        Equation(
            left,
            rf"\int {measure} \tilde{{y}} \bigl\langle \exp\bigl( {prior} \bigr) "
            r"\bigr\rangle_{C, \tilde{C}}",
        ),
        Equation(
            r"\mathcal{S}(C, \tilde{C})",
            rf"- N \sum_{{l=0}}^{{L + 1}} \nu_{{l}} C{of.pair}^{{(l)}} {tilde}^{{(l)}} "
            r"+ N \mathcal{W}(\tilde{C}|C)",
            note,
        ),
        Equation(
            r"\mathcal{W}(\tilde{C}|C)",
            rf"\ln \prod_{{l=1}}^{{L}} {of.signals('l')} \exp\bigl( {of.free('l', 'l - 1')} \bigr) "
            rf"\times {of.source('l')} \times {of.source('L + 1')} "
            rf"\times {of.signals('0')} \exp\bigl( {readin} \bigr)",
            note,
        ),
    ]


def _measure(of: _Letters) -> Equation:
    """The average ⟨...⟩_p at the saddle point (F25 (27))."""
    exponent = of.free("l", "l - 1", "C*")
    return Equation(
        rf"\langle \dots \rangle{_P}",
        rf"\prod_{{l=0}}^{{L}} {of.signals('l')} \dots \exp\bigl( {exponent} \bigr)",
        "h^{(-1)} = 0",
    )


def _saddle_point(n: Notation) -> list[Equation]:
    of = _Letters(n)
    kernels = _cases(
        (of.data, "l = 0"),
        (of.kernel("l", "p"), r"1 \leq l \leq L"),
        (of.kernel("L + 1", "p"), "l = L + 1"),
    )
    h, y = r"\bigl[ \tilde{h}^{(l)} \bigr]^{2}", r"\tilde{y}^{2}"
    if n.matrices:
        h, y = (
            " ".join(rf"\tilde{{{x}}}{i}{at}" for i in (of.first, of.second))
            for x, at in (("h", "^{(l)}"), ("y", ""))
        )
    conjugates = _cases(
        (rf"\frac{{1}}{{2}} \langle {h} \rangle{_P} = 0", r"l = 0, \dots, L"),
        (rf"\frac{{1}}{{2}} \langle {y} \rangle{_P} = 0", "l = L + 1"),
    )
    return [
        Equation(f"C{of.star}^{{(l)}}", kernels),
        Equation(rf"\tilde{{C}}{of.star}^{{(l)}}", conjugates),
        _measure(of),
    ]


def _kernels(n: Notation) -> list[Equation]:
    of = _Letters(n)
    law = r"\mathcal{N}(0, K^{(%s)})"
    carried = rf"\sum_{{k=0}}^{{l}} C{of.star}^{{(k)}}"
    if n.matrices:
        carried = rf"K{of.pair}^{{(l - 1)}} + C{of.star}^{{(l)}}"
    rows = ((of.data, "l = 0"), (carried, r"1 \leq l \leq L"))
    readout = (of.kernel("L + 1", law % "L"), "l = L + 1")
    hidden = of.kernel("l", law % "l - 1")
    return [
        Equation(f"C{of.star}^{{(l)}}", hidden, r"1 \leq l \leq L"),
        Equation(f"K{of.pair}^{{(l)}}", _cases(*rows, readout)),
    ]


def _auxiliary(n: Notation) -> list[Equation]:
    of = _Letters(n)
    ends = (r"_{\gamma}", r"_{\delta}") if n.matrices else ("", "")
    first = " ".join(rf"\tilde{{h}}{x}^{{(l)}}" for x in (of.first, of.second))
    second = " ".join(rf"\tilde{{h}}{x}^{{(k)}}" for x in ends)
    zero = rf"\frac{{N}}{{4}} \bigl\langle {first}, {second} \bigr\rangle{_C} = 0"
    return [Equation(of.second_derivative("C", "C"), zero)]


def _source(n: Notation) -> list[Equation]:
    of = _Letters(n)
    weight, out = of.hidden.weight, of.readout.weight
    cases = _cases(
        (_print(weight**2), r"k, l \neq L + 1"),
        (_print(weight * out), r"k \neq l = L + 1 \vee l \neq k = L + 1"),
        (_print(out**2), r"\text{else}"),
    )
    fields = of.phi("l - 1"), of.phi("k - 1", "gamma delta")
    left = of.second_derivative(r"\tilde{C}", r"\tilde{C}")
    correlator = rf"\bigl\langle {fields[0]}, {fields[1]} \bigr\rangle{_C}"
    return [Equation(left, rf"N 1_{{l > 0}} 1_{{k > 0}} {correlator} \times {cases}")]


def _connected(n: Notation) -> Equation:
    first, second = "z^{(l)} z^{(l)}", "z^{(k)} z^{(k)}"
    if n.matrices:
        first, second = r"z_{\alpha} z_{\beta}", r"z_{\gamma} z_{\delta}"
    apart = rf"\langle {first} \rangle{_P} \langle {second} \rangle{_P}"
    both = rf"\langle {first} {second} \rangle{_P} - {apart}"
    return Equation(rf"\langle {first}, {second} \rangle{_C}", both)


def _mixed(n: Notation) -> list[Equation]:
    of = _Letters(n)
    k = generic.k
    if not n.matrices:
        slope = _print(generic.susceptibility(k - 1, n.layers.family))
        price = (
            r"\frac{1}{2} \langle \partial_{h}^{2} \phi^{2}(h) \rangle_{h \sim \mathcal{N}(0, A)}"
        )
        average = r"\partial_{A} \langle \phi^{2}(h) \rangle_{h \sim \mathcal{N}(0, A)}"
        return [
            _coupling(of, of.second_derivative("C", r"\tilde{C}"), slope),
            Equation(average, price),
        ]
    covariance, signals = layer_averages(n.layers.family.features).covariance, pair_signals(k - 1)
    # ⟨φ'φ'⟩ by the covariance and ⟨φ''φ⟩ by a variance; by the one variance of equal inputs both.
    slopes, second = (
        _print(node.integrand.subs(dict(zip((X, Y), signals, strict=True))).doit())
        for by in (K_XY, K_XX)
        for node in covariance.diff(by).atoms(AverageNode)
    )
    law = r"\mathcal{N}(0, K^{(k - 1)})"
    same = rf"\bigl\langle {slopes} + \delta_{{\alpha \beta}} {second} \bigr\rangle_{{{law}}}"
    other = rf"\bigl\langle {second} \bigr\rangle_{{{law}}}"
    pair = of.second_derivative("C", r"\tilde{C}", of.pair)
    of_variance = pair.replace(r"C_{\alpha \beta}^{(l)}", r"C_{\alpha \alpha}^{(l)}", 1)
    left, right = r"\phi(h_{\gamma}) \phi(h_{\delta})", r"_{h \sim \mathcal{N}(0, K)}"
    price = (
        r"\bigl( 1 - \frac{1}{2} \delta_{\alpha \beta} \bigr) "
        rf"\langle \partial_{{h_{{\alpha}}}} \partial_{{h_{{\beta}}}} {left} \rangle{right}"
    )
    return [
        _coupling(of, pair, same),
        replace(_coupling(of, of_variance, other, r"\frac{N}{2}"), note=r"\alpha \neq \beta"),
        Equation(rf"\partial_{{K_{{\alpha \beta}}}} \langle {left} \rangle{right}", price),
    ]


def _coupling(
    of: _Letters, left: str, slope: str, front: str = r"- N \nu_{l} \delta_{k l} + N"
) -> Equation:
    return Equation(left, rf"{front} 1_{{k > 0}} {slope} 1_{{k > l}} \times {of.by_layer}")


def _hessian(n: Notation) -> list[Equation]:
    deviations = r"(\delta C, \delta \tilde{C})"
    integrals = r"\int \mathcal{D} \delta C \int \mathcal{D} \delta \tilde{C} \exp\bigl( "
    forms = (
        rf"{front} \frac{{1}}{{2}} {deviations}^{{\mathsf{{T}}}} {matrix} {deviations} \bigr)"
        for front, matrix in (("", r"\mathcal{S}^{(2)}"), ("-", r"\mathcal{G}^{-1}"))
    )
    left = "p(Y|X)" if n.matrices else "p(y|x)"
    one, other = (integrals + form for form in forms)
    gaussian = Equation(left, rf"{one} \quad = {other}", relation=r"\simeq")
    return [gaussian, *_auxiliary(n), *_source(n), *_mixed(n)]


def _inverse(n: Notation) -> list[Equation]:
    fields = [
        [rf"\langle {a} {b} \rangle" for b in (r"\delta C", r"\delta \tilde{C}")]
        for a in (r"\delta C", r"\delta \tilde{C}")
    ]
    body = r" \\ ".join(" & ".join(row) for row in fields)
    return [
        Equation(
            r"\mathcal{G}",
            rf"- (\mathcal{{S}}^{{(2)}})^{{-1}} = \begin{{pmatrix}} {body} \end{{pmatrix}}",
        )
    ]


def _response(n: Notation) -> list[Equation]:
    block = Equation(r"\mathcal{G}_{12}", r"- \mathcal{S}_{21}^{-1}")
    if n.matrices:
        return [block]
    of, slope = _Letters(n), _print(generic.susceptibility(generic.l - 1, n.layers.family))
    hidden, out = _print(of.hidden.weight), _print(of.readout.weight)
    past = rf"{slope} \sum_{{k=0}}^{{l - 1}} \mathcal{{G}}_{{12}}^{{k m}}"
    entry = (
        rf"N^{{-1}} \nu_{{l}}^{{-1}} \delta_{{l m}} + 1_{{L \geq l > 0}} {hidden} {past} "
        rf"+ \delta_{{l, L + 1}} {out} {past}"
    )
    return [block, Equation(r"\mathcal{G}_{12}^{l m}", entry)]


def _propagator(n: Notation) -> list[Equation]:
    return [
        *_inverse(n),
        _COVARIANCE,
        *_response(n),
        _TRANSPOSED,
        _VANISHING,
        *_source(n),
        *_mixed(n),
    ]


F25: dict[str, Callable[[Notation], list[Equation]]] = {
    "action": _action,
    "saddle_point": _saddle_point,
    "kernels": _kernels,
    "hessian": _hessian,
    "propagator": _propagator,
    "S11": _auxiliary,
    "S12": _mixed,
    "S21": _mixed,
    "S22": _source,
    "G11": lambda n: [_COVARIANCE, *_response(n), *_source(n), *_mixed(n)],
    "G12": lambda n: [*_response(n), *_mixed(n)],
    "G21": lambda n: [_TRANSPOSED, *_response(n), *_mixed(n)],
    "G22": lambda n: [_VANISHING],
    **{name: GENERIC[name] for name in SATURATION},
}
