"""Bad input of every simulation: one line that names the argument and what is allowed."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.examples import K0_TRIPLE, network
from tests.montecarlo.test_family import LinearMapBeside

NET = network(3, "erf", 0.7, width=12)
NARROW = network(3, "relu", 0.0, width=2, bias_variance=0.0)
BLOCKS = ft.BlockNetwork(depth=3, expansion=2, width=2)
COARSE = {"network": NARROW, "samples": 200, "layer": 2, "relative_step": 0.4}
REDUCED = {"variance_reduction": "control_variate"}
PLAIN = {"network": NET, "K0": 0.4, "samples": 20}
CALLS = {
    ft.simulate: PLAIN,
    ft.simulate_response: PLAIN,
    ft.covariance_with: {"solution": ft.solve(NET, K0_TRIPLE), "U": np.eye(3)},
}
SEVERAL = [
    {"solution": ft.solve(ft.ResidualNetwork(depth=2), K0), "U": np.eye(2)}
    for K0 in (0.3, [0.3, 0.4], [np.eye(2), np.eye(2)])
]
# What all share, is asked of the first.
CASES = [
    (ft.simulate, {"network": 3}, "network must be a ResidualNetwork"),
    (ft.simulate, {"network": NET.replace(skip_scale=[[0.1], [0.2]])}, "skip_scale must be one"),
    (ft.simulate, {"network": NET.replace(branch_scale=[[0.1]])}, "branch_scale must be one"),
    (ft.simulate, {"network": LinearMapBeside(depth=2, rho=((0.1,), (0.2,)))}, "^rho must be one"),
    (ft.simulate, {"K0": None}, "K0 or X must be given, got neither"),
    (ft.simulate, {"X": np.eye(2)}, "K0 or X must be given, got both"),
    (ft.simulate, {"K0": -0.1}, "K0 must be a variance >= 0"),
    (ft.simulate, {"K0": [0.1, 0.2]}, "K0 must be a variance or a matrix"),
    (ft.simulate, {"K0": [[1.0, 2.0], [2.0, 1.0]]}, "K0 must be positive semidefinite"),
    (ft.simulate, {"K0": None, "X": [1.0, 2.0]}, "X must have shape"),
    (ft.simulate, {"K0": None, "X": [[1.0, np.nan]]}, "X must be finite"),
    (ft.simulate, {"samples": 19}, "samples must be an integer >= 20 for standard errors, got 19"),
    (ft.simulate, {"samples": 1e3}, "samples must be an integer"),
    (ft.simulate, {"seed": -1}, "seed must be an integer >= 0"),
    (ft.simulate, {"seed": None}, "seed must be an integer >= 0"),
    (ft.simulate, {"method": "gram"}, "method must be one of kernel, weights"),
    (ft.simulate, {"chunk": 0}, "chunk must be an integer >= 1"),
    (ft.simulate, {"directory": __file__}, "directory must be a folder"),
    (ft.simulate, REDUCED | {"method": "weights"}, "variance_reduction is for method 'kernel'"),
    (ft.simulate, REDUCED | {"cross_inputs": True}, "variance_reduction is for method 'kernel'"),
    (ft.simulate, {"variance_reduction": "magic"}, "variance_reduction must be one of control_v"),
    (
        ft.simulate,
        REDUCED | {"network": network(3, "linear", 1.0, branch_scale=1e120)},
        "exceeds the range of float64",
    ),
    (ft.simulate, {"network": BLOCKS, "K0": K0_TRIPLE}, "at most 2 inputs at width 2, got P = 3"),
    (
        ft.simulate,
        {"network": BLOCKS.replace(width=3, normalization="layer", expansion=1.0), "K0": K0_TRIPLE},
        "'kernel' needs at most 2 inputs at width 3, got P = 3; use 'weights'",
    ),
    (
        ft.simulate,
        {"network": BLOCKS, "K0": 0.0},
        "positive variances where a norm",
    ),
    (ft.simulate_response, {"K0": 0.0}, "K0 must give layer 0 a variance > 0"),
    (ft.simulate_response, {"K0": [0.4, 0.0]}, "K0 must give layer 0 a variance > 0"),
    (ft.simulate_response, {"K0": np.ones((2, 2))}, "K0 must have no parallel inputs"),
    (ft.simulate_response, {"K0": np.ones((2, 3, 3))}, "K0 must be a variance or a matrix"),
    (ft.simulate_response, {"samples": 19}, "samples must be an integer >= 20"),
    (ft.simulate_response, {"layer": 4}, "layer must be at most the depth 3, got 4"),
    (ft.simulate_response, {"layer": -1}, "layer must be an integer >= 0"),
    (ft.simulate_response, {"relative_step": 0.0}, "relative_step must be .* 0 and 0.5, got 0.0"),
    (ft.simulate_response, {"relative_step": 0.6}, "relative_step must be between 0 and 0.5"),
    (ft.simulate_response, {"directory": __file__}, "directory must be a folder"),
    (ft.simulate_response, COARSE, "relative_step must be smaller"),
    (ft.covariance_with, {"U": np.eye(2)}, r"U must have shape \(3, 3\), got \(2, 2\)"),
    (ft.covariance_with, {"U": [[np.nan] * 3] * 3}, "U must be finite"),
    (ft.covariance_with, {"layer": 5}, "layer must be an integer from -5 to 4, got 5"),
    (ft.covariance_with, {"layer": 1.5}, "layer must be an integer from -5 to 4, got 1.5"),
    (ft.covariance_with, {"samples": 5}, "samples must be an integer >= 20, got 5"),
    (ft.covariance_with, {"samples": 1e4}, "samples must be an integer >= 20"),
    (ft.covariance_with, {"seed": -1}, "seed must be an integer >= 0"),
    (ft.covariance_with, {"solution": 3}, "solution must be a Solution, got 3"),
    *((ft.covariance_with, case, "solution must be of one network and a") for case in SEVERAL),
]


@pytest.mark.parametrize(("call", "changes", "message"), CASES)
def test_bad_input(call, changes, message):
    with pytest.raises((ValueError, TypeError, OverflowError), match=message) as caught:
        call(**CALLS[call] | changes)
    assert "\n" not in str(caught.value)
