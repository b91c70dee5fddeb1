"""The table of rules: the words belong to the decision that `lambdify` takes."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, routes
from fieldtheory.compiling.explanation import explain
from fieldtheory.compiling.functions import lambdify

x, y, z, w = sp.symbols("x y z w", real=True)
K = sp.Symbol("K", positive=True)
K2 = sp.Matrix([[1, K], [K, 2]])


def relu(u):
    return sp.Max(0, u)


RULES = {
    "closed form": GaussianAverage(sp.erf(x) ** 2, x, K),
    "panels": GaussianAverage(sp.tanh(x) ** 2, x, K),
    "Mehler series or nested panels": GaussianAverage(sp.tanh(x) * sp.tanh(y), (x, y), K2),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    (row,) = explain(RULES[name]).rows
    assert row.rule == name and row.reason
    assert row.average == str(RULES[name]) and row.latex == sp.latex(RULES[name])
    assert row.variables == len(RULES[name].variables)


def test_rows_follow_the_expression():
    first, second = RULES["panels"], RULES["closed form"]
    inner = GaussianAverage(sp.tanh(x) ** 2, x, second)
    rows = explain([first, [second * first], sp.Matrix([[inner]])]).rows
    assert [row.average for row in rows] == [str(first), str(second), str(inner)]
    assert explain(K + 1).rows == ()


def test_simplifications():
    raw = GaussianAverage(3 * sp.tanh(x) ** 2 * sp.erf(y) ** 2 + 1, (x, y), sp.eye(2), False)
    rows = explain(raw).rows
    assert sorted(row.rule for row in rows) == ["closed form", "panels"]
    assert {row.average for row in rows} == {"<erf(y)**2>_(1)", "<tanh(x)**2>_(1)"}
    assert all("2 independent groups of variables" in row.simplifications for row in rows)
    assert all("constant factor taken out" in row.simplifications for row in rows)
    (odd,) = explain(GaussianAverage(sp.tanh(x), x, K, evaluate=False)).rows
    assert odd.simplifications == ("odd integrand dropped",) and odd.rule == "closed form"
    (delta,) = explain(GaussianAverage(sp.Abs(x - 1), x, K).diff(K)).rows
    assert delta.simplifications == ("δ-functions integrated",)
    (stable,) = explain(ConnectedCorrelator(sp.exp(x), sp.exp(y), (x, y), K2)).rows
    assert stable.simplifications == ("stable form in float64",)


def test_mpmath():
    (row,) = explain(RULES["Mehler series or nested panels"], backend="mpmath").rows
    assert row.rule == "Mehler series or nested panels"
    (row,) = explain(RULES["panels"], backend="mpmath").rows
    assert row.rule == "panels"
    node = GaussianAverage(sp.tanh(x) * sp.tanh(y) * sp.cos(z), (x, y, z), sp.eye(3) + sp.ones(3))
    with pytest.raises(ValueError, match="closed form for averages over more than two variables"):
        explain(node, backend="mpmath")


def test_public_name_and_errors():
    assert ft.explain is explain and ft.lambdify is lambdify
    with pytest.raises(ValueError, match="backend must be one of numpy, mpmath, got 'jax'"):
        explain(K, backend="jax")
    with pytest.raises(ValueError, match="expression must have a known, continuous activation"):
        explain(GaussianAverage(sp.Function("phi")(x) ** 2, x, K))
    with pytest.raises(TypeError, match="^expression must be a SymPy .*, got Derivation"):
        explain(ft.derive(depth=1))
    with pytest.raises(ValueError, match="must have a number for K inside"):
        explain(GaussianAverage(sp.tanh(K * x) ** 2, x, 1))


def test_text_and_html():
    long = GaussianAverage(sp.tanh(x) ** 2 * sum(sp.cos(n * x) for n in range(2, 12)), x, K)
    table = explain([RULES["panels"], long])
    text, html = " ".join(str(table).split()), table._repr_html_()
    for row in table.rows:
        assert f"{row.variables} {row.rule} {row.reason[:20]}" in text
        assert f">${row.latex}$</td>" in html and f">{row.rule}</td>" in html
    assert table.rows[0].average in text and "…" in text
    assert str(explain(K + 1)) == "no averages" == explain(K + 1)._repr_html_()[3:-4]


def test_routes_of_a_solution():
    """Each algorithm is there where it has to be, of φ that no other test has filled tables for."""
    many = ft.input_kernel(
        np.random.default_rng(0).normal(size=(40, 9)), ft.ResidualNetwork(depth=1)
    )
    strong = [[0.5, 0.4999], [0.4999, 0.5]]
    for name, K0, fields, expected in (
        ("erf", 0.5, ["G11"], {routes.CLOSED, routes.SERIES}),
        ("tanh(1.2345*h)", 0.5, ["mean_shift"], {routes.PANELS, routes.FOURIER}),
        ("softsign(1.2345*h)", 0.5, ["mean_shift"], {routes.PANELS, routes.NODES}),
        ("softsign(1.2345*h)", strong, [], {routes.PANELS, routes.NESTED}),
        ("relu", strong, [], {routes.CLOSED, routes.LINES}),
        ("erf", many, ["output_kernel"], {routes.CLOSED, routes.MAP}),
    ):
        solution = ft.solve(ft.ResidualNetwork(depth=3, activation=name), K0)
        for field in fields:
            _ = getattr(solution, field)
        averages = explain(solution).averages
        assert expected <= set(averages) <= set(routes.ROUTES), (name, averages)
        assert all(name in str(explain(solution)) for name in averages)
        assert explain(solution)._repr_html_().count("<tr>") == 1 + len(averages)
