"""How quantities of layers are written, and the definitions that are listed below a formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.networks.activations import Activation
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.elementary_averages import K_XX, K_XY, K_YY, X, Y, layer_averages
from fieldtheory.theory.evaluation import with_activation
from fieldtheory.theory.scales import Layers
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layer_quantities import (
    A,
    Bias,
    C,
    Conjugate,
    Correlator,
    Earlier,
    Growth,
    JointAverage,
    K,
    RelativeWidth,
    SkipScale,
    Slope,
    SlopeSquare,
    Stationary,
    Weight,
)
from fieldtheory.theory.typesetting.layout import Equation
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH, width

l, k, m, j = generic.l, generic.k, generic.m, generic.j
CONNECTED = (
    r"\langle A \,;\, B \rangle",
    r"\langle A B \rangle - \langle A \rangle \langle B \rangle",
)
# The indices of a pair of inputs.
PAIR = sp.Symbol(r"\alpha \beta")
DATA = sym.data_kernel()
DATA_PAIR = sp.Symbol(r"C^{(0)}_{\mathrm{data}, \alpha \beta}")


@dataclass(frozen=True)
class Notation:
    """Notation of the theory of a family of networks, in a column of a width in points.

    ``last`` is L, a symbol or a number; for P >= 2 ``inputs`` the averages M'_l and Q_kl are
    matrices over the pairs of inputs; ``abbreviate`` lets a_l, c_l, M'_l, Q_kl stand for what they
    mean.
    """

    fields: ClassVar[str] = "C"

    layers: Layers
    last: sp.Expr
    inputs: int
    activation: Activation | None
    abbreviate: bool
    column: float = TEXT_WIDTH

    @property
    def matrices(self) -> bool:
        """Whether M'_l and Q_kl are matrices."""
        return self.inputs > 1

    @property
    def numbered(self) -> bool:
        """Whether layers are numbers."""
        return bool(self.last.is_number)

    @property
    def hidden(self) -> list[sp.Expr]:
        """The layers 1, ..., L: each number, or l for all."""
        return [sp.Integer(i + 1) for i in range(int(self.last))] if self.numbered else [l]

    def meanings(self, document: str = "") -> dict[str, str]:
        """What symbols mean that results do not define, or all in a document."""
        return sym.meanings(self.layers.family, self.inputs, document)

    def settled(self, expr: sp.Expr) -> sp.Expr:
        """A formula with the constants of the network put in."""
        symbols = sym.parameters(self.layers.family, "l")
        expr = expr.xreplace({symbols[name]: value for name, value in self.layers.fixed})
        coefficients = self._coefficients(expr)
        numbers = {name: value for name, value in coefficients.items() if value.is_number}
        expr = _constant_skip(expr.xreplace(numbers), self.layers.skip)
        # A sum over layers that are numbers is written out.
        return expr.replace(
            lambda e: isinstance(e, sp.Sum) and all(x.is_number for x in e.limits[0][1:]),
            lambda e: e.doit(deep=False),
        )

    def short(self, expr: sp.Expr) -> sp.Expr:
        """A formula in M'_l and Q_kl."""
        return _averages_named(self.settled(expr), self.layers.family)

    def written(self, expr: sp.Expr) -> sp.Expr:
        """A formula as it is printed: in short symbols, or in what they stand for."""
        expr = self.short(expr)
        return self.chosen(expr if self.abbreviate else self.written_out(expr))

    def written_out(self, expr: sp.Expr) -> sp.Expr:
        """A formula without short symbols; of several inputs averages stay matrices."""
        family = self.layers.family
        meanings: dict[type, Any] = {
            Growth: lambda l: self.short(generic.growth(l, family)),
            Slope: lambda l: generic.susceptibility(l, family),
            SlopeSquare: lambda l: generic.slope_square(l, family),
            Correlator: lambda k, l: generic.correlator(k, l, family),
        }
        for kind, meaning in ({} if self.matrices else meanings).items():
            expr = expr.replace(kind, meaning)
        expr = self.settled(expr.replace(A, _skip_product))
        return expr.xreplace(self._coefficients(expr))

    def _coefficients(self, expr: sp.Expr) -> dict[sp.Expr, sp.Expr]:
        """The coefficients in an expression, in the parameters of the network."""
        rules = {}
        for name in expr.atoms(Weight, Bias):
            readout = name.args[0] == self.last + 1
            of = self.layers.readout if readout else self.layers.hidden(latex(name.args[0]))
            rules[name] = of.weight if isinstance(name, Weight) else of.bias
        return rules

    def chosen(self, expr: sp.Expr) -> sp.Expr:
        """Averages with φ put in where they are narrower than with the letter φ."""
        if self.activation is None:
            return expr
        return sym.with_averages(expr, lambda node: _narrower(node, self.activation))

    def rows(self, left: Any, formula: Any, layer: sp.Symbol, note: str = "") -> list[Equation]:
        """A formula for layers 1, ..., L + 1: one, at each number, or the readout apart."""

        def row(at: Any, note: str = "") -> Equation:
            return Equation(left(at), self.written(formula(at)), note)

        if self.numbered:
            return [row(at) for at in (*self.hidden, self.last + 1)]
        if self.abbreviate:
            return [row(layer, note)]
        return [row(layer, rf"{layer} \leq {latex(self.last)}"), row(self.last + 1)]

    def definitions(self, equations: Iterable[Any], stationary: bool = True) -> list[Equation]:
        """The definitions of what stands on the right-hand sides and is not defined yet."""
        defined = {e.left for e in equations}
        right_sides = [sp.sympify(e.right) for e in equations if not isinstance(e.right, str)]
        definitions: list[Equation] = []
        waiting = list(self._definitions(sp.Tuple(*right_sides)))
        while waiting:
            new = [
                e for e in waiting if e.left not in defined | {other.left for other in definitions}
            ]
            definitions += new
            used = sp.Tuple(*[e.right for e in new if not isinstance(e.right, str)])
            waiting = list(self._definitions(used)) if new else []
        if stationary:
            # At the saddle point, where all but the action is taken.
            definitions = [
                e if isinstance(e.right, str) else replace(e, right=e.right.replace(C, Stationary))
                for e in definitions
            ]
        return sorted(dict.fromkeys(definitions), key=_place)

    def _definitions(self, expressions: sp.Tuple) -> Iterator[Equation]:
        for kind, name in ((Weight, "a"), (Bias, "c")):
            if expressions.atoms(kind):
                hidden, readout = (
                    latex(self._coefficients(kind(layer))[kind(layer)])
                    for layer in (l, self.last + 1)
                )
                after = rf"{name}_{{{latex(self.last + 1)}}}"
                if self.last == 1:
                    yield Equation(f"{name}_{{1}}", hidden.replace("_{l}", "_{1}"))
                    yield Equation(after, readout)
                else:
                    layers = rf"\quad (1 \leq l \leq {latex(self.last)}), \qquad {after} ="
                    yield Equation(f"{name}_{{l}}", f"{hidden} {layers} {readout}")
        if expressions.atoms(Slope):
            yield from self._slopes()
        if expressions.atoms(SlopeSquare):
            slope = generic.slope_square(l, self.layers.family)
            left = r"\dot{M}_{l}"
            if self.matrices:
                slope = _of_inputs(
                    layer_averages(self.layers.family.features).covariance.diff(K_XY)
                )
                left = r"(\dot{M}_{l})_{\alpha \beta}"
            yield Equation(left, self.chosen(slope))
        if expressions.atoms(Correlator):
            yield self._correlator()
        if expressions.atoms(Growth):
            yield Equation("r_{l}", self.written(generic.growth(l, self.layers.family)))
        if expressions.atoms(RelativeWidth):
            yield Equation(r"\nu_{l}", r"1 \quad (l \geq 1), \qquad \nu_{0} = d_{\mathrm{in}} / N")
        elif sym.INPUT_WIDTH in expressions.free_symbols:
            yield Equation(r"\nu_{0}", r"d_{\mathrm{in}} / N")
        if any(s.name.startswith(DATA.name[:-1]) for s in expressions.free_symbols):
            yield data_equation(self.matrices)
        if expressions.atoms(A):
            yield Equation("A_{l, m}", sp.Product(SkipScale(j), (j, m + 1, l)))
        averages = expressions.atoms(GaussianAverage, ConnectedCorrelator, JointAverage)
        if averages or expressions.atoms(K):
            yield from self._kernels(any(map(_is_of_several_layers, averages)))
        if expressions.atoms(ConnectedCorrelator):
            yield Equation(*CONNECTED)
        if self.activation is not None and expressions.atoms(sp.core.function.AppliedUndef):
            yield Equation(r"\phi(h)", self.activation.expression)

    def _kernels(self, several: bool) -> Iterator[Equation]:
        pair = r"_{\alpha \beta}" if self.matrices else ""
        kernel = self.settled(generic.kernel(l))
        if self.matrices:
            kernel = of_pair(kernel)
        yield Equation(f"K^{{(l)}}{pair}", kernel)
        if several:
            covariance = self.settled(generic.kernel_covariance(k, l))
            covariance = of_pair(covariance) if self.matrices else covariance
            note = r"k \neq l" if covariance == 0 else ""
            yield Equation(f"K^{{(k, l)}}{pair}", covariance, note)

    def _slopes(self) -> Iterator[Equation]:
        if not self.matrices:
            yield Equation("M'_{l}", self.chosen(generic.susceptibility(l, self.layers.family)))
            return
        layer = layer_averages(self.layers.family.features)
        entries = {
            r"\alpha \alpha, \alpha \alpha": layer.moment.diff(K_XX),
            r"\alpha \beta, \alpha \beta": layer.covariance.diff(K_XY),
            r"\alpha \beta, \alpha \alpha": layer.covariance.diff(K_XX),
            r"\alpha \beta, \beta \beta": layer.covariance.diff(K_YY),
        }
        for pairs, entry in entries.items():
            yield Equation(f"(M'_{{l}})_{{{pairs}}}", self.chosen(_of_inputs(entry)))

    def _correlator(self) -> Equation:
        if not self.matrices:
            correlator = generic.correlator(k, l, self.layers.family)
            return Equation("Q_{k l}", self.chosen(correlator))
        signals = [*pair_signals(k), *pair_signals(l, "gamma delta")]
        products = of_pairs(self.layers, k), of_pairs(self.layers, l, "gamma delta")
        node = ConnectedCorrelator(*products, signals, free_covariance(4))
        return Equation(r"(Q_{k l})_{\alpha \beta, \gamma \delta}", self.chosen(node))


