"""Residual blocks, callables and torch modules, as functions of arrays with checked answers."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fieldtheory import validation

Apply = Callable[[np.ndarray], np.ndarray]
# A new block for a width and a generator of random numbers, with the module that it is, if any.
Draw = Callable[[int, np.random.Generator], tuple[Apply, Any]]

# Initialisations that are compared with a module as constructed, and the standard deviations by
# which the size of a parameter then differs: by Student's distribution for one of 10⁶ by chance.
_TRIALS, _DEVIATIONS = 20, 8.0
_ROUNDING = 1e-6

# Besides dropout, parts that work otherwise in training.
_IN_TRAINING = ("BatchNorm", "RReLU")
_ANEW = "give lambda width, rng: MyBlock(...), which builds the block anew"
_FORM = "block must be a callable block(width, rng) that returns a function of z, or a torch module"


def drawing(block: Any, reset: Any = None) -> Draw:
    """Function (width, rng) that draws a block of `measure_block` as (P, width) -> (P, width).

    With the module that was drawn, or None. TypeError or ValueError if they are of another kind.
    """
    draw: Callable[[int, np.random.Generator], Any]
    if validation.is_torch_module(block):
        if isinstance(block, type):
            raise TypeError(
                f"block must be a module, got the class {block.__name__}: give an instance, or "
                f"lambda width, rng: {block.__name__}(...)"
            )
        draw = _redrawn(block, reset)
    else:
        if reset is not None:
            raise ValueError("reset is for a block that is a torch module; a callable draws anew")
        if not callable(block):
            raise TypeError(f"{_FORM}, got {validation.excerpt(block)}")
        validation.require_arguments("block", block, "width", "rng")
        draw = block

    has_warned = False

    def drawn(width: int, rng: np.random.Generator) -> tuple[Apply, Any]:
        nonlocal has_warned
        seed, start = _torch_seed(rng.spawn(1)[0]), rng.bit_generator.state
        try:
            with _seeded(seed) as is_seeded:
                drawn_block = draw(width, rng)
            if validation.is_torch_module(drawn_block) and not is_seeded:
                # The block has imported torch.
                rng.bit_generator.state = start
                with _seeded(seed):
                    drawn_block = draw(width, rng)
        except Exception as error:
            raise ValueError(f"block(width={width}, rng) failed: {_reason(error)}") from error
        module = drawn_block if validation.is_torch_module(drawn_block) else None
        if module is not None:
            has_warned = has_warned or _warned_of_training(module)
            drawn_block = _as_function(module, _torch_seed(rng))
        if not callable(drawn_block):
            raise TypeError(
                f"{_FORM}; block(width, rng) returned {validation.excerpt(drawn_block)}"
            )
        return _checked(drawn_block), module

    return drawn


def name_of(block: Any) -> str:
    """Name of a block in a result.

    Examples
    --------
    >>> def two_layers(width, rng): ...
    >>> name_of(two_layers)
    'two_layers'
    """
    return str(getattr(block, "__name__", type(block).__name__))


def _checked(apply: Callable[[Any], Any]) -> Apply:
    def checked(z: np.ndarray) -> np.ndarray:
        # A block that writes into its input would change what it is compared with.
        z.flags.writeable = False
        try:
            values = np.asarray(apply(z))
        except Exception as error:
            raise ValueError(
                f"block failed on a signal of shape {z.shape}: {_reason(error)}"
            ) from error
        if values.dtype.kind not in "fiub":
            raise TypeError(f"block must return real numbers, got {validation.excerpt(values)}")
        if values.dtype == np.float16:
            raise TypeError(
                "block must return float32 or float64 numbers, got float16, too coarse for the "
                "differences that give susceptibilities"
            )
        if values.shape != z.shape:
            raise ValueError(
                f"block must return an array of the shape of its input {z.shape}, "
                f"got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError(
                f"block must return finite numbers, got {float(values[~np.isfinite(values)][0])!r}"
            )
        return values.astype(float, copy=False)

    return checked


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _torch_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63 - 1))


def _seed_torch(seed: int) -> None:
    # torch.manual_seed also asks devices that are not there, which takes milliseconds.
    import torch

    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


@contextmanager
def _seeded(seed: int) -> Iterator[bool]:
    """Seed torch's random numbers, and leave them as they were; False if it is not imported."""
    if "torch" not in sys.modules:
        yield False
        return
    import torch

    with torch.random.fork_rng():
        _seed_torch(seed)
        yield True


def _warned_of_training(module: Any) -> bool:
    """Warn of parts that work otherwise in training than in use, as they now do."""
    names = sorted(
        {
            type(part).__name__
            for part in module.modules()
            if part.training
            and (any(n in type(part).__name__ for n in _IN_TRAINING) or _dropped(part) > 0)
        }
    )
    if names:
        warnings.warn(
            f"block is measured as in training, with {' and '.join(names)}; block.eval() before "
            "measures it as in use",
            stacklevel=validation.level_of_user(),
        )
    return bool(names)


