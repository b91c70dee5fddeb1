"""The symbols of the theory, written as in the papers, by plain names, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import combinations_with_replacement

import sympy as sp

from fieldtheory import validation
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.networks.parameters import PARAMETERS, described
from fieldtheory.plotting.tables import table_html

WIDTH = sp.Symbol("N", positive=True)
WEIGHT = sp.Symbol(r"\sigma_{w}", positive=True)
BIAS = sp.Symbol(r"\sigma_{b}", positive=True)
READOUT_WEIGHT = sp.Symbol(r"\sigma_{w,\mathrm{out}}", positive=True)
READIN_WEIGHT = sp.Symbol(r"\sigma_{w,\mathrm{in}}", positive=True)
READIN_BIAS = sp.Symbol(r"\sigma_{b,\mathrm{in}}", positive=True)
READOUT_BIAS = sp.Symbol(r"\sigma_{b,\mathrm{out}}", positive=True)
DEPTH = sp.Symbol("L", integer=True, positive=True)
# ν_0 = d_in/N. Layers joined by skip connections have one width: there is no other.
INPUT_WIDTH = sp.Symbol(r"\nu_{0}", positive=True)
HIDDEN_WIDTH = sp.Symbol("M", positive=True)
phi = sp.Function("phi")

# Parameters by name, as they stand in coefficients and features.
_NAMED = {
    "weight_variance": WEIGHT**2,
    "bias_variance": BIAS**2,
    "readin_weight_variance": READIN_WEIGHT**2,
    "readin_bias_variance": READIN_BIAS**2,
    "readout_weight_variance": READOUT_WEIGHT**2,
    "readout_bias_variance": READOUT_BIAS**2,
}


def pairs(inputs: int) -> list[tuple[int, int]]:
    """The kernel entries (α, β), α <= β, counted from zero: variances and covariances."""
    return list(combinations_with_replacement(range(inputs), 2))


def kernel(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The residual kernel C^(l)_{αβ}; a variance is positive, a covariance real."""
    kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
    return sp.Symbol(f"C^{{({layer})}}{_pair_index(pair, inputs)}", **kind)


