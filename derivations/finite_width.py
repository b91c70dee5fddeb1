r"""Networks of finite width: the diagrams of the field theory, their rules, and what they give.

Run it to write ``finite_width.tex`` beside it, which pdflatex sets:

    python derivations/finite_width.py

It goes on where ``resnet_action.tex`` ends, with the action, its saddle point and its propagators.
The papers stop at the propagators; what follows is derived here and, where there is an exact
answer, checked here: vertices are derivatives of the action, diagrams are enumerated, and formulas
printed in the text are compared with the sums of diagrams.
"""

from __future__ import annotations

from pathlib import Path

import sympy as sp
from typeset import article, equation, rows, section

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import notation as sym
from fieldtheory.theory.diagrams.diagram_formulas import diagram_latex
from fieldtheory.theory.diagrams.loop_expansion import Diagram, diagrams
from fieldtheory.theory.typesetting.latex import latex

TARGET = Path(__file__).with_suffix(".tex")

TITLE = r"Residual networks of finite width:\\ diagrams to any order of $1/N$"
ABSTRACT = r"""The kernels of a residual network of width $N$ fluctuate. Their action is $N$ times a
function that does not depend on $N$, so that the expansion about its saddle point is one in $1/N$.
The papers give its propagators~\cite{F25}; here are its vertices and its diagrams. We write the
rules down, show which diagrams causality rules out, and evaluate the mean of the kernels at one
loop, which has a closed form with one sum over layers for each source. Deep linear networks, whose
moments close at every width, confirm the next order."""

_ORDERS = ((1, 1), (1, 2), (2, 0), (2, 1), (3, 0))
_NAMES = {1: r"\langle C \rangle", 2: r"\langle C ; C \rangle", 3: r"\langle C ; C ; C \rangle"}


def rules() -> list[str]:
    """Propagators, vertices and powers of N."""
    return [
        section("Rules", "rules"),
        r"The kernels $C^{(l)}$, $0 \leq l \leq L + 1$, and their conjugates $\tilde{C}^{(l)}$ "
        r"have the weight $\exp S(C, \tilde{C})$ with F25~(22)",
        equation(
            r"S = - N \sum_{l} \nu_{l} C^{(l)} \tilde{C}^{(l)} + N \ln \Bigl\langle \exp "
            r"\sum_{l} \tilde{C}^{(l)} g_{l} \Bigr\rangle, \qquad "
            r"g_{l} = a_{l} \phi(h^{(l-1)})^{2} + c_{l},",
            "action",
        ),
        r"where the signals $h$ are Gaussian of covariance $K^{(k, l)} = \sum_{m} A_{k m} "
        r"A_{l m} C^{(m)}$, $A_{l m} = \gamma_{m+1} \cdots \gamma_{l}$. At the saddle point "
        r"$\tilde{C} = 0$ and $C = C_{*}$, the network of infinite width. The Hessian there gives "
        r"the propagators $G = -(S'')^{-1}$: the response $G_{12}$ of a kernel to a conjugate, the "
        r"covariance $G_{11}$ of two kernels, and $G_{22} = 0$. The logarithm in "
        r"(\ref{eq:action}) generates cumulants, so that the derivative by $n$ conjugates and $m$ "
        r"kernels is",
        equation(
            r"S_{2 \cdots 2 1 \cdots 1}^{k_{1} \cdots k_{n} j_{1} \cdots j_{m}} = N "
            r"\frac{\partial^{m}}{\partial C^{(j_{1})} \cdots \partial C^{(j_{m})}} \langle "
            r"g_{k_{1}} ; \cdots ; g_{k_{n}} \rangle, \qquad n + m \geq 3.",
            "vertex",
        ),
        r"With $n = 0$ it vanishes, since the average of $1$ is $1$ for every $C$. The signals are "
        r"linear in the residuals, $h^{(l)} = \sum_{m} A_{l m} f^{(m)}$, and Price's "
        r"theorem~\cite{Price} turns a derivative by $C^{(j)}$ into half of two by $f^{(j)}$. All "
        r"vertices are thus averages of derivatives of $\phi^{2}$ over the signals of at most $n$ "
        r"layers, for example",
        rows(*_examples()),
        r"A diagram of a cumulant of $E$ kernels joins $E$ legs and $V$ vertices by $I$ lines. "
        r"It has $\ell = I - V - E + 1$ loops. Each line brings $1/N$ and each vertex $N$, so that "
        r"its order is $N^{V - I} = N^{-(\ell + E - 1)}$. Tadpoles count: the expansion is one "
        r"about the saddle point, which is not the mean.",
    ]


