"""The harness itself: good input passes, and what it is there to catch is caught."""

import matplotlib.image
import numpy as np
import pytest

GOOD = {
    "average": r"\left\langle \phi(h)\,\phi'(h) \right\rangle_{\mathcal{N}(0,\,K^{(l-1)})}",
    "response field": r"\tilde{C}^{(l)}_{\alpha\beta}",
    "array": r"\left(\begin{array}{" + "c" * 12 + "}" + "&".join("x" * 12) + r"\end{array}\right)",
}
BAD = {
    "undefined macro": (r"\undefinedmacro", "Undefined control sequence"),
    "unbalanced brace": (r"\frac{1}{2", "expected '}'"),
    "underscore in text": (r"\text{a_b}", "Expected 'EOF', got '_'"),
    "unclosed bracket": (r"\left( x", r"Expected '\right'"),
    "raw Unicode": ("ä", "unicodeTextInMathMode"),
}

PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>t</title>
<body style="margin:0"><div style="background:#c00;width:100px;height:100px"></div>
<math display="block"><msup><mi>C</mi><mrow><mo>(</mo><mi>l</mi><mo>)</mo></mrow></msup></math>
<script>document.body.append("written on load")</script>"""


def test_katex_renders_what_is_well_formed(katex_failures):
    assert katex_failures(GOOD) == {}


def test_katex_reports_each_bad_string_by_its_name(katex_failures):
    failures = katex_failures(GOOD | {name: latex for name, (latex, _) in BAD.items()})
    assert failures.keys() == BAD.keys()
    for name, (_, message) in BAD.items():
        assert message in failures[name]


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_chromium_screenshot_shows_the_page(chromium, page, tmp_path):
    png = tmp_path / "page.png"
    chromium.chromium_screenshot(page, png, width=640, height=480)
    pixels = matplotlib.image.imread(png)
    assert pixels.shape[:2] == (480, 640)
    np.testing.assert_allclose(pixels[50, 50, :3], (0.8, 0, 0), atol=0.01)
    np.testing.assert_array_equal(pixels[50, 400, :3], (1, 1, 1))
    formula = pixels[100:150, :, :3]
    assert formula.min() < 0.5


def test_chromium_dom_holds_mathml_and_what_scripts_wrote(chromium, page):
    dom = chromium.chromium_dom(page)
    assert "<math" in dom
    # in the page itself these words stand only inside the script
    assert dom.count("written on load") == 2


@pytest.mark.slow
def test_chromium_reports_a_screenshot_it_could_not_write(chromium, page, tmp_path):
    with pytest.raises(RuntimeError, match="no screenshot"):
        chromium.chromium_screenshot(page, tmp_path / "missing" / "page.png")
