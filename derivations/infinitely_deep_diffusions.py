"""Infinitely deep networks as diffusions: the limit, its width and its depth, step by step.

Run it to write ``infinitely_deep_diffusions.tex`` beside it, which pdflatex sets:

    python derivations/infinitely_deep_diffusions.py

Every equation that is computed is a SymPy result of the lines above it. PF is S. Peluchetti and
S. Favaro, "Infinitely deep neural networks as diffusion processes" (AISTATS 2020).
"""

from __future__ import annotations

from pathlib import Path

import sympy as sp
from neuron_kurtosis import RATE, RATIO, kurtosis_coefficient, moment_of_neuron
from typeset import article, equation, rows, section

from fieldtheory.diffusions.diffusion_limit import small_increments as limit
from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    ALPHA,
    BETA,
    GAMMA,
    MEAN,
    ROOT,
    SQUARE,
    START,
    TIME,
    Z_IJ,
    displacement,
    generator,
    gram,
    linear_covariance,
    means,
    neuron_moments,
    pair_moments,
    riccati,
    start,
    wide_rates,
)
from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions
from fieldtheory.diffusions.diffusion_limit.diffusion_derivation import DiffusionDerivation
from fieldtheory.diffusions.diffusion_limit.small_increments import (
    S_II,
    S_IJ,
    S_JJ,
    SLOPES,
    WIDTH,
    increments,
)
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.networks.activations import as_activation
from fieldtheory.theory import notation as sym
from fieldtheory.theory.typesetting.latex import latex

TARGET = Path(__file__).with_suffix(".tex")
TITLE = "Infinitely deep residual networks as diffusions"
ABSTRACT = r"""Residual networks whose parameters are of order $\sqrt{\Delta t}$ with $\Delta t =
T/L$ become diffusions as their depth $L$ grows, at any width $D$; this is shown by PF~\cite{PF}. We
derive drift and diffusion for every Gaussian law of the parameters, together with the next order in
$\Delta t$, which is the error of finite depth. For $D \to \infty$ means and covariances obey
differential equations: they are solved in closed form where $\phi''(0) = 0$, and may explode at a
finite time, which we give, where it is not. For linear $\psi$ and $\phi''(0) = 0$ moments close at
every width, and yield the law of the norm and the kurtosis. Numbers of equations of PF are written
as PF~(5)."""

_PRINTED = {
    slope: sp.Symbol(rf"\phi_{{0}}{primes}", real=True)
    for slope, primes in zip(SLOPES, ("'", "''", "'''", "^{(4)}"), strict=True)
}
_D1, _D2, _D3, _D4 = SLOPES
_w, _b = sym.WEIGHT, sym.BIAS


def shown(expression: sp.Expr) -> str:
    """LaTeX with the derivatives of φ at 0 as they are called in the text."""
    return latex(expression.xreplace(_PRINTED))


