"""The action of networks of a stream and branches, and what follows from it."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sp
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.block_action import block_action
from fieldtheory.theory.block_formulas import FORMULAS, HiddenAverage, OneLayer, SampleSkip
from fieldtheory.theory.diagrams.loop_expansion import Correction
from fieldtheory.theory.evaluation import block_function
from fieldtheory.theory.hessian import hessian
from fieldtheory.theory.propagator import Propagator
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layer_quantities import A
from fieldtheory.theory.typesetting.layout import Equation
from tests.expanding import expand_averages
from tests.oracles import gram_chain
from tests.tables import slow
from tests.test_derivations import compiled, complaints
from tests.theory.test_action import at_zero
from tests.theory.test_appendix import of_document
from tests.theory.typesetting.test_latex import GOLDEN, typeset
from tests.theory.typesetting.test_symbols import undefined

PHI = {"tanh": np.tanh, "erf": erf, "relu": lambda x: np.maximum(x, 0), "linear": lambda x: x}
K0 = {1: 0.7, 2: np.array([[1.0, 0.3], [0.3, 0.5]])}


def network(activation, norm=None, position="pre", gated=False, depth=2):
    """Two different layers where there are two, all parameters different from one and zero."""
    return ft.BlockNetwork(
        depth=depth,
        activation=activation,
        branch_scale=[0.7, 0.4][:depth],
        skip_scale=0.9,
        normalization=norm,
        norm_position=position,
        epsilon=0.1,
        gated=gated,
        expansion=2.0,
        inner_weight_variance=1.5,
        gate_weight_variance=0.8 if gated else None,
        outer_weight_variance=1.3,
        inner_bias_variance=0.1,
        outer_bias_variance=0.05,
        readout_weight_variance=1.2,
        readout_bias_variance=0.2,
        width=24,
    )


def oracle(net):
    """The same for the oracle."""
    factors = (PHI[net.activation.name], PHI["linear"])[: 1 + net.gated]
    gate = (net.gate_weight_variance,) if net.gated else ()
    return gram_chain.Blocks(
        factors,
        net.branch_scale,
        (net.skip_scale,) * net.depth,
        (net.inner_weight_variance, *gate),
        net.inner_bias_variance,
        net.outer_weight_variance,
        net.outer_bias_variance,
        net.readout_weight_variance,
        net.readout_bias_variance,
        net.normalization,
        net.norm_position == "post",
        net.epsilon,
        net.expansion,
    )


@cache
def theory(*of, inputs=1, **changes):
    return ft.derive(network(*of, **changes), inputs)


def places(action, letter):
    return [j for j, field in enumerate(action.kernels) if field.name.startswith(letter)]


NETWORKS = [
    ("tanh", None, "pre", False),
    ("erf", "rms", "pre", False),
    ("relu", "rms", "post", False),
    ("tanh", "layer", "post", True),
    ("relu", "layer", "pre", True),
    ("linear", None, "pre", False),
]


# Of two inputs, one network for each round of tests.
CASES = [(1, of) for of in NETWORKS] + [(2, NETWORKS[-1])]
CASES += [pytest.param(2, of, marks=pytest.mark.slow) for of in NETWORKS if (2, of) not in CASES]


@pytest.mark.slow_but(5)
@pytest.mark.parametrize("inputs, of", CASES, ids=str)
def test_propagators_are_those_of_the_recursion(of, inputs):
    """G11 of C and of X, and responses, against four lines of quadrature and differences."""
    net, th, p = network(*of), theory(*of, inputs=inputs), inputs * (inputs + 1) // 2
    G11, G12 = (th.lambdify(name)(net, K0[inputs]) for name in ("G11", "G12"))
    of_kernels = places(th.network_action, "C")
    expected = gram_chain.residual_covariance(oracle(net), K0[inputs])

    def blocks(G):
        own = G[np.ix_(of_kernels, of_kernels)].reshape(4, p, 4, p)
        return net.width * own.swapaxes(1, 2)

    close = {"rtol": 1e-7, "atol": 1e-8}
    np.testing.assert_allclose(blocks(G11), expected, **close)
    # A source of a branch is one of M units.
    response = blocks(G12) * np.array([1, 2, 2, 1])[:, None, None]
    expected = gram_chain.residual_response(oracle(net), K0[inputs])
    np.testing.assert_allclose(response, expected, **close)
    layers = gram_chain.layers(oracle(net), K0[inputs])
    for l, layer in enumerate(layers):
        own = places(th.network_action, f"X^{{({l})}}")
        np.testing.assert_allclose(net.width * G11[np.ix_(own, own)], layer.V, **close)


@pytest.mark.parametrize("of", [slow(("tanh", "rms", "post")), ("erf", None)], ids=str)
def test_loops_of_the_action_are_the_shift_of_the_mean(of):
    net, th = network(*of), theory(*of)
    loops = Correction(th.network_action, th.propagator, 1, 1).expression
    values = block_function(th.saddle_point.kernels, sp.ImmutableMatrix([list(loops)]), 1)
    found = values(net, K0[1], None, "derivative")[0]
    expected = [layer.m[0] for layer in gram_chain.layers(oracle(net), K0[1])]
    own = found[places(th.network_action, "X")]
    np.testing.assert_allclose(net.width * own, expected, rtol=1e-4, atol=1e-6)


def vanishes(expr):
    """Whether an expression in averages is zero, with those of polynomials written out."""
    expr = expand_averages(expr.rewrite(GaussianAverage))
    nodes = expr.atoms(GaussianAverage)
    polynomials = [e for e in nodes if e.integrand.is_polynomial(*e.variables)]
    expr = expr.xreplace({e: e.doit() for e in polynomials})
    return sp.simplify(expr.xreplace({e: sp.Dummy() for e in nodes})) == 0


@pytest.mark.parametrize(
    "of", [("tanh", "rms", "post"), slow(("erf", "rms", "pre", True))], ids=str
)
def test_hessian_by_differentiating_the_whole_action_first(of):
    th = theory(*of, depth=1)
    action, H = th.network_action, th.hessian
    C, Ct = action.kernels, action.conjugates
    assert at_zero(action, action.expression) == 0 and H.S11.is_zero_matrix and H.S21.is_lower
    for k, conjugate in enumerate(Ct):
        slope = action.expression.diff(conjugate)
        for l, other in enumerate(Ct):
            assert vanishes(at_zero(action, slope.diff(C[l])) - H.S21[k, l])
            assert k > l or vanishes(at_zero(action, slope.diff(other)) - H.S22[k, l])


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("of", [n for n in NETWORKS if n[1] != "layer"], ids=str)
def test_what_is_printed_follows_from_the_propagator(of):
    """V' = J V J + S with the printed J and S is N G11 of one layer."""
    n = OneLayer(network(*of), False)
    G11 = Propagator(hessian(n.action)).G11
    X, Y = (n.field("X", layer) for layer in (0, 1))
    place = n.action.kernels.index(Y)
    found = n.in_gram(sp.Symbol("N", positive=True) * G11[place, place])
    masks = {e: sp.Dummy() for e in found.atoms(GaussianAverage, ConnectedCorrelator)}
    difference = found - (n.slope() ** 2 * 2 * X**2 + n.noise())
    assert sp.simplify(difference.xreplace(masks)) == 0


