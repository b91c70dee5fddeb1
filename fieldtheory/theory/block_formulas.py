"""The formulas of blocks for symbolic layers, from the action of one layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import sympy as sp

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.activations import h
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action
from fieldtheory.theory.block_action import BlockNames, block_action
from fieldtheory.theory.definitions import CONNECTED, DATA, DATA_PAIR, data_equation
from fieldtheory.theory.generic import k, l, m
from fieldtheory.theory.quantities import G21_ROW, Rows, table, zero
from fieldtheory.theory.scales import Layers
from fieldtheory.theory.typesetting.latex import COEFFICIENT, SKIP, latex
from fieldtheory.theory.typesetting.layer_quantities import A, JointAverage, LayerQuantity, PairSum
from fieldtheory.theory.typesetting.layout import Equation
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH

_ALL = r"1 \leq l \leq L"
Pair = tuple[int, int]


class HiddenAverage(JointAverage):
    """⟨F⟩ over the signals of the hidden units of a branch."""

    measure = r"\mathcal{N}(0, Q^{(l)})"


class StreamAverage(JointAverage):
    """⟨F⟩ over the signals of a unit of the stream in all layers."""

    measure = r"\mathcal{N}(0, \Sigma)"


class Coefficient(LayerQuantity, template="{}", rank=COEFFICIENT):
    """The coefficient of an average, which stays together."""


class Units(LayerQuantity, template="({})", rank=COEFFICIENT):
    """A number of units that is a sum."""


class SampleSkip(LayerQuantity, template="A_{{{0}, {1}; {2}}}", rank=SKIP):
    """A_lm of an input."""


class OneLayer:
    """The action of one layer of a network between others, of one input or of α, β, γ, δ.

    ``layers`` are the names of the layer before, the layer, and the readout.
    """

    fields = "CX"
    # The document, in the folder of `appendix`, and what it says beyond the norm and gates.
    template: str | Path = "block_appendix.tex"
    flags: Mapping[str, bool] = {}

    def __init__(
        self,
        network: GramNetwork,
        several: bool,
        column: float = TEXT_WIDTH,
        layers: tuple[str, ...] = ("l - 1", "l", "L + 1"),
    ) -> None:
        self.network, self.several, self.column = network, several, column
        self.layers = Layers.of_network(network)
        self.names, self.action = _one_layer(network, several, layers)
        self.pair, self.other = ((0, 1), (2, 3)) if several else ((0, 0), (0, 0))
        # Of an entry αβ and one it depends on.
        self.pairs = [(self.pair, self.pair)]
        self.pairs += [(self.pair, (0, 0)), ((0, 0), (0, 0))] if several else []
        # The same of what a branch reads.
        self.read_pairs = self.pairs

    def at(self, *layers: str) -> OneLayer:
        """The same with other names of the layers."""
        return type(self)(self.network, self.several, self.column, layers)

    @property
    def table(self) -> Mapping[str, Rows]:
        """The equations of quantities."""
        return FORMULAS

    @property
    def units(self) -> sp.Expr:
        """The number of units of the branch."""
        place = self.action.kernels.index(self.field("C", 1))
        return sym.WIDTH * self.action.relative_widths[place]

    def over_layers(self) -> Iterable[tuple[OneLayer, Callable[[sp.Expr], sp.Expr]]]:
        """The kinds of layers, each with the sum over its layers."""
        return [(self, lambda term: sp.Sum(term, (l, 1, sym.DEPTH)))]

    def entropy(self) -> sp.Expr:
        """The term of the branch in the action, less its constraint."""
        population, total = self.action.populations[1], sp.S.Zero
        place = population.fields.index(self.action.kernels.index(self.field("C", 1)))
        for p in getattr(population, "parts", (population,)):
            C = self.field(r"\tilde{C}", 1) * self.units / p.units
            over = getattr(p, "over", HiddenAverage)
            total += p.units * sp.log(over(sp.exp(self.paired(C * p.observables[place]))))
        return total

    def paired(self, expr: sp.Expr) -> sp.Expr:
        """The sum over pairs of inputs."""
        return PairSum(expr) if self.several else expr

    @property
    def ends(self) -> tuple[OneLayer, OneLayer]:
        """The first layer and the last."""
        return self.at("0", "1", "2"), self.at("L - 1", "L", "L + 1")

    def meanings(self, document: str = "") -> dict[str, str]:
        """What symbols mean that results do not define, or all in a document."""
        return sym.block_meanings(list(self.network.parameters), self.several, document)

    def field(self, letter: str, layer: int, pair: Pair | None = None) -> sp.Symbol:
        """C, X or a conjugate of a pair of inputs, α and β if left out."""
        return self.names.of(letter, layer, *(self.pair if pair is None else pair))

    def derivative(self, conjugates: Sequence[sp.Symbol], *kernels: sp.Symbol) -> sp.Expr:
        """A derivative of the action by the conjugates of fields, and by fields."""
        places = [[self.action.kernels.index(f) for f in each] for each in (conjugates, kernels)]
        return self.in_gram(self.action.derivative(*places))

    def in_gram(self, expr: sp.Expr) -> sp.Expr:
        """An expression at the saddle point, where C of the first layer is its X."""
        pairs = sym.pairs(len(self.names.samples))
        return expr.xreplace({self.field("C", 0, p): self.field("X", 0, p) for p in pairs})

    def mean(self, letter: str, layer: int, pair: Pair | None = None) -> sp.Expr:
        """The saddle point of a field in those before."""
        place = self.action.kernels.index(self.field(letter, layer, pair))
        (population,) = (p for p in self.action.populations if place in p.fields)
        return self.in_gram(population.cumulant([place]) / population.units)

    def step(self, pair: Pair | None = None) -> sp.Expr:
        """F, the Gram matrix of the layer as a function of the one before."""
        C = self.field("C", 1, pair)
        return self.mean("X", 1, pair).xreplace({C: self.mean("C", 1, pair)})

    def slope(self, pair: Pair | None = None, by: Pair | None = None) -> sp.Expr:
        """J, the derivative of F."""
        return self.step(pair).diff(self.field("X", 0, by))

    def carried(self, *samples: int) -> sp.Expr:
        """Product of γ and the scale of each input, what the stream keeps of the layer before."""
        K, count = self.action.covariance, len(self.names.samples)
        return sp.Mul(*[K[count + s, s] / self.field("C", 0, (s, s)) for s in samples])

    def skips(self, last: sp.Expr, first: sp.Expr, pair: Pair) -> sp.Expr:
        """A_lm of both inputs of a pair."""
        if not self.several:
            return A(last, first) ** 2
        return sp.Mul(*[SampleSkip(last, first, sp.Symbol(self.names.samples[s])) for s in pair])

    def noise(self) -> sp.Expr:
        """S, N times the covariance of the Gram matrix for a given layer before."""
        X, Y, C, D = (self.field(f, 1, p) for f in "XC" for p in (self.pair, self.other))
        before = [self.field("X", 0, p) for p in (self.pair, self.other)]
        carried = self.carried(*self.pair, *self.other) * self.derivative(before)
        branch = sym.WIDTH * self.derivative([C, D]) / self.units**2
        return sp.expand((self.derivative([X, Y]) - carried) / sym.WIDTH) + branch

    def of_stream(self, note: str = "") -> str:
        """The note of what is of N units of the stream, where it has N − 1 that are independent."""
        order = r"\text{to leading order}" if self.network.centred else ""
        return r",\ ".join(filter(None, (note, order)))

    def definitions(self, equations: Iterable[Equation], stationary: bool = True) -> list[Equation]:
        """The definitions of what stands in equations and is not defined by them."""
        rights = [e.right if isinstance(e.right, str) else latex(e.right) for e in equations]
        return _tidied(partial(_definitions, text=" ".join(rights)), self)


@lru_cache(maxsize=32)
def _one_layer(
    network: GramNetwork, several: bool, layers: tuple[str, ...]
) -> tuple[BlockNames, Action]:
    samples = (r"\alpha", r"\beta", r"\gamma", r"\delta") if several else ("",)
    letters = (sp.Function(f"phi_{i + 1}") if i else sym.phi for i in range(len(network.factors)))
    pairs = zip(network.factors, letters, strict=True)
    factors = tuple(f if f.expression == h else letter for f, letter in pairs)
    names = BlockNames(layers, samples, factors, short=True)
    return names, block_action(network, names=names)


def tidy(expr: sp.Expr) -> sp.Expr:
    """An expression in averages with one coefficient for each product of them."""
    masks = {node: sp.Dummy() for node in expr.atoms(AverageNode)}
    terms: dict[sp.Expr, sp.Expr] = defaultdict(lambda: sp.S.Zero)
    for term in sp.Add.make_args(sp.expand(expr.xreplace(masks))):
        coefficient, product = term.as_independent(*masks.values())
        terms[product] += coefficient
    rows = []
    for product, coefficient in terms.items():
        short = min(coefficient, sp.factor(coefficient), key=sp.count_ops)
        number, others = short.as_coeff_Mul()
        rows.append(short if product == 1 else number * Coefficient(others) * product)
    return sp.Add(*rows).xreplace({mask: node for node, mask in masks.items()})


def _tidied(rows: Callable[[OneLayer], Iterable[Equation]], n: OneLayer) -> list[Equation]:
    def tidied(right: Any) -> Any:
        return right if isinstance(right, str) or right.has(JointAverage) else tidy(right)

    return [replace(equation, right=tidied(equation.right)) for equation in rows(n)]


def _action(n: OneLayer) -> list[Equation]:
    N, L, (start, out) = sym.WIDTH, sym.DEPTH, n.ends
    x = sp.Mul(*[n.names.of("x", 1, s) for s in n.pair])
    C, X = (n.field(rf"\tilde{{{f}}}", 1) for f in "CX")
    stream = StreamAverage(sp.exp(sp.Sum(n.paired(X * x), (l, 0, L))))
    ends = sym.INPUT_WIDTH * (start.field("C", 0) - _data(n)) * start.field(r"\tilde{C}", 0)
    ends += out.field(r"\tilde{C}", 2) * (out.field("C", 2) - out.mean("C", 2))
    units = Units(N - 1) if n.network.centred else N
    S = units * sp.log(stream)
    S -= N * sp.Sum(n.paired(n.field("X", 1) * X), (l, 0, L)) + N * n.paired(ends)
    for of, summed in n.over_layers():
        S += summed(of.entropy()) - of.units * summed(n.paired(n.field("C", 1) * C))
    return [Equation(r"S(C, X, \tilde{C}, \tilde{X})", S)]


def _data(n: OneLayer) -> sp.Symbol:
    return DATA_PAIR if n.several else DATA


def _saddle_point(n: OneLayer) -> list[Equation]:
    start, out = n.ends
    X, C = (_star(start.field(f, 0)) for f in "XC")
    conjugates = " = ".join(_star(n.field(rf"\tilde{{{f}}}", 1)) for f in "CX")
    rows = ((n, "C", 1, _ALL), (n, "X", 1, n.of_stream(_ALL)), (out, "C", 2, ""))
    return [
        Equation(f"{X} = {C}", _data(n), n.of_stream()),
        *(
            Equation(_star(of.field(f, layer)), _at_saddle(of.mean(f, layer)), note)
            for of, f, layer, note in rows
        ),
        Equation(conjugates, "0"),
    ]


def _star(field: sp.Symbol) -> str:
    name = latex(field)
    return f"{name[:-1]}, *}}" if "_{" in name else f"{name}_{{*}}"


def _at_saddle(expr: sp.Expr) -> sp.Expr:
    fields = [s for s in expr.free_symbols if s.name.startswith(("C^", "X^"))]
    return expr.xreplace({s: sp.Symbol(_star(s)) for s in fields})


def _kernels(n: OneLayer) -> list[Equation]:
    R = GramEntry(*(n.field("X", 1, p) for p in (n.pair, *((s, s) for s in n.pair))))
    entry = n.network.stream(R, n.layers.parameters("l"))
    return [Equation(latex(n.field("K", 1)), entry, r"l \leq L")]


def _entry(block: str, row: sp.Symbol, column: sp.Symbol) -> str:
    return rf"{block[0]}_{{{block[1:]}}}\bigl[{latex(row)}, {latex(column)}\bigr]"


def _mixed(n: OneLayer) -> list[Equation]:
    (start, out), far = n.ends, n.at("m", "l", "L + 1")
    N, X, C = sym.WIDTH, far.field("X", 1), far.field("C", 0)
    rows = []
    for of, layer, pairs in ((n, 1, n.read_pairs), (out, 2, n.pairs)):
        # What a residual kernel has of the Gram matrix before it.
        for pair, by in pairs:
            field, before = of.field("C", layer, pair), of.field("X", layer - 1, by)
            rows.append(Equation(_entry("S21", field, before), of.derivative([field], before)))
    carried = n.skips(l, m, n.pair)
    rows.append(Equation(_entry("S21", X, C), N * carried, n.of_stream(r"m \leq l")))
    for before in (far.field("X", 0, by) for pair, by in n.pairs if pair == n.pair):
        if (slope := far.derivative([X], before)) != 0:
            scale = slope / far.carried(*n.pair)
            rows.append(Equation(_entry("S21", X, before), carried * scale, n.of_stream("m < l")))
    own = (
        (n.field("X", 1), N, r"0 \leq l \leq L"),
        (n.field("C", 1), n.units, _ALL),
        (start.field("C", 0), sym.INPUT_WIDTH * N, ""),
        (out.field("C", 2), N, ""),
    )
    return rows + [Equation(_entry("S21", f, f), -units, note) for f, units, note in own]


def _source(n: OneLayer) -> list[Equation]:
    far = n.at("k", "l", "L + 1")
    X, Y = far.field("X", 0), far.field("X", 1, n.other)
    C, D = (n.field("C", 1, pair) for pair in (n.pair, n.other))
    stream = far.derivative([X, Y]) * n.skips(l, k, n.other) / far.carried(*n.other)
    return [
        Equation(_entry("S22", X, Y), stream, n.of_stream(r"k \leq l")),
        Equation(_entry("S22", C, D), n.derivative([C, D]), _ALL),
    ]


def _slopes(n: OneLayer) -> list[Equation]:
    if not n.several:
        return [Equation("J_{l}", n.slope())]
    names = {n.pair: r"\alpha \beta", (0, 0): r"\alpha \alpha", n.other: r"\gamma \delta"}
    pairs = dict.fromkeys((*n.pairs, *n.read_pairs))
    return [Equation(f"(J_{{l}})_{{{names[p]}, {names[q]}}}", n.slope(p, q)) for p, q in pairs]


def _response(n: OneLayer) -> list[Equation]:
    slope = r"\frac{\partial C^{(l)}}{\partial X^{(l - 1)}}"
    chi = Equation(r"\chi^{(l)}", r"J_{l} \chi^{(l - 1)}, \quad \chi^{(0)} = 1")
    return [chi, Equation(r"\eta^{(l)}", rf"{slope} \, \chi^{{(l - 1)}}"), *_slopes(n)]


def _fluctuations(n: OneLayer) -> list[Equation]:
    start, _ = n.ends
    first = start.derivative([start.field("X", 0, p) for p in (n.pair, n.other)]) / sym.WIDTH
    pairs, T = (r"_{\alpha \beta, \gamma \delta}", r"^{\mathsf{T}}") if n.several else ("", "")
    square = f"J_{{l}} V^{{(l - 1)}} J_{{l}}{T}" if n.several else "J_{l}^{2} V^{(l - 1)}"
    V, S = (f"({x}){pairs}" if pairs else x for x in ("V^{(0)}", "S_{l}"))
    later = rf"V^{{(k)}} \bigl(J_{{l}} \cdots J_{{k + 1}}\bigr){T}"
    return [
        Equation("V^{(l)}", f"{square} + S_{{l}}"),
        Equation(V, first),
        Equation(S, n.noise()),
        *_slopes(n),
        Equation(r"N \langle X^{(k)} \,;\, X^{(l)} \rangle", later, r"k \leq l"),
    ]


def _mean_shift(n: OneLayer) -> list[Equation]:
    centred, colon = n.network.centred, ": " if n.several else ""
    m = rf"J_{{l}} m^{{(l - 1)}} + \frac{{1}}{{2}} F''_{{l}} {colon}V^{{(l - 1)}}"
    curvature = [] if n.several else [Equation("F''_{l}", n.slope().diff(n.field("X", 0)))]
    return [
        Equation("m^{(l)}", m + " - C^{(l)}" * centred),
        Equation("m^{(0)}", "- X^{(0)}" if centred else "0"),
        Equation(r"(F_{l})_{\alpha \beta}" if n.several else "F_{l}", n.step()),
        *_slopes(n),
        *curvature,
        Equation(r"N \bigl(\langle X^{(l)} \rangle - X^{(l)}_{*}\bigr)", "m^{(l)}"),
    ]


def _definitions(n: OneLayer, text: str) -> list[Equation]:
    plain, rows = replace(n.names, short=False), []
    for place, layer in ((1, "l"), (2, "L + 1")):
        for name, value in zip("ac", plain.coefficients(n.layers, place), strict=False):
            rows.append(Equation(f"{name}_{{{layer}}}", value))
    rows = sorted((row for row in rows if row.left in text), key=lambda row: row.left[0])
    if r"\Sigma" in text:
        far = n.at("k", "m", "l")
        x = [latex(far.names.of("x", place, s)) for place, s in zip((0, 2), n.pair, strict=True)]
        both = A(k, m) * A(l, m)
        if n.several:
            one, other = (sp.Symbol(far.names.samples[s]) for s in n.pair)
            both = SampleSkip(k, m, one) * SampleSkip(l, m, other)
        covariance = sp.Sum(both * far.field("C", 1), (m, 0, k))
        left = rf"\langle {' '.join(x)} \rangle_{{{StreamAverage.measure}}}"
        rows.append(Equation(left, covariance, r"k \leq l"))
    if r"\Sigma" in text or "A_{l" in text:
        near = n.at("j - 1", "j", "L + 1")
        factor, own = (of.in_gram(of.carried(0)) for of in (near, n))
        # Of γ alone, if it is the same in all layers.
        same = factor == own
        carried = own ** (l - m) if same else sp.Product(factor, (sp.Symbol("j"), m + 1, l))
        skip = SampleSkip(l, m, sp.Symbol(r"\alpha")) if n.several else A(l, m)
        rows.append(Equation(latex(skip), carried))
    if "Q^{(l)}" in text:
        hidden, count = n.action.populations[1], len(n.names.samples)
        for first in range(0, len(hidden.variables), count):
            one, other = (first + s for s in n.pair)
            product = latex(hidden.variables[one] * hidden.variables[other])
            left = rf"\langle {product} \rangle_{{\mathcal{{N}}(0, Q^{{(l)}})}}"
            rows.append(Equation(left, hidden.covariance[one, other]))
    others = {latex(_data(n)): data_equation(n.several), r"\,;": Equation(*CONNECTED)}
    others[r"\nu_{0}"] = Equation(r"\nu_{0}", r"d_{\mathrm{in}} / N")
    for factor, written in zip(n.network.factors, n.names.factors, strict=True):
        if written != factor:
            name = latex(sp.Symbol(str(written)))
            others[name] = Equation(f"{name}(h)", factor.expression)
    return rows + [equation for mark, equation in others.items() if mark in text]


def _as_product(n: OneLayer) -> list[Equation]:
    return [Equation("G_{11}", "G_{12} S_{22} G_{21}"), *_source(n)]


def _as_inverse(n: OneLayer) -> list[Equation]:
    return [Equation("G_{12}", "- S_{21}^{-1}"), *_mixed(n)]


_TABLE = table(
    action=_action,
    saddle_point=_saddle_point,
    kernels=_kernels,
    propagator=lambda n: [*_as_inverse(n), G21_ROW, *_as_product(n), *zero("G22")(n)],
    S21=_mixed,
    S22=_source,
    G11=_as_product,
    G12=_as_inverse,
    response=_response,
    fluctuations=_fluctuations,
    mean_shift=_mean_shift,
)
FORMULAS = {name: partial(_tidied, rows) for name, rows in _TABLE.items()}