def network() -> list[str]:
    """The network and the expansion of its increments."""
    found = limit.law_increments()
    mean = sp.expand(found.mean[1])
    expected = _D4 * limit.V_OO**2 / 8 + _D3 * limit.MU_O * limit.V_OO / 2
    assert sp.expand(mean - expected - _D2 * limit.MU_O**2 / 2) == 0
    covariance = found.covariance[1].subs({limit.MU_O: 0, limit.MU_P: 0})
    plain = {limit.V_OO: S_II, limit.V_PP: S_JJ, limit.V_OP: S_IJ}
    assert sp.expand(covariance.subs(plain) - increments().covariance[1]) == 0
    return [
        section("The network", "network"),
        r"The layers of the network are PF~(7), (10),",
        equation(
            r"x_{t + \Delta t} = x_t + \phi(\Delta W_t\, \psi(x_t) + \Delta b_t), \qquad "
            r"\Delta t = T/L,",
            "network",
        ),
        r"with $x_t \in \mathbf{R}^{D}$, functions $\phi$, $\psi$ of every entry, $\phi(0) = 0$, "
        r"and Gaussian parameters whose means and covariances are of order $\Delta t$, "
        r"independent from layer to layer. Given the layer $x$ before, the argument of $\phi$ of "
        r"neuron $o$ and input $i$ is Gaussian with mean $\mu_o^{(i)} \Delta t$ and covariance "
        r"$V_{op}^{(ij)} \Delta t$ with that of neuron $p$ and input $j$. For parameters of any "
        r"covariance (PF Assumption~3.1)",
        rows(
            r"\mu_o &= \mu_o^{b} + \sum_{k} \mu_{ok}^{W} \psi(x_k),",
            r"V_{op}^{(ij)} &= \Sigma_{op}^{b} + \sum_{k, m} \Sigma_{ok, pm}^{W} \psi(x_k^{(i)}) "
            r"\psi(x_m^{(j)}),",
        ),
        r"for matrix normal weights (PF Assumption~3.3) $\Sigma_{ok, pm}^{W} = \Sigma_{op}^{W_O} "
        r"\Sigma_{km}^{W_I}$, and for independent centred ones (PF Assumption~3.4)",
        equation(
            r"\mu = 0, \qquad V_{op}^{(ij)} = \delta_{op}\, S_{ij}, \qquad S_{ij} = \sigma_b^{2} + "
            r"\frac{\sigma_w^{2}}{D} \sum_k \psi(x_k^{(i)}) \psi(x_k^{(j)}).",
            "independent",
        ),
        r"Taylor's polynomial of $\phi$ at $0$ and Isserlis' theorem give the cumulants of an "
        r"increment to any order. With $\phi'_0 = \phi'(0)$ and so on,",
        rows(
            rf"\operatorname{{E}}[\Delta x_o] &= \Delta t \left( {shown(found.mean[0])} \right) + "
            rf"\mathcal{{O}}(\Delta t^{{2}}), \label{{eq:mean}}",
            r"\operatorname{Cov}[\Delta x_o^{(i)}, \Delta x_p^{(j)}] &= \Delta t\, "
            rf"{shown(found.covariance[0])} + \mathcal{{O}}(\Delta t^{{2}}). \label{{eq:cov}}",
        ),
        r"Third and higher cumulants are of order $\Delta t^{2}$: the path is continuous and its "
        r"first two moments are all that remains.",
    ]


def theorem() -> list[str]:
    """Theorem 3.1, its corollaries, and what is not printed right."""
    th = DiffusionDerivation(DiffusionNetwork(width=2), undetermined=True)
    assert th.law == limit.LAWS[0]
    variance = limit.noise_covariance(th.law, "ii", (limit.O, limit.O))
    squares = limit.noise_covariance(th.law, "ii").subs(limit.P, limit.O)
    assert sp.simplify(squares - variance) == 0
    drift = limit.of_law(limit.law_increments().mean[0], limit.LAWS[0])
    assert sp.simplify(drift - _D2 / 2 * variance) == 0
    return [
        section("The limit", "limit"),
        r"The coefficients of $\Delta t$ in \eqref{eq:mean} and~\eqref{eq:cov} are the "
        r"instantaneous mean and covariance of PF~(1), (2), so that for $L \to \infty$",
        rows(
            r"dx^{(i)} &= \phi'_0 \left( dW\, \psi(x^{(i)}) + db \right) + \tfrac{1}{2} \phi''_0\, "
            r"\operatorname{diag} V^{(ii)}\, dt, \label{eq:sde}",
            r"d[x_o^{(i)}, x_p^{(j)}] &= \phi_0'^{2}\, V_{op}^{(ij)} dt,",
        ),
        r"where $dW$, $db$ are Brownian motions with drift, the same for all inputs. This is PF "
        r"Theorem~3.1 and Corollary~3.1; with the laws above it is Corollary~3.2 and, for "
        r"independent parameters,",
        equation(
            r"dx^{(i)} = \phi'_0 \Big( \frac{\sigma_w}{\sqrt{D}}\, dB^{W} \psi(x^{(i)}) + "
            r"\sigma_b\, dB^{b} \Big) + \tfrac{1}{2} \phi''_0\, S_{ii}\, \mathbf{1}\, dt,",
            "corollary",
        ),
        r"$\mathbf{1}$ being a vector of ones. PF~(17) prints $\mathrm{I}_D$ there, a matrix, and "
        r"$\| \psi(x^{(i)}) \|\, dB^{W}$ with a vector $dB^{W}$, which has the law of one input "
        r"only: for several inputs the same matrix $dB^{W}$ acts on all $\psi(x^{(i)})$, or else "
        r"their covariation in the second line of PF~(17) is lost. The state enters by the norm of "
        r"$\psi(x_t)$, where PF section~3.4 writes that of $x_t$.",
    ]


