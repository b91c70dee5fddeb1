"""From the network to the average over its weights, F25 eqs. (1)-(15)."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp
from typeset import equation, rows, section

import fieldtheory as ft
from fieldtheory.theory import notation as sym
from fieldtheory.theory.latex import latex

_h, _ht, _w, _z = sp.symbols(r"h \tilde{h} w z", real=True)
_C = sp.Symbol("C", positive=True)


def network() -> list[str]:
    """The definition, F25 eq. (1) with scales γ_l and ρ_l of every layer."""
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
    lines = [
        (first, affine(r"\mathrm{in}")(x, None, None), ""),
        (after, skip * before + branch, r",\qquad l = 1, \dots, L,"),
        (y, affine(r"\mathrm{out}")(sym.phi(last), None, None), "."),
    ]
    return [
        section("The network", "network"),
        r"An input $x$ of $d_{\mathrm{in}}$ components is read into a signal $h^{(0)}$ of $N$ "
        r"neurons, which passes $L$ residual layers and is read out,",
        rows(*(f"{latex(left)} &= {latex(right)}{note}" for left, right, note in lines)),
        r"Of the signal $h^{(l-1)}$ the skip connection hands on a part $\gamma_{l}$; the branch "
        r"adds the residual $f^{(l)} = h^{(l)} - \gamma_{l} h^{(l-1)}$, scaled by $\rho_{l}$. "
        r"F25~(1) has $\gamma_{l} = 1$ and one $\rho$ for all layers; $\gamma_{l} = 0$, "
        r"$\rho_{l} = 1$ is a feed-forward network. All entries of weights and biases are "
        "independent Gaussians of zero mean and the variances",
        rows(
            rf"W^{{\mathrm{{in}}}}&:\ "
            rf"\frac{{{latex(sym.READIN_WEIGHT**2)}}}{{d_{{\mathrm{{in}}}}}},"
            rf"\quad & W^{{(l)}}&:\ {latex(sym.WEIGHT**2 / sym.WIDTH)}, \quad & "
            rf"W^{{\mathrm{{out}}}}&:\ {latex(sym.READOUT_WEIGHT**2 / sym.WIDTH)}, \notag",
            rf"b^{{\mathrm{{in}}}}&:\ {latex(sym.READIN_BIAS**2)}, & "
            rf"b^{{(l)}}&:\ {latex(sym.BIAS**2)}, & "
            rf"b^{{\mathrm{{out}}}}&:\ {latex(sym.READOUT_BIAS**2)}.",
        ),
        r"We ask for the distribution $p(y|x)$ of the output over networks: the prior of Bayesian "
        "inference, F25~(4).",
    ]


def constraints() -> list[str]:
    """Dirac functions and their Fourier representation, F25 eqs. (5)-(9)."""
    omega = sp.Symbol("omega", real=True)
    integral = sp.integrate(sp.exp(sp.I * omega * _h - _C * omega**2 / 2), (omega, -sp.oo, sp.oo))
    found = sp.simplify(integral / (2 * sp.pi))
    density = sp.exp(-(_h**2) / (2 * _C)) / sp.sqrt(2 * sp.pi * _C)
    assert sp.simplify(found - density) == 0
    return [
        section("The network as constraints", "constraints"),
        "At given weights nothing is random. The signals are fixed layer by layer, which Dirac "
        "functions enforce, F25~(5),",
        equation(
            r"p(y|x, \theta) &= \int\! dh^{(0)} \cdots \int\! dh^{(L)}\, "
            r"\delta\big(h^{(0)} - W^{\mathrm{in}} x - b^{\mathrm{in}}\big) \\ "
            r"&\quad \times \prod_{l=1}^{L} \delta\big(h^{(l)} - \gamma_{l} h^{(l-1)} "
            r"- \rho_{l} W^{(l)} \phi(h^{(l-1)}) - \rho_{l} b^{(l)}\big) \\ "
            r"&\quad \times \delta\big(y - W^{\mathrm{out}} \phi(h^{(L)}) - b^{\mathrm{out}}\big)",
            "constraints",
        ),
        r"with one factor for every neuron. The weights stand inside of Dirac functions, where "
        r"they cannot be averaged. The Fourier representation moves them into an exponent, "
        "F25~(7), (8),",
        equation(
            r"\delta(z) = \int_{-\infty}^{\infty} \frac{d\omega}{2\pi}\, e^{i \omega z} = "
            r"\int_{-i\infty}^{i\infty} \frac{d\tilde{z}}{2\pi i}\, e^{\tilde{z} z},"
            r"\qquad \tilde{z} = i \omega.",
            "fourier",
        ),
        r"Each constraint so brings a conjugate variable: $\tilde{h}_{i}^{(l)}$ for "
        r"$h_{i}^{(l)}$ and $\tilde{y}_{i}$ for $y_{i}$. One integral of this kind will be needed "
        r"again and again: with a term $\frac{1}{2} C \tilde{h}^{2}$ beside $\tilde{h} h$ it is no "
        "longer a Dirac function but a Gaussian of variance $C$,",
        equation(
            r"\int_{-i\infty}^{i\infty} \frac{d\tilde{h}}{2\pi i}\, "
            r"e^{\tilde{h} h + \frac{1}{2} C \tilde{h}^{2}} = \frac{1}{\sqrt{2 \pi C}}\, "
            r"e^{-h^{2}/(2 C)} = \mathcal{N}(h;\, 0, C).",
            "gaussian",
        ),
        r"(With $\tilde{h} = i \omega$ it is the inverse Fourier transform of "
        r"$e^{-C \omega^{2}/2}$.)",
    ]


def weight_average() -> list[str]:
    """The average over one weight, over one row, over all (F25 eqs. (10)-(15))."""
    variance = sym.WEIGHT**2 / sym.WIDTH
    density = sp.exp(-(_w**2) / (2 * variance)) / sp.sqrt(2 * sp.pi * variance)
    single = sp.simplify(sp.integrate(density * sp.exp(-_w * _z), (_w, -sp.oo, sp.oo)))
    assert sp.simplify(single - sp.exp(variance * _z**2 / 2)) == 0
    square = -((_w + variance * _z) ** 2) / (2 * variance) + variance * _z**2 / 2
    assert sp.expand(square - (-(_w**2) / (2 * variance) - _w * _z)) == 0
    assert _row_average_is_gaussian()
    weight, bias, _ = ft.ResidualNetwork.layer(sym.parameters(ft.ResidualNetwork, "l"))
    readout = ft.ResidualNetwork.readout(sym.parameters(ft.ResidualNetwork, "l"))
    cases = (
        rf"a_{{l}} &= {latex(weight)}, & c_{{l}} &= {latex(bias)}, && 1 \leq l \leq L, \notag",
        rf"a_{{L+1}} &= {latex(readout.weight)}, & c_{{L+1}} &= {latex(readout.bias)}.",
    )
    return [
        section("The average over the weights", "weights"),
        r"In the exponent every weight and every bias stands linearly. Consider one weight $w = "
        r"W_{ij}^{(l)}$. It enters as $e^{-w z}$ with $z = \rho_{l} \tilde{h}_{i}^{(l)} "
        r"\phi(h_{j}^{(l-1)})$. Completing the square,",
        equation(
            rf"-{latex(_w**2 / (2 * variance))} - w z = "
            r"-\frac{N}{2 \sigma_{w}^{2}} \Big(w + \frac{\sigma_{w}^{2}}{N} z\Big)^{2} + "
            rf"{latex(variance * _z**2 / 2)},",
        ),
        "the integral over the shifted $w$ is one, and the average is (F25 (10))",
        equation(
            rf"\langle e^{{-w z}} \rangle_{{w \sim \mathcal{{N}}(0, \sigma_{{w}}^{{2}}/N)}} = "
            rf"{latex(single)}.",
            "weight",
        ),
        r"A neuron $i$ of layer $l$ reads one row of weights, $W_{i1}, \dots, W_{iN}$, and one "
        "bias. They are independent, so that the exponents add:",
        equation(
            r"\Big\langle e^{-\rho_{l} \tilde{h}_{i}^{(l)} \big(\sum_{j} W_{ij} \phi(h_{j}^{(l-1)})"
            r" + b_{i}\big)} \Big\rangle = \exp \Big( \frac{1}{2} \big[\tilde{h}_{i}^{(l)}"
            r"\big]^{2} \Big[ a_{l} \frac{1}{N} \sum_{j=1}^{N} \phi(h_{j}^{(l-1)})^{2} + c_{l} "
            r"\Big] \Big),",
            "row",
        ),
        "with, for the layers and likewise for the readout,",
        rows(*cases),
        r"Two things are to be seen in (\ref{eq:row}). The bracket is the same for all neurons "
        r"$i$ of the layer. And of the layer before, it contains no single neuron but one number, "
        r"the mean of $\phi^{2}$ over all of them. This number, times $a_{l}$ and with the bias, "
        "is the residual kernel, F25~(16)--(18),",
        rows(
            r"C^{(0)} &= \frac{\sigma_{w,\mathrm{in}}^{2}}{d_{\mathrm{in}}} x^{\mathsf{T}} x + "
            r"\sigma_{b,\mathrm{in}}^{2} = C^{(0)}_{\mathrm{data}}, \label{eq:data}",
            r"C^{(l)} &= a_{l} \frac{1}{N} \sum_{j=1}^{N} \phi(h_{j}^{(l-1)})^{2} + c_{l}, "
            r"\qquad l = 1, \dots, L + 1. \label{eq:kernel}",
        ),
        r"By (\ref{eq:gaussian}) its meaning is plain: given the signals of one layer, the "
        r"residuals $f_{i}^{(l)}$ of the next are independent Gaussians of variance $C^{(l)}$. The "
        r"prior is now an integral over $h$, $\tilde{h}$ and $\tilde{y}$ of $e^{\mathcal{S}}$ with "
        "(F25 (11)--(15))",
        equation(
            r"\mathcal{S} &= \sum_{l=0}^{L} \sum_{i=1}^{N} \Big( \tilde{h}_{i}^{(l)} \big[ "
            r"h_{i}^{(l)} - \gamma_{l} h_{i}^{(l-1)} \big] + \frac{1}{2} C^{(l)} \big[ "
            r"\tilde{h}_{i}^{(l)} \big]^{2} \Big) \\ &\quad + \tilde{y}^{\mathsf{T}} y + "
            r"\frac{1}{2} C^{(L+1)}\, \tilde{y}^{\mathsf{T}} \tilde{y}, \qquad \gamma_{0} = 0,",
            "joint",
        ),
        r"where $C^{(l)}$ is for now an abbreviation for (\ref{eq:kernel}). It couples all neurons "
        r"of a layer to all of the next, $[\tilde{h}_{i}^{(l)}]^{2} \phi(h_{j}^{(l-1)})^{2}$, at "
        r"least a quartic term: no Gaussian integral.",
    ]


def _row_average_is_gaussian() -> bool:
    """⟨exp −ρ h̃ (Σ_j w_j φ_j + b)⟩ = exp(½ h̃² C) for a row of three weights and a bias."""
    neurons = 3
    activities = sp.symbols(f"phi_1:{neurons + 1}", real=True)
    parameters = sym.parameters(ft.ResidualNetwork, "l")
    scale, weight, bias = (
        parameters[name] for name in ("branch_scale", "weight_variance", "bias_variance")
    )
    entries = [(activity, weight / neurons) for activity in activities] + [(sp.S.One, bias)]
    average = sp.S.One
    for activity, variance in entries:
        density = sp.exp(-(_w**2) / (2 * variance)) / sp.sqrt(2 * sp.pi * variance)
        factor = sp.exp(-_w * scale * _ht * activity)
        average *= sp.simplify(sp.integrate(density * factor, (_w, -sp.oo, sp.oo)))
    a, c, _ = ft.ResidualNetwork.layer(parameters)
    kernel = a * sp.Add(*[activity**2 for activity in activities]) / neurons + c
    return sp.expand(sp.expand_log(sp.log(average), force=True) - kernel * _ht**2 / 2) == 0
