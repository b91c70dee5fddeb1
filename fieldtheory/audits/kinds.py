"""What a parameter is: by the torch class of its module, else by what its module does."""

from __future__ import annotations

import copy
import re
from functools import partial
from inspect import signature
from math import prod
from typing import Any

# Of torch, by the base classes of torch.nn.
_NORMS = "LayerNorm", "RMSNorm", "GroupNorm", "_NormBase"
_EMBEDDINGS, _RECURRENT = ("Embedding", "EmbeddingBag"), ("RNNBase", "RNNCellBase")
# Size of inputs beside which ε is negligible, and rounding of what norms make of them.
_SIZE, _ROUNDING = 100.0, 1e-3
# Fewest rows of a table, relative remainder of a recurrence; correlation of neighbours, and how
# many times its standard error.
_FEWEST, _REMAINDER, _LIKE, _ERRORS = 5, 1e-4, 0.5, 5.0


def classes(module: Any) -> list[str]:
    """Names of the classes of torch.nn that a module is of, the nearest first."""
    found = [each for each in type(module).__mro__ if each.__module__.startswith("torch.nn.")]
    return [each.__name__ for each in found if each.__name__ != "Module"]


def kind_and_fans(module: Any, short: str, tensor: Any) -> tuple[str, tuple[int, int]]:
    """Kind of a parameter with its fan-in and fan-out, those of its weight for a bias."""
    of, own = {*classes(module)}, dict(module.named_parameters(recurse=False))
    siblings = short.replace("bias", "weight"), re.sub(r"_?bias$", "", short), "weight"
    weights = [getattr(module, n, None) for n in siblings if n and n != short]
    if short == "bias":
        weights += [each for each in own.values() if each.ndim > 1]
    weight = next((each for each in weights if getattr(each, "ndim", 0) > 1), None)
    has_weight = weight is not None or siblings[0] in module._parameters
    is_bias = short == "bias" or ("bias" in short.split("_") and has_weight)
    weight = weight if is_bias and weight is not None else tensor
    a, b = (*weight.shape, 1, 1)[:2]
    fans = (prod(weight.shape[1:]), a) if weight.ndim > 1 else (1, a)
    use = _use(module, weight) if not of and weight.ndim == 2 else ""
    if of & {"_ConvNd"} or (weight.ndim > 2 and prod(weight.shape[:2]) == 1):
        fans = fans[0], a * prod(weight.shape[2:])
    elif of & {*_RECURRENT}:
        fans = b, module.hidden_size
    elif of & {"Bilinear"}:
        fans = b, a
    elif use == "transposed":
        fans = a, b
    if tensor.ndim > 1 and _is_table(tensor):
        return "buffer", fans
    if norm := norm_kinds(module).get(short):
        return norm, fans
    if is_bias or tensor.ndim < 2:
        return ("bias" if is_bias else "vector"), fans
    if of & {*_EMBEDDINGS} or use == "embedding":
        return "embedding", fans
    if of & {"_ConvNd"}:
        return "convolution", fans
    is_linear = of & {"Linear"} or use or (not of and short == "weight" and tensor.ndim == 2)
    return ("linear" if is_linear else "matrix"), fans


def _bare(module: Any, shared: Any) -> Any:
    """A copy in single precision without hooks, in which parameters are what is given."""
    copied = copy.deepcopy(module, {id(p): shared(p) for p in module.parameters()})
    for each in (copied._forward_hooks, copied._forward_pre_hooks):
        each.clear()
    return copied.float()


def _use(module: Any, weight: Any) -> str:
    """Whether a module with one matrix looks vectors up, or multiplies by it or its transpose."""
    import torch

    a, b = weight.shape
    if len([p for p in module.parameters() if p.ndim > 1]) != 1:
        return ""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, max(a, b), generator=generator)
    inputs = {"transposed": x[:, :a], "linear": x[:, :b], "embedding": torch.zeros(1, 2).long()}
    shapes = {"transposed": (2, b), "linear": (2, a), "embedding": (1, 2, b)}
    for use, given in inputs.items():
        try:
            with torch.no_grad(), torch.random.fork_rng():
                W = weight.detach().cpu().float()
                y = _bare(module, lambda p: torch.nn.Parameter(p.detach().cpu()))(given)
            if tuple(y.shape) == shapes[use] and y.is_floating_point():
                f = given @ W if use == "transposed" else given @ W.T if use == "linear" else y
                y = y - getattr(module, "bias", torch.zeros(())).detach().cpu()
                if use == "embedding" or torch.allclose(f, y, rtol=_ROUNDING, atol=_ROUNDING):
                    return use
        except Exception:
            # It does not take such inputs.
            continue
    return ""


