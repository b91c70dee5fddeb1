"""The page of the main job: its parts in the document, and what Chromium shows of them."""

import re
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest

from fieldtheory.literature import f23


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


def test_formulas_are_mathml(page):
    assert page.count("<math") == page.count("</math>") > 40
    assert page.count('<math display="block"') == 12
    assert 'class="source"' not in page.split("</style>")[1]


def test_no_latex_is_left_in_the_text(page):
    text = "".join(Text(page).words)
    assert not re.search(r"[\\$]", text)
    assert "_{" not in text


def test_figures_are_embedded(page, summary):
    assert len(re.findall(r'<img [^>]*src="data:image/png;base64,', page)) == 4
    assert page.count("<figcaption>") == 4


def test_nothing_comes_from_the_network(page):
    assert not re.search(r"https?://|src=\"(?!data:)|<script|<link|@import", page)


def test_numbers_of_the_summary_stand_first(page, summary):
    values = re.findall(r"<dd>(.*?)</dd>", page)
    assert values[:2] == [f"{summary.variance_scaling:.6g}", f"{summary.covariance_scaling:.6g}"]
    assert float(values[2]) == float(f"{summary.largest_difference:.1e}")


def test_says_what_was_checked(page):
    assert re.search(r"\b39 numbers were computed in two ways", page)
    assert "All pass." in page
    groups = re.findall(r"<h3>(.*?)</h3>", page)
    assert [g for g in groups if g in ("Price&#39;s theorem", "Averages", "Network")]
    assert "Maximum entropy" in groups


def test_says_which_claims_hold(page):
    verdicts = re.findall(r"<td[^>]*>\s*(holds|does not hold)\s*</td>", page)
    assert len(verdicts) == len(f23.CLAIMS)
    assert f"{verdicts.count('does not hold')} do not hold as they are printed" in page
    assert "the derivative is 1/(2σ²) − 1/(4σ⁴)" in page


def test_a_browser_shows_it(summary, tmp_path, chromium):
    dom = chromium.chromium_dom(summary.report)
    assert re.search(r"<h1>\s*Field theory of a residual network\s*</h1>", dom)
    assert dom.count("<math") == summary.report.read_text(encoding="utf-8").count("<math")
    chromium.chromium_screenshot(summary.report, tmp_path / "page.png", 1100, 6000)
    screen = matplotlib.image.imread(tmp_path / "page.png")[..., :3]
    assert screen.shape == (6000, 1100, 3)
    # White paper with dark type on every part of the page, and colour from the figures.
    assert np.median(screen) > 0.9
    for part in np.split(screen, 6):
        assert 0.001 < (part.max(axis=2) < 0.4).mean() < 0.3
    assert (np.ptp(screen, axis=2) > 0.4).mean() > 0.0003
