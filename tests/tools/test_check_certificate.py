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

from tests.tables import slow  # noqa: E402

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


@pytest.mark.parametrize("bias", [slow(0.0), slow(0.05), 0.3])
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
    depth, network = changed["depth"], changed["network"]
    kind = chance.choice(("low", "high", "layer", "rows", "both", "activation", "coefficient"))
    l, field = chance.randrange(1, depth + 2), chance.choice(list(changed["claims"]))
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
        # A hidden one, of the network as well.
        l = min(l, depth)
        del changed["layers"][l - 1], network["branch_scale"][l - 1], network["skip_scale"][l - 1]
        changed["depth"] -= 1
    if kind in ("rows", "both"):
        for rows in changed["claims"].values():
            for row in rows.values():
                del row[l]
    if kind == "activation":
        (changed["activation"],) = {"erf(h)", "Max(0, h)"} - {changed["activation"]}
    if kind == "coefficient":
        which = chance.randrange(2)
        changed["layers"][-1][which] += "1"
        network[f"readout_{('weight', 'bias')[which]}_variance"] = changed["layers"][-1][which]
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


@pytest.fixture(scope="module")
def solution(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("files"), "erf", "residual", "two", 2)


@pytest.fixture(scope="module")
def optimum(tmp_path_factory):
    return output_variance(tmp_path_factory.mktemp("files") / "file")


# Where a certificate is changed, to what, and what is said: None takes an entry away.
REFUSED = [
    ("kind", "proof", "kind must be one of .* got .proof"),
    ("kind", True, "kind must be one of .* got true"),
    ("activation", "tanh(h)", "only erf.* not .tanh"),
    ("activation", ["erf(h)"], "only erf"),
    *(
        ("digits", digits, f"digits must be an integer from 1 to 4000, got {said}")
        for digits, said in (
            *((0, "0"), (-3, "-3"), (True, "true"), (20.0, "20.0"), ("20", ".20.")),
            *((10**9, "1000000000"), ([], r"\[\]")),
        )
    ),
    ("digits", 40, "has no 40 digits"),
    ("digits", None, "certificate must have the keys .* got activation, claims, depth, in"),
    ("note", "proven by hand", "certificate must have the keys .* and no others"),
    ("depth", True, "depth must be an integer from 1 to 100000, got true"),
    ("depth", 0, "depth must be an integer .* got 0"),
    ("depth", 3, "branch_scale must be a list of 3, got 2"),
    ("layers", [], "layers must be a list of 3, got 0"),
    ("layers", "none", "layers must be a list of 3, got .none"),
    ("layers/0", ["1", "1"], "layer 1 must be a list of 3, got 2"),
    ("layers/1/0", "1", "a, c, γ of layer 2 are not those of the parameters"),
    ("layers/1/1", "-1/5", "a, c, γ of layer 2 are not those of the parameters"),
    ("layers/1/2", "-1", "a, c, γ of layer 2 are not those of the parameters"),
    ("layers/2/0", "1", "a, c, γ of layer 3 are not those of the parameters"),
    ("layers/2/2", "1", "a, c, γ of layer 3 are not those of the parameters"),
    ("layers/0/0", 0.2, "layer 1 must be a number such as .* got 0.2"),
    ("layers/0/0", "1/0", "layer 1 must be a number such as .* got .1/0"),
    ("network", None, "certificate must have the keys"),
    ("network", [], r"network must have the keys .* got \[\]"),
    ("network/shape", "1", "network must have the keys .* and no others"),
    ("network/branch_scale/1", "1/2", "a, c, γ of layer 2 are not those"),
    ("network/skip_scale/0", "1/2", "a, c, γ of layer 1 are not those"),
    ("network/weight_variance", "1", "a, c, γ of layer 1 are not those"),
    ("network/readout_bias_variance", "1", "a, c, γ of layer 3 are not those"),
    ("network/weight_variance", "-5/4", "weight_variance must be >= 0, got .-5/4"),
    ("network/bias_variance", "-1", "bias_variance must be >= 0, got .-1"),
    ("network/readin_bias_variance", "-1", "readin_bias_variance must be >= 0"),
    ("network/weight_variance", True, "weight_variance must be a number such as .* got true"),
    ("network/weight_variance", float("inf"), "must be a number such as .* got Infinity"),
    ("network/branch_scale", "1/2", "branch_scale must be a list of 2, got .1/2"),
    ("input_kernel/00", "-1", "input_kernel 00 must be >= 0, got .-1"),
    ("input_kernel/11", "-0.1", "input_kernel 11 must be >= 0, got .-0.1"),
    ("input_kernel/01", "3/2", "input_kernel must be positive semidefinite"),
    ("input_kernel/01", "-3/2", "input_kernel must be positive semidefinite"),
    ("input_kernel/00", True, "input_kernel 00 must be a number such as .* got true"),
    ("input_kernel/00", "9" * 4301, "input_kernel 00 must be a number such as"),
    ("input_kernel/01", None, "input_kernel must have the keys 00, 11, 01 and no others"),
    ("input_kernel", {"00": "1"}, "claims of residual_kernels must have the keys 00 and no others"),
    ("input_kernel", {}, "input_kernel must have the keys 00 and no others, got $"),
    ("claims", {}, "claims must have the keys residual_kernels, kernels, response"),
    ("claims/kernels/01", [], "claims of kernels 01 must be a list of 4, got 0"),
    ("claims/kernels/00/1", ["1"], "kernels 00 1 must be a list of 2, got 1"),
    *(
        ("claims/kernels/00/1/1", end, "kernels 00 1 must be a number such as")
        for end in ("inf", "nan", "1e999", float("nan"), float("inf"), 2, True, "", "1 ", "١")
    ),
    ("claims/kernels/00/1/1", "9" * 4000, "kernels 00 1: the interval from"),
]
REFUSED_OPTIMA = [
    ("activation", "Max(0, h)", "has no optimal output variance"),
    ("weight", "-1", "weight must be >= 0, got .-1"),
    ("bias", "-1/20", "bias must be >= 0, got .-1/20"),
    ("weight", True, "weight must be a number such as .* got true"),
    ("weight", "0", "the interval has no maximum"),
    ("interval", ["inf", "inf"], "interval must be a number such as .* got .inf"),
    ("interval", ["1"], "interval must be a list of 2, got 1"),
    ("network", {}, "certificate must have the keys .* and no others"),
]


