"""Short symbols stand for what the derivation has, and nothing else."""

import itertools

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import family_action
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.layer_quantities import (
    A,
    Bias,
    Correlator,
    Growth,
    LayerQuantity,
    SkipScale,
    Slope,
    Weight,
)
from fieldtheory.theory.layout import Equation
from fieldtheory.theory.shorthand import Layers, Shorthand, skips_gathered
from tests.examples import derivation
from tests.expanding import expand_averages
from tests.theory.test_observable import HalfLinear
from tests.theory.test_propagator import equal

SCALES = {
    "per layer": {"branch_scale": "per layer", "skip_scale": "per layer"},
    "paper": {},
    "one each": {"skip_scale": "symbol"},
    "feed-forward": {"skip_scale": 0, "branch_scale": 1},
}
each_depth = pytest.mark.parametrize("depth", [1, 2, 3, 4])
each_scale = pytest.mark.parametrize("scales", SCALES)


def derived(depth, scales):
    th = ft.derive(depth, **SCALES[scales])
    return th, Shorthand(Layers.of_scales(th.family, th.scales), depth)


@each_depth
@each_scale
def test_blocks_of_the_hessian_written_out_are_those_of_the_derivation(depth, scales):
    th, short = derived(depth, scales)
    assert short.written_out(short.hessian.S21) == th.hessian.S21
    assert short.written_out(short.hessian.S22) == th.hessian.S22
    assert short.written_out(short.action.expression) == th.action
    gathered = short.hessian.S21.applyfunc(skips_gathered)
    assert short.written_out(gathered) == th.hessian.S21


@each_depth
@each_scale
def test_propagators_written_out_are_those_of_the_derivation(depth, scales):
    th, short = derived(depth, scales)
    found = short.written_out(short.G12)
    for i, j in itertools.product(range(depth + 2), repeat=2):
        assert equal(found[i, j], th.propagator.G12[i, j])


@pytest.mark.parametrize("depth", [1, 2])
def test_fluctuations_written_out_are_those_of_the_derivation(depth):
    th, short = derived(depth, "per layer")
    found = short.written_out(short.G11)
    for i, j in itertools.product(range(depth + 2), repeat=2):
        assert equal(found[i, j], th.propagator.G11[i, j])


@each_scale
def test_the_hessian_holds_short_symbols_alone(scales):
    _, short = derived(3, scales)
    for block in (short.hessian.S21, short.hessian.S22, short.G12):
        assert block.free_symbols <= {sym.WIDTH, sym.INPUT_WIDTH, sym.skip_scale()}
    kinds = {type(name) for name in short.hessian.S21.atoms(LayerQuantity)}
    assert {Weight, Slope} <= kinds <= {Weight, Slope, SkipScale}


def test_a_wrong_meaning_is_seen():
    th, short = derived(2, "per layer")
    wrong = short.meanings | {Slope(1): short.meanings[Slope(0)]}
    found = short.hessian.S21.xreplace(wrong).xreplace(wrong)
    assert found != th.hessian.S21


@pytest.mark.parametrize("family", [ft.ResidualNetwork, HalfLinear])
def test_definitions_for_any_layer_are_the_meanings_at_each(family):
    """What is listed below a formula for symbolic layers, at every layer of three."""
    depth, l, k = 3, generic.l, generic.k
    short = Shorthand(Layers(family), depth)
    listed = definitions(family, depth, 1, Slope(l) * Correlator(k, l) * Growth(l))
    square = generic.source_block(k + 1, l + 1, family)
    square /= sym.WIDTH * Weight(k + 1) * Weight(l + 1)
    assert listed["M'_{l}"] == generic.susceptibility(l, family)
    assert listed["Q_{k l}"] == square
    assert listed["r_{l}"] == SkipScale(l) ** 2 + Weight(l) * Slope(l - 1)

    network = family(depth=depth, branch_scale=[0.1, 0.2, 0.3], skip_scale=[0.5, 0.6, 0.7])
    action = family_action(family, depth)
    assert ft.derive(network).network_action.covariance == action.covariance
    for place in range(depth + 1):
        slope = generic.explicit(generic.susceptibility(place, family), action, depth, family)
        assert expand_averages(slope - short.written_out(Slope(place))) == 0
    for first, second in itertools.combinations(range(depth + 1), 2):
        block = generic.source_block(first + 1, second + 1, family)
        block /= sym.WIDTH * Weight(first + 1) * Weight(second + 1)
        node = generic.explicit(block, action, depth, family)
        assert expand_averages(node - short.written_out(Correlator(first, second))) == 0
    for layer in range(1, depth + 1):
        ratio = generic.explicit(generic.growth(layer, family), action, depth, family)
        assert expand_averages(ratio - short.written_out(Growth(layer))) == 0


@pytest.mark.parametrize("depth", [1, 2])
def test_blocks_of_two_inputs_are_those_of_one_with_matrices(depth):
    """Between layers k and l the Hessian of a pair is that of one input, M' and Q matrices."""
    pair, short = derivation(depth, 2), Shorthand(Layers(ft.ResidualNetwork), depth)
    S21, S22 = pair.hessian.S21, pair.hessian.S22

    def block(matrix, k, l):
        return matrix[3 * k : 3 * k + 3, 3 * l : 3 * l + 3]

    for k, l in itertools.product(range(depth + 2), repeat=2):
        found, entry = block(S21, k, l), short.hessian.S21[k, l]
        factor = short.written_out(entry.xreplace({Slope(k - 1): sp.S.One}))
        slope = matrix_of_slopes(k - 1) if k > l else sp.eye(3)
        assert (found - factor * slope).applyfunc(expand_averages).is_zero_matrix
        if k * l > 0:
            factor = short.written_out(short.hessian.S22[k, l].replace(Correlator, lambda *_: 1))
            for i, j in itertools.product(range(3), repeat=2):
                assert block(S22, k, l)[i, j] == factor * correlator(depth, k, l, i, j)


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
    notation = Notation(Layers(family), sp.Integer(depth), inputs, None, True)
    return {e.left: e.right for e in notation.definitions([Equation("x", shown)], False)}


def test_skips_of_several_layers_are_gathered():
    one, two, four = SkipScale(1), SkipScale(2), SkipScale(4)
    assert skips_gathered(3 * one**2 * two**2) == 3 * A(2, 0) ** 2
    for other in (one**2, one**2 * two, one**2 * four**2, Bias(1)):
        assert skips_gathered(other) == other
