"""Certificates are accepted, and rejected once they are changed, by a program of its own."""

import ast
import copy
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import fieldtheory as ft

pytest.importorskip("flint")

TOOL = Path(__file__).parents[2] / "tools" / "check_certificate.py"
sys.path.insert(0, str(TOOL.parent))
from check_certificate import Rejected, check  # noqa: E402

sys.path.pop(0)

DIGITS = 20
INPUTS = {
    "one": 0.3,
    "two": [[1, 0.3], [0.3, 2]],
    "obtuse": [[1, -0.9], [-0.9, 1.5]],
    "the same twice": [[1, 1], [1, 1]],
}
NETWORKS = {
    "residual": (ft.ResidualNetwork, {"branch_scale": 0.4}),
    "schedule": (ft.ResidualNetwork, {"branch_scale": lambda l, L: 0.5 / l, "skip_scale": 0.9}),
    "feed-forward": (ft.FeedForwardNetwork, {}),
}


def certificates(folder, activation, network, inputs, depth, digits=DIGITS):
    """A certificate of a network, as it is read from its file."""
    family, parameters = NETWORKS[network]
    net = family(depth=depth, activation=activation, **parameters)
    path = folder / "certificate.json"
    ft.solve(net, INPUTS[inputs], digits=digits, proven=True).certificate(path)
    return json.loads(path.read_text())


@pytest.mark.parametrize("depth", [1, 10])
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_accepted(tmp_path, activation, network, inputs, depth):
    certificate = certificates(tmp_path, activation, network, inputs, depth)
    assert check(certificate).endswith(f"proven to {DIGITS} digits")


def output_variance(path, bias=0.05, digits=DIGITS):
    net = ft.ResidualNetwork(depth=1, bias_variance=bias)
    ft.optimal_output_variance(net, digits=digits, proven=True, certificate=path)
    return json.loads(path.read_text())


@pytest.mark.parametrize("bias", [0.0, 0.05, 0.3])
def test_output_variance(tmp_path, bias):
    certificate = output_variance(tmp_path / "file", bias)
    assert check(certificate).startswith("optimal output variance")
    low, high = certificate["interval"]
    finer = output_variance(tmp_path / "file", bias, 2 * DIGITS)["interval"]
    for interval in ([finer[1], high], [low, finer[0]]):
        with pytest.raises(Rejected):
            check(certificate | {"interval": interval})


def perturbed(certificate, finer, chance):
    """A certificate with an end beyond the truth, without a layer, or of another network."""
    changed = copy.deepcopy(certificate)
    depth = len(changed["layers"])
    kind = chance.choice(("low", "high", "layer", "rows", "both", "activation", "coefficient"))
    l, field = chance.randrange(1, depth + 1), chance.choice(list(changed["claims"]))
    pair = chance.choice(list(changed["input_kernel"]))
    if kind in ("low", "high"):
        end = kind == "high"
        ends = finer["claims"][field][pair][l]
        # Of two inputs that are the same, erf' has a rational slope: 40 digits hold it exactly.
        if ends[0] == ends[1]:
            kind = "rows"
        else:
            changed["claims"][field][pair][l][end] = ends[not end]
    if kind in ("layer", "both"):
        del changed["layers"][l - 1]
    if kind in ("rows", "both"):
        for rows in changed["claims"].values():
            for row in rows.values():
                del row[l]
    if kind == "activation":
        (changed["activation"],) = {"erf(h)", "Max(0, h)"} - {changed["activation"]}
    if kind == "coefficient":
        which = chance.randrange(2)
        changed["layers"][l - 1][which] += "1"
    return kind, changed


def test_perturbed(tmp_path):
    chance, kinds = random.Random(1), set()
    pairs = [
        [
            certificates(tmp_path, activation, "residual", inputs, 3, digits)
            for digits in (DIGITS, 2 * DIGITS)
        ]
        for activation in ("erf", "relu")
        for inputs in INPUTS
    ]
    for _ in range(1000):
        kind, changed = perturbed(*chance.choice(pairs), chance)
        kinds.add(kind)
        with pytest.raises(Rejected):
            check(changed)
    assert len(kinds) == 7


@pytest.mark.parametrize(
    "change, said",
    [
        ({"activation": "tanh(h)"}, "cannot|only"),
        ({"kind": "proof"}, "kind must be one of"),
        ({"digits": 40}, "has no 40 digits"),
        ({"digits": None}, "not a certificate"),
        ({"input_kernel": {"00": "1", "11": "1"}}, "input_kernel must have"),
        ({"claims": {}}, "claims must be"),
    ],
)
def test_refused(tmp_path, change, said):
    certificate = certificates(tmp_path, "erf", "residual", "one", 2)
    with pytest.raises(Rejected, match=said):
        check(certificate | change)


def test_command(tmp_path):
    good = certificates(tmp_path, "erf", "residual", "one", 2)
    files = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "text.json"
    for path, text in zip(
        files, (json.dumps(good), json.dumps(good | {"activation": "tanh(h)"}), "{"), strict=True
    ):
        path.write_text(text)
    run = subprocess.run([sys.executable, "-S", TOOL, *files], capture_output=True, text=True)
    assert run.returncode == 1
    said = [line.split(": ")[1].split(",")[0] for line in run.stdout.splitlines()]
    assert said == ["accepted", "rejected", "rejected"]


def test_it_uses_python_alone():
    tree = ast.parse(TOOL.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [node.names[0].name])
    }
    assert imported <= sys.stdlib_module_names
    assert len(TOOL.read_text().splitlines()) <= 300


def test_no_file_without_a_proof(tmp_path):
    with pytest.raises(ValueError, match="certificate needs proven=True"):
        ft.optimal_output_variance(ft.ResidualNetwork(depth=1), certificate=tmp_path / "file")
