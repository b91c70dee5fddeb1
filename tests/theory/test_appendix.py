"""The derivation as a document: its fixed formulas by SymPy, its results those of the package."""

import re

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.theory.typesetting.latex import latex
from tests.tables import slow
from tests.test_derivations import compiled, complaints, formulas
from tests.theory.typesetting.test_latex import typeset
from tests.theory.typesetting.test_symbols import symbols

C, s2 = sp.symbols("C sigma2", positive=True)
h, w, z, omega = sp.symbols("h w z omega", real=True)


def normal(x, variance):
    return sp.exp(-(x**2) / (2 * variance)) / sp.sqrt(2 * sp.pi * variance)


def averaged(expr, variance):
    return sp.simplify(sp.integrate(normal(w, variance) * expr, (w, -sp.oo, sp.oo)))


@pytest.mark.slow
def test_the_integrals_of_the_text():
    # The conjugate signal gives a Gaussian; Price's theorem for it is the heat equation.
    integral = sp.integrate(sp.exp(sp.I * omega * h - C * omega**2 / 2), (omega, -sp.oo, sp.oo))
    assert sp.simplify(integral / (2 * sp.pi) - normal(h, C)) == 0
    assert sp.simplify(normal(h, C).diff(C) - normal(h, C).diff(h, 2) / 2) == 0
    assert sp.simplify(averaged(sp.exp(-w * z), s2) - sp.exp(s2 * z**2 / 2)) == 0


@pytest.mark.slow
def test_a_row_of_weights_and_a_bias_have_the_residual_kernel():
    rho, sw, sb, p, q, ht = sp.symbols("rho sigma_w sigma_b p q htilde", positive=True)
    entries = [(p, sw**2 / 2), (q, sw**2 / 2), (1, sb**2)]
    average = sp.Mul(*[averaged(sp.exp(-w * rho * ht * x), v) for x, v in entries])
    kernel = rho**2 * sw**2 * (p**2 + q**2) / 2 + rho**2 * sb**2
    assert sp.expand(sp.expand_log(sp.log(average), force=True) - kernel * ht**2 / 2) == 0


def test_independent_residuals_have_the_covariance_of_the_action():
    action = ft.derive(2, branch_scale="per layer", skip_scale="per layer").network_action
    one, two = sp.symbols(r"\gamma_{1} \gamma_{2}", real=True)
    x, y, z = action.variables
    squares = zip((x, y - one * x, z - two * y), action.kernels, strict=False)
    form = (sp.Matrix([[x, y, z]]) * action.covariance.inv() * sp.Matrix([x, y, z]))[0]
    assert sp.simplify(form - sum(f**2 / kernel for f, kernel in squares)) == 0


CASES = {
    "per layer": ({"depth": 3, "branch_scale": "per layer", "skip_scale": "per layer"}, "explicit"),
    "feed-forward": ({"network": ft.FeedForwardNetwork(depth=2, activation="relu")}, "generic"),
    "two inputs": ({"depth": 1, "inputs": 2, "activation": "erf"}, "explicit"),
    "gelu": ({"depth": 2, "inputs": 2, "activation": "gelu", "skip_scale": "symbol"}, "explicit"),
    "tanh": ({"depth": 40, "activation": "tanh", "skip_scale": sp.Rational(1, 2)}, "generic"),
}
# With a name of their own, each another.
RADICANDS = {"two inputs": 1, "gelu": 3}

COLUMN = {"width": 246, "misprints": False}
PAPER = {"width": 246, "notation": "F25"}
QUICK = [("two inputs", COLUMN), ("feed-forward", PAPER)]
TYPESET = [(name, options) for name in CASES for options in ({}, COLUMN, PAPER)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, options", [case if case in QUICK else slow(*case) for case in TYPESET], ids=str
)
def test_it_compiles_and_fits_the_page(name, options, tmp_path):
    arguments, layers = CASES[name]
    tex = tmp_path / "source" / "appendix.tex"
    tex.parent.mkdir()
    text = ft.derive(**arguments).document(layers, **options)
    tex.write_text(text, encoding="utf-8")
    assert complaints(compiled(tex, tmp_path)) == []
    assert ("[twocolumn]" in text) == (options.get("width") == 246)


