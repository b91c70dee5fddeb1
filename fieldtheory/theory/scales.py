"""The layers of a derivation: their parameters as symbols, and the scales ρ and γ of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.family import Coefficients, DeepNetwork, LayeredNetwork
from fieldtheory.theory import notation as sym

SYMBOL, PER_LAYER = "symbol", "per layer"
_INFINITE = (sp.nan, sp.oo, -sp.oo, sp.zoo)
Scales = Mapping[str, tuple[sp.Expr, ...]]
_SYMBOLS = {"branch_scale": sym.branch_scale, "skip_scale": sym.skip_scale}


def chosen_scales(
    family: type[LayeredNetwork],
    depth: int,
    network: LayeredNetwork | None,
    values: Mapping[str, Any],
) -> Scales:
    """ρ and γ of every layer, those of F25 (one ρ, γ = 1) where nothing says otherwise.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> chosen_scales(ResidualNetwork, 2, None, {"branch_scale": None, "skip_scale": None})
    {'branch_scale': (\\rho, \\rho), 'skip_scale': (1, 1)}
    >>> net = ResidualNetwork(depth=2, branch_scale=[0.1, 0.2], skip_scale=0.5)
    >>> chosen_scales(ResidualNetwork, 2, net, {"branch_scale": None, "skip_scale": None})
    {'branch_scale': (\\rho_{1}, \\rho_{2}), 'skip_scale': (\\gamma, \\gamma)}
    """
    scales = {}
    for name, value in values.items():
        if value is None and name not in family.layer_parameters:
            continue
        if name not in sym.parameters(family, 1):
            raise ValueError(f"{name} is not a parameter of a {family.__name__}, got {value!r}")
        scales[name] = _of_layers(name, _default(name, network) if value is None else value, depth)
    return scales


def require_scales(scales: Scales, network: LayeredNetwork) -> None:
    """Raise ValueError if a network of the same family and depth has other `chosen_scales`."""
    values = sym.parameter_values(network)
    for name, written in scales.items():
        own = np.broadcast_to(network.parameters[name], network.depth)
        for expression, number in zip(written, own.tolist(), strict=True):
            value = sp.sympify(expression.xreplace(values))
            unknown = value.free_symbols - {_SYMBOLS[name]()}
            if unknown:
                raise ValueError(
                    f"network has no number for {min(map(str, unknown))} in the {name} of the "
                    f"derivation, {expression}"
                )
            if value.free_symbols or not math.isclose(float(value), number, rel_tol=1e-12):
                of = "one for all layers" if value.free_symbols else str(expression)
                got = own.tolist() if len(set(own.tolist())) > 1 else number
                raise ValueError(
                    f"network must have the {name} of the derivation, {of}, got {got}; "
                    f"derive(network) takes what the network has"
                )


def _default(name: str, network: LayeredNetwork | None) -> Any:
    if network is None:
        return SYMBOL if name == "branch_scale" else sp.S.One
    values = {scale: np.asarray(network.parameters[scale]) for scale in network.layer_parameters}
    own, first = values[name], values[name].flat[0]
    if (own != own[..., :1]).any():
        return PER_LAYER
    skips = values.get("skip_scale", np.ones(1))
    if (own == first).all() and first in (0, 1) and (name == "skip_scale" or not skips.any()):
        return sp.Integer(int(first))
    return SYMBOL


def _of_layers(name: str, value: Any, depth: int) -> tuple[sp.Expr, ...]:
    symbols = _SYMBOLS[name]
    if isinstance(value, str):
        if value == PER_LAYER:
            return tuple(symbols(layer) for layer in range(1, depth + 1))
        if value == SYMBOL:
            return (symbols(),) * depth
    elif isinstance(expression := sp.sympify(value), sp.Expr) and not expression.has(*_INFINITE):
        # Decimals as they are written: 0.3 is 3/10, 1.0 is 1.
        exact = sp.Rational(str(expression)) if expression.is_Float else expression
        return (exact,) * depth
    raise (ValueError if isinstance(value, str) else TypeError)(
        f"{name} must be a number, a SymPy expression, {SYMBOL!r} or {PER_LAYER!r}, got {value!r}"
    )


@dataclass(frozen=True)
class Layers:
    """The layers of a family of networks; ``fixed`` parameters are the same expression in all."""

    family: Any
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

    @classmethod
    def of_network(cls, network: DeepNetwork) -> Layers:
        """Those of a network; parameters that are the same in all layers have no index."""
        kind, numbers = type(network), network.parameters
        one = sym.parameters(kind, "")
        same = [x for x in kind.layer_parameters if len(set(numbers[x].ravel().tolist())) == 1]
        return cls(kind, tuple((name, one[name]) for name in same))

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
