"""The action S(C, C̃) of residual kernels and conjugates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.networks.family import Coefficients, LayeredNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.scales import Layers


@dataclass(frozen=True)
class Names:
    """Names of the layers 0, ..., L + 1 in an action, and of the inputs, "" for one."""

    layers: tuple[str, ...]
    samples: tuple[str, ...]

    @classmethod
    def numbers(cls, depth: int, inputs: int) -> Names:
        """The numbers of layers and inputs, as `notation.kernel` has them."""
        samples = ("",) if inputs == 1 else tuple(str(s + 1) for s in range(inputs))
        return cls(tuple(map(str, range(depth + 2))), samples)

    def of(self, letter: str, layer: int, *samples: int) -> sp.Symbol:
        """A field of a pair of inputs in a layer, or a signal of one; a variance is positive."""
        index = " ".join(filter(None, (self.samples[s] for s in samples)))
        name = f"{letter}^{{({self.layers[layer]})}}" + (f"_{{{index}}}" if index else "")
        if letter.startswith(r"\tilde"):
            return sp.Symbol(name)
        variance = len(samples) == 2 and samples[0] == samples[1]
        return sp.Symbol(name, **({"positive": True} if variance else {"real": True}))


@dataclass(frozen=True)
class Population:
    """Units that are alike and, given the fields, independent.

    ``units`` is their number, a multiple of N. They define ``fields``, places in the action, by
    ``observables`` g_j of Gaussian ``variables`` h with a ``covariance`` K; both are functions of
    any fields, without variables of these alone. By ``dependent`` units fewer are independent: 1
    for a signal without its mean over units.
    """

    units: sp.Expr
    fields: tuple[Any, ...]
    observables: tuple[sp.Expr, ...]
    variables: tuple[sp.Symbol, ...]
    covariance: sp.ImmutableMatrix
    dependent: int = 0

    def logarithm(self, conjugates: Sequence[sp.Symbol]) -> sp.Expr:
        """ln ⟨exp Σ_j C̃_j g_j⟩ times the number of units, of the conjugates of all fields."""
        terms = zip(self.fields, self.observables, strict=True)
        weight = sp.exp(sp.Add(*[conjugates[j] * g for j, g in terms]))
        if self.variables:
            weight = GaussianAverage(weight, self.variables, self.covariance)
        return (self.units - self.dependent) * sp.log(weight)

    def cumulant(self, fields: Sequence[int]) -> sp.Expr:
        """⟨g_j1; ...; g_jn⟩ times the number of units."""
        observables = [self.observables[self.fields.index(j)] for j in fields]
        if self.variables:
            cumulant = ConnectedCorrelator(*observables, self.variables, self.covariance)
            return self.units * cumulant
        return self.units * observables[0] if len(fields) == 1 else sp.S.Zero


@dataclass(frozen=True)
class Action:
    r"""The action of a network, a function of kernels and conjugate fields.

        S(C, C̃) = −N Σ_j ν_j C_j C̃_j + Σ_p N_p ln ⟨ exp Σ_{j in p} C̃_j g_j(h) ⟩_{h ~ N(0, K_p[C])}

    A field j is one entry (αβ) of the kernel of one layer; a population p of N_p units defines some
    of them. Layers that are joined by skip connections have one population of N units, with ν_j =
    ν_0 = d_in/N for the kernel of the input and ν_j = 1 for all others. What distinguishes one
    architecture from another are the observables g and the covariance K of the Gaussian variables
    they depend on; everything else (saddle point, Hessian, vertices) follows by differentiation.

    ``kernels`` C_j and ``conjugates`` C̃_j are ordered by layer, then by entry (11), (12), (22);
    ``relative_widths`` are ν_j.
    """

    kernels: tuple[sp.Symbol, ...]
    conjugates: tuple[sp.Symbol, ...]
    relative_widths: tuple[sp.Expr, ...]
    populations: tuple[Population, ...]

    @cached_property
    def observables(self) -> tuple[sp.Expr, ...]:
        """g_j of every field."""
        pairs = (zip(p.fields, p.observables, strict=True) for p in self.populations)
        by_field = dict(chain.from_iterable(pairs))
        return tuple(by_field[j] for j in range(len(self.kernels)))

    @cached_property
    def _places(self) -> dict[int, int]:
        """The place among the populations of the one that defines a field."""
        return {j: place for place, p in enumerate(self.populations) for j in p.fields}

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """The Gaussian variables of all populations."""
        return tuple(v for population in self.populations for v in population.variables)

    @property
    def covariance(self) -> sp.ImmutableMatrix:
        """K[C], their joint covariance."""
        return sp.ImmutableMatrix(sp.diag(*[p.covariance for p in self.populations]))

    @cached_property
    def expression(self) -> sp.Expr:
        """S(C, C̃) as one SymPy expression."""
        fields = zip(self.relative_widths, self.kernels, self.conjugates, strict=True)
        constraints = sp.Add(*[nu * C * conjugate for nu, C, conjugate in fields])
        averages = sp.Add(*[p.logarithm(self.conjugates) for p in self.populations])
        return -sym.WIDTH * constraints + averages

    def derivative(self, conjugates: Sequence[int], kernels: Sequence[int] = ()) -> sp.Expr:
        """A derivative of S of any order at C̃ = 0 by fields of these numbers; repeated ones count.

        The logarithm generates the cumulants of the observables: n >= 1 derivatives by conjugates
        of one population give N_p ⟨g_j1; ...; g_jn⟩, those of several zero, and n = 1 the
        constraint −N ν_j C_j. C̃ is zero before the kernel derivatives, which commute with it. N_p
        is that to leading order: `Population.dependent` stands in the expression alone.
        """
        if conjugates:
            place, *others = {self._places[j] for j in conjugates}
            result = sp.S.Zero if others else self.populations[place].cumulant(conjugates)
        else:
            result = self.expression.xreplace(dict.fromkeys(self.conjugates, sp.S.Zero))
        if len(conjugates) == 1:
            (j,) = conjugates
            result -= sym.WIDTH * self.relative_widths[j] * self.kernels[j]
        for j in kernels:
            result = result.diff(self.kernels[j])
        return result


def joined(names: Names, populations: Sequence[Population]) -> Action:
    """The action of populations whose fields are (letter, layer, pair), ordered by layer."""
    fields = sorted(chain(*(p.fields for p in populations)), key=itemgetter(1, 0, 2))
    places = {field: place for place, field in enumerate(fields)}
    widths = {field: p.units / sym.WIDTH for p in populations for field in p.fields}
    widths |= {field: sym.INPUT_WIDTH for field in fields if field[:2] == ("C", 0)}
    return Action(
        kernels=tuple(names.of(f, l, *pair) for f, l, pair in fields),
        conjugates=tuple(names.of(rf"\tilde{{{f}}}", l, *pair) for f, l, pair in fields),
        relative_widths=tuple(widths[field] for field in fields),
        populations=tuple(
            replace(p, fields=tuple(places[field] for field in p.fields)) for p in populations
        ),
    )


def stream(
    names: Names,
    letter: str,
    observables: Mapping[Any, sp.Expr],
    carried: Callable[[int, int], sp.Expr],
    kind: type[Population] = Population,
) -> Population:
    """The N units that skip connections join, whose signals have a letter."""
    signals = [(l, s) for l in range(len(names.layers) - 1) for s in range(len(names.samples))]

    variables = tuple(names.of(letter, *signal) for signal in signals)
    K = [[signal_covariance(names, carried, row, column) for column in signals] for row in signals]
    matrix = sp.ImmutableMatrix(K)
    return kind(sym.WIDTH, tuple(observables), tuple(observables.values()), variables, matrix)


def signal_covariance(
    names: Names,
    carried: Callable[[int, int], sp.Expr],
    row: tuple[int, int],
    column: tuple[int, int],
) -> sp.Expr:
    """Cov(x_α^(k), x_β^(l)) of two layers and inputs, as of `stream`."""
    pair, total = sorted((row[1], column[1])), sp.S.Zero
    for m in range(min(row[0], column[0]) + 1):
        kept = [carried(l, s) for k, s in (row, column) for l in range(m + 1, k + 1)]
        total += sp.Mul(*kept, names.of("C", m, *pair))
    return total


def chain_action(
    depth: int,
    inputs: int,
    features: Callable[[sp.Symbol], tuple],
    coefficients: Callable[[int], Coefficients],
) -> Action:
    """The action of layers that are joined by skip connections and read by features ψ_k.

        g_0 = ν_0 C^(0)_data,   g_l = a_l Σ_k ψ_k(h_α^(l-1)) ψ_k(h_β^(l-1)) + c_l

    ``coefficients`` are a_l, c_l and γ_l of a layer, L + 1 the readout, whose γ is not used.
    A conjugate enforces the definition of its kernel times the number of units that feed the
    layer (F25 eqs. (19), (91)-(93)),

        d_in (C^(0) − C^(0)_data),   N (C^(l) − (1/N) Σ_i a_l ψ(h_i^(l-1))² − c_l),

    so that ν_0 = d_in/N stands with both terms of the input and nothing with those of the layers.
    It has no influence on C*, and the response to C̃^(0) is the derivative by K^(0) over ν_0.

    >>> from fieldtheory.networks.family import Coefficients
    >>> one = chain_action(1, 1, lambda h: (h,), lambda l: Coefficients(1, 0, 1))
    >>> one.observables, one.covariance[1, 1]
    ((C^{(0)}_{\\mathrm{data}}*\\nu_{0}, h^{(0)}**2, h^{(1)}**2), C^{(0)} + C^{(1)})
    """
    names = Names.numbers(depth, inputs)
    h = names.of("h", 0, 0)
    psi = list(map(sp.sympify, features(h)))
    layers = {l: coefficients(l) for l in range(1, depth + 2)}

    def observable(layer: int, pair: tuple[int, int]) -> sp.Expr:
        if layer == 0:
            return sym.INPUT_WIDTH * sym.data_kernel(pair, inputs)
        one, other = ({h: names.of("h", layer - 1, sample)} for sample in pair)
        weight, bias, _ = layers[layer]
        return sp.Add(*[weight * f.xreplace(one) * f.xreplace(other) for f in psi], bias)

    fields = [(layer, pair) for layer in range(depth + 2) for pair in sym.pairs(inputs)]
    observables = {("C", *field): observable(*field) for field in fields}
    return joined(names, [stream(names, "h", observables, lambda l, _: layers[l].skip)])


def family_action(
    family: type[LayeredNetwork],
    depth: int,
    inputs: int = 1,
    activation: Callable[[Any], sp.Expr] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Action:
    """The action of a family of networks (F25 eqs. (21), (22), (98), (99), with sums from l = 0).

    The chain of layers whose features and coefficients the family gives, for a residual network

        ψ = φ,   a_l = ρ_l² σ²_w,   c_l = ρ_l² σ²_b;   a_{L+1} = σ²_w,out,   c_{L+1} = σ²_b,out.

    ``activation`` is φ, undetermined if left out; ``fixed`` are expressions for parameters by name
    in place of their symbols, the same in all layers.

    F25 has γ = 1 and one ρ. Its (96) and (99) miss a factor 1/N on the data term. Its remark that
    ν_l = N_l/N stands for layers of different widths N_l would need g_l = ν_l (a_l φ² + c_l), as
    for the input, in (22); with a skip connection there is one width.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> family_action(ResidualNetwork, 1, fixed={"bias_variance": 0}).observables[1]
    \\rho_{1}**2*\\sigma_{w}**2*phi(h^{(0)})**2
    """
    layers = Layers(family, tuple((x, sp.sympify(value)) for x, value in (fixed or {}).items()))
    function = sym.phi if activation is None else activation
    return chain_action(
        depth,
        inputs,
        lambda h: family.features(function, h, layers.parameters(0)),
        lambda l: layers.readout if l == depth + 1 else layers.hidden(l),
    )
