"""Bad input of every command: one line on stderr, and no file more than there was."""

import os
import shlex

import numpy as np
import pytest

from tests.cli.test_app import MATRIX, call, refusal
from tests.cli.test_measure_command import SOURCE
from tests.tables import slow

FILES = {
    "broken.npz": "not an archive",
    "constant.csv": "1,2\n3,3\n",
    "infinite.csv": "1,2\n3,inf\n",
    "one.csv": "1,2\n",
    "two.csv": "1,0\n0,1\n",
    "few.csv": "1\n1\n1\n",
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
        ("--depth 0", "depth must be an integer >= 1, got 0"),
        ("--depth 2.5", "--depth"),
        ("--depth many", "--depth"),
        ("--weight-variance -1", "weight_variance must be"),
        ("--bias-variance nan", "bias_variance must be"),
        ("--readout-weight-variance inf", "readout_weight_variance must be"),
        ("--readout-bias-variance -0.1", "readout_bias_variance must be"),
        ("--depth 3 --skip-scale 1,1", "skip_scale must be"),
        ("--epsilon 0.1", "epsilon must be left out for --family residual, got 0.1"),
        ("--family block --weight-variance 2", "weight_variance must be left out for --family"),
        ("--family block --inner-weight-variance a", "inner_weight_variance must be a number"),
        ("--family block --norm-position both", "--norm-position must be one of 'pre', 'post'"),
        ("--family blocks", "--family must be one of 'residual', 'block', got 'blocks'"),
        ("--skip-scale nan", "skip_scale must be"),
        ("--activation nonsense", "activation must be"),
        ("--activation tanh(x*y)", "activation must be"),
        ("--activation \"__import__('os').getcwd()\"", "activation must be"),
        ("--K0 0.05,0.06;0.06,0.05", "K0 must be positive semidefinite"),
        ("--K0 1,2,3;4,5,6", "K0 must be"),
        ("--K0 1,0.5;0.4,1", "K0 must be symmetric"),
        ("--K0 1;2", "K0 must be"),
        ("--K0 1,2;3", "K0 "),
        ("--K0 ''", "K0 "),
        ("--K0 a,b", "K0 "),
        ("--K0 -1", "K0 must be"),
        ("--K0 nan", "K0 must be"),
        ("--K0 missing.csv", "K0 must be"),
        ("--K0 missing.npy", "K0 "),
        ("--format xml", "--format must be one of 'table', 'csv', 'json', got 'xml'"),
        ("--colour red", "--colour"),
        ("--depth 3 --branch-scale 1,2", "branch_scale must be"),
        ("--branch-scale inf", "branch_scale must be"),
        ("--schedule unifrom", "got 'unifrom'; did you mean uniform?"),
        ("--branch-scale unifrom", "got 'unifrom'; did you mean uniform?"),
        ("--branch-scale 0.3,a", "branch_scale must be a number or numbers"),
        ("--branch-scale ''", "branch_scale must be a number"),
        ("--branch-scale 1,", "branch_scale must be a number"),
        ("--branch-scale '1 2'", "branch_scale must be a number"),
        (
            "--schedule none --branch-scale 0.3",
            "schedule and branch_scale must not both be given, got 'none' and '0.3'",
        ),
        ("--width 0", "width must be"),
        (f"-L 1 --order 2 --K0 {MATRIX}", "_2 is for one input"),
        ("--order x", "--order must be a valid integer, got 'x'"),
        ("--order 3", "order must be 1 or 2, the highest power of 1/N, got 3"),
        ("-a exp(h) -L 30 --fluctuations", "exceeds the range of float64"),
        ("-a sin(1/h) -L 1", "activation must have its jumps"),
        ("-a 1/h -L 1", "misses the relative error 1e-12; activation must have finite"),
        ("-a sigmiod", "did you mean sigmoid?"),
        ("-L 2 --digits 30 --decorrelation", "not there with --digits"),
        ("--decorrelation", "two inputs or more, got one"),
        ("--convention f25", "must be one of 'derivative', 'F25', got 'f25'"),
        ("-L 1 --data two.csv --convention F25", "input_dim must be given with data"),
        ("--data none.csv", "there is no such file"),
        ("--scale none", "scale must be left out without data"),
        ("--drop a", "drop must be left out without data, got 'a'"),
    ],
    "optimum": [
        ("--method guess", "--method"),
        (f"-m saturation -a gelu --K0 {MATRIX}", "K0 must be"),
        ("-a relu", "network must have a response with a maximum"),
        *((f"--data digits --scale {scale}", "scale must be") for scale in ("0", "-1", "nan", "x")),
    ],
    "sweep": [
        ("", "Missing option '--over'"),
        ("--over depth", "over must be a parameter and its values name=a,b,..., got 'depth'"),
        ("--over depth=", "over must be a parameter and its values"),
        ("--over =1", "over must be a parameter and its values"),
        ("--over depth=1.5", "depth must be integers"),
        ("--over branch_scale=a", "branch_scale must be a number"),
        ("--over branch_scale=0:1", "branch_scale must have values start:stop:count"),
        ("--over branch_scale=0:1:1", "branch_scale must have values start:stop:count"),
        ("--over branch_scale=0:1:2:3", "branch_scale must have values start:stop:count"),
        ("--over rho=1,2", "got 'rho': did you mean branch_scale (ρ)?"),
        ("--over depth=1 --over depth=2", "every parameter once, got depth again"),
        ("--over depth=1 --of chy", "got 'chy'"),
        ("--over depth=1 --of chi", "of must not have response where depth is swept"),
        ("--over depth=1 --of kernels", "of must not have kernels where depth is"),
        ("--over width=1,2 --of kernels,response", "over the same layers for one table"),
        ("--over depth=1 --save grid.npz", "save must be a file that ends in .nc"),
        ("--over depth=1 --save none/g.nc", "save must lie in a folder that exists"),
    ],
    "derive": [
        ("--depth 0", "depth must be"),
        ("--inputs 0", "inputs must be"),
        ("--what nothing", "quantity must be one of action"),
        ("--width 10", "width must be"),
        *((f"-L 1 --branch-scale '{text}'", "branch_scale must be") for text in ("x", "", "nan")),
        ("-L 1 --branch-scale 0.1,0.2", "branch_scale must be"),
    ],
    "verify": [
        ("--digits 3", "digits must be"),
        ("--activations arf", "activations must be"),
        ("--papers F24", "papers must be"),
        ("--papers ''", "papers must be"),
        ("--paper F25 --equation 999", "equation must be"),
        ("--coverage --format html", "format must be"),
    ],
    "critical": [
        ("--skip-scale 1", "at γ² = 1 no weights are critical"),
        ("--skip-scale x", "skip_scale must be a number or numbers"),
        ("--skip-scale 2", "skip_scale must be a number between -1 and 1, got 2"),
        ("-a softplus", "softplus has none"),
        ("--depth 10", "depth and width must be given together"),
        ("--depth 0 --width 10", "depth must be an integer >= 1"),
        ("--outputs 0", "outputs must be an integer >= 1"),
    ],
    "diffusion": [
        ("--scale 1", "scale must be left out without data, got '1'"),
        ("-L 0", "depth must be an integer >= 1, got 0"),
        ("-L deep", "depth must be an integer >= 1 or infinite, got 'deep'"),
        ("--width 0", "width must be an integer >= 1, got 0"),
        ("-T 0", "horizon must be"),
        ("-T 6 -a swish", "horizon must be below the explosion time"),
        ("-a cos", "activation must be 0 at 0"),
        ("-a relu", "activation must have derivatives at 0"),
        ("--input-activation tahn", "input_activation"),
        ("--weight-variance -1", "weight_variance must be"),
        ("-z a,b", "inputs must be a number or numbers separated by commas, got 'a,b'"),
        ("-z nan", "Z must be"),
        ("-z 1,2;3", "inputs must have rows of one length"),
        ("-z 1,2;3,4 --width 3", "Z must have shape"),
        ("--data nowhere.csv", "nowhere.csv"),
        ("--times 1", "--times must be greater than or equal to 2, got '1'"),
        ("--latex nothing", "quantity must be one of network"),
        ("--latex exact_moments -a swish", "needs an activation with φ''(0) = 0"),
        ("--latex network --conditions", "conditions and latex must not both be given"),
        ("--compare", "compare is for simulations: say --simulate SAMPLES as well"),
        ("--seed 0", "seed is for simulations"),
        ("-n 5", "samples must be an integer >= 20"),
        ("-n 20 -L 5 --steps 5", "steps is for infinite depth, got depth=5"),
        ("-n 20 -m gram -a swish", "method 'gram' is for"),
        ("-n 20 --save e.nc", "save must be a file that ends in .npz"),
        ("--law other.npz", "law must be a file of arrays row_covariance"),
        ("--law missing.npz", "law must be an .npz file that exists"),
    ],
    "tangent": [
        ("-a sign", "activation must have no jumps"),
        ("-L 2 --weight-rates 1,2", "weight_rates must be a number or depth + 2 = 4"),
        ("--weight-rates fast", "weight_rates must be a number or numbers separated by"),
        ("--bias-rates -1", "bias_rates must be >= 0"),
        ("--parametrization mup", "must be one of 'ntk', 'standard', got 'mup'"),
        ("-k 0.01 --parametrization standard", "K0 must have variances of at least"),
        ("--data two.csv --parametrization standard", "input_dim must be given with data in the"),
        ("-L 7 -a h**3 --weight-variance 9 -k 0.5", "leaves the range of float64"),
    ],
    "simulate": [
        ("-n 5", "samples must be an integer >= 20"),
        ("--seed -1", "seed must be an integer >= 0, got -1"),
        ("--method guess", "--method"),
    ],
    "measure": [
        ("", "Missing option '--block'"),
        ("--block single", "block must be module:name, such as blocks:two_layers"),
        ("--block :single", "block must be module:name"),
        ("--block no_such_module:f", "got 'no_such_module': ModuleNotFoundError"),
        ("--block no_such_file.py:f", "got 'no_such_file.py': FileNotFoundError"),
        ("--block broken_blocks_of_test:f", "ZeroDivisionError: division by zero"),
        ("--block blocks_of_test:double", "blocks_of_test, which has no 'double'"),
        ("--block blocks_of_test:narrow -n 20", "got shape (1, 63)"),
        (f"{BLOCK} -n 3", "samples must be an integer >= 20"),
        (f"{BLOCK} --width 0", "width must be an integer >= 1, got 0"),
        (f"{BLOCK} --K0 0", "K0 must have a variance > 0"),
        (f"{BLOCK} -n 20 --skip-scale 1", "skip_scale must be below 1"),
        (f"{BLOCK} --gamma 1", "did you mean --skip-scale (γ)?"),
    ],
    "audit": [
        ("", "Missing argument 'MODULE:NAME'"),
        ("single", "model must be module:name"),
        ("blocks_of_test:double", "blocks_of_test, which has no 'double'"),
        ("blocks_of_test:np", "model must be a torch.nn.Module, got <module 'numpy'"),
        ("blocks_of_test:single", "model must be callable as model(): missing a required"),
        ("broken.npz", "got the file 'broken.npz', which is no module"),
        ("broken.npz:net", "got the file 'broken.npz', which is no module"),
    ],
    "posterior -L 3 --width 100 --branch-scale 0.5 --count 10": [
        ("--test 1", "test must be a share from 0 to below 1, got 1.0"),
        ("--noise 0", "noise_variance must be"),
        ("--labels nowhere.csv", "labels must be a .csv or .npy file of numbers"),
        (
            "--labels other.npz",
            "that exists, got 'other.npz'; for a column of the data say --label",
        ),
        ("--labels few.csv", "3 rows, must be one for each of the 10 samples"),
        ("--order 2", "order must be 0 or 1"),
        ("--paths 3", "samples must be an integer >= 320"),
    ],
    "posterior": [("--data two.csv", "labels must be given")],
    "figures": [
        ("--out x", "did you mean --output?"),
        ("f25.fig99", "NAME must be one of blocks."),
        ("f25.fig99b", "f25.fig99b"),
        ("sr.z*", "a pattern of them such as sr.*, got 'sr.z*'"),
        ("f25.fig3 -o one.csv", "output must be a folder, got the file"),
        ("f25.fig2 --inputs 1", "inputs must be an integer >= 2"),
        ("f25.fig2 -n 2", "samples must be an integer >= 20"),
        ("f25.fig6 --data-folder missing", "there is no such folder"),
        ("f25.fig6 --data-folder .", "batches.meta': there is no such file"),
    ],
    "run": [
        ("--depths 5", "did you mean --depth (L)?"),
        ("--out x", "no such option --out: did you mean --output?"),
        ("--standardize", "did you mean --standardise?"),
        ("--data two.csv --drop a", "drop must be one of 1, 0, got 'a'"),
        ("--standardise", "standardise is for columns of a file, got True and data 'digits'"),
        ("--depth 0", "depth must be"),
        ("--count 3", "count must be"),
        ("--count 102", "count must be at most 100 for one page, got 102"),
        ("--classes 0,12", "classes must be"),
        ("--classes cats", "classes must be"),
        ("--data missing.csv", "no such file"),
        ("--data broken.npz", "cannot be read"),
        ("--data constant.csv", "samples must not be constant"),
        ("--data infinite.csv", "must be a finite number"),
        ("--data one.csv", "at least 2 samples"),
        ("--output mine", "output must be"),
        ("--output missing/results", "output must lie in"),
        ("--output one.csv", "output must be a folder"),
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
        slow("--gamma", "--skip-scale (γ)"),
        slow("--phi", "--activation (φ)"),
        slow("--layers", "--depth (L)"),
        ("--widht", "--width (N)"),
    ],
)
def test_options_by_another_name(typed, meant):
    for command in ("solve", "simulate", "sweep"):
        words = f"no such option {typed}: did you mean {meant}?"
        assert refusal(command, typed, 1) == words


@pytest.mark.parametrize(
    "command",
    ["solve --K0=-1", "tangent --K0=-1", slow("diffusion -a sinh(h) --weight-variance 1e300")],
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
