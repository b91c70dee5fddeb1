"""The layers of a family of networks: their parameters, coefficients and features as symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from fieldtheory.networks.family import Coefficients, LayeredNetwork
from fieldtheory.theory import notation as sym
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
