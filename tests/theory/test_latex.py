"""LaTeX: notation, and every string the package can produce through KaTeX and MathML."""

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.report.document import mathml
from fieldtheory.theory import notation as sym
from fieldtheory.theory.derivation import QUANTITIES
from fieldtheory.theory.generic import layer_formulas
from fieldtheory.theory.latex import aligned, latex
from tests.examples import derivation

LARGE = [(2, 2, "erf"), (2, 2, "relu"), (10, 1, None), (10, 1, "erf"), (10, 1, "relu")]
CASES = [
    *[(depth, 1, name) for depth in (1, 2, 3) for name in (None, "erf", "relu")],
    *[(1, 2, name) for name in (None, "erf", "relu")],
    *[(1, 1, name) for name in ("gelu", "leaky_relu", "tanh")],
    (2, 2, None),
    # Eleven columns, one more than a pmatrix can have.
    (9, 1, "linear"),
    *[pytest.param(*case, marks=pytest.mark.slow) for case in LARGE],
]
# These hold all the blocks; large ones are slow enough not to be read twice.
TOGETHER = ("action", "saddle_point", "hessian", "propagator")


def strings(depth, inputs, activation):
    th = derivation(depth, inputs, activation)
    return {q: th.latex(q) for q in QUANTITIES}


@pytest.mark.parametrize("depth, inputs, activation", CASES)
def test_every_quantity_renders(depth, inputs, activation, katex_failures):
    found = strings(depth, inputs, activation)
    assert katex_failures({q: found[q] for q in (QUANTITIES if depth < 3 else TOGETHER)}) == {}
    for name in TOGETHER:
        assert mathml(found[name]).startswith("<math")


def test_layer_formulas_render(katex_failures):
    found = layer_formulas()
    assert katex_failures(found) == {}
    for formula in found.values():
        assert mathml(formula).startswith("<math")


def test_failures_are_seen(katex_failures):
    th = derivation(1)
    broken = {"half": th.latex("S21")[:-10], "word": th.latex("S21").replace(r"\left", r"\lefft")}
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


def test_blocks_of_ten_layers_are_arrays():
    text = derivation(10, activation="erf").latex("S22")
    assert r"\begin{array}{cccccccccccc}" in text


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
    assert correlator.endswith(r"_{\mathcal{N}(0, K^{(0,2)})}")


def test_variables_that_are_not_signals_show_their_covariance():
    x, K = sp.symbols("x K", positive=True)
    assert latex(GaussianAverage(sp.tanh(x) ** 2, x, K)).endswith(
        r"_{\mathcal{N}\left(0, K\right)}"
    )


def test_saddle_point_of_a_pair_is_starred_once():
    text = derivation(1, 2).latex("saddle_point")
    assert "C^{(1)}_{1 2, *} &=" in text
    assert r"\tilde{C}^{(2)}_{2 2, *} &= 0" in text
    assert "_*" not in text


def test_zero_blocks_are_zero():
    th = derivation(2)
    assert th.latex("S11") == r"\mathcal{S}_{11} = 0"
    assert th.latex("G22") == r"\mathcal{G}_{22} = 0"
    assert th.latex("hessian").count("&=") == 4


@pytest.mark.parametrize("depth, written_out", [(3, True), (4, False)])
def test_large_covariances_are_products(depth, written_out):
    text = derivation(depth).latex("G11")
    assert ("pmatrix" in text) == written_out
    assert (text == r"\mathcal{G}_{11} = \mathcal{G}_{12} \mathcal{S}_{22} \mathcal{G}_{21}") == (
        not written_out
    )


def test_latex_can_be_read_back_number_by_number():
    """The printed response at depth one, read by SymPy's parser, is the response."""
    printed = ft.derive(1, activation="linear", branch_scale=1, skip_scale=0).propagator.G12[1, 0]
    expected = sym.WEIGHT**2 / (sym.WIDTH * sym.INPUT_WIDTH)
    assert sp.simplify(printed.doit() - expected) == 0
    assert latex(expected) == r"\frac{\sigma_{w}^{2}}{N \nu_{0}}"


def test_aligned():
    assert aligned([("a", "b"), ("c", "d")]) == (
        "\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}"
    )


@pytest.mark.parametrize("quantity", ["S33", "", "Hessian", None])
def test_unknown_quantity(quantity):
    with pytest.raises(ValueError, match="quantity must be one of action, saddle_point, hessian"):
        derivation(1).latex(quantity)
