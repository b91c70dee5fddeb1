"""`torch_module`: a network as a torch module whose law at initialisation is the prior's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

import sympy as sp
import torch

from fieldtheory import validation
from fieldtheory.averages.integrands.exponentials import without_overflow
from fieldtheory.families import named, registered
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import NetworkFamily
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory.tangent_kernel import checked_parametrization

_SAME = (
    *("erf", "erfc", "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh"),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(torch, name) for name in _SAME} | {
    "expit": torch.sigmoid,
    "softplus": lambda u: torch.logaddexp(u, torch.zeros_like(u)),
    # Even, with the slope 0 of |u| at zero.
    "log_cosh": lambda u: u.abs() + torch.log1p(torch.exp(-2 * u.abs())) - math.log(2),
}


@cache
def torch_function(activation: Activation) -> Callable[[torch.Tensor], torch.Tensor]:
    """φ as a function of a tensor that torch can differentiate.

    >>> from fieldtheory.networks.activations import as_activation
    >>> h = torch.tensor([-800.0, 2.0], requires_grad=True)
    >>> torch_function(as_activation("elu"))(h).detach(), torch_function(as_activation("sign"))(h)
    (tensor([-1.,  2.]), tensor([-1.,  1.]))
    """
    pieces = activation.pieces
    branches = [_compiled(branch, pieces.variable, activation) for branch in pieces.branches]
    edges = [None, *map(float, pieces.points), None]

    def phi(h: torch.Tensor) -> torch.Tensor:
        value = h
        for branch, (low, high) in zip(branches, pairwise(edges), strict=True):
            inside = branch(h if low is high else h.clamp(low, high))
            if not isinstance(inside, torch.Tensor):
                inside = torch.full_like(h, inside)
            value = inside if low is None else torch.where(h < low, value, inside)
        return value

    return phi


def _compiled(branch: sp.Expr, variable: sp.Symbol, activation: Activation) -> Callable[..., Any]:
    # Numbers first, with more digits than float64 has: functions of torch take tensors alone.
    form = without_overflow(branch).replace(
        lambda e: bool(e.is_number and not e.is_Rational), lambda number: sp.N(number, 20)
    )
    unknown = {f.func.__name__ for f in form.atoms(sp.Function)} - set(_FUNCTIONS)
    if unknown:
        raise ValueError(
            f"activation must be made of functions that torch has, got {', '.join(sorted(unknown))}"
            f" in {activation.name}"
        )
    return sp.lambdify(variable, form, modules=[_FUNCTIONS], cse=True)


class Affine(torch.nn.Module):
    """W x + b with W_ij ~ N(0, σ²_w/fan-in) and b_i ~ N(0, σ²_b), in one or several copies.

    ``weight`` ([n,] fan-out, fan-in) and ``bias`` ([n,] fan-out) are W and b, or, with ``unit``,
    standard normals of which they are multiples. A bias of variance 0 is no parameter.
    """

    def __init__(
        self, normals: Callable[..., Any], unit: bool, units: int, fan_in: int, variances: Any
    ) -> None:
        super().__init__()
        deviations = (variances[0] / fan_in) ** 0.5, variances[1] ** 0.5
        self.gains = deviations if unit else (1.0, 1.0)
        self.variances = [1.0 if unit else deviation**2 for deviation in deviations]
        scales = [variance**0.5 for variance in self.variances]
        self.weight = torch.nn.Parameter(scales[0] * normals(units, fan_in))
        self.bias = torch.nn.Parameter(scales[1] * normals(units)) if variances[1] else None

    def priors(self) -> Iterator[tuple[torch.nn.Parameter, float]]:
        """W and b, each with the variance of its entries."""
        parameters = (self.weight, self.bias)[: 1 + (self.bias is not None)]
        return zip(parameters, self.variances, strict=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """W x + b of the rows of x, ([n,] P, fan-in) -> ([n,] P, fan-out)."""
        product = x @ (self.gains[0] * self.weight).mT
        return product if self.bias is None else product + self.gains[1] * self.bias[..., None, :]


class TorchNetwork(torch.nn.Module):
    """A network as a torch module, as `torch_module` returns it.

    ``readin``, ``layers`` and ``readout`` are affine maps, or for ``layers`` a `Branch` each;
    ``network`` is what it was made of.
    """

    def __init__(
        self, network: Any, ends: tuple[int, int], norms: bool, affine: Callable[..., Affine]
    ) -> None:
        super().__init__()
        self.network, self.phi = network, torch_function(network.activation)
        width, layers = network.width, range(network.depth)
        readin, readout = self._variances(ends[0])
        self.readin = affine(width, ends[0], readin)
        self.layers = torch.nn.ModuleList(self._branch(l, affine) for l in layers)
        self.readout = affine(ends[1], width, readout)
        self.copies = self.readin.weight.shape[:-2]
        neurons = width * math.prod(self.copies)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(neurons) for _ in layers if norms)

    @classmethod
    def inputs_of(cls, network: Any, inputs: int | None) -> int:
        """The number of inputs of a module, which a network has or must be given."""
        return network.input_dim if inputs is None else inputs

    def _variances(self, inputs: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """σ²_w and σ²_b of the read-in and of the readout."""
        p = self.network.parameters
        a, c, _ = self.network.readout(p)
        return (p["readin_weight_variance"], p["readin_bias_variance"]), (a, c)

    def _branch(self, l: int, affine: Callable[..., Affine]) -> torch.nn.Module:
        """The random part of a layer."""
        net = self.network
        return affine(net.width, net.width, (net.weight_variance, net.bias_variance))

    def signals(self, X: Any) -> Iterator[torch.Tensor]:
        """h^(0), ..., h^(L) of the rows of X (P, d), each ([n,] P, N)."""
        return (h for h, _ in self._layers(X))

    def _layers(self, X: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """h^(l), and the features of which C^(l+1) is the Gram matrix, for l = 0, ..., L."""
        h = self.readin(self._tensor(X))
        for l in range(self.network.depth):
            psi = self.phi(h)
            yield h, psi
            h = self._layer(l, h, psi)
        yield h, self.phi(h)

    def _layer(self, l: int, h: torch.Tensor, psi: torch.Tensor) -> torch.Tensor:
        step = self.layers[l](psi)
        if self.norms:
            # Every neuron of every copy over the batch.
            rows = step.movedim(-2, 0)
            step = self.norms[l](rows.flatten(1)).view(rows.shape).movedim(0, -2)
        return float(self.network.skip_scales[l]) * h + float(self.network.branch_scales[l]) * step

    def forward(self, X: Any) -> torch.Tensor:
        """The outputs at the rows of X (P, d), ([n,] P, outputs)."""
        for _, psi in self._layers(X):
            features = psi
        return self.readout(features)

    def _coefficients(self) -> Iterator[tuple[float, float]]:
        """a_l and c_l, l = 0, ..., L + 1."""
        net, (readin, readout) = self.network, self._variances(self.network.input_dim)
        layers = (net.layer(net.of_layer(l))[:2] for l in range(1, net.depth + 1))
        return ((float(a), float(c)) for a, c in (readin, *layers, readout))

    def residual_kernels(self, X: Any) -> torch.Tensor:
        """C^(0), ..., C^(L+1), ([n,] L + 2, P, P)."""
        x = self._tensor(X)
        features = [x.expand(*self.copies, *x.shape), *(psi for _, psi in self._layers(x))]
        rows = zip(self._coefficients(), features, strict=True)
        return torch.stack([a * _gram(psi) + c for (a, c), psi in rows], dim=-3)

    def kernels(self, X: Any) -> torch.Tensor:
        """h^(l) h^(l)ᵀ/N for l = 0, ..., L, then the output kernel C^(L+1), ([n,] L + 2, P, P)."""
        signals, features = zip(*self._layers(X), strict=True)
        *_, (a, c) = self._coefficients()
        return torch.stack([*map(_gram, signals), a * _gram(features[-1]) + c], dim=-3)

    def priors(self) -> Iterator[tuple[torch.nn.Parameter, float]]:
        """Every parameter with the variance of its entries at initialisation."""
        if self.norms:
            raise ValueError("module must have a prior of all parameters, got batch_norm=True")
        for part in self.modules():
            if isinstance(part, Affine):
                yield from part.priors()

    def _tensor(self, X: Any) -> torch.Tensor:
        x = torch.as_tensor(X, dtype=self.readin.weight.dtype, device=self.readin.weight.device)
        if x.ndim != 2 or x.shape[1] != self.readin.weight.shape[-1]:
            d = self.readin.weight.shape[-1]
            raise ValueError(f"X must have shape (P, {d}), got {tuple(x.shape)}")
        return x


class Branch(torch.nn.Module):
    """The branch of a layer of a `GramNetwork`, with its norm: f as a function of the stream x.

    ``maps`` are its affine maps in the order of the family: W, V of a gate and W' of a
    `BlockNetwork`.
    """

    def __init__(self, network: GramNetwork, l: int, affine: Callable[..., Affine]) -> None:
        super().__init__()
        self.network, self.maps = network, torch.nn.ModuleList()
        self.values = {name: float(value) for name, value in network.of_layer(l).items()}
        self.factors = [torch_function(factor) for factor in network.factors]

        def drawn(x: torch.Tensor, units: int, *variances: float) -> torch.Tensor:
            self.maps.append(affine(units, x.shape[-1], variances))
            return x.new_zeros(1, units)

        self._applied(torch.zeros(1, network.width), drawn)

    def _applied(self, read: torch.Tensor, affine: Callable[..., Any]) -> tuple[Any, Any]:
        """The activity of the hidden units, and f."""
        kept = []

        def activity(*signals: torch.Tensor) -> torch.Tensor:
            kept.append(math.prod(phi(u) for phi, u in zip(self.factors, signals, strict=True)))
            return kept[0]

        f = self.network.branch(read, affine, activity, self.values)
        return kept[0], f

    def step(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What the skip connection carries of x, the activity of the hidden units, and f."""
        maps, (carried, read) = iter(self.maps), self.network.passed(x, self.values)
        return carried, *self._applied(read, lambda of, *_: next(maps)(of))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """f of the rows of x, ([n,] P, N) -> ([n,] P, N)."""
        return self.step(x)[-1]


