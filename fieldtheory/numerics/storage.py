"""Solutions as labelled arrays, as files and as a table."""

from __future__ import annotations

import html
import json
import os
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.activation_text import activation_from_text, activation_text
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork

if TYPE_CHECKING:
    import xarray as xr

    from fieldtheory.numerics.solution import Solution

# Dimensions of the fields of one input. The hidden layers are 0, ..., L; the layers end with L + 1,
# the readout.
FIELDS: dict[str, tuple[str, ...]] = {
    "residual_kernels": ("layer",),
    "kernels": ("layer",),
    "residual_response": ("hidden_layer",),
    "response": ("hidden_layer",),
    "output_kernel": (),
    "output_response": (),
    "full_response": ("hidden_layer",),
    "G12": ("layer", "layer_"),
    "G11": ("layer", "layer_"),
    "kernel_variance": ("hidden_layer",),
}
# Fields of one network and one kernel, without batch axes.
UNBATCHED = ("G12", "G11", "kernel_variance")
_CHEAP = ("residual_kernels", "kernels", "residual_response", "response", "output_response")


def field_dims(name: str, has_matrix: bool) -> tuple[str, ...]:
    """The dimensions of a field behind its batch axes.

    Examples
    --------
    >>> field_dims("response", has_matrix=True)
    ('hidden_layer', 'input', 'input_')
    """
    pair = ("input", "input_") if has_matrix else ()
    source = ("source",) if name == "full_response" else ()
    return FIELDS[name] + pair + source


def field_coords(depth: int, inputs: int) -> dict[str, Any]:
    """The coordinate of every dimension a field may have: indices, and what a source moves."""
    layers, hidden, samples = np.arange(depth + 2), np.arange(depth + 1), np.arange(inputs)
    return {
        "layer": layers,
        "layer_": layers,
        "hidden_layer": hidden,
        "input": samples,
        "input_": samples,
        "source": ["K_aa", "K_bb", "K_ab"],
    }


def attributes(network: LayeredNetwork) -> dict[str, Any]:
    """The parameters of a network as numbers and text: those given, tuples as JSON.

    Examples
    --------
    >>> found = attributes(ResidualNetwork(depth=2, branch_scale=[0.1, 0.2]))
    >>> found["activation"], found["branch_scale"], "readin_weight_variance" in found
    ('erf', '[0.1, 0.2]', False)
    """
    found = {f.name: getattr(network, f.name) for f in fields(network)}
    found["activation"] = text = activation_text(network.activation)
    if text != network.activation.name:
        found["activation_name"] = network.activation.name
    texts = {name: json.dumps(v) for name, v in found.items() if isinstance(v, tuple)}
    return {name: texts.get(name, v) for name, v in found.items() if v is not None}


def network_from_attributes(found: dict[str, Any]) -> LayeredNetwork:
    """The network of `attributes`.

    Raises
    ------
    KeyError, ValueError, TypeError
        If a parameter is missing or not allowed.
    """
    known = [f.name for f in fields(ResidualNetwork)] + ["activation_name"]
    parameters = {name: np.asarray(found[name]).item() for name in known if name in found}
    name = parameters.pop("activation_name", "")
    parameters["activation"] = activation_from_text(parameters["activation"], name)
    for name in ("branch_scale", "skip_scale"):
        if isinstance(parameters[name], str):
            parameters[name] = json.loads(parameters[name])
    return ResidualNetwork(**parameters)


def import_xarray() -> Any:
    """The module xarray, or an ImportError that says how to get it."""
    try:
        import xarray
    except ImportError:
        raise ImportError(
            "labelled arrays need xarray: pip install 'fieldtheory-networks[parallel]'"
        ) from None
    return xarray


def dataset(solution: Solution) -> xr.Dataset:
    """What `Solution.to_xarray` returns."""
    single = not (
        _batch_shape(solution.network, solution.input_kernel) or solution.input_kernel.ndim
    )
    return _dataset(solution, _CHEAP + UNBATCHED if single else _CHEAP)


def _dataset(solution: Solution, names: tuple[str, ...]) -> xr.Dataset:
    shape = _batch_shape(solution.network, solution.input_kernel)
    batch = _batch_dims(shape)
    matrix = solution.input_kernel.ndim > 1
    variables = {
        name: (
            (() if name in UNBATCHED else batch) + field_dims(name, matrix),
            getattr(solution, name),
        )
        for name in names
    }
    used = {d for dims, _ in variables.values() for d in dims}
    coords = field_coords(solution.network.depth, solution.inputs)
    coords = {name: values for name, values in coords.items() if name in used}
    for name in ("branch_scale", "skip_scale"):
        scale = np.asarray(getattr(solution.network, name))
        if scale.ndim > 1 and scale.shape[-1] == 1:
            coords[name] = (batch, np.broadcast_to(scale[..., 0], shape))
    variables["input_kernel"] = (_kernel_dims(solution), solution.input_kernel)
    return import_xarray().Dataset(variables, coords, attributes(solution.network))


