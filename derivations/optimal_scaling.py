"""The optimal scaling of the residual branch, step by step.

Run it to write ``optimal_scaling.tex`` beside it, which pdflatex sets:

    python derivations/optimal_scaling.py

Every equation in the text is a SymPy result of the lines above it. Equation numbers are those of
F25 (K. Fischer, D. Dahmen, M. Helias, "Field theory for optimal signal propagation in ResNets",
arXiv:2305.07715); the deep limit and its corrections are not in the paper. What is said of a
printed equation is checked against its transcription in `fieldtheory.literature`.
"""

from __future__ import annotations

from pathlib import Path

import sympy as sp
from printed_equations import require
from typeset import article, equation, rows, section

import fieldtheory as ft
from fieldtheory.literature import f25_entropy
from fieldtheory.scaling import covariance_flow, deep_limit, maximum_entropy
from fieldtheory.scaling.deep_limit import END, START
from fieldtheory.scaling.maximum_entropy import VARIANCE
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import KERNEL, STEP, flow_rate, modified_flow
from fieldtheory.theory.typesetting.latex import latex

TARGET = Path(__file__).with_suffix(".tex")
TITLE = r"The optimal scaling of a residual branch"
ABSTRACT = r"""How strongly should a residual branch act for the output of a deep network to respond
most to its input? The response is a product over the layers which the scaling $\rho$ of the
branch makes grow until the activation saturates. We derive the estimate of F25~\cite{F25}, which
linearises the network up to saturation, and then the limit of infinite depth, in which layers
become a flow and the optimum is exact: a universal variance before the readout, reached with
$\rho^{*} \propto 1/\sqrt{L}$. The next order in $1/L$, covariances of two inputs, closed forms for
the error function and the relation to maximum entropy follow. Equation numbers of the paper are
written as F25~(67); where a printed equation does not hold, the text says so."""

_h = sp.Symbol("h", real=True)
_g = sp.Symbol("g", positive=True)
_LAMBDA = (_g * linearised.RANGE**2 / 4 + sym.BIAS**2) / (_g * linearised.INPUT + sym.BIAS**2)


def question() -> list[str]:
    """What is maximised: χ^out of F25 eqs. (1), (51)-(55) for γ = 1 and one ρ."""
    scale, rate = linearised.SCALE, flow_rate()
    (moment,) = rate.atoms(ft.GaussianAverage)
    slope = moment.diff(KERNEL)
    gain = scale**2 * sym.WEIGHT**2
    assert (KERNEL + scale**2 * rate).diff(KERNEL).expand() == (1 + gain * slope).expand()
    readout = ft.ResidualNetwork.readout(sym.parameters(ft.ResidualNetwork, 1)).weight
    return [
        section("The question", "question"),
        r"A residual network of $L$ layers with one scaling $\rho$ of its branches, F25~(1),",
        equation(
            r"h^{(l)} = h^{(l-1)} + \rho\, \big[ W^{(l)} \phi(h^{(l-1)}) + b^{(l)} \big], "
            r"\qquad l = 1, \dots, L,",
        ),
        r"has, if it is wide, Gaussian signals of variance $K^{(l)} = K^{(l-1)} + C^{(l)}$ with",
        rows(
            rf"C^{{(l)}} &= \rho^{{2}} F(K^{{(l-1)}}), \qquad F(K) = {latex(rate)},",
            rf"M(K) &= {latex(moment)}, \qquad M'(K) = {latex(slope)}",
        ),
        r"(see \texttt{resnet\_action.tex}). A small change of the variance of the input changes "
        r"that of layer $l$ by the factor $\chi^{(l)} = \partial K^{(l)} / \partial K^{(0)}$, and "
        "the output by",
        rows(
            rf"\chi^{{(l)}} &= \big[ 1 + {latex(gain)} M'(K^{{(l-1)}}) \big]\, \chi^{{(l-1)}}, "
            rf"\qquad "
            r"\chi^{(0)} = 1,",
            rf"\chi^{{\mathrm{{out}}}} &= {latex(readout)} M'(K^{{(L)}})\, \chi^{{(L)}}. "
            rf"\label{{eq:chi}}",
        ),
        r"All factors of $\chi^{(L)}$ grow with $\rho$; but so does $K^{(L)}$, and for a "
        r"saturating "
        r"$\phi$ the last factor, $M'(K^{(L)})$, falls. Somewhere between lies the optimum "
        r"$\rho^{*} = \mathrm{argmax}_{\rho}\, \chi^{\mathrm{out}}$. (F25~(50) has another "
        r"constant "
        r"in front, $\eta^{(0)} = N/d_{\mathrm{in}}$ instead of 1, on which $\rho^{*}$ does not "
        "depend.)",
    ]


