"""The derivation in short symbols: a_l and c_l for coefficients, M'_l and Q_kl for averages.

The layers of the action carry their coefficients as the symbols a_l, c_l and γ_l; what comes out
of its derivatives is compared with the averages of its observables. Nothing is abbreviated by its
looks, and `Shorthand.written_out` gives the expression of the derivation back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.networks.family import Coefficients, LayeredNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, chain_action
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.layer_quantities import (
    A,
    Bias,
    Correlator,
    Growth,
    LayerQuantity,
    SkipScale,
    Slope,
    Weight,
)
from fieldtheory.theory.propagator import forward_substitution
from fieldtheory.theory.scales import Scales


@dataclass(frozen=True)
class Layers:
    """The layers of a family of networks, some of whose parameters may be fixed.

    Parameters
    ----------
    family : subclass of LayeredNetwork
    fixed : tuple of (str, sympy.Expr)
        Expressions for parameters by name, in place of their symbols.
    """

    family: type[LayeredNetwork]
    fixed: tuple[tuple[str, sp.Expr], ...] = ()

    @classmethod
    def of_scales(cls, family: type[LayeredNetwork], scales: Scales) -> Layers:
        """Those of a derivation; scales that differ from layer to layer are not fixed."""
        depth = max(map(len, scales.values()), default=0)
        own = [sym.parameters(family, layer + 1) for layer in range(depth)]
        fixed = {name: of_layer[0] for name, of_layer in scales.items()}
        return cls(
            family,
            tuple(
                (name, value)
                for name, value in fixed.items()
                if scales[name] != tuple(parameters[name] for parameters in own)
            ),
        )

    def parameters(self, layer: int | str) -> dict[str, sp.Expr]:
        """The parameters of a layer by name."""
        return sym.parameters(self.family, layer) | dict(self.fixed)

    def hidden(self, layer: int | str) -> Coefficients:
        """a_l, c_l and γ_l of a layer before the readout."""
        return Coefficients(*map(sp.sympify, self.family.layer(self.parameters(layer))))

    @property
    def readout(self) -> Coefficients:
        """a_{L+1} and c_{L+1}."""
        return Coefficients(*map(sp.sympify, self.family.readout(self.parameters("l"))))

    @property
    def skip(self) -> sp.Expr | None:
        """γ where it is the same for all layers, else None."""
        one, other = (self.hidden(layer).skip for layer in "kl")
        return one if one == other else None

    def features(self, h: sp.Symbol) -> tuple[Any, ...]:
        """The ψ_k of a signal, φ undetermined."""
        return self.family.features(sym.phi, h, self.parameters(0))


@dataclass(frozen=True)
class Shorthand:
    """The theory of one input and given depth in short symbols.

    Parameters
    ----------
    layers : Layers
    depth : int
        L.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> short = Shorthand(Layers(ResidualNetwork), 2)
    >>> short.hessian.S22[1, 3], short.G12[2, 0]
    (N*Correlator(0, 2)*Weight(1)*Weight(3), Growth(1)*Slope(1)*Weight(2)/(N*\\nu_{0}))
    >>> short.written_out(short.hessian.S21[3, 2])
    N*\\sigma_{w,\\mathrm{out}}**2*<phi(h^{(2)})*Derivative(phi(h^{(2)}), (h^{(2)}, 2)) + \
