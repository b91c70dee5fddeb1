"""The derivation of a network of Gram chains as a LaTeX document; the prose is in the .tex file."""

from __future__ import annotations

import re
from pathlib import Path

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.networks.gram import GramEntry
from fieldtheory.networks.parameters import described
from fieldtheory.theory import notation as sym
from fieldtheory.theory.appendix import lengths
from fieldtheory.theory.block_action import layer_parameters
from fieldtheory.theory.block_formulas import TABLE, OneLayer
from fieldtheory.theory.formulas import results_latex, symbols_latex
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layout import Equation, page

TEMPLATE = Path(__file__).with_name("block_appendix.tex")
# What no result defines itself; see `notation.listed`. Parameters are listed by their names.
_MEANINGS = r"""
N,\ M,\ L = width of the stream; hidden units of a branch; number of layers
k,\ l,\ m,\ j = layers; $0$ is the readin, $L+1$ the readout
x^{(l)},\ x,\ d_{\mathrm{in}} = signal of the stream; without a layer the input, and its dimension
u^{(l)},\ v^{(l)},\ y = signals of hidden units; output
\phi,\ h = activation, primes are its derivatives; its argument
C^{(l)},\ \tilde{C}^{(l)} = residual kernel, what branch $l$ adds to the covariance of signals; its
    conjugate
X^{(l)},\ \tilde{X}^{(l)} = Gram matrix of the stream, the mean of products of signals over its
    units; its conjugate
C^{(l)}_{*},\ \tilde{C}^{(l)}_{*},\ X^{(l)}_{*},\ \tilde{X}^{(l)}_{*} = these at the saddle point,
    for infinite width
\Sigma,\ Q^{(l)} = covariance of the signals of the stream in all layers; of hidden signals
\langle \dots \rangle_{\mathcal{N}(0, Q)} = average over centred Gaussian signals
S,\ S_{11},\ S_{12},\ S_{21},\ S_{22} = action; its second derivatives at the saddle point, $1$ by
    $C$ and $X$, $2$ by their conjugates
G_{11},\ G_{12},\ G_{21},\ G_{22} = propagator, minus the inverse of these; $11$ is the covariance
    of fields, $12$ their response
\eta^{(l)},\ \chi^{(l)} = derivatives of $C$ and $X$ by the kernel of the input
V^{(l)},\ S_{l},\ m^{(l)} = $N$ times the covariance of $X$; its source; $N$ times the mean shift
F_{l},\ J_{l} = one layer as a function of the Gram matrix before it; its derivative
\mathsf{T} = transposed
"""
_OF_PAIRS = r"\alpha,\ \beta,\ \gamma,\ \delta = inputs; $\alpha\leq\beta$ for a pair" + "\n"
_OF_TEXT = r"""
i = unit, as is $j$ at hidden signals and weights
W^{(l)},\ W_{v}^{(l)},\ W'^{(l)} = inner weights of a layer, of the gate, outer weights
W^{\mathrm{in}},\ W^{\mathrm{out}} = weights of the readin, of the readout
b^{(l)},\ b'^{(l)},\ b^{\mathrm{in}},\ b^{\mathrm{out}} = biases
\theta = all weights and biases
p(y|x) = law of the output over networks
f^{(l)},\ a^{(l)} = what a branch adds to the stream; activity of its hidden units
r,\ s = what is read of a signal; what the skip connection carries of it
a_{l},\ c_{l} = coefficients of a residual kernel, of mean products and of biases
A_{l, m} = what the stream keeps of layer $m$ in layer $l$
\nu_{0} = dimension of the input over $N$
K = a variance
C^{(0)}_{\mathrm{data}} = kernel of the input
\tilde{x}^{(l)},\ \tilde{u}^{(l)} = conjugate signals, integrated along the imaginary axis
\delta(z) = Dirac function
P = number of inputs
\omega,\ z,\ \tilde{z},\ w = variables of integration, one weight
"""


def meanings(n: OneLayer, document: str = "") -> dict[str, str]:
    """The meaning of the symbols that results do not define, or of all in a document."""
    rows = [described(name)[::-1] for name in n.network.parameters]
    kept = [row for row in rows if row[0].removesuffix("^2") in document or not document]
    lines = _MEANINGS + (_OF_PAIRS if n.several else "") + (_OF_TEXT if document else "")
    return sym.listed(lines + "".join(f"{s} = {meaning}\n" for s, meaning in kept), document)


