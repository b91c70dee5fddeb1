"""The theory of transformers as formulas: those of blocks, for every kind of step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.gram import GramEntry
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.theory import appendix, block_formulas
from fieldtheory.theory import notation as sym
from fieldtheory.theory.block_action import block_action
from fieldtheory.theory.block_formulas import HiddenAverage, OneLayer
from fieldtheory.theory.derivation import Derivation
from fieldtheory.theory.notation import Symbols
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layer_quantities import JointAverage, PairSum
from fieldtheory.theory.typesetting.layout import Equation, page
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH
from fieldtheory.transformers.transformer_action import HeadAverage, Heads, Parallel, Steps
from fieldtheory.transformers.transformer_network import TransformerNetwork

_PARITY = {"attention": r"l \text{ odd}", "mlp": r"l \text{ even}"}
_MEANINGS = r"""
H,\ d = heads of a layer; width of a head
\langle \dots \rangle_{\mathrm{head}} = average over the weights of a head
\kappa^{(l)} = what a head, times $H$, adds to the residual kernel
q^{(l)}_{i},\ k^{(l)}_{i},\ o^{(l)}_{i},\ z^{(l)} = queries and keys of a head; what it returns, over
    $\sigma_{\mathrm{V}}$; its logits
\mathcal{A}^{(l)} = weights with which tokens attend
B^{(l)},\ E^{(l)} = Gram matrix of what a head returns, given these weights, and of the same of two
    heads that share keys; $B'$ is that of the second
R^{(l)} = Gram matrix of what a branch reads
\tau_{l} = coefficient of attention
\rho_{\mathrm{A}},\ \sigma_{\mathrm{Q}}^{2},\ \sigma_{\mathrm{K}}^{2},\ \sigma_{\mathrm{V}}^{2},\ \sigma_{\mathrm{O}}^{2} = scale of attention;
    $N$ times the variances of the weights of queries, keys and values, $H d$ times that of outputs
s_{l} = scale of the logits
"""
_RESULTS = "i = component of a head\n"
_TEXT = r"""
\mathcal{W}_{\mathrm{Q}}^{(l)},\ \mathcal{W}_{\mathrm{K}}^{(l)},\ \mathcal{W}_{\mathrm{V}}^{(l)},\ \mathcal{W}_{\mathrm{O}}^{(l)} =
    weights of a head
