"""Critical residual networks and how their four-point vertex grows with depth, step by step.

Run it to write ``critical_networks.tex`` beside it, which pdflatex sets:

    python derivations/critical_networks.py

Every equation that is computed is a SymPy result of the lines above it. PDLT-B is appendix B of
D. A. Roberts, S. Yaida, B. Hanin, "The Principles of Deep Learning Theory" (arXiv:2106.10165);
what is said of its equations is checked against their transcriptions in `fieldtheory.literature`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import sympy as sp
from printed_equations import require
from typeset import article, equation, rows, section

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory.elementary_averages import X, Y
from fieldtheory.theory.typesetting.latex import latex

TARGET = Path(__file__).with_suffix(".tex")
TITLE = "Critical residual networks and their fluctuations"
ABSTRACT = r"""A deep residual network keeps its signals if its weights are critical. We derive the
critical weights for every activation and every scale $\gamma$ of the skip connection, and then how
the four-point vertex $V$ of such networks grows with depth, to order $1/N$ and without closure:
it is the sum of the correlations of one function of one neuron over all pairs of layers. The
closure of PDLT-B~\cite{PDLT} keeps their second Hermite component. The first one, which ReLU has
and $|h|$ has not, lets $V$ grow faster with $\gamma$ before it grows more slowly. Numbers of
equations of PDLT-B are written as (B.29); where one does not hold, the text says so."""

_printed = partial(require, paper="PDLT-B")

K, c = sp.symbols("K c", positive=True)
gamma = sp.Symbol(r"\gamma", positive=True)
up, down = sp.symbols("a_{+} a_{-}", real=True)
A2 = (up**2 + down**2) / 2
B2 = (up**2 - down**2) / 2
s1, s2, s3 = sp.symbols(r"\sigma_{1} \sigma_{2} \sigma_{3}", real=True, nonzero=True)
_phi = sp.Function(r"\phi")
_names = {"A": sp.Symbol("A_{2}", positive=True), "B": sp.Symbol("B_{2}", real=True)}
_J = sp.Function("J")


def _pair(F: sp.Expr, G: sp.Expr | None = None) -> sp.Expr:
    """⟨F(x);G(y)⟩ of variance K and correlation c."""
    other = (F if G is None else G).subs(X, Y)
    found = ConnectedCorrelator(sp.expand(F), sp.expand(other), (X, Y), [[K, c * K], [c * K, K]])
    # The angle of both signals.
    return sp.expand(found.doit().replace(sp.atan2, lambda *sides: sp.asin(c)))


def network() -> list[str]:
    """The forward equation, the kernel and the susceptibilities."""
    _printed("(B.11)", True)
    _printed("(B.13), (B.15)", True)
    _printed("(B.14), (B.16)", True)
    _printed("(B.14), (B.18)", True)
    moment = GaussianAverage(_phi(X) ** 2, X, K)
    slope = moment.diff(K)
    return [
        section("The network", "network"),
        r"The hidden layers of the network are, (B.3) with $\xi = 1$,",
        equation(r"h^{(l)} = \gamma\, h^{(l-1)} + W^{(l)} \phi(h^{(l-1)}) + b^{(l)},"),
        r"with $W^{(l)}_{ij} \sim \mathcal{N}(0, C_W / N)$ and $b^{(l)}_i \sim \mathcal{N}(0, "
        r"C_b)$, so that a wide network has Gaussian signals whose variance obeys (B.12),",
        rows(
            r"K^{(l)} &= \gamma^{2} K^{(l-1)} + C_W M(K^{(l-1)}) + C_b, \label{eq:kernel}",
            rf"M(K) &= {latex(moment)}, \qquad M'(K) = {latex(slope)}",
        ),
        r"(Price's theorem). A small change of $K$ is multiplied in every layer by the parallel "
        r"susceptibility, the distance of two inputs of one norm by the perpendicular one, (B.15), "
        "(B.16),",
        rows(
            r"\chi_{\parallel}(K) &= \gamma^{2} + C_W M'(K),",
            rf"\chi_{{\perp}}(K) &= \gamma^{{2}} + C_W "
            rf"{latex(GaussianAverage(_phi(X).diff(X) ** 2, X, K))}.",
        ),
        r"For two inputs with kernels $K_{\pm\pm} = K_{00} \pm \delta K_{[1]} + "
        r"\delta\delta K_{[2]}$ and $K_{+-} = K_{00} - \delta\delta K_{[2]}$ the next layer has "
        r"$\chi_{\parallel}\, \delta K_{[1]}$ in place of $\delta K_{[1]}$, and "
        r"$\chi_{\perp}\, \delta\delta K_{[2]} + \tfrac{1}{2} \chi_{\perp}'\, (\delta K_{[1]})^{2}$"
        r" in place of $\delta\delta K_{[2]}$, (B.13), (B.14) and (B.18).",
    ]


def criticality() -> list[str]:
    """The classes, from the expansion of M at K = 0."""
    _printed("(B.19), (B.20)", True)
    _printed("(B.19), (B.21)", True)
    _printed("(B.32)", True)
    series = [(1, s1), (2, s2 / 2), (3, s3 / 6)]
    smooth = sp.Add(*[s * X**n for n, s in series])
    moment = sp.expand(GaussianAverage(sp.expand(smooth**2), X, K).doit())
    bend = sp.expand(moment.coeff(K, 2) / s1**2)
    linear = up * sp.Max(0, X) + down * sp.Min(0, X)
    assert sp.simplify(GaussianAverage(sp.expand(linear**2), X, K).doit() - A2 * K) == 0
    third = GaussianAverage(sp.Abs(X) ** 3, X, K).doit()
    assert sp.simplify(third - 2 * sp.sqrt(2 / sp.pi) * K ** sp.Rational(3, 2)) == 0
    return [
        section("Criticality", "criticality"),
        r"Signals are kept where $\chi_{\parallel}(K^{*}) = \chi_{\perp}(K^{*}) = 1$ at a fixed "
        r"point $K^{*}$ of~\eqref{eq:kernel}, (B.19). The difference of both conditions is "
        r"$C_W \langle \phi \phi'' \rangle = 0$. Three kinds of activations satisfy it.",
        r"\emph{Scale-invariant}: $\phi(h) = a_{+} h$ above and $a_{-} h$ below zero. Then",
        equation(
            rf"M(K) = A_{{2}} K, \qquad A_{{2}} = {latex(A2)}, \qquad "
            r"C_W = \frac{1 - \gamma^{2}}{A_{2}}, \quad C_b = 0",
            "scale",
        ),
        r"make both susceptibilities 1 at every $K$, (B.20).",
        r"\emph{$K^{*} = 0$}: $\phi(0) = 0$, and $M$ bends below its tangent at $K = 0$. For a "
        r"smooth $\phi = \sigma_{1} h + \sigma_{2} h^{2}/2 + \sigma_{3} h^{3}/6 + \dots$,",
        rows(
            rf"M(K) &= \sigma_{{1}}^{{2}} \left( K + a_{{1}} K^{{2}} + \dots \right), \qquad "
            rf"a_{{1}} = {latex(bend)},",
            r"C_W &= \frac{1 - \gamma^{2}}{\sigma_{1}^{2}}, \qquad C_b = 0, \qquad "
            r"K^{(l)} = \frac{1}{(-a_{1})(1 - \gamma^{2})}\, \frac{1}{l} + \dots "
            r"\label{eq:decay}",
        ),
        r"(B.21), (B.30) and (B.32). Where $\phi'$ or $\phi''$ jumps at zero, with $\phi(\pm t) = "
        r"\pm a_{\pm} t + b_{\pm} t^{2} + \dots$ for $t > 0$, the first correction is",
        equation(
            r"M(K) = A_{2} K + (a_{+} b_{+} - a_{-} b_{-})\, 2 \sqrt{2/\pi}\, K^{3/2} + \dots,"
        ),
        r"so that ELU and softsign have $K^{(l)} \propto 1/l^{2}$ with the same critical weights.",
        r"\emph{Half-stable}: $\langle \phi \phi'' \rangle = 0$ at some $K^{*} > 0$, with "
        r"$C_W = (1 - \gamma^{2})/M'(K^{*})$ and $C_b = (1 - \gamma^{2}) [K^{*} - "
        r"M(K^{*})/M'(K^{*})] \geq 0$, as for GELU, where $K^{*} = (3 + \sqrt{17})/2$.",
    ]


def vertex() -> list[str]:
    """V at a fixed point with χ_∥ = 1, from the noise of every layer."""
    layer, l = sp.symbols("m l", integer=True, positive=True)
    carried = sp.summation(4 * (1 - gamma**2) * gamma ** (2 * layer), (layer, 1, l))
    for value in (sp.Rational(1, 3), sp.Rational(4, 5)):
        shared = 4 * gamma**2 * (1 - gamma ** (2 * l))
        assert (carried - shared).subs(gamma, value).subs(l, 7) == 0
    return [
        section("The four-point vertex at a fixed point", "vertex"),
        r"Given $h^{(l-1)}$, the residuals of layer $l$ are Gaussian. Their variance is $C_b$ plus "
        r"$C_W$ times the mean of $\phi^{2}(h_{j}^{(l-1)})$ over the neurons. It deviates from its "
        r"mean by a shift $C_W M' \delta K^{(l-1)}$ of the kernel and by a noise $\zeta^{(l)}$ of "
        r"the finite number of neurons. So the kernel moves as",
        equation(
            r"\delta K^{(l)} = \chi_{\parallel}\, \delta K^{(l-1)} + \zeta^{(l)}, \qquad "
            r"N \langle \zeta^{(k)} \zeta^{(l)} \rangle = C_W^{2}\, \big\langle "
            r"\phi^{2}(h^{(k-1)}) ; \phi^{2}(h^{(l-1)}) \big\rangle.",
            "noise",
        ),
        r"The noise of different layers is correlated, since a skip connection carries a neuron "
        r"on: at a fixed point $h^{(k)}$ and $h^{(l)}$ have the correlation "
        r"$\gamma^{|k-l|}$. With",
        equation(
            r"Q(c) = \big\langle \phi^{2}(x) ; \phi^{2}(y) \big\rangle / K^{2}, \qquad "
            r"\langle x^{2} \rangle = \langle y^{2} \rangle = K, \quad "
            r"\langle x y \rangle = c K,",
            "Q",
        ),
        r"and $\chi_{\parallel} = 1$ the sum of~\eqref{eq:noise} over the layers is",
        equation(
            r"\frac{N\, \mathrm{Var}\, K^{(l)}}{K^{2}} = C_W^{2} \Big[ l\, Q(1) + 2 "
            r"\sum_{s=1}^{l-1} (l - s)\, Q(\gamma^{s}) \Big].",
            "variance",
        ),
        r"The vertex $V/N = \langle h_{i}^{2} h_{j}^{2} \rangle - \langle h_{i}^{2} \rangle "
        r"\langle h_{j}^{2} \rangle$ of two neurons has beside it what one neuron shares with the "
        r"kernel, through the noise $\phi^{2}(h_{j}^{(m-1)})$ that it made in earlier layers. By "
        r"$\langle h^{2} ; \phi^{2}(h') \rangle = 2 M' \langle h h' \rangle^{2}$,",
        equation(
            r"\frac{V^{(l)}}{K^{2}} = \frac{N\, \mathrm{Var}\, K^{(l)}}{K^{2}} + "
            r"4\, C_W M' \sum_{m=1}^{l} \gamma^{2 m} = \frac{N\, \mathrm{Var}\, K^{(l)}}{K^{2}} + "
            r"4 \gamma^{2} (1 - \gamma^{2 l})",
            "shared",
        ),
        r"with $C_W M' = 1 - \gamma^{2}$. The second part is bounded. Deep networks have $V/K^{2} ="
        r" \nu\, l + \dots$ with",
        equation(
            r"\nu(\gamma) = C_W^{2} \Big[ Q(1) + 2 \sum_{s=1}^{\infty} Q(\gamma^{s}) \Big].", "nu"
        ),
    ]


def scale_invariant() -> list[str]:
    """Q in closed form, (B.29) and what it lacks."""
    _printed("(B.27)", True)
    _printed("(B.29)", False, "φ = relu, γ² = 1/2")
    _printed("(B.29)", True, "|a_+| = |a_−|, φ = |h|, γ = 0.8")
    _printed("text after (B.29)", False, "φ = relu, ν to order 1/n")
    linear = up * sp.Max(0, X) + down * sp.Min(0, X)
    # Q and J do not depend on K.
    odd = _pair(X * sp.Abs(X)).subs(K, 1)
    whole = _pair(linear**2).subs(K, 1)
    inside = sp.collect(sp.expand(sp.pi * odd / 2), sp.asin(c))
    assert sp.simplify(whole - 2 * A2**2 * c**2 - B2**2 * odd) == 0
    weight = (1 - gamma**2) / A2
    square = gamma**2 / (1 - gamma**2)
    kept = weight**2 * (whole.subs(c, 1) + 2 * 2 * A2**2 * square)
    A4 = (up**4 + down**4) / 2
    printed = (1 - gamma**2) * ((1 - gamma**2) * (3 * A4 / A2**2 - 1) + 4 * gamma**2)
    assert sp.simplify(kept - printed) == 0
    small = sp.series(odd, c, 0, 4).removeO()
    relu = {up: 1, down: 0}
    first = weight**2 * 2 * B2**2 * small.coeff(c, 1)
    rise = sp.simplify(first.subs(relu).subs(gamma, 0))
    start = sp.simplify(printed.subs(relu).subs(gamma, 0))
    second = sp.simplify(whole.subs(relu).subs(c, 1 / sp.sqrt(2)))
    two = sp.simplify(2 * whole.subs(relu).subs(c, 1) + 2 * second + sp.Rational(3, 2))
    A, B = _names["A"], _names["B"]
    return [
        section("Scale-invariant activations", "invariant"),
        r"The square of $\phi$ has an even and an odd part, $\phi^{2}(h) = A_{2} h^{2} + B_{2}\, h "
        rf"|h|$ with $B_{{2}} = {latex(B2)}$, which do not mix. Hence",
        rows(
            rf"Q(c) &= {latex(2 * A**2 * c**2)} + {latex(B**2)} J(c), \qquad "
            r"J(c) = \frac{\langle x |x| ; y |y| \rangle}{K^{2}},",
            rf"J(c) &= \frac{{2}}{{\pi}} \Big[ {latex(inside)} \Big] \label{{eq:J}}",
            rf"&= {latex(small.coeff(c, 1) * c)} + {latex(small.coeff(c, 3) * c**3)} + \dots "
            r"\notag",
        ),
        r"Of~\eqref{eq:nu}, $Q(1) = 2 A_{2}^{2} + 3 B_{2}^{2} = 3 A_{4} - A_{2}^{2}$, (B.27), and "
        r"the geometric series of $c^{2}$ make up (B.29),",
        equation(
            r"\nu_{\mathrm{B.29}} = (1 - \gamma^{2}) \Big[ (1 - \gamma^{2}) \Big( "
            r"\frac{3 A_{4}}{A_{2}^{2}} - 1 \Big) + 4 \gamma^{2} \Big],"
        ),
        "and what it lacks is the odd part between different layers,",
        equation(
            r"\nu(\gamma) = \nu_{\mathrm{B.29}}(\gamma) + 2 (1 - \gamma^{2})^{2}\, "
            r"\frac{B_{2}^{2}}{A_{2}^{2}} \sum_{s=1}^{\infty} J(\gamma^{s}).",
            "exact",
        ),
        r"(B.29) is exact for $|a_{+}| = |a_{-}|$, where $B_{2} = 0$, and for $\gamma = 0$. "
        r"Otherwise $J(c) \propto c$ at small $c$ makes $\nu$ rise with $\gamma$, for ReLU as",
        equation(rf"\nu(\gamma) = {latex(start)} + {latex(rise * gamma)} + \dots"),
        r"before it falls to $\nu(1) = 0$. So $\nu$ does not fall monotonically, as PDLT-B has it "
        r"after (B.29); nor does the optimal ratio of depth to width $r^{*} \propto 1/\nu$, (B.36),"
        r" grow with $\gamma$ from $\gamma = 0$ on, and skip connections help networks with $r < "
        r"r^{*}(0)$, too. For ReLU and $\gamma^{2} = 1/2$ the second residual layer has, "
        r"by~\eqref{eq:variance} and~\eqref{eq:shared}, $C_W = 1$,",
        equation(
            rf"\frac{{V^{{(2)}}}}{{K^{{2}}}} = 2 Q(1) + 2 Q\Big(\frac{{1}}{{\sqrt{{2}}}}\Big) + "
            rf"\frac{{3}}{{2}} = {latex(sp.nsimplify(two))} \approx {float(two):.4f},"
        ),
        r"where (B.28) gives $9/2$; the first one has $9/4$ in both.",
    ]


def vanishing() -> list[str]:
    """The class K* = 0: (B.35), its range, and the next term."""
    _printed("(B.35)", True)
    weight = (1 - gamma**2) / s1**2
    quadratic = sp.factor(_pair(s1**2 * X**2) / K**2)
    growth = sp.factor(
        weight**2 * (quadratic.subs(c, 1) + 2 * quadratic / c**2 * gamma**2 / (1 - gamma**2))
    )
    cubic = sp.expand(_pair(s1 * s2 * X**3))
    terms = {n: cubic.coeff(c, n) for n in (1, 3)}
    assert sp.expand(cubic - sum(v * c**n for n, v in terms.items())) == 0
    series = sp.Add(*[v * gamma**n / (1 - gamma**n) for n, v in terms.items()])
    source = sp.simplify(2 * weight**2 * series / K**3)
    decay = 1 / (-sp.Symbol("a_{1}") * (1 - gamma**2))
    limit = sp.factor(sp.simplify(source * decay / 2))
    assert sp.simplify(growth - 2 * (1 - gamma**4)) == 0
    printed = 9 * gamma / (1 - gamma) + 6 * gamma**3 / (1 - gamma**3)
    printed *= (1 - gamma**2) / -sp.Symbol("a_{1}") * (s2 / s1) ** 2
    assert sp.simplify(limit - printed) == 0
    return [
        section("Kernels that vanish", "vanishing"),
        r"In the class $K^{*} = 0$ the kernel falls off slowly, and with $\chi_{\parallel} = 1 + "
        r"d(\delta K)/dK$, $\delta K = K^{(l+1)} - K^{(l)}$, the ratio $w = V/K^{2}$ grows as",
        equation(
            r"\frac{dw}{dl} = s + 2 w \Big[ \frac{d (\delta K)}{dK} - \frac{\delta K}{K} \Big] = s "
            r"- \frac{2 w}{l} + \dots, \qquad w = \frac{s}{3}\, l + \dots",
            "third",
        ),
        r"The bracket is $-1/l$ for every power $\delta K \propto -K^{p}$, $p > 1$, since then $K "
        r"\propto l^{-1/(p-1)}$: it is $-p/[(p-1) l] + 1/[(p-1) l]$. The growth $s$ is that "
        r"of~\eqref{eq:nu} for the slopes $a_{\pm}$ of $\phi$ at zero. For smooth $\phi$ it is",
        equation(
            rf"s = {latex(2 * (1 - gamma**4))}, \qquad \nu = \frac{{s}}{{3}} = "
            r"\frac{2}{3} (1 - \gamma^{4}),"
        ),
        r"which is (B.35). It stands although (B.26), from which PDLT-B derives it, does not: what "
        r"(B.26) lacks is of higher order in $K$. The first such term comes from $\sigma_{1} "
        r"\sigma_{2} h^{3}$ in $\phi^{2}$, whose correlator",
        equation(
            rf"\sigma_{{1}}^{{2}} \sigma_{{2}}^{{2}} \big\langle x^{{3}} ; y^{{3}} "
            rf"\big\rangle = {latex(sp.factor(cubic))}"
        ),
        r"has no second Hermite component. As a source of $V$ of order $K^{3}$ it is carried on "
        r"with $\chi_{\parallel}^{2} = 1 - 4/l$ and leaves, by~\eqref{eq:decay}, the constant",
        equation(
            r"\lim_{l \to \infty} \frac{V - V_{\mathrm{B.26}}}{K^{2}} = "
            r"\frac{1 - \gamma^{2}}{-a_{1}}\, \frac{\sigma_{2}^{2}}{\sigma_{1}^{2}} "
            r"\Big[ \frac{9 \gamma}{1 - \gamma} + \frac{6 \gamma^{3}}{1 - \gamma^{3}} \Big]",
            "limit",
        ),
        r"beside $\nu\, l$. For $\sigma_{2} = 0$ the first source is of order $K^{4}$, from $h^{4}$"
        r" in $\phi^{2}$, and the limit is 0.",
    ]


def document() -> str:
    """The whole derivation as LaTeX."""
    parts = [network(), criticality(), vertex(), scale_invariant(), vanishing()]
    return article(TITLE, ABSTRACT, parts, ["PDLT"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"written: {TARGET}")