def document(n: OneLayer) -> str:
    """The whole text, which needs amsmath and hyperref."""
    one, defined = OneLayer(n.network, False, n.column), set()
    network, variances, norm, phi = _network(one)
    defined |= {(e.left, e.right) for e in phi}
    h, K = sp.Symbol("h", real=True), sp.Symbol("K", positive=True)
    moment = GaussianAverage(sym.phi(h) ** 2, h, K)
    parts = lengths(n.column) | {
        "network": page([network], n.column, "network"),
        "variances": page([variances], n.column, "weights"),
        "passed": page([[*norm, *phi]], n.column, "passed"),
        "gamma": latex(one.names.coefficients(n.network, 1).skip),
        "price": rf"\frac{{\partial}}{{\partial K}} {latex(moment)} = {latex(moment.diff(K))}",
    }
    flags = {
        "centred": n.network.centred,
        "gate": len(n.network.factors) > 1,
        "several": n.several,
        "one": not n.several,
    }

    def results(match: re.Match[str]) -> str:
        if (name := match[1]) in parts or name in ("columns", "width"):
            return parts.get(name, "")
        return results_latex(name.split(","), n, TABLE, numbered=True, defined=defined)

    text = TEMPLATE.read_text(encoding="utf-8")
    text = re.sub(r"<\?(\w+):(.*?)\?>", lambda of: of[2] * flags[of[1]], text, flags=re.DOTALL)
    before, after = (re.sub("<<(.*?)>>", results, half) for half in text.split("<<symbols>>"))
    listed = symbols_latex(meanings(n, before), n.column, True)
    return f"{before}{listed}{after}".replace(r"\log", r"\ln")


def _network(n: OneLayer) -> tuple[list[Equation], ...]:
    """The equations of a layer, the law of its weights, what is passed on, and φ."""
    parameters = layer_parameters(n.network, "l")
    skip, phi = latex(n.names.coefficients(n.network, 1).skip), n.names.factors
    names = ["u", "v", *(f"u_{{{k}}}" for k in range(3, len(phi) + 1))]
    # Of those of a gate the signal stands below.
    letters = [("u", "W", "b"), *((v, f"W_{{{v}}}", f"b_{{{v}}}") for v in names[1:])]
    signals = [sp.Symbol(f"{u}^{{(l)}}", real=True) for u, *_ in letters[: len(phi)]]
    activity = sp.Mul(*[f(x) for f, x in zip(phi, signals, strict=True)])
    layers = [
        Equation("x^{(0)}", r"W^{\mathrm{in}} x + b^{\mathrm{in}}"),
        Equation("x^{(l)}", rf"{skip} \, s(x^{{(l - 1)}}) + f^{{(l)}}", r"1 \leq l \leq L"),
        Equation("f^{(l)}", "W'^{(l)} a^{(l)} + b'^{(l)}"),
        Equation("a^{(l)}", activity),
    ]
    read = sp.Symbol("r", positive=True)
    ends = r"\sigma_{w,\mathrm{in}}^{2} / d_{\mathrm{in}}", r"\sigma_{b,\mathrm{in}}^{2}"
    laws = [(r"W^{\mathrm{in}}", ends[0]), (r"b^{\mathrm{in}}", ends[1])]
    for Q, (u, W, b) in zip(n.network.signals(read, parameters), letters, strict=False):
        bias = sp.sympify(Q).subs(read, 0)
        laws.append((f"{W}^{{(l)}}", f"{latex(sp.diff(Q, read))} / N"))
        laws += [(f"{b}^{{(l)}}", latex(bias))] if bias != 0 else []
        sum_of_biases = f" + {b}^{{(l)}}" if bias != 0 else ""
        layers.append(Equation(f"{u}^{{(l)}}", f"{W}^{{(l)}} r(x^{{(l - 1)}}){sum_of_biases}"))
    layers.append(Equation("y", r"W^{\mathrm{out}} r(x^{(L)}) + b^{\mathrm{out}}"))
    laws += [("W'^{(l)}", "a_{l} / M"), ("b'^{(l)}", "c_{l}")]
    laws += [(r"W^{\mathrm{out}}", "a_{L + 1} / N"), (r"b^{\mathrm{out}}", "c_{L + 1}")]
    X = sp.Symbol("X", positive=True)
    entry, x = GramEntry(X, X, X), sp.Symbol("x", real=True)
    passed = [
        Equation(f"{name}(x)", x * sp.sqrt(sp.simplify(of(entry, parameters) / X)))
        for name, of in (("r", n.network.read), ("s", n.network.stream))
    ]
    functions = [
        Equation(f"{latex(sp.Symbol(str(name)))}(h)", factor.expression)
        for factor, name in zip(n.network.factors, phi, strict=True)
        if factor != name
    ]
    variances = [Equation(W, rf"\mathcal{{N}}(0, {law})", relation=r"\sim") for W, law in laws]
    return layers, variances, passed, functions