def changed_at(certificate, where, value):
    changed = part = copy.deepcopy(certificate)
    *path, last = (
        int(key) if key.isdecimal() and len(key) < 2 else key for key in where.split("/")
    )
    for key in path:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return changed


@pytest.mark.parametrize("where, value, said", REFUSED)
def test_refused(solution, where, value, said):
    with pytest.raises(Rejected, match=said):
        check(changed_at(solution, where, value))


@pytest.mark.parametrize("where, value, said", REFUSED_OPTIMA)
def test_refused_optima(optimum, where, value, said):
    with pytest.raises(Rejected, match=said):
        check(changed_at(optimum, where, value))


def test_command(tmp_path, solution):
    good = json.dumps(solution)
    texts = {
        "good": (good, "accepted, solution of erf(h): proven to 20 digits"),
        "bad": (good.replace("erf(h)", "tanh(h)"), "rejected, only erf(h) and Max(0, h) can"),
        "twice": (
            good.replace("{", '{"digits": 5, ', 1),
            'rejected, the key "digits" stands there',
        ),
        "inner": (good.replace('"00"', '"11"'), 'rejected, the key "11" stands there twice'),
        "text": ("{", "rejected, it is no JSON: Expecting"),
        "binary": (b"\xff\xfe", "rejected, it is no JSON: "),
        "deep": ("[" * 100_000, "rejected, it is no JSON: "),
        "long": ("1" * 5000, "rejected, it is no JSON: "),
        "list": ("[]", "rejected, kind must be one of"),
        "none": (None, "rejected, it cannot be read: No such file or directory"),
    }
    for name, (text, _) in texts.items():
        if text is not None:
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    run = subprocess.run(
        [sys.executable, "-S", TOOL, *texts], capture_output=True, text=True, cwd=tmp_path
    )
    assert (run.returncode, run.stderr) == (1, "")
    lines = run.stdout.splitlines()
    given = [line.removeprefix("  given: ") for line in lines if line.startswith("  ")]
    for line, (name, (_, said)) in zip(
        (line for line in lines if not line.startswith("  ")), texts.items(), strict=True
    ):
        assert line.startswith(f"{name}: {said}")
    assert given == [
        "input kernel: 00 = 1, 11 = 2, 01 ≈ 0.29999999999999999",
        "layers 1 to 2: a ≈ 0.20000000000000002, c ≈ 0.0080000000000000013, γ = 1, "
        "of ρ ≈ 0.40000000000000002, σ²_w = 5/4, σ²_b ≈ 0.050000000000000003",
        "layer 3: a = 5/4, c ≈ 0.050000000000000003, γ = 0, of the readout",
    ]


def test_it_uses_python_alone():
    tree = ast.parse(TOOL.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [node.names[0].name])
    }
    assert imported <= sys.stdlib_module_names
    assert len(TOOL.read_text().splitlines()) <= 440


def test_no_file_without_a_proof(tmp_path):
    with pytest.raises(ValueError, match="certificate needs proven=True"):
        ft.optimal_output_variance(ft.ResidualNetwork(depth=1), certificate=tmp_path / "file")
