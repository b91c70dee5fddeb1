"""What a family of networks offers, from which its theory, numbers and simulations are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.family_checks import check_family, check_fields
from fieldtheory.networks.parameters import unknown_argument
from fieldtheory.networks.schedules import (
    follows_depth,
    layer_values,
    named_schedule,
    scale_text,
)
from fieldtheory.validation import exact, excerpt, number

Parameters = Mapping[str, Any]
# The families by the name of their class, as files name them.
FAMILIES: dict[str, type[NetworkFamily]] = {}
# What responses to the input are divided by, see `input_width`.
CONVENTIONS = ("derivative", "F25")
_KINDS = ("weight", "bias")


class Coefficients(NamedTuple):
    """a_l, c_l and γ_l of a layer: numbers, arrays or SymPy symbols, as its parameters are."""

    weight: Any
    bias: Any
    skip: Any


class NetworkFamily(ABC):
    """Frozen dataclasses of the parameters of networks, which files know by their names."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    # Why it does not have a function, an argument or a field of a name.
    without: ClassVar[Mapping[str, str]] = {}
    # Whether the family is part of the package, whose tests check that it is complete.
    of_package: ClassVar[bool] = True

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.of_package = cls.__module__.partition(".")[0] == "fieldtheory"
        if abstract:
            return
        other = FAMILIES.get(cls.__name__, cls)
        if other.of_package and not cls.of_package:
            raise TypeError(
                f"{cls.__name__} is a family of fieldtheory, another needs its own name"
            )
        FAMILIES[cls.__name__] = cls

    def replace(self, **changes: Any) -> Self:
        """A copy with some arguments changed, checked as a new network is."""
        names = [f.name for f in fields(self)]
        for name in changes:
            if name not in names:
                raise TypeError(unknown_argument(name, names))
        return replace(self, **changes)


class DeepNetwork(NetworkFamily, abstract=True):
    """A family of networks with L layers, and parameters that may differ from layer to layer.

    ``layer_parameters`` names the parameters with one value for every layer. A ``__post_init__`` of
    a family begins with ``super().__post_init__()``, which brings φ, scales and arrays to one form.
    """

    layer_parameters: ClassVar[tuple[str, ...]] = ()
    # What the weights between the stream and the signals of hidden units are called.
    signal_names: ClassVar[tuple[str, ...]] = ()
    # Whether the Gram matrices of the stream are a Markov chain, at every width.
    markov: ClassVar[bool] = False

    depth: int
    activation: Activation
    width: int
    input_dim: int

    def __post_init__(self) -> None:
        if not self.of_package:
            check_fields(type(self))
        checked: dict[str, Any] = {
            "activation": as_activation(self.activation),
            "depth": validation.integer("depth", self.depth, 1),
            "width": validation.integer("width", self.width, 1),
            "input_dim": validation.integer("input_dim", self.input_dim, 1),
        }
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in self.layer_parameters:
                if value is None and field.default is None:
                    continue
                # Schedules by name are those of ρ_l; functions are checked by their values.
                if isinstance(number(value), str) and field.name != "skip_scale":
                    named_schedule(field.name, value)
                elif not callable(value):
                    value = validation.layer_scales(field.name, value, checked["depth"])
                checked[field.name] = value
            elif isinstance(value, list | np.ndarray):
                plain = value.tolist() if isinstance(value, np.ndarray) else value
                checked[field.name] = validation.as_tuples(plain)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The parameters as numbers; those of ``layer_parameters`` as arrays (..., L).

        ``readin_weight_variance`` and ``readin_bias_variance`` are among them.
        """

    @staticmethod
    @abstractmethod
    def layer(parameters: Parameters) -> Coefficients:
        """a_l, c_l and γ_l of a layer 1 <= l <= L."""

    @staticmethod
    def readout(parameters: Parameters) -> Coefficients:
        """a_{L+1} = σ²_w,out and c_{L+1} = σ²_b,out; the readout has no skip connection."""
        weight, bias = parameters["readout_weight_variance"], parameters["readout_bias_variance"]
        return Coefficients(weight, bias, 0)

    @property
    def steps(self) -> int:
        """The number of layers that results have, without the readout."""
        return self.depth

    @property
    def trained(self) -> tuple[str, ...]:
        """Kinds of parameters, each with a learning rate."""
        outer = "outer_" if self.signal_names else ""
        kinds = [f"{layer}_{kind}" for layer in self.signal_names for kind in _KINDS]
        kinds = [*kinds, *(f"{outer}{kind}" for kind in _KINDS)]
        if self.signal_names:
            kinds = [kind for kind in kinds if f"{kind}_variance" in self.parameters]
        return tuple(
            [*(f"readin_{kind}" for kind in _KINDS), *kinds]
            + [f"readout_{kind}" for kind in _KINDS]
        )

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch axes that the parameters have in front of the layers."""
        parameters = self.parameters
        return np.broadcast_shapes(*(parameters[name].shape[:-1] for name in self.layer_parameters))

    def of_layer(self, layer: int) -> dict[str, Any]:
        """The parameters of a layer l = 1, ..., L of a network without batch axes, as numbers.

        Examples
        --------
        >>> from fieldtheory.networks.residual import ResidualNetwork
        >>> of_last = ResidualNetwork(depth=2, branch_scale=[0.1, 0.2]).of_layer(2)
        >>> float(of_last["branch_scale"]), of_last["weight_variance"]
        (0.2, 1.25)
        """
        parameters = self.parameters
        return parameters | {name: parameters[name][layer - 1] for name in self.layer_parameters}

    def member(self, batch: tuple[int, ...], index: tuple[int, ...]) -> Self:
        """The network at an index of the batch axes, which have the shape ``batch``.

        Schedules, which have no batch axes, stay what they are.
        """
        parameters = self.parameters
        scales = {
            name: np.broadcast_to(parameters[name], (*batch, self.depth))[index]
            for name in self.layer_parameters
            if not (follows_depth(scale := getattr(self, name, None)) or scale is None)
        }
        return self.replace(**scales)


