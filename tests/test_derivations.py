"""The derivation scripts reproduce the LaTeX committed beside them, and it can be read."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tables import some

FOLDER = Path(__file__).parents[1] / "derivations"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.with_suffix(".tex").exists())
DISPLAYS = r"\\begin\{(equation|align)\}(.*?)\\end\{\1\}"

of_every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


# The action of the papers, its diagrams, and the transfer that knows neither.
QUICK = ("resnet_action", "finite_width", "interacting_neurons")


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", some(SCRIPTS, [p for p in SCRIPTS if p.stem in QUICK]), ids=lambda path: path.stem
)
def test_script_reproduces_its_tex(script, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    generated = runpy.run_path(str(script))["document"]()
    assert generated == script.with_suffix(".tex").read_text(encoding="utf-8")


@of_every_script
def test_script_can_be_imported(script, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    assert callable(runpy.run_path(str(script))["document"])


def formulas(text):
    """The formulas of a document, each as it could stand in a notebook."""
    for environment, body in re.findall(DISPLAYS, text, re.DOTALL):
        body = re.sub(r"\\label\{.*?\}|\\notag", "", body)
        yield body if environment == "equation" else rf"\begin{{aligned}}{body}\end{{aligned}}"
    yield from re.findall(r"\$(.+?)\$", re.sub(DISPLAYS, "", text, flags=re.DOTALL), re.DOTALL)


@pytest.mark.slow_but(7)
@of_every_script
def test_every_formula_renders(script, katex_failures):
    found = list(formulas(script.with_suffix(".tex").read_text(encoding="utf-8")))
    assert len(found) > 50
    assert katex_failures({f"{script.stem} {i}": f for i, f in enumerate(found)}) == {}


def compiled(tex, folder):
    """The log of pdflatex, run until references are settled."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    shutil.copy(tex, folder)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", tex.name]
    for _ in range(3):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
        log = (folder / tex.with_suffix(".log").name).read_text(errors="replace")
        assert done.returncode == 0, log[-2000:]
        if "Rerun to get" not in log and "No file" not in log:
            break
    return log


def complaints(log):
    """What a reader would see on the page."""
    marks = ("Overfull", "undefined", "multiply defined", "Missing character", "Rerun to get")
    return [line for line in log.splitlines() if any(mark in line for mark in marks)]


@pytest.mark.slow_but(3)
@of_every_script
def test_it_compiles_and_fits_the_page(script, tmp_path):
    tex = script.with_suffix(".tex")
    assert complaints(compiled(tex, tmp_path)) == []
    packages = re.findall(r"\\usepackage.*?\{(.*?)\}", tex.read_text(encoding="utf-8"))
    assert packages == ["amsmath", "hyperref"]


def test_what_does_not_fit_is_seen(tmp_path):
    tex = tmp_path / "source" / "wide.tex"
    tex.parent.mkdir()
    wide = " + ".join(["a_{l} \\phi(h)^{2}"] * 12)
    tex.write_text(
        "\\documentclass{article}\n\\begin{document}\n"
        f"\\begin{{equation}} {wide} \\end{{equation}} and (\\ref{{eq:none}})\n\\end{{document}}\n"
    )
    found = "\n".join(complaints(compiled(tex, tmp_path)))
    assert "Overfull" in found and "eq:none" in found and "undefined" in found


def test_there_are_derivations_of_the_propagators_and_of_the_optimal_scaling():
    assert {script.stem for script in SCRIPTS} >= {
        "resnet_action",
        "optimal_scaling",
        "critical_networks",
        "finite_width",
        "interacting_neurons",
        "infinitely_deep_diffusions",
    }
    for script in SCRIPTS:
        text = script.with_suffix(".tex").read_text(encoding="utf-8")
        assert r"\begin{abstract}" in text and r"\begin{thebibliography}" in text
        labels = set(re.findall(r"\\label\{(.*?)\}", text))
        assert labels >= set(re.findall(r"\\ref\{(.*?)\}", text))