class _TorchGram(TorchNetwork):
    """The stream and its branches, x^(l) = γ_l s(x^(l-1)) + f^(l), of `GramNetwork`.

    Signals are s(x^(l)), which the skip connections carry.
    """

    def _branch(self, l: int, affine: Callable[..., Affine]) -> torch.nn.Module:
        return Branch(self.network, l + 1, affine)

    def _layers(self, X: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        x = self.readin(self._tensor(X))
        for branch in self.layers:
            carried, activity, f = branch.step(x)
            yield carried, activity
            x = self.network.layer(branch.values).skip * carried + f
        yield self.network.passed(x, self.layers[-1].values)


@named_arguments
def torch_module(
    network: NetworkFamily,
    *,
    inputs: int | None = None,
    outputs: int = 1,
    copies: int | None = None,
    parametrization: str = "standard",
    batch_norm: bool = False,
    seed: int = 0,
    dtype: str = "float64",
) -> TorchNetwork:
    """A network as a torch module, drawn from the prior.

    Its weights W_ij ~ N(0, σ²_w/fan-in) and biases b_i ~ N(0, σ²_b) are independent, as
    `ResidualNetwork` defines them (F25 eq. (1)), so that its signals follow the law of `simulate`.

    Parameters
    ----------
    network : ResidualNetwork, BlockNetwork or of a family that has torch modules
        Without batch axes.
    inputs, outputs : int
        d and d_out; ``network.input_dim`` if ``inputs`` is left out.
    copies : int, optional
        n independent networks in one module: parameters and outputs have a leading axis of length
        n. Much faster than n modules where the networks are small.
    parametrization : {"standard", "ntk"}
        What the parameters are: W and b themselves, with the names and shapes of
        `torch.nn.Linear`; or standard normals, which are multiplied by σ_w/√fan-in and σ_b.
    batch_norm : bool
        Normalise W φ(h) + b over the batch before it is scaled with ρ_l, with a trained gain and
        shift; the law is then no longer that of ``network``. Residual networks only.
    seed : int
        Seed of the parameters, >= 0; the state of torch's own generator does not change.
    dtype : {"float64", "float32"}

    Returns
    -------
    TorchNetwork
        ``module(X)`` gives the outputs, ``module.signals(X)``, ``module.kernels(X)`` and
        ``module.residual_kernels(X)`` what happens on the way, ``module.priors()`` the parameters
        with the variances from which they were drawn.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or torch lacks a function of φ.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, width=20, input_dim=2, readout_bias_variance=0.0)
    >>> module = torch_module(net, copies=5)
    >>> X = [[1.0, 0.0], [0.0, 1.0]]
    >>> tuple(module(X).shape), tuple(module.residual_kernels(X).shape)
    ((5, 2, 1), (5, 5, 2, 2))
    >>> {name: tuple(p.shape) for name, p in torch_module(net).layers[2].named_parameters()}
    {'weight': (20, 20), 'bias': (20,)}
    """
    own = {named(f.network): named(f.torch) for f in registered() if f.torch}
    kinds: dict[Any, type[TorchNetwork]] = {ResidualNetwork: TorchNetwork, GramNetwork: _TorchGram}
    kinds |= own
    kind = next((k for family, k in kinds.items() if isinstance(network, family)), None)
    if kind is None or getattr(network, "batch_shape", None):
        first, *others = (family.__name__.replace("Gram", "Block") for family in kinds)
        raise TypeError(
            f"network must be one {', '.join([first, *others[:-1]])} or {others[-1]}, "
            f"got {validation.excerpt(network)}"
        )
    if batch_norm and kind is not TorchNetwork:
        raise ValueError(
            f"batch_norm must be False for a {type(network).__name__}, got {batch_norm!r}"
        )
    inputs = kind.inputs_of(network, inputs)
    generator = torch.Generator().manual_seed(validation.integer("seed", seed, 0))
    ends = validation.integer("inputs", inputs, 1), validation.integer("outputs", outputs, 1)
    leading = () if copies is None else (validation.integer("copies", copies, 1),)

    def normals(*shape: int) -> torch.Tensor:
        return torch.randn((*leading, *shape), generator=generator, dtype=torch.float64)

    affine = partial(Affine, normals, checked_parametrization(parametrization) == "ntk")
    kept = getattr(torch, validation.choice("dtype", dtype, ("float64", "float32")))
    return kind(network, ends, batch_norm, affine).to(kept)


def _gram(values: torch.Tensor) -> torch.Tensor:
    return values @ values.mT / values.shape[-1]
