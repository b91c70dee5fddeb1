"""The letters of F25 for those of derived formulas: a substitution of symbols in their LaTeX.

𝒮 and 𝒢 for S and G, φ^(l) for φ(h^(l)), ⟨A, B⟩^c for ⟨A ; B⟩. Coefficients are written out.
"""

from __future__ import annotations

import re

_INDEX = r"_\{(?:[^{}]|\{[^{}]*\})*\}"
# φ, its derivatives and their squares at a signal h^(l), perhaps of an input or neuron.
_PHI = re.compile(rf"\\phi('*)\(h({_INDEX})?\^\{{(\([^()]*\))\}}({_INDEX})?\)(\^\{{2\}})?")
_CONNECTED = re.compile(rf" ?\\,;(?: ?\\,)?(.*?\\rangle(?:{_INDEX})?)", re.DOTALL)
# Single letters, not those of words and labels.
_BLOCKS = re.compile(r"(?<!\\mathcal\{)(?<![A-Za-z\\])([SG])(?![A-Za-z0-9-])")


def in_letters_of_paper(text: str) -> str:
    r"""LaTeX with the letters of F25.

    Examples
    --------
    >>> shown = r"S_{22} = \langle \phi'(h^{(k)})^{2} \,;\, \phi(h^{(l)}) \rangle"
    >>> print(in_letters_of_paper(shown))
    \mathcal{S}_{22} = \langle \bigl[\phi^{\prime,(k)}\bigr]^{2}, \phi^{(l)} \rangle^{c}
    """
    text = _CONNECTED.sub(r",\1^{c}", text)
    return _BLOCKS.sub(r"\\mathcal{\1}", _PHI.sub(_of_layer, text))


def _of_layer(match: re.Match[str]) -> str:
    primes, before, layer, after, square = match.groups()
    derivative = r"\prime" * len(primes) + "," if primes else ""
    letter = rf"\phi{before or after or ''}^{{{derivative}{layer}}}"
    return rf"\bigl[{letter}\bigr]{square}" if square else letter
