"""Activations as text: both forms come back, and nothing in them is ever executed."""

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.activation_text import activation_from_text, activation_text
from fieldtheory.networks.activations import ACTIVATIONS, Activation, h

x = sp.Symbol("x", real=True)


class TestTyped:
    @pytest.mark.parametrize("name", ACTIVATIONS)
    def test_names(self, name):
        assert activation_from_text(name) is ACTIVATIONS[name]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("h", h),
            ("tanh(2*h)", sp.tanh(2 * h)),
            ("h*erf(h)", h * sp.erf(h)),
            ("-h**3/6 + h", h - h**3 / 6),
            ("0.1*h", h / 10),
            ("1e-3*h", h / 1000),
            ("max(0, h)", sp.Max(0, h)),
            ("relu(h) + abs(h)/2", sp.Max(0, h) + sp.Abs(h) / 2),
            ("sin(pi*h)", sp.sin(sp.pi * h)),
            ("log(1 + exp(h))", sp.log(1 + sp.exp(h))),
            ("sqrt(1 + h**2)", sp.sqrt(1 + h**2)),
            ("log1p(h**2) - expm1(-h**2)", sp.log(1 + h**2) - sp.exp(-(h**2)) + 1),
            ("x/(1 + abs(x))", h / (1 + sp.Abs(h))),
            ("2*tanh(z)", 2 * sp.tanh(h)),
            ("|x|", sp.Abs(h)),
            ("x/(1+|x|)", h / (1 + sp.Abs(h))),
            ("| x | * |-x|", h**2),
            ("||x|-1| + max(|x|, 2)", sp.Abs(sp.Abs(h) - 1) + sp.Max(sp.Abs(h), 2)),
            ("|x*|x - 1||", sp.Abs(h * sp.Abs(h - 1))),
            ("x", h),
            ("ReLU(h) - HardTanh(h)", sp.Max(0, h) - sp.Max(-1, sp.Min(1, h))),
            ("arctan(2*h)", sp.atan(2 * h)),
            ("ln(1 + h**2)", sp.log(1 + h**2)),
            ("clip(x, -1, 1)", sp.Max(-1, sp.Min(1, h))),
            ("maximum(0, x) + minimum(x, 0)/5", sp.Max(0, h) + sp.Min(0, h) / 5),
            ("where(x > 0, x, 0.1*x)", sp.Piecewise((h, h > 0), (h / 10, True))),
            ("x if x >= 0 else exp(x) - 1", sp.Piecewise((h, h >= 0), (sp.exp(h) - 1, True))),
            ("where(-1 < x <= 1, x, 0)", sp.Piecewise((h, (h > -1) & (h <= 1)), (0, True))),
            ("x if |x| < 1 else |x|", sp.Piecewise((h, sp.Abs(h) < 1), (sp.Abs(h), True))),
            (
                "where(x < -3 or x > 0 and x < 1, x, 0)",
                sp.Piecewise((h, (h < -3) | ((h > 0) & (h < 1))), (0, True)),
            ),
            (
                "where((x > -1) & (x < 1), x, sign(x))",
                sp.Piecewise((h, (h > -1) & (h < 1)), (sp.sign(h), True)),
            ),
            ("Piecewise((h, h > 0), (0, True))", sp.Piecewise((h, h > 0), (0, True))),
        ],
    )
    def test_expressions(self, text, expected):
        assert activation_from_text(text).expression == Activation(expected).expression

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "nonsense",
            "tanh(h",
            "x*y",
            "tanh(alpha)",
            "h*x",
            "2",
            "h.diff",
            "h.diff(h)",
            "__import__('os').system('true')",
            "exp(h)(h)",
            "exec('1')",
            "lambda h: h",
            "[h for h in h]",
            "(h := 2)",
            "f'{h}'",
            "tanh(h, h)",
            "max(h)",
            "tanh(argument=h)",
            "h^2",
            "h/0",
            "sqrt(-1)*h",
            "True*h",
            "9**9**9*h",
            "((9**20)**20)**20*h",
            "abs(abs(abs(9**20)**20)**20)**20*h",
            "h**h",
            "h**1000",
            "h" + "+h" * 50_000,
            "h\x00",
        ],
    )
    def test_refuses_in_one_line(self, text):
        with pytest.raises(ValueError, match="^activation must [^\n]*$") as caught:
            activation_from_text(text)
        # A user's traceback has no name of an inner class.
        assert caught.type is ValueError

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("tahn(2*h)", "got function 'tahn'; did you mean tanh?"),
            ("sofplus(h)", "; did you mean softplus?"),
            ("wher(h > 0, h, 0)", "; did you mean where?"),
            ("sqr(1 + h**2)", "; did you mean sqrt?"),
            ("2*tanh", "got 'tanh'; did you mean tanh(h)?"),
            ("h^2", "; powers are written with **"),
            ("np.tanh(h)", "; write tanh(...) without what stands before it"),
            ("|h", "got '|h'; write abs(h)"),
            ("|h||h|", "got '|h||h|'; write abs(h)"),
            ("(|h)|", "got '(|h)|'; write abs(h)"),
            ("h | 1", "got 'h | 1'; write abs(h)"),
            ("log(h)", "must be real for every real h, got log(h)"),
            ("where(h, 1, 0)", "must have conditions such as h > 0, got 'h'"),
            ("h and 1", "must have conditions such as h > 0, got 'h'"),
            ("(h > 0)*h", "must be a name or an expression in h, got '(h > 0)*h'"),
            ("h > 0", "must be a real expression in h, got 'h > 0'"),
            ("where(h == 0, 1, h)", "got 'h == 0'"),
            ("clip(h, 1)", "got 'clip(h, 1)' (missing 1 required positional argument: 'high')"),
            ("np.clip(h, -1, 1)", "; write clip(...) without what stands before it"),
        ],
    )
    def test_says_what_may_have_been_meant(self, text, hint):
        with pytest.raises(ValueError, match="^activation must [^\n]*$") as caught:
            activation_from_text(text)
        assert hint in str(caught.value)

    def test_name_is_that_of_the_expression_or_the_one_given(self):
        assert activation_from_text(" 0.5*h ").name == "0.5*h"
        assert activation_from_text("0.5*h", "").name == "h/2"
        assert activation_from_text("0.5*h", "half").name == "half"
        assert activation_from_text("tanh", "mine") is ACTIVATIONS["tanh"]

    @pytest.mark.parametrize(("text", "expected"), [("sech", sp.sech(h)), ("Cosh", sp.cosh(h))])
    def test_a_function_is_that_of_h(self, text, expected):
        assert activation_from_text(text).expression == expected

    def test_a_function_that_is_not_real(self):
        with pytest.raises(ValueError, match=r"real for every real h, got log\(h\)"):
            activation_from_text("log")


