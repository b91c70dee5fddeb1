"""The site has every public name and every figure, and its links lead somewhere."""

import importlib
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import fieldtheory as ft
from fieldtheory.cli.figures_command import FIGURES
from tests.test_package import FRONT_DOORS

ROOT = Path(__file__).parents[1]
TEXTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("notebooks/*.ipynb"),
]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)\s#]+)(?:#[^)\s]*)?\)")


def test_every_figure_is_in_the_gallery():
    papers = tomllib.loads((ROOT / "docs/gallery.toml").read_text(encoding="utf-8"))
    pages = {
        f"{paper}.{figure}"
        for paper, entries in papers.items()
        for figure in entries.keys() - {"name", "source"}
    }
    assert pages == set(FIGURES)


def names_in_the_api():
    """Names after `currentmodule` in the index of the API, as module.name."""
    module = ""
    for line in (ROOT / "docs/api/index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif line.startswith("   ") and ":" not in line:
            yield f"{module}.{line.strip()}"


def test_every_public_name_is_in_the_api_and_nothing_that_is_not_there():
    listed = list(names_in_the_api())
    assert len(listed) == len(set(listed))
    things = []
    for name in listed:
        module, _, last = name.rpartition(".")
        if module != "fieldtheory.training" or find_spec("torch"):
            things.append(getattr(importlib.import_module(module), last))
    front = {f"fieldtheory.{name}" for name in [*ft.__all__, *ft._ELSEWHERE]}
    assert front <= set(listed)
    for door in FRONT_DOORS:
        module = importlib.import_module(door)
        for name in getattr(module, "__all__", ()):
            assert any(getattr(module, name) is thing for thing in things), f"{door}.{name}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_to_files(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
