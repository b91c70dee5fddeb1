"""A note to the authors of papers: what does not hold as printed, paper by paper.

Run it to write ``errata.tex`` beside it, which pdflatex sets:

    python derivations/errata.py

Every claim of `fieldtheory.literature` is checked anew; nothing of the note is written by hand but
what is meant. `fieldtheory verify --format latex` prints the same items.
"""

from __future__ import annotations

from pathlib import Path

from typeset import article

from fieldtheory.literature import verdicts
from fieldtheory.report import errata_note

TARGET = Path(__file__).with_suffix(".tex")

TITLE = "Equations that do not hold as printed"
ABSTRACT = r"""Equations and statements of seven papers on wide and deep networks were held against
a derivation by computer algebra, or against numbers to many digits. This note lists those that do
not hold as they are printed: misprints, with what is meant; statements that take a convention; and
what does not hold, with what was found instead. Papers: F25~\cite{F25}, F23~\cite{F23},
PDLT-B~\cite{PDLT}, SR~\cite{SR}, PF~\cite{PF}; DCL~\cite{DCL} and SPT~\cite{SPT} in words alone."""


def document() -> str:
    """The whole note as a LaTeX document."""
    judged = list(verdicts.verdicts(20))
    return article(TITLE, ABSTRACT, [errata_note.sections(judged)], list(_REFERENCES))


_REFERENCES = "F25", "F23", "PDLT", "SR", "PF", "DCL", "SPT"

if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
