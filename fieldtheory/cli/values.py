"""What is typed on a command line, as values: numbers, kernels, activations, classes, networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.networks.activations import Activation, named_activation
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.networks.schedules import Schedule, checked_scale, follows_depth

_FAMILIES: dict[str, Any] = {"residual": ResidualNetwork, "block": BlockNetwork}


def activation(text: str, name: str = "activation") -> Activation:
    """φ from its name or from arithmetic in h, under the name that was typed.

    Examples
    --------
    >>> activation("0.5*h*erf(h)")
    Activation('0.5*h*erf(h)': h*erf(h)/2)
    """
    return named_activation(name, text)


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


def schedule(name: str, text: str) -> Any:
    """ρ_l: a number or numbers as `numbers`, or the name of a schedule.

    Examples
    --------
    >>> schedule("branch_scale", "0.3"), schedule("branch_scale", "uniform")
    (0.3, 'uniform')
    """
    word = text.strip()
    if word.isalpha() and word not in ("inf", "nan"):
        return checked_scale(name, word, 1, named=True)
    return numbers(name, text)


def layer_scale(name: str, text: str | None) -> float | str | None:
    """ρ or γ of formulas: a number, "symbol" for one symbol, "per-layer" for one of every layer.

    Examples
    --------
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


def integers(name: str, text: str) -> list[int]:
    """Integers separated by commas.

    Parameters and errors as `numbers`.

    Examples
    --------
    >>> integers("depths", "10,50")
    [10, 50]
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be integers separated by commas, got {text!r}") from None


def names(text: str | None) -> list[str] | None:
    """Names separated by commas, or None.

    Examples
    --------
    >>> names("erf, tanh"), names(None)
    (['erf', 'tanh'], None)
    """
    return None if text is None else [part.strip() for part in text.split(",")]


def axis(text: str) -> tuple[str, list[Any]]:
    """A parameter and its values: "depth=10,50", "branch_scale=0.1:1:10", "activation=erf,tanh".

    Numbers are separated by commas; start:stop:count are evenly spaced. Activations are names or
    expressions, and none leaves a variance as that of the residual layers; of branch_scale it is a
    schedule as uniform and decreasing are.

    Examples
    --------
    >>> axis("depth=10,50"), axis("branch-scale=0.1:0.5:3")
    (('depth', [10, 50]), ('branch_scale', [0.1, 0.3, 0.5]))
    """
    name, sign, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not sign or not name or not values.strip():
        raise ValueError(f"over must be a parameter and its values name=a,b,..., got {text!r}")
    if name == "activation":
        return name, [activation(part) for part in _outside_brackets(values)]
    if ":" in values:
        return name, _spaced(name, values)
    plain = [part.strip() for part in values.split(",")]
    if name in ("depth", "width", "input_dim"):
        return name, list(integers(name, values))
    if name == "branch_scale":
        return name, [schedule(name, part) for part in plain]
    return name, [None if part == "none" else numbers(name, part) for part in plain]


def _spaced(name: str, text: str) -> list[Any]:
    """Evenly spaced values, of 12 digits so that 0.3 is 0.3."""
    parts = text.split(":")
    try:
        start, stop, count = float(parts[0]), float(parts[1]), int(parts[2])
        if len(parts) > 3 or count < 2:
            raise ValueError
    except (ValueError, IndexError):
        raise ValueError(
            f"{name} must have values start:stop:count with count >= 2, got {text!r}"
        ) from None
    values = [float(f"{value:.12g}") for value in np.linspace(start, stop, count)]
    whole = name in ("depth", "width", "input_dim")
    return [int(value) if whole and value.is_integer() else value for value in values]


def _outside_brackets(text: str) -> list[str]:
    """Split at commas that are in no bracket."""
    parts, level = [""], 0
    for letter in text:
        level += (letter in "([") - (letter in ")]")
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def kernel(text: str) -> float | np.ndarray:
    """K0: a variance "0.05", a matrix "0.05,0.03;0.03,0.05", or a .csv or .npy file with either.

    Examples
    --------
    >>> kernel("0.05")
    0.05
    >>> kernel("0.05,0.03;0.03,0.05").shape
    (2, 2)
    """
    path = Path(text)
    if path.suffix.lower() in (".csv", ".npy"):
        return _kernel_file(path)
    rows = number_rows("K0", text)
    lengths = {len(row) for row in rows}
    if lengths != {len(rows)}:
        raise ValueError(f"K0 must be a number or a square matrix a,b;b,c, got {text!r}")
    return np.array(rows) if len(rows) > 1 else float(rows[0][0])


def number_rows(name: str, text: str) -> list[np.ndarray]:
    """Rows of numbers, separated by semicolons."""
    return [np.atleast_1d(numbers(name, row)) for row in text.split(";")]


def loaded(name: str, path: Path, read: Callable[[Path], Any]) -> Any:
    """Content of a file, or a ValueError that says why it cannot be read."""
    try:
        return read(path)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name} cannot be read from {str(path)!r} ({reason})") from None


def _kernel_file(path: Path) -> float | np.ndarray:
    if not path.is_file():
        raise ValueError(
            f"K0 must be a number, a matrix a,b;b,c or a file; there is no {str(path)!r}"
        )
    values = table_of_file("K0", path)
    if values.ndim == 2 and values.shape[0] != values.shape[1]:
        raise ValueError(
            f"K0 must be a number or a square matrix, got shape {values.shape} in {str(path)!r}; "
            "samples in rows are for --data"
        )
    return float(values.reshape(())) if values.size == 1 else values


def table_of_file(name: str, path: Path) -> np.ndarray:
    """The numbers of a .csv or .npy file; those of a .csv file with two axes."""
    plain, table = partial(np.load, allow_pickle=False), partial(np.loadtxt, delimiter=",", ndmin=2)
    return loaded(name, path, plain if path.suffix.lower() == ".npy" else table)


def network(
    typed_activation: str | None = None,
    branch_scale: str = "1.0",
    skip_scale: str = "1.0",
    schedule_name: str | None = None,
    family: str = "residual",
    **parameters: Any,
) -> Any:
    """The network of the options, scales and activation as they are typed; None is left out.

    Examples
    --------
    >>> network("tanh(2*h)", "0.3,0.2", depth=2).branch_scale
    (0.3, 0.2)
    >>> network(family="block", depth=2, normalization="none", inner_weight_variance="2,1").epsilon
    0.0
    """
    kind = _FAMILIES[family]
    given = {name: value for name, value in parameters.items() if value is not None}
    for name in set(given) - {field.name for field in fields(kind)}:
        raise ValueError(f"{name} must be left out for --family {family}, got {given[name]!r}")
    for name, value in given.items():
        if value == "none":
            given[name] = None
        elif name in kind.layer_parameters:
            given[name] = numbers(name, value)
    if schedule_name is not None and branch_scale != "1.0":
        raise ValueError(
            f"schedule and branch_scale must not both be given, got {schedule_name!r} and "
            f"{branch_scale!r}"
        )
    scale = schedule("branch_scale", branch_scale) if schedule_name is None else schedule_name
    if typed_activation is not None:
        given["activation"] = activation(typed_activation)
    return kind(branch_scale=scale, skip_scale=numbers("skip_scale", skip_scale), **given)


def decimals(value: Any) -> Any:
    """Floats as the shortest decimal numbers that they round: those that were typed.

    Examples
    --------
    >>> decimals(0.1), decimals((0.5, [0.3]))
    ('0.1', ['0.5', ['0.3']])
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [*map(decimals, value)]
    return repr(value) if isinstance(value, float) else value


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
    'depth 2, φ = gelu, gated, norm rms (pre); layer 3 is the output'
    """
    first = f"depth {network.depth}, φ = {network.activation.name}"
    if isinstance(network, BlockNetwork):
        place = f" ({network.norm_position})" if network.normalization else ""
        first += f"{', gated' * network.gated}, norm {network.normalization or 'none'}{place}"
    parts = [f"{first}; layer {network.depth + 1} is the output"]
    if follows_depth(network.branch_scale):
        parts.append(str(Schedule(network.branch_scale, network.parameters["branch_scale"])))
    return "; ".join([*parts, words] if words else parts)