def _dropped(part: Any) -> Any:
    """The probability of dropout, which attention has under another name."""
    value = getattr(part, "p" if "Dropout" in type(part).__name__ else "dropout", 0.0)
    return value if isinstance(value, float | int) else 0.0


def _redrawn(module: Any, reset: Any) -> Callable[[int, np.random.Generator], Any]:
    """Draws of a copy of a module whose parameters are initialised anew every time."""
    import torch

    own = reset is None
    if own:
        _require_resets(module)
        reset = _reset
    elif not callable(reset):
        raise TypeError(f"reset must be a function of the module, got {validation.excerpt(reset)}")
    else:
        validation.require_arguments("reset", reset, "module")

    def initialised(copied: Any, seed: int) -> Any:
        with _seeded(seed), torch.no_grad():
            returned = reset(copied)
        if validation.is_torch_module(returned) and returned is not copied:
            raise ValueError(
                f"reset must initialise the module in place, it returned another; {_ANEW}"
            )
        return copied

    mine = _copied(module).double()
    if own:
        trial = _copied(mine)
        # Small seeds of torch that follow each other have streams that are alike.
        seeds = map(_torch_seed, [np.random.default_rng(0)] * _TRIALS)
        sizes = [_sizes(initialised(trial, seed)) for seed in seeds]
        _warn_of_replaced(_sizes(module), sizes)
    return lambda width, rng: initialised(mine, _torch_seed(rng))


def _copied(module: Any) -> Any:
    try:
        return copy.deepcopy(module)
    except Exception as error:
        raise ValueError(f"block cannot be copied ({_reason(error)}); {_ANEW}") from error


def _sizes(module: Any) -> dict[str, np.ndarray]:
    """The root mean square and the mean of every parameter, by its path."""
    sizes = {}
    for path, parameter in module.named_parameters():
        values = validation.without_tensors(parameter).astype(float)
        sizes[path] = np.array([np.sqrt(np.mean(values**2)), np.mean(values)])
    return sizes


def _warn_of_replaced(made: dict[str, np.ndarray], drawn: list[dict[str, np.ndarray]]) -> None:
    """Warn of parameters whose size as constructed is not that of `_reset`."""
    replaced = []
    for path, size in made.items():
        sizes = np.array([trial[path] for trial in drawn])
        chance = _DEVIATIONS * (1 + 1 / _TRIALS) ** 0.5 * sizes.std(axis=0, ddof=1)
        largest = max(size[0], sizes[:, 0].max())
        if (np.abs(size - sizes.mean(axis=0)) > chance + _ROUNDING * largest).any():
            replaced.append(f"{path!r} ({size[0]:.3g}, then {sizes[:, 0].mean():.3g})")
    if replaced:
        warnings.warn(
            "block is measured as reset_parameters() initialises it, which is not as it was "
            f"constructed: root mean square of {listed(replaced)}; {_ANEW}",
            stacklevel=validation.level_of_user(),
        )


def listed(words: list[str]) -> str:
    """The first words of a list.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    few, more = words[:3], len(words) - 3
    return ", ".join(few) + (f" and {more} more" if more > 0 else "")


def random_looking(module: Any) -> dict[str, np.ndarray]:
    """The numbers that a module computes with and that are not all the same, by their paths.

    Its parameters, buffers, and arrays and tensors among the attributes of its parts. Masks, with
    infinities or without fractions, are none; None has none.
    """
    arrays = {}
    for path, part in module.named_modules() if module is not None else ():
        held = {**vars(part), **part._parameters, **part._buffers}
        for name, value in held.items():
            array = validation.without_tensors(value)
            if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size > 1:
                if np.isfinite(array).all() and np.ptp(array) > 0:
                    arrays[".".join(filter(None, [path, name]))] = array.copy()
    return arrays


def _reset_method(module: Any) -> Any:
    # MultiheadAttention has it with an underscore.
    for name in ("reset_parameters", "_reset_parameters"):
        if callable(method := getattr(module, name, None)):
            return method
    return None


def _reset(module: Any) -> None:
    # Parents after their children, as constructors have it: they may set what children drew.
    for part in reversed([*module.modules()]):
        if method := _reset_method(part):
            method()


def _require_resets(module: Any) -> None:
    for path, part in module.named_modules():
        own = [name for name, _ in part.named_parameters(recurse=False)]
        if own and _reset_method(part) is None:
            place = ".".join(filter(None, [path, own[0]]))
            raise ValueError(
                f"block has the parameter {place!r}, which no reset_parameters() initialises: "
                f"give reset, a function that initialises the module, or {_ANEW}"
            )


def _as_function(module: Any, seed: int) -> Callable[[np.ndarray], Any]:
    """A module in double precision; what it draws when it is applied is the same every time."""
    import torch

    module = module.double()
    device = next((p.device for p in module.parameters()), torch.device("cpu"))

    def apply(z: np.ndarray) -> Any:
        with _seeded(seed), torch.no_grad():
            output = module(torch.tensor(z, dtype=torch.float64, device=device))
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"the module returned a {type(output).__name__}, not a tensor")
        return output.cpu().numpy()

    return apply