"""


class _HeadExponential(JointAverage):
    measure = r"\mathrm{head}"


class _Odd(PairSum):
    sign = r"\sum_{l \text{ odd}}"


class _Even(PairSum):
    sign = r"\sum_{l \text{ even}}"


class OneStep(OneLayer):
    """One kind of step of a transformer, the first of its ``kinds``; inputs are tokens."""

    network: Any

    def __init__(self, network: Steps, *options: Any) -> None:
        super().__init__(network, *options)
        self.attends = "attention" in network.kinds[0]
        if self.several and self.attends:
            self.read_pairs = [(self.pair, self.other)]

    @cached_property
    def each(self) -> list[OneStep]:
        """All kinds of steps."""
        kinds = self.network.kinds
        turned = sorted(kinds[i:] + kinds[:i] for i in range(len(kinds)))
        options = self.several, self.column, self.names.layers
        return [OneStep(replace(self.network, kinds=of), *options) for of in turned]

    def over_layers(self) -> Iterable[tuple[OneLayer, Callable[[sp.Expr], sp.Expr]]]:
        """Odd layers and even ones, if they differ."""
        if len(self.each) == 1:
            return super().over_layers()
        return zip(self.each, (_Odd, _Even), strict=True)

    def entropy(self) -> sp.Expr:
        """The terms of heads and of hidden units."""
        population, total = self.action.populations[1], sp.S.Zero
        for p in getattr(population, "parts", (population,)):
            over = _HeadExponential if isinstance(p, Heads) else HiddenAverage
            source = self.field(r"\tilde{C}", 1) * self.units / p.units
            observable = p.observables[population.fields.index(self._place)]
            total += p.units * sp.log(over(sp.exp(self.paired(source * observable))))
        return total

    @property
    def _place(self) -> int:
        return self.action.kernels.index(self.field("C", 1))

    def merged(self, rows: Callable[[OneStep], Iterable[Equation]]) -> list[Equation]:
        """Rows of all kinds of steps, those that differ with the layers that they are of."""
        found: dict[Equation, list[str]] = {}
        for step in self.each:
            for equation in dict.fromkeys(rows(step)):
                found.setdefault(equation, []).append(_PARITY[step.network.kinds[0][0]])
        lefts = [e.left for e in found]
        return [
            replace(e, note=r",\ ".join(filter(None, (e.note, *found[e]))))
            if len(found[e]) < len(self.each)
            else e
            for e in sorted(found, key=lambda e: lefts.index(e.left))
        ]

    def data(self) -> Equation:
        """The Gram matrix of the embeddings."""
        one, other = (r"_{\alpha}", r"_{\beta}") if self.several else ("", "")
        left = latex(sp.Symbol(r"C^{(0)}_{\mathrm{data}" + r", \alpha \beta}" * self.several))
        if not self.several:
            left += "}"
        return Equation(left, rf"x{one}^{{\mathsf{{T}}}} x{other} / d_{{\mathrm{{in}}}}")

    def meanings(self, document: str = "") -> dict[str, str]:
        """Those of blocks and of heads."""
        own = [name for name in self.network.parameters if name in BlockNetwork.__dataclass_fields__]
        of_blocks = sym.block_meanings(own, self.several, document)
        lines = _MEANINGS + (_TEXT if document else _RESULTS)
        if not self.several:
            lines += r"\alpha,\ \beta = tokens"
        return of_blocks | sym.listed(lines, document)

    def definitions(self, equations: Iterable[Equation], stationary: bool = True) -> list[Equation]:
        """Those of blocks and of heads."""
        listed = list(equations)
        return self.merged(lambda step: step.own_definitions(listed))

    def own_definitions(self, equations: Sequence[Equation]) -> list[Equation]:
        """Those of one kind of step."""
        rows = super().definitions(equations)
        if not self.attends:
            return rows
        rights = (*equations, *rows)
        text = " ".join(e.right if isinstance(e.right, str) else latex(e.right) for e in rights)
        return [*rows, *self._heads(text)]

    def _heads(self, text: str) -> list[Equation]:
        """What stands in averages over heads, and τ."""
        net, rows = self.network.transformer, []
        head, pair = r"\mathrm{head}" in text and self.several, r"_{\alpha \beta}" * self.several
        one, other = (rf"o^{{(l)}}_{{i{x * self.several}}}" for x in (r" \alpha", r" \beta"))
        notes = [rf"\text{{mean of {net.grouped_heads} heads}}"] * (net.grouped_heads > 1)
        notes, logit = ["".join(notes)], r"\frac{s_{l}}{\sqrt{d}} \sum_{i=1}^{d} "
        notes += [r"q, k \text{ of length } \sqrt{d}"] * net.query_key_norm
        notes += [r"\text{turned by positions}"] * (net.rotary is not None)
        before = (self.field("X", 0, p) for p in (self.pair, *((s, s) for s in self.pair)))
        read = self.network.read(GramEntry(*before), self.layers.parameters("l"))
        A, T = r"\mathcal{A}^{(l)}", r"^{\mathsf{T}}"
        both = r"q^{(l)}_{i \alpha} k^{(l)}_{i \beta}"
        product = rf"\frac{{\tau_{{l}}}}{{d}} \sum_{{i=1}}^{{d}} {one} {other}"
        seen = r"\beta \text{ that } \alpha \text{ sees}"
        normal = r"\mathcal{{N}}(0, {})"
        table: list[tuple[Any, str, Any, str]] = [
            (r"\tau_{l", r"\tau_{l}", r"\rho_{\mathrm{A}}^{2} \sigma_{\mathrm{O}}^{2} \sigma_{\mathrm{V}}^{2}", ""),
            (r"\kappa", rf"\kappa^{{(l)}}{pair}", product, notes[0]),
            (r"\kappa", r"o^{(l)}_{i}", "~" + normal.format("B^{(l)}" if head else "R^{(l)}"), ""),
            (head, r"B^{(l)}", rf"{A} R^{{(l)}} {{{A}}}{T}", ""),
            (head and "E^", r"E^{(l)}", rf"{A} R^{{(l)}} {{\mathcal{{A}}'^{{(l)}}}}{T}", ""),
            (head, A + pair, r"\operatorname{softmax}_{\beta}(z^{(l)}_{\alpha \beta})", seen),
            (head, "z^{(l)}" + pair, logit + both, r",\ ".join(notes[1:])),
            (head, "q^{(l)}_{i}", "~" + normal.format(r"\sigma_{\mathrm{Q}}^{2} R^{(l)}"), ""),
            (head, "k^{(l)}_{i}", "~" + normal.format(r"\sigma_{\mathrm{K}}^{2} R^{(l)}"), ""),
            (head or r"\kappa", rf"R^{{(l)}}{pair}", read, ""),
        ]
        for mark, left, right, note in table:
            if mark is True or (mark and mark in text):
                drawn = str(right).startswith("~")
                rows.append(Equation(left, right[1:] if drawn else right, note, r"\sim" if drawn else "="))
        return rows


FORMULAS = {
    name: lambda n, rows=rows: n.merged(rows) for name, rows in block_formulas.FORMULAS.items()
}


@dataclass(frozen=True, repr=False)
class TransformerDerivation(Derivation):
    """The field theory of a transformer: a `Derivation` whose layers are steps, inputs tokens."""

    @property
    def _table(self) -> Any:
        return FORMULAS

    def document(
        self,
        layers: str = "generic",
        *,
        width: float = TEXT_WIDTH,
        notation: str | None = None,
        misprints: bool = True,
    ) -> str:
        """The derivation step by step, as that of blocks."""
        self._refuse_blocks(misprints=not misprints)
        n = self._letters(layers, True, width, notation)
        one = OneStep(n.network, False, n.column)
        network, variances, norm, phi = appendix.block_network(one)
        of_stream, (branch, *signals), (_, *laws) = network[1:2], network[2:-1], variances
        parts = {
            "network": page([[*of_stream, *norm]], n.column, "network"),
            "mlp": page([[branch, *signals, *phi]], n.column, "mlp"),
            "variances": page([[e for e in laws if "in}" not in e.left]], n.column, "weights"),
        }
        parallel, mlp = self.network.parallel, self.network.mlp is not None
        flags = {
            "mlp": mlp,
            "parallel": parallel and mlp,
            "alternate": mlp and not parallel,
            "centred": n.network.centred,
        }
        template = Path(__file__).with_name("transformer_appendix.tex")
        defined = {(e.left, e.right) for e in phi}
        return appendix.filled(template, n, FORMULAS, parts, flags, defined)

    @cached_property
    def symbols(self) -> Symbols:
        """Those of blocks, and those that stand in averages over heads."""
        heads = [p.columns for p in self.network_action.populations if hasattr(p, "columns")]
        inside = (g.free_symbols for columns in heads for g in columns.observables)
        return Symbols({*super().symbols.values()}.union(*inside))

    def lambdify(self, quantity: str, convention: str = "derivative") -> Callable[..., Any]:
        """As of any derivation, where averages over heads are known: one token, or no logits."""
        if any(kernel.has(HeadAverage) for kernel in self.saddle_point.kernels.values()):
            raise ValueError(
                "lambdify needs averages over heads in closed form, which there are for one token "
                f"and without logits; solve has the numbers, got {self!r}"
            )
        function = super().lambdify(quantity, convention)

        def of_steps(network: Any, K0: Any) -> Any:
            if not isinstance(network, TransformerNetwork):
                got = type(network).__name__
                raise TypeError(f"network must be a TransformerNetwork, got a {got}")
            return function(Steps.of(network), K0)

        return of_steps

    def _require(self, network: Any) -> None:
        if block_action(network, self.inputs) != self.network_action:
            raise ValueError(
                f"network must have the action of {self!r}; derive(network) has that of its own"
            )

    def _letters(self, layers: str, abbreviate: bool, width: float, notation: str | None) -> Any:
        width = validation.within("width", width, 240.0, 2000.0)
        refused = {"layers": layers == "explicit", "abbreviate": not abbreviate}
        self._refuse_blocks(**refused, notation=notation)
        return OneStep(Steps.of(self.network), self.inputs > 1, width)


@named_arguments
def derive_transformer(
    network: TransformerNetwork, inputs: int | None = None
) -> TransformerDerivation:
    """Result of `derive` for a `TransformerNetwork`; ``inputs`` is the number of tokens.

    Left out, they are two of every sequence, or those of the mask.

    >>> from fieldtheory.theory.derivation import derive
    >>> derive(TransformerNetwork(depth=1, heads=2, width=8), inputs=2)
    TransformerDerivation(TransformerNetwork, depth 1, 2 inputs, φ gelu)
    """
    if inputs is None:
        inputs = network.sequences * (2 if isinstance(network.causal, bool) else len(network.causal))
    inputs = validation.integer("inputs", inputs, 1)
    if inputs % network.sequences:
        raise ValueError(
            f"inputs must be the tokens of {network.sequences} sequences, as many of each, got "
            f"{inputs}"
        )
    action = block_action(Steps.of(network), inputs)  # type: ignore[arg-type]
    of = type(network), {}, network
    return TransformerDerivation(network.depth, inputs, network.activation, action, *of)
