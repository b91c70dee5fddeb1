"""The HTML page: self-contained, escaped, and its formulas as a browser shows them."""

import base64
import io
import os
import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib.image
import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.report import document
from fieldtheory.report.document import mathml

HOSTILE = "<script>alert(\"x\")</script>&amp; 'quoted' {{ 7 * 7 }}"

CONSTRUCTS = {
    "array": r"\left(\begin{array}{ccc}1&0&0\\0&1&0\end{array}\right)",
    "pmatrix": r"-\begin{pmatrix} 0 & S_{12} \\ S_{21} & S_{22}\end{pmatrix}^{-1}",
    "average": r"\left\langle \phi^{2} \right\rangle_{\mathcal{N}(0, K^{(l-1)})}",
    "bigl": r"\bigl\langle \phi^2 ; \phi^2 \bigr\rangle_{\mathrm{c}}",
    "conjugate": r"\tilde{C}^{(l)}",
    "scale": r"\rho_{1}^{2} \frac{a}{b} \sum_{l=0}^{L} \prod_{m=1}^{l} x_m",
    "cases": r"\begin{cases} a & x > 0 \\ b & \text{otherwise}\end{cases}",
    "aligned": r"\begin{aligned} K &= C \\ &= a M \end{aligned}",
    "functions": r"\operatorname{erf}{\left(x \right)} \operatorname{atan_{2}}{\left(x,y \right)}",
    "atan2": r"\operatorname{atan2}(x, \sqrt{1 + 4 K})\,\;y",
    "response": r"\chi^{\mathrm{out}} = \sigma_{w,\mathrm{out}}^{2} M'(K^{(L)})",
    "primes": r"\phi'^{2} + \phi \phi'' + \phi_{1}'' + \phi_\alpha'^{2} + \tilde C'",
    "maximum": r"\rho^{*} = \operatorname*{argmax}_{\rho} \chi",
}


def tree(latex, display="block"):
    return ElementTree.fromstring(mathml(latex, display))


def shown(latex):
    """The characters of a formula in reading order."""
    return "".join(tree(latex).itertext())


def png(width=1, height=1):
    buffer = io.BytesIO()
    matplotlib.image.imsave(buffer, np.ones((height, width)), format="png")
    return buffer.getvalue()


