"""Diagrams: enumeration against brute force, causality, exact networks, LaTeX and pictures."""

from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.family import Coefficients
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import chain_action
from fieldtheory.theory.diagrams.enumeration import graphs
from fieldtheory.theory.diagrams.loop_expansion import (
    Correction,
    _factor,
    contracted,
    diagrams,
    vertex_tensor,
)
from fieldtheory.theory.hessian import hessian
from fieldtheory.theory.propagator import Propagator
from fieldtheory.theory.saddle_point import saddle_point
from tests.oracles import linear_width, wick
from tests.theory.typesetting.test_latex import pdflatex, typeset

# Legs and loops; what the issue asks for first.
ORDERS = [(1, 1), (2, 0), (2, 1), (3, 0), (1, 2)]
A, B = Fraction(3, 5), Fraction(-2, 7)
# No two vertices alike, n + m <= 7.
COUPLINGS = {
    (n, m): Fraction(3 * n * n + 2 * m + 1, 19 + 2 * n - 4 * m)
    for n in range(1, 8)
    for m in range(8 - n)
    if n + m > 2
}


def of_numbers(graph):
    """The value of a diagram whose fields have one component."""

    def scalar(value, rank):
        return np.full((1,) * rank, sp.Rational(value), dtype=object)

    lines = {"G12": scalar(B, 2), "G11": scalar(A, 2)}
    return contracted(graph, lambda n, m: scalar(COUPLINGS[n, m], n + m), lines).item()


@pytest.mark.parametrize(
    "legs, loops",
    [
        *ORDERS,
        (4, 0),
        pytest.param(3, 1, marks=pytest.mark.slow),
        pytest.param(2, 2, marks=pytest.mark.slow),
        pytest.param(1, 3, marks=pytest.mark.slow),
    ],
)
def test_diagrams_are_the_series_of_an_integral(legs, loops):
    """Every diagram with its symmetry factor: without layers none of them vanishes."""
    order = 2 * (loops + legs - 1) - legs
    known = wick.cumulants(COUPLINGS, A, B, legs, order)[legs - 1][order]
    assert sum(map(of_numbers, graphs(legs, loops))) == sp.Rational(known)


@pytest.mark.parametrize("legs, loops", ORDERS)
def test_what_a_diagram_says_of_itself(legs, loops):
    for diagram in diagrams(legs, loops):
        assert (diagram.legs, diagram.loops) == (legs, loops)
        assert diagram.vanishes == (diagram.reason != "")
        ends = sum(n + m for n, m in diagram.vertices) + legs
        assert ends == 2 * len(diagram.propagators)
        assert 1 <= len(diagram.leg_orders) <= sp.factorial(legs)


def network_action(depth, features, coefficients):
    """The action of numbers, and its exact fields, propagators and vertices at the saddle point."""
    action = chain_action(depth, 1, features, lambda l: Coefficients(*coefficients[l - 1]))
    values = {sym.WIDTH: sp.S.One, sym.INPUT_WIDTH: sp.S.One, sym.data_kernel(): sp.Rational(1, 2)}
    for kernel, value in saddle_point(action).kernels.items():
        values[kernel] = value.xreplace(values).doit()

    def exact(entries):
        return np.vectorize(lambda e: sp.sympify(e).xreplace(values).doit(), otypes=[object])(
            np.array(entries, dtype=object)
        )

    @lru_cache
    def vertex(n, m):
        return exact(vertex_tensor(action, n, m))

    propagator = Propagator(hessian(action))
    lines = {"G12": exact(propagator.G12.tolist()), "G11": exact(propagator.G11.tolist())}
    return vertex, lines


def rationals(*texts):
    return [sp.Rational(text) for text in texts]


HIDDEN, SECOND, READOUT = (
    rationals("1/3", "1/7", "7/10"),
    rationals("2/5", 0, "4/5"),
    rationals("3/2", "1/5", 1),
)
COEFFICIENTS = [HIDDEN, SECOND, READOUT]


@pytest.mark.parametrize("legs, loops", ORDERS)
def test_networks_that_are_solved_at_every_width(legs, loops):
    """Linear ones: all layers, in fractions; and what is said to vanish does."""
    weights, biases, skips = zip(*COEFFICIENTS, strict=True)
    known, depth = linear_width.kernel_cumulants("1/2", weights, biases, skips[:-1]), 2
    vertex, lines = network_action(depth, lambda h: (h,), COEFFICIENTS)
    found, order = np.zeros((depth + 2,) * legs, dtype=object), loops + legs - 1
    for diagram in diagrams(legs, loops):
        value = contracted(diagram.graph, vertex, lines)
        assert not diagram.vanishes or not value.any()
        found = found + value
    for layers in combinations_with_replacement(range(depth + 2), legs):
        assert found[layers] == known(*layers).coeff_monomial(linear_width.eps**order)


