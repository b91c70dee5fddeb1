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
q^{(l)},\ k^{(l)},\ v^{(l)},\ o^{(l)} = queries, keys, values, and what a head returns
\mathcal{A}^{(l)} = with which weight tokens attend to each other
B^{(l)},\ E^{(l)} = mean products of what a head returns for two tokens, given these weights; of two
    heads with the same keys, $B'$ of the second
R^{(l)} = Gram matrix of what a branch reads
\lambda_{l} = coefficient of attention
\rho_{A},\ \sigma_{Q}^{2},\ \sigma_{K}^{2},\ \sigma_{V}^{2},\ \sigma_{O}^{2} = scale of attention,
    and $N$ times the variances of the weights of queries, keys, values, $H d$ times that of outputs
s_{l},\ \theta = scale of the logits; base of rotary positions
\mathcal{M}_{\alpha} = tokens that a token sees
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
        return of_blocks | sym.listed(_MEANINGS, document)

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
        net = self.network.transformer
        rows = []
        if r"\lambda_{l}" in text:
            rows.append(Equation(r"\lambda_{l}", r"\rho_{A}^{2} \sigma_{O}^{2} \sigma_{V}^{2}"))
        if r"\mathrm{head}" not in text:
            return rows
        if r"\kappa" in text:
            left, product = r"\kappa^{(l)}", r"\big( o^{(l)}_{i} \big)^{2}"
            if self.several:
                left += r"_{\alpha \beta}"
                product = r"o^{(l)}_{i \alpha} o^{(l)}_{i \beta}"
            rows.append(Equation(left, rf"\frac{{\lambda_{{l}}}}{{d}} \sum_{{i=1}}^{{d}} {product}"))
        if not self.several:
            return rows
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
