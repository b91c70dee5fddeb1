"""The state of a training run in a file, from which the run goes on with the same numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fieldtheory import validation
from fieldtheory.numerics import storage


def identity(module: torch.nn.Module, optimiser: Any, *settings: Any) -> str:
    """A hash of all that decides what a run gives: beginning, optimiser, data and settings."""
    groups = [{k: v for k, v in g.items() if k != "params"} for g in optimiser.param_groups]
    hasher = hashlib.sha256(repr((type(optimiser).__name__, groups)).encode())
    for value in (*module.state_dict().values(), *settings):
        array = validation.without_tensors(value)
        hasher.update(array.tobytes() if isinstance(array, np.ndarray) else repr(value).encode())
    return hasher.hexdigest()


def write(path: Path, run: str, module: Any, optimiser: Any, *progress: Any) -> None:
    """Write the state of a run to a file, with ``progress``, its number of steps and records."""
    generator = getattr(optimiser, "generator", None)
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    state = {
        "run": run,
        "module": module.state_dict(),
        "optimiser": optimiser.state_dict(),
        "noise": generator and generator.get_state(),
        "random": [torch.get_rng_state(), *devices],
        "progress": list(progress),
    }
    storage.write_whole(path, lambda file: torch.save(state, file))


def resumed(
    path: Path, run: str, module: Any, optimiser: Any, steps: int
) -> tuple[int, list[dict[str, torch.Tensor]]]:
    """The steps that are done and their records; module and optimiser take their state."""
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint must lie in a folder that exists, got {str(path)!r}")
    if not path.exists():
        return 0, []
    try:
        state = torch.load(path, weights_only=True)
        (done, records), before, _ = state["progress"], state["run"], state["random"]
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
    first, *devices = state["random"]
    torch.set_rng_state(first)
    if devices:
        torch.cuda.set_rng_state_all(devices)
    return done, records
