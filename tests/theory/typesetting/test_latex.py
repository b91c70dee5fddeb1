"""LaTeX: notation, names, and that every string fits the page and renders."""

import re
import shutil
import string
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.report.document import mathml
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.formulas import FORMULAS, SATURATION
from fieldtheory.theory.hessian import hessian
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layout import Equation, Setter, page
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH, width
from tests.examples import derivation
from tests.tables import slow

GOLDEN = Path(__file__).parent / "golden"
LAYERS = ("generic", "explicit")
# Depth, inputs, φ, ρ and γ of the paper; what is written out for two inputs grows fast.
CASES = [
    (2, 1, "tanh", False),
    (1, 2, None, False),
    slow(2, 2, "tanh", True),
    *[
        slow(*case)
        for case in [
            (1, 1, "linear", False),
            (3, 1, "gelu", True),
            (1, 1, None, True),
            (4, 1, "erf", True),
            (3, 1, "gelu", False),
            (5, 1, "relu", False),
            (10, 1, None, False),
            (10, 1, "tanh", True),
            (1, 2, "gelu", True),
            (2, 2, None, False),
            (4, 2, "erf", True),
        ]
    ],
]


# One process of KaTeX takes a second for each.
RENDERED = [(1, 1, "linear", False), (3, 1, "gelu", True), (2, 2, "tanh", True)]


def theory(depth, inputs, activation, of_paper):
    if of_paper:
        return ft.derive(depth, inputs, activation)
    return derivation(depth, inputs, activation)


@lru_cache
def strings(depth, inputs, activation, of_paper):
    """Every LaTeX of a derivation by its arguments."""
    th = theory(depth, inputs, activation, of_paper)
    quantities = FORMULAS if of_paper else [q for q in FORMULAS if q not in SATURATION]
    found = {
        (q, layers, short): th.latex(q, layers, short)
        for q in quantities
        for layers in LAYERS
        for short in (True, False)
    }
    return {" ".join(map(str, key)): text for key, text in found.items()}


