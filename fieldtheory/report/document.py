"""One self-contained HTML page: formulas as MathML, figures embedded, tables; no network needed.

Templates hold the prose. In every text ``$...$`` is a formula, everything else is shown as it
stands; numbers have six significant digits, None is an empty cell, digits that must all be shown go
in as text.
"""

import base64
import html
import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from fieldtheory.numerics.storage import write_whole

ACCENTS = ("~", "^", "¯", "˙", "¨", "→")
CLOSING = (")", "]", "}", "⟩", "|", "!")
LIMITS = {"msub": "munder", "msubsup": "munderover"}


def page(template: str, path: Path | None = None, /, **context: Any) -> str:
    """A page from one of the templates beside this module, also written to a file if it has a path.

    >>> "<h1>A network</h1>" in page("report.html.j2", title="A network")
    True
    """
    empty = {"subtitle": "", "footer": "", "highlights": (), "titles": ()}
    text: str = templates().get_template(template).render(empty | context)
    if path is not None:
        write_whole(path, lambda file: file.write(text.encode("utf-8")))
    return text


@lru_cache
def templates() -> Any:
    """The jinja2 environment of the templates, whose filters set texts, formulas and numbers."""
    try:
        import jinja2
        import latex2mathml  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "a report needs jinja2 and latex2mathml: pip install fieldtheory-networks[figures]"
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "inline": _inline,
        "prose": lambda text: _inline(" ".join(str(text).split())),
        "formula": _formula,
        "cell": _cell,
        "base64": lambda data: base64.b64encode(data).decode("ascii"),
    }
    environment.tests["number"] = _is_number
    return environment


def mathml(latex: str, display: str = "block") -> str:
    """A LaTeX formula as a MathML element, safe to embed; ValueError if it cannot be read.

    >>> mathml("K^{2}", display="inline")
    '<math display="inline"><mrow><msup><mi>K</mi><mrow><mn>2</mn></mrow></msup></mrow></math>'
    """
    from latex2mathml.converter import Converter

    excerpt = repr(latex if len(latex) <= 80 else latex[:77] + "...")
    try:
        root = Converter(display=display).convert_to_element(_mend_latex(latex))
    except Exception as error:  # its exceptions share no base class, and some are IndexErrors
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise ValueError(f"latex must be a readable formula, got {excerpt} ({reason})") from error
    _mend_elements(root)
    for element in root.iter():
        if re.match(r"\\[a-zA-Z]|&$", element.text or "") or element.get("linebreak"):
            raise ValueError(
                "latex must hold known commands, and & and \\\\ in known environments only, "
                f"got {element.text or chr(92) * 2} in {excerpt}"
            )
    del root.attrib["xmlns"]  # implied in HTML
    return ElementTree.tostring(root, encoding="unicode")


def _mend_latex(latex: str) -> str:
    """Replace LaTeX that latex2mathml misreads by equivalents that it reads."""
    from latex2mathml.commands import FUNCTIONS

    # It shows the ampersands of ``aligned``, and hangs a power of ``pmatrix`` on the bracket.
    latex = re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{split}", latex)
    for kind, left, right in (("p", "(", ")"), ("b", "[", "]"), ("v", "|", "|")):
        latex = latex.replace(rf"\begin{{{kind}matrix}}", rf"\left{left}\begin{{matrix}}")
        latex = latex.replace(rf"\end{{{kind}matrix}}", rf"\end{{matrix}}\right{right}")
    # After ``\bigl`` and its kind it reads single characters only.
    for command, character in (("langle", "⟨"), ("rangle", "⟩")):
        latex = re.sub(rf"(\\[bB]igg?[lrm]?)\s*\\{command}", rf"\1{character}", latex)

    # Superscripts shrink primes, which are small and high themselves: they join the base.
    latex = re.sub(r"\^\{((?:\\prime\s*)+)\}", lambda m: "'" * m[1].count("prime"), latex)
    accent = r"(?:\\(?:tilde|widetilde|hat|bar|dot)\s*)?"
    base = rf"({accent}(?:\\[a-zA-Z]+|[a-zA-Z])(?:_\{{[^{{}}]*\}}|_\\[a-zA-Z]+|_[a-zA-Z0-9])?)"
    latex = re.sub(
        rf"(\\text\{{[^{{}}]*\}})|{base}('+)",
        lambda m: m[1] or f"{{{m[2]} {'′″‴⁗'[min(len(m[3]), 4) - 1]}}}",
        latex,
    )

    # It sets no space between the name of a function and its neighbours, and reads letters only in
    # ``\operatorname``, whose single letters lose their upright shape in ``\mathrm``.
    name = r"\\operatorname\{(?:[^{}]|\{[^{}]*\})*\}"
    function = rf"((?:{'|'.join(map(re.escape, FUNCTIONS))})(?![a-zA-Z])|{name})"
    latex = re.sub(rf"(?<=[^\W_]|[)}}\]])\s*{function}", r"\\,\1", latex)
    argument = r"(?=\\?[a-zA-Z0-9])(?!\\(?:left|langle|[bB]ig|[lr]vert|[lr]Vert))"
    latex = re.sub(rf"{function}\s*{argument}", r"\1\\,", latex)
    latex = latex.replace(r"\operatorname{", r"\mathrm{")
    return re.sub(r"\\mathrm\{([a-zA-Z])\}", r"\\mathrm{{\1}}", latex)


