"""Every symbol in a result is defined in it or in the list of symbols."""

import re

import pytest

import fieldtheory as ft
from fieldtheory.theory.formulas import FORMULAS, SATURATION
from tests.examples import derivation
from tests.tables import slow

# Commands that set a formula, and mathematics that needs no definition.
_SETTING = (
    "begin end left right Bigl Bigr bigl bigr quad qquad nonumber allowdisplaybreaks times cdot "
    "frac sqrt text mathrm operatorname leq geq neq sim dots cdots infty langle rangle partial sum "
    "prod int exp ln min max tanh sinh cosh pi prime vee simeq"
).split()
_SYMBOL = re.compile(
    r"\\(?:tilde|dot|mathcal|mathsf|hat|bar)\{[^{}]*\}|\\[a-zA-Z]+|[a-zA-Z]'*|1(?=_\{)"
)


def symbols(text):
    """Letters with their accents, and with what stands upright or starred in their indices."""
    text = re.sub(r"\\(text|label|operatorname|begin|end)\{[^{}]*\}|&|\\\\", " ", text)
    found = []
    for match in _SYMBOL.finditer(text):
        name, before = match.group(), text[: match.start()]
        if name[1:] in _SETTING or name == "e" or before.endswith((r"\mathrm{", "\\")):
            continue
        if re.search(r"\\mathrm\{\w*$", before):
            continue
        index = re.match(r"'*(?:[_^]\{(?:[^{}]|\{[^{}]*\})*\})*", text[match.end() :]).group()
        upright = re.findall(r"\\mathrm\{(\w+)\}", index)
        star = ["*"] if re.search(r"_\{[^{}]*\*\}", index) else []
        pair = ["two layers"] if name == "K" and re.match(r"\^\{\(\w, \w\)\}", index) else []
        found.append(" ".join([name.rstrip("'"), *upright, *star, *pair]))
    return found


def undefined(result, listed):
    """The symbols of a result that neither it nor the list defines."""
    lefts = re.findall(
        r"(?:^&?|\\quad & |\\qquad )(?! |\\quad)([^&=\n]*?) &?= ", result, re.MULTILINE
    )
    entries = ",\\ ".join(line.split(r"&\quad")[0] for line in listed.split("\n")[1:-1])
    # Of an entry of the list the letter is defined, not what stands in its indices.
    known = [found[0] for entry in entries.split(",\\ ") if (found := symbols(entry))]
    return set(symbols(result)) - set(symbols(" , ".join(lefts))) - {*known, r"\mathcal{N}"}


CASES = [(P, phi) for P in (1, 2) for phi in (None, "tanh", "gelu")]


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["generic", "explicit"])
@pytest.mark.parametrize("inputs, activation", CASES)
def test_every_symbol_is_defined(inputs, activation, layers):
    th = ft.derive(2, inputs, activation)
    each = derivation(2, inputs, activation)
    listed = re.sub(r"\\text\{.*?\}", "", th.latex("symbols"))
    missing = {}
    for quantity in FORMULAS:
        cases = {"": th.latex(quantity, layers)}
        if inputs == 1 or layers == "generic":
            cases["written out"] = th.latex(quantity, layers, abbreviate=False)
        if quantity not in SATURATION:
            cases["per layer"] = each.latex(quantity, layers)
        for case, text in cases.items():
            if found := undefined(text, listed):
                missing[f"{quantity} {case}"] = found
    assert missing == {}


def test_what_is_not_defined_is_seen():
    text = ft.derive(2).latex("S21")
    listed = ft.derive(2).latex("symbols")
    lines = [line for line in text.split("\n") if not line.startswith("M'_{l}")]
    assert undefined("\n".join(lines), listed) == {"M"}
    assert undefined(r"x = \mathcal{U} + \sigma_{v,\mathrm{mid}}", listed) == {
        r"\mathcal{U}",
        r"\sigma mid",
        "v",
    }


def test_the_list_is_that_of_the_network():
    one, two = (ft.derive(1, P).latex("symbols") for P in (1, 2))
    assert r"\alpha" not in one and r"\alpha" in two and "pairs of inputs" in two


@pytest.mark.parametrize(
    "symbol", [slow("N"), slow(r"\phi"), slow("h^"), slow(r"\sigma_{w}"), slow("C^{(l)}_{*}"), "1_"]
)
def test_the_list_is_needed(symbol):
    th = ft.derive(1, 2)
    lines = th.latex("symbols").split("\n")
    fewer = "\n".join(line for line in lines if not line.startswith(symbol))
    texts = [th.latex(q) for q in ("action", "saddle_point", "hessian", "propagator")]
    assert set().union(*(undefined(text, fewer) for text in texts))
