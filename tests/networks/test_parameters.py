"""Names that people type: every door says which argument was meant."""

import re
from dataclasses import fields

import pytest

import fieldtheory as ft
from fieldtheory.networks.parameters import PARAMETERS, unknown_argument

NET = ft.ResidualNetwork(depth=2)
SPELLINGS = {
    "depth": ["L", "layers", "n_layers", "Depth"],
    "activation": ["phi", "φ", "nonlinearity", "activations", "activation_function"],
    "branch_scale": ["rho", "ρ", "rho_l", "Rho", "branchscale", "branch_scaling"],
    "skip_scale": ["gamma", "γ", "gamma_l", "skipscale"],
    "weight_variance": [
        *("sigma_w", "sigma_w2", "sigma_w_squared", "sigma_w_sq", "sigma2_w", "σ_w", "σ_w²", "sw2"),
        *("w_var", "C_W", "weight_var", "weights_variance"),
    ],
    "bias_variance": ["sigma_b", "sigma_b2", "σ_b²", "b_std", "bias_var"],
    "readin_weight_variance": ["sigma_w_in", "sigma_w2_in", "sigma_w_in2", "sigma_in_w"],
    "readin_bias_variance": ["sigma_b_in", "σ_b,in²"],
    "readout_weight_variance": ["sigma_w_out", "sigma_w_out_squared", "σ_w,out"],
    "readout_bias_variance": ["sigma_b_out"],
    "width": ["N", "n", "n_hidden", "widht", "neurons"],
    "input_dim": ["d", "d_in", "N_in", "input_dimension"],
}


def refusal(call, *arguments, **named):
    with pytest.raises(TypeError) as caught:
        call(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_parameter_has_spellings_and_is_one_of_a_network():
    names = {field.name for field in fields(ft.ResidualNetwork)}
    assert set(SPELLINGS) == names
    assert set(PARAMETERS) == names | {field.name for field in fields(ft.BlockNetwork)}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("norm", "normalization (n)"), ("eps", "epsilon (ε)"), ("mlp_ratio", "expansion (M/N)")],
)
def test_of_a_network_of_blocks(typed, meant):
    expected = f"unknown argument {typed!r}: did you mean {meant}?"
    assert refusal(ft.BlockNetwork, **{"depth": 2, typed: 1.0}) == expected


@pytest.mark.parametrize("family", [ft.ResidualNetwork, ft.FeedForwardNetwork])
@pytest.mark.parametrize("name", SPELLINGS)
def test_of_a_network(name, family):
    meant = f"did you mean {name} ({PARAMETERS[name].symbol})?"
    for typed in SPELLINGS[name]:
        expected = f"unknown argument {typed!r}: {meant}"
        assert refusal(family, **{"depth": 2, typed: 1.0}) == expected
        assert refusal(NET.replace, **{typed: 1.0}) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda **n: ft.solve(NET, 0.05, **n),
        lambda **n: ft.simulate(NET, 0.05, **n),
        lambda **n: ft.simulate_response(NET, 0.05, **n),
        lambda **n: ft.optimal_scaling(NET, 0.05, **n),
        lambda **n: ft.optimal_output_variance(NET, **n),
        lambda **n: ft.sweep(NET, 0.05, **n),
        lambda **n: ft.compare(ft.solve(NET, 0.05), [], **n),
        lambda **n: ft.input_kernel([[1.0]], NET, **n),
    ],
)
def test_of_functions_that_take_a_network(call):
    for typed, meant in (("rho", "branch_scale (ρ)"), ("sigma_w", "weight_variance (σ_w²)")):
        assert refusal(call, **{typed: 0.3}) == (
            f"unknown argument {typed!r}: {meant} is a parameter of the network, not given here"
        )
    assert refusal(call, colour=1).startswith("unknown argument 'colour', known are ")


@pytest.mark.parametrize(
    ("call", "typed", "words"),
    [
        (lambda **n: ft.derive(**n), "L", "did you mean depth (L)?"),
        (lambda **n: ft.derive(depth=1, **n), "rho", "did you mean branch_scale (ρ)?"),
        (lambda **n: ft.derive(depth=1, **n), "gamma", "did you mean skip_scale (γ)?"),
        (lambda **n: ft.derive(depth=1, **n), "phi", "did you mean activation (φ)?"),
        (lambda **n: ft.derive(depth=1, **n), "P", "did you mean inputs?"),
        (lambda **n: ft.derive(depth=1, **n), "sigma_w2", "is a parameter of the network"),
        (lambda **n: ft.solve(NET, **n), "K_0", "did you mean K0?"),
        (lambda **n: ft.solve(NET, **n), "kernel", "did you mean K0?"),
        (lambda **n: ft.solve(NET, **n), "X", "X is data for simulate; elsewhere its kernel"),
        (lambda **n: ft.solve(NET, 0.1, **n), "samples", "samples is an argument of simulate"),
        (lambda **n: ft.simulate(NET, **n), "x", "did you mean X?"),
        (lambda **n: ft.simulate(NET, 0.1, **n), "n_samples", "did you mean samples?"),
        (lambda **n: ft.simulate(NET, 0.1, **n), "n", "did you mean samples?"),
        (lambda **n: ft.simulate(NET, 0.1, **n), "n_jobs", "did you mean jobs?"),
        (lambda **n: ft.simulate(NET, 0.1, **n), "chunks", "did you mean chunk?"),
        (lambda **n: ft.simulate_response(NET, 0.1, **n), "rng", "did you mean seed?"),
        (lambda **n: ft.sweep(NET, 0.1, **n), "grid", "did you mean over?"),
        (lambda **n: ft.optimal_scaling(NET, **n), "k0", "did you mean K0?"),
        (lambda **n: ft.ResidualNetwork(depth=1, **n), "K0", "K0 is an argument of solve"),
        (lambda **n: ft.ResidualNetwork(depth=1, **n), "seed", "seed is an argument of simulate"),
    ],
)
def test_of_other_arguments(call, typed, words):
    assert words in refusal(call, **{typed: 1})


def test_of_positional_parameters():
    words = "ResidualNetwork takes its parameters by name, such as depth=50"
    assert refusal(ft.ResidualNetwork, 50) == words


def test_nothing_is_guessed_from_nothing():
    assert unknown_argument("zzz", ("depth",)) == "unknown argument 'zzz', known are depth"
    with pytest.raises(TypeError, match=re.escape("missing 1 required keyword-only argument")):
        ft.ResidualNetwork()
