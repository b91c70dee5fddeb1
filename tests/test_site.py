"""The site has every public name and every figure, and its links lead somewhere."""

import csv
import importlib
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import fieldtheory as ft
from fieldtheory.cli.figures_command import FIGURES
from tests.test_package import PUBLIC_MODULES

ROOT = Path(__file__).parents[1]
TEXTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("notebooks/*.ipynb"),
]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)\s#]+)(?:#[^)\s]*)?\)")
PATH = re.compile(
    r"(?<![\w/.])(?:docs|notebooks|derivations|benchmarks|tests)/[\w/]+\.(?:md|ipynb|py|tex)\b"
)
EXTERNAL = re.compile(r"https?://[^\s`\"'<>)\]}|,]+")
SOURCES = [
    path
    for folder in ("fieldtheory", "derivations", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
]


def test_every_figure_is_in_the_gallery():
    papers = tomllib.loads((ROOT / "docs/gallery.toml").read_text(encoding="utf-8"))
    pages = {
        f"{paper}.{figure}"
        for paper, entries in papers.items()
        for figure in entries.keys() - {"name", "source"}
    }
    assert pages == set(FIGURES)


def rows_of_docs(name):
    with open(ROOT / f"docs/{name}.tsv", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


@pytest.mark.parametrize("page", ["verification", "faults", "mutants"])
def test_tests_of_the_verification_page_exist_and_have_its_tolerances(page):
    for row in rows_of_docs(page):
        for test in row["test"].split() + row.get("changed", "").split():
            if test.startswith("tests/"):
                name, _, function = test.partition("::")
                text = (ROOT / name).read_text(encoding="utf-8")
                assert f"def {function.rpartition('.')[2] or 'test_'}" in text, test
        for tolerance in re.findall(r"\d+e-\d+", row.get("agreement", "")):
            assert tolerance in (ROOT / row["test"].partition("::")[0]).read_text(encoding="utf-8")


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
    assert not front - set(listed), "add them to docs/api/index.md"
    for path in PUBLIC_MODULES:
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", ()):
            assert any(getattr(module, name) is thing for thing in things), f"{path}.{name}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_external_ones_are_well_formed(path):
    """Whether external ones answer is what `make linkcheck` asks; no network is needed here."""
    text = path.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        assert (path.parent / target).exists(), target
    for link in EXTERNAL.findall(text):
        assert re.fullmatch(r"(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?", urlsplit(link).netloc), link


def test_files_that_code_and_pages_name_exist():
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*TEXTS, *SOURCES]
        for name in PATH.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert not missing
