"""The optimal scaling of the residual branch, step by step.

Run it to write ``optimal_scaling.tex`` beside it:

    python derivations/optimal_scaling.py

Every equation in the text is a SymPy result of the lines above it. Equation numbers are those of
F25 (Fischer, Dahmen, Helias, "Field theory for optimal signal propagation in ResNets"); the deep
limit and its corrections are not in the paper.
"""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import fieldtheory as ft
from fieldtheory.literature import f25_entropy
from fieldtheory.scaling import deep_covariance, deep_limit, maximum_entropy
from fieldtheory.scaling.deep_limit import END, KERNEL, START, STEP
from fieldtheory.scaling.maximum_entropy import VARIANCE
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.latex import latex

TARGET = Path(__file__).with_suffix(".tex")
_h = sp.Symbol("h", real=True)


def linearised_network() -> list[str]:
    """The recursion of a linear activation, F25 eqs. (62)-(66)."""
    rows = linearised.linearised_rows(3)
    difference = sp.factor(rows[3] - rows[2])
    ratio = linearised.linearised_residual_kernel()
    assert sp.simplify(ratio.subs(linearised.LAYER, 1) - rows[1]) == 0
    return [
        r"\section{The linearised network}",
        r"Small signals see $\phi(h) \approx \phi'(0)\,h$. The saddle point of the action for "
        r"$\gamma = 1$ and one $\rho$ is then, with $K^{(0)} = C^{(0)}$ (62),",
        *(_display(f"C^{{({l})}} = {latex(rows[l])}") for l in (1, 2, 3)),
        "From the second layer on, successive rows differ by (63)",
        _display(f"C^{{(3)}} - C^{{(2)}} = {latex(difference)}"),
        "Printed for every layer, this is not so for the first: the input $C^{(0)}$ lacks the "
        "bias of the other rows. Started at $C^{(1)}$, the recursion has the solution (64)",
        _display(f"C^{{(l)}} = {latex(ratio)}"),
        r"and the sum over the layers is $K^{(L)} = K^{(0)} + \sum_{l=1}^{L} C^{(l)}$ (65), (66),",
        _display(f"K^{{(L)}} = {latex(linearised.linearised_kernel())}"),
        "The response of the output grows with $\\rho$ without bound,",
        _display(
            rf"\frac{{\partial K^{{(L+1)}}}}{{\partial K^{{(0)}}}} = "
            rf"{latex(linearised.linearised_response())}"
        ),
        "so that only saturation can end the growth.",
    ]


def saturation_argument() -> list[str]:
    """K^(L) = (V/2)², F25 eqs. (67), (68), and the order that (68) neglects."""
    return [
        r"\section{Saturation}",
        r"The signal fills the dynamic range $\mathcal{V}$ of the activation where "
        r"$K^{(L)} = (\mathcal{V}/2)^{2}$. Solved for $\rho$ (67):",
        _display(latex(linearised.saturation_formula())),
        "Its series for large $L$ is in odd powers of $L^{-1/2}$. The first term is (68),",
        _display(latex(linearised.saturation_formula(large_depth=True))),
        "and the next one, which (68) neglects, is of order $L^{-3/2}$ (the paper states "
        "$L^{-1}$):",
        _display(
            rf"\rho^{{*}}_{{(67)}} - \rho^{{*}}_{{(68)}} = {latex(linearised.neglected_term())} "
            r"+ O(L^{-5/2})"
        ),
    ]


def flow() -> list[str]:
    """Layers as Euler steps of dK/dt = F(K); the response along the flow."""
    F, rate = sp.Function("F"), deep_limit.flow_rate()
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
    return [
        r"\section{The deep limit}",
        r"A layer changes the variance by $\rho^{2} F(K)$ with",
        _display(f"F(K) = {latex(rate)}"),
        r"For $\rho^{2} = T/L$ it is one Euler step of length $T/L$. At $L \to \infty$ and fixed "
        "$T$ the layers become a flow,",
        _display(r"\frac{dK}{dt} = F(K), \qquad T = \int_{K^{(0)}}^{K_{T}} \frac{dK}{F(K)}"),
        "Its derivative by the start follows from the time, which is the same for all starts:",
        _display(
            rf"\frac{{\partial K_{{T}}}}{{\partial K^{{(0)}}}} = {latex(growth.subs(END, KERNEL))}"
            r"\Big|_{K = K_{T}}"
        ),
        r"With the readout, $\chi^{\mathrm{out}} / \sigma_{w,\mathrm{out}}^{2}$ at the final "
        "variance $K$ is",
        _display(latex(deep_limit.output_response())),
        "The input enters through a constant factor alone. The variance before the readout with "
        "the largest response is therefore the same for all depths and inputs,",
        _display(r"K^{*}_{\mathrm{out}} = \underset{K}{\mathrm{argmax}}\; M'(K)\,F(K)"),
        r"with $M(K) = \langle \phi^{2} \rangle$, and the optimal scaling is set by the time to "
        "reach it,",
        _display(latex(deep_limit.limit_scaling())),
        r"Where $K^{(0)} \geq K^{*}_{\mathrm{out}}$ the response falls from $\rho = 0$ on.",
    ]


