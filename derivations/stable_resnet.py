"""Stable ResNets: schedules of the branches, tangent kernels and infinite depth, step by step.

Run it to write ``stable_resnet.tex`` beside it, which pdflatex sets:

    python derivations/stable_resnet.py

Every equation that is computed is a SymPy result of the lines above it. SR is S. Hayou et al.,
"Stable ResNet" (AISTATS 2021); what is said of its equations is checked against their
transcriptions in `fieldtheory.literature`.
"""

from __future__ import annotations

from pathlib import Path

import sympy as sp
from typeset import article, equation, rows, section

from fieldtheory.averages import GaussianAverage
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import displacement, modified_flow, step_rate, tangent_rate
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, X, Y
from fieldtheory.theory.tangent_kernel import family_tangent
from fieldtheory.theory.typesetting.latex import latex

TARGET = Path(__file__).with_suffix(".tex")
TITLE = "Stable residual networks at large and infinite depth"
ABSTRACT = r"""A residual network whose branches are scaled by $\lambda_{l,L}$ with bounded
$\sum_l \lambda_{l,L}^{2}$ keeps its kernels and gradients at every depth; SR~\cite{SR} calls it a
Stable ResNet. We derive the kernels of such networks from the recursion of the field theory with
$\gamma = 1$ and $\rho_l = \lambda_{l,L}$: how fast the correlations of the network without scaling
collapse, with the constant that SR leaves open; the tangent kernel from the gradients, for every
activation; what the collapse leaves of it; and the limits of infinite depth with their first
corrections. Numbers of equations of SR are written as SR~(5)."""

_theta = sp.Symbol(r"\vartheta", positive=True)
_D = sp.Symbol("D", positive=True)
_a = sp.Symbol("a", positive=True)
_l = sp.Symbol("l", positive=True)
_w = sp.Symbol(r"\sigma_w", positive=True)


def network() -> list[str]:
    """The network, its schedules and when they are stable."""
    K, bias, l = sp.Symbol("K"), sp.Symbol("b"), sp.Symbol("l", integer=True)
    Q = sp.Function("Q")
    solved = sp.rsolve(Q(l + 1) - (1 + _a) * Q(l) - bias, Q(l), {Q(0): K})
    assert sp.simplify(solved - ((1 + _a) ** l * (K + bias / _a) - bias / _a)) == 0
    return [
        section("The network", "network"),
        r"The layers of the network are SR~(2),",
        rows(
            r"h^{(0)} &= W^{(0)} x + b^{(0)},",
            r"h^{(l)} &= h^{(l-1)} + \lambda_{l,L} \left[ W^{(l)} \phi(h^{(l-1)}) + b^{(l)} "
            r"\right], \qquad l = 1, \dots, L,",
        ),
        r"with $W^{(l)}_{ij} \sim \mathcal{N}(0, \sigma_w^{2}/N)$ and $b^{(l)}_i \sim \mathcal{N}"
        r"(0, \sigma_b^{2})$: the residual networks of the field theory with $\gamma_l = 1$ and "
        r"$\rho_l = \lambda_{l,L}$. Their kernels $K^{(l)}$, the $Q_l$ of SR, obey for wide layers",
        equation(
            r"K^{(l)} = K^{(l-1)} + \lambda_{l,L}^{2} \left[ \sigma_w^{2} \langle \phi(x) \phi(y) "
            r"\rangle_{K^{(l-1)}} + \sigma_b^{2} \right].",
            "kernel",
        ),
        r"Three schedules are common: no scaling, $\lambda_{l,L} = 1$; the uniform one, $1/"
        r"\sqrt{L}$; and decreasing ones that do not depend on $L$, such as $1/(\sqrt{l} \ln(l + "
        r"1))$. A network is a Stable ResNet if $\sum_l \lambda_{l,L}^{2}$ stays bounded as $L$ "
        r"grows (SR Definition 1). The sums are $L$, $1$ and a number, respectively.",
        r"For ReLU the variance of one input is multiplied and shifted in every layer, since "
        r"$\langle \phi^{2} \rangle = K/2$. With $\lambda = 1$ the solution of~\eqref{eq:kernel} "
        r"is",
        equation(
            r"K^{(L)} = \Big( 1 + \frac{\sigma_w^{2}}{2} \Big)^{L} \Big[ K^{(0)} + "
            r"\frac{2 \sigma_b^{2}}{\sigma_w^{2}} \Big] - \frac{2 \sigma_b^{2}}{\sigma_w^{2}},",
            "growth",
        ),
        r"which grows exponentially. SR Lemma~1 bounds it from below by the first term, which with "
        r"$\sigma_b > 0$ is larger than $K^{(L)}$.",
    ]


