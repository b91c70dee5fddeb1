"""Every parameter of a model with its law, its size and its place; scores of laws and sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fieldtheory import validation

if TYPE_CHECKING:
    import torch

# Kurtosis of independent entries and n times its variance.
_UNIFORM, _NORMAL = (1.8, 1.32), (3.0, 24.0)
# Kurtosis of a normal law cut at one deviation; entries of which the kurtosis has that variance.
_CUT, _FEW = 1.94, 50
LAWS = ("uniform", "normal", "truncated normal")
# Standard errors beyond which a law is another one: of 10⁵ tensors, chance puts one there.
_FAR = 4.5
# Products of orthogonal rows of length one, in float32.
_ORTHOGONAL = 1e-3
# Entries of a row that chance does not repeat.
_ROW = 16
_VECTORS = "bias", "vector", "norm", "norm bias", "embedding", "buffer"
# Last matrices of branches: GPT-2, Llama, Megatron, BERT, torch, timm, Mixtral.
_RESIDUAL = re.compile(
    r"(^|\.)(c_proj|o_proj|out_proj|down_proj|w2|wo|fc2|linear2|dense_4h_to_h|proj_out|"
    r"attn\.proj|attention\.dense|output\.dense|ff\.net\.2|mlp\.[23])\.weight$"
)


class Place(NamedTuple):
    """Place of a parameter in a model.

    The ``role`` is the name with * for the number of the layer l = 1, ..., L, which is None outside
    of layers; ``depth`` is L, there that of the longest list; ``kind`` "linear", "convolution",
    "embedding", "norm", "norm bias", "bias", "vector", "matrix" or "buffer"; ``fan_in`` of a bias
    that of its weight; ``residual`` whether the name is that of the last matrix of a branch.

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


class AuditedTensor(NamedTuple):
    """The law of a parameter or buffer, √⟨w²⟩ with its error, and σ²_w = fan-in × variance.

    Laws: "zeros", "ones", "constant", "normal", "truncated normal", "uniform", "orthogonal",
    "other", "few" where entries do not say, "not initialised: ...". The square has ``freedom``
    degrees; ``scores`` are z of laws, ``rounding`` is the relative spacing of the numbers.
    """

    place: Place
    shape: tuple[int, ...]
    law: str
    deviation: float
    error: float
    weight_variance: float | None
    freedom: float
    rounding: float
    scores: dict[str, float]


def places(model: torch.nn.Module) -> Iterator[tuple[Place, torch.Tensor]]:
    """Parameters and floating buffers of a model, shared ones once, with their places."""
    lists = layer_lists(model)
    depth, met = max(map(len, lists.values()), default=1), set()
    for path, module in model.named_modules():
        parameters = dict(module.named_parameters(recurse=False))
        for short, tensor in (parameters | dict(module.named_buffers(recurse=False))).items():
            if id(tensor) not in met and tensor.is_floating_point():
                met.add(id(tensor))
                name = f"{path}.{short}" if path else short
                role, layer, own = _role(name, lists)
                kind, fans = _kind(module, short, tensor)
                kind, last = kind if short in parameters else "buffer", _RESIDUAL.search(name)
                yield Place(name, kind, role, layer, own or depth, *fans, bool(last)), tensor


def layer_lists(model: torch.nn.Module) -> dict[str, list[str]]:
    """Numbers of layers with parameters, by the name of what holds them."""
    lists: dict[str, dict[str, None]] = {}
    for name, _ in model.named_parameters():
        parts = name.split(".")
        for at in (at for at, part in enumerate(parts) if part.isdigit()):
            lists.setdefault(".".join(parts[:at]), {})[parts[at]] = None
    return {name: [*numbers] for name, numbers in lists.items()}


def _role(name: str, lists: dict[str, list[str]]) -> tuple[str, int | None, int]:
    """The name with * for the number in the outermost list of several layers, l, and L."""
    parts, within = name.split("."), []
    for at, part in enumerate(parts):
        layers = lists.get(".".join(parts[:at]), [])
        if part in layers:
            role = ".".join([*parts[:at], "*", *parts[at + 1 :]])
            within.append((len(layers) == 1, at, role, layers.index(part) + 1, len(layers)))
    return min(within)[2:] if within else (name, None, 0)


def _kind(module: Any, short: str, tensor: torch.Tensor) -> tuple[str, tuple[int, int]]:
    weight, name = getattr(module, "weight", tensor), type(module).__name__
    shape = tuple(weight.shape if getattr(weight, "ndim", 0) > 1 else tensor.shape)
    fans = (int(np.prod(shape[1:])), shape[0]) if len(shape) > 1 else (1, *shape, 1)[:2]
    # That of transformers has its weight transposed.
    fans = fans[::-1] if name == "Conv1D" else fans
    if "embedding" in name.lower() and tensor.ndim > 1:
        return "embedding", fans
    if "norm" in name.lower():
        return ("norm bias" if short.endswith("bias") else "norm"), fans
    if short.endswith("bias") or tensor.ndim < 2:
        return ("bias" if short.endswith("bias") else "vector"), fans
    if re.match(r"Conv(Transpose)?[123]d", name):
        return "convolution", fans
    return ("linear" if short == "weight" else "matrix"), fans