def linear_flow() -> list[str]:
    """F25 eq. (68) is the time of the linear part of the flow up to (V/2)²."""
    K = sp.Symbol("K", positive=True)
    rate = deep_limit.flow_rate().replace(sym.phi, lambda h: linearised.SLOPE * h).doit()
    end = (linearised.RANGE / 2) ** 2
    inverse = sp.integrate(1 / rate.subs(KERNEL, K), K)
    elapsed = inverse.subs(K, end) - inverse.subs(K, linearised.INPUT)
    printed = linearised.saturation_formula(large_depth=True).rhs ** 2 * linearised.DEPTH
    assert sp.simplify(sp.expand_log(sp.logcombine(elapsed - printed), force=True)) == 0
    return [
        "F25 (68) is the same integral with the linear part of $F$ and "
        r"$(\mathcal{V}/2)^{2}$ in place of $K^{*}_{\mathrm{out}}$:",
        _display(
            rf"\int_{{K^{{(0)}}}}^{{(\mathcal{{V}}/2)^{{2}}}} \frac{{dK}}{{{latex(rate)}}} = "
            rf"{latex(printed)}"
        ),
    ]


def next_order() -> list[str]:
    """The 1/L correction from the modified flow."""
    F = sp.Function("F")
    (modified,) = deep_limit.modified_flow([F(KERNEL)], [KERNEL])
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
        r"\section{The next order}",
        "Euler steps follow the flow to first order in their length $h$ only. One order better "
        "they follow the modified flow with the rate",
        _display(latex(modified)),
        "whose Taylor series ends after the first two terms, $K + h F(K) + O(h^{3})$. Stars stand "
        r"for values at $K^{*}_{\mathrm{out}}$, zeros for those at $K^{(0)}$; "
        r"$\Phi = \ln (M' F)$ and $T_{0}$ is the time above. The maximum of the response along "
        r"the modified flow shifts by $\delta / L$,",
        _display(rf"\delta = {latex(shift)}"),
        "and the time to reach it by $T_{1} / L$,",
        _display(rf"T_{{1}} = \frac{{\delta}}{{F_{{*}}}} + {latex(delay)}"),
        "so that",
        _display(
            rf"\rho^{{*}} = \sqrt{{\frac{{T_{{0}}}}{{L}}}} \left[ {latex(relative)} "
            r"+ O(L^{-2}) \right]"
        ),
    ]


def covariance() -> list[str]:
    """The flow of two inputs, the response of their covariance and its 1/L correction."""
    rates = deep_covariance.flow_rates()
    state = (deep_covariance.P, deep_covariance.Q, deep_covariance.R)
    slopes = sp.symbols("P_{p} P_{q} P_{r}")
    product = rates[3] / sym.WEIGHT**2
    short = {
        **{sp.diff(product, y): name for y, name in zip(state, slopes, strict=True)},
        product: sp.Symbol("P"),
        rates[2]: sp.Symbol("G"),
        rates[0]: sp.Symbol("F(p)"),
        rates[1]: sp.Symbol("F(q)"),
    }
    condition = sp.expand(deep_covariance.response(rates).slope * product)
    condition = sp.collect(condition, list(short)[:3]).subs(short)
    assert not condition.has(ft.GaussianAverage)
    T, eps = sp.symbols("T epsilon")
    logarithm, change = sp.Function("X")(T), sp.Function("B")(T)
    slope = sp.diff(logarithm + eps * T * change, T)
    delay = -sp.diff(slope, eps) / sp.diff(logarithm, T, 2)
    return [
        r"\section{Covariances}",
        "For two inputs with the variances $p$, $q$ and the covariance $r$ the flow is",
        *(
            _display(rf"\frac{{d{name}}}{{dt}} = {latex(entry)}")
            for name, entry in zip("pqr", rates, strict=False)
        ),
        "The response of the covariance to its own start grows at the rate",
        _display(
            rf"\frac{{d}}{{dt}} \ln \frac{{\partial r}}{{\partial r^{{(0)}}}} = {latex(rates[3])}"
        ),
        r"Write $G$ for the rate of $r$, $P = \langle \phi'(x)\,\phi'(y) \rangle$ and indices for "
        "its derivatives, such as",
        _display(f"P_{{r}} = {latex(sp.diff(product, deep_covariance.R))}"),
        r"With the readout, $\chi^{\mathrm{out}} \propto P \exp \int_{0}^{T} \sigma_{w}^{2} P\, "
        r"dt$, which is largest where",
        _display(f"{latex(condition)} = 0"),
        "This is a condition on three fields together, met at a point of the trajectory: "
        "covariances have no universal final state. The second derivative of $\\phi$, which makes "
        r"$M' = \langle \phi'^{2} + \phi \phi'' \rangle$ fall early, is missing in $P$.",
        r"Along the modified flow of $p$, $q$, $r$ and $\partial r / \partial r^{(0)}$ the "
        r"logarithm $X = \ln \chi^{\mathrm{out}}$ changes by $(T/L)\, B(T)$, so that",
        _display(rf"T_{{1}} = {latex(delay)} \Big|_{{T = T_{{0}}}}"),
    ]