def collapse() -> list[str]:
    """Correlations of deep networks without scaling."""
    image = (sp.sin(_theta) + (sp.pi - _theta) * sp.cos(_theta)) / sp.pi
    pair = GaussianAverage(sp.Max(0, X) * sp.Max(0, Y), (X, Y), [[K_XX, K_XY], [K_XY, K_YY]])
    at = {K_XX: 1, K_YY: 1, K_XY: sp.Rational(1, 3)}
    value = image.subs(_theta, sp.acos(sp.Rational(1, 3))) / 2
    assert abs(sp.N(pair.doit().subs(at) - value, 30)) < 1e-25
    added = sp.simplify(image - sp.cos(_theta))
    series = sp.series(added, _theta, 0, 6).removeO()
    angle = sp.acos(1 - _D)
    loss = sp.series(series.subs(_theta, sp.sqrt(2 * _D)), _D, 0, 2).removeO()
    assert sp.limit(added.subs(_theta, angle) / loss, _D, 0) == 1
    rate = sp.simplify(_a / (1 + _a) * loss / _D ** sp.Rational(3, 2))
    # D' = −rate D^{3/2} has the solution 4/(rate l)² at large l.
    constant = sp.factor(sp.simplify(4 / rate**2))
    expected = sp.Rational(9, 2) * sp.pi**2 * (1 + 1 / _a) ** 2
    assert sp.simplify(constant - expected) == 0
    found = expected.subs(_a, _w**2 / 2)
    assert sp.simplify(found - sp.Rational(9, 2) * sp.pi**2 * (1 + 2 / _w**2) ** 2) == 0
    return [
        section("Collapse without scaling", "collapse"),
        r"Let $\phi$ be ReLU and $\sigma_b = 0$. With the angle $\vartheta$ of two signals, "
        r"$C = \cos \vartheta$,",
        rows(
            r"\langle \phi(x) \phi(y) \rangle &= \tfrac{1}{2} \sqrt{K_{xx} K_{yy}}\, \left[ C + "
            r"f(C) \right],",
            rf"f(\cos \vartheta) &= {latex(sp.expand(added))} = "
            rf"{latex(sp.series(added, _theta, 0, 4).removeO())} + \dots,",
        ),
        r"the $f$ of SR~(4). SR~(5) writes $f(C)\, Q/C$, which is $0/0$ for uncorrelated inputs; "
        r"$f(C) \sqrt{K_{xx} K_{yy}}$ is meant. Variances are multiplied by $1 + a$, $a = "
        r"\sigma_w^{2}/2$, so that correlations obey",
        equation(
            r"C^{(l)} = C^{(l-1)} + \frac{a}{1 + a}\, f(C^{(l-1)}).",
            "correlation",
        ),
        r"They grow to one. With $D = 1 - C$, $f$ begins with the power $3/2$,",
        equation(
            rf"D^{{(l)}} - D^{{(l-1)}} = - \kappa\, D^{{3/2}} + \dots, \qquad "
            rf"\kappa = {latex(rate)},",
            "loss",
        ),
        r"a sum over layers that is solved by $D \to 4/(\kappa l)^{2}$:",
        equation(
            r"\lim_{L \to \infty} L^{2}\, \big( 1 - C^{(L)} \big) = \frac{9 \pi^{2}}{2} "
            r"\Big( 1 + \frac{2}{\sigma_w^{2}} \Big)^{2}.",
            "limit",
        ),
        r"SR Lemma~4 has the power $L^{-2}$; the constant does not depend on the inputs, all of "
        r"which end at the angle",
        equation(
            r"\vartheta^{(l)} = \sqrt{2 D} = \frac{3 \pi}{l} \Big( 1 + \frac{1}{a} \Big).", "angle"
        ),
        r"What a kernel of size $K$ with noise $\sigma^{2}$ tells apart is $K (1 - C)$, so that a "
        r"deep network without scaling fits a constant unless $\sigma^{2}/K$ is below $L^{-2}$.",
    ]


