"""Bad input of derivations: one line that names the argument and what is allowed."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, family_action
from fieldtheory.theory.propagator import forward_substitution
from fieldtheory.theory.saddle_point import saddle_point
from fieldtheory.theory.tangent_kernel import family_tangent
from tests.examples import K0_PAIR, K0_TRIPLE, block, derivation, network
from tests.montecarlo.test_family import LinearMapBeside
from tests.theory.test_observable import HalfLinear, ScaledInside

c, x, y = sp.symbols("c x y", positive=True)
NET = ft.ResidualNetwork(depth=2)
HALF = HalfLinear(depth=1, branch_scale=0.5, skip_scale=0.7)
OTHER_VALUES = ("x", "per-layer", "", [0.1, 0.2], (1,), {"a": 1}, np.nan, np.inf, True)


@dataclass(frozen=True)
class Unnormalised(Action):
    @property
    def expression(self):
        return family_action(ft.ResidualNetwork, 1).expression + sym.kernel(1)


def numbers(scales, **changes):
    """S21 of a derivation with these scales, in the numbers of a network."""
    return ft.derive(depth=2, **scales).lambdify("S21")(NET.replace(**changes), 0.05)


def of_erf(**changes):
    return block("S21", 2, 1, "erf")(NET.replace(**changes), 0.4)


def beside(**scales):
    return ft.derive(LinearMapBeside(depth=2), **scales)


TANGENT = sym.parameters(ft.ResidualNetwork, "l")
CASES = [
    (lambda: ft.derive(depth=0), "depth must be an integer >= 1, got 0"),
    (lambda: ft.derive(depth=2.0), "depth must be an integer >= 1, got 2.0"),
    (lambda: ft.derive(depth=True), "depth must be an integer >= 1, got True"),
    (lambda: ft.derive(1, inputs=0), "inputs must be an integer >= 1, got 0"),
    (lambda: ft.derive(1, inputs="2"), "inputs must be an integer >= 1, got '2'"),
    (lambda: ft.derive(1, activation="nothing"), "activation must be one of erf, .*'nothing'"),
    (lambda: ft.derive(1, activation=x * y), "one symbol"),
    (lambda: ft.derive(1, activation=3), "activation must be a SymPy expression"),
    (lambda: ft.derive(1, branch_scale=[1, 2]), r"branch_scale must .* got \[1, 2\]"),
    (lambda: ft.derive(1, branch_scale="rho"), "branch_scale must .* got 'rho'"),
    (lambda: ft.derive(1, skip_scale=(1,)), r"skip_scale must be .* got \(1,\)"),
    *(
        (lambda v=v: ft.derive(2, skip_scale=v), "must be a number, a SymPy expression, 'sy")
        for v in OTHER_VALUES
    ),
    (lambda: beside(branch_scale=0.5), "branch_scale is not a parameter of a LinearMapBeside"),
    *(
        (lambda v=v: beside(skip_scale=v), "skip_scale is not a parameter of a LinearMapBeside")
        for v in ("symbol", "per layer", 1)
    ),
    (lambda: derivation(1).latex("S33"), "one of action, saddle_point, .*, got 'S33'"),
    (lambda: derivation(1).latex(""), "got ''"),
    (lambda: derivation(1).latex(None), "got None"),
    (lambda: derivation(1).latex("hesian"), "got 'hesian'; did you mean hessian\\?"),
    (lambda: derivation(1).latex("responses"), "did you mean response\\?"),
    (lambda: derivation(1).latex("action", "general"), "layers must be one of generic, explicit, "),
    (lambda: ft.derive(1).latex("hessian", notation="F23"), "notation must be .* F25, got 'F23'"),
    (lambda: derivation(1).block("S33"), "must be one of S11, S12, .*, G22, got 'S33'"),
    (lambda: derivation(1).lambdify("S33"), "must be one of S11, S12, .*, G22, got 'S33'"),
    (lambda: ft.derive(1).document("all"), "layers must be"),
    (
        lambda: replace(ft.derive(1), family=LayeredNetwork).document(),
        "document is that of a ResidualNetwork",
    ),
    (lambda: ft.derive(1).symbols.sigma_v, "symbol must be one of C_0, .*did you mean sigma_w"),
    (lambda: ft.derive(1).symbols["sigma_v"], "sigma_v"),
    (lambda: of_erf(depth=3), "network must have the depth 2 of the derivation, got 3"),
    (lambda: of_erf(activation="relu"), "have the activation erf of the derivation, got relu"),
    (lambda: of_erf(branch_scale=[[0.1], [0.2]]), "network must be one, without batch axes"),
    (lambda: of_erf(skip_scale=[[0.1], [0.2]]), "network must be one, without batch axes"),
    (lambda: numbers({}, skip_scale=0.9), "of the derivation, 1, got 0.9; derive.network."),
    (lambda: numbers({}, branch_scale=[0.3, 0.1]), r"one for all layers, got \[0.3, 0.1\]"),
    (
        lambda: numbers({"skip_scale": "symbol"}, skip_scale=[0.3, 0.1]),
        r"skip_scale .* got \[0.3, 0.1\]",
    ),
    (
        lambda: numbers({"branch_scale": 0.3}, branch_scale=0.4),
        "branch_scale of the derivation, 3/10.* 0.4",
    ),
    (
        lambda: numbers({"branch_scale": c / 2}),
        "no number for c in the branch_scale of the derivation, c/2",
    ),
    *(
        (lambda P=P, K0=K0: block("S21", 2, P)(network(2), K0), message)
        for P, K0, message in (
            (1, K0_PAIR, r"K0 must have shape \(1, 1\), got \(2, 2\)"),
            (2, 0.4, r"K0 must have shape \(2, 2\), got \(\)"),
            (2, K0_TRIPLE, r"K0 must have shape \(2, 2\), got \(3, 3\)"),
            (1, [0.1, 0.2], r"K0 must have shape \(1, 1\), got \(2,\)"),
            (1, -0.1, "K0 must be a variance >= 0, got -0.1"),
            (1, np.nan, "K0 must be finite, got nan"),
        )
    ),
    (
        lambda: ft.derive(HALF).lambdify("G12")(ft.ResidualNetwork(depth=1), 0.4),
        "network must be a HalfLinear, got a ResidualNetwork",
    ),
    (
        lambda: ft.optimal_scaling(HALF.replace(skip_scale=1.0), 0.1, method="saturation"),
        "network must be a ResidualNetwork for the method satur",
    ),
    (
        lambda: ft.solve(ScaledInside(depth=2), 0.3).kernels,
        "the same for all layers, got branch_scale",
    ),
    (lambda: saddle_point(Unnormalised(**vars(family_action(ft.ResidualNetwork, 1)))), "on C\\^"),
    (lambda: forward_substitution(sp.ImmutableMatrix([[1, 2], [0, 1]])), "lower triangular"),
    *(
        (
            lambda kind=kind: family_tangent(ft.ResidualNetwork, TANGENT, kind),
            "parametrization must be one of ntk, standard, got",
        )
        for kind in ("NTK parametrization", "mup", None)
    ),
    *(
        (lambda ask=ask, order=order: getattr(ft.derive(1), ask)(*order), message)
        for ask in ("diagrams", "correction")
        for order, message in (
            ((0, 1), "legs must be an integer >= 1, got 0"),
            ((1, 0), "loops must be an integer >= 1, got 0"),
            ((2, -1), "loops must be an integer >= 0, got -1"),
        )
    ),
]
ERRORS = (ValueError, TypeError, ArithmeticError, AttributeError, KeyError)


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_bad_input(call, message):
    with pytest.raises(ERRORS, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