def data_equation(of_pair: bool) -> Equation:
    """The kernel of the input from its data."""
    one, other = (r"_{\alpha}", r"_{\beta}") if of_pair else ("", "")
    weight, bias = latex(sym.READIN_WEIGHT**2), latex(sym.READIN_BIAS**2)
    product = rf"\frac{{{weight}}}{{d_{{\mathrm{{in}}}}}} x{one}^{{\mathsf{{T}}}} x{other}"
    return Equation(latex(DATA_PAIR if of_pair else DATA), f"{product} + {bias}")


@lru_cache(maxsize=1024)
def _narrower(node: sp.Expr, activation: Activation) -> sp.Expr:
    explicit = with_activation(node, activation)
    return explicit if width(latex(explicit)) < width(latex(node)) else node


def of_pairs(layers: Layers, layer: sp.Expr, names: str = "alpha beta") -> sp.Expr:
    """The observable g(h_α, h_β) of the signals of a layer."""
    first, second = pair_signals(layer, names)
    features = layers.features(first), layers.features(second)
    return sp.Add(*[f * g for f, g in zip(*features, strict=True)])


def pair_signals(layer: sp.Expr, names: str = "alpha beta") -> list[sp.Symbol]:
    """The signals of two inputs in a layer."""
    return [sp.Symbol(rf"h^{{({layer})}}_{{\{name}}}", real=True) for name in names.split()]


