"""`train`: the loop of all training, with records, a progress bar and checkpoints."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fieldtheory import validation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.chunks import with_progress
from fieldtheory.training import checkpoints
from fieldtheory.training.langevin import Langevin

# Seconds of work between two checkpoints.
_INTERVAL = 5.0
# What a record holds, beside what is observed under a prefix.
_OWN, _PREFIX = ("steps", "loss"), "observed."
# Samples that show the shape of the outputs.
_FEW = 3


@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """Records of `train`.

    Attributes
    ----------
    steps : ndarray, shape (R,)
        Numbers of steps done before each record, 0 for the untrained networks.
    loss : ndarray, shape (R,), or (R, n) for n copies
        On the samples of the next step.
    observed : dict of str to ndarray, shape (R, ...)
        What ``observe`` returned.
    """

    steps: np.ndarray
    loss: np.ndarray
    observed: Mapping[str, np.ndarray]

    def __repr__(self) -> str:
        copies = f", copies={self.loss.shape[1]}" if self.loss.ndim > 1 else ""
        return f"TrainingHistory(records={len(self.steps)}{copies}, observed={[*self.observed]})"


class DivergenceError(FloatingPointError):
    """The loss is not finite; ``history`` holds the records until then.

    Examples
    --------
    >>> line = torch.nn.Linear(1, 1, bias=False)
    >>> steep = torch.optim.SGD(line.parameters(), lr=1e30)
    >>> train(line, [[1.0]], [0.0], steep, steps=9)
    Traceback (most recent call last):
        ...
    fieldtheory.training.loop.DivergenceError: the loss is inf at step 1: take smaller steps
    """

    def __init__(self, message: str, history: TrainingHistory) -> None:
        super().__init__(message)
        self.history = history


def _squared(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (outputs - targets).square().sum(dim=(-1, -2)) / 2


def _cross_entropy(outputs: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    logs = torch.log_softmax(outputs, dim=-1)
    return -logs.gather(-1, classes.expand(*logs.shape[:-1])[..., None]).mean(dim=(-1, -2))


LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "squared": _squared,
    "mean_squared": lambda outputs, targets: _squared(outputs, targets) / len(targets),
    "cross_entropy": _cross_entropy,
}


@named_arguments
def train(
    module: torch.nn.Module,
    X: Any,
    Y: Any,
    optimiser: torch.optim.Optimizer,
    *,
    steps: int,
    loss: str = "squared",
    batch_size: int | None = None,
    seed: int = 0,
    every: int = 1,
    observe: Callable[[torch.nn.Module], Mapping[str, Any]] | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | str = False,
) -> TrainingHistory:
    """Train a module with `Langevin`, which samples its posterior, or with any optimiser of torch.

    Parts of the module that were set to ``eval()`` stay there. Losses are computed in float32 at
    least.

    Parameters
    ----------
    module : torch.nn.Module
        Trained in place. One of `torch_module`, whose copies are trained each for itself, or any
        other that maps (P, ...) to (P, outputs) or (P,).
    X : array_like, shape (P, ...)
        Integers stay integers for a module that takes them, such as an ``Embedding``.
    Y : array_like, shape (P,) or (P, outputs)
        Targets; the numbers of the classes (P,) for "cross_entropy".
    optimiser : torch.optim.Optimizer
        Of the parameters of the module, such as ``Langevin(module.priors(), ...)``,
        ``torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)`` or ``torch.optim.LBFGS``.
    steps : int
        Number of steps, >= 1, from the beginning of the run also where a checkpoint is found.
    loss : {"squared", "mean_squared", "cross_entropy"}
        ½ Σ (y − f)² over the samples and outputs, of which `Langevin` samples the posterior and
        which is the only one for it; the same over the number of samples; the mean cross-entropy of
        softmax(f).
    batch_size : int, optional
        Samples of a step; all if left out, as for `Langevin`. Every epoch goes through a new
        permutation of them, and leaves the last P mod ``batch_size`` out.
    seed : int
        Seed of the permutations and of torch's random numbers, such as those of dropout, >= 0. The
        state of torch's own generator does not change.
    every : int
        Steps between two records; the first is before the first step.
    observe : callable, optional
        ``observe(module)`` returns a dict of tensors or arrays to record, such as
        ``{"kernels": module.residual_kernels(X)}``, of the same names and shapes at every record,
        also in a run that goes on. It is called without gradients.
    checkpoint : str or Path, optional
        File of the state, with that of torch's random numbers, written every few seconds and at the
        end. The same call with a module and an optimiser made anew goes on from there with the same
        numbers, also to more steps.
    progress : bool or str
        Show a progress bar on stderr, under a name of one's own if it is one.

    Returns
    -------
    TrainingHistory

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or the checkpoint is that of another run.
    DivergenceError
        If a loss is not finite. The last checkpoint is kept.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.training import Langevin, torch_module
    >>> net = ft.ResidualNetwork(depth=2, width=10, input_dim=2)
    >>> module = torch_module(net, copies=20)
    >>> sampler = Langevin(module.priors(), step_size=0.02, temperature=0.1)
    >>> X, Y = [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    >>> history = train(module, X, Y, sampler, steps=200, every=20)
    >>> history, bool(history.loss[-1].mean() < history.loss[0].mean() / 4)
    (TrainingHistory(records=10, copies=20, observed=[]), True)
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch module, got {validation.excerpt(module)}")
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(f"optimiser must be one of torch, got {validation.excerpt(optimiser)}")
    steps, every = validation.integer("steps", steps, 1), validation.integer("every", every, 1)
    error = LOSSES[validation.choice("loss", loss, LOSSES)]
    inputs, targets = _data(module, optimiser, X, Y, loss)
    batch = _batches(inputs, targets, batch_size, validation.integer("seed", seed, 0))
    if isinstance(optimiser, Langevin) and (
        loss != "squared" or batch_size not in (None, len(inputs))
    ):
        raise ValueError(
            "Langevin samples the posterior of the squared loss of all samples: loss must be "
            f"'squared' and batch_size left out, got {loss!r} and {batch_size!r}"
        )
    run = checkpoints.identity(module, optimiser, inputs, targets, loss, batch_size, seed, every)
    path = None if checkpoint is None else Path(checkpoint)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        done = checkpoints.resumed(path, run, module, optimiser, steps) if path else (0, [])
        start, records = done
        if records and (observe or start < steps):
            with torch.random.fork_rng():
                _require_same(_observed(observe, module), records)
        # LBFGS and its like evaluate the loss themselves.
        closure = inspect.signature(optimiser.step).parameters.get("closure")
        closed = closure is not None and closure.default is inspect.Parameter.empty
        written, clock = start, time.monotonic()
        left: Any = range(start, steps)
        if progress:
            name = progress if isinstance(progress, str) else "train"
            left = with_progress(left, len(left), name)
        for step in left:
            x, y = batch(step)
            losses = error(_outputs(module, x), y)
            if not torch.isfinite(losses).all():
                bad = losses[~torch.isfinite(losses)].flatten()
                of = f" of {len(bad)} of {losses.numel()} copies" if losses.ndim else ""
                message = f"the loss{of} is {bad[0].item()} at step {step}: take smaller steps"
                if path and written:
                    message += f"; {str(path)!r} holds the state after {written} steps"
                raise DivergenceError(message, _history(records))
            if step % every == 0:
                observed = _observed(observe, module)
                _require_same(observed, records)
                records.append(
                    {"steps": torch.tensor(step), "loss": losses.detach().cpu()} | observed
                )
            if closed:
                optimiser.step(lambda x=x, y=y: _descend(optimiser, error(_outputs(module, x), y)))
            else:
                _descend(optimiser, losses)
                optimiser.step()
            if path and (step + 1 == steps or time.monotonic() - clock > _INTERVAL):
                checkpoints.write(path, run, module, optimiser, step + 1, records)
                written, clock = step + 1, time.monotonic()
    return _history(records)


def _descend(optimiser: torch.optim.Optimizer, losses: torch.Tensor) -> torch.Tensor:
    """The whole loss, of which the parameters get the gradient."""
    total = losses.sum()
    optimiser.zero_grad()
    total.backward()
    return total


def _outputs(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The outputs ([n,] P, outputs), in float32 at least."""
    outputs = module(x)
    if outputs.shape == (len(x),):
        outputs = outputs[:, None]
    if outputs.ndim < 2 or outputs.shape[-2] != len(x):
        raise ValueError(
            "module must map X (P, ...) to (P,) or (P, outputs), "
            f"got shape {tuple(outputs.shape)} for P = {len(x)}"
        )
    return outputs.to(torch.promote_types(outputs.dtype, torch.float32))


def _observed(
    observe: Callable[[torch.nn.Module], Mapping[str, Any]] | None, module: torch.nn.Module
) -> dict[str, torch.Tensor]:
    """A record of what is observed, a copy, since parameters change in place."""
    with torch.no_grad():
        observed = observe(module) if observe else {}
    arrays = {name: np.array(validation.without_tensors(value)) for name, value in observed.items()}
    return {f"{_PREFIX}{name}": torch.from_numpy(array) for name, array in arrays.items()}


def _require_same(observed: Mapping[str, torch.Tensor], records: list[Any]) -> None:
    """Raise if other quantities are observed than in the records before."""
    if records and (now := _names(observed)) != (before := _names(records[0])):
        raise ValueError(
            "observe must return the same names and shapes at every record, also after a "
            f"checkpoint, got {now} after {before}"
        )


def _names(record: Mapping[str, torch.Tensor]) -> str:
    """The observed quantities of a record, with their shapes."""
    shapes = {name: tuple(v.shape) for name, v in sorted(record.items()) if name not in _OWN}
    words = [f"{name.removeprefix(_PREFIX)} {shape}" for name, shape in shapes.items()]
    return ", ".join(words) or "nothing"


def _data(
    module: torch.nn.Module, optimiser: torch.optim.Optimizer, X: Any, Y: Any, loss: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets as tensors, checked against what the module returns."""
    mine = {id(p): p for p in module.parameters() if p.requires_grad}
    trained = [p for group in optimiser.param_groups for p in group["params"]]
    like = next((mine[id(p)] for p in trained if id(p) in mine), None)
    if like is None:
        raise ValueError(
            "optimiser must have parameters of the module that require grad, got none of its "
            f"{len(mine)}"
        )
    inputs, targets = validation.finite_array("X", X), validation.finite_array("Y", Y)
    x, outputs = _input_tensor(
        module, like, inputs, np.asarray(validation.without_tensors(X)).dtype
    )
    shape: tuple[int, ...] = (len(x), outputs)
    if loss == "cross_entropy":
        shape = (len(x),)
        if not np.isin(targets, np.arange(outputs)).all():
            raise ValueError(
                f"Y must hold numbers of classes from 0 to {outputs - 1}, "
                f"got {validation.excerpt(Y)}"
            )
    elif targets.shape == (len(x),):
        targets = targets[:, None]
    if targets.shape != shape:
        raise ValueError(f"Y must have shape {shape} for X {inputs.shape}, got {np.shape(Y)}")
    kind = torch.promote_types(like.dtype, torch.float32)
    kind = torch.int64 if loss == "cross_entropy" else kind
    return x, torch.as_tensor(targets, dtype=kind, device=like.device)


def _input_tensor(
    module: torch.nn.Module, like: torch.Tensor, inputs: np.ndarray, dtype: np.dtype
) -> tuple[torch.Tensor, int]:
    """The inputs as real numbers or, of integers, as integers if the module takes these alone."""
    reasons: list[str] = []
    modes = [(part, part.training) for part in module.modules()]
    kinds = [like.dtype, torch.int64] if dtype.kind in "iu" else [like.dtype]
    tensors = [torch.as_tensor(inputs, dtype=kind, device=like.device) for kind in kinds]
    if not np.array_equal(validation.without_tensors(tensors[0]), inputs):
        # Integers of more digits than the module has.
        tensors.reverse()
    try:
        module.eval()
        for x in tensors:
            try:
                with torch.no_grad():
                    return x, _outputs(module, x[:_FEW]).shape[-1]
            except Exception as error:
                reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
    finally:
        for part, mode in modes:
            part.training = mode
    raise ValueError(f"module must take X of shape {inputs.shape}, got {reasons[0]}")


def _batches(
    x: torch.Tensor, y: torch.Tensor, size: int | None, seed: int
) -> Callable[[int], tuple[torch.Tensor, torch.Tensor]]:
    """The samples of a step: they depend on its number and the seed alone."""
    if size is None:
        return lambda step: (x, y)
    if not validation.integer("batch_size", size, 1) <= len(x):
        raise ValueError(f"batch_size must be at most the {len(x)} samples, got {size}")

    def of(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        epoch, number = divmod(step, len(x) // size)
        order = np.random.default_rng((seed, epoch)).permutation(len(x))
        chosen = torch.from_numpy(order[number * size : (number + 1) * size])
        return x[chosen], y[chosen]

    return of


def _history(records: list[dict[str, torch.Tensor]]) -> TrainingHistory:
    names = records[0] if records else _OWN
    arrays = {name: np.array([record[name].numpy() for record in records]) for name in names}
    steps, loss = arrays.pop("steps"), arrays.pop("loss")
    return TrainingHistory(
        steps, loss, {name.removeprefix(_PREFIX): values for name, values in arrays.items()}
    )
