"""The action of a network of Gram chains: populations of a stream and of branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.family import Coefficients
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, Population
from fieldtheory.theory.typesetting.layer_quantities import Bias, Weight


@dataclass(frozen=True)
class GramNotation:
    """Names of layers and inputs, and what stands for the functions of a network in its action.

    Parameters
    ----------
    layers : tuple of str
        Those of the stream, 0, ..., L, and of the readout.
    samples : tuple of str
        Of the inputs, "" for one.
    factors : tuple of callable
        φ_k.
    short : bool
        Whether a_l and c_l stand for what they are made of.
    """

    layers: tuple[str, ...]
    samples: tuple[str, ...]
    factors: tuple[Callable[[sp.Symbol], sp.Expr], ...]
    short: bool = False

    def field(self, letter: str, layer: int, pair: tuple[int, int]) -> sp.Symbol:
        """C, X or a conjugate of a pair of inputs in a layer."""
        kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
        return sp.Symbol(self._name(letter, layer, *pair), **({} if "tilde" in letter else kind))

    def signal(self, letter: str, layer: int, sample: int) -> sp.Symbol:
        """The signal of a unit of the stream, "x", or of a hidden unit."""
        return sp.Symbol(self._name(letter, layer, sample), real=True)

    def _name(self, letter: str, layer: int, *samples: int) -> str:
        index = " ".join(filter(None, (self.samples[s] for s in samples)))
        return f"{letter}^{{({self.layers[layer]})}}" + (f"_{{{index}}}" if index else "")

    def coefficients(self, network: GramNetwork, layer: int) -> Coefficients:
        """a_l, c_l and γ_l, those of the readout last."""
        label = self.layers[layer]
        own = layer_parameters(network, label)
        readout = layer == len(self.layers) - 1
        a, c, skip = map(sp.sympify, (network.readout if readout else network.layer)(own))
        if self.short:
            names = Weight(sp.Symbol(label)), Bias(sp.Symbol(label))
            a, c = (x if x.is_number else name for x, name in zip((a, c), names, strict=True))
        return Coefficients(a, c, skip)


class GramPopulation(Population):
    """Population whose averages of polynomials are written out (Wick's theorem)."""

    def cumulant(self, fields: Sequence[int]) -> sp.Expr:
        """As of any population; of independent signals by the averages of each."""
        return sym.with_averages(super().cumulant(fields), _closed)


def _closed(node: AverageNode) -> sp.Expr:
    if all(F.is_polynomial(*node.variables) for F in node.functions):
        size = len(node.variables)
        # Entries as symbols, which need no factors in common.
        K = sp.Matrix(size, size, lambda i, j: sp.Symbol(f"K_{min(i, j)}_{max(i, j)}", real=True))
        plain = type(node)(*node.functions, node.variables, K).doit()
        return plain.xreplace(dict(zip(K, node.covariance, strict=True)))
    if isinstance(node, ConnectedCorrelator) and 0 in node.covariance.flat():
        return sym.with_averages(node.rewrite(GaussianAverage), _closed)
    return node


def gram_action(
    network: GramNetwork, inputs: int = 1, notation: GramNotation | None = None
) -> Action:
    """The action of a network of a stream and branches, whose Gram matrices are a chain.

    The fields are C^(0), X^(0), C^(1), X^(1), ..., C^(L), X^(L), C^(L+1) with the entries (αβ),
    α <= β, of each: residual kernels C and Gram matrices X of the stream. Its populations are

        stream    N units, X^(l) = ⟨x_α^(l) x_β^(l)⟩, x^(l) = γ_l s(x^(l-1)) + f^(l)
        branch    M units, C^(l) = a_l ⟨Π_k φ_k(u_kα) φ_k(u_kβ)⟩ + c_l, u_k ~ N(0, Q_k(X^(l-1)))
        no units  C^(0) = K0, C^(L+1) = a_{L+1} read(X^(L)) + c_{L+1}

    with Cov(x^(k), x^(l)) = Σ_m A_km A_lm C^(m), A_lm the product of γ_j and of the factors by
    which s rescales an input from layer m to l, 1/√(X_αα + ε) for a norm behind the sum. What a
    norm does stands in these functions of X. Constraints are multiplied by the number of units
    that define a field, so that ν = M/N for those of branches.

    Parameters
    ----------
    network : GramNetwork
        Its structure and φ are taken; its parameters stay symbols, one for those that are the same
        in all layers.
    inputs : int
        P.
    notation : GramNotation, optional
        Other names of layers and inputs, and φ_k, than those of the network.

    Notes
    -----
    A stream without its mean over the units (LayerNorm) has N − 1 of them. That stands in
    `Action.expression`; derivatives are those of N units, to leading order.

    Examples
    --------
    >>> from fieldtheory.networks.block import BlockNetwork
    >>> action = gram_action(BlockNetwork(depth=1, activation="tanh"))
    >>> action.kernels
    (C^{(0)}, X^{(0)}, C^{(1)}, X^{(1)}, C^{(2)})
    >>> action.observables[3], action.covariance[1, 1]
    ((x^{(1)})**2, C^{(0)}*\\gamma**2 + C^{(1)})
    """
    names = gram_notation(network, inputs) if notation is None else notation
    last, pairs = len(names.layers) - 2, sym.pairs(len(names.samples))
    layers = [*(("C", l) for l in range(last + 2)), *(("X", l) for l in range(last + 1))]
    fields = [(*of, pair) for of in sorted(layers, key=lambda x: x[::-1]) for pair in pairs]
    places = {field: j for j, field in enumerate(fields)}
    of_layer = [layer_parameters(network, label) for label in names.layers]
    coefficients = [names.coefficients(network, l) for l in range(last + 2)]
    samples = range(len(names.samples))

    def entry(l: int, one: int, other: int) -> GramEntry:
        pair = min(one, other), max(one, other)
        ends = (names.field("X", l, (s, s)) for s in pair)
        return GramEntry(names.field("X", l, pair), *ends)

    def units(l: int) -> GramPopulation:
        """Those of the branch of a layer."""
        weight, bias, _ = coefficients[l]
        letters = ["uv"[k] if k < 2 else f"u_{{{k + 1}}}" for k in range(len(names.factors))]
        u = [[names.signal(letter, l, s) for s in samples] for letter in letters]

        def activity(sample: int) -> sp.Expr:
            return sp.Mul(*[phi(x[sample]) for phi, x in zip(names.factors, u, strict=True)])

        def covariance(k: int) -> sp.Matrix:
            def of_pair(one: int, other: int) -> sp.Expr:
                read = network.read(entry(l - 1, one, other), of_layer[l])
                return sp.sympify(network.signals(read, of_layer[l])[k])

            return sp.Matrix(len(samples), len(samples), of_pair)

        return GramPopulation(
            units=sym.HIDDEN_WIDTH,
            fields=tuple(places["C", l, pair] for pair in pairs),
            observables=tuple(weight * activity(a) * activity(b) + bias for a, b in pairs),
            variables=tuple(x for each in u for x in each),
            covariance=sp.ImmutableMatrix(sp.diag(*map(covariance, range(len(u))))),
        )

    def carried(l: int, m: int, sample: int) -> sp.Expr:
        """A_lm of an input."""
        factors = []
        for j in range(m + 1, l + 1):
            R = entry(j - 1, sample, sample)
            scale = sp.sqrt(network.stream(R, of_layer[j]) / R.xy)
            factors.append(coefficients[j].skip * scale)
        return sp.Mul(*factors)

    def covariance(row: int, column: int) -> sp.Expr:
        (k, one), (l, other) = divmod(row, len(samples)), divmod(column, len(samples))
        pair = min(one, other), max(one, other)
        terms = [
            carried(k, m, one) * carried(l, m, other) * names.field("C", m, pair)
            for m in range(min(k, l) + 1)
        ]
        return sp.Add(*terms)

    size = (last + 1) * len(samples)
    x = {(l, s): names.signal("x", l, s) for l in range(last + 1) for s in samples}
    stream = GramPopulation(
        units=sym.WIDTH,
        fields=tuple(j for j, (letter, *_) in enumerate(fields) if letter == "X"),
        observables=tuple(x[l, a] * x[l, b] for letter, l, (a, b) in fields if letter == "X"),
        variables=tuple(x.values()),
        covariance=sp.ImmutableMatrix(size, size, covariance),
        dependent=int(network.centred),
    )
    weight, bias, _ = coefficients[-1]
    data = [sym.INPUT_WIDTH * sym.data_kernel(pair, len(samples)) for pair in pairs]
    read = [network.read(entry(last, *pair), of_layer[last]) for pair in pairs]
    ends = Population(
        units=sym.WIDTH,
        fields=tuple(places["C", l, pair] for l in (0, last + 1) for pair in pairs),
        observables=(*data, *(weight * R + bias for R in read)),
        variables=(),
        covariance=sp.ImmutableMatrix(0, 0, []),
    )

    def relative_width(letter: str, l: int) -> sp.Expr:
        if letter == "X" or l == last + 1:
            return sp.S.One
        return sym.INPUT_WIDTH if l == 0 else sym.HIDDEN_WIDTH / sym.WIDTH

    return Action(
        kernels=tuple(names.field(*field) for field in fields),
        conjugates=tuple(names.field(rf"\tilde{{{f}}}", l, pair) for f, l, pair in fields),
        relative_widths=tuple(relative_width(letter, l) for letter, l, _ in fields),
        populations=(stream, *(units(l) for l in range(1, last + 1)), ends),
    )


def gram_notation(network: GramNetwork, inputs: int) -> GramNotation:
    """Layers and inputs by numbers, and the φ_k of a network."""
    layers = tuple(map(str, range(network.depth + 2)))
    samples = ("",) if inputs == 1 else tuple(str(s + 1) for s in range(inputs))
    return GramNotation(layers, samples, network.factors)


def layer_parameters(network: GramNetwork, layer: str) -> dict[str, Any]:
    """Symbols of the parameters of a layer, without an index where all layers have the same."""
    own, one = (sym.parameters(type(network), index) for index in (layer, ""))
    several = {
        name
        for name in network.layer_parameters
        if len(set(network.parameters[name].ravel().tolist())) > 1
    }
    return {name: (own if name in several else one)[name] for name in network.parameters}
