"""The note of errata: every verdict that is not as printed is in it, and LaTeX takes it."""

import pytest

from fieldtheory.literature import f23
from fieldtheory.report import errata_note
from tests.cli.test_app import call
from tests.test_derivations import compiled, complaints


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("σ_w,out²", r"$\sigma_{w,out}^{2}$"),
        ("C̃^(l) → 0", r"$\tilde{C}^{(l)}$ $\to$ 0"),
        ("50 % & more_", r"50 \% \& more\_"),
    ],
)
def test_signs(text, expected):
    assert errata_note.tex(text) == expected


@pytest.mark.slow
def test_items(tmp_path):
    judged = [claim.verdict(20) for claim in f23.CLAIMS]
    text = errata_note.document(judged)
    kept = sum(v.holds for v in judged)
    assert text.count(r"\item ") == len(judged) - kept
    assert f"{kept} hold as printed" in text and text.isascii()
    tex = tmp_path / "source" / "note.tex"
    tex.parent.mkdir()
    tex.write_text(text)
    assert complaints(compiled(tex, tmp_path)) == []


def test_the_command_prints_it():
    result = call("verify", "--paper", "F23", "--equation", "8", "--digits", 20, "-f", "latex")
    assert result.exit_code == 0
    assert result.stdout.startswith(r"\documentclass") and r"\item (8), $\rho" in result.stdout