def of_document(document):
    """The symbols in its formulas, and those in its list."""
    text, listed = document.split(r"\section{Symbols}")
    used = set().union(*(symbols(formula) for formula in formulas(text)))
    rows = re.search(r"\\begin\{align\*\}\n(.*?)\n\\end", listed, re.DOTALL)[1].split("\n")
    entries = r",\ ".join(row.split(r"&\quad")[0] for row in rows).split(r",\ ")
    return used, {found[0] for entry in entries if (found := symbols(entry))}


@pytest.mark.parametrize(
    "arguments, layers, options",
    [
        slow(CASES["per layer"][0] | {"depth": 2}, "explicit", COLUMN),
        slow({"depth": 2, "inputs": 2, "activation": "erf"}, "explicit", {}),
        slow({"depth": 2, "activation": "tanh"}, "generic", {"notation": "F25"}),
        ({"network": ft.FeedForwardNetwork(depth=2)}, "generic", {"misprints": False}),
    ],
)
def test_its_list_has_the_symbols_that_occur_and_no_others(arguments, layers, options):
    used, known = of_document(ft.derive(**arguments).document(layers, **options))
    # Differentials, what any two observables are called, sizes of brackets, a limit.
    assert used - known <= {"d", "B", r"\big", r"\Big", r"\bigg", r"\to"}
    assert known <= used


@pytest.mark.parametrize("notation", [None, slow("F25")])
def test_remarks_on_misprints_can_be_left_out(notation):
    th = ft.derive(1, activation="erf")
    with_remarks, without = (th.document(notation=notation, misprints=m) for m in (True, False))
    words = r"misses|lack |prints|too many|stands for|leave out|\(109\)|does not hold"
    assert len(re.findall(words, with_remarks)) > 10 and not re.findall(words, without)
    assert r"F25~(16)--(18)" in without and "?>" not in with_remarks + without
    formulas_of = [
        re.findall(r"\\begin\{align\}.*?\\end\{align\}", t, re.DOTALL)
        for t in (with_remarks, without)
    ]
    assert formulas_of[0] == formulas_of[1]


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("name", CASES)
def test_its_results_are_those_of_the_derivation(name):
    arguments, layers = CASES[name]
    th = ft.derive(**arguments)
    text = th.document(layers)
    assert "<<" not in text and (r"\label{sec:explicit}" in text) == (layers == "explicit")
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(labels) == len(set(labels)) and {*re.findall(r"\\ref\{(.*?)\}", text)} <= {*labels}
    radicands = re.findall(r"^(D\S*) &=", text, re.MULTILINE)
    assert len(set(radicands)) == len(radicands) == RADICANDS.get(name, 0)
    for quantity in ("action", "saddle_point", "hessian", "propagator", "residual_response"):
        own = th.latex(quantity, numbered=True).split("\\begin{align}\n")[1]
        for line in re.split(r" \\label\{.*?\}(?: \\\\)?\n", own.split(r"\end{align}")[0]):
            assert line in text


def test_what_it_says_of_the_activation():
    text = ft.derive(1, activation="erf").document()
    (shown,) = re.findall(r"\nM\(K\) &= (.*?) \\label", text)
    assert shown == r"\frac{2 \operatorname{atan}{\left(2 K / \sqrt{1 + 4 K} \right)}}{\pi}"
    # Williams (1997) for one input, against the number of the package.
    found = ft.GaussianAverage(sp.erf(h) ** 2, h, sp.Rational(3, 10)).evalf(20)
    np.testing.assert_allclose(float(found), 2 / np.pi * np.arctan(0.6 / np.sqrt(2.2)), rtol=1e-14)
    assert "not elementary" in ft.derive(1, activation="tanh").document()
    assert "sec:activation" not in ft.derive(1).document()


def test_fractions_on_one_line_keep_their_brackets(tmp_path):
    K = sp.Symbol("K", positive=True)
    shown = latex(1 / (2 * sp.sqrt(1 + K / (1 + K))) + (1 + K / 2) / (3 + K))
    assert r"K / \left(1 + K\right)" in shown
    assert typeset(tmp_path, {"fraction": shown}) == {}