def tangent() -> list[str]:
    """The tangent kernel, and what the collapse leaves of it."""
    step = family_tangent(ResidualNetwork, sym.parameters(ResidualNetwork, "l"))
    (gain,) = step.growth.atoms(GaussianAverage)
    assert step.growth.coeff(gain) == step.weights
    share = sp.Rational(1, 2) - _theta / (2 * sp.pi)
    slope = GaussianAverage(sp.Heaviside(X) * sp.Heaviside(Y), (X, Y), [[K_XX, K_XY], [K_XY, K_YY]])
    at = {K_XX: 1, K_YY: 1, K_XY: sp.Rational(1, 3)}
    exact = share.subs(_theta, sp.acos(sp.Rational(1, 3)))
    assert abs(sp.N(slope.doit().subs(at) - exact, 30)) < 1e-25
    relative = sp.simplify((1 + 2 * _a * share) / (1 + _a))
    decay = sp.simplify((1 - relative).subs(_theta, 3 * sp.pi / _l * (1 + 1 / _a)))
    assert decay == 3 / _l
    s = sp.Symbol("s", positive=True)
    linear = s * _l / 4
    assert sp.simplify(sp.diff(linear, _l) + 3 / _l * linear - s) == 0
    return [
        section("The tangent kernel", "tangent"),
        r"Training moves the outputs by the tangent kernel, the sum over all parameters "
        r"$\theta$ of products of gradients~\cite{Jacot},",
        equation(
            r"\Theta^{(l)}(x, x') = \sum_{\theta} \frac{\partial h_i^{(l)}(x)}{\partial \theta} "
            r"\frac{\partial h_i^{(l)}(x')}{\partial \theta}.",
            "definition",
        ),
        r"In the NTK parametrisation, $W_{ij} = \sigma_w w_{ij}/\sqrt{N}$ with trained $w_{ij}$, "
        r"a neuron has the gradients $\lambda_{l,L} \sigma_w \phi(h_j^{(l-1)})/\sqrt{N}$ by its "
        r"own "
        r"weights, $\lambda_{l,L} \sigma_b$ by its bias, and by the chain rule those of the layers "
        r"below. The squares add up to averages over Gaussian signals. For every family of "
        r"networks and every $\phi$,",
        equation(
            r"\Theta^{(l)} = \left( \gamma_l^{2} + \rho_l^{2} \sigma_w^{2} \langle \phi'(x) "
            r"\phi'(y) \rangle \right) \Theta^{(l-1)} + \rho_l^{2} \left( \sigma_w^{2} \langle "
            r"\phi(x) \phi(y) \rangle + \sigma_b^{2} \right)",
            "tangent",
        ),
        r"from $\Theta^{(0)} = K^{(0)}$, with averages over the signals of layer $l - 1$. SR~(9) "
        r"prints $\lambda_{l,L}$ for the "
        r"step from $l$ to $l + 1$, where $\lambda_{l+1,L}$ is meant. The factor of $\Theta$ is "
        r"that of the response of a covariance, by Price's theorem~\cite{Price}; on the diagonal "
        r"it is $\langle \phi'^{2} \rangle$, where variances respond by $\langle \phi'^{2} + \phi "
        r"\phi'' \rangle$.",
        r"For ReLU without scaling, $\langle \phi' \phi' \rangle = "
        rf"{latex(share)}$. Relative to the growth $1 + a$ of the variances, one input gains "
        r"$s = a K^{(0)}/(1 + a)$ in every layer, $\Theta^{(l)} \to s\, l\, (1 + a)^{l}$. Two "
        r"inputs lose, by~\eqref{eq:angle},",
        equation(
            rf"1 - \frac{{1 + 2 a \langle \phi' \phi' \rangle}}{{1 + a}} = "
            rf"{latex(sp.simplify(1 - relative))} = \frac{{3}}{{l}}",
            "three",
        ),
        r"of it, whatever $\sigma_w$ is, so that $r = \Theta^{(l)}(x, x')/(1 + a)^{l}$ obeys "
        r"$dr/dl = s - 3 r/l$ and $r = s\, l/4$:",
        equation(
            r"\lim_{L \to \infty} \frac{\Theta^{(L)}(x, x')}{\sqrt{\Theta^{(L)}(x, x)\, "
            r"\Theta^{(L)}(x', x')}} = \frac{1}{4}, \qquad x \not\parallel x'.",
            "quarter",
        ),
        r"The correlations of the output kernel collapse to those of a constant function; the "
        r"tangent kernel becomes $\tfrac{1}{4}$ of a constant and $\tfrac{3}{4}$ of the identity. "
        r"It keeps its rank, and forgets all but which inputs are equal.",
    ]


