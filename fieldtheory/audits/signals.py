"""Signals of a model block by block: mean squares, shares of branches, angles, gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldtheory import validation
from fieldtheory.audits.tensors import layer_lists
from fieldtheory.networks.gram import GramNetwork
from fieldtheory.numerics.solution import solve

if TYPE_CHECKING:
    import torch

# Inputs that are drawn where none are given, tokens of each, and pixels of an image on a side.
_SAMPLES, _TOKENS, _PIXELS = 4, 16, 32


@dataclass(frozen=True, eq=False)
class AuditedBlock:
    """A block of a model with the stream before and behind it.

    Parameters
    ----------
    name : str
    before, behind : float
        Mean squares of the stream.
    share : float
        Mean square of what the block adds over that behind it.
    linear : float
        Sum of the first mean square and of those of all branches up to here: that behind the block
        if branches are independent of the stream.
    correlation : float or None
        Of the streams of two inputs behind the block, over the square of their sizes.
    gradient : float
        Norm of the gradient of a random direction of the output with respect to the stream behind
        the block, over that of the last one.
    first : tuple of float
        Mean squares of the first vector of the stream, before and behind.
    predicted, predicted_error, explained : float, optional
        The latter by the theory of a network, its deviation over draws of the weights, and by the
        theory of a network with the deviations that the weights have.
    """

    name: str
    before: float
    behind: float
    share: float
    linear: float
    correlation: float | None
    gradient: float
    first: tuple[float, float]
    predicted: float | None = None
    predicted_error: float | None = None
    explained: float | None = None

    @property
    def z(self) -> float:
        """Of the first input's mean square behind the block; 0 without a prediction."""
        if self.predicted is None or not self.predicted_error:
            return 0.0
        return (self.first[1] - self.predicted) / self.predicted_error


def predicted(
    blocks: list[AuditedBlock], network: GramNetwork, measured: GramNetwork
) -> list[AuditedBlock]:
    """The same with the mean squares of the first input as the theory of two networks has them.

    Given its R^(0), R^(l) is K^(l) with Var R^(l) − χ² Var R^(0) over networks, to order 1/N.
    """
    if len(blocks) != network.depth:
        raise ValueError(
            f"intent must have the depth of the model, {len(blocks)} blocks, got {network.depth}"
        )
    s, other = (solve(each, blocks[0].first[0]) for each in (network, measured))
    variance = s.kernel_variance - s.response**2 * s.kernel_variance[0]
    errors = np.sqrt(np.maximum(variance, 0.0))[1:]
    rows = zip(blocks, s.kernels[1:-1], errors, other.kernels[1:-1], strict=True)
    return [
        replace(b, predicted=float(K), predicted_error=float(e), explained=float(w))
        for b, K, e, w in rows
    ]


def blocks_of(model: torch.nn.Module) -> list[tuple[str, Any]]:
    """The layers of the longest list of layers of one type; none if there is none of two."""
    alike, _ = layer_lists(model)
    name, layers = max(alike.items(), key=lambda each: len(each[1]), default=("", []))
    children = dict(model.get_submodule(name).named_children())
    return [(layer, children[layer]) for layer in layers] if len(layers) > 1 else []


def random_inputs(model: torch.nn.Module) -> Any:
    """Token ids, images or vectors, by the first layer with weights; None where that is unclear."""
    import torch

    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if weight is None or next(module.parameters(recurse=False), None) is None:
            continue
        if isinstance(module, torch.nn.Embedding):
            tokens = _SAMPLES, _TOKENS
            ids = torch.randint(module.num_embeddings, tokens, generator=generator)
            return ids.to(weight.device)
        shape: tuple[int, ...]
        if isinstance(module, torch.nn.Conv2d):
            shape = _SAMPLES, module.in_channels, _PIXELS, _PIXELS
        elif weight.ndim == 2:
            shape = _SAMPLES, weight.shape[1]
        elif hasattr(module, "normalized_shape"):
            shape = _SAMPLES, *weight.shape
        else:
            return None
        return torch.randn(shape, generator=generator).to(weight)
    return None


