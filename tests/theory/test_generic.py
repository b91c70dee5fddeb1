"""Formulas for symbolic layers against the explicit derivation at depths 1 to 4."""

import itertools

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import family_action
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.formulas import FORMULAS
from fieldtheory.theory.scales import Layers
from fieldtheory.theory.typesetting.layer_quantities import (
    A,
    C,
    Correlator,
    Growth,
    K,
    LayerQuantity,
    SkipScale,
    Slope,
    Weight,
)
from fieldtheory.theory.typesetting.layout import Equation
from tests.examples import derivation
from tests.expanding import expand_averages
from tests.tables import slow
from tests.theory.test_observable import HalfLinear, TwoSlopes
from tests.theory.test_propagator import equal

SCALES = {
    "per layer": {"branch_scale": "per layer", "skip_scale": "per layer"},
    "paper": {},
    "one each": {"skip_scale": "symbol"},
    "feed-forward": {"skip_scale": 0, "branch_scale": 1},
}
depths = pytest.mark.parametrize("depth", [1, 2, 3, 4])
each_scale = pytest.mark.parametrize("scales", SCALES)
each_family = pytest.mark.parametrize("family", [ft.ResidualNetwork, HalfLinear, TwoSlopes])


def at_layers(formula, action, depth, family=ft.ResidualNetwork):
    """A formula at integer layers in the symbols of an explicit derivation."""
    formula = formula.doit()

    def coefficients(layer):
        of = family.readout if layer == depth + 1 else family.layer
        return of(sym.parameters(family, layer))

    rules = {
        C: sym.kernel,
        K: lambda i, j=None: action.covariance[i, i if j is None else j],
        A: lambda i, j: sp.Mul(*[sym.skip_scale(l) for l in range(j + 1, i + 1)]),
        Weight: lambda i: coefficients(i).weight,
        generic.Bias: lambda i: coefficients(i).bias,
        SkipScale: sym.skip_scale,
    }
    found = {name: rules[type(name)](*map(int, name.args)) for name in formula.atoms(*rules)}
    return formula.xreplace(found)


def explicit(formula, depth):
    return at_layers(formula, derivation(depth).network_action, depth)


@depths
def test_saddle_point(depth):
    found = derivation(depth).saddle_point.kernels
    for l in range(1, depth + 2):
        formula = explicit(generic.residual_kernel(l), depth)
        assert sp.expand(formula - found[sym.kernel(l)]) == 0


@pytest.mark.parametrize("apart", [False, True])
def test_action(apart):
    """Its sums over layers at L = 2, the readout in the sum or apart."""
    action = derivation(2).network_action
    S = explicit(generic.action(sp.Integer(2), ft.ResidualNetwork, apart), 2)
    S = S.xreplace({generic.Conjugate(l): sym.conjugate(l) for l in range(4)})
    fields = list(zip(action.relative_widths, action.kernels, action.conjugates, strict=True))
    (entropy,) = S.atoms(sp.log)
    constraints = sp.Add(*[width * C * conjugate for width, C, conjugate in fields])
    assert sp.expand(S - sym.WIDTH * (entropy - constraints)) == 0
    observables = zip(action.observables, action.conjugates, strict=True)
    sources = sp.Add(*[g * source for g, source in observables])
    assert sp.expand(entropy.args[0].args[0].args[0] - sources) == 0


@depths
def test_kernel(depth):
    covariance = derivation(depth).network_action.covariance
    for l in range(depth + 1):
        assert sp.expand(explicit(generic.kernel(l), depth) - covariance[l, l]) == 0


@depths
def test_mixed_block(depth):
    S21 = derivation(depth).hessian.S21
    for k, l in itertools.product(range(1, depth + 2), range(depth + 2)):
        assert expand_averages(explicit(generic.mixed_block(k, l), depth) - S21[k, l]) == 0


@depths
def test_source_block(depth):
    S22 = derivation(depth).hessian.S22
    for k, l in itertools.product(range(1, depth + 2), repeat=2):
        difference = explicit(generic.source_block(min(k, l), max(k, l)), depth) - S22[k, l]
        assert expand_averages(difference.rewrite(GaussianAverage)) == 0


@pytest.mark.slow_but(0)
@depths
def test_response(depth):
    """The recursion with the explicit G12 put in, and the running product."""
    G12 = derivation(depth).propagator.G12
    for l, m in itertools.product(range(1, depth + 2), range(depth + 2)):
        if m > l:
            continue
        recursion = generic.response_recursion(l, m).doit()
        known = {g: G12[tuple(map(int, g.args))] for g in recursion.atoms(generic.G12)}
        assert equal(explicit(recursion.xreplace(known), depth), G12[l, m])
        if l > m:
            assert equal(explicit(generic.response_product(l, m), depth), G12[l, m])


@pytest.mark.parametrize("depth", [1, slow(2)])
def test_covariance(depth):
    th = derivation(depth)
    for l, m in itertools.product(range(1, depth + 2), repeat=2):
        formula = generic.kernel_propagator(l, m).doit()
        known = {g: th.propagator.G12[tuple(map(int, g.args))] for g in formula.atoms(generic.G12)}
        known |= {s: th.hessian.S22[tuple(map(int, s.args))] for s in formula.atoms(generic.S22)}
        assert equal(formula.xreplace(known), th.propagator.G11[l, m])


def at_numbers(name, n):
    """A block of the table at the numbers of layers, in short symbols."""
    (array,) = FORMULAS[name](n)
    return array.right


