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
k,\ l,\ m,\ n,\ j = layers; 0 is the readin, L + 1 the readout
x,\ d_{\mathrm{in}} = input and its dimension
h^{(l)}_{i},\ y_{i} = signal of a neuron i in layer l; output
w^{(l)}_{i j},\ b^{(l)}_{i} = weights and biases over their standard deviations; i, j count neurons
\phi = activation; primes are its derivatives
\rho_{l},\ \gamma_{l} = scales of branch and skip connection of a layer, without an index of all
    layers
\sigma_{w}^{2},\ \sigma_{b}^{2} = N times the variance of weights; that of biases
\sigma_{w,\mathrm{in}}^{2},\ \sigma_{b,\mathrm{in}}^{2} = those of the readin, its dimension times
\sigma_{w,\mathrm{out}}^{2},\ \sigma_{b,\mathrm{out}}^{2} = those of the readout
C^{(l)},\ \tilde{C}^{(l)} = residual kernel, what layer l adds to the covariance of signals; its
    conjugate
C^{(l)}_{*} = C at the saddle point, for infinite width
K^{(l)},\ K^{(k, l)} = covariance of the signals in a layer, in two
\langle F \rangle_{\mathcal{N}(0, K)} = average over centred Gaussian signals; K joins all their
    layers
S,\ S_{11},\ S_{12},\ S_{21},\ S_{22} = action; its second derivatives at the saddle point, 1 by
    C, 2 by its conjugate
G_{11},\ G_{12},\ G_{21},\ G_{22} = propagator, minus the inverse of these; 11 is the covariance
    of C, 12 its response
\eta^{(l)},\ \chi^{(l)} = derivatives of C and K by the input kernel
1_{l < k},\ \delta_{l k} = 1 where it holds; where both are equal; else 0
\mathsf{T} = transposed
"""
_OF_PAIRS = r"""
\alpha,\ \beta,\ \gamma,\ \delta = inputs; of a pair the first is at most the second
S^{k l},\ G^{k l},\ M'_{l},\ Q_{k l} = matrices over pairs of inputs for each pair of layers, as
    are responses; entries that are not listed vanish
"""
_OF_SATURATION = r"""
\rho^{*},\ \mathcal{V} = best scale; dynamic range of the activation, twice the deviation of
    signals that it shall have
"""
_OF_F25 = r"""
\mathcal{S},\ \mathcal{G} = action and its blocks; propagator and its blocks
\mathcal{W} = the part of one neuron in the action
\tilde{h}^{(l)},\ \tilde{y} = conjugate signals, integrated along the imaginary axis
p,\ \mathcal{D} = law of the output; integral over all components
X,\ Y,\ z,\ A = inputs and outputs as rows; any signals; any variance
"""


def meanings(family: type[LayeredNetwork], inputs: int, paper: bool) -> dict[str, str]:
    """What the symbols in results mean that they do not define, by LaTeX of the symbols."""
    lines = (
        _MEANINGS + (_OF_PAIRS if inputs > 1 else "") + _OF_SATURATION + (_OF_F25 if paper else "")
    )
    found = dict(line.split(" = ") for line in re.sub(r"\n +", " ", lines).split("\n") if line)
    for name, value in sym.parameters(family, "l").items():
        own = {s for s in value.free_symbols if s.name.startswith(r"\mathrm")}
        found |= {s.name: f"the network's {name.replace('_', ' ')}" for s in own}
    return found


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