_known: dict[Any, dict[str, str]] = {}


def norm_kinds(module: Any) -> dict[str, str]:
    """Kinds of the vectors of a norm: "norm" of factors w, "norm offset" of 1 + w, "norm bias"."""
    vectors = dict(module.named_parameters(recurse=False))
    is_torch = type(module).__module__.startswith("torch.nn.")
    names = {"weight": "norm", "bias": "norm bias"} if {*classes(module)} & {*_NORMS} else {}
    if is_torch or not vectors or any(p.ndim > 1 for p in module.parameters()):
        return names
    if len(vectors) < len([*module.parameters()]):
        return names
    plain = {k: v for k, v in vars(module).items() if isinstance(v, int | float | str)}
    key = type(module), *((k, len(v)) for k, v in vectors.items()), *plain.items()
    if key not in _known:
        _known[key] = _probed(module, [*vectors]) or names
    return _known[key]


def _probed(module: Any, names: list[str]) -> dict[str, str]:
    import torch

    n = max(len(p) for p in module.parameters())
    generator = torch.Generator().manual_seed(0)

    def give(x: Any, value: float, one: str = "") -> Any:
        """What the module gives of x with all of its vectors of one value, or one of them one."""
        copied = _bare(module, lambda p: torch.nn.Parameter(torch.full_like(p, value).cpu()))
        if one:
            copied.get_parameter(one).fill_(1.0)
        required = [
            p for p in signature(copied.forward).parameters.values() if p.default is p.empty
        ]
        others = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in required) - 1
        return copied(x, *[torch.ones_like(x)] * others)

    for shape in ((3, n), (2, 3, n), (2, n, 3, 3), (2, n, 5)):
        x = _SIZE * torch.randn(shape, generator=generator)
        try:
            with torch.no_grad(), torch.random.fork_rng():
                y, larger, start = give(x, 1.0), give(4 * x, 1.0), give(x, 0.0)
                added = {name: give(x, 0.0, name) - start for name in names}
        except Exception:
            # It does not take such inputs.
            continue
        near = partial(torch.allclose, rtol=_ROUNDING, atol=_ROUNDING)
        if y.shape == x.shape and near(y, larger) and not near(y, y.flatten()[0].expand_as(y)):
            gain = "norm offset" if start.any() else "norm"
            return {
                name: "norm bias" if near(z, torch.ones_like(z)) else gain
                for name, z in added.items()
                if z.any()
            }
    return {}


def _is_table(tensor: Any) -> bool:
    """Whether entries obey a recurrence along an axis, as sines do, or are alike where frozen."""
    x = tensor.detach().cpu().double()
    for axis, n in enumerate(x.shape if x.numel() else ()):
        y = x.movedim(axis, 0).reshape(n, -1)
        centred = y - y.mean()
        square = float((centred[1:] ** 2).sum() * (centred[:-1] ** 2).sum()) ** 0.5
        # Rows that are all the same obey any.
        if n < _FEWEST or not float(((y - y.mean(0)) ** 2).sum()) > _ROUNDING * float((y**2).sum()):
            continue
        # sin(ω(p + 1)) + sin(ω(p − 1)) = 2 cos ω sin ωp.
        ends, middle = y[2:] + y[:-2], y[1:-1]
        slope = (ends * middle).sum(0) / (middle**2).sum(0).clamp(min=1e-300)
        if float(((ends - slope * middle) ** 2).sum()) < _REMAINDER * float((ends**2).sum()):
            return True
        correlation = float((centred[1:] * centred[:-1]).sum()) / square if square else 0.0
        if not tensor.requires_grad and correlation > max(_LIKE, _ERRORS * y[1:].numel() ** -0.5):
            return True
    return False
