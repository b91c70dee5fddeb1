"""The site has every public name and every figure, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXTS = [
    *ROOT.glob("*.md"),
    *(path for path in ROOT.glob("docs/**/*.md") if "generated" not in path.parts),
    *ROOT.glob("notebooks/*.ipynb"),
]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)\s#]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_to_files(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
