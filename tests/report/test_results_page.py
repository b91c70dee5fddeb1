"""The page of the main job: its parts in the document, and what Chromium shows of them."""

import html
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest

from fieldtheory.report.pictures import FIGURES
from tests.cli.test_app import call


@pytest.fixture
def summary(small_run):
    return small_run[0]


@pytest.fixture
def page(summary):
    return summary.report.read_text(encoding="utf-8")


class Text(HTMLParser):
    """The words of a page outside of style, formulas and their sources."""

    def __init__(self, page):
        super().__init__()
        self.words, self.skipped = [], 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.skipped += tag in ("style", "math", "details")

    def handle_endtag(self, tag):
        self.skipped -= tag in ("style", "math", "details")

    def handle_data(self, data):
        if not self.skipped:
            self.words.append(data)


def test_the_map_of_correlations_is_sorted_by_class_with_names_and_counts(summary):
    labels = np.array(["dog", "cat", "dog", "dog"])
    mixed = replace(summary, data=replace(summary.data, labels=labels))
    ax = FIGURES["correlations"][0](mixed).axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["cat (1)", "dog (3)"]
    K, order = summary.solution.kernels[-1], [1, 0, 2, 3]
    shown = ax.images[0].get_array()
    np.testing.assert_allclose(shown * K[0, 0], K[np.ix_(order, order)], rtol=1e-12)


def test_formulas_are_mathml(page):
    assert page.count("<math") == page.count("</math>") > 40
    assert page.count('<math display="block"') == 8
    assert 'class="source"' not in page.split("</style>")[1]


def test_no_latex_is_left_in_the_text(page):
    text = "".join(Text(page).words)
    assert not re.search(r"[\\$]", text)
    assert "_{" not in text


def test_figures_are_embedded_one_panel_each(page, summary):
    assert len(re.findall(r'<img [^>]*src="data:image/png;base64,', page)) == len(FIGURES)
    for name in FIGURES:
        height, width, _ = matplotlib.image.imread(summary.folder / f"{name}.png").shape
        assert width < 1.5 * height


def test_numbers_of_the_summary_stand_first(page, summary):
    values = re.findall(r"<dd>(.*?)</dd>", page)
    assert float(values[0]) == float(f"{summary.single.kernels[-1]:.6g}")
    best = f"{summary.scaling[np.triu_indices(4, 1)].mean():.4g}"
    assert values[2] == best and f"--branch-scale {best} " in page


def test_commands_to_go_on_with_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (shell, _) = re.findall(r'<pre class="code">(.*?)</pre>', page, re.DOTALL)
    commands = [line for line in html.unescape(shell).splitlines() if "solve" in line]
    assert "fieldtheory verify --format html" in shell and len(commands) == 1
    for command in commands:
        result = call(*shlex.split(command)[1:])
        assert result.exit_code == 0, result.stderr


@pytest.mark.slow
def test_a_browser_shows_it(summary, tmp_path, chromium):
    dom = chromium.chromium_dom(summary.report)
    assert re.search(r"<h1>\s*Field theory of a residual network on these data\s*</h1>", dom)
    assert dom.count("<math") == summary.report.read_text(encoding="utf-8").count("<math")
    chromium.chromium_screenshot(summary.report, tmp_path / "page.png", 1100, 6000)
    screen = matplotlib.image.imread(tmp_path / "page.png")[..., :3]
    assert screen.shape == (6000, 1100, 3)
    # White paper with dark type on every part of the page, and colour from the figures.
    assert np.median(screen) > 0.9
    for part in np.split(screen, 6):
        assert 0.001 < (part.max(axis=2) < 0.4).mean() < 0.3
    assert (np.ptp(screen, axis=2) > 0.4).mean() > 0.0003
