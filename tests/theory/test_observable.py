"""Another observable in the action changes every number and formula, with no other edit."""

from dataclasses import dataclass, fields

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.family import FAMILIES
from fieldtheory.numerics.solution import Solution
from fieldtheory.theory.formulas import FORMULAS, SATURATION
from tests.examples import K0_PAIR, oracle
from tests.oracles import recursion

SHARE = sp.Rational(1, 4)


@dataclass(frozen=True, kw_only=True)
class HalfLinear(ft.ResidualNetwork):
    """A residual network with the observable φ(x) φ(y) + x y/4: a second map of half the signal."""

    @staticmethod
    def features(phi, h, parameters):
        return phi(h), h / 2

    @staticmethod
    def branch(features, affine, parameters):
        weight, bias = parameters["weight_variance"], parameters["bias_variance"]
        first, second = features
        return parameters["branch_scale"] * (
            affine(first, weight, bias) + affine(second, weight, 0)
        )


@dataclass(frozen=True, kw_only=True)
class TwoSlopes(ft.ResidualNetwork):
    """A residual network with the observable φ(x) φ(y) + φ(2x) φ(2y)/4, which saturates as φ²."""

    @staticmethod
    def features(phi, h, parameters):
        return phi(h), phi(2 * h) / 2


def plain(net):
    """The residual network of the same parameters."""
    return ft.ResidualNetwork(**{f.name: getattr(net, f.name) for f in fields(net)})


def network(activation="erf", **changes):
    parameters = {"depth": 3, "branch_scale": [0.5, 0.8, 0.3], "skip_scale": 0.7, "width": 100}
    return HalfLinear(activation=activation, **(parameters | changes))


def moment(a, b, c):
    """⟨erf(x) erf(y)⟩ + ⟨x y⟩/4, typed (Williams 1997)."""
    det = 1 + 2 * a + 2 * b + 4 * (a * b - c**2)
    return 2 / np.pi * np.arctan2(2 * c, np.sqrt(det)) + c / 4


def linear_twin(net):
    """The network of the family's features h and h/2 is linear, of larger weights."""
    parameters = {name: getattr(net, name) for name in ("depth", "branch_scale", "skip_scale")}
    wider = float(1 + SHARE) * net.weight_variance
    return ft.ResidualNetwork(
        activation="linear", weight_variance=wider, width=net.width, **parameters
    )


@pytest.mark.parametrize("K0", [0.4, K0_PAIR], ids=["one", "two"])
def test_kernels_and_responses(K0):
    net = network()
    C, K = recursion.kernels(oracle(net), np.atleast_2d(K0), moment)
    s = ft.solve(net, K0)
    np.testing.assert_allclose(np.reshape(s.kernels, np.shape(K)), K, rtol=1e-12)
    np.testing.assert_allclose(np.reshape(s.residual_kernels, np.shape(C)), C, rtol=1e-12)
    assert not np.allclose(ft.solve(plain(net), K0).kernels, s.kernels, rtol=1e-2)


def test_linear_features_are_a_linear_network_of_larger_weights():
    net = network("linear")
    s, twin = (
        ft.solve(net, 0.4),
        ft.solve(linear_twin(net).replace(readout_weight_variance=1.25 * net.weight_variance), 0.4),
    )
    for name in ("kernels", "response", "output_response", "G12", "G11", "kernel_variance"):
        np.testing.assert_allclose(getattr(s, name), getattr(twin, name), rtol=1e-12, atol=1e-18)


def test_formulas_change():
    theories = [ft.derive(net) for net in (plain(network()), network())]
    usual, other = ({q: th.latex(q) for q in FORMULAS if q not in SATURATION} for th in theories)
    changed = {name for name in usual if usual[name] != other[name]}
    assert changed == set(usual) - {"kernels", "S11", "G22"}
    named = [ft.derive(net).latex("saddle_point") for net in (network(), plain(network()))]
    assert named[0] != named[1]


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("family", [HalfLinear, TwoSlopes])
@pytest.mark.parametrize("layers", ["generic", "explicit"])
def test_two_features_of_two_inputs(family, layers):
    """One average of the sum over features, in every result and in a notebook."""
    th = ft.derive(family(depth=2), inputs=2)
    for quantity in set(FORMULAS) - set(SATURATION):
        assert th.latex(quantity, layers)
    text = th.latex("saddle_point")
    assert text.count(r"\right\rangle") == 1 and r"\phi(h^{(l - 1)}_{\alpha})" in text
    assert th._repr_latex_().startswith("$$") and th.saddle_point._repr_latex_()


def test_optimal_scaling_is_the_maximum_of_the_response():
    net = TwoSlopes(depth=10, weight_variance=0.5)
    best = ft.optimal_scaling(net, 0.05)
    near = best * np.array([0.999, 1.0, 1.001])
    found = ft.solve(net.replace(branch_scale=near[:, None]), 0.05).output_response
    assert found[1] > found[0] and found[1] > found[2]
    assert abs(best - ft.optimal_scaling(plain(net), 0.05)) > 0.01


def test_simulation_confirms_this_theory_and_no_other():
    net = network()
    ensembles = [ft.simulate(net.replace(width=N), 0.4, samples=4000, seed=N) for N in (100, 200)]
    assert ft.compare(ft.solve(net, 0.4), ensembles).verdict == "agrees"
    with pytest.raises(ValueError, match="network ResidualNetwork in the theory, HalfLinear in"):
        ft.compare(ft.solve(plain(net), 0.4), ensembles)


def test_grid_and_file(tmp_path):
    net = network(branch_scale=0.5)
    grid = ft.sweep(net, 0.4, over={"branch_scale": [0.3, 0.5]}, of=["output_response"])
    assert float(grid.output_response[1]) == float(ft.solve(net, 0.4).output_response)
    s = ft.solve(net, 0.4)
    s.save(tmp_path / "solution.npz")
    loaded = Solution.load(tmp_path / "solution.npz")
    assert type(loaded.network) is HalfLinear and loaded.network == net
    assert FAMILIES["HalfLinear"] is HalfLinear


@dataclass(frozen=True, kw_only=True)
class ScaledInside(ft.ResidualNetwork):
    """A family with the scale of the layer inside φ."""

    @staticmethod
    def features(phi, h, parameters):
        return (phi(parameters["branch_scale"] * h),)
