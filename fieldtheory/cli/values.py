"""What is typed on a command line, as values: numbers, kernels, activations, networks."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.networks import BlockNetwork, FeedForwardNetwork, ResidualNetwork
from fieldtheory.networks.activations import named_activation
from fieldtheory.networks.parameters import hint
from fieldtheory.networks.schedules import Schedule, follows_depth

# Families of layers, the first one where none is named, and what --family calls them.
LAYERED = (ResidualNetwork, FeedForwardNetwork, BlockNetwork)
_CALLED = {"residual": "ResidualNetwork", "block": "BlockNetwork"}
_WHOLE = ("depth", "width", "input_dim")


def numbers(name: str, text: str) -> float | list[float]:
    """A number, or a list of them separated by commas.

    Examples
    --------
    >>> numbers("branch_scale", "0.3"), numbers("branch_scale", "0.3,0.2")
    (0.3, [0.3, 0.2])
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{name} must be a number or numbers separated by commas, got {text!r}"
        ) from None
    return values[0] if len(values) == 1 else values


def rates(texts: list[str]) -> dict[str, float | list[float]]:
    """Learning rates by kinds of parameters, each typed as kind=rate or kind=rate,rate,...

    Examples
    --------
    >>> rates(["inner_weight=0", "outer_bias=2,1"])
    {'inner_weight': 0.0, 'outer_bias': [2.0, 1.0]}
    """
    found = {}
    for text in texts:
        kind, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"rate must be a kind of parameters and its rate kind=0, got {text!r}")
        found[kind.strip()] = numbers("rate", value)
    return found