def _mend_elements(root: ElementTree.Element) -> None:
    """Mend MathML that latex2mathml gets wrong or that browsers, which read MathML Core, do not."""
    for element in root.iter():
        # Writing the tree escapes entities, as its own writer does not; a page has no links.
        element.text = html.unescape(element.text or "")
        element.attrib.pop("href", None)
        if element.get("mathvariant", "normal") != "normal":
            style = element.attrib.pop("mathvariant")
            element.text = "".join(_styled(character, style) for character in element.text)
    for element in list(root.iter()):
        if element.tag == "mrow" and _is_upright_word(element):
            word = "".join(leaf.text or "" for leaf in element)
            element[:] = []
            element.tag, element.text = "mi", word
        elif element.tag in LIMITS and element[0].tag == "mo":
            # Limits go below max and, within fences too, sums.
            if re.match("[a-z]{2}|[∑∏]", element[0].text or ""):
                element.tag = LIMITS[element.tag]
                element[0].set("movablelimits", "true")
        elif element.tag == "mo" and re.match("[a-z]{2}", element.text or ""):
            element.attrib |= {"lspace": "0.17em", "rspace": "0.17em"}
        elif element.text == "∞":
            element.tag = "mi"
        elif element.tag == "mover" and element[1].text in ACCENTS:
            element.set("accent", "true")
        for before, sign in pairwise(element):
            if sign.text in ("−", "+") and before.tag == "mo" and before.text not in CLOSING:
                sign.set("form", "prefix")


def _is_upright_word(element: ElementTree.Element) -> bool:
    """Whether a row holds the letters of an upright word, and perhaps digits, one by one."""
    letters = [leaf.tag == "mi" and leaf.get("mathvariant") == "normal" for leaf in element]
    others = [leaf for leaf, letter in zip(element, letters, strict=True) if not letter]
    return len(element) > 1 and any(letters) and all(leaf.tag == "mn" for leaf in others)


def _styled(character: str, style: str) -> str:
    """The character of the style, such as 𝒙 for x in bold-italic, where Unicode has it."""
    name = re.sub("LATIN |GREEK |LETTER ", "", unicodedata.name(character, ""))
    style = style.upper().replace("BOLD-ITALIC", "BOLD ITALIC")
    try:
        return unicodedata.lookup(f"MATHEMATICAL {style} {name}")
    except KeyError:
        return character


def _inline(text: str) -> str:
    """Escape a text and set the formulas between its dollar signs."""
    from markupsafe import Markup, escape

    pieces = re.split(r"\$([^$]+)\$", text)
    return Markup("").join(
        _formula(piece, "inline") if i % 2 else escape(piece) for i, piece in enumerate(pieces)
    )


def _formula(latex: str, display: str = "block") -> str:
    """MathML, or where that fails the LaTeX source with the reason."""
    from markupsafe import Markup

    try:
        return Markup(mathml(latex, display))
    except ValueError as error:
        return Markup('<code class="source" title="{}">{}</code>').format(error, latex)


def _cell(value: Any, scientific: bool = False) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return _number(value, scientific) if isinstance(value, Real) else _inline(str(value))


def _number(value: Any, scientific: bool) -> str:
    """Six significant digits, or m × 10ⁿ with two."""
    from markupsafe import Markup

    if (isinstance(value, Integral) and not scientific) or value == 0:
        return Markup(str(int(value)).replace("-", "−"))
    text = format(float(value), ".1e" if scientific else ".6g")
    mantissa, _, exponent = text.partition("e")
    power = f" × 10<sup>{int(exponent)}</sup>" if exponent else ""
    return Markup((mantissa + power).replace("-", "−"))


def _is_number(value: Any) -> bool:
    """Whether a cell lines up to the right: numbers, and texts of digits."""
    if isinstance(value, str):
        return re.fullmatch(r"[-+−]?\d[\d. ]*(e[-+]?\d+)?", value) is not None
    return isinstance(value, Real) and not isinstance(value, bool)
