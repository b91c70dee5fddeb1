"""The derivation of a network's field theory as a LaTeX document.

The prose is ``appendix.tex``. Its formulas from the action on are those of a derivation.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.theory import notation as sym
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.elementary_averages import K_XX, K_XY, layer_averages
from fieldtheory.theory.formulas import GENERIC, results_latex, symbols_latex
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layout import Equation, page
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH, width

TEMPLATE = Path(__file__).with_name("appendix.tex")
# The quantities that are written out layer by layer.
LAYER_BY_LAYER = ("saddle_point", "S21", "S22", "G12", "output_response")
_RESPONSES = ("residual_response", "response", "output_response")


def document(n: Notation, explicit: Notation | None = None, misprints: bool = True) -> str:
    """The whole text, which needs amsmath and hyperref.

    Parameters
    ----------
    n : Notation
        Of symbolic layers.
    explicit : Notation, optional
        Of the layers of a network of given depth, for a section that writes them out.
    misprints : bool
        Whether it remarks which printed equations of F25 do not hold.
    """
    defined: set[Any] = set()
    results = partial(results_latex, notation=n, table=GENERIC, numbered=True, defined=defined)
    h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    moment = GaussianAverage(sym.phi(h) ** 2, h, K)
    parts = {
        "network": "feed-forward networks" if n.layers.skip == 0 else "residual networks",
        "scales": _scales(n),
        "action": results(["action"]),
        "saddle_point": results(["saddle_point"]),
        "price": rf"\frac{{\partial}}{{\partial K}} {latex(moment)} = {latex(moment.diff(K))}",
        "hessian": results(["hessian"]),
        "propagator": results(["propagator"]),
        "response": results(_RESPONSES),
        "activation": _closed_forms(n),
        **lengths(n.column),
    }
    if explicit is not None:
        written = results_latex(LAYER_BY_LAYER, explicit, GENERIC, numbered=True, defined=defined)
        lead = f"For $L = {latex(explicit.last)}$:\n"
        parts["explicit"] = _section("Layer by layer", "explicit", lead + written)
    text = TEMPLATE.read_text(encoding="utf-8")
    text = re.sub(r"<\?(.*?)\?>", r"\1" if misprints else "", text, flags=re.DOTALL)
    before, after = (
        re.sub("<<(.*?)>>", lambda part: parts.get(part[1], ""), half)
        for half in text.split("<<symbols>>")
    )
    # SymPy writes the natural logarithm as \log.
    texts = sym.meanings(n.layers.family, n.inputs, before)
    return f"{before}{symbols_latex(texts, n.column, True)}{after}".replace(r"\log", r"\ln")


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
