"""Files that commands save hold what the functions give, and interrupted work goes on."""

import os

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.sampling import block_moments
from fieldtheory.sweeps import parameter_grid
from tests.cli.test_app import call, output
from tests.rounding import assert_same
from tests.tables import slow

NET = ft.ResidualNetwork(depth=2)
STANDARD = "tangent -L 2 --parametrization standard --rate bias=0.5 -k 0.3 --save"
SAVED = {
    "solve -L 2 --fluctuations --save s.npz": lambda: ft.solve(NET, 0.05),
    "solve -L 2 --fluctuations --save s.nc": lambda: ft.solve(NET, 0.05),
    "diffusion -L 3 --save s.npz": lambda: ft.solve(ft.DiffusionNetwork(depth=3), [0, 1]),
    "diffusion -L 3 --save s.nc": lambda: ft.solve(ft.DiffusionNetwork(depth=3), [0, 1]),
    "diffusion -L 10 --width 20 -n 40 --save e.npz": lambda: ft.simulate(
        ft.DiffusionNetwork(depth=10, width=20), [0, 1], samples=40
    ),
    f"{STANDARD} t.npz": lambda: ft.tangent_kernels(NET, 0.3, {"bias": 0.5}, "standard"),
    f"{STANDARD} t.nc": lambda: ft.tangent_kernels(NET, 0.3, {"bias": 0.5}, "standard"),
    "simulate -L 2 --width 30 -n 40 --save e.npz": lambda: ft.simulate(
        NET.replace(width=30), 0.05, samples=40
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow_but(5)
@pytest.mark.parametrize("command", SAVED)
def test_a_file_holds_the_result(command):
    output(*command.split())
    assert os.listdir() == [command.split()[-1]]
    loaded, made = ft.load(command.split()[-1]), SAVED[command]()
    assert repr(loaded) == repr(made) and loaded.network == made.network
    assert ("fluctuations" in command) == ("G11" in vars(loaded))
    for name, values in made.to_xarray().items():
        np.testing.assert_array_equal(loaded.to_xarray()[name], values)


@pytest.mark.parametrize(
    ("command", "module", "said", "rest"),
    [
        slow(
            "simulate -L 1 --width 20 -n 5000 --save e.npz",
            *(block_moments, "simulate: 2 of 5 parts found\n", [2, 3, 4]),
        ),
        (
            "sweep -L 1 --over branch_scale=0.1:1:200 --chunk 64 --save grid.nc",
            *(parameter_grid, "sweep: 2 of 4 parts found\n", [2, 3]),
        ),
    ],
)
def test_interrupted_work_goes_on(command, module, said, rest, monkeypatch):
    path, evaluate, calls = command.split()[-1], module._evaluate, []

    def interrupted(task):
        calls.append(task[0])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(task)

    monkeypatch.setattr(module, "_evaluate", interrupted)
    result = call(*command.split())
    assert (result.exit_code, result.stdout) == (130, "")
    assert "Finished parts are in" in result.stderr
    assert len(os.listdir(f".{path}.parts")) == 2 and not os.path.exists(path)
    result = call(*command.split())
    assert result.exit_code == 0 and result.stderr == said
    assert calls[3:] == rest and os.listdir() == [path]
    if path == "e.npz":
        expected = ft.simulate(ft.ResidualNetwork(depth=1, width=20), 0.05, samples=5000)
        assert_same(ft.load(path).covariance, expected.covariance)
