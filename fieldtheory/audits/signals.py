"""Signals of a model block by block: mean squares, shares of branches, angles, gradients."""

from __future__ import annotations

import copy
from dataclasses import is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fieldtheory.audits.branches import Branch, recognised
from fieldtheory.audits.tensors import layer_lists

if TYPE_CHECKING:
    import torch

# Inputs that are drawn where none are given, tokens of each, and pixels of an image on a side.
_SAMPLES, _TOKENS, _PIXELS = 4, 16, 32
# Rows of the stream by which branches are recognised.
_ROWS = 4


class AuditedBlock(NamedTuple):
    """Mean squares of the stream ``before`` and ``behind`` a block, and more about it.

    ``share`` is what it adds over what is behind, ``linear`` the first mean square with all that
    blocks add up to here, ``correlation`` that of two inputs, and ``gradient`` the norm of that of
    a random direction of the output, over that of the last block. If the last ``branch`` is
    recognised, the mean square of one input behind it, about the mean for LayerNorm: ``measured``;
    ``predicted`` by theory with the weights as meant, with the ``spread`` over draws and ``z``; and
    "by_weights", with the variances that they have.
    """

    name: str
    before: float
    behind: float
    share: float
    linear: float
    correlation: float | None
    gradient: float
    branch: str | None = None
    measured: float | None = None
    predicted: float | None = None
    spread: float | None = None
    z: float | None = None
    by_weights: float | None = None


def random_inputs(model: torch.nn.Module) -> Any:
    """Token ids, images or vectors, by the first layer with weights; None where that is unclear."""
    import torch

    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if weight is None or next(module.parameters(recurse=False), None) is None:
            continue
        if isinstance(module, torch.nn.Embedding):
            ids = torch.randint(module.num_embeddings, (_SAMPLES, _TOKENS), generator=generator)
            return ids.to(weight.device)
        of_norm = hasattr(module, "normalized_shape")
        shape = weight.shape if of_norm else weight.shape[1:] if weight.ndim == 2 else ()
        if isinstance(module, torch.nn.Conv2d):
            shape = module.in_channels, _PIXELS, _PIXELS
        return torch.randn((_SAMPLES, *shape), generator=generator).to(weight) if shape else None
    return None


def signals_of(model: torch.nn.Module, inputs: Any) -> list[tuple[AuditedBlock, Branch | None]]:
    """The blocks that the stream of a model passes; none if it does not take what is drawn."""
    try:
        drawn = random_inputs(model) if inputs is None else inputs
        return [] if drawn is None else _passed(model, drawn)
    except Exception:
        if inputs is not None:
            raise
        return []


def _passed(model: torch.nn.Module, inputs: Any) -> list[tuple[AuditedBlock, Branch | None]]:
    """Blocks of a copy that shares the weights."""
    import torch

    shared = {id(p): torch.nn.Parameter(p.detach()) for p in model.parameters()}
    copied = copy.deepcopy(model, shared).eval()
    streams: dict[Any, list[tuple[Any, Any]]] = {}

    def record(module: Any, arguments: Any, keywords: Any, output: Any) -> None:
        flow = _tensor((*arguments, *keywords.values())), _tensor(output)
        if all(each is not None and each.ndim for each in flow):
            streams.setdefault(module, []).append(flow)

    for module in copied.modules():
        module.register_forward_hook(record, with_kwargs=True)
    numbers = np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            result = _tensor(copied(*inputs) if isinstance(inputs, tuple) else copied(inputs))
    finally:
        np.random.set_state(numbers)  # noqa: NPY002
    blocks = _chain(copied, streams)
    if result is None or not blocks:
        return []
    direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(0)).to(result)
    behind = [streams[block][0][1] for block in blocks.values()]
    gradients = torch.autograd.grad(result, behind, direction, allow_unused=True)
    norms = [0.0 if g is None else float(g.double().norm()) for g in gradients]
    names, linear, rows = {id(p): name for name, p in copied.named_parameters()}, 0.0, []
    for (name, block), norm in zip(blocks.items(), norms, strict=True):
        x, y = (each.detach().cpu().double().numpy() for each in streams[block][0])
        first, last, added = (float((each**2).mean()) for each in (x, y, y - x))
        linear = (linear or first) + added
        size = np.prod([np.linalg.norm(each) for each in y[:2]]) if len(y) > 1 else 0.0
        correlation = float((y[0] * y[1]).sum() / size) if size else None
        share, gradient = added / last if last else 0.0, norm / norms[-1] if norms[-1] else 0.0
        row = AuditedBlock(name, first, last, share, linear, correlation, gradient)
        passed = [(module, flow) for module in block.modules() for flow in streams.get(module, [])]
        flows = {module: (_rows(flow[0]), _rows(flow[1])) for module, flow in passed}
        rows.append((row, recognised(block, flows, names) if first else None))
    return rows


def _rows(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().reshape(-1, tensor.shape[-1])[:_ROWS].cpu().double().numpy()


def _chain(model: torch.nn.Module, streams: dict[Any, list[tuple[Any, Any]]]) -> dict[str, Any]:
    """The layers through which the stream passes longest, each once."""
    import torch

    longest, blocks = 0, dict[str, Any]()
    for name, layers in layer_lists(model).items():
        chain = {layer: model.get_submodule(name).get_submodule(layer) for layer in layers}
        flows = [streams.get(block, []) for block in chain.values()]
        if (
            all(len(flow) == 1 and flow[0][0].shape == flow[0][1].shape for flow in flows)
            and len({type(each) for each in chain.values()}) == 1
        ):
            passed = sum(torch.equal(a[0][1], b[0][0]) for a, b in pairwise(flows))
            longest, blocks = max((longest, blocks), (passed, chain), key=lambda each: each[0])
    return blocks


def _tensor(value: Any) -> Any:
    """The first floating tensor of a tensor, a tuple, a list, a mapping or a dataclass."""
    if hasattr(value, "is_floating_point"):
        return value if value.is_floating_point() else None
    value = vars(value) if is_dataclass(value) else value
    value = [*value.values()] if hasattr(value, "values") else value
    items = value if isinstance(value, tuple | list) else ()
    return next((t for each in items if (t := _tensor(each)) is not None), None)
