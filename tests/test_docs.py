"""The pages of docs/ hold the numbers that the package gives, and their examples run."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import fieldtheory as ft

FOLDER = Path(__file__).parents[1] / "docs"
PAGE = (FOLDER / "optimal_scaling.md").read_text(encoding="utf-8")
SCRIPT = runpy.run_path(str(FOLDER / "optimal_scaling.py"))


def recomputed(name, depths):
    """The rows of a table of the page and those that the package gives."""
    head, rule, *rows = SCRIPT["shown"](PAGE, name)
    by_depth = {int(row.split("|")[1]): row for row in rows}
    assert tuple(by_depth) == SCRIPT["DEPTHS"]
    return [head, rule, *(by_depth[depth] for depth in depths)], SCRIPT["TABLES"][name](depths)


@pytest.mark.parametrize("name", SCRIPT["TABLES"])
def test_tables_of_optima_are_up_to_date(name):
    shown, new = recomputed(name, [depth for depth in SCRIPT["DEPTHS"] if depth <= 10])
    assert shown == new


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPT["TABLES"])
def test_tables_of_optima_are_up_to_date_at_all_depths(name):
    shown, new = recomputed(name, SCRIPT["DEPTHS"])
    assert shown == new


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


def printed(name, count):
    """Run the examples of a page, which print what the page shows; what they leave behind."""
    page, found = (FOLDER / name).read_text(encoding="utf-8"), {}
    cells = re.findall(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", page, re.DOTALL)
    assert len(cells) == page.count("```python") == count
    for code, shown in cells:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, name, "exec"), found)
        assert output.getvalue().strip() == shown.strip()
    return found


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
def test_finite_width_prints_what_is_shown():
    printed("finite_width.md", 3)


def test_what_finite_networks_learn_prints_what_is_shown():
    printed("posterior.md", 1)
    printed("tilted_posterior.md", 1)


def test_stable_resnet_prints_what_is_shown():
    printed("stable_resnet.md", 4)


def test_diffusions_print_what_is_shown():
    printed("diffusions.md", 4)


def test_links_exist():
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE)
    assert len(targets) == 2
    for target in targets:
        assert (FOLDER / target).exists(), target
