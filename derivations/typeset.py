"""How the derivations are set: a plain article with numbered equations and references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy as sp

from fieldtheory.theory.typesetting.latex import latex

REFERENCES = {
    "F25": r"K.~Fischer, D.~Dahmen, M.~Helias, \emph{Field theory for optimal signal propagation "
    r"in ResNets}, \href{https://arxiv.org/abs/2305.07715}{arXiv:2305.07715} (version of 2025).",
    "F23": r"K.~Fischer, D.~Dahmen, M.~Helias, \emph{Optimal signal propagation in ResNets through "
    r"residual scaling}, earlier version of \cite{F25}, "
    r"\href{https://arxiv.org/abs/2305.07715v1}{arXiv:2305.07715v1} (2023).",
    "PDLT": r"D.~A.~Roberts, S.~Yaida, B.~Hanin, \emph{The Principles of Deep Learning Theory}, "
    r"Cambridge University Press (2022), \href{https://arxiv.org/abs/2106.10165}"
    r"{arXiv:2106.10165}, appendix~B.",
    "Leonov": r"V.~P.~Leonov, A.~N.~Shiryaev, \emph{On a method of calculation of "
    r"semi-invariants}, Theory of Probability and its Applications \textbf{4}, 319 (1959).",
    "SR": r"S.~Hayou, E.~Clerico, B.~He, G.~Deligiannidis, A.~Doucet, J.~Rousseau, \emph{Stable "
    r"ResNet}, AISTATS (2021), \href{https://arxiv.org/abs/2010.12859}{arXiv:2010.12859}.",
    "Jacot": r"A.~Jacot, F.~Gabriel, C.~Hongler, \emph{Neural tangent kernel: convergence and "
    r"generalization in neural networks}, "
    r"\href{https://arxiv.org/abs/1806.07572}{arXiv:1806.07572} (2018).",
    "PF": r"S.~Peluchetti, S.~Favaro, \emph{Infinitely deep neural networks as diffusion "
    r"processes}, AISTATS (2020), \href{https://arxiv.org/abs/1905.11065}{arXiv:1905.11065}.",
    "DCL": r"Y.~Dong, J.-B.~Cordonnier, A.~Loukas, \emph{Attention is not all you need: pure "
    r"attention loses rank doubly exponentially with depth}, ICML (2021), "
    r"\href{https://arxiv.org/abs/2103.03404}{arXiv:2103.03404}.",
    "SPT": r"L.~Noci, S.~Anagnostidis, L.~Biggio, A.~Orvieto, S.~P.~Singh, A.~Lucchi, \emph{Signal "
    r"propagation in transformers: theoretical perspectives and the role of rank collapse}, "
    r"NeurIPS (2022), \href{https://arxiv.org/abs/2206.03126}{arXiv:2206.03126}.",
    "Price": r"R.~Price, \emph{A useful theorem for nonlinear devices having Gaussian inputs}, "
    r"IRE Transactions on Information Theory \textbf{4}, 69 (1958).",
}


def article(
    title: str, abstract: str, parts: Iterable[Sequence[str]], references: Sequence[str]
) -> str:
    """The whole document: needs amsmath and hyperref, nothing else.

    Parameters
    ----------
    title, abstract : str
    parts : iterable of sequences of str
        Paragraphs and equations, section by section.
    references : sequence of str
        Keys of ``REFERENCES``, in order.
    """
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath}",
        r"\usepackage[hidelinks]{hyperref}",
        r"\numberwithin{equation}{section}",
        rf"\title{{{title}}}",
        r"\author{}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        r"\begin{abstract}",
        abstract,
        r"\end{abstract}",
        *(line for part in parts for line in ("", *part)),
        "",
        r"\begin{thebibliography}{9}",
        *(rf"\bibitem{{{key}}} {REFERENCES[key]}" for key in references),
        r"\end{thebibliography}",
        r"\end{document}",
    ]
    # SymPy writes the natural logarithm as \log.
    return "\n".join(lines).replace(r"\log", r"\ln") + "\n"


def section(title: str, label: str) -> str:
    """The head of a section."""
    return rf"\section{{{title}}}\label{{sec:{label}}}"


def equation(formula: str, label: str = "") -> str:
    """A numbered equation; ``formula`` may have lines of ``split``."""
    name = rf"\label{{eq:{label}}}" if label else ""
    if r"\\" in formula and r"\begin" not in formula:
        formula = f"\\begin{{split}}\n{formula}\n\\end{{split}}"
    return f"\\begin{{equation}}{name}\n{formula}\n\\end{{equation}}"


def rows(*formulas: str) -> str:
    """Equations one below the other, each with its number, aligned at ``&``."""
    body = " \\\\\n".join(formulas)
    return f"\\begin{{align}}\n{body}\n\\end{{align}}"


def equal(left: sp.Expr, right: sp.Expr, label: str = "") -> str:
    """A numbered equation of two expressions."""
    return equation(f"{latex(left)} = {latex(right)}", label)


def in_order(expr: sp.Expr, *terms: sp.Expr) -> str:
    """A sum with its terms in this order."""
    assert expr == sp.Add(*terms), expr
    return " + ".join(map(latex, terms))


def spread(matrix: str) -> str:
    """A matrix with more space between its rows."""
    return matrix.replace(r"\\", r"\\[3pt]")
