"""Signals of a model block by block: mean squares, shares of branches, angles, gradients."""

from __future__ import annotations

import contextlib
import copy
from collections import defaultdict
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from fieldtheory.audits.branches import AuditedBlock, recognised
from fieldtheory.audits.intents import Target
from fieldtheory.audits.places import places
from fieldtheory.blocks.estimates import critical_branch

# Inputs that are drawn where none are given, tokens of each, and pixels of an image on a side.
_SAMPLES, _TOKENS, _PIXELS = 4, 16, 32
# Rows of the stream by which branches are recognised.
_ROWS = 4
# γ of a layer whose skip and branch have the same share, that of `measure_block`.
_SKIP = 0.5**0.5


def signals_of(model: torch.nn.Module, inputs: Any, meant: dict[str, Target]) -> list[AuditedBlock]:
    """The blocks that the stream of a model passes; none if it does not take what is drawn."""
    if inputs is not None:
        return _passed(model, inputs, meant)
    with contextlib.suppress(Exception):
        return _passed(model, _drawn_inputs(model), meant)
    return []


def _drawn_inputs(model: torch.nn.Module) -> torch.Tensor:
    """Token ids, images or vectors, as the first of the layers that take these does."""
    generator, kinds = torch.Generator().manual_seed(0), ("embedding", "convolution", "linear")
    place, weight = next(each for each in places(model) if each[0].kind in kinds)
    if place.kind == "embedding":
        ids = torch.randint(len(weight), (_SAMPLES, _TOKENS), generator=generator)
        return ids.to(weight.device)
    shape = (place.fan_in,) if place.kind == "linear" else (weight.shape[1], _PIXELS, _PIXELS)
    return torch.randn((_SAMPLES, *shape), generator=generator).to(weight)


def _passed(model: torch.nn.Module, inputs: Any, meant: dict[str, Target]) -> list[AuditedBlock]:
    """Blocks of a copy that shares the weights."""
    shared = {id(p): torch.nn.Parameter(p.detach()) for p in model.parameters()}
    copied = copy.deepcopy(model, shared).eval()
    streams: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)

    def record(module: Any, arguments: Any, keywords: Any, output: Any) -> None:
        flow = _tensor((*arguments, *keywords.values())), _tensor(output)
        if all(each is not None and each.ndim for each in flow):
            streams[module].append(flow)

    for module in copied.modules():
        module.register_forward_hook(record, with_kwargs=True)
    with contextlib.ExitStack() as end, torch.random.fork_rng(), torch.enable_grad():
        end.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        result = _tensor(copied(*inputs) if isinstance(inputs, tuple) else copied(inputs))
    blocks = _chain(copied, streams)
    if result is None or not blocks:
        return []
    direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(0)).to(result)
    ends = [streams[block][0][1] for block in blocks.values()]
    gradients = torch.autograd.grad(result, ends, direction, materialize_grads=True)
    norms = [float(gradient.double().norm()) for gradient in gradients]
    sizes = {id(p): (meant.get(name) or (None, None))[1] for name, p in copied.named_parameters()}
    linear, rows = 0.0, []
    for (name, block), norm in zip(blocks.items(), norms, strict=True):
        x, y = (each.detach().cpu().double().numpy() for each in streams[block][0])
        squares = x * x, y * y, (y - x) ** 2, (y - x) * x
        before, behind, added, overlap = (float(each.mean()) for each in squares)
        linear = (linear or before) + added
        size = np.prod([np.linalg.norm(each) for each in y[:2]]) if len(y) > 1 else 0.0
        correlation = float(np.vdot(y[0], y[1]) / size) if size else None
        share, gradient = added / behind if behind else 0.0, norm / norms[-1] if norms[-1] else 0.0
        flows = {m: [*map(_rows, streams[m][-1])] for m in block.modules() if streams[m]}
        branch = recognised(block, flows, sizes) if before else ()
        scale = float(critical_branch(_SKIP, added / before, overlap / before)) if before else 0.0
        measured = (None, None) if branch else (overlap, scale if scale > 0 else None)
        numbers = before, behind, share, linear, correlation, gradient, *measured
        rows.append(AuditedBlock(name, *numbers, *branch))
    return rows


def _rows(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().reshape(-1, tensor.shape[-1])[:_ROWS].cpu().double().numpy()


def _chain(model: torch.nn.Module, streams: dict[Any, list[tuple[Any, Any]]]) -> dict[str, Any]:
    """The like layers through which the stream passes longest, each once."""
    longest, blocks = 0, dict[str, Any]()
    for holder in model.modules():
        chain = {n: m for n, m in holder.named_children() if n.isdigit() and [*m.parameters()]}
        flows = [streams[block] for block in chain.values()]
        is_once = all(len(flow) == 1 and flow[0][0].shape == flow[0][1].shape for flow in flows)
        if is_once and len(set(map(type, chain.values()))) == 1:
            passed = sum(torch.equal(a[0][1], b[0][0]) for a, b in pairwise(flows))
            longest, blocks = max((longest, blocks), (passed, chain), key=lambda each: each[0])
    return blocks


def _tensor(value: Any) -> Any:
    """The first floating tensor of a tensor, a tuple, a list, a mapping or a dataclass."""
    if hasattr(value, "is_floating_point"):
        return value if value.is_floating_point() else None
    value = vars(value) if is_dataclass(value) else value
    items = [*value.values()] if hasattr(value, "values") else value
    tensors = map(_tensor, items if isinstance(items, tuple | list) else ())
    return next((tensor for tensor in tensors if tensor is not None), None)
