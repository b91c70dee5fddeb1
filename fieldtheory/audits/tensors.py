"""Every parameter of a model with its law, its size, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fieldtheory import validation

if TYPE_CHECKING:
    import torch

# Fewer entries than these have no law: of more, likelihoods tell uniform numbers from normal ones.
_FEW = 128
# Entries of a row that chance does not repeat.
_ROW = 16
# Kurtosis of n independent entries and n times its variance.
_UNIFORM, _NORMAL = (1.8, 1.32), (3.0, 24.0)
LAWS = ("uniform", "truncated normal", "normal")
# Logarithm of a ratio of likelihoods that no chance gives.
_NATS = 20.0
# Standard errors by which a kurtosis may differ; sizes and their ratio of memory nobody wrote.
_FAR, _DENORMAL, _UNEVEN = 6.0, 1e-38, 1e24


class Place(NamedTuple):
    """Place of a parameter in a model.

    Parameters
    ----------
    name : str
        As in ``model.named_parameters()``.
    kind : str
        "linear", "convolution", "embedding", "norm", "norm bias", "bias", "vector", "matrix" or
        "buffer".
    role : str
        The name with * for the index of the layer.
    layer : int or None
        l = 1, ..., L, None outside of the layers.
    depth : int
        L, the number of layers in the list of this one, of the longest list outside of them.
    fan_in, fan_out : int
        Inputs and outputs of a weight; of a bias those of its module's weight.
    residual : bool
        Whether the name is that of the last matrix of a branch.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3)))
    >>> next(places(model))[0]
    Place(name='0.weight', kind='linear', role='*.weight', layer=1, depth=3, fan_in=64, ...)
    """

    name: str
    kind: str
    role: str
    layer: int | None
    depth: int
    fan_in: int
    fan_out: int
    residual: bool


@dataclass(frozen=True, eq=False)
class AuditedTensor:
    """A parameter or buffer as it is.

    Parameters
    ----------
    place : Place
    shape : tuple of int
    law : str
        "zeros", "ones", "constant", "normal", "truncated normal", "uniform", "orthogonal", "other",
        "few" where there are too few entries to say, or "not initialised: ...".
    deviation : float
        Root of the mean square of the entries.
    error : float
        Its relative standard error, from the kurtosis.
    freedom : float
        Degrees of freedom of its square, 2n/(kurtosis − 1).
    rounding : float
        Relative spacing of its numbers.
    """

    place: Place
    shape: tuple[int, ...]
    law: str
    deviation: float
    error: float
    freedom: float
    rounding: float

    @property
    def entries(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape))

    @property
    def weight_variance(self) -> float | None:
        """σ²_w = fan-in × variance of a weight, None for others."""
        if self.place.kind in ("bias", "vector", "norm", "norm bias", "embedding", "buffer"):
            return None
        return self.place.fan_in * self.deviation**2


# Last matrices of branches: GPT-2, Llama, Megatron, BERT, torch, timm, Mixtral.
_RESIDUAL = re.compile(
    r"(^|\.)(c_proj|o_proj|out_proj|down_proj|w2|wo|fc2|linear2|dense_4h_to_h|proj_out|"
    r"attn\.proj|attention\.dense|output\.dense|ff\.net\.2|mlp\.[23])\.weight$"
)


def places(model: torch.nn.Module) -> Iterator[tuple[Place, torch.Tensor]]:
    """Parameters and floating buffers of a model, shared ones once, with their places."""
    alike, others = layer_lists(model)
    containers = alike or others
    depth = max((len(layers) for layers in containers.values()), default=1)
    known: set[int] = set()
    for path, module in model.named_modules():
        parameters = dict(module.named_parameters(recurse=False))
        for short, tensor in (parameters | dict(module.named_buffers(recurse=False))).items():
            if id(tensor) in known or not tensor.is_floating_point():
                continue
            known.add(id(tensor))
            name = f"{path}.{short}" if path else short
            role, layer, own = _role(name, containers)
            kind, fans = _kind(module, short, tensor)
            kind = kind if short in parameters else "buffer"
            residual = bool(_RESIDUAL.search(name))
            yield Place(name, kind, role, layer, own or depth, *fans, residual), tensor


def layer_lists(model: torch.nn.Module) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Lists of layers of one type, and others, with the indices of those with parameters."""
    import torch

    lists: dict[bool, dict[str, list[str]]] = {True: {}, False: {}}
    for name, module in model.named_modules():
        children = dict(module.named_children())
        is_chain = isinstance(module, torch.nn.Sequential)
        is_list = isinstance(module, torch.nn.ModuleList | torch.nn.ModuleDict)
        layers = [k for k, child in children.items() if next(child.parameters(), None) is not None]
        if (is_chain or is_list) and all(map(str.isdigit, children)) and len(layers) > is_chain:
            lists[len(set(map(type, children.values()))) == 1][name] = layers
    return lists[True], lists[False]