def linearised_network() -> list[str]:
    """The recursion of a linear activation, F25 eqs. (62)-(66)."""
    require("(63)", holds=False, region="l = 1")
    found = linearised.linearised_rows(3)
    difference = sp.factor(found[3] - found[2])
    ratio = linearised.linearised_residual_kernel()
    assert sp.simplify(ratio.subs(linearised.LAYER, 1) - found[1]) == 0
    return [
        section("The linearised network", "linearised"),
        r"Small signals see $\phi(h) \approx \phi'(0)\,h$. With",
        equation(f"g = {latex((linearised.SLOPE * sym.WEIGHT) ** 2)}", "g"),
        "the saddle point of the action is then, with $C^{(0)} = K^{(0)}$ (F25 (62)),",
        rows(*(f"C^{{({l})}} &= {_with_g(found[l])}," for l in (1, 2, 3))),
        "and so on. From the second layer on, successive rows differ by (F25 (63))",
        equation(f"C^{{(3)}} - C^{{(2)}} = {_with_g(difference)}."),
        "Printed for every layer, this is not so for the first: the input $C^{(0)}$ lacks the "
        "bias of the other rows. Started at $C^{(1)}$, the recursion has the solution (F25 (64))",
        equation(f"C^{{(l)}} = {_with_g(ratio)},"),
        r"and the sum over the layers is $K^{(L)} = K^{(0)} + \sum_{l=1}^{L} C^{(l)}$ (F25 (65), "
        "(66)),",
        equation(f"K^{{(L)}} = {_with_g(linearised.linearised_kernel())}.", "linear"),
        "The response of the output grows with $\\rho$ without bound,",
        equation(
            rf"\frac{{\partial K^{{(L+1)}}}}{{\partial K^{{(0)}}}} = "
            rf"{_with_g(linearised.linearised_response())},"
        ),
        "so that only saturation can end the growth.",
    ]


def saturation_argument() -> list[str]:
    """K^(L) = (V/2)², F25 eqs. (67), (68), and the order that (68) neglects."""
    require("text after (68)", holds=True, region="L → ∞")
    exact, deep = (linearised.saturation_formula(large_depth=d).rhs for d in (False, True))
    return [
        section("Saturation", "saturation"),
        r"The signal fills the dynamic range $\mathcal{V}$ of the activation where "
        r"$K^{(L)} = (\mathcal{V}/2)^{2}$. Solving (\ref{eq:linear}) for $\rho$ gives F25~(67),",
        equation(
            rf"\rho^{{*}}_{{(67)}} = {_with_g(exact)}, \qquad \Lambda = {latex(_LAMBDA)}.",
            "saturation",
        ),
        "Its series for large $L$ is in odd powers of $L^{-1/2}$. The first term is F25~(68),",
        equation(rf"\rho^{{*}}_{{(68)}} = {_with_g(deep)},", "large"),
        "and the next one, which (68) neglects, is of order $L^{-3/2}$ (the paper states "
        "$L^{-1}$):",
        equation(
            rf"\rho^{{*}}_{{(67)}} - \rho^{{*}}_{{(68)}} = {_with_g(linearised.neglected_term())} "
            r"+ O(L^{-5/2})."
        ),
        r"The logarithm is why $\rho^{*} \sqrt{L}$ depends little on the variances: this is how "
        "F25 explains that one value serves many networks.",
    ]


