"""The formulas of Gram chains for symbolic layers, from the action of one layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import sympy as sp

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.activations import h
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.networks.parameters import described
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.definitions import CONNECTED, DATA, DATA_PAIR, data_equation
from fieldtheory.theory.formulas import SYMBOLS, listed_symbols
from fieldtheory.theory.gram_action import GramNotation, gram_action, layer_parameters
from fieldtheory.theory.typesetting.latex import SKIP, latex
from fieldtheory.theory.typesetting.layer_quantities import A, JointAverage, LayerQuantity, PairSum
from fieldtheory.theory.typesetting.layout import Equation, page

TEMPLATE = Path(__file__).with_name("gram_appendix.tex")
l, m, k = generic.l, generic.m, generic.k
_ALL = r"1 \leq l \leq L"


class SampleSkip(LayerQuantity, template="A_{{{0}, {1}; {2}}}", rank=SKIP):
    """A_lm of an input."""


class HiddenAverage(JointAverage):
    """⟨F⟩ over the signals of the hidden units of a branch."""

    def measure_latex(self, printer: Any) -> str:
        """N(0, Q^(l))."""
        return r"\mathcal{N}(0, Q^{(l)})"


class OneLayer:
    """The action of one layer of a network between others, of one input or of four named ones.

    Parameters
    ----------
    network : GramNetwork
    inputs : int
    layers : sequence of str
        The layer before, the layer and the readout.
    """

    def __init__(
        self,
        network: GramNetwork,
        inputs: int,
        layers: Sequence[str],
    ) -> None:
        self.network, self.inputs, self.several = network, inputs, inputs > 1
        samples = (r"\alpha", r"\beta", r"\gamma", r"\delta") if self.several else ("",)
        letters = tuple(map(self._letter, range(len(network.factors))))
        self.names = GramNotation(tuple(layers), samples, letters, short=True)
        self.action = gram_action(network, inputs, self.names)
        self.pair, self.other = ((0, 1), (2, 3)) if self.several else ((0, 0), (0, 0))

    def _letter(self, factor: int) -> Callable[[sp.Symbol], sp.Expr]:
        function = self.network.factors[factor]
        if function.expression == h:
            return function
        return sym.phi if factor == 0 else sp.Function(f"phi_{factor + 1}")

    def field(self, letter: str, layer: int, pair: tuple[int, int] | None = None) -> sp.Symbol:
        """C or X of a pair of inputs, α and β if left out."""
        return self.names.field(letter, layer, self.pair if pair is None else pair)

    def derivative(self, conjugates: Sequence[sp.Symbol], *kernels: sp.Symbol) -> sp.Expr:
        """A derivative of the action by the conjugates of fields, and by fields."""
        places = [[self.action.kernels.index(f) for f in each] for each in (conjugates, kernels)]
        return self.of_gram(self.action.derivative(*places))

    def of_gram(self, expr: sp.Expr) -> sp.Expr:
        """An expression at the saddle point, where C of the first layer stands for its X."""
        pairs = sym.pairs(len(self.names.samples))
        return expr.xreplace({self.field("C", 0, p): self.field("X", 0, p) for p in pairs})

    def mean(self, letter: str, layer: int, pair: tuple[int, int] | None = None) -> sp.Expr:
        """The saddle point of a field in those before."""
        field = self.field(letter, layer, pair)
        place = self.action.kernels.index(field)
        (population,) = (p for p in self.action.populations if place in p.fields)
        return self.of_gram(population.cumulant([place]) / population.units)

    def step(self, pair: tuple[int, int] | None = None) -> sp.Expr:
        """F, the Gram matrix of the layer as a function of the one before."""
        C = self.field("C", 1, pair)
        return self.mean("X", 1, pair).xreplace({C: self.mean("C", 1, pair)})

    def slope(self, pair: tuple[int, int] | None = None, by: tuple[int, int] | None = None) -> Any:
        """J, the derivative of F."""
        return tidy(self.step(pair).diff(self.field("X", 0, by)))

    def carried(self, *samples: int) -> sp.Expr:
        """The product of what a layer carries of the one before, γ and the scale of an input."""
        count = len(self.names.samples)
        K = self.action.covariance
        own = (K[count + s, s] / self.names.field("C", 0, (s, s)) for s in samples)
        return sp.Mul(*own)

    def noise(self) -> tuple[sp.Expr, sp.Expr]:
        """N times the covariance that the units of the layer add, of the stream and its branch."""
        X, Y, C, D = (self.field(f, 1, p) for f in "XC" for p in (self.pair, self.other))
        before = [self.field("X", 0, p) for p in (self.pair, self.other)]
        scales = self.carried(*self.pair, *self.other)
        stream = self.derivative([X, Y]) - scales * self.derivative(before)
        branch = sym.WIDTH * self.derivative([C, D]) / sym.HIDDEN_WIDTH**2
        return sp.expand(stream / sym.WIDTH), branch

    def skips(self, last: sp.Expr, first: sp.Expr, pair: tuple[int, int]) -> sp.Expr:
        """A_lm of one input twice, or of both of a pair."""
        if not self.several:
            return A(last, first) ** 2
        return sp.Mul(*[SampleSkip(last, first, sp.Symbol(self.names.samples[s])) for s in pair])

    def at(self, *layers: str) -> OneLayer:
        """The same with other names of the layers."""
        return one_layer(self.network, self.inputs, *layers)

    @property
    def last(self) -> OneLayer:
        """The same for the last layer, before the readout."""
        return self.at("L - 1", "L", "L + 1")


@lru_cache(maxsize=32)
def one_layer(network: GramNetwork, inputs: int, *layers: str) -> OneLayer:
    """`OneLayer`, kept."""
    return OneLayer(network, inputs, layers)


def tidy(expr: sp.Expr) -> sp.Expr:
    """An expression in averages with the factors of each put together."""
    masks = {node: sp.Dummy() for node in expr.atoms(AverageNode)}
    terms = sp.collect(sp.expand(expr.xreplace(masks)), list(masks.values()), evaluate=False)
    total = sp.Add(*[sp.factor(factor) * product for product, factor in terms.items()])
    return total.xreplace({mask: node for node, mask in masks.items()})


def _action(n: OneLayer) -> list[Equation]:
    N, M, L = sym.WIDTH, sym.HIDDEN_WIDTH, sym.DEPTH
    paired: Callable[[sp.Expr], sp.Expr] = PairSum if n.several else lambda x: x

    def conjugate(letter: str, layer: int = 1, of: OneLayer = n) -> sp.Symbol:
        return of.field(rf"\tilde{{{letter}}}", layer)

    x = sp.Mul(*[n.names.signal("x", 1, s) for s in n.pair])
    observable = n.action.observables[n.action.kernels.index(n.field("C", 1))]
    hidden = HiddenAverage(sp.exp(paired(conjugate("C") * observable)))
    stream = JointAverage(sp.exp(sp.Sum(paired(conjugate("X") * x), (l, 0, L))))
    X, C = (paired(n.field(f, 1) * conjugate(f)) for f in "XC")
    start = n.at("0", "1", "2")
    from_input = sym.INPUT_WIDTH * (start.field("C", 0) - _data(n)) * conjugate("C", 0, start)
    readout = conjugate("C", 2, n.last) * (n.last.field("C", 2) - n.last.mean("C", 2))
    S = (N - int(n.network.centred)) * sp.log(stream) + sp.Sum(M * sp.log(hidden), (l, 1, L))
    S -= N * sp.Sum(X, (l, 0, L)) + M * sp.Sum(C, (l, 1, L)) + N * paired(from_input + readout)
    return [Equation(r"S(C, X, \tilde{C}, \tilde{X})", S)]


def _data(n: OneLayer) -> sp.Symbol:
    return DATA_PAIR if n.several else DATA


def _saddle_point(n: OneLayer) -> list[Equation]:
    def row(of: OneLayer, letter: str, layer: int, note: str = "") -> Equation:
        return Equation(_star(of.field(letter, layer)), _at_saddle(of.mean(letter, layer)), note)

    X, C = (_star(n.at("0", "1", "2").field(f, 0)) for f in "XC")
    tilde = [_star(n.field(rf"\tilde{{{f}}}", 1)) for f in "CX"]
    return [
        Equation(f"{X} = {C}", _data(n)),
        row(n, "C", 1, _ALL),
        row(n, "X", 1, _ALL),
        row(n.last, "C", 2),
        Equation(" = ".join(tilde), sp.S.Zero),
    ]


def _star(field: sp.Symbol) -> str:
    name = latex(field)
    return f"{name[:-1]}, *}}" if "_{" in name else f"{name}_{{*}}"


def _at_saddle(expr: sp.Expr) -> sp.Expr:
    fields = [s for s in expr.free_symbols if re.match(r"[CX]\^", s.name)]
    return expr.xreplace(
        {s: sp.Symbol(_star(s), real=True, positive=s.is_positive) for s in fields}
    )


def _kernels(n: OneLayer) -> list[Equation]:
    R = GramEntry(*(n.field("X", 1, p) for p in (n.pair, *((s, s) for s in n.pair))))
    entry = n.network.stream(R, layer_parameters(n.network, "l"))
    return [Equation(latex(n.field("K", 1)), entry, r"l \leq L")]


def _entry(block: str, row: sp.Symbol, column: sp.Symbol) -> str:
    return rf"{block[0]}_{{{block[1:]}}}\bigl[{latex(row)}, {latex(column)}\bigr]"


def _mixed(n: OneLayer) -> list[Equation]:
    def row(of: OneLayer, letter: str, layer: int, before: int) -> list[Equation]:
        """What a field has of the Gram matrix before; for several inputs of α and β, and of α."""
        own = (0, 0)
        pairs = [(n.pair, n.pair)] + ([(n.pair, own), (own, own)] if n.several else [])
        fields = [(of.field(letter, layer, p), of.field("X", before, q)) for p, q in pairs]
        return [
            Equation(_entry("S21", field, X), tidy(of.derivative([field], X)))
            for field, X in fields
        ]

    far = n.at("m", "l", "L + 1")
    X, before = far.field("X", 1), [far.field(f, 0) for f in "CX"]
    square, scale = n.skips(l, m, n.pair), far.carried(*n.pair)
    rows = [
        *row(n, "C", 1, 0),
        Equation(_entry("S21", X, before[0]), sym.WIDTH * square, r"m \leq l"),
    ]
    for pair in [n.pair, *([(0, 0)] if n.several else [])]:
        other = far.field("X", 0, pair)
        if (entry := far.derivative([X], other)) != 0:
            carried = square * sp.factor(entry / scale)
            rows.append(Equation(_entry("S21", X, other), carried, "m < l"))
    diagonal = [
        (n.field("X", 1), sym.WIDTH, r"0 \leq l \leq L"),
        (n.field("C", 1), sym.HIDDEN_WIDTH, _ALL),
    ]
    diagonal += [(n.last.field("C", 2), sym.WIDTH, "")]
    diagonal += [(n.at("0", "1", "2").field("C", 0), sym.WIDTH * sym.INPUT_WIDTH, "")]
    rows += row(n.last, "C", 2, 1)
    return rows + [Equation(_entry("S21", f, f), -units, note) for f, units, note in diagonal]


def _source(n: OneLayer) -> list[Equation]:
    far = n.at("k", "l", "L + 1")
    X, Y = far.field("X", 0), far.field("X", 1, n.other)
    scale = n.skips(l, k, n.other) / far.carried(*n.other)
    C, D = n.field("C", 1), n.field("C", 1, n.other)
    return [
        Equation(_entry("S22", X, Y), sp.factor(far.derivative([X, Y]) * scale), r"k \leq l"),
        Equation(_entry("S22", C, D), n.derivative([C, D]), _ALL),
    ]


def _slopes(n: OneLayer) -> list[Equation]:
    if not n.several:
        return [Equation("J_{l}", n.slope())]
    names = {n.pair: r"\alpha \beta", (0, 0): r"\alpha \alpha"}
    pairs = [(n.pair, n.pair), (n.pair, (0, 0)), ((0, 0), (0, 0))]
    return [Equation(f"(J_{{l}})_{{{names[p]}, {names[q]}}}", n.slope(p, q)) for p, q in pairs]


def _response(n: OneLayer) -> list[Equation]:
    X, C = (latex(f) for f in (n.field("X", 0), n.field("C", 1)))
    return [
        Equation(r"\chi^{(l)}", r"J_{l} \chi^{(l - 1)}, \quad \chi^{(0)} = 1"),
        Equation(r"\eta^{(l)}", rf"\frac{{\partial {C}}}{{\partial {X}}} \, \chi^{{(l - 1)}}"),
        *_slopes(n),
    ]


def _fluctuations(n: OneLayer) -> list[Equation]:
    stream, branch = n.noise()
    start = n.at("0", "1", "2")
    first = [start.field("X", 0, p) for p in (n.pair, n.other)]
    below = r"_{\alpha \beta, \gamma \delta}" if n.several else ""
    V, S = (f"({x}){below}" if below else x for x in ("V^{(0)}", "S_{l}"))
    square = r"J_{l} V^{(l - 1)} J_{l}^{\mathsf{T}}" if n.several else "J_{l}^{2} V^{(l - 1)}"
    later = r"V^{(k)} \bigl(J_{l} \cdots J_{k + 1}\bigr)" + r"^{\mathsf{T}}" * n.several
    return [
        Equation("V^{(l)}", f"{square} + S_{{l}}"),
        Equation(V, start.derivative(first) / sym.WIDTH),
        Equation(S, stream + branch),
        *_slopes(n),
        Equation(r"N \langle X^{(k)} \,;\, X^{(l)} \rangle", later, r"k \leq l"),
    ]


def _mean_shift(n: OneLayer) -> list[Equation]:
    C, X = (latex(of) for of in (n.field("C", 1), n.field("X", 0)))
    curved = (
        r"\frac{1}{2} F''_{l} : V^{(l - 1)}" if n.several else r"\frac{1}{2} F''_{l} V^{(l - 1)}"
    )
    rows = [
        Equation("m^{(l)}", f"J_{{l}} m^{{(l - 1)}} + {curved}" + f" - {C}" * n.network.centred),
        Equation("m^{(0)}", f"- {X.replace('l - 1', '0')}" if n.network.centred else sp.S.Zero),
        Equation(latex(n.field("F", 1)) if n.several else "F_{l}", n.step()),
    ]
    if not n.several:
        rows.append(Equation("F''_{l}", tidy(n.slope().diff(n.field("X", 0)))))
    means = rf"\langle {latex(n.field('X', 1))} \rangle - {_star(n.field('X', 1))}"
    return [*rows, *_slopes(n), Equation(rf"N \bigl({means}\bigr)", "m^{(l)}")]


def _definitions(n: OneLayer, text: str) -> list[Equation]:
    """The definitions of what stands in formulas and is not defined by them."""
    plain = replace(n.names, short=False)
    of_layer = plain.coefficients(n.network, 1), plain.coefficients(n.network, 2)
    rows = [
        Equation(f"{name}_{{{layer}}}", of_layer[place][position])
        for position, name in enumerate("ac")
        for place, layer in enumerate(("l", "L + 1"))
        if f"{name}_{{{layer}}}" in text
    ]
    if "A_{l" in text:
        near = n.at("j - 1", "j", "L + 1")
        product = sp.Product(near.carried(n.pair[0]), (sp.Symbol("j"), m + 1, l))
        left = latex(SampleSkip(l, m, sp.Symbol(r"\alpha")) if n.several else A(l, m))
        rows.append(Equation(left, near.of_gram(product)))
    if "Q^{(l)}" in text:
        hidden = n.action.populations[1]
        count = len(n.names.samples)
        for first in range(0, len(hidden.variables), count):
            one, other = (first + s for s in n.pair)
            product = latex(hidden.variables[one] * hidden.variables[other])
            left = rf"\langle {product} \rangle_{{\mathcal{{N}}(0, Q^{{(l)}})}}"
            rows.append(Equation(left, hidden.covariance[one, other]))
    if latex(_data(n)) in text:
        rows.append(data_equation(n.several))
    if r"\,;" in text:
        rows.append(Equation(*CONNECTED))
    if r"\phi" in text:
        rows.append(Equation(r"\phi(h)", n.network.activation.expression))
    return rows


def _named(name: str, rows: Callable[[OneLayer], list[Equation]] | None = None) -> Any:
    """A block by others: S12, G12 and G11."""
    block = {
        "S12": r"S_{21}^{\mathsf{T}}",
        "G12": "- S_{21}^{-1}",
        "G21": r"G_{12}^{\mathsf{T}}",
        "G11": "G_{12} S_{22} G_{21}",
    }.get(name, sp.S.Zero)
    equation = Equation(f"{name[0]}_{{{name[1:]}}}", block)
    return lambda n: [equation, *(rows(n) if rows else [])]


GENERIC: dict[str, Callable[[OneLayer], list[Equation]]] = {
    "action": _action,
    "saddle_point": _saddle_point,
    "kernels": _kernels,
    "hessian": lambda n: [*_named("S11")(n), *_named("S12", _mixed)(n), *_source(n)],
    "propagator": lambda n: (
        [equation for name in ("G12", "G21", "G11", "G22") for equation in _named(name)(n)]
        + [*_mixed(n), *_source(n)]
    ),
    "S11": _named("S11"),
    "S12": _named("S12", _mixed),
    "S21": _mixed,
    "S22": _source,
    "G11": _named("G11", _fluctuations),
    "G12": _named("G12", _mixed),
    "G21": _named("G21", _named("G12", _mixed)),
    "G22": _named("G22"),
    "response": _response,
    "fluctuations": _fluctuations,
    "mean_shift": _mean_shift,
}
QUANTITIES = (*GENERIC, SYMBOLS)


def results_latex(
    network: GramNetwork,
    inputs: int,
    quantities: Sequence[str],
    column: float,
    numbered: bool = False,
    defined: set[str] | None = None,
) -> str:
    """LaTeX of results one below the other, and of what stands in them, each equation once.

    Equations whose left sides are in ``defined`` are left out, and those written added to it.
    """
    if list(quantities) == [SYMBOLS]:
        return listed_symbols(meanings(network, inputs), column, numbered)
    n = one_layer(network, inputs, "l - 1", "l", "L + 1")
    defined = set() if defined is None else defined
    blocks = []

    def new(equations: list[Equation]) -> list[Equation]:
        fresh = list({e.left: e for e in equations if e.left not in defined}.values())
        defined.update(e.left for e in fresh)
        blocks.append(fresh)
        return fresh

    written = [e for name in quantities for e in new(GENERIC[name](n))]
    new(
        _definitions(
            n, " ".join(e.right if isinstance(e.right, str) else latex(e.right) for e in written)
        )
    )
    return page(blocks, column, quantities[0] if numbered else "")


_MEANINGS = r"""
N,\ M,\ L = width of the stream; hidden units of a branch; number of layers
k,\ l,\ m,\ j = layers; $0$ is the readin, $L+1$ the readout
x^{(l)} = signal of a unit of the stream, the sum before a norm
u^{(l)},\ v^{(l)} = signals of a hidden unit
\phi = activation; primes are its derivatives
C^{(l)},\ \tilde{C}^{(l)} = residual kernel, covariance of what layer $l$ adds; its conjugate
X^{(l)},\ \tilde{X}^{(l)} = Gram matrix of the stream over $N$; its conjugate
K^{(l)} = the same of what the skip connection carries
Q^{(l)} = covariance of the signals of a hidden unit
F_{l},\ J_{l} = Gram matrix of a layer as a function of the one before; its derivative
V^{(l)},\ m^{(l)} = $N$ times covariance and shift of the mean of $X^{(l)}$
S_{l} = $N$ times the covariance of $X^{(l)}$ for a given layer before
\chi^{(l)},\ \eta^{(l)} = derivatives of $X$ and $C$ by the kernel of the input
S_{11},\ S_{12},\ S_{21},\ S_{22} = second derivatives of the action, $1$ by fields, $2$ by conjugates
G_{11},\ G_{12},\ G_{21},\ G_{22} = propagator, minus the inverse of these
d_{\mathrm{in}},\ \nu_{0} = dimension of the input; the same over $N$
"""


def meanings(network: GramNetwork, inputs: int) -> dict[str, str]:
    """The meaning of symbols by their LaTeX, and of the parameters of a network."""
    rows = [line.split(" = ", 1) for line in _MEANINGS.strip().split("\n")]
    if inputs > 1:
        rows.append(
            [
                r"\alpha,\ \beta,\ \gamma,\ \delta",
                r"inputs; fields are of pairs $\alpha \leq \beta$",
            ]
        )
    parameters = layer_parameters(network, "l").items()
    return dict(rows) | {latex(symbol): described(name)[0] for name, symbol in parameters}


def document(network: GramNetwork, inputs: int, column: float) -> str:
    """The whole text, which needs amsmath and hyperref."""
    defined: set[str] = set()

    def part(match: re.Match[str]) -> str:
        if match[1] == "width":
            return f"{column:g}"
        quantities = match[1].split(",")
        return results_latex(network, inputs, quantities, column, numbered=True, defined=defined)

    text = re.sub("<<(.*?)>>", part, TEMPLATE.read_text(encoding="utf-8"))
    return text.replace(r"\log", r"\ln")
