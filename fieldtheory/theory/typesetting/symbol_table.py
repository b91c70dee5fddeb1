"""The symbols of a derivation: by plain names for work with expressions, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.plotting.tables import table_html
from fieldtheory.theory import notation as sym

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
    """The meaning of the symbols in results that these do not define, by LaTeX of the symbols.

    Parameters
    ----------
    family : subclass of LayeredNetwork
    inputs : int
    document : str
        If given, all symbols in the formulas of this text, and no others.
    """
    lines = _MEANINGS + (_OF_PAIRS if inputs > 1 else "")
    lines += _OF_TEXT if document else _OF_RESULTS
    rows = [line.split(" = ", 1) for line in re.sub(r"\n +", " ", lines).split("\n") if line]
    for name, value in sym.parameters(family, "l").items():
        own = {s for s in value.free_symbols if s.name.startswith(r"\mathrm")}
        rows += [[s.name, f"the network's {name.replace('_', ' ')}"] for s in own]
    if document:
        used = set(_symbols(" ".join("".join(formula) for formula in _MATH.findall(document))))
        rows = [[_used(symbols, used), meaning] for symbols, meaning in rows]
    return {symbols: meaning for symbols, meaning in rows if symbols}


def _used(symbols: str, used: set[tuple[str, ...]]) -> str:
    """Those of a list of symbols that are used."""
    return r",\ ".join(s for s in symbols.split(r",\ ") if _symbols(s)[0] in used)


class Symbols(dict[str, sp.Symbol]):
    r"""Symbols by names: Greek letters spelled out, layers and inputs after underscores.

    They are attributes and items: ``symbols.sigma_w``, ``symbols["C_0"]``, ``symbols.Ctilde_1`` for
    C̃^(1), ``symbols.C_1_12`` for C^(1) of inputs 1 and 2.

    Parameters
    ----------
    symbols : iterable of sympy.Symbol

    Raises
    ------
    AttributeError, KeyError
        For a name that is not among them.

    Examples
    --------
    >>> found = Symbols([sp.Symbol("\\sigma_{w}"), sp.Symbol("\\tilde{C}^{(0)}_{1 2}")])
    >>> list(found), found.sigma_w
    (['Ctilde_0_12', 'sigma_w'], \sigma_{w})
    """

    def __init__(self, symbols: Iterable[sp.Symbol]) -> None:
        named = {plain_name(symbol): symbol for symbol in symbols}
        super().__init__(sorted(named.items(), key=lambda item: _layers_last(item[0])))

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

    Examples
    --------
    >>> [plain_name(sp.Symbol(s)) for s in (r"\rho_{1}", r"C^{(0)}_{\mathrm{data}, 1 2}", "N")]
    ['rho_1', 'C_0_data_12', 'N']
    """
    text = re.sub(r"\\tilde\{(\w+)\}", r"\1tilde", symbol.name)
    text = re.sub(r"\\mathrm|\\", "", text)
    text = re.sub(r"(?<=\d) (?=\d)", "", text)
    return re.sub(r"[\W_]+", "_", text.replace("'", "prime")).strip("_")


def _layers_last(name: str) -> tuple[tuple[int, str], ...]:
    """Numbers in names are ordered as such."""
    return tuple((int(s), "") if s.isdigit() else (-1, s) for s in re.split(r"(\d+)", name))