def pdflatex(folder, text):
    """What pdflatex says of a document; the test is skipped where it is not installed."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    (folder / "page.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-draftmode", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
    return done.stdout.decode(errors="replace")


def typeset(folder, displays, faults=("!", r"Overfull \hbox"), column=TEXT_WIDTH, page=550):
    """What pdflatex says about each display in an article, by name: errors and wide boxes."""
    pages = []
    for name, text in displays.items():
        shown = text if re.search(r"\{align\*?\}", text) else rf"\[{text}\]"
        pages.append(rf"\typeout{{NAME {name}}}{shown}\clearpage")
    size = rf"\textwidth={column}pt\textheight={page}pt\columnwidth\textwidth\hsize\textwidth"
    start = rf"\documentclass{{article}}\usepackage{{amsmath}}{size}\begin{{document}}"
    said, name = {}, ""
    for line in pdflatex(folder, "\n".join([start, *pages, r"\end{document}"])).splitlines():
        if line.startswith("NAME"):
            name = line.removeprefix("NAME ")
        elif line.startswith(faults):
            said.setdefault(name, []).append(line)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("depth, inputs, activation, of_paper", CASES)
def test_everything_fits_the_text_of_an_article(depth, inputs, activation, of_paper, tmp_path):
    found = dict(strings(depth, inputs, activation, of_paper))
    found["notebook"] = theory(depth, inputs, activation, of_paper)._repr_latex_().strip("$")
    assert typeset(tmp_path, found) == {}


WIDE_CASES = [(1, 1, None, True), (2, 2, "tanh", True), slow(3, 1, "gelu", False)]


@pytest.mark.slow
@pytest.mark.parametrize("depth, inputs, activation, of_paper", WIDE_CASES)
@pytest.mark.parametrize("column", [246, 345])
def test_numbered_results_fit_a_column_and_break_over_pages(
    depth, inputs, activation, of_paper, column, tmp_path
):
    """With a label for every number; the tall ones over pages of 300 pt."""
    th = theory(depth, inputs, activation, of_paper)
    quantities = FORMULAS if of_paper else [q for q in FORMULAS if q not in SATURATION]
    found = {
        f"{q} {layers} {numbered}": th.latex(q, layers, width=column, numbered=numbered)
        for q in quantities
        for layers in LAYERS
        for numbered in (True, False)
    }
    pages = {name: text for name, text in found.items() if name.endswith("True")}
    pages["symbols"] = th.latex("symbols", width=column, numbered=True)
    assert typeset(tmp_path, found, column=column) == {}
    assert typeset(tmp_path, pages, ("!", "Overfull"), column, 300) == {}
    for text in pages.values():
        lines = [line for line in text.split("\n") if "&" in line and "quad" not in line]
        labels = re.findall(r"\\label\{(.*?)\}", text)
        assert len(set(labels)) == len(labels) <= sum("&=" in line for line in text.split("\n"))
        assert all(r"\label" in line or r"\nonumber" in line for line in lines if "&=" in line)


def test_results_fit_a_page(tmp_path):
    """At two layers, whatever the inputs."""
    found = {
        f"{q} {layers} {inputs}": ft.derive(2, inputs).latex(q, layers)
        for q in ("action", "saddle_point", "hessian", "propagator", "tangent_kernel", "symbols")
        for layers in LAYERS
        for inputs in (1, 2)
    }
    assert typeset(tmp_path, found, ("!", "Overfull")) == {}


def test_several_results_have_their_definitions_once():
    th = ft.derive(2)
    text = th.latex(["saddle_point", "hessian", "G12"])
    lefts = re.findall(r"^&?(.*?) &?= ", text, re.MULTILINE)
    assert len([left for left in lefts if left in ("a_{l}", "c_{l}", "M'_{l}", "K^{(l)}")]) == 4
    assert text.index("S_{21}^{k l}") < text.index("a_{l} &=")
    both = th.latex(["action", "hessian"])
    assert "C &= C_{*}" in both and "C &= C_{*}" not in text


@pytest.mark.parametrize("depth", [2, slow(6)])
def test_parts_show_formulas_in_a_notebook(depth):
    th = ft.derive(depth)
    layers = "explicit" if depth == 2 else "generic"
    for part in ("saddle_point", "hessian", "propagator"):
        assert getattr(th, part)._repr_latex_() == f"$${th.latex(part, layers)}$$"
        assert len(repr(getattr(th, part))) < 60
    assert hessian(th.network_action)._repr_latex_() is None


def test_entries_have_no_common_factor_left():
    text = ft.derive(3).latex("G12", layers="explicit", width=246)
    assert r"N G_{12}^{2 0} &= \frac{a_{2} M'_{1} r_{1}}{\nu_{0}}" in text
    assert r"}{N}" not in text


def test_what_does_not_fit_is_seen(tmp_path):
    th = derivation(3)
    wide = {"action": latex(th.action), "half": r"\left( x"}
    assert typeset(tmp_path, wide).keys() >= {"action", "half"}


@pytest.mark.slow
@pytest.mark.parametrize("depth, inputs, activation, of_paper", RENDERED)
def test_everything_renders(depth, inputs, activation, of_paper, katex_failures):
    found = dict(strings(depth, inputs, activation, of_paper))
    th = theory(depth, inputs, activation, of_paper)
    if of_paper:
        found |= {f"F25 {q}": th.latex(q, notation="F25") for q in (*FORMULAS, "symbols")}
    assert katex_failures(found) == {}
    for name in ("action", "hessian", "propagator"):
        assert mathml(found[f"{name} generic True"]).startswith("<math")


def test_width_is_that_of_tex(tmp_path):
    """The estimate is within a tenth of what TeX measures, that of a letter a third of a point."""
    th, pair = derivation(2), derivation(1, 2)
    formulas = [
        latex(th.action),
        latex(th.hessian.S21),
        latex(th.hessian.S22),
        *(latex(entry) for entry in th.propagator.G12 if entry != 0),
        *(latex(entry) for entry in pair.hessian.S21 if entry != 0),
        *(latex(formula) for formula in (generic.mixed_block(2, generic.l), generic.kernel(3))),
        r"\begin{pmatrix} a & b + c + d \\ a + b + c + d & b \end{pmatrix}",
    ]
    greek = r"\alpha \beta \gamma \delta \eta \theta \Theta \nu \pi \rho \sigma \phi \chi \psi"
    letters = [*string.ascii_letters, *string.digits, *greek.split(), r"\partial", r"\infty"]
    formulas += letters
    boxes = [rf"\setbox0\hbox{{$\displaystyle {f}$}}\typeout{{WIDTH \the\wd0}}" for f in formulas]
    start = r"\documentclass{article}\usepackage{amsmath}\begin{document}"
    said = pdflatex(tmp_path, "\n".join([start, *boxes, r"\end{document}"]))
    measured = [float(number) for number in re.findall(r"WIDTH ([\d.]+)pt", said)]
    assert len(measured) == len(formulas)
    for formula, points in zip(formulas, measured, strict=True):
        room = 0.3 if formula in letters else max(points / 10, 6)
        assert abs(width(formula) - points) < room, formula


def bare(text):
    """A formula without what only serves to set it in lines."""
    text = re.sub(r"\\(begin|end)\{aligned\}|\\times|\\quad|\\\\|&", "", text)
    return re.sub(r"\\(left|right|Bigl|Bigr)(?![a-z])|\s", "", text)


@pytest.mark.parametrize("depth", [2, 5])
@pytest.mark.parametrize("quantity", ["action", "S21", "S22", "G12"])
def test_nothing_is_lost_in_line_breaks(depth, quantity):
    """All lines together read as the expression in one line."""
    th = derivation(depth)
    found = [th.action] if quantity == "action" else [e for e in th.block(quantity) if e != 0]
    for expression in found:
        assert bare(page([[Equation("x", expression)]])) == "x=" + bare(latex(expression))


@pytest.mark.parametrize("room", [60, 100, 200])
def test_lines_are_as_wide_as_the_room(room):
    a, b = sp.symbols("a b")
    expression = sp.expand((a + b) ** 20)
    lines = Setter({"order": None}).lines(expression, room, room)
    assert len(lines) > 2
    assert all(width(line) <= room for line in lines)
    assert room < 100 or all(line[0] in "+-" for line in lines[1:])


def test_failures_are_seen(katex_failures):
    text = derivation(1).latex("S21")
    broken = {"half": text[:-10], "word": text.replace(r"\left", r"\lefft")}
    assert katex_failures(broken).keys() == {"half", "word"}


def test_vertices_and_correlators_render(katex_failures):
    """Third derivatives, parameters in an integrand, a single average in a notebook."""
    action = derivation(2, 2).network_action
    h, K = sym.signal(1), sym.kernel(1)
    found = {
        "vertex": latex(action.derivative((10,), (0, 4))),
        "cumulant": latex(action.derivative((4, 7), (1,))),
        "fourth": latex(sym.phi(h).diff(h, 4)),
        "notebook": GaussianAverage(sym.phi(h) ** 2, h, K)._repr_latex_().strip("$"),
        "erfc": latex(GaussianAverage(sp.erf(2 * h) ** 2 * sp.exp(-(h**2)), h, K)),
    }
    assert katex_failures(found) == {}


@pytest.mark.parametrize("columns", [9, 10, 11, 12])
def test_wide_matrices_are_arrays(columns):
    """amsmath and KaTeX stop at ten columns of a pmatrix."""
    text = latex(sp.ImmutableMatrix(sp.eye(columns)))
    assert ("pmatrix" in text) == (columns <= 10)
    assert (rf"\left(\begin{{array}}{{{'c' * columns}}}" in text) == (columns > 10)


def test_notation_of_the_papers():
    h, K, g = sym.signal(2), sym.kernel(2), sym.signal(0)
    f = sym.phi(h)
    assert latex(sym.conjugate(3)) == r"\tilde{C}^{(3)}"
    assert latex(f.diff(h)) == r"\phi'(h^{(2)})"
    assert latex(f.diff(h, 3)) == r"\phi'''(h^{(2)})"
    assert latex(f.diff(h, 5)) == r"\phi^{(5)}(h^{(2)})"
    assert latex(f**2) == r"\phi(h^{(2)})^{2}"
    assert latex(f.diff(h) ** 2) == r"\phi'(h^{(2)})^{2}"
    measure = r"\right\rangle_{\mathcal{N}(0, K^{(2)})}"
    assert latex(GaussianAverage(f**2, h, K)) == rf"\left\langle \phi(h^{{(2)}})^{{2}} {measure}"
    joint = [[K, sp.Rational(1, 9)], [sp.Rational(1, 9), sym.kernel(0)]]
    correlator = latex(ConnectedCorrelator(f**2, sym.phi(g) ** 2, (h, g), joint))
    assert ";" in correlator
    assert correlator.endswith(r"_{\mathcal{N}(0, K)}")


@pytest.mark.parametrize("depth", [1, 2, slow(3)])
def test_the_measure_is_the_same_at_every_depth(depth):
    for quantity in ("action", "S22"):
        text = derivation(depth).latex(quantity, layers="explicit", abbreviate=False)
        measures = set(re.findall(r"\\mathcal\{N\}\(0, ([^)]*\)?\}?)\)", text))
        layers = {f"K^{{({layer})}}" for layer in range(depth + 1)}
        assert "K" in measures and measures <= {"K", *layers}


def test_saddle_point_of_a_pair_is_starred_once():
    text = derivation(1, 2).latex("saddle_point", layers="explicit")
    assert r"C^{(1)}_{\alpha \beta, *} &= a_{1}" in text
    assert r"\phi(h^{(0)}_{\alpha}) \phi(h^{(0)}_{\beta})" in text
    assert text.count(r"\tilde{C}") == 1
    assert r"\tilde{C}^{(l)}_{\alpha \beta, *} &= 0 \quad (0 \leq l \leq 2)" in text
    assert "_*" not in text


def test_kernels_have_the_indices_of_pairs():
    for inputs, left in ((1, "&K^{(l)} ="), (2, r"&K^{(l)}_{\alpha \beta} =")):
        assert left in derivation(1, inputs).latex("kernels")
    constraints = r"= - N \sum_{\alpha \leq \beta} \left(\nu_{0} C^{(0)}_{\alpha \beta} \tilde{C}"
    assert constraints in derivation(1, 2).latex("action").replace("&", "")


@pytest.mark.parametrize(
    "name", ["saddle_point", "hessian", "G12", "output_response", "tangent_kernel"]
)
def test_latex_is_the_committed_one(name):
    th = ft.derive(2)
    both = "\n".join(th.latex(name, layers) for layers in LAYERS) + "\n"
    assert both == (GOLDEN / f"{name}.tex").read_text(encoding="utf-8")


def test_text_width_is_that_of_an_article(tmp_path):
    text = r"\documentclass{article}\begin{document}\typeout{TEXT \the\textwidth}\end{document}"
    assert f"TEXT {TEXT_WIDTH}pt" in pdflatex(tmp_path, text)
