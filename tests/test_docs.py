"""The pages of docs/ hold the numbers that the package gives, and their examples run."""

import contextlib
import doctest
import io
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from _pytest.doctest import _get_checker, _get_number_flag

import fieldtheory as ft

FOLDER = Path(__file__).parents[1] / "docs"


def page(name):
    """The text of a page, in whichever folder it is."""
    (path,) = FOLDER.rglob(name)
    return path.read_text(encoding="utf-8")


PAGE = page("optimal_scaling.md")
SCRIPT = runpy.run_path(str(next(FOLDER.rglob("optimal_scaling.py"))))


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


def test_a_family_of_ones_own():
    code = re.search(r"```python\n(.*?)```", page("families.md"), re.DOTALL).group(1)
    output, found = io.StringIO(), {"__name__": "families"}
    with contextlib.redirect_stdout(output):
        exec(compile(code, "families.md", "exec"), found)
    assert r"\mathrm{share}" in output.getvalue()
    assert "Is the theory right? Yes" in output.getvalue()
    net, s = found["net"], found["s"]
    # K^(l) = K^(l-1) + ρ² σ²_w (M + r K^(l-1)), with M of erf typed (Williams 1997).
    K = 0.1
    for kernel in s.kernels[1:-1]:
        moment = 2 / np.pi * np.arctan2(2 * K, np.sqrt(1 + 4 * K))
        K += net.branch_scale**2 * (moment + net.share * K)
        np.testing.assert_allclose(kernel, K, rtol=1e-13)


# Tests above run these.
ELSEWHERE = {"families.md", "optimal_scaling.md"}
RUNNER = doctest.DocTestRunner(
    _get_checker(),
    optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | _get_number_flag(),
)
BLOCK = re.compile(
    r"^```python\n(.*?)^```(?:\n\nprints\n\n```\n(.*?)^```)?", re.DOTALL | re.MULTILINE
)


def pages_with_examples():
    """Names and texts of the pages that `make docs` does not execute."""
    for path in sorted(FOLDER.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "```python" in text and "{code-cell}" not in text and path.name not in ELSEWHERE:
            yield pytest.param(path.name, text, id=str(path.relative_to(FOLDER)))


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
@pytest.mark.parametrize(("name", "text"), [*pages_with_examples()])
def test_examples_of_the_pages_run(name, text, tmp_path, monkeypatch):
    """Blocks run in turn, those with >>> as doctests; the others print what is shown below them."""
    if "fieldtheory.training" in text or "import torch" in text:
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    found = {"__name__": "__main__"}
    for code, shown in BLOCK.findall(text):
        output = io.StringIO()
        if code.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(code, found, name, None, 0)
            failed, _ = RUNNER.run(test, out=output.write, clear_globs=False)
            assert not failed, output.getvalue()
            found = test.globs
        else:
            with contextlib.redirect_stdout(output):
                exec(compile(code, name, "exec"), found)
            assert output.getvalue().strip() == shown.strip()
    if name == "measured_blocks.md":  # what it says about blocks without overlap and γ = 1
        with pytest.raises(ValueError, match="skip_scale must be below 1"):
            found["m"].scales(skip_scale=1.0)