class LayeredNetwork(DeepNetwork, abstract=True):
    """A family of networks whose layers are joined by skip connections.

        h^(l) = γ_l h^(l-1) + f^(l),   l = 1, ..., L

    Given h^(l-1), the residuals f^(l) of the N neurons are independent Gaussians whose covariance
    over the inputs is the residual kernel

        C_αβ^(l) = a_l (1/N) Σ_i g(h_iα^(l-1), h_iβ^(l-1)) + c_l,   g(x, y) = Σ_k ψ_k(x) ψ_k(y),

    and likewise the outputs, for l = L + 1. A family is a frozen dataclass that derives from this
    class and says what its features ψ_k and its coefficients a_l, c_l, γ_l are, and how a layer
    draws its weights. From that follow its action, saddle point and propagators (`derive`), their
    numbers (`solve`), simulations (`simulate`), sweeps and files.

    ``layer_parameters`` names the parameters with one value for every layer. Of the methods, those
    without ``self`` take the parameters of one layer as a mapping by name: numbers, arrays, or the
    SymPy symbols from which the theory is derived.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> rho, weight, bias, gamma = sp.symbols("rho v_w v_b gamma")
    >>> ResidualNetwork.layer({"branch_scale": rho, "weight_variance": weight,
    ...     "bias_variance": bias, "skip_scale": gamma})
    Coefficients(weight=rho**2*v_w, bias=rho**2*v_b, skip=gamma)
    """

    without: ClassVar[Mapping[str, str]] = {
        "stream_covariance": "the kernels of these layers are conditional covariances, and "
        "four_point has the Gram matrices of the stream"
    }

    @staticmethod
    @abstractmethod
    def features(
        phi: Callable[[Any], sp.Expr], h: sp.Expr, parameters: Parameters
    ) -> tuple[Any, ...]:
        """ψ_k(h) as SymPy expressions; parameters in them must be the same for all layers."""

    @staticmethod
    @abstractmethod
    def branch(
        features: tuple[Any, ...], affine: Callable[..., Any], parameters: Parameters
    ) -> Any:
        """f^(l) with explicit weights, the definition of a layer.

        Parameters
        ----------
        features : tuple of arrays, shape (..., P, N)
            ψ_k(h^(l-1)).
        affine : callable
            ``affine(x, weight_variance, bias_variance)`` draws W and b and returns W x + b,
            with W_ij ~ N(0, weight_variance/fan-in) and b_i ~ N(0, bias_variance).
        parameters : mapping
            Those of the layer, as numbers.
        """

    @property
    def skip_scales(self) -> np.ndarray:
        """γ_l for every layer, shape (..., L)."""
        skips = np.asarray(self.layer(self.parameters).skip, dtype=float)
        return np.broadcast_to(skips, (*skips.shape[:-1], self.depth))

    @cached_property
    def feature_parameters(self) -> tuple[tuple[str, sp.Rational], ...]:
        """The parameters in the features, by name, with their exact values; of one layer none.

        >>> from fieldtheory.networks.residual import ResidualNetwork
        >>> ResidualNetwork(depth=2).feature_parameters
        ()
        """
        numbers = self.parameters
        symbols = {name: sp.Symbol(name, positive=True) for name in numbers}
        psi = self.features(sp.Function("phi"), sp.Symbol("h", real=True), symbols)
        inside = sp.Tuple(*psi).free_symbols
        used: list[tuple[str, sp.Rational]] = []
        for name, symbol in symbols.items():
            if symbol not in inside:
                continue
            if name in self.layer_parameters:
                raise ValueError(f"features must be the same for all layers, got {name} in them")
            used.append((name, sp.Rational(exact(numbers[name]))))
        return tuple(used)


