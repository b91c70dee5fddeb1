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
from fieldtheory.theory.latex import latex
from fieldtheory.theory.layer_by_layer import EXPLICIT
from fieldtheory.theory.layout import Equation, page

TEMPLATE = Path(__file__).with_name("appendix.tex")
# The quantities that are written out layer by layer.
LAYER_BY_LAYER = ("saddle_point", "S21", "G12", "output_response")
_RESPONSES = ("residual_response", "response", "output_response")


def document(n: Notation, explicit: Notation | None = None) -> str:
    """The whole text, which needs amsmath and hyperref.

    Parameters
    ----------
    n : Notation
        Of symbolic layers, abbreviated.
    explicit : Notation, optional
        Of the layers of a network of given depth, for a section that writes them out.
    """
    known: set[Any] = set()
    results = partial(results_latex, notation=n, table=GENERIC, numbered=True, known=known)
    h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    moment = GaussianAverage(sym.phi(h) ** 2, h, K)
    parts = {
        "network": "feed-forward networks" if n.layers.skip == 0 else "residual networks",
        "scales": r", \qquad ".join(_scale(n, name) for name in n.layers.family.layer_parameters),
        "action": results(["action"]),
        "saddle_point": results(["saddle_point"]),
        "price": rf"\frac{{\partial}}{{\partial K}} {latex(moment)} = {latex(moment.diff(K))}",
        "hessian": results(["hessian"]),
        "propagator": results(["propagator"]),
        "response": results(_RESPONSES),
        "activation": _closed_forms(n),
        "symbols": symbols_latex(n, breaks=True),
    }
    if explicit is not None:
        written = results_latex(LAYER_BY_LAYER, explicit, EXPLICIT, numbered=True, known=known)
        lead = f"For $L = {latex(explicit.last)}$:\n"
        parts["explicit"] = _section("Layer by layer", "explicit", lead + written)
    text = TEMPLATE.read_text(encoding="utf-8")
    # SymPy writes the natural logarithm as \log.
    return re.sub("<<(.*?)>>", lambda found: parts.get(found[1], ""), text).replace(r"\log", r"\ln")


def _section(title: str, label: str, text: str) -> str:
    labelled = text.replace(r"\label{", rf"\label{{{label}:")
    return f"\n\\section{{{title}}}\\label{{sec:{label}}}\n{labelled}\n"


def _scale(n: Notation, name: str) -> str:
    symbol, fixed = latex(sym.parameters(n.layers.family, "l")[name]), dict(n.layers.fixed)
    if name in fixed:
        return f"{symbol} = {latex(fixed[name])}"
    return rf"{symbol} \text{{ different from layer to layer}}"


def _closed_forms(n: Notation) -> str:
    """The averages of a named φ, where they are elementary."""
    if n.activation is None:
        return ""
    found = layer_averages(n.layers.family.features, n.activation)
    K = sp.Symbol("K", positive=True)
    averages = {"M(K)": found.moment, "M'(K)": found.moment.diff(K_XX)}
    if n.inputs > 1:
        averages[r"\langle \phi(x) \phi(y) \rangle"] = found.covariance
        averages[r"\langle \phi'(x) \phi'(y) \rangle"] = found.covariance.diff(K_XY)
    forms = {left: average.doit() for left, average in averages.items()}
    rows = [
        Equation(left, form.xreplace({K_XX: K}) if left.startswith("M") else form)
        for left, form in forms.items()
        if not form.has(AverageNode)
    ]
    text = "The averages of this $\\phi$ are not elementary: they are Gaussian integrals."
    if rows:
        text = (
            r"These averages are elementary, with $M(K) = \langle \phi(h)^{2} \rangle$ for a "
            r"variance $K$ and $M'$ its derivative (\ref{eq:price}):"
            f"\n{page([rows], n.column, 'average')}"
        )
    return _section("The averages of the activation", "activation", text)
