"""From the average over the weights to the action of the kernels, F25 eqs. (16)-(22)."""

from __future__ import annotations

import sympy as sp
from printed_equations import require
from typeset import equation, in_order, rows, section

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.generic import l
from fieldtheory.theory.latex import latex
from resnet import DEPTH


def auxiliary_fields() -> list[str]:
    """Kernels and their conjugates (F25 eqs. (16)-(20)) and the relative width ν_0."""
    require("(96), (99)", holds=False)
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
        rf"\big[{in_order(g, *sp.Add.make_args(g)[::-1])}\big]\, {latex(conjugate)}"
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