def error_function() -> list[str]:
    """The closed forms for φ = erf; the bias up to which there is an optimum."""
    ratio = sp.Symbol("ratio")
    F = deep_limit.flow_rate().replace(sym.phi, sp.erf).doit()
    F = sp.expand(F.subs(sym.BIAS**2, ratio * sym.WEIGHT**2) / sym.WEIGHT**2)
    M = F.subs(ratio, 0)
    gain, curvature = (sp.simplify(sp.diff(M, KERNEL, n)) for n in (1, 2))
    (solution,) = sp.solve(sp.diff(gain * F, KERNEL), ratio)
    bias = sp.factor(sp.simplify(solution + M)) - M
    threshold = sp.limit(bias, KERNEL, 0)
    quarter = sp.simplify(bias.subs(KERNEL, sp.Rational(1, 4)))
    unbiased = sp.nsolve(bias, KERNEL, 0.3, prec=20)
    return [
        r"\section{The error function}",
        r"For $\phi = \mathrm{erf}$, with $\phi'(0) = 2/\sqrt{\pi}$ in (67) and (68),",
        _display(f"M(K) = {latex(M)}"),
        _display(f"M'(K) = {latex(gain)}"),
        _display(f"M''(K) = {latex(curvature)}"),
        r"The condition $M'' F + M' F' = 0$ is linear in the bias: the final variance $K$ is "
        "optimal for",
        _display(rf"\frac{{\sigma_{{b}}^{{2}}}}{{\sigma_{{w}}^{{2}}}} = {latex(bias)}"),
        rf"This falls from ${latex(threshold)}$ at $K = 0$ to zero at "
        rf"$K = {latex(unbiased.n(4))}$. From $\sigma_{{b}}^{{2}}/\sigma_{{w}}^{{2}} = "
        rf"{latex(threshold)}$ on, the response is largest at $\rho = 0$ for every input. The "
        r"value $K^{*}_{\mathrm{out}} = 1/4$ of the saturation argument belongs to",
        _display(
            rf"\frac{{\sigma_{{b}}^{{2}}}}{{\sigma_{{w}}^{{2}}}} = {latex(quarter)} \approx "
            rf"{latex(quarter.n(3))}"
        ),
    ]


def entropy() -> list[str]:
    """Maximum entropy, F25 eqs. (140)-(142), and both readings of the last."""
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
        r"\section{Maximum entropy}",
        r"How far is $\phi(h)$, $h \sim \mathcal{N}(0, \sigma^{2})$, from a uniform variable? "
        r"With $q(h) = \phi'(h) / [\phi(\infty) - \phi(-\infty)]$, the density of $h$ that makes "
        r"$\phi(h)$ uniform, the divergence of (140) is",
        _display(
            r"D_{\mathrm{KL}} = \int dh\, q(h) \ln \frac{q(h)}{\mathcal{N}(h;\,0, \sigma^{2})}"
        ),
        r"For erf the density is Gaussian,",
        _display(f"q(h) = {latex(density)}"),
        "and the integral is (141),",
        _display(rf"D_{{\mathrm{{KL}}}} = {shown(divergence)}"),
        "Its derivative",
        _display(
            rf"\frac{{\partial D_{{\mathrm{{KL}}}}}}{{\partial \sigma^{{2}}}} = {shown(slope)}"
        ),
        rf"vanishes at $\sigma^{{2}} = {latex(best)}$, where $D_{{\mathrm{{KL}}}} = "
        rf"{latex(at_best)}$: $\mathrm{{erf}}(h)$ is then "
        "exactly uniform. The derivative printed in (142),",
        _display(shown(printed)),
        rf"vanishes at $\sigma^{{2}} = {latex(claimed)}$, where that of (141) is "
        rf"${latex(slope.subs(VARIANCE, claimed))}$ and",
        _display(rf"D_{{\mathrm{{KL}}}} = {latex(at_claimed)} \approx {latex(at_claimed.n(4))}"),
        rf"So $\sigma^{{2}} = {latex(claimed)}$ is the condition $\mathcal{{V}} = 1$ of the "
        "saturation argument and not that of maximum entropy; it lies close to "
        r"$K^{*}_{\mathrm{out}}$. For $\tanh$ the divergence is smallest at $\sigma^{2} = "
        rf"{latex(maximum_entropy.variance_formula('tanh'))}$.",
    ]


def document() -> str:
    """The whole text as a LaTeX document."""
    parts = [
        linearised_network(),
        saturation_argument(),
        flow(),
        linear_flow(),
        next_order(),
        covariance(),
        error_function(),
        entropy(),
    ]
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath, amssymb}",
        r"\usepackage[landscape, margin=1.5cm]{geometry}",
        r"\begin{document}",
        *(line for part in parts for line in part),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


def _display(formula: str) -> str:
    return f"\\[\n{formula}\n\\]"


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