@pytest.mark.parametrize("norm", [None, "rms"])
def test_the_printed_action_has_the_printed_derivatives(norm):
    """At L = 1, where the stream has two layers, and at its saddle point."""
    n = OneLayer(network("tanh", norm), False)
    (action,), S21 = FORMULAS["action"](n), {e.left: e.right for e in FORMULAS["S21"](n)}
    branch, (start, out) = n.action.populations[1], n.ends
    S = action.right.subs(sym.DEPTH, 1).doit()
    units = {
        (n, "C", 1): sym.HIDDEN_WIDTH,
        (n, "X", 1): 2 * sym.WIDTH,
        (start, "C", 0): sym.INPUT_WIDTH * sym.WIDTH,
        (out, "C", 2): sym.WIDTH,
    }
    for (of, letter, layer), number in units.items():
        field, conjugate = (of.field(f, layer) for f in (letter, rf"\tilde{{{letter}}}"))
        assert S.diff(field) == -number * conjugate
        entry = rf"S_{{21}}\bigl[{latex(field)}, {latex(field)}\bigr]"
        assert S21.pop(entry) == -number / (2 if letter == "X" else 1)
    X, before = n.field("X", 1), n.at("m", "l", "L + 1").field("C", 0)
    assert (
        S21[rf"S_{{21}}\bigl[{latex(X)}, {latex(before)}\bigr]"]
        == sym.WIDTH * A(generic.l, generic.m) ** 2
    )
    C, conjugate = (n.field(f, 1) for f in ("C", r"\tilde{C}"))
    S = S.replace(HiddenAverage, lambda F: GaussianAverage(F, branch.variables, branch.covariance))
    slope = S.diff(conjugate).subs(conjugate, 0).doit()
    assert vanishes(slope - sym.HIDDEN_WIDTH * (n.mean("C", 1) - C))


