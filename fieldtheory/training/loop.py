"""`train`: the loop of all training, with records, a progress bar and checkpoints."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fieldtheory import validation
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import storage
from fieldtheory.numerics.chunks import with_progress

# Seconds of work between two checkpoints.
_INTERVAL = 5.0


@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """What `train` records.

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

    Parameters
    ----------
    module : torch.nn.Module
        Trained in place. One of `torch_module`, whose copies are trained each for itself, or any
        other that maps (P, ...) to (P, outputs).
    X : array_like, shape (P, ...)
    Y : array_like, shape (P,) or (P, outputs)
        Targets; the numbers of the classes (P,) for "cross_entropy".
    optimiser : torch.optim.Optimizer
        Of the parameters of the module, such as ``Langevin(module.priors(), ...)`` or
        ``torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)``.
    steps : int
        Number of steps, >= 1, from the beginning of the run also where a checkpoint is found.
    loss : {"squared", "mean_squared", "cross_entropy"}
        ½ Σ (y − f)² over the samples and outputs, of which `Langevin` samples the posterior; the
        same over the number of samples; the mean cross-entropy of softmax(f).
    batch_size : int, optional
        Samples of a step; all if left out. Every epoch goes through a new permutation of them, and
        leaves the last P mod ``batch_size`` out.
    seed : int
        Seed of the permutations, >= 0.
    every : int
        Steps between two records; the first is before the first step.
    observe : callable, optional
        ``observe(module)`` returns a dict of tensors or arrays to record, such as
        ``{"kernels": module.residual_kernels(X)}``. It is called without gradients.
    checkpoint : str or Path, optional
        File of the state, written every few seconds and at the end. The same call with a module
        and an optimiser made anew goes on from there with the same numbers, also to more steps.
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
        raise TypeError(f"module must be a torch module, got {validation.shown(module)}")
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(f"optimiser must be one of torch, got {validation.shown(optimiser)}")
    steps, every = validation.integer("steps", steps, 1), validation.integer("every", every, 1)
    error = LOSSES[validation.choice("loss", loss, LOSSES)]
    inputs, targets = _data(module, X, Y, loss)
    batch = _batches(inputs, targets, batch_size, validation.integer("seed", seed, 0))
    run = _identity(module, optimiser, inputs, targets, loss, batch_size, seed, every)
    path = None if checkpoint is None else Path(checkpoint)
    start, records = (0, []) if path is None else _resumed(path, run, module, optimiser, steps)
    written, clock = start, time.monotonic()
    left: Any = range(start, steps)
    if progress:
        left = with_progress(left, len(left), progress if isinstance(progress, str) else "train")
    for step in left:
        x, y = batch(step)
        found = error(module(x), y)
        if not torch.isfinite(found).all():
            raise DivergenceError(_diverged(found, step, path, written), _history(records))
        if step % every == 0:
            records.append({"steps": torch.tensor(step), "loss": found.detach().cpu()})
            with torch.no_grad():
                seen = observe(module) if observe else {}
            # A copy, since parameters change in place.
            copied = {k: torch.as_tensor(v).detach().cpu().clone() for k, v in seen.items()}
            records[-1] |= {f"observed.{name}": value for name, value in copied.items()}
        optimiser.zero_grad()
        found.sum().backward()
        optimiser.step()
        if path and (step + 1 == steps or time.monotonic() - clock > _INTERVAL):
            _write(path, run, module, optimiser, step + 1, records)
            written, clock = step + 1, time.monotonic()
    return _history(records)


def _data(module: torch.nn.Module, X: Any, Y: Any, loss: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets as tensors, checked against what the module returns."""
    like = next(module.parameters())
    inputs, targets = validation.finite_array("X", X), validation.finite_array("Y", Y)
    x = torch.as_tensor(inputs, dtype=like.dtype, device=like.device)
    mode = module.training
    with torch.no_grad():
        outputs = module.eval()(x[:1]).shape[-1]
    module.train(mode)
    shape: tuple[int, ...] = (len(x), outputs)
    if loss == "cross_entropy":
        shape = (len(x),)
        if not np.isin(targets, np.arange(outputs)).all():
            raise ValueError(
                f"Y must hold numbers of classes from 0 to {outputs - 1}, got {validation.shown(Y)}"
            )
    elif targets.shape == (len(x),):
        targets = targets[:, None]
    if targets.shape != shape:
        raise ValueError(f"Y must have shape {shape} for X {inputs.shape}, got {np.shape(Y)}")
    kind = torch.int64 if loss == "cross_entropy" else like.dtype
    return x, torch.as_tensor(targets, dtype=kind, device=like.device)


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
    names = records[0] if records else ("steps", "loss")
    found = {name: np.array([record[name].numpy() for record in records]) for name in names}
    steps, loss = found.pop("steps"), found.pop("loss")
    return TrainingHistory(
        steps, loss, {name.removeprefix("observed."): values for name, values in found.items()}
    )


def _diverged(loss: torch.Tensor, step: int, path: Path | None, written: int) -> str:
    bad = loss[~torch.isfinite(loss)].flatten()
    of = f" of {len(bad)} of {loss.numel()} copies" if loss.ndim else ""
    kept = f"; {str(path)!r} holds the state after {written} steps" if path and written else ""
    return f"the loss{of} is {bad[0].item()} at step {step}: take smaller steps{kept}"


def _identity(module: torch.nn.Module, optimiser: Any, *given: Any) -> str:
    """A hash of all that decides what a run gives: beginning, optimiser, data and settings."""
    groups = [{k: v for k, v in g.items() if k != "params"} for g in optimiser.param_groups]
    found = hashlib.sha256(repr((type(optimiser).__name__, groups)).encode())
    for value in (*module.state_dict().values(), *given):
        tensor = isinstance(value, torch.Tensor)
        found.update(value.cpu().numpy().tobytes() if tensor else repr(value).encode())
    return found.hexdigest()


def _write(path: Path, run: str, module: Any, optimiser: Any, *progress: Any) -> None:
    generator = getattr(optimiser, "generator", None)
    state = {
        "run": run,
        "module": module.state_dict(),
        "optimiser": optimiser.state_dict(),
        "noise": generator and generator.get_state(),
        "progress": list(progress),
    }
    storage.write_whole(path, lambda file: torch.save(state, file))


def _resumed(
    path: Path, run: str, module: Any, optimiser: Any, steps: int
) -> tuple[int, list[dict[str, torch.Tensor]]]:
    """The steps that are done and their records; module and optimiser take their state."""
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint must lie in a folder that exists, got {str(path)!r}")
    if not path.exists():
        return 0, []
    try:
        state = torch.load(path, weights_only=True)
        (done, records), before = state["progress"], state["run"]
    except Exception as error:
        raise ValueError(f"checkpoint must be a file of train, got {str(path)!r}") from error
    if before != run:
        raise ValueError(
            f"checkpoint {str(path)!r} is that of another run: module as made, optimiser, data or "
            "settings differ"
        )
    if done > steps:
        raise ValueError(f"steps must be at least the {done} of the checkpoint, got {steps}")
    module.load_state_dict(state["module"])
    optimiser.load_state_dict(state["optimiser"])
    if state["noise"] is not None:
        optimiser.generator.set_state(state["noise"])
    return done, records