def conditions() -> list[str]:
    """What φ and ψ must be like."""
    table = {
        name: diffusion_conditions(as_activation(name), as_activation("linear"))
        for name in ("tanh", "swish", "relu", "softsign", "softplus")
    }
    assert [c.theorem_applies for c in table.values()] == [True, True, False, False, False]
    assert [c.cannot_explode for c in table.values()] == [True, False, True, True, False]
    assert [c.has_limit for c in table.values()] == [True, True, False, True, False]
    h, s = sp.symbols("h s", positive=True)
    density = sp.exp(-(h**2) / (2 * s)) / sp.sqrt(2 * sp.pi * s)
    mean = sp.integrate(h * density, (h, 0, sp.oo))
    assert sp.simplify(mean - sp.sqrt(s / (2 * sp.pi))) == 0
    return [
        section("Conditions", "conditions"),
        r"Theorem~3.1 asks (PF Assumption~3.2) that $\phi(0) = 0$, that $\phi$ is three times "
        r"continuously differentiable with $\phi''$ and $\phi'''$ growing at most exponentially, "
        r"and that $\psi$ is locally bounded and two times continuously differentiable. What "
        r"follows if it is not so?",
        r"If $\phi(0) \neq 0$, as for softplus, increments do not shrink and there is no limit. If "
        r"$\phi'$ jumps at $0$, as for ReLU, a Gaussian $u$ of variance $S\, \Delta t$ has",
        equation(
            r"\langle \phi(u) \rangle = \left( \phi'_{+} - \phi'_{-} \right) \sqrt{\frac{S\, "
            r"\Delta t}{2 \pi}} + \mathcal{O}(\Delta t),",
            "kink",
        ),
        r"which over $T/\Delta t$ layers adds up to infinity. If $\phi''$ jumps, as for softsign "
        r"and ELU, the mean of both sides stands in~\eqref{eq:sde}, since $u^{2} "
        r"\operatorname{sgn} u$ has no mean, and $\langle |u|^{3} \rangle$ adds an "
        r"error of order $\sqrt{\Delta t}$. "
        r"Kinks elsewhere do not matter: arguments of $\phi$ reach them with exponentially small "
        r"probability.",
        r"The diffusion cannot explode if drift and diffusion grow at most linearly (PF "
        r"Assumption~2.3). The drift of~\eqref{eq:corollary} is quadratic in $\psi$: $\psi$ may "
        r"grow as $|x|$ if $\phi''_0 = 0$, else as $\sqrt{|x|}$. With $\psi(x) = x$, tanh "
        r"satisfies it; swish and GELU do not.",
    ]


