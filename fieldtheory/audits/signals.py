"""Signals of a model block by block: mean squares, shares of branches, angles, gradients."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from fieldtheory.audits.branches import AuditedBlock, Branch, predicted, recognised
from fieldtheory.audits.heads import attention_of
from fieldtheory.audits.intents import Target
from fieldtheory.audits.places import layer_lists, places
from fieldtheory.audits.streams import AuditedStep, out_of_line, steps_of
from fieldtheory.measured_blocks.estimates import critical_branch

# Inputs that are drawn where none are given, tokens of each, and pixels of an image on a side.
_SAMPLES, _TOKENS, _PIXELS = 4, 16, 32
# Rows of the stream by which branches are recognised, most tokens of a whole sequence, and blocks
# in which attention is looked for.
_ROWS, _MOST, _LOOKED = 4, 20, 2
# γ of a layer whose skip and branch have the same share, that of `measure_block`.
_SKIP = 0.5**0.5


class Signals(NamedTuple):
    """``forms`` have the branch, what it is and what it is in all other blocks."""

    blocks: list[AuditedBlock]
    steps: list[AuditedStep]
    forms: list[tuple[str, Any, Any, Any]]
    notes: list[str]


def signals_of(model: torch.nn.Module, inputs: Any, meant: dict[str, Target]) -> Signals:
    """Blocks and steps of the stream of a model, what is out of line, and why there are none."""
    stacks, reason = passed(model, inputs)
    signals = Signals([], [], [], [reason and f"No signals: {reason}."])
    for stack in stacks:
        _measured(stack, meant, signals)
    return signals


def passed(model: torch.nn.Module, inputs: Any) -> tuple[list[Stack], str]:
    """Stacks through which a forward pass goes, or why there are none."""
    if inputs is not None:
        return _stacks(model, inputs)
    failures = list[str]()
    for text, drawn in _drawn_inputs(model):
        try:
            return _stacks(model, drawn)
        except Exception as error:
            words = " ".join(str(error).split())
            failures.append(f"a forward pass of {text} failed, {type(error).__name__}: {words}")
    if not failures:
        return [], "no inputs could be drawn, for want of an embedding, a convolution or a matrix"
    takes = inspect.signature(model.forward).parameters
    if any(name == "tgt" or name.startswith("decoder") for name in takes):
        failures[0] = f"the model has an encoder and a decoder, give inputs of both; {failures[0]}"
    return [], failures[0]


def _drawn_inputs(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Token ids, images or vectors, as the first of the layers that take these does."""
    generator, kinds = torch.Generator().manual_seed(0), ("embedding", "convolution", "linear")
    found = next((each for each in places(model) if each[0].kind in kinds), None)
    if found is None:
        return
    place, weight = found
    if place.kind == "embedding":
        ids = torch.randint(len(weight), (_SAMPLES, _TOKENS), generator=generator)
        yield "random token ids", ids.to(weight.device)
        return
    pixels = (weight.shape[1], *[_PIXELS] * (weight.ndim - 2))
    vectors = {"random vectors": (place.fan_in,), "sequences of them": (_TOKENS, place.fan_in)}
    for text, shape in vectors.items() if place.kind == "linear" else [("random images", pixels)]:
        yield text, torch.randn((_SAMPLES, *shape), generator=generator).to(weight)


class Stack(NamedTuple):
    """Like layers that the stream passes, by name, in a copy of the model.

    ``flows`` has what came in and out of modules, ``norms`` those of gradients behind blocks.
    """

    model: torch.nn.Module
    blocks: dict[str, torch.nn.Module]
    flows: dict[Any, list[tuple[Any, Any]]]
    norms: list[float]


def _stacks(model: torch.nn.Module, inputs: Any) -> tuple[list[Stack], str]:
    """Those of a copy that shares the weights."""
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
        if isinstance(inputs, Mapping):
            result = _tensor(copied(**inputs))
        else:
            result = _tensor(copied(*inputs) if isinstance(inputs, tuple) else copied(inputs))
    chains = list(_chains(copied, streams))
    if result is None or not chains:
        return [], "no stack of like layers through which a stream of one shape passes"
    direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(0)).to(result)
    ends = [streams[block][0][1] for blocks in chains for block in blocks.values()]
    gradients = torch.autograd.grad(result, ends, direction, materialize_grads=True)
    norms = iter([float(gradient.double().norm()) for gradient in gradients])
    return [Stack(copied, c, streams, [next(norms) for _ in c]) for c in chains], ""


