"""Commands for networks of blocks: their numbers and formulas are those of Python."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.cli.test_app import MATRIX, PAIR, column, output, refusal, rows, typed
from tests.rounding import assert_same, same
from tests.tables import slow

OPTIONS = {
    "activation": "tanh",
    "normalization": "layer",
    "norm_position": "post",
    "epsilon": 0.2,
    "expansion": 2.0,
    "inner_weight_variance": 1.5,
    "gate_weight_variance": 0.7,
    "outer_weight_variance": 1.3,
    "inner_bias_variance": 0.1,
    "outer_bias_variance": 0.2,
    "branch_scale": 0.8,
    "skip_scale": 0.9,
    "readout_weight_variance": 1.1,
    "readout_bias_variance": 0.3,
    "width": 40,
}
TYPED = ("--family", "block", "-L", 2, "--gated", *typed(OPTIONS))
NET = ft.BlockNetwork(depth=2, gated=True, **OPTIONS)


def test_solve_with_every_option():
    table = rows("solve", *TYPED, "-k", 0.3, "--fluctuations")
    s = ft.solve(NET, 0.3)
    assert_same(column(table, "K"), s.kernels)
    assert_same(column(table, "var_C"), np.diag(s.G11))
    default = rows("solve", "--family", "block", "-L", 2, "-k", 1)
    assert_same(column(default, "K"), ft.solve(ft.BlockNetwork(depth=2), 1).kernels)


def test_solve_two_inputs_to_a_file(tmp_path):
    table = rows("solve", *TYPED, "--K0", MATRIX, "--save", tmp_path / "s.npz", "--decorrelation")
    s = ft.solve(NET, PAIR)
    assert_same(column(table, "C"), s.residual_kernels[:, *np.triu_indices(2)].ravel())
    assert ft.load(tmp_path / "s.npz").network == NET
    title = " ".join(output("solve", *TYPED).split())
    assert "φ = tanh, normalization layer, norm_position post, gated; layer 3" in title


def test_optimum():
    net = ft.BlockNetwork(depth=4, activation="tanh", epsilon=1.0)
    (row,) = rows("optimum", "--family", "block", "-L", 4, "-a", "tanh", "--epsilon", 1)
    assert row["rho"] == same(ft.optimal_scaling(net, 0.05))


def test_posterior():
    table = rows("posterior", "--family", "block", "-L", 1, "--width", 60, "--count", 4)
    assert column(table, "width N")[0] != column(table, "infinite")[0]
    assert "samples is not there for a BlockNetwork" in refusal(
        "posterior", "--family", "block", "-L", 1, "--count", 4, "--paths", 400
    )


def test_simulate():
    arguments = ("-k", 0.3, "-n", 50, "--method", "weights", "--seed", 3)
    table = rows("simulate", *TYPED, *arguments)
    drawn = ft.simulate(NET, 0.3, samples=50, method="weights", seed=3)
    assert_same(column(table, "C"), drawn.mean)


@pytest.mark.slow
def test_compare_of_two_inputs():
    text = output("simulate", *TYPED, "--K0", MATRIX, "-n", 6000, "--compare")
    assert "Is the theory right? Yes" in text and "stream_covariance" in text


def test_tangent():
    table = rows(
        "tangent", *TYPED, "-k", 0.3, "--rate", "inner_weight=0", "--rate", "readout_bias=2"
    )
    theta = ft.tangent_kernels(NET, 0.3, {"inner_weight": 0, "readout_bias": 2})
    np.testing.assert_allclose(column(table, "Theta"), theta.tangent_kernels, rtol=1e-14)


def test_critical():
    block = ("--family", "block", "-a", "tanh", "--normalization", "none", "--expansion", 2)
    table = rows("critical", *block, "--skip-scale", "0.5,0.9", "-k", 0.3)
    for row, gamma in zip(table, (0.5, 0.9), strict=True):
        net = ft.BlockNetwork(depth=1, activation="tanh", normalization=None, skip_scale=gamma)
        np.testing.assert_allclose(
            [row[x] for x in ("rho", "chi_par", "chi_perp")],
            ft.critical_block(net, 0.3),
            rtol=1e-14,
        )
    assert "skip_scale must be above -1" in refusal("critical", *block, "--skip-scale", 1)
    post = refusal("critical", "--family", "block", "--norm-position", "post")
    assert "behind the sum every ρ keeps the variance" in post


@pytest.mark.parametrize("what", [slow("saddle_point"), "action"])
def test_derive(what):
    typed_options = ("--gated", "--normalization", "none", "-a", "tanh", "-L", 2, "--inputs", 2)
    text = output("derive", "--family", "block", *typed_options, "--what", what)
    net = ft.BlockNetwork(depth=2, gated=True, normalization=None, activation="tanh")
    assert text.strip() == ft.derive(net, inputs=2).latex(what).strip()


def test_sweep():
    table = rows("sweep", *TYPED, "--over", "epsilon=0.1,0.2", "-k", 0.3, "--of", "output_kernel")
    expected = [ft.solve(NET.replace(epsilon=e), 0.3).output_kernel for e in (0.1, 0.2)]
    assert_same(column(table, "output_kernel"), expected)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            ("optimum", "--method", "deep_limit"),
            "method='deep_limit' is not there for a BlockNetwork",
        ),
        (("tangent", "--rate", "weight=2"), "rates must be one of readin_weight"),
        (
            ("derive", "--skip-scale", "1"),
            "skip_scale must be left out for --family block, got '1'",
        ),
        (("optimum",), "that of one input of a BlockNetwork vanishes for every ρ"),
    ],
)
def test_refusals(line, words):
    command, *options = line
    assert words in refusal(command, "--family", "block", "-L", 2, *options)
    assert "gated must be left out for --family residual" in refusal("derive", "--gated")