def flow() -> list[str]:
    """Layers as Euler steps of dK/dt = F(K); the response along the flow."""
    F = sp.Function("F")
    end, time = sp.Function("K_T")(START), sp.Function("tau")
    elapsed = time(end) - time(START)
    # τ' = 1/F, and the elapsed time does not change with the start.
    solved = sp.solve(sp.diff(elapsed, START), sp.diff(end, START))[0]
    inverse = {
        sp.diff(time(END), END): 1 / F(END),
        sp.diff(time(START), START): 1 / F(START),
    }
    growth = solved.subs(end, END).doit().subs(inverse)
    assert growth == F(END) / F(START)
    (moment,) = flow_rate().atoms(ft.GaussianAverage)
    start = flow_rate().subs(KERNEL, START)
    printed = moment.diff(KERNEL) * flow_rate() / start
    assert sp.simplify(deep_limit.output_response() - printed) == 0
    integral = deep_limit.limit_scaling().rhs ** 2 * linearised.DEPTH
    assert isinstance(integral, sp.Integral) and integral.function == 1 / flow_rate()
    return [
        section("The deep limit", "deep"),
        r"A layer changes the variance by $\rho^{2} F(K)$. With $\rho^{2} = T/L$ this is one Euler "
        r"step of length $T/L$. At $L \to \infty$ and fixed $T$ the layers become a flow,",
        equation(
            r"\frac{dK}{dt} = F(K), \qquad T = \int_{K^{(0)}}^{K_{T}} \frac{dK}{F(K)}.", "flow"
        ),
        "The time $T$ is the same for all starts. Differentiating it by the start gives "
        r"$0 = \frac{1}{F(K_{T})} \frac{\partial K_{T}}{\partial K^{(0)}} - "
        r"\frac{1}{F(K^{(0)})}$, so that",
        equation(
            rf"\frac{{\partial K_{{T}}}}{{\partial K^{{(0)}}}} = {latex(growth.subs(END, KERNEL))}"
            r"\Big|_{K = K_{T}}."
        ),
        "With the readout, the response of the output as a function of the variance $K$ before it "
        "is",
        equation(
            r"\chi^{\mathrm{out}} = \sigma_{w,\mathrm{out}}^{2}\, "
            r"\frac{M'(K)\, F(K)}{F(K^{(0)})}."
        ),
        "The input enters through a constant factor alone. The variance before the readout with "
        "the largest response is therefore the same for all depths and inputs,",
        equation(
            r"K^{*}_{\mathrm{out}} = \underset{K}{\mathrm{argmax}}\; M'(K)\,F(K),", "universal"
        ),
        "and the optimal scaling is set by the time to reach it,",
        equation(
            r"\rho^{*} = \sqrt{\frac{T_{0}}{L}}, \qquad T_{0} = "
            r"\int_{K^{(0)}}^{K^{*}_{\mathrm{out}}}"
            r"\frac{dK}{F(K)}.",
            "limit",
        ),
        r"$K^{*}_{\mathrm{out}}$ depends on $\sigma_{b}^{2}/\sigma_{w}^{2}$ and $\phi$ alone: this "
        "is the universality, without linearising anything. Where $K^{(0)} \\geq "
        r"K^{*}_{\mathrm{out}}$ the response falls from $\rho = 0$ on and no branch helps.",
    ]


def linear_flow() -> list[str]:
    """F25 eq. (68) is the time of the linear part of the flow up to (V/2)²."""
    K = sp.Symbol("K", positive=True)
    rate = flow_rate().replace(sym.phi, lambda h: linearised.SLOPE * h).doit()
    end = (linearised.RANGE / 2) ** 2
    inverse = sp.integrate(1 / rate.subs(KERNEL, K), K)
    elapsed = inverse.subs(K, end) - inverse.subs(K, linearised.INPUT)
    printed = linearised.saturation_formula(large_depth=True).rhs ** 2 * linearised.DEPTH
    assert sp.simplify(sp.expand_log(sp.logcombine(elapsed - printed), force=True)) == 0
    return [
        r"F25~(68) is the same time with the linear part of $F$ and $(\mathcal{V}/2)^{2}$ in place "
        r"of $K^{*}_{\mathrm{out}}$:",
        equation(
            rf"\int_{{K^{{(0)}}}}^{{(\mathcal{{V}}/2)^{{2}}}} \frac{{dK}}{{{_with_g(rate)}}} = "
            rf"{_with_g(printed)} = L \big[ \rho^{{*}}_{{(68)}} \big]^{{2}}."
        ),
    ]


