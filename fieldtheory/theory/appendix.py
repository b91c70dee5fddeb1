"""The derivation of a network's field theory as a LaTeX document; its prose is in .tex files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.gram import GramEntry
from fieldtheory.theory import notation as sym
from fieldtheory.theory.block_formulas import OneLayer
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.elementary_averages import K_XX, K_XY, layer_averages
from fieldtheory.theory.formulas import FORMULAS
from fieldtheory.theory.quantities import Rows, results_latex, symbols_latex
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layout import Equation, page
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH, width

# The quantities that are written out layer by layer.
LAYER_BY_LAYER = ("saddle_point", "S21", "S22", "G12", "output_response")


def document(n: Notation, explicit: Notation | None = None, misprints: bool = True) -> str:
    """The text of networks of layers, with a section of ``explicit`` layers if there are any."""

    def layer_by_layer(defined: set[Any]) -> str:
        if explicit is None:
            return ""
        written = results_latex(LAYER_BY_LAYER, explicit, FORMULAS, numbered=True, defined=defined)
        lead = f"For $L = {latex(explicit.last)}$:\n"
        return _section("Layer by layer", "explicit", lead + written)

    parts = {
        "network": "feed-forward networks" if n.layers.skip == 0 else "residual networks",
        "scales": _scales(n),
        "activation": _closed_forms(n),
        "explicit": layer_by_layer,
    }
    return _filled("appendix.tex", n, FORMULAS, parts, {"misprints": misprints})


def block_document(n: OneLayer) -> str:
    """The text of networks of a stream and branches."""
    one = type(n)(n.network, False, n.column)
    network, variances, norm, phi = _block_network(one)
    parts = {
        "network": page([network], n.column, "network"),
        "variances": page([variances], n.column, "weights"),
        "passed": page([[*norm, *phi]], n.column, "passed"),
        "gamma": latex(one.names.coefficients(n.layers, 1).skip),
    }
    flags = {
        "centred": n.network.centred,
        "gate": len(n.network.factors) > 1,
        "several": n.several,
        **n.flags,
    }
    defined = {(e.left, e.right) for e in phi}
    return _filled(n.template, n, n.table, parts, flags, defined)


def _filled(
    template: str | Path,
    n: Any,
    table: Mapping[str, Rows],
    parts: Mapping[str, Any],
    flags: Mapping[str, bool],
    defined: set[Any] | None = None,
) -> str:
    """A document for amsmath and hyperref: <<part>>, <<quantity,quantity>> and <?flag:text?>."""
    defined = set() if defined is None else defined
    h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    moment = GaussianAverage(sym.phi(h) ** 2, h, K)
    price = rf"\frac{{\partial}}{{\partial K}} {latex(moment)} = {latex(moment.diff(K))}"
    parts = {"columns": "", "width": "", "price": price, **parts, **lengths(n.column)}

    def part(match: re.Match[str]) -> str:
        if (name := match[1]) not in parts:
            return results_latex(name.split(","), n, table, numbered=True, defined=defined)
        return parts[name](defined) if callable(parts[name]) else parts[name]

    text = (Path(__file__).parent / template).read_text(encoding="utf-8")
    text = re.sub(r"<\?(\w+):(.*?)\?>", lambda of: of[2] * flags[of[1]], text, flags=re.DOTALL)
    before, after = (re.sub("<<(.*?)>>", part, half) for half in text.split("<<symbols>>"))
    listed = symbols_latex(n.meanings(before), n.column, True)
    # SymPy writes the natural logarithm as \log.
    return f"{before}{listed}{after}".replace(r"\log", r"\ln")


def lengths(column: float) -> dict[str, str]:
    """The class option and lengths for columns of a width; those of an article are its own."""
    if column == TEXT_WIDTH:
        return {}
    # Narrow columns stand two on a page.
    two = column <= 270
    text = 2 * column + 20 if two else column
    written = (
        rf"\setlength{{\textwidth}}{{{text:g}pt}}\setlength{{\columnsep}}{{20pt}}"
        "\n"
        r"\setlength{\oddsidemargin}{\dimexpr 0.5\paperwidth - 0.5\textwidth - 1in\relax}"
        "\n"
        r"\setlength{\evensidemargin}{\oddsidemargin}"
        "\n"
    )
    return {"columns": "[twocolumn]" if two else "", "width": written}


def _section(title: str, label: str, text: str) -> str:
    labelled = text.replace(r"\label{", rf"\label{{{label}:")
    return f"\n\\section{{{title}}}\\label{{sec:{label}}}\n{labelled}\n"


def _scales(n: Notation) -> str:
    symbols, fixed = sym.parameters(n.layers.family, "l"), dict(n.layers.fixed)
    scales = [
        f"{latex(symbols[name])} = {latex(fixed[name])}"
        if name in fixed
        else rf"{latex(symbols[name])} \text{{ different from layer to layer}}"
        for name in n.layers.family.layer_parameters
    ]
    line = r", \qquad ".join(scales) + "."
    # The number of the equation takes 40 points.
    if width(line) < n.column - 40:
        return line
    return "\\begin{gathered}\n" + ", \\\\\n".join(scales) + ".\n\\end{gathered}"


def _closed_forms(n: Notation) -> str:
    """The averages of a named φ, where they are elementary."""
    if n.activation is None:
        return ""
    layer = layer_averages(n.layers.family.features, n.activation)
    K = sp.Symbol("K", positive=True)
    averages = {"M(K)": layer.moment, "M'(K)": layer.moment.diff(K_XX)}
    if n.inputs > 1:
        averages[r"\langle \phi(x) \phi(y) \rangle"] = layer.covariance
        averages[r"\langle \phi'(x) \phi'(y) \rangle"] = layer.covariance.diff(K_XY)
    forms = {left: average.doit() for left, average in averages.items()}
    elementary = {
        left: form.xreplace({K_XX: K}) if left.startswith("M") else form
        for left, form in forms.items()
        if not form.has(AverageNode)
    }
    if not elementary:
        text = "The averages of this $\\phi$ are not elementary: they are Gaussian integrals."
        return _section("The averages of the activation", "activation", text)
    roots = _wide_radicands(list(elementary.values()))
    rows = [Equation(left, form.xreplace(roots)) for left, form in elementary.items()]
    rows += [Equation(latex(name), radicand) for radicand, name in roots.items()]
    pair = (
        ", and with the covariance $K_{x x}$, $K_{x y}$, $K_{y y}$ of two signals $x$ and $y$"
        if n.inputs > 1
        else ""
    )
    text = (
        r"These averages are elementary, with $M(K) = \langle \phi(h)^{2} \rangle$ for a "
        rf"variance $K$ and $M'$ its derivative (\ref{{eq:price}}){pair}:"
        f"\n{page([rows], n.column, 'average')}"
    )
    return _section("The averages of the activation", "activation", text)


def _wide_radicands(forms: list[sp.Expr]) -> dict[sp.Expr, sp.Symbol]:
    """A symbol for each radicand that leaves a column little room, as no root can be broken."""
    roots = {p.base for form in forms for p in form.atoms(sp.Pow) if not p.exp.is_integer}
    wide = [root for root in roots if root.is_Add and width(latex(root)) > 60]
    wide.sort(key=sp.default_sort_key)
    index = "D" if len(wide) == 1 else "D_{{{}}}"
    return {root: sp.Symbol(index.format(i), positive=True) for i, root in enumerate(wide, 1)}


def _block_network(n: OneLayer) -> tuple[list[Equation], ...]:
    """The equations of a layer, the law of its weights, what is passed on, and φ."""
    parameters = n.layers.parameters("l")
    skip, phi = latex(n.names.coefficients(n.layers, 1).skip), n.names.factors
    names = ["u", "v", *(f"u_{{{k}}}" for k in range(3, len(phi) + 1))]
    # Of those of a gate the signal stands below.
    letters = [("u", "W", "b"), *((v, f"W_{{{v}}}", f"b_{{{v}}}") for v in names[1:])]
    signals = [sp.Symbol(f"{u}^{{(l)}}", real=True) for u, *_ in letters[: len(phi)]]
    activity = sp.Mul(*[f(x) for f, x in zip(phi, signals, strict=True)])
    layers = [
        Equation("x^{(0)}", r"W^{\mathrm{in}} x + b^{\mathrm{in}}"),
        Equation("x^{(l)}", rf"{skip} \, s(x^{{(l - 1)}}) + f^{{(l)}}", r"1 \leq l \leq L"),
        Equation("f^{(l)}", "W'^{(l)} a^{(l)} + b'^{(l)}"),
        Equation("a^{(l)}", activity),
    ]
    read = sp.Symbol("r", positive=True)
    ends = r"\sigma_{w,\mathrm{in}}^{2} / d_{\mathrm{in}}", r"\sigma_{b,\mathrm{in}}^{2}"
    laws = [(r"W^{\mathrm{in}}", ends[0]), (r"b^{\mathrm{in}}", ends[1])]
    for Q, (u, W, b) in zip(n.network.signals(read, parameters), letters, strict=False):
        bias = sp.sympify(Q).subs(read, 0)
        laws.append((f"{W}^{{(l)}}", f"{latex(sp.diff(Q, read))} / N"))
        laws += [(f"{b}^{{(l)}}", latex(bias))] if bias != 0 else []
        sum_of_biases = f" + {b}^{{(l)}}" if bias != 0 else ""
        layers.append(Equation(f"{u}^{{(l)}}", f"{W}^{{(l)}} r(x^{{(l - 1)}}){sum_of_biases}"))
    layers.append(Equation("y", r"W^{\mathrm{out}} r(x^{(L)}) + b^{\mathrm{out}}"))
    laws += [("W'^{(l)}", "a_{l} / M"), ("b'^{(l)}", "c_{l}")]
    laws += [(r"W^{\mathrm{out}}", "a_{L + 1} / N"), (r"b^{\mathrm{out}}", "c_{L + 1}")]
    X = sp.Symbol("X", positive=True)
    entry, x = GramEntry(X, X, X), sp.Symbol("x", real=True)
    passed = [
        Equation(f"{name}(x)", x * sp.sqrt(sp.simplify(of(entry, parameters) / X)))
        for name, of in (("r", n.network.read), ("s", n.network.stream))
    ]
    functions = [
        Equation(f"{latex(sp.Symbol(str(name)))}(h)", factor.expression)
        for factor, name in zip(n.network.factors, phi, strict=True)
        if factor != name
    ]
    variances = [Equation(W, rf"\mathcal{{N}}(0, {law})", relation=r"\sim") for W, law in laws]
    return layers, variances, passed, functions
