r"""From the definition of a residual network to its propagators, step by step.

Run it to write ``resnet_action.tex`` beside it, which pdflatex sets:

    python derivations/resnet_action.py

The steps are those of F25 (K. Fischer, D. Dahmen, M. Helias, "Field theory for optimal signal
propagation in ResNets", arXiv:2305.07715), sections II.1 to II.4, in the modules of ``resnet``.
What is calculated in the text is calculated there: Gaussian integrals by SymPy, and all that
follows from the action printed from the expressions that the package derives. What is said of a
printed equation is checked against its transcription in `fieldtheory.literature`.
"""

from __future__ import annotations

from pathlib import Path

import sympy as sp
from printed_equations import require
from resnet import action, expansion, propagators, weights
from typeset import article, rows, section

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import notation as sym
from fieldtheory.theory.latex import latex

TARGET = Path(__file__).with_suffix(".tex")

TITLE = r"The field theory of residual networks:\\ from the definition to the propagators"
ABSTRACT = r"""A residual network with random weights is turned into a field theory of one number
per layer, its residual kernel. We start from the definition of the network, average over weights
and biases, introduce the kernels as auxiliary fields and see why the neurons then factorise: what
is left is an action that is the width $N$ times the logarithm of an average over a single neuron.
Its saddle point is the network of infinite width, its second derivatives give the response of the
network to its input and the fluctuations of the kernels to order $1/N$. Equation numbers of the
paper~\cite{F25} are written as F25~(7); where a printed equation does not hold, the text says
so."""

# Printed equations of which the text says that they do not hold as they stand.
NOT_AS_PRINTED = (
    *("(19), line 3", "(21)", "line after (31)", "(32)", "(52)", "(54)", "(61)", "(94)"),
    *("(96), (99)", "text before (108)", "(109)", "(115)", "(126)"),
)

_h = sp.Symbol("h", real=True)
_K = sp.Symbol("K", positive=True)


def several_inputs() -> list[str]:
    """Kernels as matrices (F25 appendix A, eqs. (88)-(99), (115), (126), (128))."""
    theory = ft.derive(1, inputs=2)
    weight = theory.network_action.observables[4].coeff(
        sym.phi(sym.signal(0, 0, 2)) * sym.phi(sym.signal(0, 1, 2))
    )
    row = [sp.expand(theory.hessian.S21[4, c] / (sym.WIDTH * weight)) for c in range(3)]
    columns = ("1 1", "1 2", "2 2")
    return [
        section("Several inputs", "inputs"),
        r"For $P$ inputs $x_{\alpha}$ the signals carry an index $\alpha$, the weights do not. The "
        r"exponent of (\ref{eq:weight}) becomes the square of a sum over $\alpha$, and the kernels "
        r"become matrices, F25~(88): $C_{\alpha \beta}^{(l)} = a_{l} \frac{1}{N} \sum_{j} "
        r"\phi(h_{j \alpha}^{(l-1)}) \phi(h_{j \beta}^{(l-1)}) + c_{l}$. All steps stay the same, "
        r"with the fields $C_{\alpha \beta}^{(l)}$, $\alpha \leq \beta$, and the observables "
        r"$g_{l, \alpha \beta} = a_{l} \phi(h_{\alpha}^{(l-1)}) \phi(h_{\beta}^{(l-1)}) + c_{l}$. "
        r"In the second derivatives a covariance responds to itself and to both variances: with "
        r"Price's theorem for two variables, where a covariance $K_{\alpha \beta} = K_{\beta "
        r"\alpha}$ is one variable and has no factor $\frac{1}{2}$,",
        rows(
            *(
                rf"\frac{{\partial C_{{1 2}}^{{(1)}}}}{{\partial C_{{{c}}}^{{(0)}}}} &= "
                rf"a_{{1}} {latex(entry)}" + ("." if c == "2 2" else ",")
                for c, entry in zip(columns, row, strict=True)
            )
        ),
        r"F25~(115), (126) and (128) keep the second of these alone. It is exact for moving "
        r"$K_{1 2}$ at fixed variances; any other disturbance needs all three. A variance responds "
        r"to itself only, so that every pair of inputs is a problem of three fields of its own. "
        r"Fluctuations couple up to four inputs.",
    ]


def closed_forms() -> list[str]:
    """The averages of the error function."""
    moment = GaussianAverage(sp.erf(_h) ** 2, _h, _K)
    slope = moment.diff(_K)
    return [
        section("Example: the error function", "erf"),
        r"For $\phi = \mathrm{erf}$ the averages are elementary,",
        rows(
            rf"{latex(moment)} &= {latex(moment.doit())},",
            rf"\frac{{\partial}}{{\partial K}} {latex(moment)} &= {latex(slope.doit())},",
        ),
        r"so that (\ref{eq:nngp}) and (\ref{eq:chi}) are iterations with a pocket calculator. "
        r"\texttt{ft.solve} does them for any $\phi$, \texttt{ft.simulate} draws finite networks, "
        r"and \texttt{ft.compare} holds them against each other.",
    ]


def document() -> str:
    """The whole text as a LaTeX document."""
    for number in NOT_AS_PRINTED:
        require(number, holds=False)
    parts = [
        weights.network(),
        weights.constraints(),
        weights.weight_average(),
        action.auxiliary_fields(),
        action.factorisation(),
        action.action(),
        expansion.saddle_point(),
        expansion.hessian(),
        propagators.propagators(),
        propagators.response(),
        propagators.fluctuations(),
        several_inputs(),
        closed_forms(),
    ]
    return article(TITLE, ABSTRACT, parts, ["F25", "Price"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