def next_order() -> list[str]:
    """The 1/L correction from the modified flow."""
    F = sp.Function("F")
    (modified,) = modified_flow([F(KERNEL)], [KERNEL])
    assert sp.expand(modified - F(KERNEL) + STEP / 2 * F(KERNEL) * F(KERNEL).diff(KERNEL)) == 0
    step = KERNEL + STEP * modified + STEP**2 / 2 * modified * sp.diff(modified, KERNEL)
    missed = sp.expand(step - KERNEL - STEP * F(KERNEL))
    assert sp.expand(missed.coeff(STEP, 1)) == sp.expand(missed.coeff(STEP, 2)) == 0
    found = deep_limit.correction()
    names = {
        **dict(zip(found.start, sp.symbols("F_{0} F'_{0}", positive=True), strict=True)),
        **dict(zip(found.end, sp.symbols("F_{*} F'_{*} F''_{*}", positive=True), strict=True)),
        found.T0: sp.Symbol("T_{0}"),
        found.curvature: sp.Symbol(r"\Phi''_{*}"),
    }
    shift = found.shift.subs(names)
    delay = sp.simplify(found.time - found.shift / found.end[0]).subs(names)
    first, second = found.T0.subs(names), sp.Symbol("T_{1}")
    eps = sp.Symbol("epsilon", positive=True)
    square = first * eps + second * eps**2
    relative = sp.series(sp.sqrt(sp.expand(square / (first * eps))), eps, 0, 2).removeO()
    relative = relative.subs(eps, 1 / linearised.DEPTH)
    return [
        section("The next order", "next"),
        "Euler steps follow the flow to first order in their length $h$ only. One order better "
        "they follow the modified flow with the rate",
        equation(r"F(K) - \frac{h}{2} F(K) F'(K),"),
        r"whose Taylor series ends after the first two terms, $K + h F(K) + O(h^{3})$. Stars stand "
        r"for values at $K^{*}_{\mathrm{out}}$, zeros for those at $K^{(0)}$; "
        r"$\Phi = \ln (M' F)$. The maximum of the response along the modified flow shifts by "
        r"$\delta / L$,",
        equation(rf"\delta = {latex(shift)},"),
        "and the time to reach it by $T_{1} / L$,",
        equation(rf"T_{{1}} = \frac{{\delta}}{{F_{{*}}}} + {latex(delay)},"),
        "so that",
        equation(
            rf"\rho^{{*}} = \sqrt{{\frac{{T_{{0}}}}{{L}}}} \left[ {latex(relative)} "
            r"+ O(L^{-2}) \right]."
        ),
    ]


