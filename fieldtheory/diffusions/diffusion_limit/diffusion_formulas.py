"""LaTeX of what is derived of a diffusion, with the definitions of what stands in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from fieldtheory.diffusions.diffusion_limit import small_increments as limit
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    GRAM,
    MEAN,
    ROOT,
    ClosedForm,
    MomentSystem,
    WideRates,
    explosion_times,
    means,
    second_moment,
)
from fieldtheory.diffusions.diffusion_limit.small_increments import (
    S_II,
    S_IJ,
    S_JJ,
    SLOPES,
    increments,
)
from fieldtheory.networks.activations import Activation, h
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layout import Equation, page

_PRIMES = ("'", "''", "'''", "^{(4)}")
_PRINTED = {
    slope: sp.Symbol(rf"\phi{primes}(0)", real=True)
    for slope, primes in zip(SLOPES, _PRIMES, strict=True)
}
_TIME = sp.Symbol("dt", positive=True)
_MEAN = r"\operatorname{E}[\Delta x^{(i)}_{o} \mid x]"
_COVARIANCE = r"\operatorname{Cov}[\Delta x^{(i)}_{o}, \Delta x^{(j)}_{p} \mid x]"


@dataclass(frozen=True)
class DiffusionNotation:
    """Setting of the formulas: the law, φ'(0) to φ''''(0), φ (None if undetermined) and ψ."""

    law: str
    slopes: tuple[sp.Expr, ...]
    activation: Activation | None
    input_activation: Activation

    @property
    def independent(self) -> bool:
        """Whether all parameters are independent."""
        return self.law == limit.LAWS[0]

    def printed(self, expression: sp.Expr) -> sp.Expr:
        """With φ's derivatives put in, in S_ij for independent parameters."""
        put = dict(zip(SLOPES, self.slopes, strict=True))
        expression = sp.expand(expression.subs(put)).xreplace(_PRINTED)
        if not self.independent:
            return expression
        short = {limit.MU_O: 0, limit.MU_P: 0, limit.V_OO: S_II, limit.V_PP: S_JJ}
        return expression.subs(short | {limit.V_OP: S_IJ})

    @property
    def same(self) -> str:
        """Condition printed behind covariances of neurons o and p."""
        return r"p = o,\ \text{else } 0" if self.independent else ""

    def features(self, expression: sp.Expr) -> sp.Expr:
        """ψ(x) as x where it is that."""
        if self.input_activation.expression == h:
            expression = expression.replace(limit.psi, lambda x: x)
        return expression.replace(sp.Indexed, _entry)

    @property
    def definitions(self) -> list[Equation]:
        """Of S_ij, or μ and V, and of φ and ψ."""
        if self.independent:
            gram = limit.noise_covariance(self.law, neurons=(limit.O, limit.O))
            own = [Equation("S_{ij}", self.features(gram))]
        else:
            own = [
                Equation(latex(limit.MU_O), self.features(limit.noise_mean(self.law))),
                Equation(latex(limit.V_OP), self.features(limit.noise_covariance(self.law))),
            ]
        return own + self.functions

    @property
    def functions(self) -> list[Equation]:
        """φ and ψ where they are known by more than a letter."""
        x = sp.Symbol("x", real=True)
        equations = []
        if self.activation is not None:
            equations.append(Equation(r"\phi(x)", self.activation.expression.subs(h, x)))
        if self.input_activation.expression != h:
            equations.append(Equation(r"\psi(x)", self.input_activation.expression.subs(h, x)))
        return equations


def _entry(base: sp.Expr, *indices: sp.Expr) -> sp.Symbol:
    """x^{(i)}_k for x^{(i)}[k]."""
    pairs = ["".join(map(str, indices[n : n + 2])) for n in range(0, len(indices), 2)]
    return sp.Symbol(f"{base}_{{{','.join(pairs)}}}", real=True)


def network_latex(notation: DiffusionNotation) -> str:
    """The network and the law of its parameters (PF eqs. (7), (10), (15))."""
    covariances = {
        "independent": (
            r"\frac{\sigma_{w}^{2}}{D}\, \delta_{op}\, \delta_{km}\, \Delta t",
            r"\sigma_{b}^{2}\, \delta_{op}\, \Delta t",
        ),
        "matrix normal": (
            r"\Sigma^{W_O}_{op}\, \Sigma^{W_I}_{km}\, \Delta t",
            r"\Sigma^{b}_{op}\, \Delta t",
        ),
        "full": (r"\Sigma^{W}_{ok,pm}\, \Delta t", r"\Sigma^{b}_{op}\, \Delta t"),
    }
    weights, biases = covariances[notation.law]
    features = "x_{l}" if notation.input_activation.expression == h else r"\psi(x_{l})"
    laws = [
        Equation(r"\operatorname{Cov}[W_{ok}, W_{pm}]", weights),
        Equation(r"\operatorname{Cov}[b_{o}, b_{p}]", biases),
    ]
    if not notation.independent:
        laws += [
            Equation(r"\langle W_{ok} \rangle", r"\mu^{W}_{ok}\, \Delta t"),
            Equation(r"\langle b_{o} \rangle", r"\mu^{b}_{o}\, \Delta t"),
        ]
    step = Equation("x_{l+1}", rf"x_{{l}} + \phi(W_{{l}} {features} + b_{{l}})")
    return page([[step, Equation(r"\Delta t", "T / L")], laws, notation.functions])


def _instantaneous(left: str, moment: str, *notes: str) -> Callable[[DiffusionNotation], str]:
    """The coefficient of Δt of a moment of the increments (PF eqs. (1), (2), (13), (14), (17))."""

    def page_of(notation: DiffusionNotation) -> str:
        value = notation.printed(getattr(limit.law_increments(), moment)[0])
        own = (notation.same,) if moment == "covariance" else ()
        note = ",\\ ".join(filter(None, (*notes, *own)))
        return page([[Equation(left, value, note)], notation.definitions])

    return page_of


def equation_latex(notation: DiffusionNotation) -> str:
    """The stochastic differential equation (PF eqs. (12), (14), (17))."""
    mean = limit.law_increments().mean[0]
    slope, drift = notation.printed(SLOPES[0]), notation.printed(mean)
    features = r"x^{(i)}_{k}" if notation.input_activation.expression == h else r"\psi(x^{(i)}_{k})"
    noise = sp.Symbol(r"dn^{(i)}_{o}", real=True)
    centred = "" if notation.independent else r" - \mu^{(i)}_{o} dt"
    variation = notation.printed(limit.V_OP)
    return page(
        [
            [
                Equation("dx^{(i)}_{o}", slope * noise + drift * _TIME),
                Equation(
                    "dn^{(i)}_{o}", rf"\sum_{{k=1}}^{{D}} dW_{{ok}} {features} + db_{{o}}{centred}"
                ),
                Equation(r"d[n^{(i)}_{o}, n^{(j)}_{p}]_{t} / dt", variation, notation.same),
            ],
            notation.definitions,
        ]
    )


def next_order_latex(notation: DiffusionNotation) -> str:
    """The coefficients of Δt², the error of finite depth."""
    moments = limit.law_increments()
    front = r"[\Delta t^{2}]\, "
    equations = [
        Equation(front + _MEAN, notation.printed(moments.mean[1])),
        Equation(front + _COVARIANCE, notation.printed(moments.covariance[1]), notation.same),
    ]
    if notation.independent:
        third = r"\langle \Delta x^{(i)}_{o} ; \Delta x^{(j)}_{o} ; \Delta x^{(k)}_{o} \rangle"
        value = sp.factor(notation.printed(increments().third_cumulant))
        equations.append(Equation(front + third, value))
    return page([equations, notation.definitions])


# By quantity, those that follow from φ, ψ and the law alone.
OF_LAYERS: dict[str, Callable[[DiffusionNotation], str]] = {
    "network": network_latex,
    "instantaneous_mean": _instantaneous(r"\mu_{x,o}(x^{(i)})", "mean"),
    "instantaneous_covariance": _instantaneous(r"\sigma^{2}_{x,op}(x)", "covariance", "j = i"),
    "diffusion": equation_latex,
    "quadratic_covariation": _instantaneous(r"d[x^{(i)}_{o}, x^{(j)}_{p}]_{t} / dt", "covariance"),
    "next_order": next_order_latex,
}
QUANTITIES = (*OF_LAYERS, "wide_limit", "closed_form", "exact_moments")


def wide_latex(notation: DiffusionNotation, rates: WideRates) -> str:
    """The rates for D → ∞."""
    put = dict(zip(SLOPES, notation.slopes, strict=True))
    equations = [
        Equation(f"d {left} / dt", rate.subs(put).xreplace(_PRINTED))
        for left, rate in zip(("m_{i}", "V_{ij}"), rates, strict=True)
    ]
    features = ("x^{(i)}", "x^{(j)}")
    if notation.input_activation.expression != h:
        features = (r"\psi(x^{(i)})", r"\psi(x^{(j)})")
    averages = [
        Equation("S_{ij}", second_moment(GRAM)),
        Equation(latex(GRAM), rf"\langle {features[0]} {features[1]} \rangle"),
    ]
    return page([equations, averages, notation.functions])


def closed_form_latex(notation: DiffusionNotation, solution: ClosedForm) -> str:
    """Mean, covariance and explosion time, case by case."""
    if not solution.where:
        solved = [Equation("m_{i}(t)", solution.mean), _primed("V_{ij}(t)", solution.covariance)]
        return page([solved, notation.functions])
    discriminant = r"\beta^{2} - 4 \alpha \gamma"
    signs = [f"{discriminant} {sign} 0" for sign in "<>="]
    growing = [signs[0], *(rf"{sign},\ \beta > 0" for sign in signs[1:])]
    blocks = [
        [Equation("m_{i}(t)", m, sign) for m, sign in zip(means(), signs, strict=True)],
        [_primed("V_{ii}(t)", solution.covariance.subs(MEAN, sp.Symbol("m_{i}(t)")))],
        [Equation("T^{*}", T, case) for T, case in zip(explosion_times(), growing, strict=True)],
        [_primed(latex(symbol), value) for symbol, value in solution.where.items()],
        [Equation(latex(ROOT), rf"\sqrt{{|{discriminant}|}}")],
    ]
    return page([*blocks, notation.functions])


def moments_latex(notation: DiffusionNotation, systems: tuple[MomentSystem, ...]) -> str:
    """The equations of the moments of each system, row by row."""

    def mean(moment: sp.Expr) -> sp.Expr:
        return sp.Symbol(rf"\langle {latex(moment)} \rangle") if moment != 1 else sp.S.One

    blocks = []
    for system in systems:
        moments = sp.Matrix([mean(moment) for moment in system.moments])
        rates = system.matrix * moments
        rows = [
            # With each moment once.
            (moments[n], sp.collect(sp.expand(rates[n]), list(moments), sp.factor))
            for n, moment in enumerate(system.moments)
            if moment != 1
        ]
        blocks.append([_primed(rf"d {latex(v)} / dt", sp.factor_terms(r)) for v, r in rows])
    return page([*blocks, notation.functions])


def _primed(left: str, right: sp.Expr) -> Equation:
    return Equation(left, right.xreplace(_PRINTED))