def of_pair(kernel: sp.Expr) -> sp.Expr:
    """An expression in kernels as that of a pair of inputs."""
    for kind in (C, Conjugate):
        kernel = kernel.replace(kind, lambda layer, kind=kind: kind(layer, PAIR))
    return kernel


def free_covariance(size: int) -> sp.Matrix:
    """A covariance of which nothing is known."""

    def entry(row: int, column: int) -> sp.Symbol:
        index = f"{min(row, column)}{max(row, column)}"
        return sp.Symbol(f"K_{index}", **({"positive" if row == column else "real": True}))

    return sp.Matrix(size, size, entry)


def _averages_named(expr: sp.Expr, family: Any) -> sp.Expr:
    """M'_l and Q_kl for the averages of a formula for symbolic layers."""
    rules: dict[sp.Expr, sp.Expr] = {}
    for node in expr.atoms(GaussianAverage, ConnectedCorrelator):
        layers = [node.covariance[i, i] for i in range(len(node.variables))]
        if not all(isinstance(variance, K) for variance in layers):
            continue
        at = layers[0].args[0], layers[-1].args[0]
        named = _names(isinstance(node, GaussianAverage), family, *at)
        if node in named:
            rules |= named
    return expr.xreplace(rules)


@lru_cache(maxsize=1024)
def _names(one: bool, family: Any, first: sp.Expr, last: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """The averages in M'_l, if it is one of one layer, or in Q_kl by these symbols."""
    if one:
        return average_named(generic.susceptibility(first, family), Slope(first))
    return average_named(generic.correlator(first, last, family), Correlator(first, last))


def average_named(expr: sp.Expr, symbol: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """The one average in an expression, and what it is if a symbol stands for the expression.

    >>> h, K, M = sp.Symbol("h", real=True), sp.Symbol("K", positive=True), sp.Symbol("M")
    >>> average = GaussianAverage(sp.cos(h), h, K)
    >>> average_named(2 * average + 1, M)[average]
    M/2 - 1/2
    """
    nodes = expr.atoms(GaussianAverage, ConnectedCorrelator)
    if len(nodes) != 1:
        return {}
    (node,) = nodes
    mask = sp.Dummy()
    masked = sp.expand(expr.xreplace({node: mask}))
    factor = masked.coeff(mask)
    remainder = masked - factor * mask
    return {} if sp.expand(remainder).has(mask) else {node: (symbol - remainder) / factor}


def _skip_product(last: sp.Expr, first: sp.Expr) -> sp.Expr:
    """γ_{m+1} ... γ_l for A_lm of layers that are numbers."""
    if not (last.is_Integer and first.is_Integer):
        return A(last, first)
    return sp.Mul(*[SkipScale(i) for i in range(int(first) + 1, int(last) + 1)])


def _constant_skip(expr: sp.Expr, skip: sp.Expr | None) -> sp.Expr:
    """A formula with one γ for all layers put in."""
    if skip is None:
        return expr
    if skip == 0:
        # K^(l) = C^(l): of a sum over earlier layers the last one is left.
        expr = expr.replace(
            lambda e: isinstance(e, sp.Sum) and e.function.has(A), _last_term
        ).replace(lambda e: isinstance(e, sp.Mul) and e.has(A) and e.has(Earlier), _next_layer)
    return expr.replace(A, lambda a, b: skip ** (a - b)).replace(SkipScale, lambda _: skip)


def _last_term(expr: sp.Sum) -> sp.Expr:
    (index, _, last), inner = expr.limits[0], expr.function
    factor = sp.Mul(*[f for f in sp.Mul.make_args(inner) if not f.as_base_exp()[0].has(A)])
    several = len({a.args[0] for a in inner.atoms(A)}) > 1
    return sp.S.Zero if several else factor.subs(index, last)


def _next_layer(expr: sp.Mul) -> sp.Expr:
    (name,) = expr.atoms(A)
    factors = [f for f in expr.args if not f.as_base_exp()[0].has(A, Earlier)]
    return sp.Mul(*factors, sp.KroneckerDelta(name.args[1], name.args[0]))


def _of_inputs(expr: sp.Expr) -> sp.Expr:
    """An average over x and y as one over the signals of two inputs in layer l."""
    signals = dict(zip((X, Y), pair_signals(l), strict=True))
    entries = {(X, X): K_XX, (Y, Y): K_YY, (X, Y): K_XY, (Y, X): K_XY}
    return sym.over_signals(expr, signals, lambda h: [[entries[u, v] for v in h] for u in h])


def _is_of_several_layers(node: sp.Expr) -> bool:
    layers = {str(v).split("_")[0] for v in getattr(node, "variables", ())}
    return isinstance(node, JointAverage) or len(layers) > 1


def _place(equation: Equation) -> int:
    """Coefficients first, then averages, then the kernels in their measures."""
    averages = ("M'", "(M'", r"\dot{M}", r"(\dot{M}", "Q", "(Q")
    order = ("a_", "c_", "C^", *averages, "r_", r"\nu", "K^{(l)", "K^{(k", "A", r"\langle")
    return next((i for i, s in enumerate(order) if equation.left.startswith(s)), len(order))
