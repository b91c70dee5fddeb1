"""Propagators, and what they say of a network: response and fluctuations, F25 eqs. (45)-(61)."""

from __future__ import annotations

import sympy as sp
from printed_equations import require
from typeset import equation, in_order, rows, section, spread

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.generic import j, k, l, m, n
from fieldtheory.theory.latex import latex
from resnet import DEPTH
from resnet.slopes import names_of_slopes, short, slope, slope_of


def propagators() -> list[str]:
    """G = −(S^(2))^{-1}, F25 eqs. (45)-(49)."""
    require("(49)", holds=False)
    theory = ft.derive(DEPTH)
    G12 = theory.propagator.G12
    product = G12 * theory.hessian.S21 + sp.eye(DEPTH + 2)
    assert product.applyfunc(sp.expand).is_zero_matrix, "G12 is minus the inverse of S21"
    names = names_of_slopes(theory)
    growths = {
        sp.S.One + theory.network_action.observables[i].coeff(sym.phi(sym.signal(i - 1)) ** 2)
        * names[slope_of(theory, i - 1)]: sp.Symbol(f"r_{{{i}}}")
        for i in range(1, DEPTH + 1)
    }  # fmt: skip
    widths = sp.diag(1 / sym.INPUT_WIDTH, *[1] * (DEPTH + 1))
    shown = (sym.WIDTH * G12 * widths.inv()).applyfunc(
        lambda entry: entry.xreplace(names).xreplace(growths)
    )
    assert not shown.has(sym.INPUT_WIDTH, GaussianAverage)
    growth = short(generic.growth(j), j - 1)
    shown_growth = in_order(growth, generic.SkipScale(j) ** 2, generic.Weight(j) * slope(j - 1))
    recursion = short(generic.response_recursion(l, m), l - 1)
    history = sp.Sum(generic.A(l - 1, k) ** 2 * generic.G12(k, m), (k, m, l - 1))
    gain, source = generic.Weight(l) * slope(l - 1), sp.KroneckerDelta(l, m) / sym.WIDTH
    assert recursion == source + gain * history
    assert short(generic.response_product(l, m), l - 1, j - 1) == gain / (
        sym.WIDTH * generic.RelativeWidth(m)
    ) * sp.Product(growth, (j, m + 1, l - 1))
    return [
        section("The propagators", "propagators"),
        r"The covariances of the fields are $G = -(S^{(2)})^{-1}$, F25~(45). With $S_{11} = 0$ the "
        "inverse of the four blocks is",
        equation(
            r"G_{12} = -S_{21}^{-1}, \quad G_{21} = G_{12}^{\mathsf{T}}, \quad "
            r"G_{11} = G_{12} S_{22} G_{21}, \quad G_{22} = 0",
            "blocks",
        ),
        r"(F25 (46)--(48)): multiply it with the Hessian to see it. $G_{12}^{lm} = \langle C^{(l)} "
        r"\tilde{C}^{(m)} \rangle$ and $G_{11}^{lm}$ is the covariance of $C^{(l)}$ and $C^{(m)}$. "
        r"Row $l$ of $S_{21} G_{12} = -1$, solved for its last term, is a recursion from layer to "
        "layer (F25 (49)), for $l \\geq 1$",
        equation(
            rf"G_{{12}}^{{l m}} = {latex(source)} + {latex(gain)} \sum_{{k=m}}^{{l-1}} "
            r"A_{l-1, k}^{2}\, G_{12}^{k m},",
            "recursion",
        ),
        r"from $G_{12}^{0 0} = 1/(N \nu_{0})$. The sum over $k$ grows from row to row by one term, "
        r"the last $G_{12}^{l m}$ itself, after all others have been multiplied by "
        r"$\gamma_{l}^{2}$. So it is a product, of the factors",
        equation(f"r_{{j}} = {shown_growth}", "growth"),
        r"by which a disturbance of the kernel grows in a layer, and",
        equation(
            r"G_{12}^{l m} = \frac{a_{l} M'_{l-1}}{N \nu_{m}} \prod_{j=m+1}^{l-1} r_{j} "
            r"\quad (l > m), \qquad G_{12}^{l l} = \frac{1}{N \nu_{l}}.",
            "product",
        ),
        rf"For $L = {DEPTH}$, $\gamma = 1$ and one $\rho$,",
        equation(
            rf"G_{{12}} = \frac{{1}}{{N}} {spread(latex(shown))}\, D,",
            "G12",
        ),
        rf"with $D = \mathrm{{diag}}(1/{latex(sym.INPUT_WIDTH)}, 1, 1, 1)$ for the width of the "
        "input.",
    ]


