"""The pages of docs/start, docs/howto and docs/developers run and print what they show."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests import pages

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = sorted(
    page for room in ("start", "howto", "developers") for page in DOCS.glob(f"{room}/*.md")
)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: f"{page.parent.name}/{page.stem}")
@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
def test_page_runs_and_prints_what_it_shows(page, tmp_path):
    if "import torch" in page.read_text(encoding="utf-8") and not find_spec("torch"):
        pytest.skip("torch is not installed")
    pages.run(page, tmp_path)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_links_of_pages_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_family_of_the_page_has_its_own_recursion(tmp_path):
    found, _ = pages.run(DOCS / "developers" / "add_a_family.md", tmp_path)
    net, s = found["net"], found["s"]
    # K^(l) = K^(l-1) + ρ² σ²_w (M + r K^(l-1)), with M of erf typed (Williams 1997).
    K = 0.1
    for kernel in s.kernels[1:-1]:
        moment = 2 / np.pi * np.arctan2(2 * K, np.sqrt(1 + 4 * K))
        K += net.branch_scale**2 * (moment + net.share * K)
        np.testing.assert_allclose(kernel, K, rtol=1e-13)


def test_a_page_that_shows_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(pages.DifferentError, match=r"1 \+ 1"):
        pages.run(page, tmp_path)
    assert pages.run(page, tmp_path, write=True)[1] == "```pycon\n>>> 1 + 1\n2\n```\n"
