"""The theory of transformers as formulas: those of blocks, for every kind of step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.gram import GramEntry
from fieldtheory.networks.parameters import PARAMETERS, named_arguments
from fieldtheory.theory import block_formulas
from fieldtheory.theory import notation as sym
from fieldtheory.theory.block_action import block_action
from fieldtheory.theory.block_formulas import OneLayer
from fieldtheory.theory.derivation import Derivation
from fieldtheory.theory.notation import Symbols
from fieldtheory.theory.quantities import Rows
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layer_quantities import PairSum
from fieldtheory.theory.typesetting.layout import Equation
from fieldtheory.transformers.transformer_action import HeadAverage, Steps
from fieldtheory.transformers.transformer_network import TransformerNetwork

_MEANINGS = r"""
H,\ d = heads of a layer; width of a head
\alpha,\ \beta = tokens, which are the inputs
i = unit, or component of a head
\langle \dots \rangle_{\mathrm{head}} = average over the weights of a head
\kappa^{(l)} = what a head, times $H$, adds to the residual kernel
\mathcal{W}_{\mathrm{Q}},\ \mathcal{W}_{\mathrm{K}},\ \mathcal{W}_{\mathrm{V}},\
    \mathcal{W}_{\mathrm{O}} = weights of a head
q^{(l)}_{i},\ k^{(l)}_{i},\ z^{(l)},\ o^{(l)}_{i} = queries, keys and logits of a head; what it
    returns, over $\sigma_{\mathrm{V}}$
\mathcal{A}^{(l)} = weights with which tokens attend
B^{(l)},\ E^{(l)} = Gram matrix of what a head returns, given these weights, and that of two heads
    that share keys; $B'$ is of the second
R^{(l)} = Gram matrix of what a branch reads
\tau_{l},\ \nu_{l},\ \omega_{l} = coefficients of attention, and of biases of values and outputs
\rho_{\mathrm{A}},\ s_{l} = scale of attention, scale of its logits
\sigma_{\mathrm{Q}}^{2},\ \sigma_{\mathrm{K}}^{2},\ \sigma_{\mathrm{V}}^{2},\
    \sigma_{\mathrm{O}}^{2} = $N$ times the variances of the weights of queries, keys and values,
    $H d$ times that of outputs
\sigma_{b\mathrm{Q}}^{2},\ \sigma_{b\mathrm{K}}^{2},\ \sigma_{b\mathrm{V}}^{2},\
    \sigma_{b\mathrm{O}}^{2} = variances of the biases of queries, keys, values and outputs
