"""What only the shell refuses: one line on stderr, and no file more than there was."""

import os
import shlex

import numpy as np
import pytest

from tests.cli.test_app import call, refusal
from tests.cli.test_measure_command import SOURCE
from tests.tables import slow

FILES = {
    "broken.npz": "not an archive",
    "one.csv": "1,2\n",
    "two.csv": "1,0\n0,1\n",
    "few.csv": "1\n1\n1\n",
    "broken.toml": "depth 2\n",
    "unknown.toml": "depth = 2\nrho = 0.1\n",
    "wrong.toml": 'depth = "two"\n',
    "family.toml": 'family = "Transformer"\n',
    "diffusion.toml": 'family = "DiffusionNetwork"\ndepth = 2\n',
    "block.toml": 'family = "BlockNetwork"\n',
    "blocks_of_test.py": SOURCE,
    "broken_blocks_of_test.py": "1 / 0",
}
BLOCK = "--block blocks_of_test:single"
# What the commands share, networks, kernels, data and files to save, is asked of one of them.
CASES = {
    "": [
        ("nothing", "nothing"),
        ("simulate --n-samples 9", "did you mean --samples?"),
    ],
    "solve": [
        # An error of the library is one line too.
        ("--depth 0", "depth must be an integer >= 1, got 0"),
        ("--depth 2.5", "--depth"),
        ("--order x", "--order must be a valid integer, got 'x'"),
        ("--format xml", "--format must be one of 'table', 'csv', 'json', got 'xml'"),
        ("--family block --norm-position both", "--norm-position must be one of 'pre', 'post'"),
        ("--colour red", "--colour"),
        ("--epsilon 0.1", "epsilon must be left out for a ResidualNetwork, got 0.1"),
        ("--family block --weight-variance 2", "must be left out for a BlockNetwork, got 2.0; did"),
        ("--network missing.toml", "cannot be read from 'missing.toml' (there is no such file)"),
        ("--network broken.toml", "network cannot be read from 'broken.toml' (Expected '='"),
        ("--network two.csv", "network cannot be read from 'two.csv'"),
        (
            "--network unknown.toml",
            "rho must be left out for a ResidualNetwork, got 0.1; did you mean branch_scale (ρ)?",
        ),
        ("--network wrong.toml", "depth must be an integer >= 1, got 'two'"),
        ("--network family.toml", "family must be one of ResidualNetwork, FeedForwardNetwork, B"),
        ("--network diffusion.toml", "BlockNetwork, got 'DiffusionNetwork'"),
        ("--network block.toml --bias-variance 1", "bias_variance must be left out for a Block"),
        ("--K0 1,2,3;4,5,6", "K0 must be a number or a square matrix a,b;b,c, got shape (2, 3)"),
        ("--K0 1,2;3", "K0 must have rows of one length"),
        ("--K0 ''", "K0 must be a number or numbers separated by commas, got ''"),
        ("--K0 missing.csv", "K0 cannot be read from 'missing.csv' (there is no such file)"),
        *(
            (f"--branch-scale {text}", "branch_scale must be a number or numbers")
            for text in ("0.3,a", "''", "1,", "'1 2'")
        ),
        (
            "--schedule none --branch-scale 0.3",
            "schedule and branch_scale must not both be given, got 'none' and '0.3'",
        ),
        ("-L 2 --digits 30 --decorrelation", "not there with --digits"),
        ("--decorrelation", "two inputs or more, got one"),
        ("-L 1 --data two.csv --convention F25", "input_dim must be given with data"),
        ("--scale none", "scale must be left out without data"),
        ("--drop a", "drop must be left out without data, got 'a'"),
    ],
    "optimum": [
        *((f"--data digits --scale {scale}", "scale must be") for scale in ("0", "nan", "x")),
    ],
    "sweep": [
        ("", "Missing option '--over'"),
        ("--over depth", "over must be a parameter and its values name=a,b,..., got 'depth'"),
        ("--over depth=", "over must be a parameter and its values"),
        ("--over =1", "over must be a parameter and its values"),
        ("--over depth=1.5", "depth must be integers"),
        *(
            (f"--over branch_scale={text}", "branch_scale must have values start:stop:count")
            for text in ("0:1", "0:1:1", "0:1:2:3", "0:1:-2")
        ),
        ("--over depth=1 --over depth=2", "every parameter once, got depth again"),
        ("--over width=1,2 --of kernels,response", "over the same layers for one table"),
        ("--over depth=1 --save grid.npz", "save must be a file that ends in .nc"),
        ("--over depth=1 --save none/g.nc", "save must lie in a folder that exists"),
    ],
    "derive": [
        *((f"-L 1 --branch-scale '{text}'", "branch_scale must be") for text in ("x", "0.1,0.2")),
        ("--gated", "gated must be left out for --family residual"),
    ],
    "derive --family block -L 2": [
        ("--skip-scale 1", "skip_scale must be left out for --family block, got '1'"),
    ],
    "optimum --family block -L 2": [
        ("-m deep_limit", "method='deep_limit' is not there for a BlockNetwork"),
        ("", "that of one input of a BlockNetwork vanishes for every ρ"),
    ],
    "tangent --family block -L 2": [("--rate weight=2", "rates must be one of readin_weight")],
    "verify": [("--coverage --format html", "format must be")],
    "critical": [
        ("--skip-scale x", "skip_scale must be a number or numbers"),
        ("--depth 10", "depth and width must be given together"),
        ("--family block --outputs 2", "depth, width and outputs must be left out"),
    ],
    "diffusion": [
        ("--scale 1", "scale must be left out without data, got '1'"),
        ("--network block.toml", "family must be one of DiffusionNetwork, got 'BlockNetwork'"),
        ("-z a,b", "inputs must be a number or numbers separated by commas, got 'a,b'"),
        ("-z 1,2;3", "inputs must have rows of one length"),
        ("--times 1", "--times must be greater than or equal to 2, got '1'"),
        ("--latex network --conditions", "conditions and latex must not both be given"),
        ("--compare", "compare is for simulations: say --simulate SAMPLES as well"),
        ("--seed 0", "seed is for simulations"),
        ("-n 20 -L 5 --steps 5", "steps is for infinite depth, got depth=5"),
        ("-n 20 --save e.nc", "save must be a file that ends in .npz"),
        ("--law other.npz", "law must be a file of arrays row_covariance"),
        ("--law missing.npz", "law cannot be read from 'missing.npz' (there is no such file)"),
    ],
    "tangent": [
        ("--rate weight=fast", "rate must be a number or numbers separated by"),
        ("--rate 0.5", "rate must be a kind of parameters and its rate kind=0, got '0.5'"),
        ("--data two.csv --parametrization standard", "input_dim must be given with data in the"),
    ],
    "measure": [
        ("", "Missing option '--block'"),
        ("--block single", "block must be module:name, such as blocks:two_layers"),
        ("--block :single", "block must be module:name"),
        ("--block no_such_module:f", "got 'no_such_module': ModuleNotFoundError"),
        ("--block no_such_file.py:f", "got 'no_such_file.py': FileNotFoundError"),
        ("--block broken_blocks_of_test:f", "ZeroDivisionError: division by zero"),
        ("--block blocks_of_test:double", "blocks_of_test, which has no 'double'"),
        (f"{BLOCK} --gamma 1", "did you mean --skip-scale (γ)?"),
    ],
    "audit": [
        ("", "Missing argument 'MODULE:NAME'"),
        ("blocks_of_test:single", "model must be callable as model(): missing a required"),
        ("broken.npz", "got the file 'broken.npz', which is no module"),
        ("broken.npz:net", "got the file 'broken.npz', which is no module"),
    ],
    "posterior -L 3 --width 100 --branch-scale 0.5 --count 10": [
        ("--test 1", "test must be a share from 0 to below 1, got 1.0"),
        ("--labels nowhere.csv", "labels cannot be read from 'nowhere.csv' (there is no such"),
        ("--labels other.npz", "got 'other.npz'; for a column of the data say --label"),
        ("--labels few.csv", "3 rows, must be one for each of the 10 samples"),
    ],
    "posterior": [
        ("--data two.csv", "labels must be given"),
        ("--family block -L 1 --count 4 --paths 400", "samples is not there for a BlockNetwork"),
    ],
    "figures": [
        ("--out x", "did you mean --output?"),
        ("f25.fig99b", "NAME must be one of blocks."),
        ("sr.z*", "a pattern of them such as sr.*, got 'sr.z*'"),
        ("f25.fig3 -o one.csv", "output must be a folder, got the file"),
    ],
    "run": [
        ("--standardize", "did you mean --standardise?"),
        ("--standardise", "standardise is for columns of a file, got True and data 'digits'"),
        ("--network block.toml", "family must be one of ResidualNetwork, FeedForwardNetwork, got"),
        ("--count 102", "count must be at most 100 for one page, got 102"),
        ("--classes cats", "classes must be"),
        ("--output mine", "output must be"),
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    np.savez(tmp_path / "other.npz", rows=np.eye(2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [(f"{command} {line}", words) for command, cases in CASES.items() for line, words in cases],
)
def test_bad_input(line, words, folder):
    assert words in refusal(*shlex.split(line))
    assert {*os.listdir(), "__pycache__"} == {*FILES, "other.npz", "mine", "__pycache__"}
    assert os.listdir("mine") == ["thesis.tex"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        slow("--rho", "--branch-scale (ρ)"),
        ("--sigma-w", "--weight-variance (σ_w²)"),
        ("--layers", "--depth (L)"),
        ("--widht", "--width (N)"),
    ],
)
def test_options_by_another_name(typed, meant):
    words = f"no such option {typed}: did you mean {meant}?"
    assert refusal("solve", typed, 1) == words


@pytest.mark.parametrize(
    "command",
    [
        "solve --K0=-1",
        "tangent --K0=-1",
        "posterior -L 2 --count 10 --noise 0",
        "diffusion -a sinh(h) --weight-variance 1e300",
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(command, folder):
    command = command.split()
    assert "save must" not in refusal(*command)
    assert "save must be a file that ends in .npz or .nc" in refusal(*command, "--save", "s.txt")
    assert "save must lie in a folder that exists" in refusal(*command, "--save", "none/s.npz")


def test_without_parts_nothing_is_promised(folder, monkeypatch):
    from fieldtheory.montecarlo import simulation

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "simulate", interrupted)
    result = call(*"simulate -L 2 --width 30 -n 40".split())
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
