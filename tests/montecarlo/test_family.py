"""A family outside the package: what it offers is all that a simulation needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import sympy as sp

from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.family import Coefficients, LayeredNetwork, per_layer
from tests.examples import K0_PAIR
from tests.montecarlo.statistics_of_draws import linear_statistics_of, p_value, z_between, z_scores
from tests.oracles import recursion
from tests.tables import slow

WIDTH = 16
# One million random numbers lie within 5; a field has at most some hundred entries.
LARGEST_Z = 4.5
REDUCED = ("mean", "covariance", "kernel_mean", "kernel_variance", "four_point")


@dataclass(frozen=True, kw_only=True)
class LinearMapBeside(LayeredNetwork):
    """h^(l) = γ h^(l-1) + ρ_l [W φ(h^(l-1)) + √r V h^(l-1) + b], with W and V of one variance.

    The readout is W_out φ(h^(L)) + √r V_out h^(L) + b_out, of the same variances.
    """

    layer_parameters: ClassVar[tuple[str, ...]] = ("rho",)

    depth: int
    activation: Any = "erf"
    rho: Any = 0.8
    gamma: float = 0.7
    share: float = 0.3
    weight_variance: float = 1.1
    bias_variance: float = 0.1
    width: int = WIDTH
    input_dim: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", as_activation(self.activation))

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "rho": per_layer(self.rho, self.depth),
            "gamma": self.gamma,
            "share": self.share,
            "weight_variance": self.weight_variance,
            "bias_variance": self.bias_variance,
            "readin_weight_variance": 0.5,
            "readin_bias_variance": 0.1,
        }

    @staticmethod
    def features(phi: Callable, h: sp.Expr, parameters: Any) -> tuple:
        return phi(h), sp.sqrt(parameters["share"]) * h

    @staticmethod
    def layer(parameters: Any) -> Coefficients:
        square = parameters["rho"] ** 2
        weight, bias = parameters["weight_variance"], parameters["bias_variance"]
        return Coefficients(square * weight, square * bias, parameters["gamma"])

    @staticmethod
    def readout(parameters: Any) -> Coefficients:
        return Coefficients(parameters["weight_variance"], parameters["bias_variance"], 0)

    @staticmethod
    def branch(features: tuple, affine: Callable, parameters: Any) -> Any:
        activity, signal = features
        weight, bias = parameters["weight_variance"], parameters["bias_variance"]
        return parameters["rho"] * (affine(activity, weight, bias) + affine(signal, weight, 0.0))


def family(activation, **changes):
    return LinearMapBeside(depth=3, activation=activation, rho=(0.5, 0.8, 1.1), **changes)


def linear_oracle(net):
    """The deep linear network of the same law: both maps together have σ_w² (1 + r)."""
    weight = net.weight_variance * (1 + net.share)
    gammas = (net.gamma,) * net.depth
    variances = weight, net.bias_variance, weight, net.bias_variance
    return recursion.Net(tuple(net.rho), gammas, *variances)


@pytest.mark.parametrize("method", ["kernel", slow("weights")])
def test_linear_maps_are_a_deep_linear_network_at_every_width(method):
    net = family("linear")
    found = simulate(net, 0.4, samples=60_000, seed=1, method=method)
    exact = linear_statistics_of(linear_oracle(net), 0.4, net.width)
    for name, values in exact.items():
        assert np.abs(z_scores(found, name, values)).max() < LARGEST_Z, name


@pytest.mark.parametrize("changes", [{"weight_variance": 1.122}, slow({"share": 0.326})], ids=str)
def test_a_theory_that_is_two_percent_wrong_fails(changes):
    found = simulate(family("linear"), 0.4, samples=60_000, seed=1)
    wrong = linear_statistics_of(linear_oracle(family("linear", **changes)), 0.4, WIDTH)
    for name in ("mean", "covariance", "kernel_mean"):
        assert np.abs(z_scores(found, name, wrong[name])).max() > 1.3 * LARGEST_Z, name


@pytest.mark.slow
@pytest.mark.parametrize("activation", [slow("erf"), "relu"])
def test_both_methods_follow_one_law(activation):
    net, options = family(activation), {"samples": 6000, "keep": True, "cross_inputs": True}
    found = [simulate(net, K0_PAIR, method=m, **options) for m in ("kernel", "weights")]
    for name in ("mean", "covariance", "four_point", "output_kurtosis", "cross_covariance"):
        assert np.abs(z_between(*found, name)).max() < LARGEST_Z, name
    rows, columns = np.triu_indices(2)
    draws = [e.residual_kernels[:, 1:, rows, columns] for e in found]
    assert p_value(*draws) > 1e-3
    other = simulate(net.replace(share=0.2), K0_PAIR, method="weights", **options)
    assert p_value(draws[0], other.residual_kernels[:, 1:, rows, columns]) < 1e-6


@pytest.mark.parametrize("gamma", [slow(0.0), 0.7])
def test_control_variates_are_right_for_several_features(gamma):
    exact = linear_statistics_of(linear_oracle(family("linear", gamma=gamma)), 0.4, WIDTH)
    # A constant, as a single neuron's law is known; rounding is left of it.
    exact["four_point"][0] = 0.0
    found = simulate(
        family("linear", gamma=gamma),
        0.4,
        samples=8000,
        variance_reduction="control_variate",
        seed=2,
    )
    for name in REDUCED:
        assert np.abs(z_scores(found, name, exact[name])).max() < LARGEST_Z, name
    net = family("erf", gamma=gamma)
    plain = simulate(net, 0.4, samples=20_000)
    found = simulate(net, 0.4, samples=8000, variance_reduction="control_variate")
    for name in REDUCED:
        assert np.abs(z_between(plain, found, name)).max() < LARGEST_Z, name


def test_features_have_one_form_for_all_layers():
    class Changing(LinearMapBeside):
        @staticmethod
        def features(phi: Callable, h: sp.Expr, parameters: Any) -> tuple:
            return (phi(parameters["rho"] * h),)

    net = Changing(depth=2)
    with pytest.raises(ValueError, match="^features must be the same for all layers, got rho"):
        simulate(net, 0.4, samples=20)
