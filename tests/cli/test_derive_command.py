"""The command derive: its LaTeX is that of the derivation, and renders."""

import pytest

import fieldtheory as ft
from fieldtheory.theory.formulas import FORMULAS
from tests.cli.test_app import output, refusal


class TestDerive:
    def test_prints_the_latex_of_the_derivation(self):
        assert output("derive", "-L", 1) == ft.derive(1).latex("hessian") + "\n"
        shown = output("derive", "-L", 1, "--inputs", 2, "--what", "saddle_point")
        assert shown == ft.derive(1, inputs=2).latex("saddle_point") + "\n"

    @pytest.mark.slow_but(0)
    @pytest.mark.parametrize("layers", ["generic", "explicit"])
    @pytest.mark.parametrize("abbreviate", [True, False])
    def test_layers_and_abbreviations(self, layers, abbreviate):
        options = ["--layers", layers, *([] if abbreviate else ["--no-abbreviate"])]
        shown = output("derive", "-L", 2, "-w", "S21", *options)
        expected = ft.derive(2).latex("S21", layers=layers, abbreviate=abbreviate)
        assert shown == expected + "\n"
        assert ("M'_" in shown) == abbreviate
        assert ("pmatrix" in shown or "S_{21}^{1 0}" in shown) == (layers == "explicit")

    def test_every_quantity_is_named_in_the_help_and_in_the_error(self):
        line = refusal("derive", "--what", "propagators")
        help = " ".join(output("derive", "--help").replace("│", " ").split())
        for name in FORMULAS:
            assert name in line
            assert name in help
        assert output("derive", "-L", 1, "-w", "chi") == output("derive", "-L", 1, "-w", "response")

    def test_pages_columns_and_notations(self):
        options = ["--numbered", "--width", 246, "-a", "tanh"]
        shown = output("derive", "-L", 1, "-w", "S21,G12", *options)
        th = ft.derive(1, activation="tanh")
        expected = th.latex(["S21", "G12"], width=246, numbered=True)
        assert shown == expected + "\n"
        shown = output("derive", "-L", 1, "-w", "action", "--notation", "F25")
        assert shown == ft.derive(1).latex("action", notation="F25") + "\n"

    def test_activation(self):
        shown = output("derive", "-L", 1, "-w", "S21", "-a", "h**3")
        assert shown == ft.derive(1, activation=ft.Activation(_cube())).latex("S21") + "\n"
        assert r"\phi" not in shown

    @pytest.mark.slow_but(0, 1)
    @pytest.mark.parametrize(
        "options, scales",
        [
            ([], {}),
            (["--skip-scale", "per-layer"], {"skip_scale": "per layer"}),
            (["--skip-scale", "0.5"], {"skip_scale": 0.5}),
            (["--skip-scale", "0", "--branch-scale", "1"], {"skip_scale": 0, "branch_scale": 1}),
            (["--branch-scale", "per layer"], {"branch_scale": "per layer"}),
            (["--skip-scale", "symbol"], {"skip_scale": "symbol"}),
        ],
        ids=str,
    )
    def test_scales(self, options, scales):
        shown = output("derive", "-L", 1, "-w", "G12", *options)
        assert shown == ft.derive(1, **scales).latex("G12") + "\n"
        assert (r"\gamma" in shown) == isinstance(scales.get("skip_scale"), str)

    @pytest.mark.slow
    def test_everything_that_can_be_asked_for_renders(self, katex_failures):
        found = {name: output("derive", "-L", 1, "-w", name) for name in FORMULAS}
        assert katex_failures(found) == {}


def _cube():
    import sympy as sp

    return sp.Symbol("h", real=True) ** 3


def test_document():
    options = ("-L", 1, "-a", "erf", "--skip-scale", "per-layer", "--layers", "explicit")
    th = ft.derive(1, activation="erf", skip_scale="per layer")
    assert output("derive", *options, "--document") == th.document("explicit")
    typeset = ("--width", 246, "--notation", "F25", "--no-misprints")
    expected = th.document("explicit", width=246, notation="F25", misprints=False)
    assert output("derive", *options, "--document", *typeset) == expected
