"""Residual blocks, callables and torch modules, as functions of arrays with checked answers."""

from __future__ import annotations

import copy
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fieldtheory import validation

Apply = Callable[[np.ndarray], np.ndarray]
# A new block for a width and a generator of random numbers.
Draw = Callable[[int, np.random.Generator], Apply]

_FORM = "block must be a callable block(width, rng) that returns a function of z, or a torch module"


def drawing(block: Any, reset: Any = None) -> Draw:
    """What draws a new block at random and gives it as a function (P, width) -> (P, width).

    Parameters
    ----------
    block, reset
        As for `measure_block`.

    Raises
    ------
    TypeError, ValueError
        If they are of another kind.
    """
    if _is_module(block):
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
            raise TypeError(f"{_FORM}, got {validation.shown(block)}")
        _require_arguments("block", block, "width", "rng")
        draw = block

    has_warned = False

    def drawn(width: int, rng: np.random.Generator) -> Apply:
        nonlocal has_warned
        seed, start = _torch_seed(rng.spawn(1)[0]), rng.bit_generator.state
        try:
            with _seeded(seed) as is_seeded:
                found = draw(width, rng)
            if _is_module(found) and not is_seeded:
                # The block has imported torch.
                rng.bit_generator.state = start
                with _seeded(seed):
                    found = draw(width, rng)
        except Exception as error:
            raise ValueError(f"block(width={width}, rng) failed: {_reason(error)}") from error
        if _is_module(found):
            has_warned = has_warned or _warned_of_training(found)
            found = _as_function(found, _torch_seed(rng))
        if not callable(found):
            raise TypeError(f"{_FORM}; block(width, rng) returned {validation.shown(found)}")
        return _checked(found)

    return drawn


def name_of(block: Any) -> str:
    """What a block is called in a result.

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
            found = np.asarray(apply(z))
        except Exception as error:
            raise ValueError(
                f"block failed on a signal of shape {z.shape}: {_reason(error)}"
            ) from error
        if found.dtype.kind not in "fiub":
            raise TypeError(f"block must return real numbers, got {validation.shown(found)}")
        if found.dtype == np.float16:
            raise TypeError(
                "block must return float32 or float64 numbers, got float16, too coarse for the "
                "differences that give susceptibilities"
            )
        if found.shape != z.shape:
            raise ValueError(
                f"block must return an array of the shape of its input {z.shape}, "
                f"got shape {found.shape}"
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"block must return finite numbers, got {float(found[~np.isfinite(found)][0])!r}"
            )
        return found.astype(float, copy=False)

    return checked


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _require_arguments(name: str, function: Any, *arguments: str) -> None:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        form = f"{name}({', '.join(arguments)})"
        raise TypeError(f"{name} must be callable as {form}: {error}") from None
    except ValueError:
        # A builtin that does not tell its arguments.
        pass


def _is_module(value: Any) -> bool:
    """Whether it is a torch module or a class of them; who has one has imported torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, torch.nn.Module)


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
            if part.training and ("BatchNorm" in type(part).__name__ or _dropped(part) > 0)
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


def _redrawn(module: Any, reset: Any) -> Draw:
    """Draws of a copy of a module whose parameters are initialised anew every time."""
    import torch

    if reset is None:
        _require_resets(module)
        reset = _reset
    else:
        if not callable(reset):
            raise TypeError(
                f"reset must be a function of the module, got {validation.shown(reset)}"
            )
        _require_arguments("reset", reset, "module")
    mine = copy.deepcopy(module)

    def draw(width: int, rng: np.random.Generator) -> Any:
        with _seeded(_torch_seed(rng)), torch.no_grad():
            reset(mine)
        return mine

    return draw


def _reset_method(module: Any) -> Any:
    # MultiheadAttention has it with an underscore.
    for name in ("reset_parameters", "_reset_parameters"):
        if callable(method := getattr(module, name, None)):
            return method
    return None


def _reset(module: Any) -> None:
    for part in module.modules():
        if method := _reset_method(part):
            method()


def _require_resets(module: Any) -> None:
    for path, part in module.named_modules():
        own = [name for name, _ in part.named_parameters(recurse=False)]
        if own and _reset_method(part) is None:
            place = ".".join(filter(None, [path, own[0]]))
            raise ValueError(
                f"block has the parameter {place!r}, which no reset_parameters() initialises: "
                "give reset, a function that initialises the module"
            )


def _as_function(module: Any, seed: int) -> Callable[[np.ndarray], Any]:
    """A module in double precision; what it draws when it is applied is the same every time."""
    import torch

    module = module.double()
    device = next((p.device for p in module.parameters()), torch.device("cpu"))

    def apply(z: np.ndarray) -> Any:
        with _seeded(seed), torch.no_grad():
            found = module(torch.tensor(z, dtype=torch.float64, device=device))
        if not isinstance(found, torch.Tensor):
            raise TypeError(f"the module returned a {type(found).__name__}, not a tensor")
        return found.cpu().numpy()

    return apply
