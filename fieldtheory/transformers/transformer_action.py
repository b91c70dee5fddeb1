"""The action of transformers: blocks whose layers are steps, some of which have heads as units.

Given the weights with which its tokens attend, a head returns d columns o ~ N(0, B), B = A R̂ Aᵀ,
and adds κ = (τ/d) Σ o oᵀ, τ = ρ² σ_o² σ_v², with constants of biases in κ and to R̂. Averages over
heads stay symbols: ⟨B⟩, ⟨B ; B⟩, and their derivatives by the Gram matrix X of the stream, of which
the law of B is a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.averages.nodes.base import AverageNode, covariance_symbols
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.family import Coefficients
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Population
from fieldtheory.theory.block_action import BlockNames, WickPopulation, hidden_units
from fieldtheory.theory.typesetting.latex import COEFFICIENT
from fieldtheory.theory.typesetting.layer_quantities import JointAverage, LayerQuantity
from fieldtheory.transformers.transformer_chain import heads_of
from fieldtheory.transformers.transformer_network import TransformerNetwork


class Letter(LayerQuantity, template="{}", rank=COEFFICIENT):
    """A coefficient, which stands before fields."""


class HeadAverage(AverageNode):
    """⟨F⟩ or ⟨F ; G⟩ of variables of a head, with X in the place of their covariance."""

    def __new__(cls, *arguments: Any) -> Any:
        """What the variables are not in is its own average, and is not correlated."""
        *functions, variables, X = arguments
        if not all(sp.sympify(F).has(*variables) for F in functions):
            return functions[0] if cls is HeadAverage and len(functions) == 1 else sp.S.Zero
        return sp.Expr.__new__(cls, *functions, sp.Tuple(*variables), sp.ImmutableMatrix(X))

    def _eval_derivative(self, s: sp.Expr) -> sp.Expr:
        F, *law = self.args
        moved = HeadSlope(F, s, *law) if s in covariance_symbols(self.covariance) else 0
        return HeadAverage(F.diff(s), *law) + moved

    def measure_latex(self, printer: LatexPrinter) -> str:
        """Over queries and keys, and values where they are not averaged yet."""
        return r"\mathrm{head}"


class HeadExponential(JointAverage):
    """⟨exp Σ_j C̃_j κ_j⟩ of symbolic layers."""

    measure = r"\mathrm{head}"


class HeadSlope(AverageNode):
    """∂⟨F⟩/∂X_γδ through the law of the head."""

    def __new__(cls, F: Any, field: Any, variables: Any, X: Any) -> Any:
        """Zero for what the variables are not in."""
        return sp.Expr.__new__(cls, F, field, variables, X) if F.has(*variables) else sp.S.Zero

    def _latex(self, printer: LatexPrinter) -> str:
        F, field, *law = self.args
        mean = printer._print(HeadAverage(F, *law))
        return rf"\frac{{\partial}}{{\partial {printer._print(field)}}} {mean}"


@dataclass(frozen=True)
class Heads(Population):
    """Heads, or groups of ``grouped`` of them that share keys and values, as units.

    ``columns`` are one of the columns of a head, given B, and of another of its group; ``law`` what
    averages over heads have: their variables B and X.
    """

    over: ClassVar[Any] = HeadExponential
    grouped: int = 1
    columns: Any = None
    law: tuple[Any, ...] = ()

    def logarithm(self, conjugates: Sequence[sp.Symbol]) -> sp.Expr:
        """ln ⟨exp Σ_j C̃_j κ_j⟩ times the number of units."""
        terms = zip(self.fields, self.observables, strict=True)
        weight = sp.exp(sp.Add(*[conjugates[j] * kappa for j, kappa in terms]))
        return self.units * sp.log(HeadAverage(weight, self.observables, self.law[1]))

    def cumulant(self, fields: Sequence[int]) -> sp.Expr:
        """By the law of total cumulance from those of the columns; all heads of a group alike."""
        given, total = self.columns.cumulant, sp.S.Zero
        first, *second = (self.fields.index(j) for j in fields)
        if not second:
            return self.units * self._average(given([first]))
        same = sp.Rational(1, self.grouped)
        for share, moved in ((same, 0), (1 - same, len(self.fields)))[: self.grouped]:
            other = second[0] + moved
            total += share * self._average(given([first]), given([other]))
            total += share * self._average(given([first, other]))
        return self.units * total

    def _average(self, *functions: sp.Expr) -> sp.Expr:
        """Term by term, what is no variable in front."""
        total = sp.S.Zero
        for terms in product(*[sp.Add.make_args(sp.expand(F)) for F in functions]):
            split = [term.as_independent(*self.law[0], as_Add=False) for term in terms]
            mean = HeadAverage(*[inside for _, inside in split], *self.law)
            total += sp.Mul(*[front for front, _ in split], mean)
        return total


@dataclass(frozen=True)
class Parallel(Population):
    """Attention and MLP that define the same fields, whose constraints have N in front."""

    parts: tuple[Population, ...] = ()

    def logarithm(self, conjugates: Sequence[sp.Symbol]) -> sp.Expr:
        """The sum of those of both."""
        of = (replace(p, fields=self.fields) for p in self.parts)
        return sp.Add(*[p.logarithm([sym.WIDTH / p.units * C for C in conjugates]) for p in of])

    def cumulant(self, fields: Sequence[int]) -> sp.Expr:
        """The sum of those of both."""
        of = (replace(p, fields=self.fields) for p in self.parts)
        return sp.Add(*[(sym.WIDTH / p.units) ** len(fields) * p.cumulant(fields) for p in of])


@dataclass(frozen=True, kw_only=True)
class Steps(BlockNetwork, abstract=True):
    """A transformer as blocks whose layers are its steps: ``kinds``, one after the other."""

    letters: ClassVar[Mapping[str, str]] = {
        "attention_weight": r"\tau",
        "value_bias": r"\nu",
        "out_bias": r"\omega",
        "heads": "H",
        "head_width": "d",
    }
    layer_parameters: ClassVar[tuple[str, ...]] = (
        *BlockNetwork.layer_parameters,
        "attention_weight",
        "value_bias",
        "out_bias",
    )
    transformer: TransformerNetwork
    kinds: tuple[tuple[str, ...], ...]
    heads: int
    head_width: int
    attention_weight: Any
    value_bias: Any
    out_bias: Any

    @classmethod
    def of(cls, network: TransformerNetwork) -> Self:
        """That of a transformer."""
        block, count = network.block, len(network.branches)
        own = {f.name: getattr(block, f.name) for f in fields(BlockNetwork)}
        layers = {name: block.parameters[name] for name in BlockNetwork.layer_parameters}
        heads = heads_of(network)
        layers["attention_weight"] = [head.weight for head in heads]
        layers["value_bias"] = [head.value_bias for head in heads]
        layers["out_bias"] = [head.out_bias for head in heads]
        own |= {name: np.repeat(values, count) for name, values in layers.items()}
        if not block.gated:
            own["gate_weight_variance"] = None
        for name in ("readout_weight_variance", "readout_bias_variance", "heads"):
            own[name] = getattr(network, name)
        own |= {"depth": network.steps, "input_dim": network.width, "head_width": network.d}
        return cls(transformer=network, kinds=network.branches, **own)

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of blocks, and H and d."""
        return super().parameters | {"heads": self.heads, "head_width": self.head_width}

    def branch_units(
        self,
        names: BlockNames,
        l: int,
        read: sp.Matrix,
        parameters: Mapping[str, sp.Expr],
        coefficients: Coefficients,
    ) -> Population:
        """Heads, hidden units or both."""
        kinds, parts = self.kinds[(l - 1) % len(self.kinds)], []
        if "mlp" in kinds:
            parts.append(hidden_units(self, names, l, read, parameters, coefficients))
        if "attention" in kinds:
            parts.append(self._heads(names, l, read, parameters))
        first, *second = parts
        if not second:
            return first
        of = first.fields, first.observables, first.variables, first.covariance
        return Parallel(sym.WIDTH, *of, parts=tuple(parts))

    def _heads(self, names: BlockNames, l: int, read: sp.Matrix, parameters: Any) -> Heads:
        net, count = self.transformer, len(names.samples)
        pairs, samples = sym.pairs(count), range(count)
        H, d = parameters["heads"], parameters["head_width"]
        each: Any = [parameters[n] for n in ("attention_weight", "value_bias", "out_bias")]
        if names.short:
            H, d = Letter(H), Letter(d)
            letters = (self.letters[n] for n in ("attention_weight", "value_bias", "out_bias"))
            each = [Letter(sp.Symbol(f"{x}_{{{names.layers[l]}}}")) for x in letters]
            # Any tokens are meant by α, β, γ, δ.
            mask, zero = np.ones((count, count), dtype=bool), False
        else:
            head = heads_of(net)[(l - 1) // len(self.kinds)]
            mask, zero = net.mask(count), not head.has_logits
        scale, of_values, of_all = each
        # Biases that are zero are in no formula.
        read = read + of_values * sp.ones(count) if net.value_bias_variance else read
        of_all = of_all if net.out_bias_variance else sp.S.Zero
        seen = mask.sum(1)
        A = sp.Matrix(count, count, lambda s, t: sp.Rational(int(mask[s, t]), int(seen[s])))
        fixed, known = (seen == 1) | zero, A * read * A.T

        def attended(letter: str) -> sp.Matrix:
            def entry(s: int, t: int) -> sp.Expr:
                if fixed[s] and fixed[t]:
                    return known[s, t]
                return names.of(letter, l, *((s, t) if letter == "E" else sorted((s, t))))

            return sp.Matrix(count, count, entry)

        K, E = attended("B"), attended("E")
        if net.grouped_heads > 1:
            K = sp.Matrix(sp.BlockMatrix([[K, E], [E.T, attended("B'")]]))
        o = [names.of(letter, l, s) for letter in ("o", "o'") for s in samples][: K.rows]
        heads = range(0, K.rows, count)
        observables = tuple(
            (scale * o[i + s] * o[i + t] + of_all) / d for i in heads for s, t in pairs
        )
        places = tuple(range(len(observables)))
        columns = WickPopulation(d, places, observables, tuple(o), sp.ImmutableMatrix(K))
        X = [[names.of("X", l - 1, *sorted((s, t))) for t in samples] for s in samples]
        variables = sorted({e for e in K if e.is_Symbol} - {*sp.flatten(X)}, key=str)
        return Heads(
            H / net.grouped_heads,
            tuple(("C", l, pair) for pair in pairs),
            tuple(names.of(r"\kappa", l, *pair) for pair in pairs),
            (),
            sp.ImmutableMatrix(),
            grouped=net.grouped_heads,
            columns=columns,
            law=(sp.Tuple(*variables), sp.ImmutableMatrix(X)),
        )
