"""The results of a residual network in the letters and factors of F25, equation by equation.

𝒮 and 𝒢 for S and G, ⟨A, B⟩^c for ⟨A ; B⟩, φ^(l) for φ(h^(l)), coefficients written out behind the
averages, and the conjugate signals h̃ that the package integrates out. The averages, coefficients
and derivatives are those of the action; where the paper prints others, as σ_w² for σ²_w,out in
(39), (41), (49), (113) and (115), these are the ones that hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
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

# Left and right sides by the number in F25, or a name. «one input; several inputs»; @a, @b, @g, @d
# are the indices of inputs, @ab and @gd of pairs, of several; see `_written` for the other letters.
_QUADRATIC = (
    r"\frac{1}{2} «C@*^{(%s)} \bigl[ \tilde{h}^{(%s)} \bigr]^{2};"
    r"\tilde{h}@a^{(%s)} C@*^{(%s)} \tilde{h}@b^{(%s)}»"
)
_JUMP = r"\tilde{h}@a^{(l)} \bigl[ h@a^{(l)} - h@a^{(l - 1)} \bigr] + "
_SIGNALS = r"\int «\mathrm{d};\mathcal{D}» h^{(%s)} \int «\mathrm{d};\mathcal{D}» \tilde{h}^{(%s)}"
_HIDDEN, _OUT = r"\phi@a^{(l - 1)} \phi@b^{(l - 1)}", r"\phi@a^{(L)} \phi@b^{(L)}"
_PRODUCT = r"«x^{\mathsf{T}} x;(X X^{\mathsf{T}})@ab»"
_DATA = rf"\frac{{@i}}{{d_{{\mathrm{{in}}}}}} {_PRODUCT} + @j"
_BY = r"\frac{\partial^{2}}{\partial %s^{(l)} \partial %s^{(k)}} \mathcal{S}"
_GAUSSIAN = (
    r"\int \mathcal{D} \delta C \int \mathcal{D} \delta \tilde{C} \exp\bigl( %s \frac{1}{2} "
    r"(\delta C, \delta \tilde{C})^{\mathsf{T}} \mathcal{%s} (\delta C, \delta \tilde{C}) \bigr)"
)
_FORWARD = (
    r"%s 1_{k > 0} %s 1_{k > l} \times \begin{cases} @w & k \leq L \\ @W & k = L + 1 \end{cases}"
)
_PAIRS = r"«;\text{sums with } \tilde{C} \text{ over } \alpha \leq \beta»"
_PAST = r"@m \sum_{k=0}^{l - 1} \mathcal{G}_{12}^{k m}"


def _at(template: str, layer: str) -> str:
    return template.replace("%s", layer)


_EQUATIONS = {
    "20": (
        "p(«y|x;Y|X»)",
        r"\int «\mathrm{d};\mathcal{D}» \tilde{y} \bigl\langle \exp\bigl( "
        r"\tilde{y}@a^{\mathsf{T}} y@a + \frac{1}{2} «C^{(L + 1)} \tilde{y}^{\mathsf{T}};"
        r"\tilde{y}@a^{\mathsf{T}} C@ab^{(L + 1)}» "
        r"\tilde{y}@b \bigr) \bigr\rangle_{C, \tilde{C}}",
    ),
    "21": (
        r"\mathcal{S}(C, \tilde{C})",
        r"- N \sum_{l=0}^{L + 1} \nu_{l} C@ab^{(l)} \tilde{C}@ab^{(l)} "
        r"+ N \mathcal{W}(\tilde{C}|C)",
        _PAIRS,
    ),
    "22": (
        r"\mathcal{W}(\tilde{C}|C)",
        rf"\ln \prod_{{l=1}}^{{L}} {_at(_SIGNALS, 'l')} "
        rf"\exp\bigl( {_JUMP + _at(_QUADRATIC, 'l').replace('@*', '@ab')} \bigr) "
        rf"\times \exp\bigl( \tilde{{C}}@ab^{{(l)}} \bigl[ @w {_HIDDEN} + @c \bigr] \bigr) "
        rf"\times \exp\bigl( \tilde{{C}}@ab^{{(L + 1)}} \bigl[ @W {_OUT} + @C \bigr] \bigr) "
        rf"\times {_at(_SIGNALS, '0')} \exp\bigl( \tilde{{h}}@a^{{(0)}} h@a^{{(0)}} + "
        rf"{_at(_QUADRATIC, '0').replace('@*', '@ab')} + \tilde{{C}}@ab^{{(0)}} "
        rf"\bigl[ \frac{{@i}}{{N}} {_PRODUCT} + \nu_{{0}} @j \bigr] \bigr)",
        _PAIRS,
    ),
    "25": (
        "C@*^{(l)}",
        rf"\begin{{cases}} {_DATA} & l = 0 \\ @w \langle {_HIDDEN} \rangle_{{p}} + @c & 1 \leq l "
        rf"\leq L \\ @W \langle {_OUT} \rangle_{{p}} + @C & l = L + 1 \end{{cases}}",
    ),
    "26": (
        r"\tilde{C}@*^{(l)}",
        r"\begin{cases} \frac{1}{2} \langle «\bigl[ \tilde{h}^{(l)} \bigr]^{2};\tilde{h}@a^{(l)} "
        r"\tilde{h}@b^{(l)}» \rangle_{p} = 0 & l = 0, \dots, L \\ \frac{1}{2} \langle "
        r"«\tilde{y}^{2};\tilde{y}@a \tilde{y}@b» \rangle_{p} = 0 & l = L + 1 \end{cases}",
    ),
    "27": (
        r"\langle \dots \rangle_{p}",
        rf"\prod_{{l=0}}^{{L}} {_at(_SIGNALS, 'l')} \dots \exp\bigl( "
        rf"{_JUMP + _at(_QUADRATIC, 'l')} \bigr)",
        "h^{(-1)} = 0",
    ),
    "29": (
        "C@*^{(l)}",
        rf"@w \langle {_HIDDEN} \rangle_{{\mathcal{{N}}(0, K^{{(l - 1)}})}} + @c",
        r"1 \leq l \leq L",
    ),
    "30": (
        "K@ab^{(l)}",
        rf"\begin{{cases}} {_DATA} & l = 0 \\ «\sum_{{k=0}}^{{l}} C@*^{{(k)}};K@ab^{{(l - 1)}} + "
        rf"C@*^{{(l)}}» & 1 \leq l \leq L \\ @W \langle {_OUT} "
        rf"\rangle_{{\mathcal{{N}}(0, K^{{(L)}})}} + @C & l = L + 1 \end{{cases}}",
    ),
    "38": (
        _BY % ("C@ab", "C@gd"),
        r"\frac{N}{4} \bigl\langle \tilde{h}@a^{(l)} \tilde{h}@b^{(l)}, \tilde{h}@g^{(k)} "
        r"\tilde{h}@d^{(k)} \bigr\rangle_{p}^{c} = 0",
    ),
    "39": (
        _BY % (r"\tilde{C}@ab", r"\tilde{C}@gd"),
        rf"N 1_{{l > 0}} 1_{{k > 0}} \bigl\langle {_HIDDEN}, \phi@g^{{(k - 1)}} \phi@d^{{(k - 1)}} "
        r"\bigr\rangle_{p}^{c} \times \begin{cases} @s & k, l \neq L + 1 \\ "
        r"@t & k \neq l = L + 1 \vee l \neq k = L + 1 \\ @u & \text{else} \end{cases}",
    ),
    "40": (
        r"\langle «z^{(l)} z^{(l)};z@a z@b», «z^{(k)} z^{(k)};z@g z@d» \rangle_{p}^{c}",
        r"\langle «z^{(l)} z^{(l)};z@a z@b» «z^{(k)} z^{(k)};z@g z@d» \rangle_{p} - \langle "
        r"«z^{(l)} z^{(l)};z@a z@b» \rangle_{p} \langle «z^{(k)} z^{(k)};z@g z@d» \rangle_{p}",
    ),
    "41": (
        _BY % ("C@ab", r"\tilde{C}@ab"),
        _FORWARD % (r"- N \nu_{l} \delta_{k l} + N", "@M"),
    ),
    "variance": (
        _BY % ("C_{\\alpha \\alpha}", r"\tilde{C}@ab"),
        _FORWARD % (r"\frac{N}{2}", "@V"),
        r"\alpha \neq \beta",
    ),
    "42": (
        r"«\partial_{A} \langle \phi^{2}(h) \rangle_{h \sim \mathcal{N}(0, A)};"
        r"\partial_{K@ab} \langle \phi(h@g) \phi(h@d) \rangle_{h \sim \mathcal{N}(0, K)}»",
        r"«\frac{1}{2} \langle \partial_{h}^{2} \phi^{2}(h) \rangle_{h \sim \mathcal{N}(0, A)};"
        r"\bigl( 1 - \frac{1}{2} \delta@ab \bigr) \langle \partial_{h@a} \partial_{h@b} "
        r"\phi(h@g) \phi(h@d) \rangle_{h \sim \mathcal{N}(0, K)}»",
    ),
    "110": (
        "p(«y|x;Y|X»)",
        _GAUSSIAN % ("", "S}^{(2)") + r" \quad = " + _GAUSSIAN % ("-", "G}^{-1"),
    ),
    "111": (
        r"\mathcal{G}",
        r"- (\mathcal{S}^{(2)})^{-1} = \begin{pmatrix} \langle \delta C \delta C \rangle & \langle "
        r"\delta C \delta \tilde{C} \rangle \\ \langle \delta \tilde{C} \delta C \rangle & \langle "
        r"\delta \tilde{C} \delta \tilde{C} \rangle \end{pmatrix}",
    ),
    "46": (r"\mathcal{G}_{11}", r"\mathcal{G}_{12} \mathcal{S}_{22} \mathcal{G}_{21}"),
    "47": (r"\mathcal{G}_{12}", r"- \mathcal{S}_{21}^{-1}"),
    "48": (r"\mathcal{G}_{22}", "0"),
    "49": (
        r"\mathcal{G}_{12}^{l m}",
        rf"N^{{-1}} \nu_{{l}}^{{-1}} \delta_{{l m}} + 1_{{L \geq l > 0}} @w {_PAST} "
        rf"+ \delta_{{l, L + 1}} @W {_PAST}",
    ),
    "transposed": (r"\mathcal{G}_{21}", r"\mathcal{G}_{12}^{\mathsf{T}}"),
    "widths": (r"\nu_{l}", r"1 \quad (l \geq 1), \qquad \nu_{0} = d_{\mathrm{in}} / N"),
}
# The equations of a result; those of one input and of several alone are left out of the others.
_RESULTS = {
    "action": "20 21 22",
    "saddle_point": "25 26 27",
    "kernels": "29 30",
    "hessian": "110 38 39 41 variance 42",
    "propagator": "111 46 47 49 transposed 48 39 41 variance 42",
    "S11": "38",
    "S12": "41 variance 42",
    "S21": "41 variance 42",
    "S22": "39",
    "G11": "46 47 49 39 41 variance 42",
    "G12": "47 49 41 variance 42",
    "G21": "transposed 47 49 41 variance 42",
    "G22": "48",
}
_OF_ONE, _OF_SEVERAL = "49", "variance"


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


class F25Notation(Notation):
    """How F25 writes the theory, every equation for itself."""

    together = False

    def definitions(self, equations: Iterable[Any], stationary: bool = True) -> list[Equation]:
        """Connected averages, ν_l, the kernels in averages and their measure, where they occur."""
        shown = list(equations)
        text = " ".join(f"{e.left} {e.right}" for e in shown)
        lefts = " ".join(f"|{e.left}" for e in shown)
        names = ["40"] * ("}^{c}" in text) + ["widths"] * (r"\nu" in text)
        names += ["29", "30"] * ("K^{(" in text and "|K" not in lefts)
        names += ["27"] * ("_{p}" in text and r"\dots" not in lefts)
        found = _equations(" ".join(names), self)
        if self.activation is not None and r"\phi" in text:
            found.append(Equation(r"\phi(h)", self.activation.expression))
        return found


def _equations(names: str, n: Notation) -> list[Equation]:
    letters = _letters(n)

    def written(template: str) -> str:
        chosen = re.sub("«(.*?);(.*?)»", lambda m: m.group(1 + n.matrices), template)
        return re.sub(r"@(ab|gd|\*|\w)", lambda m: letters[m.group(1)], chosen)

    unused = _OF_ONE if n.matrices else _OF_SEVERAL
    found = []
    for name in names.split():
        if name != unused:
            left, right, note = map(written, (*_EQUATIONS[name], "")[:3])
            relation = r"\simeq" if name == "110" else "="
            found.append(Equation(left, right.strip(), note, relation))
    return found


def _letters(n: Notation) -> dict[str, str]:
    """Indices of inputs, coefficients and averages by their letters in `_EQUATIONS`.

    w, c and W, C are weight and bias of hidden layers and readout, i and j of the readin, s, t, u
    products of w and W; M and m averages of φ'² + φφ'' in layers k − 1 and l − 1, V of φφ''.
    """
    hidden, out = n.layers.hidden("l"), n.layers.readout
    coefficients = {"w": hidden.weight, "c": hidden.bias, "W": out.weight, "C": out.bias}
    coefficients |= {"i": sym.READIN_WEIGHT**2, "j": sym.READIN_BIAS**2, "s": hidden.weight**2}
    coefficients |= {"t": hidden.weight * out.weight, "u": out.weight**2}
    found = {letter: _print(value) for letter, value in coefficients.items()}
    greek = {"a": r"\alpha", "b": r"\beta", "g": r"\gamma", "d": r"\delta"}
    if not n.matrices:
        slope = _print(generic.susceptibility(generic.k - 1, n.layers.family))
        empty = dict.fromkeys([*greek, "ab", "gd"], "")
        return found | empty | {"*": "_{*}", "M": slope, "m": slope.replace("k - 1", "l - 1")}
    signals = dict(zip((X, Y), pair_signals(generic.k - 1), strict=True))
    # ⟨φ'φ'⟩ by the covariance and ⟨φ''φ⟩ by a variance; by the one variance of equal inputs both.
    slopes, second = (
        _print(node.integrand.subs(signals).doit())
        for by in (K_XY, K_XX)
        for node in layer_averages(n.layers.family.features).covariance.diff(by).atoms(AverageNode)
    )
    average = r"\bigl\langle {} \bigr\rangle_{{\mathcal{{N}}(0, K^{{(k - 1)}})}}"
    found |= {letter: f"_{{{name}}}" for letter, name in greek.items()}
    found |= {"ab": r"_{\alpha \beta}", "gd": r"_{\gamma \delta}", "*": r"_{\alpha \beta, *}"}
    both = rf"{slopes} + \delta_{{\alpha \beta}} {second}"
    return found | {"M": average.format(both), "V": average.format(second)}


F25: dict[str, Callable[[Notation], list[Equation]]] = {
    **{name: partial(_equations, names) for name, names in _RESULTS.items()},
    **{name: GENERIC[name] for name in SATURATION},
}