def _role(name: str, containers: dict[str, list[str]]) -> tuple[str, int | None, int]:
    """The name with * for the index in the outermost list of layers, l, and how many there are."""
    parts = name.split(".")
    lists = [(at, containers.get(".".join(parts[:at]), [])) for at in range(len(parts))]
    within = [(len(layers) == 1, at, layers) for at, layers in lists if parts[at] in layers]
    if not within:
        return name, None, 0
    _, at, layers = min(within)
    role = ".".join([*parts[:at], "*", *parts[at + 1 :]])
    return role, layers.index(parts[at]) + 1, len(layers)


def _kind(module: Any, short: str, tensor: torch.Tensor) -> tuple[str, tuple[int, int]]:
    weight = getattr(module, "weight", tensor)
    shape = (
        tuple(weight.shape) if hasattr(weight, "shape") and weight.ndim > 1 else tuple(tensor.shape)
    )
    name = type(module).__name__
    fans = (int(np.prod(shape[1:])), shape[0]) if len(shape) > 1 else (1, *shape, 1)[:2]
    if name == "Conv1D":
        # That of transformers, which has its weight transposed.
        fans = fans[::-1]
    if "norm" in name.lower():
        return ("norm bias" if short.endswith("bias") else "norm"), fans
    if short.endswith("bias"):
        return "bias", fans
    if tensor.ndim < 2:
        return "vector", fans
    if "embedding" in name.lower():
        return "embedding", fans
    if name.startswith(("Conv1d", "Conv2d", "Conv3d", "ConvTranspose")):
        return "convolution", fans
    return ("linear" if short == "weight" else "matrix"), fans


def audited(place: Place, tensor: torch.Tensor) -> AuditedTensor:
    """The law and the size of a tensor, in float64."""
    import torch

    x = tensor.detach().cpu().double().numpy()
    if place.kind == "embedding" and x.any():
        # Rows of padding are zero.
        x = x[x.any(axis=-1)]
    flat, n, numbers = x.ravel(), x.size, torch.finfo(tensor.dtype)
    fault = _fault(x) if place.kind != "buffer" else _nan(x)
    if fault:
        law = f"not initialised: {fault}"
        return AuditedTensor(place, tuple(tensor.shape), law, np.nan, np.nan, 1.0, numbers.eps)
    squares = flat * flat
    square = float(squares.mean()) if n else 0.0
    spacing = numbers.eps * max(1.0, numbers.smallest_normal / square**0.5 if square else 0.0)
    if np.isinf(square):
        return AuditedTensor(place, tuple(tensor.shape), "other", square, 0.0, np.inf, spacing)
    if not n or (flat == flat[0]).all():
        value = float(flat[0]) if n else 0.0
        law = {0.0: "zeros", 1.0: "ones"}.get(value, "constant")
        return AuditedTensor(place, tuple(tensor.shape), law, abs(value), 0.0, np.inf, spacing)
    kurtosis = max(float(squares @ squares) / n / square**2, 1 + 2 / n)
    law = _law(x, kurtosis, max(_ORTHOGONAL, numbers.eps))
    # Few entries measure no kurtosis, and laws have one.
    kurtosis = {"few": max(kurtosis, 3.0), "uniform": 1.8, "normal": 3.0}.get(law, kurtosis)
    freedom = 2 * n / (kurtosis - 1)
    error = (2 * freedom) ** -0.5
    return AuditedTensor(place, tuple(tensor.shape), law, square**0.5, error, freedom, spacing)


def _nan(x: np.ndarray) -> str:
    share = np.isnan(x).mean() if x.size else 0.0
    return f"{share:.2g} of the entries are NaN" if share else ""