def wide_limit() -> list[str]:
    """D → ∞: the equations and the closed form."""
    rates = wide_rates()
    form = linear_covariance()
    ratio = _b**2 / _w**2
    growth = sp.exp(_D1**2 * _w**2 * TIME)
    assert sp.simplify(form - (Z_IJ + ratio) * (growth - 1)) == 0
    exact = generator(gram(0, 1), 2)
    assert sp.simplify(exact - _D1**2 * (_b**2 + _w**2 * gram(0, 1))) == 0
    return [
        section("Wide networks", "wide"),
        r"For $D \to \infty$ the sum in~\eqref{eq:independent} is its mean $Q_{ij}$, neurons are "
        r"independent, and what each has moved from its start $z_o$ is Gaussian with mean $m_i$ "
        r"and covariance $V_{ij}$, the same for all:",
        rows(
            rf"\frac{{dm_i}}{{dt}} &= {shown(rates.mean)}, & \frac{{dV_{{ij}}}}{{dt}} &= "
            rf"{shown(rates.covariance)}, \label{{eq:wide}}",
            r"S_{ij} &= \sigma_b^{2} + \sigma_w^{2} Q_{ij}, & Q_{ij} &= \frac{1}{D} \sum_o \langle "
            r"\psi(z_o^{(i)} + y_i)\, \psi(z_o^{(j)} + y_j) \rangle_{y \sim \mathcal{N}(m, V)}.",
        ),
        r"This is the doubly infinite limit that PF section~4.2 expects from its figures. For "
        r"$\phi''_0 = 0$ means vanish, and~\eqref{eq:wide} is the flow of a residual network "
        r"with activation $\psi$, read in as $z_o$, whose branches have the scale $\rho = \phi'_0 "
        r"\sqrt{T/L}$: "
        r"the outer function leaves its slope alone.",
        r"With $\psi(x) = x$ moreover, $Q_{ij} = \overline{z_i z_j} + V_{ij}$, the overline being "
        r"the mean over neurons, and the linear equation has the solution",
        equation(
            r"V_{ij}(T) = \Big( \overline{z_i z_j} + \frac{\sigma_b^{2}}{\sigma_w^{2}} \Big) "
            r"\Big( e^{\phi_0'^{2} \sigma_w^{2} T} - 1 \Big).",
            "closed",
        ),
        r"It holds at every width $D$: the mean of $q_{ij} = \frac{1}{D} \sum_o x_o^{(i)} "
        r"x_o^{(j)}$ obeys the same equation whatever its law is (section~\ref{sec:narrow}).",
    ]


def explosion() -> list[str]:
    """φ''(0) ≠ 0: the Riccati equation and its explosion."""
    found = riccati()
    slope = 2 * _D1**2 / _D2
    assert found.variance == slope * MEAN
    alpha, beta, gamma = found.coefficients
    rate = _D2 / 2 * (_b**2 + _w**2 * (SQUARE + 2 * START * MEAN + MEAN**2 + slope * MEAN))
    assert sp.expand(rate - alpha * MEAN**2 - beta * MEAN - gamma) == 0
    oscillating, growing, straight = means()
    for mean, square in ((oscillating, -(ROOT**2)), (growing, ROOT**2), (straight, sp.S.Zero)):
        own = {ALPHA: (BETA**2 - square) / (4 * GAMMA)}
        residual = mean.diff(TIME) - (ALPHA * mean**2 + BETA * mean + GAMMA).subs(own)
        assert sp.simplify(residual) == 0
    half = sp.Rational(1, 2)
    swish = dict(zip(found.parameters, (half, half, 1, 1, 0, 0), strict=True))
    at = dict(zip((ALPHA, BETA, GAMMA), (c.subs(swish) for c in found.coefficients), strict=True))
    ends = found.explosion_time.subs(at)
    assert sp.simplify(ends - 8 * sp.sqrt(3) * sp.pi / 9) == 0
    swish |= {START: 2, SQUARE: 4}
    at = dict(zip((ALPHA, BETA, GAMMA), (c.subs(swish) for c in found.coefficients), strict=True))
    later = found.explosion_time.subs(at)
    assert abs(float(later) - 1.72) < 5e-3
    return [
        section("Explosion", "explosion"),
        r"For $\psi(x) = x$ and $\phi''_0 \neq 0$ mean and variance grow in proportion, $V_{ii} = "
        r"(2 \phi_0'^{2}/\phi''_0)\, m_i$, and with $\bar z = \frac{1}{D} \sum_o z_o$ and $q_0 = "
        r"\frac{1}{D} \sum_o z_o^{2}$ the mean obeys a Riccati equation,",
        rows(
            r"\frac{dm}{dt} &= \alpha m^{2} + \beta m + \gamma, \qquad m(0) = 0, "
            r"\label{eq:riccati}",
            rf"\alpha &= {shown(alpha)}, \qquad \beta = {shown(beta)}, \qquad \gamma = "
            rf"{shown(gamma)}.",
        ),
        r"It becomes linear by $m = - w'/(\alpha w)$, $w'' - \beta w' + \alpha \gamma w = 0$. "
        r"With $\omega^{2} = |\beta^{2} - 4 \alpha \gamma|$,",
        rows(
            rf"m(t) &= {latex(oscillating)} && (\beta^{{2}} < 4 \alpha \gamma),",
            rf"m(t) &= {latex(growing)} && (\beta^{{2}} > 4 \alpha \gamma),",
            rf"m(t) &= {latex(straight)} && (\beta^{{2}} = 4 \alpha \gamma).",
        ),
        r"The first zero of $w$ is the explosion time. Since $\alpha \gamma \geq 0$,",
        rows(
            r"T^{*} &= \frac{2}{\omega} \arg(\beta + i \omega) && (\beta^{2} < 4 \alpha \gamma), "
            r"\label{eq:time}",
            r"T^{*} &= \frac{2}{\omega} \operatorname{arsinh} \frac{\omega}{2 \sqrt{\alpha "
            r"\gamma}} && (\beta^{2} > 4 \alpha \gamma > 0,\ \beta > 0),",
        ),
        r"$T^{*} = 2/\beta$ between the two, and none for $\gamma = 0$ or $\beta < 0$ with real "
        r"roots, where the mean settles at the nearer of them. For swish with $\sigma_w = \sigma_b "
        rf"= 1$ it is $T^{{*}} = {latex(ends)} = {float(ends):.3f}$ for the input $z = 0$ copied "
        rf"to all neurons, and ${float(later):.3f}$ for $z = 2$: the figures of PF, with $T = 1$, "
        r"stay below it. Inputs far from zero explode sooner. PF section~3.4 states that "
        r"explosion is possible, not when.",
    ]


