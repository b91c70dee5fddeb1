"""From the definition of a residual network to its propagators, step by step.

Run it to write ``resnet_action.tex`` beside it:

    python derivations/resnet_action.py

Every equation in the text is printed from SymPy expressions that the package derives: the network
from the definition that simulations draw, all else from the action. The steps are those of F25
(Fischer, Dahmen, Helias, "Field theory for optimal signal propagation in ResNets") sections II.1
to II.3; equation numbers are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sympy as sp

import fieldtheory as ft
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.latex import latex

DEPTH = 2
TARGET = Path(__file__).with_suffix(".tex")


def network() -> list[str]:
    """The definition, F25 eq. (1) with a scale γ on the skip connection."""
    parameters = sym.parameters(ft.ResidualNetwork, "l")
    # Vectors and matrices, whose products keep their order.
    first, before, after, last = (
        sp.Symbol(f"h^{{({layer})}}", commutative=False) for layer in ("0", "l-1", "l", "L")
    )
    x, y = (sp.Symbol(name, commutative=False) for name in "xy")

    def affine(layer: str) -> Callable[..., sp.Expr]:
        W, b = (sp.Symbol(rf"{name}^{{{layer}}}", commutative=False) for name in "Wb")
        return lambda signal, weight_variance, bias_variance: W * signal + b

    branch = ft.ResidualNetwork.branch((sym.phi(before),), affine("(l)"), parameters)
    skip = ft.ResidualNetwork.layer(parameters).skip
    readout = affine(r"\mathrm{out}")(sym.phi(last), None, None)
    variances = parameters["weight_variance"] / sym.WIDTH, parameters["bias_variance"]
    return [
        r"\section{The network}",
        "A signal $h^{(l)}$ of $N$ neurons passes through $L$ residual layers:",
        _equation(first, affine(r"\mathrm{in}")(x, None, None)),
        _equation(after, skip * before + branch),
        _equation(y, readout),
        f"Weights and biases are independent Gaussians of variance ${latex(variances[0])}$ and "
        f"${latex(variances[1])}$.",
    ]


def weight_average() -> list[str]:
    """One weight enters as exp(w z); its average is Gaussian in z (F25 eq. (10))."""
    w, z = sp.symbols("w z", real=True)
    single = ft.GaussianAverage(sp.exp(-w * z), w, sym.WEIGHT**2 / sym.WIDTH)
    return [
        r"\section{Average over the weights}",
        r"In the prior, each weight enters as $e^{-w z}$ with "
        r"$z = \rho_{l} \tilde{h}^{(l)}_{i} \phi(h^{(l-1)}_{j})$. Its average is",
        _equation(single, single.doit()),
        r"The signals couple through $\sum_{j} \phi(h_{j})^{2}$ alone. One residual kernel "
        r"$C^{(l)}$ for each layer takes its place, and a conjugate $\tilde{C}^{(l)}$ enforces its "
        r"definition. At given kernels all neurons are independent and the signals Gaussian.",
    ]


def action(theory: ft.Derivation) -> list[str]:
    """S(C, C̃), F25 eqs. (21), (22)."""
    covariance = theory.network_action.covariance
    last = covariance[DEPTH, DEPTH]
    return [
        r"\section{The action}",
        f"For $L = {DEPTH}$ layers:",
        _display(theory.latex("action")),
        r"The signals of layers $k$ and $l$ have the covariance $K^{(k,l)}$, linear in the "
        "kernels; for the last layer",
        _equation(generic.K(DEPTH), last),
    ]


def saddle_point(theory: ft.Derivation) -> list[str]:
    """dS = 0, F25 eqs. (25), (26)."""
    residual = theory.network_action.derivative((), ())
    assert residual == 0, "the average of one is one, whatever the kernels"
    return [
        r"\section{The saddle point}",
        r"At $\tilde{C} = 0$ the average in the action is $\langle 1 \rangle = 1$, so that "
        f"$S(C, 0) = {latex(residual)}$ and $\\tilde{{C}}_* = 0$ makes $S$ stationary in $C$. "
        r"Stationarity in $\tilde{C}$ is the recursion of the infinitely wide network:",
        _display(theory.latex("saddle_point")),
        "For any depth:",
        _display(generic.layer_formulas()["saddle_point"]),
        _display(generic.layer_formulas()["kernel"]),
    ]


def hessian(theory: ft.Derivation) -> list[str]:
    """The second derivatives, F25 eqs. (38), (39), (41)."""
    variance = sp.Symbol("K", positive=True)
    h = sp.Symbol("h", real=True)
    moment = ft.GaussianAverage(sym.phi(h) ** 2, h, variance)
    return [
        r"\section{The Hessian}",
        "The kernels enter the average through its covariance. The derivative is Price's theorem,",
        _equation(sp.Derivative(moment, variance), moment.diff(variance)),
        r"Differentiating the action twice and setting $\tilde{C} = 0$ gives",
        *(_display(theory.latex(block)) for block in ("S11", "S21", "S22")),
        r"and $\mathcal{S}_{12} = \mathcal{S}_{21}^{\mathsf{T}}$. For any depth, with the weights",
        *(_display(generic.layer_formulas()[name]) for name in ("weights", "S21", "S22")),
    ]


def propagator(theory: ft.Derivation) -> list[str]:
    """G = −(S^(2))^{-1}, F25 eqs. (46)-(49)."""
    product = theory.propagator.G12 * theory.hessian.S21 + sp.eye(DEPTH + 2)
    assert product.applyfunc(sp.expand).is_zero_matrix, "G12 is minus the inverse of S21"
    return [
        r"\section{The propagators}",
        r"Since $\mathcal{S}_{11} = 0$ and $\mathcal{S}_{21}$ is lower triangular, forward "
        r"substitution inverts the Hessian:",
        *(_display(theory.latex(block)) for block in ("G12", "G22")),
        "For any depth:",
        *(_display(generic.layer_formulas()[name]) for name in ("G12", "G12_product", "G11")),
        r"$\mathcal{G}_{12}$ is the response of a kernel to a change in an earlier layer and "
        r"$\mathcal{G}_{11}$ the covariance of the kernels; both scale as $1/N$. The response to "
        "the input is a running product,",
        _display(generic.layer_formulas()["response"]),
        _display(generic.layer_formulas()["output_response"]),
    ]


def closed_forms() -> list[str]:
    """The averages of the error function."""
    K = sp.Symbol("K", positive=True)
    h = sp.Symbol("h", real=True)
    moment = ft.GaussianAverage(sp.erf(h) ** 2, h, K)
    slope = moment.diff(K)
    return [
        r"\section{The error function}",
        r"For $\phi = \mathrm{erf}$ the averages are elementary:",
        _equation(moment, moment.doit()),
        _equation(sp.Derivative(moment, K), slope.doit()),
    ]


def document() -> str:
    """The whole text as a LaTeX document."""
    theory = ft.derive(depth=DEPTH)
    parts = [
        network(),
        weight_average(),
        action(theory),
        saddle_point(theory),
        hessian(theory),
        propagator(theory),
        closed_forms(),
    ]
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath, amssymb, bbm, graphicx}",
        r"\usepackage[landscape, margin=1.5cm]{geometry}",
        r"\renewcommand{\mathbb}{\mathbbm}",
        r"\begin{document}",
        *(line for part in parts for line in part),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _equation(left: sp.Expr, right: sp.Expr) -> str:
    return _display(latex(sp.Eq(left, right, evaluate=False)))


def _display(formula: str) -> str:
    return f"\\[\n{formula}\n\\]"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