def integers(name: str, text: str) -> list[int]:
    """Integers separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be integers separated by commas, got {text!r}") from None


def parameter(name: str, text: str) -> Any:
    """A parameter of a network: φ, numbers, none, or a word that the network knows or refuses.

    Examples
    --------
    >>> parameter("depth", "10"), parameter("skip_scale", "1,0.5"), parameter("epsilon", "none")
    (10, [1.0, 0.5], None)
    >>> parameter("branch_scale", "none"), parameter("depth", "infinite")
    ('none', 'infinite')
    """
    word = text.strip()
    if name.endswith("activation"):
        return named_activation(name, word)
    # Of ρ_l it is a schedule.
    if word == "none" and name != "branch_scale":
        return None
    if word.isalpha() and word not in ("inf", "nan"):
        return word
    return integers(name, word)[0] if name in _WHOLE else numbers(name, word)


def names(text: str | None) -> list[str] | None:
    """Names separated by commas, or None."""
    return None if text is None else [part.strip() for part in text.split(",")]


def layer_scale(name: str, text: str | None) -> float | str | None:
    """ρ or γ of formulas: a number, "symbol" for one symbol, "per-layer" for one of every layer.

    >>> layer_scale("skip_scale", "0.9"), layer_scale("skip_scale", "per-layer")
    (0.9, 'per layer')
    """
    words = None if text is None else text.strip().replace("-", " ").replace("_", " ")
    if words in (None, "symbol", "per layer"):
        return words
    try:
        return float(str(text))
    except ValueError:
        raise ValueError(
            f"{name} must be one number, symbol or per-layer, got {text!r}; for numbers of every "
            "layer, derive per-layer"
        ) from None


def axis(text: str) -> tuple[str, list[Any]]:
    """A parameter and its values, separated by commas or start:stop:count, evenly spaced.

    Examples
    --------
    >>> axis("depth=10,50"), axis("branch-scale=0.1:0.5:3"), axis("branch_scale=0.2,uniform")
    (('depth', [10, 50]), ('branch_scale', [0.1, 0.3, 0.5]), ('branch_scale', [0.2, 'uniform']))
    """
    name, sign, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not sign or not name or not values.strip():
        raise ValueError(f"over must be a parameter and its values name=a,b,..., got {text!r}")
    parts = _outside_brackets(values) if name.endswith("activation") else values.split(",")
    if ":" in values:
        try:
            start, stop, count = values.split(":")
            spaced = np.linspace(float(start), float(stop), int(count))
            if len(spaced) < 2:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{name} must have values start:stop:count with count >= 2, got {values!r}"
            ) from None
        # Of 12 digits, so that 0.3 is 0.3.
        parts = [f"{value:.12g}" for value in spaced]
    return name, [parameter(name, part) for part in parts]


def _outside_brackets(text: str) -> list[str]:
    """Split at commas that are in no bracket."""
    parts, level = [""], 0
    for letter in text:
        level += (letter in "([") - (letter in ")]")
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def kernel(text: str) -> float | np.ndarray:
    """K0: a variance "0.05", a matrix "0.05,0.03;0.03,0.05", or a .csv or .npy file with either.

    Examples
    --------
    >>> kernel("0.05"), kernel("0.05,0.03;0.03,0.05").shape
    (0.05, (2, 2))
    """
    path = Path(text)
    if path.suffix.lower() in (".csv", ".npy"):
        values, place = table_of_file("K0", path), f" in {text!r}; samples in rows are for --data"
    else:
        values, place = number_rows("K0", text), ""
    if values.size == 1:
        return float(values.item())
    if values.ndim == 2 and values.shape[0] != values.shape[1]:
        raise ValueError(
            f"K0 must be a number or a square matrix a,b;b,c, got shape {values.shape}{place}"
        )
    return values


def number_rows(name: str, text: str) -> np.ndarray:
    """Rows of numbers of one length, separated by semicolons.

    >>> number_rows("inputs", "0,1").shape, number_rows("inputs", "0.5,1,2;-1,2,0").shape
    ((1, 2), (2, 3))
    """
    rows = [np.atleast_1d(numbers(name, row)) for row in text.split(";")]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name} must have rows of one length, a,b;c,d, got {text!r}")
    return np.stack(rows)


def loaded(name: str, path: Path, read: Callable[[Path], Any]) -> Any:
    """Content of a file, or a ValueError that says why it cannot be read."""
    try:
        return read(path)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split()) if path.is_file() else "there is no such file"
        raise ValueError(f"{name} cannot be read from {str(path)!r} ({reason})") from None


def table_of_file(name: str, path: Path) -> np.ndarray:
    """The numbers of a .csv or .npy file; those of a .csv file with two axes."""
    plain, table = partial(np.load, allow_pickle=False), partial(np.loadtxt, delimiter=",", ndmin=2)
    return loaded(name, path, plain if path.suffix.lower() == ".npy" else table)


def network(activation: str | None = None, **options: Any) -> Any:
    """The network of `parameters`.

    Examples
    --------
    >>> network("tanh(2*h)", branch_scale="0.3,0.2", depth=2).branch_scale
    (0.3, 0.2)
    >>> network(family="block", normalization="none", inner_weight_variance="2").depth
    50
    """
    kind, given = parameters(activation=activation, **options)
    return kind(**given)


def parameters(
    *,
    family: str | None = None,
    schedule: str | None = None,
    file: Path | None = None,
    families: Sequence[type] = LAYERED,
    **typed: Any,
) -> tuple[type, dict[str, Any]]:
    """The family of a network and the parameters that are typed, or else stand in a file.

    What is None is not typed.
    """
    content = {}
    if file is not None:
        content = loaded("network", file, lambda path: tomllib.loads(path.read_text("utf-8")))
    if schedule is not None and typed.get("branch_scale") is not None:
        raise ValueError(
            f"schedule and branch_scale must not both be given, got {schedule!r} and "
            f"{typed['branch_scale']!r}"
        )
    typed["branch_scale"] = schedule or typed.get("branch_scale")
    kinds = {kind.__name__: kind for kind in families}
    named = content.pop("family", families[0].__name__)
    named = _CALLED.get(family or "", named)
    if named not in kinds:
        raise ValueError(f"family must be one of {', '.join(kinds)}, got {named!r}")
    known = [field.name for field in fields(kinds[named])]
    given = content | {name: value for name, value in typed.items() if value is not None}
    for name, value in given.items():
        if name not in known:
            meant = hint(name, known)
            raise ValueError(
                f"{name} must be left out for a {named}, got {value!r}"
                f"{f'; did you mean {meant}?' if meant else ''}"
            )
    # Where the family has no depth of its own.
    depth = {} if hasattr(kinds[named], "depth") else {"depth": 50}
    read = {n: parameter(n, v) if isinstance(v, str) else v for n, v in given.items()}
    return kinds[named], depth | read


def decimals(value: Any) -> Any:
    """Floats that are no short decimal numbers as the text that was typed.

    Examples
    --------
    >>> decimals(0.1), decimals((0.5, [0.3]))
    ('0.1', [0.5, ['0.3']])
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [*map(decimals, value)]
    rounded = isinstance(value, float) and math.isfinite(value) and Fraction(repr(value)) != value
    return repr(value) if rounded else value


def as_typed(network: Any) -> Any:
    """The network with `decimals` as its parameters, which are then exact."""
    typed = {field.name: decimals(getattr(network, field.name)) for field in fields(network)}
    return network.replace(**typed)


def title(network: Any, words: str) -> str:
    """The line above a table of layers: the network, its schedule, and words on the inputs.

    Examples
    --------
    >>> title(ResidualNetwork(depth=2), "")
    'depth 2, φ = erf; layer 3 is the output'
    >>> title(BlockNetwork(depth=2, gated=True), "")
    'depth 2, φ = gelu, normalization rms, norm_position pre, gated; layer 3 is the output'
    """
    first = [f"depth {network.depth}", f"φ = {network.activation.name}"]
    for field in fields(network):
        value = getattr(network, field.name)
        if value is True or (isinstance(value, str) and field.name != "branch_scale"):
            first.append(field.name if value is True else f"{field.name} {value}")
    parts = [f"{', '.join(first)}; layer {network.depth + 1} is the output"]
    if follows_depth(network.branch_scale):
        parts.append(str(Schedule(network.branch_scale, network.parameters["branch_scale"])))
    return "; ".join([*parts, words] if words else parts)
