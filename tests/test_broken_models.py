"""Every quantity of docs/verification.tsv has a model that is wrong on purpose and fails its test.

Column `changed` names a function or property of the package whose results are made 2 % larger, or
a test with a broken model of its own.
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


def row_of_pair(m):
    return [next(row for row in m.ROWS if len(row["at"]) == 3)]


# Arguments of the test of a quantity, given its module; () where it has none.
CASES = {
    "averages ⟨φ²⟩ and two derivatives, 26 activations": lambda m: m.ROWS[:1],
    "averages ⟨φφ⟩, ⟨φ'φ'⟩ and ⟨φφ''⟩, 26 activations": row_of_pair,
    "connected averages ⟨φ² ; φ²⟩": row_of_pair,
    "closed forms of averages": lambda m: m.ONE_VARIABLE["erf^2"],
    "Price's theorem at kinks and jumps": lambda m: ["max(0,1-abs(h))"],
    "Hessian, S22 among its blocks": lambda m: [1],
    "propagators": lambda m: (1, 1),
    "diagrams and their symmetry factors": lambda m: (1, 1),
    "kernels of one input": lambda m: ("relu", 0.0),
    "kernels of several inputs": lambda m: ("erf", m.K0_PAIR),
    "kernels beyond float64": lambda m: ["decay"],
    "responses of a variance": lambda m: ["relu"],
    "responses of covariances": lambda m: ["relu"],
    "derivatives of kernels by parameters": lambda m: (
        "weight_variance",
        "relu",
        "output_kernel",
    ),
    "S22, one input": lambda m: [0.7],
    "G11, one input": lambda m: ("relu", 0.7),
    "variance of the kernels": lambda m: [0.7],
    "four-point vertex, one input": lambda m: ((1.0, 0.5, -0.8, 0.9), 0.4),
    "order 1/N²": lambda m: ((1.0, 0.5, -0.8, 0.9), 0.4),
    "G11, several inputs": lambda m: [0.7],
    "mean shift, several inputs": lambda m: ("relu", 0.0, m.TWO, 1, 24, None),
    "four-point vertex, several inputs": lambda m: ("abs", 0.7, m.ZERO, 1, 24, 0.0),
    "tangent kernels": lambda m: ["|x|"],
    "optimal scaling": lambda m: [{"depth": 1}],
    "deep limit of the optimal scaling": lambda m: (1.0, 0.3, 1e-3),
    r"K\*_out": lambda m: [0.2],
    "maximum entropy": lambda m: ["0.25"],
    "critical points": lambda m: m.HALF_STABLE[1],
    "gains of weights": lambda m: ["tanh"],
    "limit of infinite depth": lambda m: (30.0, 0.3, 2.0),
    "diffusion networks": lambda m: ("tanh", 1),
    "diffusions of any law, every width": lambda m: ("full", 1, "linear", 1.0),
    "Gaussian process": lambda m: (12, 1.0),
    "gradient flow": lambda m: (
        [m.ft.kernel(m.NETWORK), m.ft.kernel(m.NETWORK, "tangent_kernel")],
        0.1,
        0.3,
    ),
    "spectra on spheres": lambda m: (3, 6),
    "responses after labels": lambda m: ("residual", "erf", m.Y[:2, :1], (2, 3)),
    "tilted posterior": lambda m: [1],
    "tilted posterior: responses": lambda m: [{}],
    "tilted posterior, readout of mean-field size": lambda m: (3, 1.0, 0.01),
    "variances of kernels from variable data": lambda m: ("erf", 1),
    "networks of blocks: kernels": lambda m: ("tanh", "rms", False),
    "networks of blocks: responses": lambda m: ("relu", {}),
    "networks of blocks: order 1/N": lambda m: (0.5, 0.9),
    "solutions to many digits": lambda m: ("relu", m.exact.relu_connected),
}


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
        getattr(place, name)(*CASES.get(row["quantity"], lambda module: ())(module))


def module_of(row):
    file = row["test"].partition("::")[0]
    return importlib.import_module(file.removesuffix(".py").replace("/", "."))


BROKEN = [row for row in ROWS if row["changed"] and not row["changed"].startswith("tests/")]
of_rows = pytest.mark.parametrize("row", BROKEN, ids=lambda row: row["quantity"])


@pytest.mark.slow_but(0, 3, 9, 16, 22, 38, 42, 47)
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
    assert CASES.keys() <= {row["quantity"] for row in BROKEN}