def save(solution: Solution, path: str | Path) -> None:
    """What `Solution.save` does."""
    path = _known_path(path)
    computed = tuple(name for name in FIELDS if name in _CHEAP or name in vars(solution))
    if path.suffix == ".nc":
        labelled = _dataset(solution, computed)
        write_whole(path, lambda file: file.write(labelled.to_netcdf(engine="scipy")))
        return
    arrays = {name: getattr(solution, name) for name in computed}
    arrays["input_kernel"] = solution.input_kernel
    write_npz(path, arrays | attributes(solution.network))


def read(path: str | Path) -> tuple[LayeredNetwork, np.ndarray, dict[str, np.ndarray]]:
    """The network, the input kernel and the fields in a file of `save`.

    Raises
    ------
    ValueError
        If the file is missing, of another kind, or damaged.
    """
    path = _known_path(path)
    if not path.is_file():
        raise ValueError(f"path must be a file that exists, got {str(path)!r}")
    try:
        content = _read_netcdf(path) if path.suffix == ".nc" else read_npz(path)
        network = network_from_attributes(content)
        kernel = validation.input_kernel_array("input_kernel", content["input_kernel"])
        found = {name: np.asarray(content[name], float) for name in FIELDS if name in content}
        for name, values in found.items():
            _require_shape(name, values, network, kernel)
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"path must be a file written by Solution.save, {str(path)!r} is not ({reason})"
        ) from None
    return network, kernel, found


def _require_shape(
    name: str, values: np.ndarray, network: LayeredNetwork, kernel: np.ndarray
) -> None:
    matrix = kernel.ndim > 1
    coords = field_coords(network.depth, kernel.shape[-1] if matrix else 1)
    own = tuple(len(coords[dim]) for dim in field_dims(name, matrix))
    expected = (() if name in UNBATCHED else _batch_shape(network, kernel)) + own
    if values.shape != expected:
        raise ValueError(f"{name} must have shape {expected}, got {values.shape}")


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
    """Write a file under another name beside ``path``, then rename it: never half a file.

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


def _batch_shape(network: LayeredNetwork, K0: np.ndarray) -> tuple[int, ...]:
    own = K0.shape[:-2] if K0.ndim > 1 else K0.shape
    return np.broadcast_shapes(network.batch_shape, own)


def _batch_dims(batch: tuple[int, ...]) -> tuple[str, ...]:
    return ("batch",) if len(batch) == 1 else tuple(f"batch_{axis}" for axis in range(len(batch)))


def _kernel_dims(solution: Solution) -> tuple[str, ...]:
    """Dimensions of K0; an axis that broadcasts against the batch has one of its own."""
    K0 = solution.input_kernel
    batch = _batch_shape(solution.network, K0)
    pair = ("input", "input_") if K0.ndim > 1 else ()
    own = K0.shape[: K0.ndim - len(pair)]
    start = len(batch) - len(own)
    dims = _batch_dims(batch)[start:]
    sizes = zip(dims, own, batch[start:], strict=True)
    return tuple(dim if size == full else f"{dim}_of_K0" for dim, size, full in sizes) + pair


def table(solution: Solution) -> str:
    """What a notebook shows: parameters, K^(L+1), χ^out and shapes, as an HTML table."""
    network = solution.network
    rows: dict[str, Any] = {f.name: getattr(network, f.name) for f in fields(network)}
    rows["activation"] = network.activation.name
    rows = {name: _summary(value) for name, value in rows.items() if value is not None}
    rows["inputs"] = str(solution.inputs)
    rows["K0"] = _summary(solution.input_kernel)
    results = {
        "K^(L+1)": lambda: solution.output_kernel,
        "χ^out": lambda: solution.output_response,
    }
    for name, value in results.items():
        try:
            rows[name] = _summary(value())
        except (ValueError, ArithmeticError) as error:
            rows[name] = str(error)
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    return f"<table><caption>Solution</caption>{cells}</table>"


def _summary(value: Any) -> str:
    """A number, or the range and shape of an array."""
    if isinstance(value, str | int):
        return str(value)
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    return f"{array.min():.6g} … {array.max():.6g}, shape {array.shape}"