def _examples() -> list[str]:
    """The two cubic vertices between layers k < l, j between them, from the action."""
    phi, x, y = sym.phi, sp.Symbol("x", real=True), sp.Symbol("y", real=True)
    K, Q, c = sp.symbols("K Q c", positive=True)
    square = phi(x) ** 2
    single = GaussianAverage(square, x, K).diff(K, 2)
    assert single == GaussianAverage(square.diff(x, 4), x, K) / 4
    pair = ConnectedCorrelator(square, phi(y) ** 2, (x, y), [[K, c], [c, Q]]).diff(K)
    assert pair == ConnectedCorrelator(square.diff(x, 2), phi(y) ** 2, (x, y), [[K, c], [c, Q]]) / 2
    return [
        r"S_{2 1 1}^{l i j} &= \frac{N}{4} a_{l} A_{l-1, i}^{2} A_{l-1, j}^{2} \bigl\langle "
        r"(\phi^{2})''''(h^{(l-1)}) \bigr\rangle",
        r"S_{2 2 1}^{l k j} &= \frac{N}{2} a_{l} a_{k} A_{l-1, j}^{2} \bigl\langle "
        r"(\phi^{2})''(h^{(l-1)}) ; \phi^{2}(h^{(k-1)}) \bigr\rangle \qquad (k \leq j < l).",
    ]


def causality() -> list[str]:
    """Which diagrams vanish."""
    counts = []
    for legs, loops in _ORDERS:
        found = diagrams(legs, loops)
        left = sum(not diagram.vanishes for diagram in found)
        loop = "tree" if loops == 0 else "one loop" if loops == 1 else "two loops"
        counts.append(rf"${_NAMES[legs]}$ at {loop}: {len(found)}, of which {left} are left")
    return [
        section("Causality", "causality"),
        r"$G_{12}^{l k}$ vanishes unless $l \geq k$: a source acts on its own layer and on later "
        r"ones. The signals of layer $k - 1$ hold $C^{(j)}$ with $j < k$ only, so that "
        r"(\ref{eq:vertex}) vanishes unless every $j$ is smaller than the largest $k$. A loop of "
        r"responses through vertices of one conjugate each would have to increase all the way "
        r"round. So the tadpole $S_{2 1 1}$ whose conjugate responds to one of its own kernels is "
        r"zero, while that of $S_{2 2 1}$ is not: there the kernel lies between its two "
        r"conjugates. With several conjugates at a vertex one tries each of them as the latest; if "
        r"every choice closes a loop that increases, the diagram vanishes for every network. Up to "
        rf"permutations of the legs there are: {'; '.join(counts)}.",
        "",
        r"Symmetry factors are one over the number of permutations of inner fields that change "
        r"nothing. For fields with one component, and couplings without causality, the sum of the "
        r"diagrams is the series of an ordinary integral, and the tests compare the two to three "
        r"loops.",
    ]


