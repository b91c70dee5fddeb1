r"""From the definition of a residual network to its propagators, step by step.

Run it to write ``resnet_action.tex`` beside it, which pdflatex sets:

    python derivations/resnet_action.py

The steps are those of F25 (K. Fischer, D. Dahmen, M. Helias, "Field theory for optimal signal
propagation in ResNets", arXiv:2305.07715), sections II.1 to II.4. What is calculated in the text
is calculated here: Gaussian integrals by SymPy, and all that follows from the action printed from
the expressions that the package derives. What is said of a printed equation is checked against its
transcription in `fieldtheory.literature`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sympy as sp
from typeset import article, equation, rows, section

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.literature import f25
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.generic import j, k, l, m, n
from fieldtheory.theory.latex import latex
from fieldtheory.theory.layer_quantities import LayerQuantity

DEPTH = 2
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

_h, _ht, _w, _z, _b = sp.symbols(r"h \tilde{h} w z b", real=True)
_C, _K = sp.symbols("C K", positive=True)


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


def auxiliary_fields() -> list[str]:
    """Kernels and their conjugates (F25 eqs. (16)-(20)) and the relative width ν_0."""
    _require_printed("(98), (99)", holds=False)
    return [
        section("Kernels as fields", "fields"),
        r"What couples the neurons is one number per layer. So we make it a variable of its own: "
        r"$C^{(l)}$ is integrated over, and a Dirac function enforces its definition, F25~(19). We "
        r"write the constraint (\ref{eq:kernel}) multiplied by $N$,",
        equation(
            r"&\delta \Big( \! -N C^{(l)} + a_{l} \sum_{j} \phi(h_{j}^{(l-1)})^{2} + N c_{l} \Big) "
            r"\\ &\quad = \int_{-i\infty}^{i\infty} \frac{d\tilde{C}^{(l)}}{2 \pi i} \exp \Big( "
            r"\! -N C^{(l)} \tilde{C}^{(l)} + \tilde{C}^{(l)} \sum_{j} \big[ a_{l} "
            r"\phi(h_{j}^{(l-1)})^{2} + c_{l} \big] \Big),",
            "auxiliary",
        ),
        r"so that the conjugate field $\tilde{C}^{(l)}$ stands with a sum over neurons. (The last "
        r"line of F25~(19) writes $N \phi_{i}^{2}$ for this sum; that comes true only after the "
        r"neurons have factorised.) The kernel of the input is a sum over $d_{\mathrm{in}}$ "
        r"components. Its constraint is multiplied by $d_{\mathrm{in}} = \nu_{0} N$, F25~(91),",
        equation(
            r"&\delta \big( \! -d_{\mathrm{in}} C^{(0)} + d_{\mathrm{in}} C^{(0)}_{\mathrm{data}} "
            r"\big) \\ &\quad = \int_{-i\infty}^{i\infty} \frac{d\tilde{C}^{(0)}}{2 \pi i} \exp N "
            r"\big( "
            r"\! -\nu_{0} C^{(0)} \tilde{C}^{(0)} + \nu_{0} C^{(0)}_{\mathrm{data}} "
            r"\tilde{C}^{(0)} \big).",
            "input",
        ),
        r"\paragraph{Relative widths.} Here and only here a width other than $N$ enters: "
        r"$\nu_{0} = d_{\mathrm{in}}/N$ stands with both terms of the input, with the field and "
        r"with its value. F25 writes $\nu_{l} C^{(l)} \tilde{C}^{(l)}$ with $\nu_{l} = 1$ for $l > "
        r"0$, and remarks that layers of different widths $N_{l}$ have $\nu_{l} = N_{l}/N$. A skip "
        r"connection adds $h^{(l-1)}$ to $h^{(l)}$, so that all layers are of one width. And were "
        r"they not, (\ref{eq:auxiliary}) would be multiplied by the number of neurons that its sum "
        r"runs over, and $\nu_{l}$ would stand with $a_{l} \phi^{2} + c_{l}$ as well: a kernel, "
        r"and a bias variance in it, is never divided by $\nu_{l}$.",
        r"\paragraph{Signs.} A Dirac function is even; F25~(91)--(93) print the constraints with "
        r"the opposite sign of $\tilde{C}$ than (94), which is ours.",
    ]


def factorisation() -> list[str]:
    """From N neurons to one (F25 eqs. (20)-(22)), and from h̃ to the covariance of h."""
    assert _conjugates_integrate_to_the_covariance()
    chain = ft.derive(DEPTH, branch_scale="per layer", skip_scale="per layer")
    last = chain.network_action.covariance[DEPTH, DEPTH]
    return [
        section("The neurons factorise", "factorise"),
        r"Now collect all that contains signals. At given fields $C$ and $\tilde{C}$ the exponent "
        r"is a sum over neurons, each term the same function of the signals of one neuron alone,",
        equation(
            r"\sum_{i=1}^{N} \bigg\{ & \sum_{l=0}^{L} \Big( \tilde{h}_{i}^{(l)} \big[ h_{i}^{(l)} "
            r"- \gamma_{l} h_{i}^{(l-1)} \big] + \frac{1}{2} C^{(l)} \big[ \tilde{h}_{i}^{(l)} "
            r"\big]^{2} \Big) \\ &+ \sum_{l=1}^{L+1} \tilde{C}^{(l)} \big[ a_{l} "
            r"\phi(h_{i}^{(l-1)})^{2} + c_{l} \big] \bigg\}.",
            "sum",
        ),
        r"The exponential of a sum is a product, and the integral over the signals of all neurons "
        r"is the $N$-th power of that over one: $(\cdots)^{N} = e^{N \ln (\cdots)}$. This is the "
        "step in which a network of many neurons becomes a theory of a few fields with a large "
        r"prefactor $N$. The integral over $\tilde{h}^{(0)}, \dots, \tilde{h}^{(L)}$ of the one "
        r"neuron is done with (\ref{eq:gaussian}). It leaves independent residuals $f^{(l)} = "
        r"h^{(l)} - \gamma_{l} h^{(l-1)} \sim \mathcal{N}(0, C^{(l)})$, as in F25~(27), (28), and "
        "the signals, being sums of them, are Gaussian as well,",
        equation(
            r"h^{(l)} = \sum_{m=0}^{l} A_{l m} f^{(m)}, \qquad "
            r"A_{l m} = \gamma_{m+1} \cdots \gamma_{l}, \quad A_{l l} = 1,",
            "skip",
        ),
        r"(F25, before (108), prints this sum from $k = 1$ and with $f^{(l)}$ for $f^{(k)}$), of "
        "variances and covariances",
        equation(
            rf"K^{{(l)}} = {latex(generic.kernel(l))}, \qquad "
            r"\langle h^{(k)} h^{(l)} \rangle = K^{(k, l)} = A_{l k} K^{(k)} "
            r"\quad \text{for } k \leq l,",
            "covariance",
        ),
        f"for instance ${latex(generic.K(DEPTH))} = {latex(last)}$. With $\\gamma_{{l}} = 1$ the "
        r"kernel $K^{(l)}$ is the sum of the residual kernels up to layer $l$.",
    ]


def _conjugates_integrate_to_the_covariance() -> bool:
    """∏_l N(h_l − γ_l h_{l−1}; 0, C_l) is the Gaussian of the covariance of the action."""
    theory = ft.derive(DEPTH, branch_scale="per layer", skip_scale="per layer")
    action, layers = theory.network_action, range(DEPTH + 1)
    h = sp.Matrix(action.variables)
    residuals = [h[i] - (sym.skip_scale(i) * h[i - 1] if i else 0) for i in layers]
    product = sp.Add(*[residuals[i] ** 2 / action.kernels[i] for i in layers])
    covariance = action.covariance
    form = (h.T * covariance.inv() * h)[0, 0]
    volume = sp.expand(covariance.det()) - sp.Mul(*action.kernels[: DEPTH + 1])
    return sp.simplify(form - product) == 0 and sp.expand(volume) == 0


def action() -> list[str]:
    """S(C, C̃), F25 eqs. (20)-(22)."""
    theory = ft.derive(1)
    fields = theory.network_action
    data, *layers = zip(fields.conjugates, fields.observables, strict=True)
    assert data[1] == sym.INPUT_WIDTH * sym.data_kernel()
    exponent = [latex(sym.INPUT_WIDTH) + latex(sym.data_kernel()) + latex(data[0])]
    exponent += [
        rf"\big[{_in_order(g, *sp.Add.make_args(g)[::-1])}\big]\, {latex(conjugate)}"
        for conjugate, g in layers
    ]
    average = GaussianAverage(
        sp.exp(sum(c * g for c, g in zip(fields.conjugates, fields.observables, strict=True))),
        fields.variables,
        fields.covariance,
    )
    squares = list(zip(fields.relative_widths, fields.kernels, fields.conjugates, strict=True))
    quadratic = sp.Add(*[nu * C * conjugate for nu, C, conjugate in squares])
    shown = " + ".join("".join(latex(f) for f in square if f != 1) for square in squares)
    assert theory.action == sym.WIDTH * sp.log(average) - sym.WIDTH * quadratic
    return [
        section("The action", "action"),
        r"Everything together, $p(y|x) = \int d\tilde{y}\, \langle e^{\tilde{y}^{\mathsf{T}} y + "
        r"\frac{1}{2} C^{(L+1)} \tilde{y}^{\mathsf{T}} \tilde{y}} \rangle_{C, \tilde{C}}$ (F25 "
        r"(20)): the outputs are Gaussians of variance $C^{(L+1)}$, a number that fluctuates from "
        r"network to network, with the other fields, by $e^{S(C, \tilde{C})}$, and (F25 (21), "
        "(22))",
        equation(
            r"S(C, \tilde{C}) &= -N \sum_{l=0}^{L+1} \nu_{l}\, C^{(l)} \tilde{C}^{(l)} + N \ln "
            r"\Big\langle \exp \sum_{l=0}^{L+1} \tilde{C}^{(l)} g_{l} \Big\rangle_{h \sim "
            r"\mathcal{N}(0, K[C])}, \\ g_{0} &= \nu_{0} C^{(0)}_{\mathrm{data}}, \qquad g_{l} = "
            r"a_{l}\, \phi(h^{(l-1)})^{2} + c_{l}, \qquad \nu_{l} = 1 \quad (l \geq 1).",
            "action",
        ),
        r"The fields enter twice: linearly with their conjugates, and through the covariance "
        r"$K[C]$ of the average. The sum starts at $l = 0$ as in F25~(98), not at 1 as in (21); "
        r"the "
        r"data terms of F25~(96) and (99) lack a factor $1/N$, and the first terms of the last "
        r"line "
        r"of (99) have one $N$ too many.",
        r"For one layer, $L = 1$, with $\gamma = 1$, the package derives from the observables of "
        r"the network $S = -N Q + N \ln \langle e^{E} \rangle$ with",
        rows(
            f"Q &= {shown}, \\notag",
            r"E &= " + r" \notag \\ &\quad + ".join(exponent) + r", \notag",
            rf"\langle h h^{{\mathsf{{T}}}} \rangle &= {latex(fields.covariance)}.",
        ),
    ]


def saddle_point() -> list[str]:
    """dS = 0, F25 eqs. (23)-(30)."""
    theory = ft.derive(DEPTH)
    assert theory.network_action.derivative(()) == 0
    assert set(theory.saddle_point.conjugates.values()) == {sp.S.Zero}
    average = generic.residual_kernel(l) - generic.Bias(l)
    kernel = _in_order(generic.residual_kernel(l), average, generic.Bias(l))
    return [
        section("Infinite width: the saddle point", "saddle"),
        r"$S$ is proportional to $N$, so that for $N \to \infty$ the integrals over the fields are "
        r"those at the stationary point of $S$, F25~(23), (24).",
        r"\paragraph{Stationary in $C$.} At $\tilde{C} = 0$ the average in (\ref{eq:action}) is "
        r"$\langle 1 \rangle = 1$ for every covariance, so $S(C, 0) = 0$ for all $C$. Hence "
        r"$\partial S / \partial C = 0$ at",
        equation(r"\tilde{C}^{(l)}_{*} = 0,", "conjugates"),
        r"F25~(26). It is the normalisation of the probability that does this, and it will be used "
        "once more below.",
        r"\paragraph{Stationary in $\tilde{C}$.} The logarithm generates cumulants; its first "
        r"derivative at $\tilde{C} = 0$ is $\langle g_{l} \rangle$. So $\nu_{l} C^{(l)} = \langle "
        r"g_{l} \rangle$, and $\nu_{0}$ cancels: $C_{*}^{(0)} = C^{(0)}_{\mathrm{data}}$ and",
        equation(f"C^{{(l)}}_{{*}} = {kernel}, \\qquad l = 1, \\dots, L + 1,", "nngp"),
        rf"with $K^{{(l)}} = {latex(generic.kernel(l))}$ (F25 (25), (29), (30), there for "
        r"$\gamma = 1$; F25~(109) prints $K^{(l)} = K^{(l-1)} + C^{(l-1)}$ for "
        r"$K^{(l)} = \gamma_{l}^{2} K^{(l-1)} + C^{(l)}$). These are the kernels of the network "
        "of infinite width, a Gaussian process: a recursion from layer to layer. Explicitly, for "
        rf"$L = {DEPTH}$, $\gamma = 1$ and one $\rho$,",
        rows(
            *(
                f"{latex(C)}_{{*}} &= {latex(value)}"
                for C, value in list(theory.saddle_point.kernels.items())[1:]
            )
        ),
    ]


def hessian() -> list[str]:
    """The second derivatives, F25 eqs. (37)-(42)."""
    for number in ("(39)", "(41)", "(42)"):
        _require_printed(number, holds=False)
    density = sp.exp(-(_h**2) / (2 * _K)) / sp.sqrt(2 * sp.pi * _K)
    assert sp.simplify(density.diff(_K) - density.diff(_h, 2) / 2) == 0
    moment = GaussianAverage(sym.phi(_h) ** 2, _h, _K)
    mixed = _short(generic.mixed_block(k, l), k - 1)
    later = mixed.xreplace({generic.Earlier(l, k): sp.S.One, sp.KroneckerDelta(k, l): sp.S.Zero})
    theory = ft.derive(DEPTH)
    names = _names(theory)
    S21 = theory.hessian.S21.applyfunc(lambda entry: entry.xreplace(names) / sym.WIDTH)
    source = generic.source_block(k, l) / sym.WIDTH
    return [
        section("Finite width: the second derivatives", "hessian"),
        r"To lowest order in $1/N$ the fields fluctuate like Gaussians about the saddle point, "
        r"with "
        r"the second derivatives of $S$ there, F25~(37): $S_{11}$ by two kernels, $S_{22}$ by two "
        r"conjugates, and $S_{21} = S_{12}^{\mathsf{T}}$, with rows for the conjugates and columns "
        r"for the kernels. Two rules give them all.",
        r"\paragraph{Normalisation.} $S(C, 0) = 0$ for all $C$, therefore",
        equation(r"S_{11} = 0.", "S11"),
        r"F25~(38) writes it as a correlator of $\tilde{h}$, which vanishes.",
        r"\paragraph{Price's theorem \cite{Price}.} The kernels enter the average through its "
        r"covariance. A Gaussian density obeys $\partial_{K} \mathcal{N} = \frac{1}{2} "
        r"\partial_{h}^{2} \mathcal{N}$ (the equation of heat conduction). Integrating by parts "
        r"twice moves the derivatives to the integrand,",
        equation(
            rf"\frac{{\partial}}{{\partial K}} {latex(moment)} = {latex(moment.diff(_K))}.",
            "price",
        ),
        r"The factor $\frac{1}{2} \partial_{h}^{2} \phi^{2} = \phi'^{2} + \phi \phi''$ has no 2 in "
        r"it. F25~(42) misses the $\frac{1}{2}$ of Price's theorem, which its (137) has; F25~(116) "
        r"is off by the same factor for a variance. We write",
        equation(
            rf"M'_{{l}} = {latex(generic.susceptibility(l))}.",
            "slope",
        ),
        r"\paragraph{One kernel, one conjugate.} The derivative of $\langle g_{k} \rangle$ by "
        r"$C^{(l)}$ goes through $K^{(k-1)}$, which contains $C^{(l)}$ if $l < k$, with the weight "
        r"$A_{k-1, l}^{2}$:",
        rows(
            rf"S_{{21}}^{{k l}} &= {latex(later)}, \qquad l < k, \label{{eq:S21}}",
            r"S_{21}^{k k} &= -N \nu_{k}, \qquad S_{21}^{k l} = 0 \quad (l > k).",
        ),
        r"In F25~(41) the readout row, $k = L + 1$, has $\sigma_{w}^{2}$ where "
        r"$\sigma_{w,\mathrm{out}}^{2}$ is meant; likewise in (39), (49), (113), (115) and (126). "
        rf"For $L = {DEPTH}$, $\gamma = 1$ and one $\rho$,",
        equation(rf"S_{{21}} = N {_spread(latex(S21))}.", "S21matrix"),
        "A lower triangular matrix: a layer acts on those behind it.",
        r"\paragraph{Two conjugates.} The logarithm gives the connected correlator,",
        equation(rf"S_{{22}}^{{k l}} = N {latex(source)}, \qquad k, l \geq 1,", "S22"),
        r"with $\langle A \,;\, B \rangle = \langle A B \rangle - \langle A \rangle \langle B "
        r"\rangle$ over the signals of both layers jointly, F25~(39). Row and column of the input "
        r"vanish, since $g_{0}$ does not "
        "fluctuate. For a feed-forward network the signals of different layers are independent and "
        r"$S_{22}$ is diagonal. Skip connections correlate them: this is where a residual network "
        "differs.",
    ]


def propagators() -> list[str]:
    """G = −(S^(2))^{-1}, F25 eqs. (45)-(49)."""
    _require_printed("(49)", holds=False)
    theory = ft.derive(DEPTH)
    G12 = theory.propagator.G12
    product = G12 * theory.hessian.S21 + sp.eye(DEPTH + 2)
    assert product.applyfunc(sp.expand).is_zero_matrix, "G12 is minus the inverse of S21"
    names = _names(theory)
    growths = {
        sp.S.One + theory.network_action.observables[i].coeff(sym.phi(sym.signal(i - 1)) ** 2)
        * names[_slope_of(theory, i - 1)]: sp.Symbol(f"r_{{{i}}}")
        for i in range(1, DEPTH + 1)
    }  # fmt: skip
    widths = sp.diag(1 / sym.INPUT_WIDTH, *[1] * (DEPTH + 1))
    shown = (sym.WIDTH * G12 * widths.inv()).applyfunc(
        lambda entry: entry.xreplace(names).xreplace(growths)
    )
    assert not shown.has(sym.INPUT_WIDTH, GaussianAverage)
    growth = _short(generic.growth(j), j - 1)
    shown_growth = _in_order(growth, generic.SkipScale(j) ** 2, generic.Weight(j) * _slope(j - 1))
    recursion = _short(generic.response_recursion(l, m), l - 1)
    history = sp.Sum(generic.A(l - 1, k) ** 2 * generic.G12(k, m), (k, m, l - 1))
    gain, source = generic.Weight(l) * _slope(l - 1), sp.KroneckerDelta(l, m) / sym.WIDTH
    assert recursion == source + gain * history
    assert _short(generic.response_product(l, m), l - 1, j - 1) == gain / (
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
            rf"G_{{12}} = \frac{{1}}{{N}} {_spread(latex(shown))}\, D,",
            "G12",
        ),
        rf"with $D = \mathrm{{diag}}(1/{latex(sym.INPUT_WIDTH)}, 1, 1, 1)$ for the width of the "
        "input.",
    ]


def response() -> list[str]:
    """η, χ and χ^out, their meaning, and what ν_0 does to them (F25 eqs. (31), (50)-(61))."""
    _require_printed("(57)", holds=False)
    assert _response_is_the_derivative_of_the_saddle_point()
    chi, readout = (
        r"\chi^{{({})}}",
        ft.ResidualNetwork.readout(sym.parameters(ft.ResidualNetwork, "l")),
    )
    growth = _short(generic.growth(l), l - 1)
    growth = _in_order(growth, generic.SkipScale(l) ** 2, generic.Weight(l) * _slope(l - 1))
    last = latex(readout.weight * _slope(sym.DEPTH))
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
    _require_printed("text after (133)", holds=False)
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


class WeightedSlope(LayerQuantity):
    """M'_l, which stands behind the weight of its layer."""

    template = "M'_{{{0}}}"
    is_positive = True


