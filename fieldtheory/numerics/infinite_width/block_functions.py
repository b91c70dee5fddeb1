"""Averages of layers whose units see functions Q_k of the kernel of the stream, as of blocks.

    C^(l) = a_l A(K^(l-1)) + c_l,   A(K) = Π_k ⟨φ_k φ_k⟩_{Q_k(K)},   l = 1, ..., L
    C^(L+1) = a_{L+1} R̂(K^(L)) + c_{L+1},   K^(l) = γ_l² s(K^(l-1)) + C^(l)

in the form of `LayerFunctions`, of which networks without norms are the case s = Q = K.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, overload

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.coefficients import of_layers
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.numerics.infinite_width.homogeneous import exactly_parallel
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions

XX, YY = sp.symbols("X_xx X_yy", positive=True)
XY = sp.Symbol("X_xy", real=True)


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of a matrix as a function of the entries (αα), (ββ), (αβ) of another.

    Functions of a variance and of a pair return their derivatives up to an order, value first.
    """

    of_pair: sp.Expr
    of_own: sp.Expr
    values: Mapping[str, Any]

    def own(self, K: np.ndarray | float, order: int = 0) -> list[np.ndarray]:
        """F, F', ... of variances."""
        return _compiled(self.of_own, (XX,), order)([K], self.values)

    def pair(self, *K: np.ndarray | float, order: int = 0) -> list[np.ndarray]:
        """F, its gradient (3), its Hessian (9) of pairs."""
        return _compiled(self.of_pair, (XX, YY, XY), order)(K, self.values)


@lru_cache(maxsize=512)
def _compiled(
    F: sp.Expr, variables: tuple[sp.Symbol, ...], order: int
) -> Callable[..., list[np.ndarray]]:
    """F and its derivatives as arrays of the shape of the variables and parameters."""
    parameters = sorted(F.free_symbols.difference(variables), key=str)
    # As one fraction, which is exactly 0 where a norm without ε fixes a variance.
    derivatives = [sp.factor(F.diff(x)) for x in variables] if order else []
    found = [F, *derivatives]
    for _ in range(1, order):
        derivatives = [slope.diff(x) for slope in derivatives for x in variables]
        found += derivatives
    function = lambdify([*variables, *parameters], found)

    def arrays(K: Sequence[np.ndarray | float], values: Mapping[str, Any]) -> list[np.ndarray]:
        numbers = function(*K, *(values[str(each)] for each in parameters))
        shape = np.broadcast_shapes(*map(np.shape, numbers), *map(np.shape, K))
        return [np.broadcast_to(number, shape) for number in numbers]

    return arrays