class TestStored:
    @pytest.mark.parametrize(
        "phi",
        [
            sp.erf(0.1 * x),
            sp.Float("0.3", 40) * sp.tanh(x),
            sp.Piecewise((x, x > 0), (x / 10, True)),
            sp.sqrt(2) * x**25 - sp.pi**2 * sp.exp(-(x**2)),
            (x**2 + 1) ** sp.Rational(-3, 2),
            sp.Max(0, x) - sp.Abs(x + 1) * sp.Heaviside(x),
            sp.Min(x, 1, x**2) - sp.Rational(1, 3) * sp.E,
            sp.Piecewise((x, (x > 0) & (x <= 1)), (1, (x < -2) | (x >= 1)), (0, True)),
            *(
                function(x / 2)
                for function in (
                    *(sp.Abs, sp.sign, sp.exp, sp.erf, sp.erfc, sp.sin, sp.cos, sp.sinh, sp.cosh),
                    *(sp.tanh, sp.atan, sp.asinh, sp.sech, sp.sinc, sp.Heaviside),
                )
            ),
            *(function(sp.tanh(x) / 2) for function in (sp.asin, sp.acos, sp.atanh, sp.tan)),
            *(function(1 + x**2) for function in (sp.log, sp.sqrt, sp.acosh)),
        ],
    )
    def test_expressions_come_back_equal(self, phi):
        activation = ft.Activation(phi, "mine")
        assert activation_from_text(activation_text(activation), "mine") == activation

    def test_text_of_files_that_exist(self):
        text = (
            "Add(Mul(Rational(1, 3), Symbol('h', real=True)), erf(Mul(Float('0.29999999999999999', "
            "precision=53), Symbol('h', real=True))))"
        )
        found = activation_from_text(text)
        assert found.expression == sp.erf(3 * h / 10) + h / 3
        assert found.expression == ft.Activation(sp.erf(sp.Float(0.3) * h) + h / 3).expression

    def test_a_registered_name_does_not_stand_for_another_function(self):
        activation = ft.Activation(2 * x, "relu")
        assert activation_from_text(activation_text(activation), "relu") == activation

    @pytest.mark.parametrize(
        "text",
        [
            "__import__('os').system('true')",
            "Pow(Integer(9), Integer(1000000000))",
            "Pow(Integer(9), Rational(1000000001, 2))",
            "Symbol('y')",
            "Lambda(Symbol('h', real=True), Integer(1))",
            "Integer('9')",
            "Float('1', 53)",
            "exp()",
            "Integer(2)",
            "erf(",
            "Pow(Mul(Integer(2), Symbol('h')), Integer(1000000000))",
            "Float('one', precision=53)",
            "Add(Symbol('h'), true)",
            "Piecewise(Symbol('h'))",
            "tanh('h')",
            "tanh(*[h])",
            "Symbol('h', real=True).diff",
            "h.__class__",
            "abs[h][0]",
            "E[h]",
            "tanh(h, **{})",
            "typed_power(h, 2)",
            "print(h)",
            "open('x')",
            "[h][0]",
            "{h}",
            "h if 'x' else h",
            "Piecewise((h, h), (0, True))",
            "Piecewise((h > 0, h < 1), (0, True))",
            "(h, h)",
            "h and 1",
            "h & True",
            "Max(Symbol('h'))",
            "(" * 5000,
        ],
    )
    def test_text_is_not_executed(self, text):
        with pytest.raises(ValueError, match="activation must") as caught:
            activation_from_text(text)
        assert "\n" not in str(caught.value)
