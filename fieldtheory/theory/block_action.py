"""The action of networks whose branches have hidden units: a stream and branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.family import Coefficients
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, Names, Population, joined, stream
from fieldtheory.theory.scales import Layers
from fieldtheory.theory.typesetting.layer_quantities import Bias, Weight


@dataclass(frozen=True)
class BlockNames(Names):
    """Names, also of the φ_k; if ``short``, a_l, c_l and averages are not written out."""

    factors: tuple[Callable[[sp.Symbol], sp.Expr], ...] = ()
    short: bool = False

    def coefficients(self, layers: Layers, layer: int) -> Coefficients:
        """a_l, c_l and γ_l, those of the readout last."""
        label = self.layers[layer]
        of = layers.readout if layer == len(self.layers) - 1 else layers.hidden(label)
        if not self.short:
            return of
        names = Weight(sp.Symbol(label)), Bias(sp.Symbol(label))
        a, c = (x if x.is_number else name for x, name in zip(of[:2], names, strict=True))
        return Coefficients(a, c, of.skip)


class WickPopulation(Population):
    """Population whose averages of polynomials are written out by Wick's theorem."""

    def cumulant(self, fields: Sequence[int]) -> sp.Expr:
        """As of any population; of independent signals by the averages of each."""
        return sym.with_averages(super().cumulant(fields), _written_out)


def _written_out(node: AverageNode) -> sp.Expr:
    if all(F.is_polynomial(*node.variables) for F in node.functions):
        size = len(node.variables)
        # Entries as symbols, which need no factors in common.
        K = sp.Matrix(size, size, lambda i, j: sp.Symbol(f"K_{min(i, j)}_{max(i, j)}", real=True))
        plain = type(node)(*node.functions, node.variables, K).doit()
        return plain.xreplace(dict(zip(K, node.covariance, strict=True)))
    if isinstance(node, ConnectedCorrelator) and 0 in node.covariance.flat():
        return sym.with_averages(node.rewrite(GaussianAverage), _written_out)
    return node


def hidden_units(
    network: GramNetwork,
    names: BlockNames,
    l: int,
    read: sp.Matrix,
    parameters: Mapping[str, sp.Expr],
    coefficients: Coefficients,
) -> Population:
    """The M hidden units of branch l, which reads signals with a Gram matrix."""
    count, phi, (a, c, _) = len(names.samples), names.factors, coefficients
    samples, pairs = range(count), sym.pairs(count)
    letters = ["uv"[k] if k < 2 else f"u_{{{k + 1}}}" for k in range(len(phi))]
    u = [[names.of(x, l, s) for s in samples] for x in letters]
    activity = [sp.Mul(*[f(x[s]) for f, x in zip(phi, u, strict=True)]) for s in samples]
    fields = tuple(("C", l, pair) for pair in pairs)
    observables = tuple(a * activity[s] * activity[t] + c for s, t in pairs)

    def covariance(k: int) -> sp.Matrix:
        return sp.Matrix(count, count, lambda *p: network.signals(read[p], parameters)[k])

    kind = Population if names.short else WickPopulation
    K = sp.ImmutableMatrix(sp.diag(*map(covariance, range(len(phi)))))
    return kind(sym.HIDDEN_WIDTH, fields, observables, tuple(chain(*u)), K)


def block_action(network: GramNetwork, inputs: int = 1, names: BlockNames | None = None) -> Action:
    """The action of a network of a stream and branches, whose Gram matrices are a chain.

    The fields are C^(0), X^(0), C^(1), X^(1), ..., C^(L), X^(L), C^(L+1), all entries (αβ), α <= β,
    of each: residual kernels C and Gram matrices X of the stream. Its populations are

        stream    N units, X^(l) = ⟨x_α^(l) x_β^(l)⟩, x^(l) = γ_l s(x^(l-1)) + f^(l)
        branch    M units, C^(l) = a_l ⟨Π_k φ_k(u_kα) φ_k(u_kβ)⟩ + c_l, u_k ~ N(0, Q_k(X^(l-1))),
                  or what the method ``branch_units`` of a network makes of the same arguments
        no units  C^(0) = K0, C^(L+1) = a_{L+1} read(X^(L)) + c_{L+1}

    A layer carries on γ_l times the factor by which s rescales an input, 1/√(X_αα + ε) for a norm
    behind the sum: what a norm does stands in these functions of X. A stream without its mean over
    the units (LayerNorm) has N − 1 of them. The structure and the φ_k of the network are taken; its
    parameters stay symbols, one for those that are the same in all layers.

    Examples
    --------
    >>> from fieldtheory.networks.block import BlockNetwork
    >>> action = block_action(BlockNetwork(depth=1, activation="tanh"))
    >>> action.kernels
    (C^{(0)}, X^{(0)}, C^{(1)}, X^{(1)}, C^{(2)})
    >>> action.observables[3], action.covariance[1, 1]
    (x^{(1)}**2, C^{(0)}*\\gamma**2 + C^{(1)})
    """
    if names is None:
        plain = Names.numbers(network.depth, inputs)
        names = BlockNames(plain.layers, plain.samples, network.factors)
    last, count = len(names.layers) - 2, len(names.samples)
    samples, pairs = range(count), sym.pairs(count)
    layers = Layers.of_network(network)
    parameters = [layers.parameters(label) for label in names.layers]
    coefficients = [names.coefficients(layers, l) for l in range(last + 2)]

    def entry(l: int, one: int, other: int) -> GramEntry:
        pair = sorted((one, other))
        return GramEntry(*(names.of("X", l, *p) for p in (pair, *((s, s) for s in pair))))

    def scale(l: int, sample: int) -> sp.Expr:
        """By which s rescales an input before layer l."""
        R = entry(l - 1, sample, sample)
        return sp.sqrt(network.stream(R, parameters[l]) / R.xy)

    if count > 1:
        R, square = entry(0, 0, 1), (entry(0, 0, 1).xy * scale(1, 0) * scale(1, 1)) ** 2
        if sp.simplify((kept := network.stream(R, parameters[1])) ** 2 - square) != 0:
            raise ValueError(
                f"stream of {type(network).__name__} must rescale every input, R_αβ s(R_αα) "
                f"s(R_ββ), got {kept}"
            )

    def branch(l: int) -> Population:
        of: Any = getattr(network, "branch_units", partial(hidden_units, network))
        read = sp.Matrix(count, count, lambda *p: network.read(entry(l - 1, *p), parameters[l]))
        return of(names, l, read, parameters[l], coefficients[l])

    x = [[names.of("x", l, s) for s in samples] for l in range(last + 1)]
    squares = {("X", l, (s, t)): h[s] * h[t] for l, h in enumerate(x) for s, t in pairs}

    def carried(l: int, s: int) -> sp.Expr:
        return coefficients[l].skip * scale(l, s)

    of_stream = stream(names, "x", squares, carried, WickPopulation)
    a, c, _ = coefficients[-1]
    ends = {("C", 0, pair): sym.INPUT_WIDTH * sym.data_kernel(pair, count) for pair in pairs}
    for pair in pairs:
        ends["C", last + 1, pair] = a * network.read(entry(last, *pair), parameters[-1]) + c
    populations = [
        replace(of_stream, dependent=int(network.centred)),
        *map(branch, range(1, last + 1)),
        Population(sym.WIDTH, tuple(ends), tuple(ends.values()), (), sp.ImmutableMatrix()),
    ]
    return joined(names, populations)