def mean() -> list[str]:
    """The mean at one loop, in the kernels K."""
    _, half, other = diagrams(1, 1)
    assert not (half.vanishes or other.vanishes)
    require_mean(depth=2)
    return [
        section("The mean at one loop", "mean"),
        r"Two diagrams are left,",
        equation(
            rf"\langle C^{{(l)}} \rangle - C_{{*}}^{{(l)}} = {half.latex()} + {_renamed(other)}.",
            "mean",
        ),
        r"The kernels enter the vertices by $K^{(l)} = \sum_{j} A_{l j}^{2} C^{(j)}$ and by the "
        r"covariances of two layers. Summed over $i$ and $j$, the first vertex takes the variance "
        r"of $K$, and the second the response of $K$ to the earlier of its conjugates,",
        rows(
            r"\operatorname{Var} K^{(l)} &= \sum_{i j} A_{l i}^{2} A_{l j}^{2} G_{11}^{i j},",
            r"R_{l k} &= \sum_{j} A_{l j}^{2} G_{12}^{j k}.",
        ),
        r"Of the three covariances that the second cumulant depends on, that of the later signal "
        r"alone responds: the others hold residuals of layers before $k$ only. So with $M(K) = "
        r"\langle \phi^{2} \rangle$",
        equation(
            r"\langle C^{(l)} \rangle - C_{*}^{(l)} &= \sum_{m} G_{12}^{l m} a_{m} \Bigl[ N M''("
            r"K^{(m-1)}) \tfrac{1}{2} \operatorname{Var} K^{(m-1)} \\ &\quad + N "
            r"\sum_{k < m} a_{k} R_{m-1, k} "
            r"\frac{\partial \langle \phi^{2}(h^{(m-1)}) ; \phi^{2}(h^{(k-1)}) \rangle}"
            r"{\partial K^{(m-1)}} \Bigr].",
            "shift",
        ),
        r"It takes $L^{2}$ steps at any depth. The first term is the curvature of the recursion, "
        r"by which fluctuations move the mean; the second is there since skip "
        r"connections correlate the signals of one neuron in different layers. For $\gamma = 0$ "
        r"those are independent and the second term vanishes.",
    ]


def require_mean(depth: int) -> None:
    """Assert that (shift) is the sum of the diagrams, layer by layer, for any φ."""
    th = ft.derive(depth, branch_scale="per layer", skip_scale="per layer")
    action, G = th.network_action, th.propagator
    size, K = depth + 2, action.covariance
    A = [[sp.diff(K[l, l], C) for C in action.kernels] for l in range(depth + 1)]
    source = [sp.S.Zero] * size
    for m in range(1, size):
        # S_{2 1 1}^{m i j} is the second derivative by K^(m-1) times two squares of A, and so on.
        newest = action.kernels[m - 1]
        row = action.derivative((m,)).diff(newest)
        variance = sum(
            A[m - 1][i] * A[m - 1][j] * G.G11[i, j] for i in range(size) for j in range(size)
        )
        source[m] += row.diff(newest) * variance / 2
        for k in range(1, m):
            response = sum(A[m - 1][j] * G.G12[j, k] for j in range(size))
            source[m] += action.derivative((m, k)).diff(newest) * response
    shift = th.correction(legs=1, loops=1).expression
    for l in range(size):
        difference = sum(G.G12[l, m] * source[m] for m in range(size)) - shift[l]
        assert _at_random(difference) == 0


def _at_random(expression: sp.Expr) -> sp.Expr:
    """An expression with different fractions for its averages and symbols."""
    for kind in ((GaussianAverage, ConnectedCorrelator), (sp.Symbol,)):
        found = sorted(expression.atoms(*kind), key=str)
        values = {item: sp.Rational(2 * n + 3, 3 * n + 5) for n, item in enumerate(found)}
        expression = expression.xreplace(values)
    return expression


def _renamed(diagram: Diagram) -> str:
    """Inner layers m, k and j for the sum with conjugates m and k."""
    text = diagram.latex()
    for old, new in (("k_{1}", "m"), ("k_{2}", "k"), ("k_{3}", "j")):
        text = text.replace(old, new)
    return text


