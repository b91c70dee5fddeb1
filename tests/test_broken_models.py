"""Every quantity of docs/verification.tsv has a model that is wrong on purpose and fails its test.

Column `changed` names a function or property of the package whose results are made 2 % larger, or
a test with a broken model of its own; `case` has the arguments of the test, read in its module.
"""

import importlib
import sys
from functools import _lru_cache_wrapper, cached_property, reduce

import mpmath
import pytest
import sympy as sp

from tests.test_site import rows_of_docs

ROWS = rows_of_docs("verification")
# Of mpmath, which the references of logarithms take.
DIGITS = 50
# The first breaks with any of the others; a check of the second takes minutes.
WITHOUT = {"all of a promised φ, drawn at random", "networks of blocks: tangent kernels"}


def larger(value):
    """Numbers, arrays, expressions, sequences of them and functions with such values."""
    if isinstance(value, tuple | list):
        parts = [larger(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if callable(value):
        return lambda *arguments: larger(value(*arguments))
    if value is None or isinstance(value, str | bool):
        return value
    return value * (sp.Rational(51, 50) if isinstance(value, sp.Basic) else 1.02)


def modules(*names):
    return [m for key, m in sorted(sys.modules.items()) if key.startswith(("fieldtheory", *names))]


def spoil(monkeypatch, place, *names):
    """Change a function in all modules that have it, or one of a class."""
    path, _, attribute = place.partition(":")
    *classes, name = attribute.split(".")
    owner = reduce(getattr, classes, importlib.import_module(f"fieldtheory.{path}"))
    right = vars(owner)[name]
    if isinstance(right, cached_property):
        wrong = property(lambda self: larger(right.func(self)))
    else:

        def wrong(*arguments, **options):
            return larger(right(*arguments, **options))

    for each in [owner] if classes else modules(*names):
        if vars(each).get(name) is right:
            monkeypatch.setattr(each, name, wrong)


def forget(*names):
    """Empty caches, in which right results may be, or wrong ones."""
    for value in [v for module in modules(*names) for v in vars(module).values()]:
        if isinstance(value, _lru_cache_wrapper):
            value.cache_clear()


def check(row):
    """The test of a row with its arguments."""
    module, function = module_of(row), row["test"].partition("::")[2]
    *classes, name = function.split(".")
    place = reduce(lambda at, each: getattr(at, each)(), classes, module)
    with mpmath.workdps(DIGITS):
        getattr(place, name)(*eval(f"[{row['case']}]", vars(module)))


def module_of(row):
    file = row["test"].partition("::")[0]
    return importlib.import_module(file.removesuffix(".py").replace("/", "."))


BROKEN = [row for row in ROWS if row["changed"] and not row["changed"].startswith("tests/")]
of_rows = pytest.mark.parametrize("row", BROKEN, ids=lambda row: row["quantity"])


@pytest.mark.filterwarnings("ignore")
@of_rows
def test_a_broken_model_fails(row, monkeypatch):
    name = module_of(row).__name__
    forget(name)
    try:
        spoil(monkeypatch, row["changed"], name)
        with pytest.raises(AssertionError):
            check(row)
    finally:
        monkeypatch.undo()
        forget(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@of_rows
def test_the_right_model_passes(row):
    """With the digits and without the fixtures of the other test."""
    check(row)


def test_every_quantity_has_one():
    every, some = ({r["quantity"] for r in ROWS if r["changed"] or not only} for only in (0, 1))
    assert every - some == WITHOUT