def infinite_depth() -> list[str]:
    """The limits of infinite depth and their first corrections."""
    K, M, G, T, e, h = sp.symbols("K M G \\Theta e h", positive=True)
    kernel, tangents = step_rate(M), tangent_rate(T, M, G)
    assert sp.expand(tangents - kernel - sym.WEIGHT**2 * G * T) == 0
    F = sp.Function("F")(K)
    change = sp.diff(F, K) * e + modified_flow([F], [K], h)[0] - F
    expected = sp.diff(F, K) * displacement(e, h, F)
    assert sp.expand(change - expected) == 0
    relu = sp.Symbol("q_0", positive=True)
    t = sp.Symbol("t", positive=True)
    solution = relu * sp.exp(_a * t)
    first = -(_a**2) * t / 2 * solution
    assert sp.simplify(sp.diff(first, t) - _a * (first - _a * solution / 2)) == 0
    exact = sp.series(relu * sp.exp(sp.log(1 + _a * h) / h), h, 0, 2).removeO()
    assert sp.simplify(exact - (solution + h * first).subs(t, 1)) == 0
    return [
        section("Infinite depth", "depth"),
        r"With $\lambda_{l,L} = 1/\sqrt{L}$, a layer of~\eqref{eq:kernel} and~\eqref{eq:tangent} "
        r"is "
        r"a step of length $1/L$, and at fixed $t = l/L$ they become the flow",
        rows(
            r"\frac{dq_t}{dt} &= \sigma_w^{2} \langle \phi(x) \phi(y) \rangle_{q_t} + "
            r"\sigma_b^{2} = F(q_t), \label{eq:flow}",
            r"\frac{d\theta_t}{dt} &= F(q_t) + \sigma_w^{2} \langle \phi'(x) \phi'(y) "
            r"\rangle_{q_t}\, \theta_t, \qquad \theta_0 = q_0,",
        ),
        r"SR~(8) and its analogue for the tangent kernel. SR Lemma~5 states that the kernels of "
        r"finite depth converge; the next order says how fast. Layers are Euler steps $y \to y + h "
        r"v(y)$, $h = 1/L$, which follow the flow of $v - \tfrac{h}{2} (Dv) v$ up to $h^{2}$. "
        r"Hence $K^{(l)} = q_t + e_t/L + \mathcal{O}(L^{-2})$ with",
        equation(
            r"\frac{de_t}{dt} = F'(q_t) \Big[ e_t - \frac{1}{2} F(q_t) \Big], \qquad e_0 = 0,"
        ),
        r"and the same with the Jacobian of both rates for pairs of inputs and tangent kernels. "
        r"For "
        r"the variance of ReLU networks without bias, $F = a q$,",
        equation(
            rf"q_t = {latex(solution)}, \qquad e_t = {latex(first)},",
            "relu",
        ),
        r"which are the first terms of $q_0 (1 + a/L)^{L}$ at $t = 1$.",
        r"A decreasing schedule has the same scales $\lambda_l$ at every depth. A network of depth "
        r"$L$ is the infinite one without its last layers, and",
        equation(
            r"K^{(\infty)} - K^{(L)} = F(K^{(\infty)}) \sum_{l > L} \lambda_l^{2} + \dots,",
            "tail",
        ),
        r"the order of SR Proposition~7, whose sum starts one layer early. For $\lambda_l = "
        r"1/(\sqrt{l} \ln(l + 1))$ the sum falls off as $1/\ln L$ alone: no network of finite "
        r"depth "
        r"is close to the limit. The layers beyond some $L_0$ are small steps of lengths "
        r"$\lambda_l^{2}$ along~\eqref{eq:flow}, with $s = \sum_l \lambda_l^{2}$ for the time and "
        r"$\tfrac{1}{2} \lambda_l^{2}$ in place of $\tfrac{h}{2}$ in the correction, so that the "
        r"limit follows from the tails of $\sum \lambda_l^{2}$ and $\sum \lambda_l^{4}$.",
    ]


