"""The high-precision checks pass, and notice an error."""

import math

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.literature import checks
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.scaling import maximum_entropy as entropy
from tests.tables import slow

DIGITS = 20


# Those of erf pass where a wrong average is noticed.
@pytest.mark.parametrize("name", [slow("erf"), "linear", slow("relu"), slow("sin")])
def test_price_and_averages_of_an_activation(name):
    results = checks.activation_checks(name, DIGITS)
    assert len(results) == 6
    assert [c.quantity for c in results if not c.passed] == []
    assert all(c.tolerance <= 1e-12 for c in results)


@pytest.fixture
def asked(monkeypatch):
    """The functions that a run of all checks calls, with what it asks them for."""
    seen = []
    for name in ("activation_checks", "connected_checks", "network_checks"):
        monkeypatch.setattr(checks, name, lambda *a, f=name: seen.append((f, a[0])) or [])
    monkeypatch.setattr(
        checks, "maximum_entropy_checks", lambda *a: seen.append(("entropy", a[0])) or []
    )
    return seen


def test_the_activations_of_the_papers_are_checked(asked):
    described = []
    assert list(checks.run_checks(DIGITS, described.append)) == []
    assert {a for f, a in asked if f == "activation_checks"} == set(checks.CHECKED)
    assert {a for f, a in asked if f == "connected_checks"} == set(checks.CONNECTED)
    assert {a for f, a in asked if f == "entropy"} == set(checks.SATURATING)
    assert ("network_checks", DIGITS) in asked
    assert len(described) == len(asked)


def test_some_activations_are_checked(asked):
    list(checks.run_checks(DIGITS, activations=("tanh", "relu", "tanh")))
    assert sorted(asked, key=str) == [
        ("activation_checks", "relu"),
        ("activation_checks", "tanh"),
        ("connected_checks", "relu"),
        ("entropy", "tanh"),
        ("network_checks", DIGITS),
    ]


@pytest.mark.parametrize(
    ("activations", "error"), [(("arf",), ValueError), ("erf", TypeError), ((3,), ValueError)]
)
def test_bad_activations(asked, activations, error):
    with pytest.raises(error, match="^activations must [^\n]*$"):
        checks.run_checks(DIGITS, activations=activations)
    assert asked == []


@pytest.mark.slow
def test_network_results_agree_with_integration():
    results = checks.network_checks(DIGITS)
    assert [c.quantity for c in results if not c.passed] == []
    assert {c.quantity.split("^")[0].split("[")[0] for c in results} == {
        "K",
        "η",
        "χ",
        "G12",
        "G11",
    }


def test_a_network_that_is_not_the_derived_one_is_noticed(monkeypatch):
    def other(net, K0, digits=None):
        if digits:
            return ft.solve(net, K0, digits=digits)
        return ft.solve(net.replace(weight_variance=net.weight_variance * (1 + 1e-9)), K0)

    monkeypatch.setattr(checks, "solve", other)
    failed = {c.quantity for c in checks.network_checks(DIGITS) if not c.passed}
    assert failed >= {"K^(1), erf", "η^(1), erf", "χ^(3), erf", "G12[1,0], erf", "G11[3,3], erf"}
    assert not failed & {"K^(0), erf", "η^(0), erf", "G12[0,0], erf"}


@pytest.mark.slow
def test_a_wrong_average_is_noticed(monkeypatch):
    exact = LayerFunctions.susceptibility.func
    monkeypatch.setattr(
        LayerFunctions,
        "susceptibility",
        property(lambda self: lambda K: exact(self)(K) * (1 + 1e-10)),
    )
    failed = [c.quantity for c in checks.activation_checks("erf", DIGITS) if not c.passed]
    assert failed == ["M'(K), erf"]


@pytest.mark.parametrize(
    ("name", "minimum"),
    [slow("erf", 1 / 2), ("tanh", math.pi**2 / 12), slow("logistic", math.pi**2 / 3)],
)
def test_maximum_entropy(name, minimum):
    best, at_quarter, far = checks.maximum_entropy_checks(name, DIGITS)
    assert best.passed and at_quarter.passed and far.passed
    assert float(best.mpmath) == pytest.approx(minimum, rel=1e-14)
    assert float(at_quarter.mpmath) == pytest.approx(entropy.divergence(name, 0.25), rel=1e-13)


def test_a_wrong_divergence_is_noticed(monkeypatch):
    exact = entropy.divergence
    monkeypatch.setattr(entropy, "divergence", lambda *a: exact(*a) * (1 + 1e-10))
    results = checks.maximum_entropy_checks("erf", DIGITS)
    assert [c.passed for c in results] == [True, False, False]


def test_a_wrong_closed_form_is_noticed(monkeypatch):
    exact = entropy.variance_formula
    monkeypatch.setattr(
        entropy, "variance_formula", lambda *a: exact(*a) * (1 + sp.Rational(1, 10**15))
    )
    results = checks.maximum_entropy_checks("tanh", DIGITS)
    assert [c.passed for c in results] == [False, True, True]


@pytest.mark.parametrize("digits", [5, 0, -1])
def test_too_few_digits(digits):
    with pytest.raises(ValueError, match="digits must be an integer >= 20"):
        checks.run_checks(digits)


@pytest.mark.slow
def test_all_checks_at_fifty_digits_in_two_processes():
    results = list(checks.run_checks(50, jobs=2))
    assert len(results) > 80
    assert [c.quantity for c in results if not c.passed] == []
