"""The pages of docs/ hold the numbers that the package gives, and their examples run."""

import os
import pydoc
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import fieldtheory as ft
from tests import pages
from tests.test_notebooks import QUICK

FOLDER = Path(__file__).parents[1] / "docs"


def page(name):
    """The text of a page, in whichever folder it is."""
    (path,) = FOLDER.rglob(name)
    return path.read_text(encoding="utf-8")


PAGE = page("optimal_scaling.md")
SCRIPT = runpy.run_path(str(next(FOLDER.rglob("optimal_scaling.py"))))


def recomputed(name, depths):
    """The rows of a table of the page and those that the package gives."""
    head, rule, *rows = SCRIPT["table_rows"](PAGE, name)
    by_depth = {int(row.split("|")[1]): row for row in rows}
    assert tuple(by_depth) == SCRIPT["DEPTHS"]
    return [head, rule, *(by_depth[depth] for depth in depths)], SCRIPT["TABLES"][name](depths)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPT["TABLES"])
def test_tables_of_optima_are_up_to_date(name):
    printed, new = recomputed(name, [depth for depth in SCRIPT["DEPTHS"] if depth <= 10])
    assert printed == new


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPT["TABLES"])
def test_tables_of_optima_are_up_to_date_at_all_depths(name):
    printed, new = recomputed(name, SCRIPT["DEPTHS"])
    assert printed == new


def errors(K0, depths, method, **parameters):
    networks = [ft.ResidualNetwork(**{"depth": depth} | parameters) for depth in depths]
    exact = ft.optimal_scaling(networks, K0)
    return ft.optimal_scaling(networks, K0, method=method) / exact - 1


def test_where_the_deep_limit_is_closer_than_saturation():
    limit, saturated = (
        np.abs(errors(0.05, (3, 4, 5, 10), method)) for method in ("deep_limit", "saturation")
    )
    assert (limit < saturated).tolist() == [False, True, True, True]
    equal = {"weight_variance": 2.0, "bias_variance": 0.0}
    for method in ("deep_limit", "saturation"):
        np.testing.assert_allclose(errors(0.02, (5,), method, **equal), -0.18, atol=0.005)


@pytest.mark.parametrize("K0", [0.01, 0.02, 0.05, 0.1, 0.15])
@pytest.mark.parametrize("ratio", [0.0, 0.02, 0.04])
def test_deep_limit_is_closer_from_eight_layers_on_with_small_biases(K0, ratio):
    parameters = {"weight_variance": 1.0, "bias_variance": ratio}
    limit, saturated = (
        np.abs(errors(K0, (8, 20, 50), method, **parameters))
        for method in ("deep_limit", "saturation")
    )
    assert (limit < saturated).all()


def test_saturation_formula_may_be_right_by_chance_and_far_off_with_larger_biases():
    chance = {"weight_variance": 1.0, "bias_variance": 0.08}
    limit, saturated = (
        np.abs(errors(0.02, (50, 100), method, **chance)) for method in ("deep_limit", "saturation")
    )
    assert (limit < saturated).tolist() == [False, True]
    signs = [
        np.sign(errors(0.05, (200,), "saturation", weight_variance=1.0, bias_variance=ratio)[0])
        for ratio in (0.06, 0.08)
    ]
    assert signs == [-1, 1]
    far = errors(0.05, (500,), "saturation", weight_variance=1.0, bias_variance=0.2)
    np.testing.assert_allclose(far, 1.0, atol=0.05)


def test_example_runs():
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
    X = np.random.default_rng(0).normal(size=(3, 100)) * 0.2
    exec(compile(code, "optimal_scaling.md", "exec"), {"X": X})


# Tests above run this one. Pages with cells are executed when the site is built.
PAGES = [
    pytest.param(path, id=str(path.relative_to(FOLDER)))
    for path in sorted(FOLDER.rglob("*.md"))
    if path.name != "optimal_scaling.md"
    if pages.BLOCK.search(text := path.read_text(encoding="utf-8")) and "{code-cell}" not in text
]