def universality() -> list[str]:
    """Positive coefficients."""
    value = sp.Symbol("c")
    series = sp.series(
        (sp.sqrt(1 - value**2) + (sp.pi - sp.acos(value)) * value) / sp.pi, value, 0, 7
    )
    polynomial = sp.Poly(series.removeO(), value)
    coefficients = {n: polynomial.coeff_monomial(value**n) for n in range(7)}
    assert [n for n, c in coefficients.items() if c == 0] == [3, 5]
    assert all(c >= 0 for c in coefficients.values())
    return [
        section("Which functions can be expressed", "universality"),
        r"For inputs on a sphere a kernel is a function $p$ of $t = \cos \vartheta$ alone, and its "
        r"eigenfunctions are spherical harmonics (SR Proposition~5), with eigenvalues",
        equation(
            r"\mu_k = \frac{\int p(t)\, P_k(t)\, (1 - t^{2})^{(d-3)/2}\, dt}{\int (1 - "
            r"t^{2})^{(d-3)/2}\, dt}, \qquad P_k(1) = 1.",
            "spectrum",
        ),
        r"A layer composes power series. With $\phi = \sum_m \phi_m h_m$ in Hermite polynomials of "
        r"unit norm, $\langle \phi(x) \phi(y) \rangle = \sum_m \phi_m^{2}\, c^{m}$: no coefficient "
        r"of $p = \sum_n b_n t^{n}$ is negative, and $\mu_k$ is a sum over $n = k, k + 2, \dots$ "
        r"of "
        r"$b_n$ times a positive number. The kernel is universal on the sphere if infinitely many "
        r"even and odd $b_n$ are positive. One layer of ReLU has",
        equation(
            rf"C + f(C) = {latex(polynomial.as_expr())} + \dots",
            "coefficients",
        ),
        r"without odd powers but the first; $C$ to an odd power in the second layer comes from "
        r"products of the first and the even ones. From two layers on all $b_n > 0$, with or "
        r"without bias (SR Propositions 4 and 6), and sums over layers keep what is positive, to "
        r"any depth and in both limits above. Odd functions without bias, such as erf, express odd "
        r"functions alone; the linear network expresses two degrees.",
    ]


def document() -> str:
    """The whole derivation as LaTeX."""
    parts = [network(), collapse(), tangent(), infinite_depth(), universality()]
    return article(TITLE, ABSTRACT, parts, ["SR", "Jacot", "Price"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"written: {TARGET}")