class Page(HTMLParser):
    """Start tags with attributes, and the text outside style elements."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.texts, self.stack = [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if "style" not in self.stack:
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def page(tmp_path, items, **context):
    """A page whose main part is a template of items."""
    template = document.templates().from_string(
        '{% extends "report.html.j2" %}'
        '{% from "items.html.j2" import p, section, formula, figure, code, table %}'
        f"{{% block main %}}{items}{{% endblock %}}"
    )
    path = tmp_path / "report.html"
    document.page(template, path, **({"title": "Title"} | context))
    return Page(path)


class TestMathml:
    @pytest.mark.parametrize("latex", CONSTRUCTS.values(), ids=CONSTRUCTS)
    def test_is_xml_without_left_over_latex(self, latex):
        for display in ("block", "inline"):
            root = tree(latex, display)
            assert (root.tag, root.get("display")) == ("math", display)
        assert not re.search(r"[\\&}^]", shown(latex))

    @pytest.mark.parametrize("kind", ["p", "b", "v"])
    def test_power_of_a_matrix_belongs_to_the_whole(self, kind):
        power = tree(rf"\begin{{{kind}matrix}} a & b \end{{{kind}matrix}}^{{-1}}").find(".//msup")
        assert len(power) == 2
        assert power[0].find("mtable") is not None
        assert "".join(power[1].itertext()) == "−1"

    @pytest.mark.parametrize(
        ("latex", "expected"),
        [
            (r"\phi'(h)", "ϕ′(h)"),
            (r"\phi''", "ϕ″"),
            (r"\phi_{1}''", "ϕ1″"),
            (r"\phi^{\prime\prime}", "ϕ″"),
            (r"K_\phi'", "Kϕ′"),
            (r"\tilde C'", "C~′"),
            (r"\text{Price's}", "Price's"),
        ],
    )
    def test_primes_stay_on_the_line(self, latex, expected):
        assert shown(latex) == expected
        assert not {"msup", "msubsup"} & {element.tag for element in tree(latex).iter()}

    def test_what_sympy_writes(self):
        x, y, rho = sp.symbols("x y rho_1")
        phi = sp.Function("phi")
        for expression in (
            sp.Matrix([[rho**2, 0], [sp.erf(x) ** 2, sp.atan2(x, y)]]),
            sp.Piecewise((x, x > 0), (0, True)) + sp.Max(x, y),
            sp.Derivative(phi(x), x) * sp.sqrt(1 + 4 * x) / sp.asin(2 * x),
            sp.Integral(sp.exp(-(x**2) / 2), (x, -sp.oo, sp.oo)),
            sp.Sum(x**y, (y, 0, 3)) * sp.DiracDelta(x) * sp.Heaviside(x) * sp.sign(x),
        ):
            root = tree(sp.latex(expression))
            assert not re.search(r"[\\&]", "".join(root.itertext()))

    @pytest.mark.parametrize(
        "latex",
        [r"\frac", r"\foo{x}", r"\left( x", r"a \\ b", r"\begin{foo}x & y\end{foo}", "x_"],
    )
    def test_refuses_what_it_cannot_set(self, latex):
        with pytest.raises(ValueError, match="^latex must [^\n]*$") as caught:
            mathml(200 * "x " + latex)
        assert len(str(caught.value)) < 250

    def test_text_in_formulas_is_escaped(self):
        source = mathml(r"\text{<script>alert(1)</script>} < \mbox{&lt;b&gt;}")
        assert not re.search("<(script|b)>", source)
        assert "javascript" not in mathml(r"\href{javascript:alert(1)}{x}")


class TestPage:
    def test_formula_is_mathml_with_its_source(self, tmp_path):
        latex = r"\chi^{\mathrm{out}}"
        found = page(tmp_path, '{{ formula("Response", latex, "for $L$ layers") }}', latex=latex)
        assert [attributes["display"] for attributes in found.all("math")] == ["block", "inline"]
        assert latex in found.text and "for L layers" in found.text

    def test_formula_that_cannot_be_set_shows_its_source_and_the_reason(self, tmp_path):
        found = page(tmp_path, '{{ formula("Broken", latex) }}', latex=r"\foo < 1")
        assert not found.all("math")
        assert "known commands" in found.all("code")[0]["title"]
        assert found.text.count(r"\foo < 1") == 2

    def test_nothing_comes_from_outside(self, tmp_path):
        link = r"\href{https://example.org}{x}"
        items = '{{ figure("F", png) }}{{ formula("G", latex) }}'
        found = page(tmp_path, items, png=png(), latex=link)
        for tag, attributes in found.tags:
            assert tag not in ("link", "script", "iframe", "object", "base")
            for name in ("src", "href", "srcset", "data", "action"):
                assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,"))
        source = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert not re.search(r"url\(|@import", source)
        policy = next(meta for meta in found.all("meta") if "http-equiv" in meta)
        assert "default-src 'none'" in policy["content"]

    def test_figure_is_embedded(self, tmp_path):
        picture = png(3, 2)
        found = page(tmp_path, '{{ figure("Title", png, "a caption") }}', png=picture)
        (image,) = found.all("img")
        kind, data = image["src"].split(",")
        assert (image["alt"], kind) == ("Title", "data:image/png;base64")
        assert base64.b64decode(data, validate=True) == picture
        assert len(found.all("figcaption")) == 1

    def test_hostile_text_is_shown_and_not_run(self, tmp_path):
        h = HOSTILE
        items = (
            "{% call section(1, h) %}{% call p() %}{{ h | safe }} {{ text | safe }}{% endcall %}"
            "{{ formula(h, h, h) }}{{ figure(h, png, h) }}{{ table(h, [h], [[h]], h) }}"
            "{{ code(h, h) }}{% endcall %}"
        )
        texts = {"title": h, "subtitle": h, "highlights": [(h, h)], "footer": h, "titles": [h]}
        formula = f"$\\text{{{h.replace('}}', '')}}}$"
        found = page(tmp_path, items, h=h, text=formula, png=png(), **texts)
        assert not found.all("script")
        assert found.all("img")[0]["alt"] == h
        # In the page's title and heading, contents, highlights (2), subtitle, footer, section,
        # formula (title, note, source), figure (title, caption), table (4), code (2), paragraph;
        # the formula itself may break the text up.
        assert found.text.count(h) >= 19

    def test_text_with_formulas_and_lone_dollars(self, tmp_path):
        found = page(tmp_path, "{% call p() %}depth $L_{1}$\n and 5 ${% endcall %}")
        assert len(found.all("math")) == 1
        assert "and 5 $" in found.text


class TestTable:
    def cells(self, tmp_path, *values, scientific=()):
        columns = [*"ab"][: len(values)]
        items = {"columns": columns, "rows": [values], "scientific": scientific}
        page(tmp_path, '{{ table("T", columns, rows, "", scientific) }}', **items)
        source = (tmp_path / "report.html").read_text(encoding="utf-8")
        return re.findall(r"<td([^>]*)>(.*?)</td>", source)

    @pytest.mark.parametrize(
        ("value", "scientific", "expected"),
        [
            (0.15712345678, [], "0.157123"),
            (np.float64(-2.5), [], "−2.5"),
            (50, [], "50"),
            (np.int64(-1234567890), [], "−1234567890"),
            (-6.02214076e-23, [], "−6.02214 × 10<sup>−23</sup>"),
            (0.0, [], "0"),
            (float("nan"), [], "nan"),
            (mpmath.mpf(1) / 3, [], "0.333333"),
            ("0." + 50 * "3", [], "0." + 50 * "3"),
            (0.00123, ["a"], "1.2 × 10<sup>−3</sup>"),
            (-3.26e-16, ["a"], "−3.3 × 10<sup>−16</sup>"),
            (12, ["a"], "1.2 × 10<sup>1</sup>"),
        ],
    )
    def test_numbers_stand_right(self, tmp_path, value, scientific, expected):
        cells = self.cells(tmp_path, value, scientific=scientific)
        assert cells == [(' class="number"', expected)]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [(True, "yes"), (np.bool_(False), "no"), (None, ""), ("0–3", "0–3"), ("eq. 67", "eq. 67")],
    )
    def test_words_stand_left(self, tmp_path, value, expected):
        assert self.cells(tmp_path, value) == [("", expected)]
        assert self.cells(tmp_path, "none", scientific=["a"])[0][1] == "none"

    def test_scientific_holds_for_its_column_only(self, tmp_path):
        cells = self.cells(tmp_path, 0.5, 0.5, scientific=["b"])
        assert [text for _, text in cells] == ["0.5", "5.0 × 10<sup>−1</sup>"]


class TestWriting:
    def test_replaces_the_old_page_and_leaves_nothing_else(self, tmp_path):
        path = tmp_path / "report.html"
        path.write_text("old")
        assert "New" in document.page("report.html.j2", path, title="New")
        assert "New" in path.read_text(encoding="utf-8")
        assert os.listdir(tmp_path) == ["report.html"]

    def test_failure_keeps_the_old_page(self, tmp_path, monkeypatch):
        path = tmp_path / "report.html"
        path.write_text("old")

        def fail(*_):
            raise OSError("no space left on device")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no space"):
            document.page("report.html.j2", path, title="New")
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["report.html"]

    @pytest.mark.parametrize("package", ["jinja2", "latex2mathml"])
    def test_names_the_extra_without_its_packages(self, tmp_path, monkeypatch, package):
        monkeypatch.setitem(sys.modules, package, None)
        document.templates.cache_clear()
        with pytest.raises(ImportError, match=r"pip install fieldtheory-networks\[figures\]"):
            document.page("report.html.j2", tmp_path / "report.html", title="T")
        assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_browser_sees_formulas_and_pictures(tmp_path, chromium):
    items = (
        "{% for name, latex in formulas %}{{ formula(name, latex) }}{% endfor %}"
        '{{ figure("white", png) }}{{ table("T", ["a"], [[0.5]]) }}'
    )
    page(tmp_path, items, formulas=CONSTRUCTS.items(), png=png(20, 10))
    path = tmp_path / "report.html"
    dom = chromium.chromium_dom(path)
    # The browser's parser would move HTML out of a formula and close it early.
    assert dom.count("<math") == dom.count("</math>") == len(CONSTRUCTS)
    for formula in re.findall(r"<math.*?</math>", dom, re.DOTALL):
        assert not re.search("<(script|p|div|span|table)[ >]", formula)
    chromium.chromium_screenshot(path, tmp_path / "page.png", height=900)
    screen = matplotlib.image.imread(tmp_path / "page.png")[:, :, :3]
    assert screen.shape == (900, 1200, 3)
    assert np.median(screen) > 0.9
    assert 0.002 < (screen.max(axis=2) < 0.4).mean() < 0.2