@dataclass(frozen=True, eq=False)
class BlockLayers:
    """One layer or several of one kind, those on the first axis of ``values``.

    The names of `LayerFunctions` are functions of the stream's variances and covariances.
    """

    factors: tuple[LayerFunctions, ...]
    signals: tuple[Entry, ...]
    stream: Entry | None

    def _own(self, K: np.ndarray, order: int) -> list[list[np.ndarray]]:
        """⟨φ_k²⟩ and its derivatives by the stream's variance, of every k."""
        parts = []
        for phi, signal in zip(self.factors, self.signals, strict=True):
            Q, *slopes = signal.own(K, order)
            part = [phi.second_moment(Q)]
            if order:
                slope = phi.susceptibility(Q)
                part.append(slope * slopes[0])
            if order > 1:
                part.append(phi.curvature(Q) * slopes[0] ** 2 + slope * slopes[1])
            parts.append(part)
        return parts

    def second_moment(self, K: np.ndarray) -> Any:
        """⟨a²⟩."""
        for signal in self.signals:
            require_norms(K, signal.own(K)[0][np.isfinite(K)])
        return _product([part[0] for part in self._own(K, 0)])

    def susceptibility(self, K: np.ndarray) -> Any:
        """∂⟨a²⟩/∂K."""
        return _derivative(*zip(*self._own(K, 1), strict=True))

    def curvature(self, K: np.ndarray) -> Any:
        """∂²⟨a²⟩/∂K²."""
        values, slopes, curvatures = zip(*self._own(K, 2), strict=True)
        both = 2 * _product(slopes) if len(values) == 2 else 0.0
        return _derivative(values, curvatures) + both

    def slope_square(self, K: np.ndarray) -> Any:
        """∂⟨a a⟩/∂K_xy of identical inputs at fixed variances."""
        return sum(slope * moved for slope, moved, _ in self.signal_slopes(K))

    def signal_slopes(self, *K: np.ndarray) -> list[tuple[Any, Any, Any]]:
        """∂⟨a a⟩/∂Q_k, ∂Q_k/∂K_xy and Q_k at fixed variances, of variances or of pairs, each k."""
        if len(K) == 1:
            Q = [signal.own(*K)[0] for signal in self.signals]
            moved = [signal.pair(*K * 3, order=1)[3] for signal in self.signals]
            averages = [phi.second_moment(q) for phi, q in zip(self.factors, Q, strict=True)]
            slopes = [phi.slope_square(q) for phi, q in zip(self.factors, Q, strict=True)]
        else:
            of, moved = zip(*(self._seen(k, *K) for k in range(len(self.factors))), strict=True)
            Q = [arguments[2] for arguments in of]
            gains = [phi.covariance_gain(*q) for phi, q in zip(self.factors, of, strict=True)]
            averages, slopes = map(list, zip(*gains, strict=True))
        others = [_product([*averages[:k], *averages[k + 1 :]]) for k in range(len(Q))]
        return [(s * o, m, q) for s, o, m, q in zip(slopes, others, moved, Q, strict=True)]

    def _seen(self, k: int, *K: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Q_k of both inputs and of the pair, parallel ones exactly so, and ∂Q_k/∂K_xy."""
        signal = self.signals[k]
        q, _, _, moved = signal.pair(*K, order=1)
        own = signal.own(K[0])[0], signal.own(K[1])[0]
        return (*own, exactly_parallel(*own, q)), moved

    def covariance(self, *K: np.ndarray) -> Any:
        """⟨a a⟩."""
        parts = enumerate(self.factors)
        return _product([phi.covariance(*self._seen(k, *K)[0]) for k, phi in parts])

    def covariance_gain(self, *K: np.ndarray) -> tuple[Any, Any]:
        """⟨a a⟩ and ∂⟨a a⟩/∂K_xy."""
        averages, slopes = [], []
        for k, phi in enumerate(self.factors):
            Q, moved = self._seen(k, *K)
            average, slope = phi.covariance_gain(*Q)
            averages.append(average)
            slopes.append(slope * moved)
        return _product(averages), _derivative(averages, slopes)

    def covariance_susceptibility(self, *K: np.ndarray) -> Any:
        """∂⟨a a⟩/∂K_xy."""
        return self.covariance_gain(*K)[1]

    def cross_susceptibility(self, *K: np.ndarray) -> Any:
        """∂⟨a a⟩/∂K_xx."""
        averages, slopes = [], []
        for k, (phi, signal) in enumerate(zip(self.factors, self.signals, strict=True)):
            Q, _ = self._seen(k, *K)
            average, slope = phi.covariance_gain(*Q)
            by_own, by_pair = signal.own(K[0], 1)[1], signal.pair(*K, order=1)[1]
            averages.append(average)
            slopes.append(phi.cross_susceptibility(*Q) * by_own + slope * by_pair)
        return _derivative(averages, slopes)


def require_norms(variances: np.ndarray, normalized: Any) -> None:
    """ValueError if a norm divides by a variance of zero."""
    if not np.isfinite(normalized).all():
        raise ValueError(
            "K0 must have positive variances where a norm divides by them, got "
            f"{variances.min():.6g}; use epsilon > 0"
        )


def _product(values: Sequence[Any]) -> Any:
    product: Any = 1.0
    for value in values:
        product = product * value
    return product


def _derivative(values: Sequence[Any], slopes: Sequence[Any]) -> Any:
    """That of a product of functions."""
    return sum(slope * _product([*values[:k], *values[k + 1 :]]) for k, slope in enumerate(slopes))


@dataclass(frozen=True, eq=False)
class BlockFunctions:
    """The averages of all layers of a network of blocks."""

    network: GramNetwork
    # As of `layer_coefficients`.
    trailing: int
    batch: int
    # The angles of ReLU and its relatives are followed in networks without norms.
    lines: ClassVar[None] = None
    layers_differ: ClassVar[Literal[True]] = True

    @cached_property
    def factors(self) -> tuple[LayerFunctions, ...]:
        """Averages of the φ_k."""
        return tuple(layer_functions(factor) for factor in self.network.factors)

    @cached_property
    def jumps(self) -> bool:
        """Whether a φ_k jumps somewhere."""
        return any(factor.jumps for factor in self.factors)

    @cached_property
    def _parameters(self) -> dict[str, Any]:
        """Those of layers as arrays (L, ..., 1)."""
        parameters, _ = of_layers(self.network)
        for name in self.network.layer_parameters:
            values = parameters[name]
            new = (1,) * (self.batch + 1 - values.ndim)
            trailing = (1,) * self.trailing
            shape = (len(values), *new, *values.shape[1:], *trailing)
            parameters[name] = values.reshape(shape)
        return parameters

    @cached_property
    def _expressions(self) -> dict[str, Any]:
        return _expressions(self.network)

    def _layers(self, values: Mapping[str, Any]) -> BlockLayers:
        signals = tuple(Entry(F, own, values) for F, own in self._expressions["signals"])
        of_pair, of_own = self._expressions["stream"]
        carried = None if of_pair == XY else Entry(of_pair, of_own, values)
        return BlockLayers(self.factors, signals, carried)

    @cached_property
    def hidden(self) -> BlockLayers:
        """All blocks at once."""
        return self._layers(self._parameters)

    @cached_property
    def readout(self) -> BlockLayers:
        """What the linear readout reads."""
        of_pair, of_own = self._expressions["read"]
        read = Entry(of_pair, of_own, self._parameters)
        return BlockLayers((layer_functions(as_activation("linear")),), (read,), None)

    @property
    def stream(self) -> Entry | None:
        """s of all blocks, None where it is the stream itself."""
        return self.hidden.stream

    def signal_slopes(self, *K: np.ndarray) -> list[tuple[Any, Any, Any]]:
        """Those of all blocks, of kernels (L, ...)."""
        return self.hidden.signal_slopes(*K)

    def layer(self, l: int) -> BlockLayers:
        """Layer l = 1, ..., L + 1."""
        if l > self.network.depth:
            return self.readout
        own = {name: self._parameters[name][l - 1] for name in self.network.layer_parameters}
        return self._layers(self._parameters | own)

    def every(self, name: str, *K: np.ndarray) -> Any:
        """A function of `BlockLayers` of all layers, of kernels (L + 1, ...)."""
        hidden = getattr(self.hidden, name)(*(k[:-1] for k in K))
        last = getattr(self.readout, name)(*(k[-1:] for k in K))
        if isinstance(hidden, tuple):
            return tuple(np.concatenate(each) for each in zip(hidden, last, strict=True))
        return np.concatenate([hidden, last])


@lru_cache(maxsize=64)
def _expressions(network: GramNetwork) -> dict[str, Any]:
    """The entries of what is read, of the Q_k and of the stream, as pairs of expressions."""
    parameters = {name: sp.Symbol(name, positive=True) for name in sorted(network.parameters)}

    def both(entry: Callable[[GramEntry], Any]) -> tuple[sp.Expr, sp.Expr]:
        at = GramEntry(XY, XX, YY), GramEntry(XX, XX, XX)
        return tuple(sp.sympify(entry(each)) for each in at)

    def signal(k: int) -> tuple[sp.Expr, sp.Expr]:
        return both(lambda at: network.signals(network.read(at, parameters), parameters)[k])

    return {
        "signals": [signal(k) for k in range(len(network.factors))],
        "read": both(lambda at: network.read(at, parameters)),
        "stream": both(lambda at: network.stream(at, parameters)),
    }


@overload
def network_functions(
    network: LayeredNetwork, trailing: int = 0, batch: int = 0
) -> LayerFunctions: ...
@overload
def network_functions(
    network: GramNetwork, trailing: int = 0, batch: int = 0
) -> BlockFunctions: ...
@overload
def network_functions(
    network: DeepNetwork, trailing: int = 0, batch: int = 0
) -> LayerFunctions | BlockFunctions: ...
def network_functions(
    network: DeepNetwork, trailing: int = 0, batch: int = 0
) -> LayerFunctions | BlockFunctions:
    """The averages of the layers of a network of any family.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> float(network_functions(ResidualNetwork(depth=2, activation="relu")).second_moment(2.0))
    1.0
    """
    if isinstance(network, GramNetwork):
        return BlockFunctions(network, trailing, batch)
    assert isinstance(network, LayeredNetwork)
    features = type(network).features
    return layer_functions(network.activation, "numpy", features, network.feature_parameters)
