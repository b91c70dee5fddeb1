"""Results as files, written as a whole or not at all, and networks as the numbers and text in them.

A file holds the arrays of one result and, next to them, its ``kind`` (the class of the result), the
``format`` of the file, and for results of a network its ``family`` and parameters. Files of format
1 say neither kind nor format nor family: those of a `Solution` and an `Ensemble` of residual
networks.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activation_text import activation_from_text, activation_text
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import FAMILIES, NetworkFamily
from fieldtheory.networks.schedules import layer_values
from fieldtheory.validation import ExactFloat

FORMAT = 2
_OLD_FAMILY = "ResidualNetwork"
_HEADS = ("family", "module", "kind", "format")
# The key of the class of an object in JSON, and classes of numbers that their text gives back.
_CLASS = "class"
_EXACT = Fraction | sp.Rational
# netCDF-3 has no larger integers.
_LARGEST_INTEGER = 2**31 - 1
_Result = TypeVar("_Result")
# Dimensions, values and attributes of each array of a result.
Variables = dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]]


class Labelled(NamedTuple):
    """A result as named arrays; coordinates as xarray takes them, which .npz files do not hold."""

    variables: Variables
    coordinates: dict[str, Any]
    attributes: dict[str, Any]


def attributes(
    network: NetworkFamily, settings: Mapping[str, Any] | None = None, arrays: Iterable[str] = ()
) -> dict[str, Any]:
    """The family of a network, its given parameters and settings of a result, as numbers and text.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> written = attributes(ResidualNetwork(depth=2, branch_scale=[0.1, 0.2]))
    >>> written["family"], written["activation"], written["branch_scale"]
    ('ResidualNetwork', 'erf', '[0.1, 0.2]')
    >>> "readin_weight_variance" in written
    False
    """
    written = _written(network)
    settings = settings or {}
    if taken := ({f.name for f in fields(network)} & {*_HEADS, *settings, *arrays}):
        raise ValueError(
            f"{taken.pop()} is a name that results have in files, "
            f"a {type(network).__name__} must call its parameter by another"
        )
    again = {} if network.of_package else _written(network_from_attributes(written))
    for name in again and {**again, **written}:
        if again.get(name) != written.get(name):
            raise ValueError(
                f"{name} of a {type(network).__name__} cannot be written to a file, "
                f"got {validation.excerpt(getattr(network, name, None))}"
            )
    return {**written, **settings}


def _written(network: NetworkFamily) -> dict[str, Any]:
    family = type(network)
    written: dict[str, Any] = {"family": family.__name__}
    if not family.of_package:
        written["module"] = family.__module__
    for field in fields(network):
        value = getattr(network, field.name)
        if isinstance(value, Activation) and _holds(field, "Activation"):
            written[field.name] = text = activation_text(value)
            if text != value.name:
                written[f"{field.name}_name"] = value.name
        elif callable(value) and field.name in getattr(family, "layer_parameters", ()):
            values = layer_values(field.name, value, written["depth"])
            written[field.name] = json.dumps(values.tolist())
        elif value is not None or field.default is not None:
            written[field.name] = _text(field.name, value)
    return written


def _holds(field: Field[Any], kind: str) -> bool:
    """Whether a field is of a kind by its annotation; that of φ may be any."""
    return kind in str(field.type) or (field.name, kind) == ("activation", "Activation")


def _text(name: str, value: Any) -> Any:
    """A parameter as a number or text; text that could be read as JSON is written as JSON."""
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) in (int, float) or (type(value) is str and not _is_json(value)):
        return value
    try:
        # JSON takes exact numbers for floats.
        return json.dumps(_fractions(value), default=_plain_object)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be written to a file: it must be made of numbers, text, tuples, "
            f"activations and frozen dataclasses, got {validation.excerpt(value)} ({error})"
        ) from None


def _fractions(value: Any) -> Any:
    """The value with the rational numbers that it keeps."""
    if isinstance(value, tuple | list):
        return [*map(_fractions, value)]
    return value.exact if isinstance(value, ExactFloat) else value


def _plain_object(value: Any) -> Any:
    """Form of a value unknown to JSON that `_object` reads."""
    if isinstance(value, Activation):
        return {_CLASS: "Activation", "expression": activation_text(value), "name": value.name}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    kind: Any = sp.Rational if isinstance(value, sp.Rational) else type(value)
    if isinstance(value, _EXACT):
        parts = {"value": str(value)}
    elif is_dataclass(kind):
        parts = {part.name: getattr(value, part.name) for part in fields(kind) if part.init}
    else:
        raise TypeError(f"of type {kind.__name__}")
    return {_CLASS: f"{kind.__module__}:{kind.__qualname__}", **parts}


def _object(parts: dict[str, Any]) -> Any:
    """The object of `_plain_object`, its class that of a module which has been imported."""
    name = parts.pop(_CLASS, None)
    values = {key: validation.as_tuples(value) for key, value in parts.items()}
    if name is None:
        return values
    if name == "Activation":
        return activation_from_text(values["expression"], values["name"])
    module, _, path = name.partition(":")
    kind: Any = sys.modules.get(module)
    for part in path.split("."):
        kind = getattr(kind, part, None)
    if isinstance(kind, type) and issubclass(kind, _EXACT):
        return kind(values["value"])
    if not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
        raise ValueError(f"{path} of the module {module} must be imported to load it")
    return kind(**values)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def network_from_attributes(written: Mapping[str, Any]) -> Any:
    """The network of `attributes`; KeyError, ValueError or TypeError if it cannot be made."""
    family, parameters = _family(written), {}
    for field in fields(family):
        if field.name not in written:
            continue
        value = _plain(written[field.name])
        if isinstance(value, str) and _holds(field, "Activation"):
            value = activation_from_text(value, _plain(written.get(f"{field.name}_name", "")))
        elif isinstance(value, str) and _is_json(value):
            value = validation.as_tuples(json.loads(value, object_hook=_object))
        parameters[field.name] = value
    return family(**parameters)


def _family(written: Mapping[str, Any]) -> type[NetworkFamily]:
    """The family of a file; one of a module of one's own must have been imported."""
    name, module = (str(_plain(written.get(key, ""))) for key in ("family", "module"))
    family = FAMILIES.get(name)
    modules = {module, family.__module__ if family else ""}
    if module and (family is None or len(modules - {"__main__"}) > 1):
        raise ValueError(f"its network is a {name} of {module}, which must be imported to load it")
    return FAMILIES[validation.choice("family", name or _OLD_FAMILY, tuple(FAMILIES))]