@contextmanager
def unchanged(model: torch.nn.Module) -> Iterator[list[Any]]:
    """A model in evaluation mode, with what it is afterwards, hooks, mode and generators as before.

    Hooks that are appended to the list are removed.
    """
    import torch

    modes = [(module, module.training) for module in model.modules()]
    frozen = [(p, p.requires_grad) for p in model.parameters()]
    tensors = [(t, t.clone()) for t in model.buffers()]
    registered = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    numbers = np.random.get_state()  # noqa: NPY002
    hooks: list[Any] = []
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            model.eval()
            yield hooks
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes:
            module.training = training
        for parameter, required in frozen:
            parameter.requires_grad_(required)
        for buffers, before in registered:
            buffers.clear()
            buffers.update(before)
        with torch.no_grad():
            for tensor, value in tensors:
                tensor.copy_(value)
        np.random.set_state(numbers)  # noqa: NPY002


def signals_of(model: torch.nn.Module, inputs: Any) -> list[AuditedBlock]:
    """The blocks of a model that the stream passes one after the other; none if there are none."""
    import torch

    blocks = blocks_of(model)
    if not blocks:
        return []
    streams: list[tuple[torch.Tensor, torch.Tensor]] = []

    def record(module: Any, arguments: Any, output: Any) -> None:
        before, behind = _tensor(arguments), _tensor(output)
        if before is not None and behind is not None and before.shape == behind.shape:
            streams.append((before, behind))

    with unchanged(model) as hooks:
        for parameter in model.parameters():
            parameter.requires_grad_(True)
        hooks.extend(block.register_forward_hook(record) for _, block in blocks)
        output = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
        result = _tensor(output)
        if result is None or len(streams) != len(blocks):
            return []
        generator = torch.Generator().manual_seed(0)
        direction = torch.randn(result.shape, generator=generator).to(result)
        behind = [made for _, made in streams]
        gradients = torch.autograd.grad((result * direction).sum(), behind, allow_unused=True)
    return _blocks([name for name, _ in blocks], streams, gradients)


def _blocks(names: list[str], streams: list[Any], gradients: Any) -> list[AuditedBlock]:
    rows: list[AuditedBlock] = []
    norms = [0.0 if g is None else float(g.double().norm()) for g in gradients]
    linear = None
    for name, (given, made), norm in zip(names, streams, norms, strict=True):
        x, y = (each.detach().cpu().double().numpy() for each in (given, made))
        before, behind, added = (float((each**2).mean()) for each in (x, y, y - x))
        linear = (before if linear is None else linear) + added
        correlation = None
        if len(y) > 1:
            first, second = y[0].ravel(), y[1].ravel()
            size = np.linalg.norm(first) * np.linalg.norm(second)
            correlation = float(first @ second / size) if size else None
        share = added / behind if behind else 0.0
        gradient = norm / norms[-1] if norms[-1] else np.nan
        first = tuple(float((each.reshape(-1, each.shape[-1])[0] ** 2).mean()) for each in (x, y))
        numbers = before, behind, share, linear, correlation, gradient, first
        rows.append(AuditedBlock(name, *numbers))
    return rows


def _tensor(value: Any) -> Any:
    """The first floating tensor of a tensor, a tuple, a list, a mapping or a dataclass."""
    import torch

    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() else None
    if is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in fields(value))
    elif hasattr(value, "values") and callable(value.values):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return next((t for each in value if (t := _tensor(each)) is not None), None)
    return None


def checked_inputs(model: torch.nn.Module, inputs: Any) -> Any:
    """Tensors, or arrays as tensors: integers, or numbers of the kind of the weights."""
    import torch

    if inputs is None or isinstance(inputs, torch.Tensor | tuple):
        return inputs
    values = validation.finite_array("inputs", inputs)
    if np.asarray(inputs).dtype.kind in "iu":
        return torch.as_tensor(values.astype(int))
    kinds = (p.dtype for p in model.parameters() if p.is_floating_point())
    return torch.as_tensor(values, dtype=next(kinds, None))
