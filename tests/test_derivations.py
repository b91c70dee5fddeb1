"""The derivation scripts reproduce the LaTeX committed beside them, and it renders."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "derivations"
SCRIPTS = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_reproduces_its_tex_and_the_tex_renders(script, katex_failures):
    generated = runpy.run_path(str(script))["document"]()
    assert generated == script.with_suffix(".tex").read_text(encoding="utf-8")
    formulas = re.findall(r"\\\[\n(.*?)\n\\\]", generated, re.DOTALL)
    formulas += re.findall(r"\$(.+?)\$", re.sub(r"\\\[.*?\\\]", "", generated, flags=re.DOTALL))
    assert len(formulas) > 20
    assert katex_failures({f"{script.stem} {i}": f for i, f in enumerate(formulas)}) == {}


def test_there_are_derivations_of_the_propagators_and_of_the_optimal_scaling():
    assert {script.stem for script in SCRIPTS} >= {"resnet_action", "optimal_scaling"}