def notation(family, depth, scales=None, inputs=1):
    layers = Layers.of_scales(family, scales) if scales else Layers(family)
    return Notation(layers, sp.Integer(depth), inputs, None, True)


@pytest.mark.slow_but(0)
@depths
@each_scale
def test_matrices_in_short_symbols_are_those_of_the_derivation(depth, scales):
    th = ft.derive(depth, **SCALES[scales])
    n = notation(th.family, depth, th.scales)
    for name in ("S21", "S22", "G12"):
        short, derived = at_numbers(name, n), th.block(name)
        assert {type(name) for name in short.atoms(LayerQuantity)} <= {
            *(Weight, Slope, Correlator, Growth, SkipScale, A)
        }
        for i, j in itertools.product(range(depth + 2), repeat=2):
            found = at_layers(n.written_out(short[i, j]), th.network_action, depth)
            assert equal(found.rewrite(GaussianAverage), derived[i, j].rewrite(GaussianAverage))


@pytest.mark.slow_but(0)
@each_family
def test_definitions_for_any_layer_are_those_at_each(family):
    """What is listed below a formula for symbolic layers, at every layer of three."""
    depth, l, k = 3, generic.l, generic.k
    listed = definitions(family, depth, 1, Slope(l) * Correlator(k, l) * Growth(l))
    assert listed["M'_{l}"] == generic.susceptibility(l, family)
    assert listed["Q_{k l}"] == generic.correlator(k, l, family)
    assert listed["r_{l}"] == SkipScale(l) ** 2 + Weight(l) * Slope(l - 1)
    block = notation(family, depth).short(generic.source_block(k, l, family))
    assert block == sym.WIDTH * Weight(k) * Weight(l) * Correlator(k - 1, l - 1)

    action = family_action(family, depth)
    for place in range(depth + 1):
        slope = at_layers(generic.susceptibility(place, family), action, depth, family)
        row = action.derivative((place + 1,)).diff(action.kernels[place])
        weight = at_layers(Weight(place + 1), action, depth, family)
        assert expand_averages(slope - row / (sym.WIDTH * weight)) == 0


@pytest.mark.parametrize("depth", [1, slow(2)])
def test_blocks_of_two_inputs_are_those_of_one_with_matrices(depth):
    """Between layers k and l the Hessian of a pair is that of one input, M' and Q matrices."""
    pair, n = derivation(depth, 2), notation(ft.ResidualNetwork, depth)
    action = derivation(depth).network_action
    one, other = (at_numbers(name, n) / sym.WIDTH for name in ("S21", "S22"))

    def block(matrix, k, l):
        return matrix[3 * k : 3 * k + 3, 3 * l : 3 * l + 3] / sym.WIDTH

    def factor(entry):
        entry = entry.replace(Slope, lambda l: sp.S.One).replace(Correlator, lambda k, l: sp.S.One)
        return at_layers(n.written_out(entry), action, depth)

    for k, l in itertools.product(range(depth + 2), repeat=2):
        slope = matrix_of_slopes(k - 1) if k > l else sp.eye(3)
        found = block(pair.hessian.S21, k, l) - factor(one[k, l]) * slope
        assert found.applyfunc(expand_averages).is_zero_matrix
        if k * l > 0:
            for i, j in itertools.product(range(3), repeat=2):
                expected = factor(other[k, l]) * correlator(depth, k, l, i, j)
                assert block(pair.hessian.S22, k, l)[i, j] == expected


def correlator(depth, k, l, i, j):
    """Q of two pairs of inputs in the layers before k and l."""
    action, pairs = derivation(depth, 2).network_action, sym.pairs(2)
    one, other = (
        sp.Mul(*[sym.phi(sym.signal(layer - 1, sample, 2)) for sample in pairs[pair]])
        for layer, pair in ((k, i), (l, j))
    )
    return ConnectedCorrelator(one, other, action.variables, action.covariance)


def matrix_of_slopes(layer):
    """M'_l of two inputs, from the entries listed below a formula."""
    listed = definitions(ft.ResidualNetwork, 2, 2, Slope(generic.l))
    covariance = derivation(2, 2).network_action.covariance[2 * layer : 2 * layer + 2, :]
    covariance = covariance[:, 2 * layer : 2 * layer + 2]
    signals = [sym.signal(layer, sample, 2) for sample in (0, 1)]

    def entry(pairs, alpha, beta):
        names = dict(zip(("alpha", "beta"), (signals[alpha], signals[beta]), strict=True))
        expression = listed[f"(M'_{{l}})_{{{pairs}}}"]
        factor, node = expression.as_coeff_Mul()
        own = {v: names[v.name.split("\\")[-1].strip("}")] for v in node.variables}
        return factor * GaussianAverage(node.integrand.xreplace(own), signals, covariance)

    same, mixed = (rf"\{a} \{b}, \{a} \{b}" for a, b in (("alpha",) * 2, ("alpha", "beta")))
    first, second = (rf"\alpha \beta, \{a} \{a}" for a in ("alpha", "beta"))
    return sp.Matrix(
        [
            [entry(same, 0, 1), 0, 0],
            [entry(first, 0, 1), entry(mixed, 0, 1), entry(second, 0, 1)],
            [0, 0, entry(same, 1, 0)],
        ]
    )


def definitions(family, depth, inputs, shown):
    """What is listed below an expression, by what stands left."""
    listed = notation(family, depth, inputs=inputs).definitions([Equation("x", shown)], False)
    return {e.left: e.right for e in listed}