@pytest.mark.parametrize("legs, loops", ORDERS)
def test_only_what_vanishes_is_said_to(legs, loops):
    """Three layers are enough for every other diagram: counted with arbitrary causal vertices."""
    size, random = 5, np.random.default_rng(legs + loops)

    @lru_cache
    def vertex(n, m):
        values = random.uniform(1, 2, (size,) * (n + m))
        for layers in np.ndindex(values.shape):
            if m and max(layers[n:]) >= max(layers[:n]):
                values[layers] = 0
        return values

    lines = {"G12": np.tril(np.ones((size, size))), "G11": np.ones((size, size))}
    for diagram in diagrams(legs, loops):
        assert diagram.vanishes == (not contracted(diagram.graph, vertex, lines).any())


def test_without_loops_it_is_the_propagator():
    th = ft.derive(depth=2)
    assert th.correction(legs=2, loops=0).expression.tomatrix() == th.propagator.G11


@pytest.mark.slow
def test_several_inputs():
    """The variance of one of two inputs does not know of the other."""
    one, two = (ft.derive(depth=1, inputs=P, activation="linear").correction() for P in (1, 2))
    alone = one.expression[2].doit()
    first = two.expression[6].doit()
    same = {sym.kernel(l, (0, 0), 2): sym.kernel(l) for l in range(3)}
    assert sp.simplify(first.xreplace(same) - alone) == 0
    assert two.expression.shape == (9,)


def test_latex_fits_an_article(tmp_path):
    th = ft.derive(depth=2)
    shown = {}
    for legs, loops in ORDERS:
        shown[f"sum {legs} {loops}"] = th.correction(legs, loops).latex()
        for number, diagram in enumerate(th.diagrams(legs, loops)):
            shown[f"{legs} {loops} {number}"] = diagram.latex()
    said = typeset(tmp_path, shown)
    # Pages that are too high are announced in the docstring.
    assert said == {}
    assert len(shown) == 5 + 122


@pytest.mark.slow
def test_latex_renders(katex_failures):
    th = ft.derive(depth=2)
    shown = {f"{k}": th.correction(*k).latex() for k in ORDERS}
    shown |= {"notebook": th.diagrams()[1]._repr_latex_().strip("$")}
    assert katex_failures(shown) == {}


def test_factors_are_written_where_they_are_not_one():
    found = [(_factor(d), d.symmetry_factor, len(d.leg_orders)) for d in diagrams(2, 1)]
    half = sp.Rational(1, 2)
    known = {("", 1, 1), ("(× 2)", 1, 2), ("1/2", half, 1), ("1/2 (× 2)", half, 2)}
    assert set(found) == known


@pytest.mark.slow
def test_tikz_compiles_in_the_width_of_an_article(tmp_path):
    pages = []
    for legs, loops in ORDERS:
        pages.append(ft.derive(depth=1).correction(legs, loops).tikz())
    pages += [diagram.tikz() for diagram in diagrams(1, 1)]
    start = r"\documentclass{article}\usepackage{tikz}\begin{document}\noindent"
    text = "\n".join([start, *[f"{page}\n\\clearpage" for page in pages], r"\end{document}"])
    said = pdflatex(tmp_path, text)
    if "File `tikz.sty' not found" in said:
        pytest.skip("TikZ is not installed")
    assert not [line for line in said.splitlines() if line.startswith(("!", "Overfull \\h"))]


def test_pictures():
    correction = ft.derive(depth=1).correction(legs=2, loops=1)
    assert isinstance(correction, Correction)
    every, some = correction.plot(), correction.plot(vanishing=False)
    drawn = [sum(bool(ax.patches) for ax in figure.axes) for figure in (every, some)]
    assert drawn == [22, 15]
    # Two halves of each line; the legend tells the styles.
    lines = [len(d.propagators) for d in correction.diagrams]
    assert [len(ax.patches) for ax in every.axes[:22]] == [2 * n for n in lines]
    assert [text.get_text() for text in every.legends[0].get_texts()] == ["$C$", r"$\tilde{C}$"]
    assert len(diagrams(1, 1)[0].plot().axes) == 1