def covariance() -> list[str]:
    """The flow of two inputs, the response of their covariance and its 1/L correction."""
    rates = covariance_flow.flow_rates()
    state = (covariance_flow.P, covariance_flow.Q, covariance_flow.R)
    slopes = sp.symbols("P_{p} P_{q} P_{r}")
    product = rates[3] / sym.WEIGHT**2
    short = {
        **{sp.diff(product, y): name for y, name in zip(state, slopes, strict=True)},
        product: sp.Symbol("P"),
        rates[2]: sp.Symbol("G"),
        rates[0]: sp.Symbol("F(p)"),
        rates[1]: sp.Symbol("F(q)"),
    }
    condition = sp.expand(covariance_flow.response(rates).slope * product)
    condition = sp.collect(condition, list(short)[:3]).subs(short)
    assert not condition.has(ft.GaussianAverage)

    def short_measure(entry: sp.Expr) -> str:
        matrix = latex(sp.Matrix(2, 2, [state[0], state[2], state[2], state[1]]))
        return latex(entry).replace(rf"\mathcal{{N}}\left(0, {matrix}\right)", r"\mathcal{N}_{2}")

    T, eps = sp.symbols("T epsilon")
    logarithm, change = sp.Function("X")(T), sp.Function("B")(T)
    slope = sp.diff(logarithm + eps * T * change, T)
    delay = -sp.diff(slope, eps) / sp.diff(logarithm, T, 2)
    return [
        section("Covariances", "covariances"),
        r"For two inputs $\alpha$ and $\beta$ with the variances $p$, $q$ and the covariance $r$, "
        "averages run over",
        equation(
            r"(x, y) \sim \mathcal{N}_{2} = \mathcal{N} \bigg( 0, \begin{pmatrix} p & r \\ r & q "
            r"\end{pmatrix} \bigg),"
        ),
        "and the flow is",
        rows(
            *(
                rf"\frac{{d{name}}}{{dt}} &= {short_measure(entry)},"
                for name, entry in zip("pqr", rates, strict=False)
            )
        ),
        "The response of the covariance to its own start grows at the rate",
        equation(
            rf"\frac{{d}}{{dt}} \ln \frac{{\partial r}}{{\partial r^{{(0)}}}} = "
            rf"{short_measure(rates[3])}."
        ),
        r"Write $G$ for the rate of $r$, $P = \langle \phi'(x)\,\phi'(y) \rangle$ and indices for "
        "its derivatives, such as",
        equation(rf"P_{{r}} = {short_measure(sp.diff(product, covariance_flow.R))}."),
        r"With the readout, $\chi^{\mathrm{out}} \propto P \exp \int_{0}^{T} \sigma_{w}^{2} P\, "
        r"dt$, which is largest where",
        equation(f"{latex(condition)} = 0."),
        "This is a condition on three fields together, met at a point of the trajectory: "
        "covariances have no universal final state. The second derivative of $\\phi$, which makes "
        r"$M' = \langle \phi'^{2} + \phi \phi'' \rangle$ fall early, is missing in $P$: this is "
        r"why "
        "covariances want a larger $\\rho$.",
        r"Along the modified flow of $p$, $q$, $r$ and $\partial r / \partial r^{(0)}$ the "
        r"logarithm $X = \ln \chi^{\mathrm{out}}$ changes by $(T/L)\, B(T)$, so that",
        equation(rf"T_{{1}} = {latex(delay)} \Big|_{{T = T_{{0}}}}."),
    ]


def error_function() -> list[str]:
    """The closed forms for φ = erf; the bias up to which there is an optimum."""
    ratio = sp.Symbol("ratio")
    F = flow_rate().replace(sym.phi, sp.erf).doit()
    F = sp.expand(F.subs(sym.BIAS**2, ratio * sym.WEIGHT**2) / sym.WEIGHT**2)
    M = F.subs(ratio, 0)
    gain, curvature = (sp.simplify(sp.diff(M, KERNEL, n)) for n in (1, 2))
    (solution,) = sp.solve(sp.diff(gain * F, KERNEL), ratio)
    bias = sp.factor(sp.simplify(solution + M)) - M
    threshold = sp.limit(bias, KERNEL, 0)
    quarter = sp.simplify(bias.subs(KERNEL, sp.Rational(1, 4)))
    unbiased = sp.nsolve(bias, KERNEL, 0.3, prec=20)
    return [
        section("The error function", "erf"),
        r"For $\phi = \mathrm{erf}$, with $\phi'(0) = 2/\sqrt{\pi}$ in (\ref{eq:g}),",
        rows(
            rf"M(K) &= {latex(M)},",
            rf"M'(K) &= {latex(gain)},",
            rf"M''(K) &= {latex(sp.factor(curvature))}.",
        ),
        r"The condition $M'' F + M' F' = 0$ is linear in the bias: the final variance $K$ is "
        "optimal for",
        equation(rf"\frac{{\sigma_{{b}}^{{2}}}}{{\sigma_{{w}}^{{2}}}} = {latex(bias)}."),
        rf"This falls from ${latex(threshold)}$ at $K = 0$ to zero at "
        rf"$K = {latex(unbiased.n(4))}$. From $\sigma_{{b}}^{{2}}/\sigma_{{w}}^{{2}} = "
        rf"{latex(threshold)}$ on, the response is largest at $\rho = 0$ for every input. The "
        r"value $K^{*}_{\mathrm{out}} = 1/4$ of the saturation argument with $\mathcal{V} = 1$ "
        "belongs to",
        equation(
            rf"\frac{{\sigma_{{b}}^{{2}}}}{{\sigma_{{w}}^{{2}}}} = {latex(quarter)} \approx "
            rf"{latex(quarter.n(3))}."
        ),
    ]


