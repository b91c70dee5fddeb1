"""Every parameter of a model with its place: its role, its layer, its kind and its fans."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from fieldtheory.audits.kinds import classes, kind_and_fans, norm_kinds

# Last matrices of branches: GPT-2, Llama, Megatron, BERT, torch, timm, Mixtral.
_RESIDUAL = re.compile(
    r"(^|\.)(c_proj|o_proj|out_proj|down_proj|w2|wo|fc2|linear2|dense_4h_to_h|proj_out|"
    r"attn\.proj|attention\.dense|output\.dense|ff\.net\.2|mlp\.[23])\.weight$"
)


class Place(NamedTuple):
    """Place of a parameter in a model.

    The ``role`` is the name with * for the number of the layer l = 1, ..., L, which is None outside
    of layers; ``depth`` is L, there that of the longest stack nearby. ``kind`` is "linear",
    "convolution", "embedding", "norm", "norm offset" (w of a norm times 1 + w), "norm bias",
    "bias", "vector", "matrix" or "buffer", which fixed tables without a gradient are too, by the
    class of the module and by what it does. ``fan_in`` of a bias is that of its weight; of
    recurrent layers ``fan_out`` is the size of the state. ``residual`` says whether the name is
    that of the last matrix of a branch, ``module`` the class of torch that draws the parameter, ""
    if none does. What a parametrization such as `weight_norm` gives stands for what it is made of.

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
    module: str


def places(model: Any) -> Iterator[tuple[Place, Any]]:
    """Parameters and floating buffers of a model, shared ones once, with their places."""
    lists, buffers = layer_lists(model), dict(model.named_buffers())
    redrawn = [n for n, m in model.named_modules() if "Transformer" in classes(m)]
    for name, tensor in (_effective(model) | buffers).items():
        if tensor.is_floating_point():
            path, _, short = name.rpartition(".")
            role, layer, own = _role(name, lists)
            module = model.get_submodule(path)
            kind, fans = kind_and_fans(module, short, tensor)
            kind, is_last = "buffer" if name in buffers else kind, bool(_RESIDUAL.search(name))
            depth, of = own or _nearby(path, lists), (*classes(module), "")[0]
            # It draws all of its matrices anew.
            of = "Transformer" if tensor.ndim > 1 and any(_is_in(path, n) for n in redrawn) else of
            yield Place(name, kind, role, layer, depth, *fans, is_last, of), tensor


def _effective(model: Any) -> dict[str, Any]:
    """Parameters by name, and what parametrizations give in place of what they are made of."""
    from torch import no_grad
    from torch.nn.utils.parametrize import ParametrizationList
    from torch.nn.utils.weight_norm import WeightNorm

    found = dict[str, Any]()
    for name, tensor in model.named_parameters():
        path, _, short = name.rpartition(".")
        module, (holder, _, given) = (
            model.get_submodule(path),
            path.rpartition(".parametrizations."),
        )
        hooks = [
            hook
            for hook in module._forward_pre_hooks.values()
            if isinstance(hook, WeightNorm) and short[:-2] == hook.name
        ]
        if isinstance(module, ParametrizationList):
            name = f"{holder}.{given}" if holder else path.removeprefix("parametrizations.")
            if name not in found:
                # Those of the spectral norm change in training mode.
                same = {id(p): p for p in module.parameters()}
                with no_grad():
                    given_by = copy.deepcopy(module, same).eval()()
                tensor = given_by.requires_grad_(tensor.requires_grad)
        elif hooks:
            name = name[:-2]
            with no_grad():
                given_by = hooks[0].compute_weight(module)
            tensor = given_by.requires_grad_(tensor.requires_grad)
        found.setdefault(name, tensor)
    return found


def layer_lists(model: Any) -> dict[str, list[list[str]]]:
    """Numbers of like layers with parameters, by the name of what holds them."""
    lists: dict[str, list[list[str]]] = {}
    for name, holder in model.named_modules():
        members = {n: m for n, m in holder.named_children() if [*m.parameters()]}
        kinds = {n: type(m) for n, m in (members | holder._parameters).items() if n.isdigit()}
        parts = {n: [c for c in m.children() if [*c.parameters()]] for n, m in members.items()}
        whole, count = [n for n in kinds if parts.get(n)], Counter(kinds.values())
        like = [at for at, n in enumerate(whole) if count[kinds[n]] > 1]
        found = [whole[like[0] : like[-1] + 1]] if like else []
        found += [[n for n in kinds if kinds[n] is k and n not in whole] for k in count]
        found = [numbers for numbers in found if len(numbers) > 1]
        lists[name] = found or [[*kinds]] * (len(kinds) == 1)
    return {
        name: found
        for name, found in lists.items()
        if found and not _holds_stacks(model, name, lists)
    }


def _holds_stacks(model: Any, name: str, lists: dict[str, list[list[str]]]) -> bool:
    """Whether members of a list have longer ones, of blocks with norms or of what is in series."""
    from torch.nn import Sequential

    members = [_joined(name, n) for numbers in lists[name] for n in numbers]
    for inner in (n for n in lists for member in members if _is_in(n, member)):
        longer = [each for each in lists[inner] if len(each) > len(members) > 1]
        blocks = model.get_submodule(_joined(inner, longer[0][0])) if longer else None
        in_series = inner in members and isinstance(model.get_submodule(inner), Sequential)
        if blocks is not None and (in_series or any(map(norm_kinds, blocks.modules()))):
            return True
    return False


def _joined(*names: str) -> str:
    return ".".join(filter(None, names))


def _is_in(name: str, holder: str) -> bool:
    return not holder or name == holder or name.startswith(f"{holder}.")


def _role(name: str, lists: dict[str, list[list[str]]]) -> tuple[str, int | None, int]:
    """The name with * for the number in the outermost list of several layers, l, and L."""
    parts, within = name.split("."), []
    for at, part in enumerate(parts):
        for layers in lists.get(".".join(parts[:at]), []):
            if part in layers:
                role = ".".join([*parts[:at], "*", *parts[at + 1 :]])
                within.append((len(layers) == 1, at, role, layers.index(part) + 1, len(layers)))
    return min(within)[2:] if within else (name, None, 0)


def _nearby(path: str, lists: dict[str, list[list[str]]]) -> int:
    """Length of the longest stack in the nearest module around, without those within layers."""
    outer = {n: max(map(len, found)) for n, found in lists.items() if _role(n, lists)[2] < 2}
    parts = path.split(".")
    around = [".".join(parts[:at]) for at in range(len(parts), -1, -1)]
    lengths = ([m for n, m in outer.items() if _is_in(n, holder)] for holder in around)
    return max(next(filter(None, lengths), [1]))
