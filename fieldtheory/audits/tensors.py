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

# Fewer entries than these have no law.
_FEW = 64
# Kurtosis and the largest of n entries over their deviation; the normal law cut at two deviations.
_UNIFORM, _TRUNCATED, _NORMAL = (1.8, 3.0**0.5), (2.3656, 2.2737), (3.0, np.inf)
LAWS = {"uniform": _UNIFORM, "truncated normal": _TRUNCATED, "normal": _NORMAL}
# Standard errors by which a kurtosis may differ; numbers of memory that nobody has written.
_FAR, _DENORMAL, _UNEVEN = 6.0, 1e-38, 1e12
# Entries that tell a typical size.
_SOME = 10_000


class Place(NamedTuple):
    """Where a parameter stands in a model.

    Parameters
    ----------
    name : str
        As in ``model.named_parameters()``.
    kind : str
        "linear", "convolution", "embedding", "norm", "bias", "vector" or "matrix".
    role : str
        The name with * for the index of the layer.
    layer : int or None
        l = 1, ..., L, None outside of the layers.
    depth : int
        L, the number of layers.
    fan_in, fan_out : int
        Inputs and outputs of a weight; of a bias those of its module's weight.
    residual : bool
        Whether the name is that of the last matrix of a branch.
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
    """

    place: Place
    shape: tuple[int, ...]
    law: str
    deviation: float
    error: float
    freedom: float

    @property
    def entries(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape))

    @property
    def weight_variance(self) -> float | None:
        """σ²_w = fan-in × variance of a weight, None for others."""
        if self.place.kind in ("bias", "vector", "norm", "embedding"):
            return None
        return self.place.fan_in * self.deviation**2


# Last matrices of branches: GPT-2, Llama, Megatron, BERT, torch, timm, Mixtral.
_RESIDUAL = re.compile(
    r"(^|\.)(c_proj|o_proj|out_proj|down_proj|w2|wo|fc2|linear2|dense_4h_to_h|proj_out|"
    r"attn\.proj|attention\.dense|output\.dense|ff\.net\.2|mlp\.[23])\.weight$"
)


def places(model: torch.nn.Module) -> Iterator[tuple[Place, torch.Tensor]]:
    """Parameters and floating buffers of a model, shared ones once, with their places."""
    import torch

    containers = {
        name: len(module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList | torch.nn.Sequential) and len(module) > 1
    }
    depth = max(containers.values(), default=1)
    known: set[int] = set()
    for path, module in model.named_modules():
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for short, tensor in own:
            if id(tensor) in known or not tensor.is_floating_point():
                continue
            known.add(id(tensor))
            name = f"{path}.{short}" if path else short
            role, layer = _role(name, containers)
            kind, fans = _kind(module, short, tensor)
            residual = bool(_RESIDUAL.search(name))
            yield Place(name, kind, role, layer, depth, *fans, residual), tensor


def _role(name: str, containers: dict[str, int]) -> tuple[str, int | None]:
    """The name with * for the index in the longest list of layers, and l = index + 1."""
    parts = name.split(".")
    lists = [
        (containers.get(".".join(parts[:i]), 0), -i)
        for i, part in enumerate(parts)
        if part.isdigit()
    ]
    size, at = max(lists, default=(0, 0))
    if not size:
        return name, None
    layer = int(parts[-at]) + 1
    parts[-at] = "*"
    return ".".join(parts), layer


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
    if short.endswith("bias"):
        return "bias", fans
    if "norm" in name.lower():
        return "norm", fans
    if tensor.ndim < 2:
        return "vector", fans
    if "embedding" in name.lower():
        return "embedding", fans
    if name.startswith(("Conv1d", "Conv2d", "Conv3d", "ConvTranspose")):
        return "convolution", fans
    return ("linear" if short == "weight" else "matrix"), fans


def audited(place: Place, tensor: torch.Tensor) -> AuditedTensor:
    """The law and the size of a tensor, in float64."""
    x = tensor.detach().double().cpu().numpy()
    flat = x.ravel()
    n = flat.size
    fault = _fault(x)
    if fault:
        return AuditedTensor(place, x.shape, f"not initialised: {fault}", np.nan, np.nan, 1.0)
    square = float(flat @ flat) / n if n else 0.0
    if np.ptp(flat) == 0 if n else True:
        value = float(flat[0]) if n else 0.0
        law = {0.0: "zeros", 1.0: "ones"}.get(value, "constant")
        return AuditedTensor(place, x.shape, law, abs(value), 0.0, np.inf)
    squares = flat * flat
    kurtosis = max(float(squares @ squares) / n / square**2, 1 + 2 / n)
    freedom = 2 * n / (kurtosis - 1)
    law = _law(x, kurtosis, square)
    return AuditedTensor(place, x.shape, law, square**0.5, (2 * freedom) ** -0.5, freedom)


def _fault(x: np.ndarray) -> str:
    """Traces of memory that nobody has written."""
    if not np.isfinite(x).all():
        return f"{1 - np.isfinite(x).mean():.2g} of the entries are NaN or infinite"
    sizes = np.abs(x)
    least, most = sizes.min(initial=np.inf, where=sizes > 0), sizes.max(initial=0.0)
    some = sizes.ravel()[:: max(1, sizes.size // _SOME)]
    if least < _DENORMAL or most > _UNEVEN * (np.median(some[some > 0]) if some.any() else most):
        return f"entries from {least:.2g} to {most:.2g}"
    if x.ndim > 1 and x[0].size >= _FEW and len(x) > 1:
        rows = x.reshape(len(x), -1)
        # Rows that are the same have the same product with a random vector.
        products = rows @ np.random.default_rng(0).standard_normal(rows.shape[1])
        products = products[products != 0]
        repeated = len(products) - len(np.unique(products))
        if repeated:
            return f"{repeated} rows are repeated"
    return ""


def _law(x: np.ndarray, kurtosis: float, square: float) -> str:
    if x.size < _FEW:
        return "few"
    if x.ndim == 2 and min(x.shape) > 1 and _is_orthogonal(x):
        return "orthogonal"
    largest = max(x.max(), -x.min()) / square**0.5
    for law, (expected, most) in LAWS.items():
        # Var of a sample kurtosis is 24/n for normal numbers, less for bounded ones.
        near = abs(kurtosis - expected) < _FAR * np.sqrt(24 / x.size)
        if near and largest <= most * (1 + _FAR / np.sqrt(x.size)):
            return law
    return "other"


def _is_orthogonal(x: np.ndarray) -> bool:
    """Whether the shorter ones of rows or columns are orthogonal to a thousandth."""
    rows = x if x.shape[0] <= x.shape[1] else x.T
    some = rows[:64]
    gram = some @ some.T / (some**2).sum(axis=1).mean()
    return bool(np.abs(gram - np.eye(len(gram))).max() < 1e-3)


def tensors_of(model: Any) -> list[AuditedTensor]:
    """All of a model."""
    if not validation.is_torch_module(model):
        raise TypeError(f"model must be a torch.nn.Module, got {validation.excerpt(model)}")
    rows = []
    for place, tensor in places(model):
        if tensor.is_meta:
            raise ValueError(f"model must have its weights, got {place.name} on the meta device")
        if tensor.is_quantized:
            raise ValueError(f"model must not be quantised, got {place.name} of {tensor.dtype}")
        rows.append(audited(place, tensor))
    if not rows:
        raise ValueError("model must have parameters, got none")
    return rows
