"""Every parameter of a model with its place: its role, its layer, its kind and its fans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

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


def places(model: Any) -> Iterator[tuple[Place, Any]]:
    """Parameters and floating buffers of a model, shared ones once, with their places."""
    lists, buffers = _layer_lists(model), dict(model.named_buffers())
    depth = max(map(len, lists.values()), default=1)
    for name, tensor in (dict(model.named_parameters()) | buffers).items():
        if tensor.is_floating_point():
            path, _, short = name.rpartition(".")
            role, layer, own = _role(name, lists)
            kind, fans = _kind(model.get_submodule(path), short, tensor)
            kind, is_last = "buffer" if name in buffers else kind, bool(_RESIDUAL.search(name))
            yield Place(name, kind, role, layer, own or depth, *fans, is_last), tensor


def _layer_lists(model: Any) -> dict[str, list[str]]:
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


def _kind(module: Any, short: str, tensor: Any) -> tuple[str, tuple[int, int]]:
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