def entropy() -> list[str]:
    """Maximum entropy, F25 eqs. (140)-(142), and both readings of the last."""
    for number, region in (("(142)", "every σ²"), ("(140), second line", "φ = erf")):
        require(number, holds=False, region=region)
    divergence = maximum_entropy.divergence_formula("erf")
    density = sp.diff(sp.erf(_h), _h) / 2
    gaussian = sp.exp(-(_h**2) / (2 * VARIANCE)) / sp.sqrt(2 * sp.pi * VARIANCE)
    logarithm = sp.expand_log(sp.log(density / gaussian), force=True)
    integral = sp.integrate(sp.expand(density * logarithm), (_h, -sp.oo, sp.oo))
    assert sp.simplify(sp.expand_log(integral - divergence, force=True)) == 0
    slope = sp.expand(sp.diff(divergence, VARIANCE))
    (best,) = sp.solve(slope, VARIANCE)
    assert best == maximum_entropy.variance_formula("erf")
    printed = f25_entropy.SLOPE
    (claimed,) = sp.solve(printed, VARIANCE)
    at_best, at_claimed = (
        sp.expand_log(divergence.subs(VARIANCE, value), force=True) for value in (best, claimed)
    )
    deviation = sp.Symbol(r"\sigma", positive=True)

    def shown(expression: sp.Expr) -> str:
        return latex(expression.subs(VARIANCE, deviation**2))

    return [
        section("Maximum entropy", "entropy"),
        r"How far is $\phi(h)$, $h \sim \mathcal{N}(0, \sigma^{2})$, from a uniform variable? "
        r"It would be uniform if $h$ had the density $q$; the divergence of F25~(140) is",
        equation(
            r"D_{\mathrm{KL}} = \int dh\, q(h) \ln \frac{q(h)}{\mathcal{N}(h;\,0, \sigma^{2})}, "
            r"\qquad q(h) = \frac{\phi'(h)}{\phi(\infty) - \phi(-\infty)}."
        ),
        r"(The second line of (140) lacks a square.) For erf the density is Gaussian,",
        equation(f"q(h) = {latex(density)},"),
        "and the integral is F25~(141),",
        equation(rf"D_{{\mathrm{{KL}}}} = {shown(divergence)}."),
        "Its derivative",
        equation(
            rf"\frac{{\partial D_{{\mathrm{{KL}}}}}}{{\partial \sigma^{{2}}}} = {shown(slope)}"
        ),
        rf"vanishes at $\sigma^{{2}} = {latex(best)}$, where $D_{{\mathrm{{KL}}}} = "
        rf"{latex(at_best)}$: $\mathrm{{erf}}(h)$ is then exactly uniform. It is a minimum, not a "
        "maximum as the text before (142) has it. The derivative printed in F25~(142),",
        equation(f"{shown(printed)},"),
        rf"vanishes at $\sigma^{{2}} = {latex(claimed)}$, where that of (141) is "
        rf"${latex(slope.subs(VARIANCE, claimed))}$ and",
        equation(rf"D_{{\mathrm{{KL}}}} = {latex(at_claimed)} \approx {latex(at_claimed.n(4))}."),
        rf"So $\sigma^{{2}} = {latex(claimed)}$ is the condition $\mathcal{{V}} = 1$ of the "
        "saturation argument and not that of maximum entropy; it lies close to "
        r"$K^{*}_{\mathrm{out}}$. For $\tanh$ the divergence is smallest at $\sigma^{2} = "
        rf"{latex(maximum_entropy.variance_formula('tanh'))}$.",
    ]


def _with_g(expression: sp.Expr) -> str:
    """With g = φ'(0)² σ²_w and Λ."""
    short = expression.subs(linearised.SLOPE, sp.sqrt(_g) / sym.WEIGHT)
    return latex(sp.powsimp(short).xreplace({_LAMBDA: sp.Symbol("Lambda", positive=True)}))


def document() -> str:
    """The whole text as a LaTeX document."""
    parts = [
        question(),
        linearised_network(),
        saturation_argument(),
        [*flow(), *linear_flow()],
        next_order(),
        covariance(),
        error_function(),
        entropy(),
    ]
    return article(TITLE, ABSTRACT, parts, ["F25"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
