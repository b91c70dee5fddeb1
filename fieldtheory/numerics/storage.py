"""Results as files, written as a whole or not at all, and networks as the numbers and text in them.

A file holds the arrays of one result and, next to them, its ``kind`` (the class of the result), the
``format`` of the file, and for results of a network its ``family`` and parameters. Files of format
1 say neither kind nor format nor family: those of a `Solution` and an `Ensemble` of residual
networks.
"""

from __future__ import annotations

import json
import os
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.activation_text import activation_from_text, activation_text
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.diffusion import INFINITE
from fieldtheory.networks.family import FAMILIES, NetworkFamily
from fieldtheory.networks.parameter_law import ParameterLaw
from fieldtheory.networks.schedules import SCHEDULES, layer_values

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 2
_OLD_FAMILY = "ResidualNetwork"
# netCDF-3 has no larger integers.
_LARGEST_INTEGER = 2**31 - 1
_Result = TypeVar("_Result")


class Labelled(NamedTuple):
    """A result as named arrays.

    Parameters
    ----------
    variables : dict of str to (tuple of str, array, dict)
        Dimensions, values and attributes of each array.
    coordinates : dict
        As xarray takes them; not written to .npz files.
    attributes : dict of str to number or str
    """

    variables: dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]]
    coordinates: dict[str, Any]
    attributes: dict[str, Any]


def attributes(network: NetworkFamily) -> dict[str, Any]:
    """The family of a network and its given parameters as numbers and text, if need be as JSON.

    Scales that are functions of (l, L) are written as their values.

    Raises
    ------
    ValueError
        If the activation has a function that cannot be written.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> found = attributes(ResidualNetwork(depth=2, branch_scale=[0.1, 0.2]))
    >>> found["family"], found["activation"], found["branch_scale"]
    ('ResidualNetwork', 'erf', '[0.1, 0.2]')
    >>> "readin_weight_variance" in found
    False
    """
    found: dict[str, Any] = {"family": type(network).__name__}
    for field in fields(network):
        value = getattr(network, field.name)
        if isinstance(value, Activation):
            found[field.name] = text = activation_text(value)
            if text != value.name:
                found[f"{field.name}_name"] = value.name
        elif isinstance(value, ParameterLaw):
            found[field.name] = json.dumps(
                {name: array.tolist() for name, array in value.arrays.items()}
            )
        elif isinstance(value, tuple | bool):
            found[field.name] = json.dumps(value)
        elif callable(value):
            depth = found["depth"]
            values = layer_values(field.name, value, depth)
            found[field.name] = json.dumps(values.tolist())
        elif value is not None:
            found[field.name] = value
        elif field.name == "depth":
            found[field.name] = INFINITE
    return found


def network_from_attributes(found: Mapping[str, Any]) -> Any:
    """The network of `attributes`.

    Raises
    ------
    KeyError, ValueError, TypeError
        If the family is unknown, or a parameter is missing or not allowed.
    """
    name = validation.choice("family", _plain(found.get("family", _OLD_FAMILY)), tuple(FAMILIES))
    family, parameters = FAMILIES[name], {}
    for field in fields(family):
        if field.name not in found:
            continue
        value = _plain(found[field.name])
        if isinstance(value, str) and "Activation" in str(field.type):
            value = activation_from_text(value, _plain(found.get(f"{field.name}_name", "")))
        elif isinstance(value, str) and "ParameterLaw" in str(field.type):
            value = ParameterLaw(**json.loads(value))
        elif (
            isinstance(value, str)
            and "str" not in str(field.type)
            and value not in (*SCHEDULES, INFINITE)
        ):
            value = validation.as_tuples(json.loads(value))
        parameters[field.name] = value
    return family(**parameters)


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


def dataset(labelled: Labelled) -> xr.Dataset:
    """Named arrays as an `xarray.Dataset`."""
    return import_xarray().Dataset(*labelled)


def write(path: str | Path, kind: str, labelled: Labelled) -> None:
    """Write a result to a file, as a whole or not at all.

    Parameters
    ----------
    path : str or Path
        Ends in .npz, or in .nc for netCDF, which needs xarray.
    kind : str
        The class of the result.
    labelled : Labelled

    Raises
    ------
    ValueError
        If ``path`` ends otherwise or lies in no folder.
    """
    path = _known_path(path)
    heads = {"kind": kind, "format": FORMAT} | {
        name: str(value) if isinstance(value, int) and abs(value) > _LARGEST_INTEGER else value
        for name, value in labelled.attributes.items()
    }
    if path.suffix == ".nc":
        content = dataset(labelled._replace(attributes=heads)).to_netcdf(engine="scipy")
        write_whole(path, lambda file: file.write(content))
    else:
        write_npz(path, {name: array for name, (_, array, _) in labelled.variables.items()} | heads)


def kind_of(path: str | Path) -> str:
    """The class of the result in a file; empty for a grid of a sweep, which is labelled alone.

    Raises
    ------
    ValueError
        If there is no such file or it cannot be read.
    """
    with _unreadable(path := _known_path(path), "save of a result"):
        content = _content(path)
        is_grid = path.suffix == ".nc" and "kind" not in content and "input_kernel" not in content
        return "" if is_grid else _kind(content)


def read(path: str | Path, kind: str, build: Callable[[dict[str, Any]], _Result]) -> _Result:
    """The result in a file of `write`.

    Parameters
    ----------
    path : str or Path
    kind : str
        The class of the result that is expected.
    build : callable
        Makes the result from all arrays, numbers and text of the file by their names.

    Raises
    ------
    ValueError
        If the file is missing, of another kind or a newer format, or damaged.
    """
    with _unreadable(path := _known_path(path), f"{kind}.save"):
        content = _content(path)
        if (found := _kind(content)) != kind:
            raise ValueError(f"it holds a result of kind {found}")
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
    return _read_netcdf(path) if path.suffix == ".nc" else read_npz(path)


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


def _read_netcdf(path: Path) -> dict[str, Any]:
    labelled = import_xarray().load_dataset(path, engine="scipy")
    arrays = {str(name): variable.values for name, variable in labelled.data_vars.items()}
    return {**labelled.attrs, **arrays}


def write_whole(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file under another name next to ``path``, then rename it: never half a file.

    Raises
    ------
    ValueError
        If the folder of ``path`` does not exist.
    """
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
    found = Path(path)
    if found.suffix not in (".npz", ".nc"):
        raise ValueError(f"path must end in .npz or .nc, got {str(path)!r}")
    return found