Derivative(phi(h^{(2)}), h^{(2)})**2>_(C^{(0)}*\\gamma_{1}**2*\\gamma_{2}**2 + \
C^{(1)}*\\gamma_{2}**2 + C^{(2)})
    """

    layers: Layers
    depth: int

    def coefficients(self, layer: int) -> Coefficients:
        """a_l, c_l and γ_l written out."""
        return self.layers.readout if layer == self.depth + 1 else self.layers.hidden(layer)

    @cached_property
    def action(self) -> Action:
        """The action of one input with a_l, c_l and γ_l as symbols; numbers stay numbers."""
        return self.action_of(1)

    def action_of(self, inputs: int) -> Action:
        """The same for any number of inputs."""
        return chain_action(self.depth, inputs, self.layers.features, self._short)

    def _short(self, layer: int) -> Coefficients:
        weight, bias, skip = self.coefficients(layer)
        return Coefficients(
            weight if weight.is_number else Weight(layer),
            bias if bias.is_number else Bias(layer),
            SkipScale(layer) if self.layers.skip is None else skip,
        )

    @cached_property
    def _derived(self) -> Hessian:
        """The Hessian before its averages have names."""
        return hessian(self.action)

    @cached_property
    def averages(self) -> dict[sp.Expr, sp.Expr]:
        """M'_l and Q_kl with what they stand for: entries of the Hessian over N and a_l."""
        blocks, found = self._derived, {}
        weights = [self._short(l + 1).weight for l in range(self.depth + 1)]
        for l, weight in enumerate(weights):
            found[Slope(l)] = blocks.S21[l + 1, l] / (sym.WIDTH * weight)
            for k in range(l + 1):
                entry = blocks.S22[k + 1, l + 1] / (sym.WIDTH * weight * weights[k])
                found[Correlator(k, l)] = entry
        return found

    @cached_property
    def names(self) -> dict[sp.Expr, sp.Expr]:
        """Averages in terms of M'_l and Q_kl."""
        found: dict[sp.Expr, sp.Expr] = {}
        for symbol, expr in self.averages.items():
            found |= average_named(expr, symbol)
        return found

    @cached_property
    def hessian(self) -> Hessian:
        """S11, S12, S21 and S22."""
        blocks = self._derived
        S21 = blocks.S21.applyfunc(lambda entry: entry.xreplace(self.names))
        S22 = blocks.S22.applyfunc(lambda entry: entry.xreplace(self.names))
        return Hessian(blocks.S11, S21.T, S21, S22)

    @cached_property
    def G12(self) -> sp.ImmutableMatrix:
        """The response propagator, with r_l for the growth of the response in a layer."""
        return forward_substitution(self.hessian.S21).xreplace(self.growths)

    @cached_property
    def G11(self) -> sp.ImmutableMatrix:
        """The covariance of the kernels, sums of products."""
        return (self.G12 * self.hessian.S22 * self.G12.T).applyfunc(sp.expand)

    @cached_property
    def growths(self) -> dict[sp.Expr, sp.Expr]:
        """r_l for γ_l² + a_l M'_{l-1}, the ratio of two entries of G12."""
        G12, found = forward_substitution(self.hessian.S21), {}
        for l in range(1, self.depth + 1):
            ratio = sp.cancel(G12[l + 1, l - 1] / (G12[l + 1, l] * sym.WIDTH * G12[l - 1, l - 1]))
            if ratio.is_Add:
                found[ratio] = Growth(l)
        return found

    @cached_property
    def meanings(self) -> dict[sp.Expr, sp.Expr]:
        """What each short symbol stands for, in the symbols of the derivation."""
        scalars: dict[sp.Expr, sp.Expr] = {}
        for l in range(1, self.depth + 2):
            weight, bias, skip = self.coefficients(l)
            scalars |= {Weight(l): weight, Bias(l): bias, SkipScale(l): skip}
        for l, m in combinations(range(self.depth, -1, -1), 2):
            scalars[A(l, m)] = sp.Mul(*[scalars[SkipScale(i)] for i in range(m + 1, l + 1)])
        averages = {
            symbol: expr.xreplace(scalars) for symbol, expr in self.averages.items() if expr != 0
        }
        growths = {
            symbol: ratio.xreplace(scalars).xreplace(averages)
            for ratio, symbol in self.growths.items()
        }
        return scalars | averages | growths

    def written_out(self, expr: Any) -> Any:
        """An expression or matrix without short symbols."""
        # Averages last: what is put in must not hold signals that are bound where it goes.
        found = expr.atoms(LayerQuantity)
        averages = {name for name in found if isinstance(name, Slope | Correlator | Growth)}
        for names in (found - averages, averages):
            expr = expr.xreplace({name: self.meanings[name] for name in names})
        return expr


def average_named(expr: sp.Expr, symbol: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """The one average in an expression, and what it is if a symbol stands for the expression.

    Examples
    --------
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
    rest = masked - factor * mask
    return {} if sp.expand(rest).has(mask) else {node: (symbol - rest) / factor}


def skips_gathered(term: sp.Expr) -> sp.Expr:
    """A_lm for the product of γ over two layers or more, all of one power.

    Examples
    --------
    >>> skips_gathered(3 * SkipScale(2) ** 2 * SkipScale(3) ** 2)
    3*A(3, 1)**2
    """
    pairs = [factor.as_base_exp() for factor in sp.Mul.make_args(term)]
    powers = {int(base.args[0]): power for base, power in pairs if isinstance(base, SkipScale)}
    if len(powers) < 2 or len(set(powers.values())) > 1:
        return term
    first, last = min(powers), max(powers)
    if len(powers) != last - first + 1:
        return term
    others = [base**power for base, power in pairs if not isinstance(base, SkipScale)]
    return sp.Mul(*others, A(last, first - 1) ** powers[first])