def response() -> list[str]:
    """η, χ and χ^out, their meaning, and what ν_0 does to them (F25 eqs. (31), (50)-(61))."""
    require("(57)", holds=False)
    assert _response_is_the_derivative_of_the_saddle_point()
    chi, readout = (
        r"\chi^{{({})}}",
        ft.ResidualNetwork.readout(sym.parameters(ft.ResidualNetwork, "l")),
    )
    growth = short(generic.growth(l), l - 1)
    growth = in_order(growth, generic.SkipScale(l) ** 2, generic.Weight(l) * slope(l - 1))
    last = latex(readout.weight * slope(sym.DEPTH))
    return [
        section("The response of the network", "response"),
        r"What is $G_{12}$? Add $\epsilon$ to the kernel that layer $m$ would have. In the "
        r"exponent this is a term $N \nu_{m} \epsilon\, \tilde{C}^{(m)}$, and the mean of "
        r"$C^{(l)}$ "
        r"changes by $N \nu_{m} \langle C^{(l)} \tilde{C}^{(m)} \rangle\, \epsilon$: so the "
        r"response, F25~(31), is",
        equation(
            r"\frac{\partial \langle C^{(l)} \rangle}{\partial C^{(m)}} = N \nu_{m} G_{12}^{l m} "
            r"\qquad \text{(to leading order, } \nu_{m} = 1 \text{ for } m \geq 1 \text{)}.",
            "meaning",
        ),
        r"F25~(32) and (50) leave out $\nu_{m}$ and define $\Delta_{12}^{l m} = N G_{12}^{l m}$; "
        r"the line after (31) has an $N$ too many in its bracket. The responses to the input, "
        r"F25~(50)--(55), are",
        rows(
            r"\eta^{(l)} &= \Delta_{12}^{l 0}, \qquad \chi^{(l)} = \sum_{m=0}^{l} A_{l m}^{2} "
            r"\eta^{(m)},",
            rf"{chi.format('l')} &= \big( {growth} \big)\, {chi.format('l-1')}, \qquad "
            rf"\chi^{{\mathrm{{out}}}} = {last}\, {chi.format('L')}. \label{{eq:chi}}",
        ),
        r"\paragraph{Two conventions.} All of them start from $\eta^{(0)} = \chi^{(0)} = "
        r"N G_{12}^{0 0} = 1/\nu_{0} = N/d_{\mathrm{in}}$, as F25 states after (51). But F25~(57) "
        r"calls them derivatives by the kernel of the input, which start from 1. Both are right, "
        r"each for its definition; they differ by the constant factor $\nu_{0}$, on which no "
        r"optimum depends. The package reports derivatives, $\nu_{0} = 1$, and with "
        r'\texttt{convention="F25"} those of (50). '
        r"F25~(52) and (54) lack a factor $N$; the last $\eta^{(l)}$ of (61) is $\eta^{(k)}$.",
        r"\paragraph{Linear response.} That (\ref{eq:meaning}) is no more than the chain rule can "
        r"be seen from the saddle point: differentiate (\ref{eq:nngp}) by the kernel of the input, "
        r"layer by layer, and (\ref{eq:chi}) comes out (F25 (56)--(60)). The field theory says "
        "what the chain rule does not: that this is the leading term of an expansion in $1/N$, "
        "and what the fluctuations are.",
    ]


def _response_is_the_derivative_of_the_saddle_point() -> bool:
    """dC*^(l)/dC^(0) by the chain rule is N ν_0 G12[l, 0], for every layer of DEPTH layers."""
    theory = ft.derive(DEPTH)
    kernels = theory.network_action.kernels
    slopes = [sp.S.One]
    for field in list(theory.saddle_point.kernels.values())[1:]:
        earlier = zip(kernels, slopes, strict=False)
        slopes.append(sp.Add(*[field.diff(C) * slope for C, slope in earlier]))
    column = [sym.WIDTH * sym.INPUT_WIDTH * entry for entry in theory.propagator.G12[:, 0]]
    return all(sp.expand(s - c) == 0 for s, c in zip(slopes, column, strict=True))


def fluctuations() -> list[str]:
    """G11 (F25 eqs. (46), (131)-(133))."""
    require("text after (133)", holds=False)
    first = ft.derive(1).propagator.G11[1, 1]
    noise = generic.G12(l, k) * generic.S22(k, n) * generic.G12(m, n)
    assert generic.kernel_propagator(l, m) == sp.Sum(noise, (k, 1, l), (n, 1, m))
    return [
        section("Fluctuations", "fluctuations"),
        r"The kernels of a finite network differ from one draw of the weights to the next. To "
        "leading order,",
        equation(
            r"\langle\, C^{(l)} \,;\, C^{(m)} \rangle = G_{11}^{l m} = \sum_{k=1}^{l} "
            r"\sum_{n=1}^{m} "
            r"G_{12}^{l k}\, S_{22}^{k n}\, G_{12}^{m n},",
            "G11",
        ),
        r"F25~(131): noise $S_{22}$ arises in the layers $k$ and $n$ and is carried on by the "
        r"response. In the first layer there is no response, and",
        equation(f"G_{{11}}^{{1 1}} = {latex(first)}", "first"),
        r"is the variance of a mean over $N$ independent neurons. The kernels of different layers "
        r"are correlated. The variance of $K^{(l)}$ is therefore the whole double sum,",
        equation(
            r"\mathrm{Var}\, K^{(l)} = \sum_{k=0}^{l} \sum_{m=0}^{l} A_{l k}^{2} A_{l m}^{2}\, "
            r"G_{11}^{k m},",
            "variance",
        ),
        r"not that of $G_{11}^{k k}$ alone as the line after F25~(133) has it. All this scales as "
        r"$1/N$, and $\nu_{0}$ does not enter: the input does not fluctuate.",
    ]
