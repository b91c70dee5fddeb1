"""`from_torch`: the network of the theory that the blocks of a torch model are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.audits.branches import matrix_of, network_of, norms_of, recognised
from fieldtheory.audits.intents import targets_of
from fieldtheory.audits.tensors import tensors_of
from fieldtheory.networks.parameters import named_arguments

# Relative accuracy of an ε that is fitted.
_FITTED = 0.1


@named_arguments
def from_torch(model: Any, inputs: Any = None, intent: Any = None) -> Any:
    """The network that a torch model is by its forward pass, for `solve`, 1/N and ρ.

    Every block is compared with x -> γ x + ρ W' φ(W n(x)), also with a gate or the norm behind the
    sum, as `audit` does it. Of all blocks are found: depth L, widths N and M, φ, the norm with its
    ε, γ_l and ρ_l, and the variances of the weights, σ² = fan-in × mean square. Linear maps into
    the first block and out of the last give the read-in and the readout; K0 of `solve` is the
    kernel of what enters the first block.

    Parameters
    ----------
    model : torch.nn.Module
        With its weights; nothing in it changes.
    inputs : tensor, tuple of tensors or mapping, optional
        Of a forward pass, as in `audit`.
    intent : str, mapping or callable, optional
        As in `audit`: weights have the variances that are meant, those that it leaves free and
        all if it is left out the measured ones. Biases have their mean square over all layers.

    Returns
    -------
    BlockNetwork or ResidualNetwork
        The latter of blocks of one matrix, γ x + ρ W φ(x). It has one σ²_w, so that ρ_l has what
        the layers differ by.

    Raises
    ------
    TypeError, ValueError
        If ``model`` is no module with weights; if blocks are not found, are not recognised or
        differ in more than numbers; the message says which.

    Warns
    -----
    UserWarning
        If blocks have other branches first, such as attention, which are left out.

    Examples
    --------
    >>> import torch
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.norm = torch.nn.LayerNorm(64)
    ...         self.fc1, self.fc2 = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
    ...
    ...     def forward(self, x):
    ...         return x + 0.5 * self.fc2(torch.relu(self.fc1(self.norm(x))))
    >>> network = from_torch(torch.nn.Sequential(*(Block() for _ in range(6))), intent="kaiming")
    >>> network.depth, network.activation.name, network.branch_scale, network.inner_weight_variance
    (6, 'relu', 0.5, 2.0)
    """
    from fieldtheory.audits.signals import flows_of, passed, rows_of

    meant = targets_of(intent, [row.place for row in tensors_of(model)])
    sizes = {name: target[1] for name, target in meant.items() if target}
    stacks, reason = passed(model, inputs)
    if len(stacks) != 1:
        several = ", ".join(next(iter(stack.blocks)) for stack in stacks)
        of = f"got several, from {several}: give one of them" if several else f"got none: {reason}"
        raise ValueError(f"model must have one stack of blocks, {of}")
    (stack,) = stacks
    names = {m: n for n, m in stack.model.named_modules()}
    found = {n: recognised(names, b, flows_of(stack, b)) for n, b in stack.blocks.items()}
    branches = [branch for branch in found.values() if branch]
    if len(branches) < len(found):
        missing = [f"{n} ({type(stack.blocks[n]).__name__})" for n, b in found.items() if not b]
        raise ValueError(
            "model must have blocks γ x + ρ W' φ(W n(x)), with a gate or without, or γ x + ρ W φ(x)"
            f", of the norms and the functions that audit knows, got others: {', '.join(missing)}"
        )
    forms = {(b.text, b.matrices[0][0].shape, b.matrices[-1][0].shape) for b in branches}
    epsilons = [branch.epsilon for branch in branches]
    if len(forms) > 1 or np.ptp(epsilons) > _FITTED * max(epsilons):
        texts = " and ".join(
            sorted(
                {
                    f"{b.text}, {b.matrices[0][0].shape[0]} hidden units, ε = {b.epsilon:g}"
                    for b in branches
                }
            )
        )
        raise ValueError(f"model must have blocks of one form, got {texts}")
    if not all(branch.is_whole for branch in branches):
        warnings.warn(
            "blocks have more than the branch that is recognised, such as attention: the network "
            "is that of the last branches alone",
            stacklevel=validation.level_of_user(),
        )
    blocks, more = [*stack.blocks.values()], dict[str, Any]()
    start, end = rows_of(stack.flows[blocks[0]][0][0]), rows_of(stack.flows[blocks[-1]][0][1])
    behind = branches[0].norm if branches[0].position == "post" else None
    inside = {module for block in blocks for module in block.modules()}
    for module, flows in stack.flows.items():
        if not flows:
            continue
        x, y = map(rows_of, flows[-1])
        matrix = None if module in inside else matrix_of(module, (x, y), names)
        reads = matrix and x.shape == end.shape and _reads(x, end, branches[0].norm)
        # A norm behind the sums is behind the read-in too.
        enters = matrix and y.shape == start.shape and _reads(start, y, behind)
        if matrix and enters:
            more |= {"input_dim": x.shape[1]} | _variances("readin", *matrix, sizes)
        elif matrix and reads and len(branches[0].matrices) > 1:
            more |= _variances("readout", *matrix, sizes)
    return network_of(branches, sizes, **more)


def _reads(x: np.ndarray, end: np.ndarray, norm: str | None) -> bool:
    """Whether x is a stream, or a norm of it."""
    if np.array_equal(x, end):
        return True
    return norm is not None and any(n == norm for _, n, _ in norms_of(x, {}, end))


def _variances(
    part: str, W: np.ndarray, b: Any, name: str, meant: dict[str, Any]
) -> dict[str, float]:
    size = meant.get(name)
    variance = float((W**2).sum() / len(W)) if size is None else W.shape[1] * size**2
    return {f"{part}_weight_variance": variance, f"{part}_bias_variance": float(np.mean(b * b))}