def _measured(stack: Stack, meant: dict[str, Target], signals: Signals) -> None:
    """Numbers of the blocks of a stack."""
    sizes = {n: target[1] for n, target in meant.items() if target}
    names = {m: n for n, m in stack.model.named_modules()}
    linear, norms, streams, known = 0.0, stack.norms, stack.flows, None
    found = dict[tuple[str, str], Branch]()
    for at, (name, block) in enumerate(stack.blocks.items()):
        x, y = (each.detach().cpu().double().numpy() for each in streams[block][0])
        squares = x * x, y * y, (y - x) ** 2, (y - x) * x
        before, behind, added, overlap = (float(each.mean()) for each in squares)
        linear = (linear or before) + added
        size = np.prod([np.linalg.norm(each) for each in y[:2]]) if len(y) > 1 else 0.0
        correlation = float(np.vdot(y[0], y[1]) / size) if size else None
        share, gradient = (
            added / behind if behind else 0.0,
            norms[at] / norms[-1] if norms[-1] else 0.0,
        )
        branch = attention = None
        for which in _sequences(streams[block][0][0]) if before else ():
            flows = flows_of(stack, block, which)
            branch = branch or recognised(names, block, flows)
            # Where two have none, others are not looked at.
            if known or at < _LOOKED:
                attention = attention_of(names, block, flows, branch, known)
            if attention:
                known, found[name, "attention"] = attention.heads, attention
                break
        # Without a skip it is no branch.
        branch = branch if branch and branch.skip else None
        found |= {(name, "mlp"): branch} if branch else {}
        scale = float(critical_branch(_SKIP, added / before, overlap / before)) if before else 0.0
        measured = (None, None) if branch else (overlap, scale if scale > 0 else None)
        numbers = before, behind, share, linear, correlation, gradient, *measured
        row = AuditedBlock(name, *numbers, *(predicted(branch, sizes) if branch else ()))
        signals.blocks.append(row)
    classes = {type(m).__name__ for block in stack.blocks.values() for m in block.modules()}
    if known is None and not any("attention" in name.lower() for name in classes):
        return
    order = [(name, kind) for name in stack.blocks for kind in ("attention", "mlp")]
    if missing := [f"{kind} of block {name}" for name, kind in order if (name, kind) not in found]:
        signals.notes.append(f"Not recognised: {', '.join(missing)}.")
    for kind in ("attention", "mlp"):
        as_most, forms = out_of_line({n: b for (n, k), b in found.items() if k == kind})
        found |= {(name, kind): branch for name, branch in as_most.items()}
        signals.forms.extend((f"{kind} of block {name}", *form) for name, *form in forms)
    factors = {f"{b.heads['logit_scale']:.3g}" for b in found.values() if b.heads} - {"1"}
    signals.notes.extend(f"Logits are q·k/√d times {factor}." for factor in factors)
    if known:
        usable = [(f"{k} of block {n}", found[n, k]) for n, k in order if (n, k) in found]
        signals.steps.extend(steps_of(usable, sizes))


def _sequences(stream: torch.Tensor) -> list[slice]:
    """Rows of the first sequence, (sequences, tokens, N) or (tokens, sequences, N); or some."""
    if stream.ndim != 3:
        return [slice(_ROWS)]
    # Of long ones the first tokens, which are alone where attention is causal.
    first, last = (n if n <= _MOST else _TOKENS for n in stream.shape[:2])
    return [slice(last), slice(None, first * stream.shape[1], stream.shape[1])]


def flows_of(stack: Stack, block: torch.nn.Module, which: slice = slice(_ROWS)) -> dict[Any, Any]:
    """Some rows of what came in and out of the modules of a block."""
    flows = {m: stack.flows[m][-1] for m in block.modules() if stack.flows[m]}
    return {m: [rows_of(x, which) for x in flow] for m, flow in flows.items()}


def rows_of(tensor: torch.Tensor, which: slice = slice(_ROWS)) -> np.ndarray:
    """The first rows of a stream."""
    return tensor.detach().reshape(-1, tensor.shape[-1])[which].cpu().double().numpy()


def _chains(
    model: torch.nn.Module, streams: dict[Any, list[tuple[Any, Any]]]
) -> Iterator[dict[str, torch.nn.Module]]:
    """Layers through which the stream passes, each once: by numbers, of several stacks by names."""
    found = []
    for holder, lists in layer_lists(model).items():
        modules = dict(model.get_submodule(holder).named_children())
        for numbers in lists:
            chain = {n: modules[n] for n in numbers if n in modules}
            flows = [streams[block] for block in chain.values()]
            is_once = all(len(flow) == 1 and flow[0][0].shape == flow[0][1].shape for flow in flows)
            # What holds them may write to the stream in between.
            if is_once and any(torch.equal(a[0][1], b[0][0]) for a, b in pairwise(flows)):
                found.append((holder, chain))
    outer = [(h, c) for h, c in found if not any(_is_within(h, other, c2) for other, c2 in found)]
    for holder, chain in outer:
        names = {n: f"{holder}.{n}".lstrip(".") for n in chain} if len(outer) > 1 else {}
        yield {names.get(n, n): block for n, block in chain.items()}


def _is_within(holder: str, other: str, chain: Mapping[str, Any]) -> bool:
    return any(f"{holder}.".startswith(f"{other}.{n}.".lstrip(".")) for n in chain)


def _tensor(value: Any) -> Any:
    """The first floating tensor of a tensor, a tuple, a list, a mapping or a dataclass."""
    if hasattr(value, "is_floating_point"):
        return value if value.is_floating_point() else None
    value = vars(value) if is_dataclass(value) else value
    items = [*value.values()] if hasattr(value, "values") else value
    tensors = map(_tensor, items if isinstance(items, tuple | list) else ())
    return next((tensor for tensor in tensors if tensor is not None), None)