def checked_network(network: Any, function: str = "") -> LayeredNetwork:
    """The argument ``network`` if it is of a family that is complete, or raise TypeError."""
    other = isinstance(network, NetworkFamily)
    if function and other and not isinstance(network, LayeredNetwork):
        raise not_there(function, network)
    if not isinstance(network, LayeredNetwork):
        raise TypeError(
            f"network must be a ResidualNetwork or of a family like it, got {excerpt(network)}"
        )
    if not network.of_package:
        check_family(network)
    return network


def deep_network(network: Any, function: str = "") -> DeepNetwork:
    """The argument ``network`` if it is of a family with layers, or raise TypeError."""
    if function in getattr(network, "without", {}):
        raise not_there(function, network)
    of_own = isinstance(network, LayeredNetwork) and not network.of_package
    if isinstance(network, DeepNetwork) and not of_own:
        return network
    return checked_network(network, function)


def single_network(network: Any, *others: type, function: str = "") -> Any:
    """`checked_network`, or one of other families, without batch axes, or raise ValueError."""
    if function in getattr(network, "without", {}):
        raise not_there(function, network)
    if not isinstance(network, others):
        checked_network(network, function)
    if shape := network.batch_shape:
        raise ValueError(f"network must be one, without batch axes, got scales with {shape}")
    return network


def differences(solved: Any, drawn: Any, *apart_from: str) -> list[str]:
    """Parameters in which a simulated network is not that of the theory, each with both values.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=2)
    >>> differences(net, net.replace(activation="tanh"))
    ['activation erf in the theory, tanh in the simulation']
    """
    if type(solved) is not type(drawn):
        layers = [[getattr(type(of), name, None) for name in _LAYERS] for of in (solved, drawn)]
        if layers[0] != layers[1]:
            return [_both("network", type(solved).__name__, type(drawn).__name__)]
    lines, drawn = [], drawn.replace(width=solved.width)
    for name in [f.name for f in fields(solved) if f.name not in ("width", *apart_from)]:
        values = [getattr(network, name) for network in (solved, drawn)]
        numbers = values
        if values == [None, None]:
            continue
        if solved.depth == drawn.depth and name in getattr(solved, "parameters", ()):
            numbers = [network.parameters[name] for network in (solved, drawn)]
            values = [n if v is None else v for n, v in zip(numbers, values, strict=True)]
        if not np.array_equal(*[getattr(value, "expression", value) for value in numbers]):
            lines.append(_both(name, *map(_said, values)))
    return lines


# Two families with the same have the same layers.
_LAYERS = ("features", "layer", "readout")


def _said(value: Any) -> str:
    if callable(value) and not isinstance(value, Activation):
        return scale_text(value)
    return str(getattr(value, "name", value))


def _both(name: str, solved: str, drawn: str) -> str:
    return f"{name} {solved} in the theory, {drawn} in the simulation"


def input_width(network: DeepNetwork, convention: str) -> float:
    """The number that stands for ν_0, over which responses to the input are divided.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> input_width(ResidualNetwork(depth=1, width=500, input_dim=100), "F25")
    0.2
    """
    validation.choice("convention", convention, CONVENTIONS)
    return network.input_dim / network.width if convention == "F25" else 1.0


def per_layer(scale: Any, depth: int) -> np.ndarray:
    """A checked scale as an array (..., L); names and functions as `ResidualNetwork` takes them."""
    return layer_values("scale", scale, depth)
