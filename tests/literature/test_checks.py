"""The high-precision checks pass, and notice an error."""

import csv
import math

import pytest

from fieldtheory.literature import checks
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.numerics.entries import Entries

DIGITS = 20


@pytest.mark.parametrize("name", ["erf", "linear", "relu", "sin"])
def test_price_and_averages_of_an_activation(name):
    results = checks.activation_checks(name, DIGITS)
    assert len(results) == 6
    assert [c.quantity for c in results if not c.passed] == []
    assert all(c.tolerance <= 1e-12 for c in results)


def test_every_registered_activation_is_checked(monkeypatch):
    seen = []
    for function in ("activation_checks", "connected_checks", "network_checks", "maximum_entropy"):
        monkeypatch.setattr(checks, function, lambda *a, f=function: seen.append((f, a[0])) or [])
    described = []
    assert checks.run_checks(DIGITS, described.append) == []
    assert {a for f, a in seen if f == "activation_checks"} == set(ACTIVATIONS)
    assert len(described) == len(seen)
    assert {f for f, _ in seen} >= {"connected_checks", "network_checks", "maximum_entropy"}


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


def test_a_wrong_average_is_noticed(monkeypatch):
    exact = Entries.susceptibility.func
    monkeypatch.setattr(
        Entries, "susceptibility", property(lambda self: lambda K: exact(self)(K) * (1 + 1e-10))
    )
    failed = [c.quantity for c in checks.activation_checks("erf", DIGITS) if not c.passed]
    assert failed == ["M'(K), erf"]


def test_maximum_entropy_reports_both_conditions():
    results = {c.quantity: c for c in checks.maximum_entropy(30)}
    assert all(c.passed for c in results.values())
    quarter = results["D_KL by F25 (141) against integration at σ² = 1/4"]
    assert float(quarter.mpmath) == pytest.approx(0.5 - math.log(2) / 2, rel=1e-14)
    slope = results["dD_KL/dσ² at σ² = 1/4"]
    assert float(slope.mpmath) == pytest.approx(-2, rel=1e-14)
    assert "(142) does not hold" in slope.note
    slope = results["dD_KL/dσ² at σ² = 1/2"]
    assert float(slope.mpmath) == 0
    assert "the condition that (141) implies" in slope.note
    for name, minimum in (("erf", 1 / 2), ("tanh", math.pi**2 / 12), ("logistic", math.pi**2 / 3)):
        found = results[f"σ² at the minimum of D_KL, {name}"]
        assert float(found.mpmath) == pytest.approx(minimum, rel=1e-14)


def test_a_wrong_divergence_is_noticed(monkeypatch):
    monkeypatch.setattr(checks, "_PRINTED_DIVERGENCE", checks._PRINTED_DIVERGENCE * (1 + 1e-15))
    failed = [c.quantity for c in checks.maximum_entropy(DIGITS) if not c.passed]
    assert failed and all("F25 (141)" in quantity for quantity in failed)


def test_the_printed_derivative_would_fail(monkeypatch):
    # F25 (142) with its 1/σ² for 1/(2σ²).
    monkeypatch.setattr(checks, "_divergence_slope", lambda v, digits: 1 / v - 1 / (4 * v**2))
    failed = [c.quantity for c in checks.maximum_entropy(DIGITS) if not c.passed]
    assert failed == ["dD_KL/dσ² at σ² = 1/4", "dD_KL/dσ² at σ² = 1/2"]


def test_table_has_a_row_for_each_check(tmp_path):
    results = checks.maximum_entropy(DIGITS)
    checks.write_csv(results, tmp_path / "checks.csv")
    with (tmp_path / "checks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [r["quantity"] for r in rows] == [c.quantity for c in results]
    assert {r["passed"] for r in rows} == {"True"}
    assert all(float(r["difference"]) <= float(r["tolerance"]) for r in rows)


@pytest.mark.parametrize("digits", [5, 0, -1])
def test_too_few_digits(digits):
    with pytest.raises(ValueError, match="digits must be an integer >= 20"):
        checks.run_checks(digits)


@pytest.mark.slow
def test_all_checks_at_fifty_digits_in_two_processes():
    results = checks.run_checks(50, jobs=2)
    assert len(results) > 80
    assert [c.quantity for c in results if not c.passed] == []