"""
# Definitions, each with what must stand in a formula for it to be listed; biases in brackets.
_HEADS = r"""
\tau_{l & \tau_{l} = \rho_{\mathrm{A}}^{2} \sigma_{\mathrm{O}}^{2} \sigma_{\mathrm{V}}^{2}
\nu_{l & \nu_{l} = \sigma_{b\mathrm{V}}^{2} / \sigma_{\mathrm{V}}^{2}
\omega_{l & \omega_{l} = \rho_{\mathrm{A}}^{2} \sigma_{b\mathrm{O}}^{2}
\kappa & \kappa^{(l)}_{\alpha \beta} = \frac{\tau_{l}}{d} \sum_{i=1}^{d} o^{(l)}_{i \alpha} o^{(l)}_{i \beta}[out: + \omega_{l}]
\kappa & o^{(l)}_{i} \sim \mathcal{N}(0, B^{(l)})
head & B^{(l)} = \mathcal{A}^{(l)} R^{(l)} {\mathcal{A}^{(l)}}^{\mathsf{T}}[value: + \nu_{l}]
E^ & E^{(l)} = \mathcal{A}^{(l)} R^{(l)} {\mathcal{A}'^{(l)}}^{\mathsf{T}}[value: + \nu_{l}]
head & \mathcal{A}^{(l)}_{\alpha \beta} = \operatorname{softmax}_{\beta}(z^{(l)}_{\alpha \beta})
head & z^{(l)}_{\alpha \beta} = \frac{s_{l}}{\sqrt{d}} \sum_{i=1}^{d} q^{(l)}_{i \alpha} k^{(l)}_{i \beta}
head & q^{(l)}_{i} \sim \mathcal{N}(0, \sigma_{\mathrm{Q}}^{2} R^{(l)}[query: + \sigma_{b\mathrm{Q}}^{2}])
head & k^{(l)}_{i} \sim \mathcal{N}(0, \sigma_{\mathrm{K}}^{2} R^{(l)}[key: + \sigma_{b\mathrm{K}}^{2}])
"""  # noqa: E501


class _Parity(PairSum):
    """The sum over layers that are odd, or even."""

    @property
    def sign(self) -> str:
        """With which layers below."""
        return rf"\sum_{{l \text{{ {self.args[1]}}}}}"


class OneStep(OneLayer):
    """One kind of step of a transformer, the first of its ``kinds``; inputs are tokens."""

    template = Path(__file__).with_name("transformer_appendix.tex")

    def __init__(self, network: Any, *options: Any) -> None:
        super().__init__(network, *options)
        kinds, mlp = network.kinds, network.transformer.mlp is not None
        self.attends, alternate = "attention" in kinds[0], len(kinds) > 1
        of = network.transformer
        each = ("query", "key", "value", "out")
        self.biased = [name for name in each if getattr(of, f"{name}_bias_variance")]
        self.flags = {"mlp": mlp, "alternate": alternate, "parallel": mlp and not alternate}
        self.flags |= {"biased": bool(self.biased), "shifted": "out" in self.biased}
        if self.several and self.attends:
            self.read_pairs = [(self.pair, self.other)]

    @property
    def table(self) -> Mapping[str, Rows]:
        """Those of blocks, for every kind of step."""
        return FORMULAS

    @cached_property
    def each(self) -> dict[str, OneStep]:
        """All kinds of steps, by the layers that they are."""
        both: Any = self.network
        one, *others = both.kinds
        turned = OneStep(replace(both, kinds=(*others, one)), self.several, self.column)
        odd, even = (self, turned) if self.attends else (turned, self)
        return {"odd": odd, "even": even}

    def over_layers(self) -> Iterable[tuple[OneLayer, Callable[[sp.Expr], sp.Expr]]]:
        """Odd layers and even ones, if they differ."""
        if not self.flags["alternate"]:
            return super().over_layers()
        odd, even = self.each.values()
        return [
            (odd, lambda term: _Parity(term, sp.Symbol("odd"))),
            (even, lambda term: _Parity(term, sp.Symbol("even"))),
        ]

    def merged(self, rows: Callable[[OneStep], Iterable[Equation]]) -> list[Equation]:
        """Rows of all kinds of steps, those that differ with the layers that they are of."""
        if not self.flags["alternate"]:
            return list(rows(self))
        found = {of: list(dict.fromkeys(rows(step))) for of, step in self.each.items()}
        every = list(chain(*found.values()))
        lefts = [e.left for e in every]
        for of, own in found.items():
            for e in own:
                if every.count(e) == 1:
                    note = r",\ ".join(filter(None, (e.note, rf"l \text{{ {of}}}")))
                    every[every.index(e)] = replace(e, note=note)
        return sorted(dict.fromkeys(every), key=lambda e: lefts.index(e.left))

    def meanings(self, document: str = "") -> dict[str, str]:
        """Those of blocks and of heads."""
        own = [name for name in self.network.parameters if name in PARAMETERS]
        of_blocks = sym.block_meanings(own, self.several, document)
        return of_blocks | sym.listed(_MEANINGS, document)

    def definitions(self, equations: Iterable[Equation], stationary: bool = True) -> list[Equation]:
        """Those of blocks and of heads."""
        listed = list(equations)
        return self.merged(lambda step: step.own_definitions(listed))

    def own_definitions(self, equations: list[Equation]) -> list[Equation]:
        """Those of one kind of step."""
        rows = super().definitions(equations)
        if not self.attends:
            return rows
        net: Any = self.network
        of, rights = net.transformer, [e.right for e in (*equations, *rows)]
        text = " ".join(right if isinstance(right, str) else latex(right) for right in rights)
        words = ["normed"] * of.query_key_norm + ["turned"] * (of.rotary is not None)
        notes = {
            r"\ka": rf"\text{{mean of {of.grouped_heads} heads}}" * (of.grouped_heads > 1),
            r"\ma": r"\beta \text{ that } \alpha \text{ sees}",
            "z^{": rf"\text{{{' and '.join(words)} }} q, k" if words else "",
        }
        for line in _HEADS.strip().split("\n"):
            mark, definition = line.split(" & ")
            definition = re.sub(
                r"\[(\w+):(.*?)\]", lambda m: m[2] * (m[1] in self.biased), definition
            )
            if mark not in text or (mark == "head" and not self.several):
                continue
            if not self.several:
                definition = re.sub(r"_\{\\alpha \\beta\}| \\(alpha|beta)", "", definition)
                shift = r" + \nu_{l}" * ("value" in self.biased)
                definition = definition.replace("B^{(l)}", "R^{(l)}" + shift)
            left, relation, right = re.split(r" (=|\\sim) ", definition, maxsplit=1)
            rows.append(Equation(left, right, notes.get(left[:3], ""), relation))
        if "head" in text:
            pair = [self.pair, *((s, s) for s in self.pair)]
            entry = GramEntry(*(self.field("X", 0, p) for p in pair))
            left = latex(self.names.of("R", 1, *self.pair))
            rows.append(Equation(left, net.read(entry, self.layers.parameters("l"))))
        return rows


FORMULAS: Mapping[str, Rows] = {
    name: lambda n, rows=rows: n.merged(rows)  # type: ignore[misc]
    for name, rows in block_formulas.FORMULAS.items()
}


@dataclass(frozen=True, repr=False)
class TransformerDerivation(Derivation):
    """The field theory of a transformer: a `Derivation` whose layers are steps, inputs tokens."""

    @property
    def _table(self) -> Any:
        return FORMULAS

    def _letters(self, layers: str, abbreviate: bool, width: float, notation: str | None) -> Any:
        width = validation.within("width", width, 240.0, 2000.0)
        self._refuse_blocks(abbreviate=not abbreviate)
        return OneStep(Steps.of(self.network), self.inputs > 1, width)

    def _require(self, network: Any) -> None:
        if block_action(network, self.inputs) != self.network_action:
            raise ValueError(
                f"network must have the action of {self!r}; derive(network) has that of its own"
            )

    @cached_property
    def symbols(self) -> Symbols:
        """Those of any derivation, and of averages over heads."""
        populations: Any = self.network_action.populations
        observables = chain(*[p.columns.observables for p in populations if hasattr(p, "columns")])
        return Symbols(set(super().symbols.values()).union(*(g.free_symbols for g in observables)))

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


@named_arguments
def derive_transformer(network: TransformerNetwork, inputs: int = 2) -> TransformerDerivation:
    """Result of `derive` for a `TransformerNetwork`; ``inputs`` is the number of tokens.

    >>> from fieldtheory.theory.derivation import derive
    >>> derive(TransformerNetwork(depth=1, heads=2, width=8))
    TransformerDerivation(TransformerNetwork, depth 1, 2 inputs, φ gelu)
    """
    inputs = validation.integer("inputs", inputs, 1)
    if inputs % network.sequences:
        raise ValueError(f"inputs must be tokens of {network.sequences} sequences, got {inputs}")
    action, family = block_action(Steps.of(network), inputs), type(network)
    known = network.depth, inputs, network.activation, action, family
    return TransformerDerivation(*known, network=network)