def test_units_without_their_mean_are_one_fewer_in_the_expression():
    of = {norm: block_action(network("tanh", norm, depth=1)) for norm in ("rms", "layer")}
    difference = sp.expand(of["rms"].expression - of["layer"].expression)
    assert isinstance(difference, sp.log) and "x^{(0)}" in str(difference)
    assert of["rms"].derivative((3,)) == of["layer"].derivative((3,))


def test_parameters_that_differ_from_layer_to_layer_have_an_index():
    names = set(theory("tanh").symbols)
    assert {"rho_1", "rho_2", "gamma", "sigma_w", "N", "M"} < names and "rho" not in names
    plain = ft.derive(network("tanh").replace(branch_scale=0.5, outer_weight_variance=[1, 2]))
    assert {"rho", "sigma_wprime_1", "sigma_wprime_2"} < set(plain.symbols)


def test_saddle_point_in_latex():
    shown = theory("tanh", "rms", "post").latex("saddle_point")
    golden = GOLDEN / "saddle_point_of_blocks.tex"
    assert shown + "\n" == golden.read_text(encoding="utf-8")


# Blocks stand in the Hessian and the propagator.
SHOWN = [q for q in FORMULAS if q not in ("S12", "S21", "S22", "G12", "G21", "G11")]


@cache
def displays():
    return {
        f"{of} {inputs} {quantity}": theory(*of, inputs=inputs).latex(quantity)
        for of, inputs in ((("tanh", "layer", "post"), 1), (("erf", "rms", "pre", True), 2))
        for quantity in SHOWN
    }


@pytest.mark.slow
def test_every_formula_fits_the_page_and_renders(tmp_path, katex_failures):
    assert katex_failures(displays()) == {}
    assert typeset(tmp_path, displays()) == {}


@pytest.mark.parametrize(
    "of, inputs, column",
    [
        (("tanh", "layer", "post"), 2, 246),
        (("erf", "rms", "pre", True), 1, 246),
        slow(("tanh", "layer", "post"), 1, 345),
        slow(("erf", "rms", "pre", True), 2, 345),
        slow(("gelu",), 2, 246),
    ],
)
def test_documents_compile_and_list_their_symbols(of, inputs, column, tmp_path):
    text = theory(*of, inputs=inputs).document(width=column)
    tex = tmp_path / "source" / "blocks.tex"
    tex.parent.mkdir()
    tex.write_text(text, encoding="utf-8")
    assert complaints(compiled(tex, tmp_path)) == []
    assert ("[twocolumn]" in text) == (column == 246) and not re.search("<<|[?]>", text)
    used, known = of_document(text)
    # Differentials, what any two observables are called, sizes of brackets, a limit.
    assert used - known <= {"d", "B", r"\big", r"\Big", r"\to"}
    assert known <= used


