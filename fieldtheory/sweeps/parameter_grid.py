"""Fields of the solution over a grid of parameters."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.activation_text import activation_text
from fieldtheory.networks.family import DeepNetwork, deep_network
from fieldtheory.networks.parameters import described, hint, named_arguments
from fieldtheory.networks.schedules import follows_depth, layer_values, scale_text
from fieldtheory.numerics import chunks, storage
from fieldtheory.numerics.fields import Field, coordinates, labelled_coordinates, notes
from fieldtheory.numerics.solution import solve
from fieldtheory.scaling import optimal_scaling

if TYPE_CHECKING:
    from fieldtheory.sweeps.grid_dataset import GridDataset

# Points of a chunk at most, and the seconds that one takes where it is kept in a file.
_MOST, _SECONDS = 256, 5.0
_KERNEL = "K0"
_OPTIMUM = "optimal_scaling"
_OPTIMISED = "branch_scale"
_OPTIMAL = Field(
    name=_OPTIMUM,
    symbol=r"\rho^*",
    long_name="branch scale at which the output responds most to the input",
    dims=(),
    batches=False,
)


@dataclass(frozen=True, eq=False)
class _Grid:
    """A checked sweep: every axis with its values, those that `solve` batches last."""

    network: DeepNetwork
    kernel: np.ndarray
    axes: dict[str, list[Any]]
    quantities: dict[str, Field]

    @property
    def points(self) -> list[dict[str, Any]]:
        """The values at every point, in C order."""
        return [
            dict(zip(self.axes, values, strict=True))
            for values in itertools.product(*self.axes.values())
        ]


@named_arguments
def sweep(
    network: DeepNetwork,
    K0: Any = None,
    *,
    over: Mapping[str, Sequence[Any]],
    of: str | Sequence[str] = "output_response",
    chunk: int | None = None,
    directory: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> GridDataset:
    """Fields of `solve` on the grid spanned by values of parameters; needs xarray and joblib.

    Points that differ only in ``K0`` or in parameters with a value for every layer, such as
    ``branch_scale``, are solved in one call.
    The chunks of the grid are given to joblib, whose backend decides where they are computed:
    within ``joblib.parallel_config("dask")`` on the cluster of the current dask client. What a
    lost worker was computing is computed again by another.

    Parameters
    ----------
    network : ResidualNetwork, FeedForwardNetwork, BlockNetwork or of a family like them
        Without batch axes; supplies the parameters that are not swept.
    K0 : float or array_like, shape (P, P)
        Kernel of the input, as for `solve`; left out if it is swept.
    over : mapping of str to sequence
        Values of parameters of the network, or of ``"K0"``. Scales may have one value for every
        layer, kernels may be matrices, all of one shape. Names and functions for scales, such as
        ``branch_scale=["uniform", "none", 0.3]``, follow a depth that is swept.
    of : str or sequence of str
        Fields of `Solution`, also as "chi_out", "ntk", and ``"optimal_scaling"``.
    chunk : int, optional
        Most points in one chunk: of memory, of work that is resumed, and of work of one job. If
        left out, 256, or with a directory as many as take about five seconds.
    directory : str or Path, optional
        Folder for finished chunks, made if it does not exist. A sweep of the same specification
        reads the chunks found there and computes the others only.
    jobs : int, optional
        Number of joblib's jobs; joblib decides if left out (one, or as ``parallel_config`` says).
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    GridDataset
        An `xarray.Dataset` that ``plot()`` draws and ``save`` keeps. Dimensions are the swept
        parameters in the order of ``over``, then those of `Solution.to_xarray`. Coordinates are
        numbers, names of activations, or indices with the values, as JSON, in the attribute
        ``values``. Parameters not swept are attributes.

    Raises
    ------
    ValueError, TypeError
        If an argument is not allowed, a field with layers is asked for while the depth is swept,
        or the optimal scaling while the branch scale is. An error at a point of the grid has a
        note that says where.
    ImportError
        If xarray or joblib is missing.

    Notes
    -----
    Points solved in one call may differ from single ones in the last digit.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20)
    >>> grid = sweep(net, 0.05, over={"depth": [10, 20], "branch_scale": [0.1, 0.2, 0.3]})
    >>> grid.output_response.dims, grid.output_response.shape
    (('depth', 'branch_scale'), (2, 3))
    >>> round(float(grid.output_response.sel(depth=20, branch_scale=0.3)), 6)
    1.715363
    """
    grid = _checked(network, K0, over, of)
    points = grid.points
    if chunk is None:
        chunk = _MOST if directory is None else _timed_chunk(grid, points, directory)
    chunk = validation.integer("chunk", chunk, 1)
    pieces = [points[start : start + chunk] for start in range(0, len(points), chunk)]
    tasks = ((index, grid, points) for index, points in enumerate(pieces))
    specification = None if directory is None else _specification(grid, chunk)
    done = chunks.ordered_chunks(
        _evaluate,
        tasks,
        len(pieces),
        jobs,
        "sweep",
        directory=directory,
        specification=specification,
        progress=progress,
    )
    return _labelled(grid, list(done), tuple(over))


def _timed_chunk(grid: _Grid, points: list[dict[str, Any]], directory: str | Path) -> int:
    """Points of a chunk of some seconds, by the time of the deepest of every activation."""
    # A file next to the chunks keeps the number, so that a later sweep finds the same chunks.
    (path,) = chunks.chunk_files(directory, _specification(grid, 0), 1).values()
    kept = chunks.stored_chunk(path)
    if kept is not None:
        return int(kept["chunk"])
    deepest: dict[Any, dict[str, Any]] = {}
    for point in sorted(points, key=lambda point: point.get("depth", 0)):
        deepest[str(point.get("activation"))] = point
    slowest = 0.0
    for point in deepest.values():
        # The first time functions are compiled.
        _solved(grid, [point])
        started = time.monotonic()
        _solved(grid, [point])
        slowest = max(slowest, time.monotonic() - started)
    chunk = min(max(int(_SECONDS / slowest), 1), _MOST)
    storage.write_npz(path, {"chunk": np.array(chunk)})
    return chunk


def _checked(network: Any, K0: Any, over: Any, of: Any) -> _Grid:
    deep_network(network, "sweep")
    if not isinstance(over, Mapping) or not over:
        raise TypeError(f"over must map parameters to values, got {over!r}")
    if (K0 is None) != (_KERNEL in over):
        raise ValueError(f"K0 must be given or swept, not both, got K0={K0!r}")
    order = sorted(over, key=lambda name: name in _batched(network))
    axes = {name: _values(network, name, over[name]) for name in order}
    kernel = axes[_KERNEL][0] if _KERNEL in axes else _one_kernel(K0)
    for name in network.layer_parameters:
        if any(np.ndim(value) > 1 for value in (getattr(network, name), *axes.get(name, []))):
            raise ValueError(f"{name} must be one number or one for every layer in a sweep")
    wanted = (of,) if isinstance(of, str) else of
    if not isinstance(wanted, Sequence) or not wanted:
        raise TypeError(f"of must be a name or a sequence of names, got {of!r}")
    # Of a solution that computes nothing before it is asked.
    unsolved = solve(network, kernel)
    table = {n: row for n, row in unsolved.table.items() if not unsolved.missing(n)}
    table[_OPTIMUM] = _OPTIMAL
    wanted = [validation.quantity("of", name, tuple(table)) for name in wanted]
    for name in wanted:
        _check_quantity(table[name], axes, kernel)
    return _Grid(network, kernel, axes, {name: table[name] for name in wanted})


def _values(network: DeepNetwork, name: str, points: Any) -> list[Any]:
    """The values of an axis as the network keeps them."""
    names = [_KERNEL, *(f.name for f in fields(network))]
    if name not in names:
        suggestion = hint(str(name), names)
        meant = f": did you mean {suggestion}?" if suggestion else ""
        raise ValueError(f"over must have keys among {', '.join(names)}, got {name!r}{meant}")
    try:
        plain = [] if isinstance(points, str) else list(points)
    except TypeError:
        plain = []
    if not plain:
        raise ValueError(f"over must have a sequence of values for {name}, got {points!r}")
    if name == _KERNEL:
        values = [_one_kernel(value) for value in plain]
    else:
        plain = [v.item() if isinstance(v, np.generic) else v for v in plain]
        values = [getattr(network.replace(**{name: value}), name) for value in plain]
    if len({np.shape(value) for value in values}) > 1:
        raise ValueError(f"{name} must have values of one shape in a sweep")
    return values


def _one_kernel(value: Any) -> np.ndarray:
    kernel = validation.input_kernel_array(_KERNEL, value)
    if kernel.ndim not in (0, 2):
        raise ValueError(f"K0 must be a variance or a matrix (P, P), got shape {kernel.shape}")
    return kernel


def _check_quantity(field: Field, axes: Mapping[str, list[Any]], kernel: np.ndarray) -> None:
    name = field.name
    if name == _OPTIMUM and _OPTIMISED in axes:
        raise ValueError("of must not have optimal_scaling where branch_scale is swept")
    if "depth" in axes and field.dims:
        raise ValueError(
            f"of must not have {name} where depth is swept: its number of layers differs"
        )
    if not field.defined(kernel.ndim > 0):
        number = "several inputs" if kernel.ndim else "one input"
        raise ValueError(f"of must not have {name} for {number}, got K0 {kernel.shape}")
    if field.loops > 1:
        raise ValueError(f"of must not have {name}, which needs solve(..., order={field.loops})")


def _specification(grid: _Grid, chunk: int) -> dict[str, Any]:
    own = {name: getattr(grid.network, name, None) for name in grid.network.layer_parameters}
    functions = {name: _plain(grid, name, f) for name, f in own.items() if callable(f)}
    return {
        "network": storage.attributes(grid.network) | functions,
        "K0": grid.kernel.tolist(),
        "axes": [[name, [_plain(grid, name, v) for v in vs]] for name, vs in grid.axes.items()],
        "of": tuple(grid.quantities),
        "chunk": chunk,
    }


def _plain(grid: _Grid, name: str, value: Any) -> Any:
    if hasattr(value, "expression"):
        return [value.name, activation_text(value)]
    if callable(value):
        # Functions are distinguished by their values at all depths of the grid.
        depths = grid.axes.get("depth", [grid.network.depth])
        return [layer_values(name, value, depth).tolist() for depth in depths]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _evaluate(task: tuple[Any, ...]) -> tuple[int, dict[str, np.ndarray]]:
    """All quantities at the points of one chunk, the points on the first axis."""
    index, *arguments = task
    return index, _solved(*arguments)


def _solved(grid: _Grid, points: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    parts: list[dict[str, np.ndarray]] = []

    def others(point: dict[str, Any]) -> dict[str, Any]:
        return {n: value for n, value in point.items() if n not in _batched(grid.network)}

    for changes, group in itertools.groupby(points, key=others):
        same = list(group)
        try:
            parts.append(_group(grid, changes, same))
        except Exception as error:
            first, last = _described(same[0]), _described(same[-1])
            error.add_note(f"in the sweep at {first}" + (f" to {last}" if first != last else ""))
            raise
    return {name: np.concatenate([part[name] for part in parts]) for name in grid.quantities}


def _group(grid: _Grid, changes: dict[Any, Any], points: list[Any]) -> dict[str, np.ndarray]:
    """Points that differ in what `solve` batches only."""
    network: Any
    network, kernel, quantities = grid.network, grid.kernel, grid.quantities
    batched = [name for name, field in quantities.items() if field.batches]
    groups = {}
    if batched:
        swept = [name for name in points[0] if name in _batched(network)]
        depth = changes.get("depth", network.depth)
        stacked = {}
        for name in swept:
            along = [point[name] for point in points]
            if any(map(follows_depth, along)):
                along = [layer_values(name, value, depth) for value in along]
            stacked[name] = np.stack(along)
        K0 = stacked.pop(_KERNEL, kernel)
        scales = {name: v if v.ndim > 1 else v[:, None] for name, v in stacked.items()}
        solution = solve(network.replace(**changes, **scales), K0)
        for name in batched:
            axes = len(quantities[name].dims_for(kernel.ndim > 1))
            values = getattr(solution, name)
            shape = values.shape[values.ndim - axes :]
            groups[name] = np.broadcast_to(values, (len(points), *shape))
    single: dict[str, list[Any]] = {name: [] for name in quantities if name not in batched}
    for point in points if single else ():
        own_kernel = point.get(_KERNEL, kernel)
        own = {name: value for name, value in point.items() if name != _KERNEL}
        solution = solve(network.replace(**own), own_kernel)
        for name, values in single.items():
            if name == _OPTIMUM:
                values.append(optimal_scaling(solution.network, solution.input_kernel))
            else:
                values.append(getattr(solution, name))
    return groups | {name: np.stack(values) for name, values in single.items()}


def _batched(network: DeepNetwork) -> tuple[str, ...]:
    """Names of the parameters that `solve` takes as batch axes."""
    return (*network.layer_parameters, _KERNEL)


def _described(point: dict[str, Any]) -> str:
    """The point in words, without the values of every layer or pair."""
    short = {name: value for name, value in point.items() if not np.ndim(value)}
    return ", ".join(f"{name}={_text(value)}" for name, value in short.items())


def _text(value: Any) -> str:
    """A number, or the name of an activation, a schedule or a function."""
    if hasattr(value, "expression"):
        return str(value.name)
    if follows_depth(value):
        return scale_text(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _labelled(grid: _Grid, parts: list[Any], order: tuple[str, ...]) -> GridDataset:
    matrix = grid.kernel.ndim > 1
    coords: dict[str, Any] = {name: _coordinate(name, v) for name, v in grid.axes.items()}
    variables = {}
    for name, field in grid.quantities.items():
        values = np.concatenate([part[name] for part in parts])
        dims = (*grid.axes, *field.dims_for(matrix))
        words = notes(field.long_name, field.symbol)
        variables[name] = (
            dims,
            values.reshape(*map(len, grid.axes.values()), *values.shape[1:]),
            words,
        )
    inputs = grid.kernel.shape[-1] if matrix else 1
    used = {dim for dims, _, _ in variables.values() for dim in dims}
    coords |= labelled_coordinates(coordinates(grid.network.depth, inputs), used)
    attrs = storage.attributes(grid.network)
    attrs[_KERNEL] = json.dumps(grid.kernel.tolist()) if matrix else float(grid.kernel)
    swept = {*grid.axes, *(f"{name}_name" for name in grid.axes)}
    attrs = {name: value for name, value in attrs.items() if name not in swept}
    storage.import_xarray()
    from fieldtheory.sweeps.grid_dataset import GridDataset

    return GridDataset(variables, coords, attrs).transpose(*order, ...)


def _coordinate(name: str, values: list[Any]) -> tuple[Any, ...]:
    """Numbers and names label an axis; anything else has its index, and its text next to it."""
    is_kernel = name == _KERNEL
    words = notes(*(("kernel of the input", "K^{(0)}") if is_kernel else described(name)))
    if hasattr(values[0], "expression"):
        return name, [value.name for value in values], words
    if any(map(follows_depth, values)):
        texts = list(map(_text, values))
        if not any(map(callable, values)):
            return name, texts, words
        # The names of functions need not tell them apart.
        return name, np.arange(len(values)), words | {"values": json.dumps(texts)}
    if all(value is not None and np.ndim(value) == 0 for value in values):
        return name, np.array([np.asarray(value).item() for value in values]), words
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    return name, np.arange(len(values)), words | {"values": json.dumps(plain)}