@pytest.mark.slow_but(1, 26)
@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
@pytest.mark.parametrize("path", PAGES)
def test_pages_run_and_print_what_they_show(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    if "fieldtheory.training" in text or "import torch" in text:
        pytest.importorskip("torch", reason="torch is not installed")
    found, _ = pages.run(path, tmp_path)
    if path.name == "add_a_family.md":
        # K^(l) = K^(l-1) + ρ² σ²_w (M + r K^(l-1)), with M of erf typed (Williams 1997).
        K, net = 0.1, found["net"]
        for kernel in found["s"].kernels[1:-1]:
            moment = 2 / np.pi * np.arctan2(2 * K, np.sqrt(1 + 4 * K))
            K += net.branch_scale**2 * (moment + net.share * K)
            np.testing.assert_allclose(kernel, K, rtol=1e-13)


def test_a_family_of_another_package_is_part_of_names_and_shell(tmp_path):
    (block,) = re.findall(
        r"^```python\n(# orthogonal.py\n.*?)^```", page("add_a_family.md"), re.M | re.S
    )
    (tmp_path / "orthogonal.py").write_text(block, encoding="utf-8")
    metadata = tmp_path / "orthogonal-1.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[fieldtheory.families]\no = orthogonal:FAMILY\n")
    program = (
        "import fieldtheory as ft; from fieldtheory.cli.app import app; "
        "assert 'OrthogonalNetwork' in ft.__all__; "
        "print(ft.solve(ft.OrthogonalNetwork(depth=1, scale=3.0), 1.0)); app(['orthogonal'])"
    )
    path = os.pathsep.join([str(tmp_path), str(FOLDER.parent)])
    called = [sys.executable, "-c", program]
    result = subprocess.run(called, env=os.environ | {"PYTHONPATH": path}, capture_output=True)
    assert result.stdout.decode() == "[1. 9.]\n[1.     0.25   0.0625]\n", result.stderr.decode()


def test_a_page_that_shows_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    for shown in (
        "```pycon\n>>> 1 + 1\n{}\n```\n",
        "```python\nprint(2)\n```\n\nprints\n\n```\n{}\n```\n",
    ):
        page.write_text(shown.format(3), encoding="utf-8")
        with pytest.raises(pages.DifferentError, match=r"(?s)shows\n3\n.*printed is\n2\n"):
            pages.run(page, tmp_path)
        assert pages.run(page, tmp_path, write=True)[1] == shown.format(2)


def test_names_on_pages_exist():
    """Names such as ft.solve and fieldtheory.inference.condition, also in {py:func}`...`."""
    for path in FOLDER.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        for name in set(re.findall(r"(?<![\w/.-])fieldtheory((?:\.[A-Za-z_]\w*)+)", text)):
            if not name.startswith(".training") or find_spec("torch"):
                assert pydoc.locate(f"fieldtheory{name}") is not None, f"{path.name}: {name}"
        missing = [
            n for n in re.findall(r"(?<![\w.])ft\.([A-Za-z_]\w*)", text) if not hasattr(ft, n)
        ]
        assert not missing, f"{path.name}: {missing}"


def test_every_research_task_is_a_page_that_runs():
    """The seven tasks of docs/howto/index.md lead to pages and notebooks that the tests execute."""
    tasks = (FOLDER / "howto" / "index.md").read_text(encoding="utf-8").split("## Seven")[1]
    rows = re.findall(r"^\| (?!task|--)(.*?) \| (.*) \|$", tasks, re.MULTILINE)
    run = {path for page in PAGES for path in page.values} | set(QUICK)
    assert len(rows) == 7
    for task, links in rows:
        targets = [(FOLDER / "howto" / link).resolve() for link in re.findall(r"\((.*?)\)", links)]
        assert run.intersection(targets), task