def _plain(value: Any) -> Any:
    return np.asarray(value).item()


def import_xarray() -> Any:
    """The module xarray, or an ImportError that says how to get it."""
    try:
        import xarray
    except ImportError:
        raise ImportError(
            "labelled arrays need xarray: pip install 'fieldtheory-networks[parallel]'"
        ) from None
    return xarray


def write(path: str | Path, kind: str, labelled: Labelled) -> None:
    """Write a result of the class ``kind`` to a file, as a whole or not at all."""
    path = _known_path(path)
    heads = {"kind": kind, "format": FORMAT} | {
        name: str(value) if isinstance(value, int) and abs(value) > _LARGEST_INTEGER else value
        for name, value in labelled.attributes.items()
    }
    if path.suffix == ".nc":
        dataset = import_xarray().Dataset(labelled.variables, labelled.coordinates, heads)
        content = dataset.to_netcdf(engine="scipy")
        write_whole(path, lambda file: file.write(content))
    else:
        write_npz(path, {name: array for name, (_, array, _) in labelled.variables.items()} | heads)


def kind_of(path: str | Path) -> str:
    """The class of the result in a file; empty for a grid of a sweep, which is labelled alone."""
    with _unreadable(path := _known_path(path), "save of a result"):
        content = _content(path)
        is_grid = path.suffix == ".nc" and "kind" not in content and "input_kernel" not in content
        return "" if is_grid else _kind(content)


def read(path: str | Path, kind: str, build: Callable[[dict[str, Any]], _Result]) -> _Result:
    """The result of the class ``kind`` in a file, made of its arrays, numbers and text."""
    with _unreadable(path := _known_path(path), f"{kind}.save"):
        content = _content(path)
        if (stored_kind := _kind(content)) != kind:
            raise ValueError(f"it holds a result of kind {stored_kind}")
        return build(content)


@contextmanager
def _unreadable(path: Path, writer: str) -> Iterator[None]:
    """Errors of reading a file as one ValueError."""
    if not path.is_file():
        raise ValueError(f"path must be a file that exists, got {str(path)!r}")
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"path must be a file written by {writer}, {str(path)!r} is not ({reason})"
        ) from None


def _content(path: Path) -> dict[str, Any]:
    if path.suffix == ".npz":
        return read_npz(path)
    labelled = import_xarray().load_dataset(path, engine="scipy")
    arrays = {str(name): variable.values for name, variable in labelled.data_vars.items()}
    return {**labelled.attrs, **arrays}


def _kind(content: Mapping[str, Any]) -> str:
    version = int(_plain(content.get("format", 1)))
    if version > FORMAT:
        raise ValueError(f"its format is {version}, this version reads up to {FORMAT}")
    # Of the results that format 1 knows, an ensemble has a number of samples.
    old = "Ensemble" if "samples" in content else "Solution"
    return str(_plain(content["kind"])) if "kind" in content else old


def read_npz(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file, without pickled objects."""
    # NumPy leaves a damaged file open that it has opened itself.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def write_whole(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file under another name next to ``path``, then rename it: never half a file."""
    if not path.parent.is_dir():
        raise ValueError(f"path must lie in a folder that exists, got {str(path)!r}")
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with open(partial, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write an .npz file as `write_whole` does."""
    write_whole(path, lambda file: np.savez(file, **arrays))


def _known_path(path: str | Path) -> Path:
    file_path = Path(path)
    if file_path.suffix not in (".npz", ".nc"):
        raise ValueError(f"path must end in .npz or .nc, got {str(path)!r}")
    return file_path
