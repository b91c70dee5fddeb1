r"""From the definition of a residual network to its propagators, step by step.

Run it to write ``resnet_action.tex`` beside it, which pdflatex sets:

    python derivations/resnet_action.py

The document is that of `ft.Derivation.document`, for φ undetermined. Its steps are those of F25 (K.
Fischer, D. Dahmen, M. Helias, "Field theory for optimal signal propagation in ResNets",
arXiv:2305.07715), sections II.1 to II.4. What it says of a printed equation is checked here against
the transcription in `fieldtheory.literature`; the integrals in its text are checked in
``tests/theory/test_appendix.py``.
"""

from __future__ import annotations

from pathlib import Path

from printed_equations import require

import fieldtheory as ft

TARGET = Path(__file__).with_suffix(".tex")
# Printed equations of which the text says that they do not hold as they stand.
NOT_AS_PRINTED = (
    *("(19), line 3", "(21)", "line after (31)", "(32)", "(39)", "(41)", "(42)", "(49)", "(52)"),
    *("(54)", "(57)", "(61)", "(94)", "(96), (99)", "text before (108)", "(109)", "(115)"),
    *("(126)", "text after (133)"),
)


def document() -> str:
    """The whole text as a LaTeX document, with the layers of a network of depth 2."""
    for number in NOT_AS_PRINTED:
        require(number, holds=False)
    return ft.derive(2).document(layers="explicit")


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
