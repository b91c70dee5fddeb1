"""A note to the authors in LaTeX: what does not hold as printed, paper by paper."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fieldtheory.literature.claim import CONVENTION, FAILS, MISPRINT, Verdict, counted

_HEADS = {
    MISPRINT: "Misprints",
    CONVENTION: "What holds with a convention",
    FAILS: "What does not hold",
}
# Signs of the verdicts' text in LaTeX; those of one line are in mathematics.
_SIGNS = dict(
    zip(
        (
            "σ ρ ν φ ψ χ η γ λ μ κ δ ε θ ζ π ω Δ Σ Ψ Θ ∂ √ ∞ ⟨ ⟩ → ↦ × · ≈ ≠ ∈ ∝ − ‖ ′ ≫ ∥ ∦ "
            "α β C̃ h̃ x̃ ϑ ⊥"
        ).split(),
        (
            r"\sigma \rho \nu \phi \psi \chi \eta \gamma \lambda \mu \kappa \delta \varepsilon "
            r"\theta \zeta \pi \omega \Delta \Sigma \Psi \Theta \partial \surd \infty \langle "
            r"\rangle \to \mapsto \times \cdot \approx \neq \in \propto - \| ' \gg \parallel "
            r"\nparallel \alpha \beta \tilde{C} \tilde{h} \tilde{x} \vartheta \perp"
        ).split(),
        strict=True,
    )
)
_TEXT = {"%": r"\%", "&": r"\&", "#": r"\#", "–": "--", "{": r"\{", "}": r"\}", "^": r"\^{}"}
_TEXT |= {"<": "$<$", ">": "$>$", "|": "$|$", "_": r"\_", "\\": r"$\backslash$", "~": r"\~{}"}
_POWERS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_TOKEN = re.compile(
    r"(?P<base>[Chx]\u0303|[GS][12]{2}|[^\s])"
    r"(?P<index>_\{[^{}]*\}|_[A-Za-z0-9α-ωΑ-Ω⊥∥]+(?:,out|,in)?)?"
    r"(?P<power>\^\{[^{}]*\}|\^\([^()]*\)|\^[A-Za-z0-9]+|\*\*\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?"
)
# The longest formula, as LaTeX, that a line holds.
_SHORT = 120


def document(verdicts: Sequence[Verdict]) -> str:
    """A LaTeX document that needs amsmath alone, with an item for each claim that does not hold."""
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath}",
        r"\title{Equations that do not hold as printed}",
        r"\author{}\date{}",
        r"\begin{document}",
        r"\maketitle",
        *sections(verdicts),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def sections(verdicts: Sequence[Verdict]) -> list[str]:
    """Of every paper a section, and in it a list of items for every word."""
    lines = [r"\sloppy\raggedright"]
    for paper in dict.fromkeys(verdict.claim.paper for verdict in verdicts):
        of_paper = [verdict for verdict in verdicts if verdict.claim.paper == paper]
        words = [verdict.word for verdict in of_paper]
        kept = sum(verdict.holds for verdict in of_paper)
        lines += [
            rf"\section*{{{tex(paper)}}}",
            f"Read as {tex(of_paper[0].claim.edition)}. Of {counted(len(words), 'claim')} "
            f"{kept} hold{'s' * (kept == 1)} as printed.",
        ]
        for word, head in _HEADS.items():
            items = [_item(verdict) for verdict in of_paper if verdict.word == word]
            if items:
                lines += [rf"\subsection*{{{head}}}", r"\begin{itemize}", *items, r"\end{itemize}"]
    return lines


def _item(verdict: Verdict) -> str:
    claim, formulas = verdict.claim, verdict.found.formulas
    instead = claim.meant or claim.convention
    parts = [tex(f"{claim.equation}, {claim.subject} ({claim.region})")]
    if not formulas:
        parts.append(tex(verdict.evidence))
    elif len(formulas[-1]) <= _SHORT:
        parts.append(f"${ascii_formula(formulas[-1])}$")
    if instead:
        parts.append(tex(f"{'meant' if claim.meant else 'convention'}: {instead[0]}"))
    if claim.note:
        parts.append(tex(claim.note))
    return r"\item " + "; ".join(parts) + "."


def tex(text: str) -> str:
    r"""Plain text with signs such as σ_w² in LaTeX.

    Examples
    --------
    >>> print(tex("K^(l) is σ_w² ⟨φ²⟩"))
    $K^{(l)}$ is $\sigma_{w}^{2}$ $\langle \phi^{2} \rangle$
    """
    # Neighbours in mathematics become one formula.
    return _TOKEN.sub(_one, text).replace("$$", " ")


def _one(match: re.Match[str]) -> str:
    base, index, power = match["base"], match["index"], match["power"]
    if not index and not power:
        return f"${_SIGNS[base]}$" if base in _SIGNS else _TEXT.get(base, base)
    # A closing bracket or quotation mark takes an index like a letter.
    symbol = _SIGNS.get(base, {"{": r"\{", "}": r"\}"}.get(base, base))
    low = f"_{{{_plain(index[1:])}}}" if index else ""
    high = f"^{{{_plain(power.removeprefix('**').removeprefix('^'))}}}" if power else ""
    return f"${symbol}{low}{high}$"


def ascii_formula(formula: str) -> str:
    r"""LaTeX whose symbols have names such as λ_l or φ², with LaTeX for their signs.

    >>> print(ascii_formula(r"\frac{λ_{l}}{x·x}"))
    \frac{\lambda _{l}}{x\cdot x}
    """
    # Those of two signs, a letter and its tilde, come first.
    for sign in sorted(_SIGNS, key=len, reverse=True):
        formula = formula.replace(sign, f"{_SIGNS[sign]} ")
    return "".join(f"^{{{_POWERS[sign]}}}" if sign in _POWERS else sign for sign in formula)


def _plain(text: str) -> str:
    """Text of an index or a power: digits alone, or a formula."""
    if all(sign in _POWERS for sign in text):
        return "".join(_POWERS[sign] for sign in text)
    return ascii_formula(text.strip("{}")).strip()