def _slope(layer: sp.Expr | int) -> sp.Expr:
    return WeightedSlope(layer)


def _in_order(expr: sp.Expr, *terms: sp.Expr) -> str:
    """A sum with its terms in this order."""
    assert expr == sp.Add(*terms), expr
    return " + ".join(map(latex, terms))


def _spread(matrix: str) -> str:
    """A matrix with more space between its rows."""
    return matrix.replace(r"\\", r"\\[3pt]")


def _short(formula: sp.Expr, *layers: sp.Expr) -> sp.Expr:
    """A formula for symbolic layers with M'_l for its averages."""
    return formula.xreplace({generic.susceptibility(i): _slope(i) for i in layers})


def _slope_of(theory: ft.Derivation, layer: int) -> sp.Expr:
    (average,) = theory.hessian.S21[layer + 1, layer].atoms(GaussianAverage)
    return average


def _names(theory: ft.Derivation) -> dict[sp.Expr, sp.Expr]:
    """M'_l for the averages ⟨φ'² + φφ''⟩ of a derivation."""
    return {_slope_of(theory, i): _slope(i) for i in range(theory.depth + 1)}


def _require_printed(number: str, holds: bool) -> None:
    """Raise unless some transcription of a printed equation has this verdict."""
    verdicts = [c.verdict(20).holds for c in f25.CLAIMS if c.equation == number]
    assert holds in verdicts, f"the verdict on F25 {number} has changed"


def document() -> str:
    """The whole text as a LaTeX document."""
    parts = [
        network(),
        constraints(),
        weight_average(),
        auxiliary_fields(),
        factorisation(),
        action(),
        saddle_point(),
        hessian(),
        propagators(),
        response(),
        fluctuations(),
        several_inputs(),
        closed_forms(),
    ]
    return article(TITLE, ABSTRACT, parts, ["F25", "Price"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
