"""What every family offers, and the coefficients made of it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import (
    FAMILIES,
    Coefficients,
    LayeredNetwork,
    checked_network,
    per_layer,
)
from fieldtheory.networks.family_checks import check_family, check_fields
from tests.rounding import assert_same

NET = ft.ResidualNetwork(depth=3, branch_scale=[0.5, 0.4, 0.3], skip_scale=0.7, bias_variance=0.2)


@dataclass(frozen=True, kw_only=True)
class Offset(ft.ResidualNetwork):
    """A family whose weights do not grow as ρ²."""

    @staticmethod
    def layer(parameters):
        scale = parameters["branch_scale"]
        return Coefficients(1 + scale**2, scale**2, parameters["skip_scale"])


def test_families_are_known_by_the_names_of_their_classes():
    assert FAMILIES["ResidualNetwork"] is ft.ResidualNetwork
    assert FAMILIES["FeedForwardNetwork"] is ft.FeedForwardNetwork
    assert FAMILIES["Offset"] is Offset


@pytest.mark.parametrize("wrong", [3, None, "erf", ft.ResidualNetwork])
def test_what_is_no_network_is_refused(wrong):
    with pytest.raises(TypeError, match="network must be a ResidualNetwork or of a family like it"):
        checked_network(wrong)


def test_members_of_a_batch():
    net = NET.replace(branch_scale=[[0.1], [0.2]])
    assert net.batch_shape == (2,)
    member = net.member((2,), (1,))
    assert member.batch_shape == () and member.branch_scale == (0.2, 0.2, 0.2)
    assert member.skip_scale == (0.7, 0.7, 0.7)


def test_coefficients_of_a_branch_of_scale_one():
    assert unit_branch(NET) == (1.25, 0.2)
    with pytest.raises(ValueError, match="coefficients that grow as branch_scale²"):
        unit_branch(Offset(depth=2))


x = sp.Symbol("x")


@dataclass(frozen=True)
class Noise:
    level: float
    shape: tuple = (1, (2,))


@dataclass(frozen=True, kw_only=True)
class Beside(LayeredNetwork):
    """h^(l) = h^(l-1) + ρ [W φ(h^(l-1)) + √r V h^(l-1)], with fields that say nothing of types."""

    layer_parameters = ("branch_scale",)

    depth: Any = 2
    activation: Any = "erf"
    branch_scale: Any = 0.3
    share: Any = 0.5
    extra: Any = 1.5
    width: Any = 20
    input_dim: Any = 10

    @property
    def parameters(self):
        return {
            "branch_scale": per_layer(self.branch_scale, self.depth),
            "share": self.share,
            "readin_weight_variance": 1.0,
            "readin_bias_variance": 0.0,
        }

    @staticmethod
    def features(phi, h, parameters):
        return phi(h), sp.sqrt(parameters["share"]) * h

    @staticmethod
    def layer(parameters):
        return Coefficients(parameters["branch_scale"] ** 2, 0, 1)

    @staticmethod
    def readout(parameters):
        return Coefficients(1, 0, 0)

    @staticmethod
    def branch(features, affine, parameters):
        return parameters["branch_scale"] * sum(affine(psi, 1.0, 0.0) for psi in features)


class TestOwnFamilies:
    @pytest.mark.parametrize("suffix", [".npz", ".nc"])
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"activation": "x/(1 + abs(x))"},
            {"activation": sp.tanh(2 * x)},
            {"activation": ft.Activation(sp.tanh(2 * x), "φ ≤ 1")},
            {"activation": np.tanh},
            {"branch_scale": [0.1, 0.2]},
            {"branch_scale": np.array([0.1, 0.2])},
            {"branch_scale": "uniform"},
            {"depth": np.int64(3), "share": np.float64(0.2)},
            {"share": sp.Rational(1, 3)},
            *(
                {"extra": value}
                for value in (
                    *("[φ", "12", "true", "erf", '{"class": "x"}', "", None, True, np.arange(3.0)),
                    *([1, [2.5, 3]], Fraction(1, 3), Noise(0.2), (Noise(0.1), "a")),
                    *(ft.Activation(sp.tanh(3 * x)), (ft.Activation(sp.sin(x), "s"), None)),
                )
            ),
        ],
        ids=str,
    )
    def test_are_loaded_as_they_were_saved(self, changes, suffix, tmp_path):
        net = Beside(**changes)
        made = ft.solve(net, 0.4)
        kernels = made.kernels
        made.save(path := tmp_path / f"s{suffix}")
        loaded = ft.load(path)
        assert loaded.network == net and type(loaded.network.extra) is type(net.extra)
        assert (loaded.kernels == kernels).all()
        assert_same(ft.solve(net, 0.4).kernels, kernels)

    def test_what_cannot_be_loaded_is_not_saved(self, tmp_path):
        for extra in (sp.tanh(x), lambda l, L: 1.0, 1j):
            with pytest.raises(ValueError, match="^extra cannot be written to a file: it must be"):
                ft.solve(Beside(extra=extra), 0.4).save(tmp_path / "s.npz")

        @dataclass(frozen=True, kw_only=True)
        class Taken(Beside):
            kernels: float = 1.0

        with pytest.raises(ValueError, match="^kernels is a name that results have in files"):
            ft.solve(Taken(), 0.4).save(tmp_path / "s.npz")
        assert not list(tmp_path.iterdir())

    def test_their_module_is_named_where_it_is_missing(self, tmp_path, monkeypatch):
        ft.solve(Beside(), 0.4).save(path := tmp_path / "s.npz")
        monkeypatch.delitem(FAMILIES, "Beside")
        with pytest.raises(ValueError, match=f"is a Beside of {__name__}, which must be imported"):
            ft.load(path)
        with pytest.raises(TypeError, match="^ResidualNetwork is a family of fieldtheory"):
            type("ResidualNetwork", (Beside,), {})

    def test_layers_may_all_be_the_same(self):
        class Constant(Beside):
            layer_parameters = ()

            @property
            def parameters(self):
                return super().parameters | {"branch_scale": 0.3}

        assert_same(ft.solve(Constant(), 0.4).G11, ft.solve(Beside(), 0.4).G11)


def affine_of_both(features, affine, parameters):
    return parameters["branch_scale"] * affine(np.concatenate(features, -2), 1.0, 0.0)


@pytest.mark.parametrize(
    ("method", "wrong", "words"),
    [
        (
            "features",
            lambda phi, h, p: phi(h),
            r"expressions .*, got phi\(h\); write \(phi\(h\),\)",
        ),
        ("features", lambda phi, h, p: (np.tanh(h), h), "not of NumPy; it raised TypeError: loop"),
        ("features", lambda phi, h, p: (max(h, 0), h), "functions of SymPy.*truth value"),
        (
            "features",
            lambda phi, h, p: (phi(h), p["shar"] * h),
            "use parameters.*share.*'shar'",
        ),
        ("features", lambda phi, h, p: np.array([phi(h), h]), "a tuple of SymPy.*got array"),
        ("layer", lambda p: (p["branch_scale"] ** 2, 0, 1), r"return Coefficients\(.*got \(branch"),
        ("layer", lambda p: Coefficients(np.sqrt(p["share"]), 0, 1), "arithmetic that SymPy"),
        ("layer", lambda p: Coefficients(-p["share"], 0, 1), "a_l and c_l >= 0, got"),
        ("readout", lambda p: None, "return Coefficients.*got None"),
        ("branch", lambda f, affine, p: affine(*f[:1], 1.0, 0.0), "a variance is .* and not"),
        ("branch", lambda f, affine, p: f[0], "a sum of what affine returns"),
        ("branch", lambda f, affine, p: np.tanh(affine(f[0], 1.0, 0.0)), "a sum of what affine"),
        ("branch", lambda f, affine, p: sum(affine(x, 1.0, 0.1) for x in f), "a variance is"),
        ("branch", affine_of_both, "the shape of the features"),
        ("branch", lambda f, affine, p: affine(f[2], 1.0, 0.0), "it raised IndexError: tuple"),
        ("parameters", {"branch_scale": np.ones(2), "share": 1.0}, "must have readin_weight_var"),
        (
            "parameters",
            {
                "branch_scale": 0.3,
                "share": 1.0,
                "readin_weight_variance": 1.0,
                "readin_bias_variance": 0.0,
            },
            r"per_layer\(self.branch_scale, self.depth\), got 0.3",
        ),
    ],
)
def test_mistakes_in_a_family_of_ones_own_get_a_sentence(method, wrong, words):
    value = property(lambda self: dict(wrong)) if method == "parameters" else staticmethod(wrong)
    net = type("Wrong", (Beside,), {method: value})()
    with pytest.raises((TypeError, ValueError), match=rf"Wrong.*{words}"):
        ft.simulate(net, 0.4, samples=20)
    if method != "branch":
        for first in (ft.derive, lambda net: ft.solve(net, 0.4)):
            with pytest.raises((TypeError, ValueError), match=rf"Wrong.*{words}"):
                first(net)


def test_families_of_the_package_are_complete():
    # They are not checked with every network.
    layered = [f for f in FAMILIES.values() if f.of_package and issubclass(f, LayeredNetwork)]
    assert {ft.ResidualNetwork, ft.FeedForwardNetwork} <= {*layered}
    for family in layered:
        check_family(family(depth=2))


def test_a_family_is_a_frozen_dataclass_with_all_fields():
    thawed = dataclass(type("Thawed", (LayeredNetwork,), {}, abstract=True))
    with pytest.raises(TypeError, match=r"^Thawed must be decorated with @dataclass\(frozen=True"):
        check_fields(thawed)
    bare = dataclass(frozen=True)(type("Bare", (LayeredNetwork,), {}, abstract=True))
    with pytest.raises(TypeError, match="^Bare must have the fields activation, depth, input_dim"):
        check_fields(bare)


class TestDerive:
    def test_of_a_network_is_that_of_its_depth_and_activation(self):
        net = ft.ResidualNetwork(depth=2, activation="erf")
        assert ft.derive(net).hessian == ft.derive(depth=2, activation="erf").hessian
        assert ft.derive(2).hessian == ft.derive(depth=2).hessian

    @pytest.mark.parametrize(
        "arguments, error, message",
        [
            ({}, TypeError, "derive needs a network or a depth"),
            ({"network": NET, "depth": 3}, TypeError, "derive needs a network or a depth"),
            ({"network": NET, "activation": "erf"}, TypeError, "activation is that of the network"),
            ({"network": "erf"}, TypeError, "depth must be an integer"),
            (
                {"network": ft.BlockNetwork(depth=1), "skip_scale": 0.5},
                TypeError,
                "skip_scale is that of the network, got 0.5",
            ),
            ({"depth": 0}, ValueError, "depth must be an integer >= 1"),
        ],
    )
    def test_bad_arguments(self, arguments, error, message):
        with pytest.raises(error, match=message):
            ft.derive(**arguments)