def conjugate(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The conjugate field C̃^(l)_{αβ}."""
    return sp.Symbol(rf"\tilde{{C}}^{{({layer})}}{_pair_index(pair, inputs)}")


def data_kernel(pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The kernel of the data, σ²_w,in/d_in x·x' + σ²_b,in."""
    kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
    index = "" if inputs == 1 else rf", {pair[0] + 1} {pair[1] + 1}"
    return sp.Symbol(rf"C^{{(0)}}_{{\mathrm{{data}}{index}}}", **kind)


def signal(layer: int | sp.Expr, sample: int = 0, inputs: int = 1) -> sp.Symbol:
    """The signal h^(l)_α of one neuron."""
    index = "" if inputs == 1 else f"_{{{sample + 1}}}"
    return sp.Symbol(f"h^{{({layer})}}{index}", real=True)


def with_averages(expr: sp.Expr, function: Callable[[AverageNode], sp.Expr]) -> sp.Expr:
    """An expression with a function of each of its averages in place of it."""
    return expr.xreplace({node: function(node) for node in expr.atoms(AverageNode)})


def over_signals(
    expr: sp.Expr,
    signals: Mapping[sp.Symbol, sp.Symbol],
    covariance: Callable[[list[sp.Symbol]], list[list[sp.Expr]]],
) -> sp.Expr:
    """An expression in other signals, and for its averages the covariance of the old ones."""
    nodes = {}
    for node in expr.atoms(AverageNode):
        variables, old = [signals[v] for v in node.variables], list(node.variables)
        functions = [F.xreplace(signals) for F in node.functions]
        nodes[node] = type(node)(*functions, variables, covariance(old))
    return expr.xreplace(nodes | dict(signals))


def branch_scale(layer: int | str = "") -> sp.Symbol:
    """The residual scaling ρ_l of a layer, or ρ of all."""
    return sp.Symbol(rf"\rho{_index(layer)}", positive=True)


def skip_scale(layer: int | str = "") -> sp.Symbol:
    """The scale γ_l of the skip connection of a layer, or γ of all."""
    return sp.Symbol(rf"\gamma{_index(layer)}", real=True)


def _index(layer: int | str) -> str:
    return "" if layer == "" else f"_{{{layer}}}"


def parameters(family: type[DeepNetwork], layer: int | str) -> dict[str, sp.Expr]:
    """The parameters of a layer by name: symbols, or squares of them for variances."""
    scales = {"branch_scale": branch_scale, "skip_scale": skip_scale}

    def symbol(name: str) -> sp.Expr:
        own = layer if name in family.layer_parameters else ""
        if name in (letters := getattr(family, "letters", {})):
            return sp.Symbol(letters[name] + _index(own), positive=True)
        root = PARAMETERS[name].latex if name in PARAMETERS else ""
        if name in scales:
            return scales[name](own)
        if root.endswith("}^2"):
            index = "" if own == "" else f", {own}"
            return sp.Symbol(f"{root[:-3]}{index}}}", positive=True) ** 2
        if name == "epsilon":
            return sp.Symbol(root, positive=True)
        escaped = name.replace("_", r"\_")
        return sp.Symbol(rf"\mathrm{{{escaped}}}{_index(own)}", real=True)

    others = {f.name for f in fields(family)} - {*_NAMED, *DeepNetwork.__annotations__}
    names = (*family.layer_parameters, *sorted(others.difference(family.layer_parameters)))
    return _NAMED | {name: symbol(name) for name in names}


def parameter_values(network: DeepNetwork) -> dict[sp.Symbol, float]:
    """The number of every symbol of `parameters`, for a network without batch axes."""
    numbers, values = network.parameters, {}
    for layer in ("", *range(1, network.depth + 1)):
        for name, expression in parameters(type(network), layer).items():
            if name not in numbers:
                continue
            own = numbers[name]
            if name in network.layer_parameters:
                if layer == "" and len(set(own.tolist())) > 1:
                    continue
                own = own[0 if layer == "" else layer - 1]
            symbol, power = expression.as_base_exp()
            values[symbol] = float(own) ** (1 / int(power))
    return values


def _pair_index(pair: tuple[int, int], inputs: int) -> str:
    return "" if inputs == 1 else f"_{{{pair[0] + 1} {pair[1] + 1}}}"


# What no result defines itself: symbols = what they mean; indented lines go on.
_MEANINGS = r"""
N,\ L = width; number of hidden layers
k,\ l,\ m,\ n,\ j = layers; $0$ is the readin, $L+1$ the readout
x,\ d_{\mathrm{in}} = input and its dimension
h^{(l)}_{i},\ y_{i} = signal of a neuron in a layer; output
\phi = activation; primes are its derivatives
\rho_{l},\ \gamma_{l} = scales of branch and skip connection of a layer, without an index of all
    layers
\sigma_{w}^{2},\ \sigma_{b}^{2} = $N$ times the variance of weights; of biases
\sigma_{w,\mathrm{in}}^{2},\ \sigma_{b,\mathrm{in}}^{2} = those of the readin, times
    its dimension
\sigma_{w,\mathrm{out}}^{2},\ \sigma_{b,\mathrm{out}}^{2} = those of the readout
C^{(l)},\ \tilde{C}^{(l)} = residual kernel, what layer $l$ adds to the covariance of signals; its
    conjugate
C^{(l)}_{*},\ \tilde{C}^{(l)}_{*} = both at the saddle point, for infinite width
K^{(l)},\ K^{(k, l)} = covariance of the signals in a layer, in two
\langle \dots \rangle_{\mathcal{N}(0, K)} = average over centred Gaussian signals; $K$ joins all
    their layers
S,\ S_{11},\ S_{12},\ S_{21},\ S_{22} = action; its second derivatives at the saddle point, $1$ by
    $C$, $2$ by its conjugate
G_{11},\ G_{12},\ G_{21},\ G_{22} = propagator, minus the inverse of these; $11$ is the covariance
    of $C$, $12$ its response
\eta^{(l)},\ \chi^{(l)},\ \chi^{\mathrm{out}} = derivatives of $C$, $K$ and the output kernel by the
    kernel of the input
1_{l < k},\ \delta_{l k} = $1$ where it holds; for equal layers; else $0$
\mathsf{T} = transposed
"""
_OF_PAIRS = r"""
\alpha,\ \beta,\ \gamma,\ \delta = inputs; $\alpha\leq\beta$ for a pair
S^{k l},\ G^{k l},\ M'_{l},\ Q_{k l} = matrices over pairs of inputs for each pair of layers, as
    are responses; entries that are not listed vanish
"""
_OF_RESULTS = r"""
w^{(l)}_{i j},\ b^{(l)}_{i} = weights and biases over their standard deviations; $i$, $j$ count
    neurons
\rho^{*},\ \mathcal{V} = best scale; dynamic range of the activation, twice the deviation of
    signals that it shall have
"""
# What the text of a derivation names on its way.
_OF_TEXT = r"""
i = neuron, as is $j$ at signals and weights
W^{\mathrm{in}},\ W^{(l)},\ W^{\mathrm{out}} = weights of the readin, of a layer, of the readout
b^{\mathrm{in}},\ b^{(l)},\ b^{\mathrm{out}} = their biases
\theta = all weights and biases
p(y|x) = law of the output over networks
f^{(l)} = residual, what a layer adds to its signal
a_{l},\ c_{l} = coefficients of a residual kernel
A_{l, m} = product of the scales $\gamma$ from layer $m+1$ to $l$
\nu_{l} = width of a layer, or of the input, over $N$
\tilde{h}^{(l)},\ \tilde{y} = conjugate signals, integrated along the imaginary axis
C^{(0)}_{\mathrm{data}} = kernel of the input
\mathcal{S} = exponent before kernels are fields
\delta(z) = Dirac function
M(K) = average of $\phi^{2}$ for a variance $K$
M'_{l} = derivative of a mean kernel by the covariance in layer $l$
Q_{k l} = connected correlator of two layers
r_{l} = growth of the response in a layer
P = number of inputs
\alpha,\ \beta = inputs
D = radicand in an average of the activation
\omega,\ z,\ \tilde{z},\ w,\ \epsilon = variables of integration, one weight, a small change
"""
# The same of blocks, whose parameters are listed by their names.
_BLOCK_MEANINGS = r"""
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
_BLOCK_PAIRS = r"\alpha,\ \beta,\ \gamma,\ \delta = inputs; $\alpha\leq\beta$ for a pair" + "\n"
_BLOCK_TEXT = r"""
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
_SYMBOL = re.compile(
    r"\\(?:text|label|ref|operatorname|begin|end|mathrm|cite|notag|quad)\{[^{}]*\}|"
    r"(\\(?:tilde|mathcal|mathsf|dot)\{[^{}]*\}|\\[a-zA-Z]+|[a-zA-Z]'*|1(?=_))"
    r"(?='*((?:[_^]\{(?:[^{}]|\{[^{}]*\})*\})*))"
)
_MATH = re.compile(r"\$(.+?)\$|\\begin\{(equation|align)\}(.*?)\\end\{\2\}", re.DOTALL)


def _symbols(formula: str) -> list[tuple[str, ...]]:
    """Letters of a formula with accents, and with what stands upright or starred at them."""
    letters = []
    for match in _SYMBOL.finditer(formula):
        letter, index = match.groups("")
        if not letter:
            continue
        star = ["*"] if re.search(r"_\{[^{}]*\*\}", index) else []
        two = ["two"] if letter == "K" and re.search(r"\^\{\(\w, \w\)\}", index) else []
        letters.append((letter, *re.findall(r"\\mathrm\{(\w+)\}", index), *star, *two))
    return letters


def meanings(family: type[LayeredNetwork], inputs: int, document: str = "") -> dict[str, str]:
    """The meaning of the symbols in results that these do not define, by LaTeX of the symbols."""
    lines = _MEANINGS + (_OF_PAIRS if inputs > 1 else "")
    lines += _OF_TEXT if document else _OF_RESULTS
    for name, value in parameters(family, "l").items():
        own = {s for s in value.free_symbols if s.name.startswith(r"\mathrm")}
        lines += "".join(f"{s.name} = the network's {name.replace('_', ' ')}\n" for s in own)
    return listed(lines, document)


def block_meanings(parameters: list[str], several: bool, document: str = "") -> dict[str, str]:
    """`meanings` for blocks with these parameters."""
    rows = [described(name)[::-1] for name in parameters]
    kept = [row for row in rows if row[0].removesuffix("^2") in document or not document]
    lines = _BLOCK_MEANINGS + (_BLOCK_PAIRS if several else "") + (_BLOCK_TEXT if document else "")
    return listed(lines + "".join(f"{s} = {meaning}\n" for s, meaning in kept), document)


def listed(lines: str, document: str = "") -> dict[str, str]:
    """Lines "symbols = meaning" as a list, of those that stand in a document if there is one."""
    rows = [line.split(" = ", 1) for line in re.sub(r"\n +", " ", lines).split("\n") if line]
    if document:
        used = set(_symbols(" ".join(first + last for first, _, last in _MATH.findall(document))))
        rows = [
            [r",\ ".join(s for s in symbols.split(r",\ ") if _symbols(s)[0] in used), meaning]
            for symbols, meaning in rows
        ]
    return {symbols: meaning for symbols, meaning in rows if symbols}


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key by which the tenth layer comes after the ninth, and δ after γ."""
    text = text.replace(r"\gamma", r"\c")
    return tuple((int(s), "") if s.isdigit() else (-1, s) for s in re.split(r"(\d+)", text))


class Symbols(dict[str, sp.Symbol]):
    r"""Symbols by names: Greek letters spelled out, layers and inputs after underscores.

    They are attributes and items: ``symbols.sigma_w``, ``symbols["C_0"]``, ``symbols.Ctilde_1`` for
    C̃^(1), ``symbols.C_1_12`` for C^(1) of inputs 1 and 2.

    Examples
    --------
    >>> found = Symbols([sp.Symbol("\\sigma_{w}"), sp.Symbol("\\tilde{C}^{(0)}_{1 2}")])
    >>> list(found), found.sigma_w
    (['Ctilde_0_12', 'sigma_w'], \sigma_{w})
    """

    def __init__(self, symbols: Iterable[sp.Symbol]) -> None:
        named = {plain_name(symbol): symbol for symbol in symbols}
        super().__init__(sorted(named.items(), key=lambda item: natural(item[0])))

    def __getattr__(self, name: str) -> sp.Symbol:
        """The symbol of a name."""
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[validation.choice("symbol", name, tuple(self))]
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        """The names, for completion."""
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"Symbols({', '.join(self)})"

    def _repr_html_(self) -> str:
        rows = [{"name": name, "symbol": f"${s.name}$"} for name, s in self.items()]
        return table_html(rows, "symbols by name") if rows else "<p>no symbols</p>"


def plain_name(symbol: sp.Symbol) -> str:
    r"""A name for a symbol by which Python can call it.

    >>> [plain_name(sp.Symbol(s)) for s in (r"\rho_{1}", r"C^{(0)}_{\mathrm{data}, 1 2}", "N")]
    ['rho_1', 'C_0_data_12', 'N']
    """
    text = re.sub(r"\\tilde\{(\w+)\}", r"\1tilde", symbol.name)
    text = re.sub(r"\\mathrm|\\", "", text)
    text = re.sub(r"(?<=\d) (?=\d)", "", text)
    return re.sub(r"[\W_]+", "_", text.replace("'", "prime")).strip("_")