def cumulants() -> list[str]:
    """The third cumulant and the next order of the variance."""
    third = [diagram_latex(diagram.graph) for diagram in diagrams(3, 0)]
    loops = [d for d in diagrams(2, 1) if not d.vanishes]
    single = [d for d in loops if len(d.vertices) == 1]
    return [
        section("Higher cumulants", "cumulants"),
        r"To order $1/N^{2}$ the third cumulant is the sum of trees with one vertex, of which the "
        r"legs $l$, $m$ and $n$ come in all orders that differ:",
        *(equation(text) for text in third),
        rf"To the same order the variance has {len(loops)} diagrams of one loop. Those of one "
        r"vertex are",
        *(equation(diagram.latex()) for diagram in single),
        rf"and the other {len(loops) - len(single)} have two vertices: a loop of two lines between "
        r"them, or a tadpole that moves the point at which $G_{11}$ is taken. The mean at two "
        rf"loops has {sum(not d.vanishes for d in diagrams(1, 2))}; ",
        r"\texttt{derive(depth=2).correction(legs=1, loops=2)} prints, draws and sums them.",
    ]


def linear() -> list[str]:
    """Deep linear networks at every N, for one layer and the readout."""
    th = ft.derive(1, activation="linear", branch_scale="symbol", skip_scale="symbol")
    N, data = sym.WIDTH, sym.kernel(0)
    second = sp.factor(sp.expand(th.correction(legs=2, loops=1).expression[2, 2].doit()))
    # q = |h|²/N: its first two moments, layer by layer.
    a, c, g = (
        sym.branch_scale() ** 2 * sym.WEIGHT**2,
        sym.branch_scale() ** 2 * sym.BIAS**2,
        (sym.skip_scale()),
    )
    m, s = data, data**2 * (1 + 2 / N)
    C2 = a**2 * s + 2 * a * c * m + c**2
    after = g**4 * s + 2 * g**2 * (a * s + c * m) * (1 + 2 / N) + C2 * (1 + 2 / N)
    mean = g**2 * m + a * m + c
    exact = sp.expand(sym.READOUT_WEIGHT**4 * (after - mean**2))
    assert sp.simplify(exact.coeff(N, -2) / N**2 - second) == 0
    assert sp.simplify(sp.limit(exact.coeff(N, 0), N, sp.oo)) == 0
    return [
        section("Deep linear networks", "linear"),
        r"For $\phi(h) = h$ the norm $q = |h|^{2} / N$ is all that a layer hands on. With $C = a q "
        r"+ c$ the residual is Gaussian of variance $C$ given $q$, and the moments $m = \langle q "
        r"\rangle$ and $s = \langle q^{2} \rangle$ close at every width,",
        rows(
            r"m' &= \gamma^{2} m + a m + c,",
            r"s' &= \gamma^{4} s + \Bigl(1 + \frac{2}{N}\Bigr) \bigl[ 2 \gamma^{2} (a s + c m) + "
            r"\langle C^{2} \rangle \bigr], \qquad s_{0} = \Bigl(1 + \frac{2}{N}\Bigr) "
            r"\bigl(K^{(0)}\bigr)^{2}.",
        ),
        r"The mean has no corrections: both diagrams of (\ref{eq:mean}) vanish, since $M'' = 0$ "
        r"and the second derivative of $\phi^{2}$ is a constant. The variance of the output of one "
        r"layer has, beyond $G_{11}$, the term",
        equation(f"{latex(second)},"),
        r"which is both the coefficient of $1/N^{2}$ of the recursion and the sum of the diagrams. "
        r"The tests compare all cumulants, depths up to three and polynomial activations, in "
        r"fractions.",
    ]


def document() -> str:
    """The whole text as a LaTeX document."""
    parts = [rules(), causality(), mean(), cumulants(), linear()]
    return article(TITLE, ABSTRACT, parts, ["F25", "Price"])


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET}")
