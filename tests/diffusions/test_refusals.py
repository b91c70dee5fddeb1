"""Bad input of diffusion networks: the message names the argument and what is allowed."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_simulation import function_samples

NET = ft.DiffusionNetwork(depth=5, width=4)
LIMIT = ft.DiffusionNetwork(depth=None)
LINEAR = ft.DiffusionNetwork(depth=10, width=4, activation="linear", bias_variance=0.5)
LAW = ft.ParameterLaw(row_covariance=np.eye(4), column_covariance=np.eye(4) / 4)
Z = [0.0, 1.0]


def solve(inputs, net=LIMIT, **changes):
    return ft.solve(net.replace(**changes), inputs)


def of_a_law(**changes):
    return solve([1.0], LIMIT, width=4, parameter_law=LAW, **changes)


def simulate(inputs=(0.0,), options=None, **changes):
    return ft.simulate(NET.replace(**changes), inputs, **{"samples": 20} | (options or {}))


def compare(inputs=Z, options=None, **changes):
    e = ft.simulate(LINEAR.replace(**changes), inputs, samples=20)
    return ft.compare(ft.solve(LINEAR, Z), e, **(options or {}))


def distances(inputs=Z, **changes):
    return simulate(Z).distances(simulate(inputs, **changes))


def several(theory, *widths_and_seeds):
    ensembles = [
        ft.simulate(LINEAR.replace(width=N), Z, samples=20, seed=seed)
        for N, seed in widths_and_seeds
    ]
    return ft.compare(ft.solve(theory, Z), ensembles)


GRAM = {"method": "gram"}
CASES = [
    (lambda: solve(Z, horizon=0.0), "horizon must be a finite real number > 0, got 0.0"),
    (lambda: solve(Z, horizon=-1), "horizon must be a finite real number > 0, got -1"),
    (lambda: solve(Z, depth=0), "depth must be an integer >= 1"),
    (lambda: solve(Z, activation="cos"), "activation must be 0 at 0"),
    (lambda: solve(Z, activation="softplus"), "activation must be 0 at 0"),
    (lambda: solve(Z, input_activation="log(x)"), "input_activation must be real"),
    (lambda: solve(Z, weight_variance=-1), "weight_variance must be"),
    (lambda: solve(Z, width=0), "width must be"),
    (lambda: solve(Z, parameter_law=3), "parameter_law must be a ParameterLaw"),
    (lambda: solve([[1.0, 2.0]]), r"Z must have shape \(P,\), .* all neurons, or \(P, 500\)"),
    (lambda: solve(np.zeros((1, 1, 1))), "Z must have shape"),
    (lambda: solve([np.inf]), "Z must be finite"),
    (lambda: solve([1.0, -1e200]), r"Z must have squares within float64, got 1e\+200"),
    (lambda: solve([1.0], horizon=1e3), "signals exceed the range .* before horizon=1000"),
    (lambda: solve("x"), "Z must be a real number"),
    (lambda: solve([1.0], activation="relu"), "activation must have derivatives at 0"),
    (lambda: solve(Z, NET).at(0.5), "infinite depth"),
    (lambda: ft.solve(LIMIT, Z, order=2), "unknown argument 'order'"),
    (lambda: of_a_law(activation="swish"), r"ψ\(x\) = x and φ''\(0\) = 0, .* got φ = swish"),
    (lambda: of_a_law(input_activation="tanh"), "got φ = tanh, ψ = tanh; ft.simulate draws such"),
    (lambda: of_a_law(depth=5), r"φ\(u\) = s u, or infinite depth"),
    (lambda: of_a_law(activation="relu"), "activation must have derivatives at 0"),
    (lambda: simulate(depth=None), "network must have a finite depth"),
    (lambda: simulate([[0.0, 1.0]]), r"Z must have shape \(P,\).*\(P, 4\).* got shape \(1, 2\)"),
    (lambda: simulate([]), "Z must not be empty"),
    (lambda: simulate(["a"]), "Z must be a real number"),
    (lambda: simulate(options={"samples": 5}), "samples must be an integer >= 20"),
    (lambda: simulate(options={"seed": -1}), "seed must be an integer >= 0"),
    (lambda: simulate(options={"method": "kernels"}), "method must be one of .* mean kernel"),
    (lambda: simulate(options={"sample": 5}), "samples"),
    (lambda: simulate(options={"chunk": 0}), "chunk must be an integer >= 1"),
    (lambda: simulate(options=GRAM, activation="swish"), r"φ''\(0\) = 0, got .* 0.5"),
    (lambda: simulate(options=GRAM, input_activation="tanh"), "got tanh"),
    (lambda: simulate(options={"method": "sde"}, activation="relu"), "must have derivatives at 0"),
    (lambda: simulate(parameter_law=LAW), "'weights' or 'sde' for a network with parameter"),
    (lambda: simulate([1e3], input_activation="exp(h)"), "input_activation must be finite at"),
    (
        lambda: simulate([1.0], activation="sinh", weight_variance=1e5),
        "layer . of 5 of a network: its diffusion explodes",
    ),
    (lambda: simulate([0.0] * 5, {"method": "weights"}, width=10**7), "GB of memory"),
    (lambda: ft.simulate(NET, [1e100]), "exceeds the range of float64, as moments of exploding"),
    (lambda: compare([0.5, 1.0]), "inputs array.* in the theory, array.* in"),
    (lambda: compare(horizon=2.0), "horizon 1.0 in the theory, 2.0 in the simulation"),
    (lambda: compare(depth=20), "depth 10 in the theory, 20 in the simulation"),
    (lambda: compare(bias_variance=1.5), "bias_variance 0.5 in the theory, 1.5 in the simulation"),
    (lambda: compare(activation="tanh"), "activation linear in the theory, tanh in the simulation"),
    (lambda: compare(options={"tolerance": 2}), "tolerance must be a number between 0 and 1"),
    (lambda: compare(options={"false_alarm": 0}), "false_alarm must be a number"),
    (lambda: compare(options={"tolerence": 0.1}), "tolerance"),
    (lambda: ft.compare(solve(Z), 3.0), "ensemble must be of DiffusionEnsemble or a sequence"),
    (lambda: several(LINEAR, (4, 0), (4, 0)), "different widths"),
    (lambda: several(LINEAR, (4, 0), (8, 0)), "different seeds"),
    (lambda: several(LINEAR), "got none"),
    (lambda: distances([0.5]), "other must have the inputs"),
    (lambda: distances(horizon=2.0), "other must have horizon=1.0"),
    (lambda: simulate(Z).distances(3.0), "other must be a DiffusionEnsemble"),
    (lambda: function_samples(NET, [[1.0, 2.0]]), r"z must have shape \(m,\), got \(1, 2\)"),
    (lambda: function_samples(NET, []), "z must not be empty"),
    (lambda: function_samples(NET, [0.0], samples=5), "samples must be an integer >= 20"),
    (lambda: function_samples(NET, [0.0], neurons=5), "neurons must be at most 4, got 5"),
    (
        lambda: function_samples(NET, [0.0], neurons=2, method="gram"),
        "neurons must be at most 1, as only the first",
    ),
    pytest.param(
        lambda: solve([1.0], input_activation="square", horizon=40.0),
        "grow beyond all bounds",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        lambda: solve(
            [0.5], NET, depth=10, activation="linear", input_activation="x**2", horizon=50.0
        ),
        "signals grow too much over the layers",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_bad_input(call, message):
    with pytest.raises((TypeError, ValueError, ArithmeticError), match=message):
        call()
