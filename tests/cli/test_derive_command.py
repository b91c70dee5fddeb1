"""The command derive: its LaTeX is that of the derivation, and renders."""

import fieldtheory as ft
from tests.cli.test_app import output


class TestDerive:
    def test_prints_the_latex_of_the_derivation(self):
        assert output("derive", "-L", 1) == ft.derive(1).latex("hessian") + "\n"
        shown = output("derive", "-L", 1, "--inputs", 2, "--what", "saddle_point")
        assert shown == ft.derive(1, inputs=2).latex("saddle_point") + "\n"

    def test_activation(self):
        shown = output("derive", "-L", 1, "-w", "S21", "-a", "h**3")
        assert shown == ft.derive(1, activation=ft.Activation(_cube())).latex("S21") + "\n"
        assert r"\phi" not in shown

    def test_everything_that_can_be_asked_for_renders(self, katex_failures):
        names = ("action", "propagator", "S11", "S12", "S22", "G11", "G12", "G21", "G22")
        assert katex_failures({n: output("derive", "-L", 1, "-w", n) for n in names}) == {}


def _cube():
    import sympy as sp

    return sp.Symbol("h", real=True) ** 3