def narrow() -> list[str]:
    """Exact moments at every width."""
    lam, q, D = RATE, gram(0, 0), WIDTH
    plain = {_b: 0, _D1: sp.sqrt(lam) / _w}
    for n in (1, 2, 3, 4):
        rate = sp.simplify(generator(q**n).subs(plain) / q**n)
        expected = n * lam * (1 - 2 / D) + n**2 * 2 * lam / D
        assert sp.simplify(rate - expected) == 0
    pairs, neuron = pair_moments(), neuron_moments()
    assert len(pairs.moments) == 6 and len(neuron.moments) == 9
    row = pairs.moments.index(gram(0, 1) ** 2)
    rate = sp.expand((pairs.matrix * sp.Matrix(pairs.moments))[row])
    S = [_b**2 + _w**2 * gram(*p) for p in ((0, 0), (0, 1), (1, 1))]
    ii, ij, jj = gram(0, 0), gram(0, 1), gram(1, 1)
    expected = 2 * ij * S[1] + (ii * S[2] + 2 * ij * S[1] + jj * S[0]) / D
    assert sp.expand(rate - _D1**2 * expected) == 0
    row = neuron.moments.index(displacement(0) ** 4)
    rate = (neuron.matrix * sp.Matrix(neuron.moments))[row]
    assert sp.expand(rate - 6 * _D1**2 * displacement(0) ** 2 * S[0]) == 0
    second = sp.factor(moment_of_neuron(2))
    kurtosis = kurtosis_coefficient()
    z, r, E = start(0), RATIO, sp.Symbol("E", positive=True)
    written = (
        2 * lam * TIME * (r + z**2) * E**2
        - 4 * lam * TIME * z**2 * E
        - (3 * r + z**2) * E**2
        + 4 * (r + z**2) * E
        - r
        - 3 * z**2
    )
    written = 6 * written / ((r + z**2) * (E - 1) ** 2)
    assert sp.simplify(kurtosis - written.subs(E, sp.exp(lam * TIME))) == 0
    assert sp.simplify(second - (z**2 + r) * (sp.exp(lam * TIME) - 1)) == 0
    small = sp.series(written.subs({E: sp.exp(lam * TIME), z: 0}), TIME, 0, 2).removeO()
    assert sp.simplify(small - 4 * lam * TIME) == 0
    return [
        section("Finite width", "narrow"),
        r"For $\psi(x) = x$ and $\phi''_0 = 0$ the diffusion $dx = \phi'_0 (dW\, x + db)$ is "
        r"linear. Its neurons meet in $q_{ij}$ alone, of which It\^o's rule gives the drift "
        r"$\phi_0'^{2} S_{ij}$ and",
        equation(
            r"d[q_{ij}, q_{kl}] = \frac{\phi_0'^{2}}{D} \left( q_{ik} S_{jl} + q_{il} S_{jk} + "
            r"q_{jk} S_{il} + q_{jl} S_{ik} \right) dt.",
            "bracket",
        ),
        r"Both are polynomials of no higher degree, and so is what one neuron adds, $y = x_o - "
        r"z_o$: moments close at every $D$. For a pair of inputs",
        equation(
            r"\frac{d \langle q_{ij}^{2} \rangle}{dt} = \phi_0'^{2} \Big\langle 2 q_{ij} S_{ij} + "
            r"\frac{1}{D} \left( q_{ii} S_{jj} + 2 q_{ij} S_{ij} + q_{jj} S_{ii} \right) "
            r"\Big\rangle,",
            "square",
        ),
        r"with $\langle q_{ii} q_{jj} \rangle$ and the means a system of six, and the fourth "
        r"moment of a neuron follows from one of nine, of which the last is $d \langle y^{4} "
        r"\rangle/dt = 6 \phi_0'^{2} \langle y^{2} S_{ii} \rangle$.",
        r"Without biases one input has $\langle q^{n} \rangle = q_0^{n}\, e^{\lambda T [n (1 - "
        r"2/D) + 2 n^{2}/D]}$ with $\lambda = \phi_0'^{2} \sigma_w^{2}$, and its logarithm is "
        r"Gaussian:",
        equation(
            r"\ln q_T \sim \mathcal{N}\Big( \ln q_0 + \lambda T \Big( 1 - \frac{2}{D} \Big),\ "
            r"\frac{4 \lambda T}{D} \Big).",
            "lognormal",
        ),
        r"The outputs of a wide network are Gaussian only in the limit. With inputs $z$ copied to "
        r"all neurons, $r = \sigma_b^{2}/\sigma_w^{2}$ and $E = e^{\lambda T}$, one has $\langle "
        r"y^{2} \rangle = (z^{2} + r)(E - 1)$ and",
        equation(
            r"&\lim_{D \to \infty} D \Big( \frac{\langle y^{4} \rangle}{\langle y^{2} \rangle^{2}} "
            r"- 3 \Big) \\ &= 6\, \frac{2 \lambda T \left[ (r + z^{2}) E^{2} - 2 z^{2} E \right] - "
            r"(3 r + z^{2}) E^{2} + 4 (r + z^{2}) E - r - 3 z^{2}}{(r + z^{2}) (E - 1)^{2}},",
            "kurtosis",
        ),
        r"which starts as $4 \lambda T$ for $z = 0$. The joint law of outputs is no Gaussian at "
        r"finite width, as PF section~3.4 states; its correlations are those of "
        r"\eqref{eq:closed}.",
    ]


def depth() -> list[str]:
    """The next order of the increments, from which the error of finite depth starts."""
    own = increments()
    return [
        section("Finite depth", "depth"),
        r"The next order of the increments is for independent parameters",
        rows(
            rf"[\Delta t^{{2}}] \operatorname{{E}}[\Delta x^{{(i)}}] &= {shown(own.mean[1])},",
            r"[\Delta t^{2}] \operatorname{Cov}[\Delta x^{(i)}, \Delta x^{(j)}] &= "
            rf"{shown(own.covariance[1])},",
            r"[\Delta t^{2}] \langle \Delta x^{(i)}; \Delta x^{(j)}; \Delta x^{(k)} \rangle &= "
            rf"{shown(sp.factor(own.third_cumulant))}.",
        ),
        r"Each layer is also an Euler step of~\eqref{eq:wide}. Hence means and covariances of a "
        r"network of depth $L$ differ from those of the limit by $O(1/L)$.",
    ]


def document() -> str:
    """The whole derivation as LaTeX."""
    parts = [
        network(),
        theorem(),
        conditions(),
        wide_limit(),
        explosion(),
        narrow(),
        depth(),
    ]
    return article(TITLE, ABSTRACT, parts, ["PF"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"written: {TARGET}")
