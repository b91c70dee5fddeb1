"""The recursion of the tangent kernel, derived from gradients, is made of the theory's averages."""

import re
from dataclasses import dataclass

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.family import Coefficients
from fieldtheory.theory import notation as sym
from fieldtheory.theory.elementary_averages import K_XX, K_XY, X, Y, layer_averages
from fieldtheory.theory.tangent_kernel import family_tangent, readin_tangent
from tests.tables import slow

LAYER = sym.parameters(ft.ResidualNetwork, "l")


@dataclass(frozen=True, kw_only=True)
class TwoFeatures(ft.ResidualNetwork):
    """A family whose residual is ρ² (W φ + U φ² + b)."""

    @staticmethod
    def features(phi, h, parameters):
        return phi(h), phi(h) ** 2

    @staticmethod
    def layer(parameters):
        square = parameters["branch_scale"] ** 4
        weight, bias = parameters["weight_variance"], parameters["bias_variance"]
        return Coefficients(square * weight, square * bias, parameters["skip_scale"])

    @staticmethod
    def branch(features, affine, parameters):
        first, second = features
        weight, bias = parameters["weight_variance"], parameters["bias_variance"]
        total = affine(first, weight, bias) + affine(second, weight, None)
        return parameters["branch_scale"] ** 2 * total


@pytest.mark.slow_but(2)
@pytest.mark.parametrize("family", [ft.ResidualNetwork, TwoFeatures])
@pytest.mark.parametrize("readout", [False, True], ids=["layer", "readout"])
def test_coefficients_and_averages_are_those_of_the_saddle_point(family, readout):
    """D = a ⟨g⟩ + c = C*, and what is carried on is γ² + a ∂⟨g⟩/∂K_xy (Price)."""
    parameters = sym.parameters(family, "l")
    a, c, gamma = (family.readout if readout else family.layer)(parameters)
    found = family_tangent(family, parameters, readout=readout)
    averages = layer_averages(family.features)
    assert sp.simplify(found.weights - a) == 0
    assert sp.simplify(found.biases - c) == 0
    price = averages.covariance.diff(K_XY)
    assert sp.simplify(sp.expand(found.growth) - sp.expand(gamma**2 + a * price)) == 0


@pytest.mark.parametrize("family", [ft.ResidualNetwork, slow(TwoFeatures)])
def test_standard_parametrization(family):
    """The entries of W are σ_w/√N times the trained numbers of the other: N/σ_w² times the sum."""
    parameters = sym.parameters(family, "l")
    ntk = family_tangent(family, parameters)
    standard = family_tangent(family, parameters, "standard")
    assert sp.simplify(standard.weights - ntk.weights * sym.WIDTH / sym.WEIGHT**2) == 0
    assert sp.simplify(standard.biases - ntk.biases / sym.BIAS**2) == 0
    assert standard.growth == ntk.growth


def test_readout_and_readin_of_the_standard_parametrization():
    assert family_tangent(ft.ResidualNetwork, LAYER, "standard", readout=True)[:2] == (sym.WIDTH, 1)
    v, u, d = sp.symbols("v u d", positive=True)
    assert readin_tangent(v, u, "standard") == (d / v, 1)


def test_one_input_has_the_square_of_the_slope():
    averages = layer_averages()
    slope = sym.phi(X).diff(X)
    assert averages.slope_square == ft.GaussianAverage(slope**2, X, K_XX)
    both = averages.covariance.diff(K_XY).integrand
    assert averages.slope_square.integrand == both.subs(Y, X)


def test_index_of_the_scale_in_SR():
    """SR (9) has λ_{l,L} where the layer that is added, l + 1, has λ_{l+1,L}: its eq. (2)."""
    l = sp.Symbol("l", integer=True, nonnegative=True)
    after = sym.parameters(ft.ResidualNetwork, l + 1)
    found = family_tangent(ft.ResidualNetwork, after | {"skip_scale": 1})
    assert found.weights == sym.branch_scale(l + 1) ** 2 * sym.WEIGHT**2
    assert sym.branch_scale(l) not in (found.weights + found.growth).free_symbols
    net = ft.ResidualNetwork(depth=2, activation="relu", branch_scale=[1.0, 0.0])
    theta, K = ft.solve(net, 1.0).tangent_kernels, ft.solve(net, 1.0).kernels
    added = 1.25 * K[0] / 2 + 0.05 + 1.25 * theta[0] / 2
    # The first layer has λ_1 = 1 and the second λ_2 = 0; as printed, λ_0 is not there.
    assert theta[1] - theta[0] == pytest.approx(added)
    assert theta[2] == theta[1]


class TestLatex:
    def test_the_definition_stands_first_and_all_of_it_is_defined(self):
        text = ft.derive(depth=2, inputs=2, skip_scale="per layer").latex("tangent_kernel")
        lefts = re.findall(r"^&?(.*?) &=", text, re.MULTILINE)
        assert lefts[0] == r"\Theta^{(l)}_{\alpha \beta}"
        assert r"\sum_{\theta} \frac{\partial h^{(l)}_{i \alpha}}{\partial \theta}" in text
        for left in (r"\theta", "h^{(l)}_{i \\alpha}", "a_{l}", "c_{l}", "A_{l, m}"):
            assert left in lefts
        growth = r"\left(\gamma_{l}^{2} + a_{l} (\dot{M}_{l - 1})_{\alpha \beta}\right)"
        assert growth + r" \Theta^{(l - 1)}_{\alpha \beta} + C^{(l)}_{\alpha \beta, *}" in text

    def test_readout_and_networks_without_skips(self):
        text = ft.derive(depth=2, skip_scale=0, activation="linear").latex("ntk")
        assert r"\Theta^{(L + 1)} &= a_{L + 1} \dot{M}_{L} \Theta^{(L)} + C^{(L + 1)}_{*}" in text
        assert r"h^{(L + 1)}_{i} &= y_{i} \\" in text and r"\dot{M}_{l} &= 1" in text

    def test_several_features(self):
        text = ft.derive(TwoFeatures(depth=2, activation="tanh")).latex("tangent_kernel")
        assert r"w^{(l)}_{1 i j} \phi(h^{(l - 1)}_{j}) + w^{(l)}_{2 i j}" in text
