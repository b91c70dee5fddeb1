"""The examples in the help of the commands end with exit code 0, in a folder with their files.

They run as they stand, but for figures and verdicts, of which there are fewer and smaller ones.
"""

import re
import shlex
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory import data
from fieldtheory.cli import app
from fieldtheory.cli.figures_command import FIGURES
from fieldtheory.literature import checks, f23, verdicts
from fieldtheory.numerics import chunks
from tests.cli.test_app import call
from tests.data.batches import write_batches
from tests.figures.test_every_figure import SMALL
from tests.tables import slow

EXAMPLES = [
    line.strip().removeprefix("fieldtheory ")
    for command in app.app.registered_commands
    for line in command.callback.__doc__.splitlines()
    if line.startswith(" " * 8 + "fieldtheory ")
]
# Comparisons need all their samples; other runs are as good with less.
LESS = {
    "-n 100000": "-n 200",
    "--samples 10000": "--samples 200",
    "--samples 500": "--samples 20",
    "--digits 100": "--digits 20",
}
SLOW = (
    *("run", "verify --digits", "verify --activations", "verify --format", "posterior --depth"),
    *(
        "posterior -L 10 --data mnist",
        "diffusion --simulate",
        "diffusion --law",
        "diffusion --data",
    ),
    *("diffusion -a swish -z", "diffusion -L 100 -a", 'figures "sr.*"', "figures f25.fig3"),
    *("figures f25.fig2", "figures f25.fig8"),
)
BLOCKS = """
import numpy as np


def two_layers(width, rng):
    first, second = rng.normal(size=(2, width, width)) / width**0.5
    return lambda z: np.tanh(z @ first.T) @ second.T


attention = two_layers
"""
MODELS = """
import torch


def build():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(3)))
    for layer in layers:
        torch.nn.init.normal_(layer.weight, std=0.02)
        torch.nn.init.zeros_(layer.bias)
    return layers


model, intent = build(), {"*.weight": 0.02}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files that examples name, and small cases of what would take minutes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "blocks.py").write_text(BLOCKS)
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "layers.py").write_text(BLOCKS + MODELS * bool(find_spec("torch")))
    (tmp_path / "gpt.py").write_text(MODELS)
    (tmp_path / "net.toml").write_text('activation = "relu"')
    rows = "1,cat,1,2\n2,dog,3,1\n3,cat,4,4\n4,dog,1,5\n"
    (tmp_path / "table.csv").write_text(f"id,species,a,b\n{rows}")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "tokens.npy", np.array([[1.0, 0.5], [0.5, 1.0]]))
    np.savetxt(tmp_path / "samples.csv", rng.normal(size=(4, 3)), delimiter=",")
    np.savetxt(tmp_path / "mine.csv", rng.normal(size=(6, 3)), delimiter=",")
    np.savetxt(tmp_path / "targets.csv", [1.0, -1.0] * 3, delimiter=",")
    law = {"row_covariance": np.eye(50), "column_covariance": np.eye(50) / 500}
    np.savez(tmp_path / "law.npz", **law)
    images = tmp_path / "cifar-10-batches-py"
    images.mkdir()
    write_batches(images)
    monkeypatch.setattr(data, "load_cifar10", partial(data.load_cifar10, count=6))
    for name in FIGURES:
        paper, figure = name.split(".")
        module = getattr(ft.figures, paper)
        compute = getattr(module, figure)
        monkeypatch.setattr(
            module, figure, lambda _f=compute, _s=SMALL[name], **given: _f(**(given | _s))
        )


@pytest.fixture
def few(monkeypatch):
    """The claims on one equation of F25 and two of F23, and the checks of one activation."""
    of_f25 = tuple(claim for claim in verdicts.PAPERS["F25"] if "(113)" in claim.equation)
    papers = dict.fromkeys(verdicts.PAPERS, ()) | {"F25": of_f25, "F23": f23.CLAIMS[:2]}
    for paper, few in papers.items():
        # The mapping itself stays what other modules have imported.
        monkeypatch.setitem(verdicts.PAPERS, paper, few)
    monkeypatch.setattr(checks, "CHECKED", ("linear",))
    monkeypatch.setattr(chunks, "usable_processes", lambda: 1)


def test_every_command_has_examples():
    named = {example.split()[0] for example in EXAMPLES}
    assert named == {command.callback.__name__ for command in app.app.registered_commands}


@pytest.mark.slow_but(0, 6, 16, 22, 30, 41, 45, 60)
@pytest.mark.parametrize("example", [slow(e) if e.startswith(SLOW) else e for e in EXAMPLES])
def test_an_example_runs(example, folder, few):
    if example.startswith("audit"):
        pytest.importorskip("torch")
    for much, little in LESS.items():
        example = example.replace(much, little)
    result = call(*shlex.split(re.sub(r" > \S+$", "", example)))
    assert result.exit_code == 0, result.output