@pytest.mark.parametrize("of", [("tanh", "layer", "post"), ("erf", "rms", "pre", True)])
@pytest.mark.parametrize("inputs", [1, 2])
def test_every_symbol_of_a_result_is_defined(of, inputs):
    th = theory(*of, inputs=inputs)
    listed = re.sub(r"\\text\{.*?\}", "", th.latex("symbols"))
    # Indices of variances are w and b.
    found = {q: undefined(th.latex(q), listed) - {"w", "b"} for q in FORMULAS}
    assert not any(found.values()), found


def renamed(expr, **layers):
    """With numbers for layers in the names of fields."""
    rules = {}
    for s in expr.free_symbols:
        name = re.sub(r"\((j|m)( - 1)?\)", lambda x: f"({layers[x[1]] - bool(x[2])})", s.name)
        rules[s] = sp.Symbol(name, **s.assumptions0) if name != s.name else s
    return expr.xreplace(rules)


@pytest.mark.parametrize("position", ["pre", "post"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_the_printed_covariance_of_the_stream_is_that_of_the_action(position, inputs):
    net = network("tanh", "rms", position)
    K = block_action(net, names=replace(OneLayer(net, inputs > 1).names, layers=tuple("0123")))
    K = K.populations[0].covariance
    rows = OneLayer(net, inputs > 1).definitions([Equation("", r"\Sigma")])
    (covariance,) = (row.right for row in rows if r"\Sigma" in row.left)
    (skip,) = (row.right for row in rows if row.left.startswith("A"))

    def carried(last, first, sample):
        if position == "pre":
            return skip.subs({generic.l: last, generic.m: first})
        factors = [renamed(skip.function, j=j) for j in range(first + 1, last + 1)]
        alpha, own = (rf"_{{{x} {x}}}" for x in (r"\alpha", sample))
        return sp.Mul(
            *[
                f.xreplace(
                    {
                        s: sp.Symbol(s.name.replace(alpha, own), positive=True)
                        for s in f.free_symbols
                        if alpha in s.name
                    }
                )
                for f in factors
            ]
        )

    for k, l in ((0, 0), (0, 2), (1, 2), (2, 2)):
        layers, terms = {generic.k: k, generic.l: l}, []
        for first in range(k + 1):
            term = renamed(covariance.function, m=first)
            for e in term.atoms(A, SampleSkip):
                term = term.subs(e, carried(layers[e.args[0]], first, str(e.args[-1])))
            terms.append(term)
        size = 4 if inputs > 1 else 1
        row, column = k * size, l * size + (inputs > 1)
        assert sp.simplify(sp.Add(*terms) - K[row, column]) == 0


class Mixed(ft.BlockNetwork):
    def stream(self, R, parameters):
        return R.xy + R.xx * R.yy


REFUSED = [
    (
        lambda: ft.derive(Mixed(depth=1), 2),
        "stream of Mixed must rescale every input, .* got X.*2",
    ),
    (
        lambda: ft.derive(network("tanh").replace(branch_scale=[[0.1, 0.2], [0.3, 0.4]])),
        "batch axes",
    ),
    (lambda: ft.derive(network("tanh"), 0), "inputs must be an integer >= 1, got 0"),
    (lambda: theory("tanh").latex("hesian"), "did you mean hessian"),
    (lambda: theory("tanh").latex("action", width=10), "width must be"),
    (lambda: theory("tanh").lambdify("G33"), "quantity must be one of S11, .* got 'G33'"),
    (lambda: theory("tanh").lambdify("S21")(network("erf"), 0.5), "network must have the action"),
    (lambda: theory("tanh").lambdify("S21")(network("tanh", depth=1), 0.5), "the action of"),
    (
        lambda: theory("tanh").lambdify("S21")(network("tanh"), K0[2]),
        r"K0 must have shape \(1, 1\)",
    ),
]


@pytest.mark.parametrize("call, message", REFUSED)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    with pytest.raises(TypeError, match="network must be a BlockNetwork, got a ResidualNetwork"):
        theory("tanh").lambdify("S21")(ft.ResidualNetwork(depth=2), 0.5)