def _fault(x: np.ndarray) -> str:
    """Traces of memory that nobody has written."""
    if share := _nan(x):
        return share
    if np.isinf(x).any():
        return "entries are infinite"
    sizes = np.abs(x)
    least, most = sizes.min(initial=np.inf, where=sizes > 0), sizes.max(initial=0.0)
    if least < _DENORMAL or most > _UNEVEN * least:
        return f"entries from {least:.2g} to {most:.2g}"
    if x.ndim > 1 and x[0].size >= _ROW and len(x) > 1:
        rows = x.reshape(len(x), -1)
        # Rows that are the same have the same product with a random vector.
        products = rows @ np.random.default_rng(0).standard_normal(rows.shape[1])
        if len(np.unique(products)) < len(products):
            rows = rows[np.ptp(rows, axis=1) > 0]
            repeated = len(rows) - len(np.unique(rows, axis=0))
            return f"{repeated} rows are repeated" if repeated else ""
    return ""


def _law(x: np.ndarray, kurtosis: float, tolerance: float) -> str:
    """The most likely law, where its kurtosis is that of the entries."""
    if x.ndim == 2 and min(x.shape) > 1 and _is_orthogonal(x, tolerance):
        return "orthogonal"
    n = x.size
    if n < _FEW:
        return "few"
    largest = float(np.abs(x).max() / np.sqrt((x**2).mean()))
    normal = 0.5 * np.log(2 * np.pi * np.e)
    expected, spread = _UNIFORM
    near = abs(kurtosis - expected) < _FAR * np.sqrt(spread / n)
    if near and n * (normal - np.log(2 * largest)) > _NATS:
        return "uniform"
    cut, expected = _cut(largest)
    law = "truncated normal" if n * (normal - cut) > _NATS else "normal"
    expected = expected if law == "truncated normal" else _NORMAL[0]
    return law if abs(kurtosis - expected) < _FAR * np.sqrt(_NORMAL[1] / n) else "other"


def _cut(largest: float) -> tuple[float, float]:
    """Entropy and kurtosis of a normal law cut at so many of its deviations, which are one."""
    from scipy.special import erf

    c, variance = largest, 1.0
    for _ in range(50):
        inside = erf(c / 2**0.5)
        edge = 2 * c * np.exp(-(c**2) / 2) / (2 * np.pi) ** 0.5 / inside
        variance = 1 - edge
        # Below a tenth the law is uniform.
        c = max(0.1, largest * variance**0.5)
    entropy = 0.5 * (np.log(2 * np.pi / variance) + variance) + np.log(inside)
    return float(entropy), float((3 * variance - c**2 * edge) / variance**2)


# Products of orthogonal rows of length one, in float32.
_ORTHOGONAL = 1e-3


def _is_orthogonal(x: np.ndarray, tolerance: float) -> bool:
    """Whether the shorter ones of rows or columns are orthogonal and of one length."""
    rows = x if x.shape[0] <= x.shape[1] else x.T
    some = rows[:64]
    gram = some @ some.T / (some**2).sum(axis=1).mean()
    return bool(np.abs(gram - np.eye(len(gram))).max() < tolerance)


def tensors_of(model: Any) -> list[AuditedTensor]:
    """All of a model."""
    if not validation.is_torch_module(model) or isinstance(model, type):
        raise TypeError(f"model must be a torch.nn.Module, got {validation.excerpt(model)}")
    _check(model)
    rows = [audited(place, tensor) for place, tensor in places(model)]
    if not rows:
        raise ValueError("model must have parameters, got none")
    return rows


def _check(model: torch.nn.Module) -> None:
    """Whether all weights are there and are numbers, or an error that says which are not."""
    import torch

    for name, module in model.named_modules():
        of = f"{name or 'model'}, a {type(module).__name__}"
        if isinstance(module, torch.jit.ScriptModule):
            raise ValueError(f"model must be the module before torch.jit, got {of}")
        if ".quantized." in f"{type(module).__module__}.":
            raise ValueError(f"model must not be quantised, got {of}")
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"model must have its shapes, got {name} before a first forward pass")
        if tensor.is_meta:
            raise ValueError(f"model must have its weights, got {name} on the meta device")
        is_number = tensor.is_floating_point() or tensor.is_complex()
        if tensor.is_quantized or (isinstance(tensor, torch.nn.Parameter) and not is_number):
            raise ValueError(f"model must not be quantised, got {name} of {tensor.dtype}")
