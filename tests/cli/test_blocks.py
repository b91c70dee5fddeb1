"""Commands for networks of blocks: their numbers and formulas are those of Python."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.cli.test_app import MATRIX, PAIR, column, output, refusal, rows, typed
from tests.rounding import assert_same
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


@pytest.mark.slow
def test_compare_of_two_inputs():
    text = output("simulate", *TYPED, "--K0", MATRIX, "-n", 6000, "--compare")
    assert "Is the theory right? Yes" in text and "stream_covariance" in text


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