def audited(place: Place, tensor: torch.Tensor) -> AuditedTensor:
    """The law and the size of a tensor, in float64."""
    import torch

    x, numbers = tensor.detach().cpu().double().numpy(), torch.finfo(tensor.dtype)
    if place.kind == "embedding" and x.any():
        # Rows of padding are zero.
        x = x[x.any(axis=-1)]
    flat, n, scores, freedom = x.ravel(), x.size, {}, np.inf
    with np.errstate(over="ignore"):
        squares = flat * flat
    square = float(squares.mean()) if n else 0.0
    if fault := _fault(x, place.kind == "buffer"):
        law, square, freedom = f"not initialised: {fault}", np.nan, np.nan
    elif not n or (flat == flat[0]).all():
        law = {0.0: "zeros", 1.0: "ones"}.get(flat[0] if n else 0.0, "constant")
    elif np.isinf(square):
        law = "other"
    else:
        kurtosis = max(float(squares @ squares) / n / square**2, 1 + 2 / n)
        scores = law_scores(n, float(np.sqrt(squares.max() / square)), kurtosis)
        law = _law(x, scores, max(_ORTHOGONAL, numbers.eps))
        # Few entries measure no kurtosis, and laws have one.
        laws = {"few": max(kurtosis, _NORMAL[0]), "uniform": _UNIFORM[0], "normal": _NORMAL[0]}
        freedom = 2 * n / (laws.get(law, kurtosis) - 1)
    size, error = square**0.5, (square / 2 / freedom) ** 0.5 if freedom < np.inf else 0.0
    spacing = numbers.eps * max(1.0, numbers.smallest_normal / size if size else 0.0)
    variance = None if place.kind in _VECTORS else place.fan_in * square
    shape = tuple(tensor.shape)
    return AuditedTensor(place, shape, law, size, error, variance, freedom, spacing, scores)


def _fault(x: np.ndarray, is_buffer: bool) -> str:
    """Traces of memory that nobody has written; buffers may have infinities and equal rows."""
    if share := np.isnan(x).mean() if x.size else 0.0:
        return f"{share:.2g} of the entries are NaN"
    sizes = np.abs(x)
    least, most = sizes.min(initial=np.inf, where=sizes > 0), sizes.max(initial=0.0)
    if is_buffer or np.isinf(most):
        return "" if is_buffer else "entries are infinite"
    if least < np.finfo(np.float32).tiny * max(1.0, most):
        return f"entries from {least:.2g} to {most:.2g}"
    if x.ndim < 2 or x[0].size < _ROW:
        return ""
    # Rows that are the same have the same product with a random vector; identities have zeros.
    rows = x.reshape(len(x), -1)
    products = rows @ np.random.default_rng(0).standard_normal(rows.shape[1])
    products = products[(np.ptp(rows, axis=1) > 0) & rows.all(axis=1)]
    repeated = len(products) - len(np.unique(products))
    return f"{repeated} rows are repeated" if 0 < repeated < len(products) - 1 else ""


def _law(x: np.ndarray, scores: dict[str, float], tolerance: float) -> str:
    """The law that is not refused; "few" where normal and uniform ones are not."""
    if x.ndim == 2 and min(x.shape) > 1:
        some = (x if x.shape[0] <= x.shape[1] else x.T)[:64]
        gram = some @ some.T / (some**2).sum(axis=1).mean()
        if np.abs(gram - np.eye(len(gram))).max() < tolerance:
            return "orthogonal"
    laws = [law for law, z in scores.items() if abs(z) < _FAR]
    is_few = not scores or {"uniform", "normal"} <= {*laws}
    return "few" if is_few else [*laws, "other"][0]


def tensors_of(model: Any) -> list[AuditedTensor]:
    """All of a model, or an error that says which of its weights are not there or no numbers."""
    import torch

    if not validation.is_torch_module(model) or isinstance(model, type):
        raise TypeError(f"model must be a torch.nn.Module, got {validation.excerpt(model)}")
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
        is_whole = not (tensor.is_floating_point() or tensor.is_complex())
        if tensor.is_quantized or (isinstance(tensor, torch.nn.Parameter) and is_whole):
            raise ValueError(f"model must not be quantised, got {name} of {tensor.dtype}")
    rows = [audited(place, tensor) for place, tensor in places(model)]
    if not rows:
        raise ValueError("model must have parameters, got none")
    return rows


def score(deviation: float, target: float, freedom: float, rounding: float) -> float:
    """z of a measured deviation, by Wilson and Hilferty's root of χ² of so many degrees."""
    if target == 0:
        return 0.0 if deviation == 0 else np.inf
    if np.isinf(freedom):
        return 0.0 if np.isclose(deviation, target, rtol=max(rounding, 1e-6)) else np.inf
    spread = 2 / (9 * freedom)
    return float(((deviation / target) ** (2 / 3) - (1 - spread)) / spread**0.5)


def probability(z: float, tests: int) -> float:
    """Probability that the largest of so many |z| exceeds one."""
    from scipy.special import ndtr

    return float(-np.expm1(tests * np.log1p(-min(2 * ndtr(-z), 1 - 1e-16))))


def law_scores(n: int, largest: float, kurtosis: float) -> dict[str, float]:
    """z of n entries under the laws, by the largest over the deviation and the kurtosis.

    Under a normal law the largest may be too small; laws that are cut have a kurtosis between. To
    order 1/√n the kurtosis of normal entries to the power −2 has no skewness.
    """
    from scipy.special import ndtr, ndtri_exp

    if n < _FEW:
        return {}

    def of_kurtosis(expected: float, variance: float) -> float:
        return float((1 - (expected / kurtosis) ** 2) * expected / 2 / (variance / n) ** 0.5)

    cut = float(ndtri_exp(n * np.log1p(-2 * ndtr(-largest)))) if largest < 8 else 0.0
    uniform = (3 / largest**2 - 1) / (0.8 / n) ** 0.5
    return {
        "uniform": max(uniform, of_kurtosis(*_UNIFORM), key=abs),
        "normal": max(min(cut, 0.0), of_kurtosis(*_NORMAL), key=abs),
        "truncated normal": of_kurtosis(float(np.clip(kurtosis, _CUT, _NORMAL[0])), _NORMAL[1]),
    }
