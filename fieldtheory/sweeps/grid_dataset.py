"""The result of `sweep`: an xarray.Dataset that draws and keeps itself as other results do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray as xr
from xarray.plot.accessor import DatasetPlotAccessor

from fieldtheory.numerics import storage
from fieldtheory.numerics.fields import DIMENSIONS
from fieldtheory.plotting.curves import Curve

_LAYERS = ("layer", "hidden_layer")


class GridDataset(xr.Dataset):  # type: ignore[no-untyped-call]
    """Fields over a grid of parameters; all that `xarray.Dataset` offers, ``plot()`` and files.

    Examples
    --------
    >>> import tempfile
    >>> import fieldtheory as ft
    >>> grid = ft.sweep(ft.ResidualNetwork(depth=5), 0.05, over={"branch_scale": [0.1, 0.3]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     grid.save(f"{folder}/grid.nc")
    ...     GridDataset.load_file(f"{folder}/grid.nc").identical(grid)
    True
    """

    __slots__ = ()

    @property
    def plot(self) -> _Plot:  # type: ignore[override]
        """``plot()`` draws every quantity, ``plot.scatter`` and so on are those of xarray."""
        return _Plot(self)

    def to_xarray(self) -> xr.Dataset:
        """The same as a plain `xarray.Dataset`, as of other results."""
        return xr.Dataset(self.data_vars, self.coords, self.attrs)

    def save(self, path: str | Path) -> None:
        """Write the grid to a netCDF file (.nc), as a whole or not at all.

        Raises
        ------
        ValueError
            If ``path`` does not end in .nc or lies in no folder.
        """
        if Path(path).suffix != ".nc":
            raise ValueError(f"path must end in .nc for a sweep, got {str(path)!r}")
        content = self.to_netcdf(engine="scipy")
        storage.write_whole(Path(path), lambda file: file.write(content))

    @classmethod
    def load_file(cls, path: str | Path) -> Self:
        """The grid in a file of `save`.

        Raises
        ------
        ValueError
            If there is no such file.
        """
        if not Path(path).is_file():
            raise ValueError(f"path must be a file that exists, got {str(path)!r}")
        dataset = xr.load_dataset(path, engine="scipy")
        return cls(dataset.data_vars, dataset.coords, dataset.attrs)


class _Plot(DatasetPlotAccessor):
    """The accessor of xarray, which can be called here."""

    __slots__ = ()

    def __call__(self) -> Any:
        """Every quantity in a panel of its own; a matplotlib Figure."""
        from fieldtheory.plotting.grid import draw_grid

        return draw_grid([_panel(self._ds[name]) for name in self._ds.data_vars])


def _panel(field: xr.DataArray) -> tuple[str, str, list[Curve]]:
    """Labels of the axes of a quantity, and its lines."""
    name = f"${field.symbol}$"
    for first in _LAYERS:
        if f"{first}_" in field.dims:
            each = xr.DataArray(np.arange(field.sizes[first]), dims=first)
            field = field.isel({first: each, f"{first}_": each})
            name += ", $m = l$"
    # Else the axis of numbers with the most values, or the first axis.
    swept = [str(dim) for dim in field.dims if dim not in DIMENSIONS]
    plain = [dim for dim in swept if field[dim].dtype.kind in "if"] or swept
    along = next((dim for dim in _LAYERS if dim in field.dims), "") or max(
        plain, key=lambda dim: field.sizes[dim]
    )
    axis, x = field[along], field[along].values
    words = "layer" if along in _LAYERS else axis.attrs.get("long_name", axis.name)
    label = f"{words} ${axis.attrs.get('symbol', '')}$"
    lines = [Curve(str(field.name), text, x, values) for text, values in _lines(field, along)]
    return label, name, lines


def _lines(field: xr.DataArray, along: str) -> Iterator[tuple[str, np.ndarray]]:
    """Every line along an axis with its place on the others; of pairs of inputs each once."""
    others = [dim for dim in field.dims if dim != along]
    for index in itertools.product(*(range(field.sizes[dim]) for dim in others)):
        at = dict(zip(others, index, strict=True))
        if at.get("input", 0) > at.get("input_", at.get("input", 0)):
            continue
        places = [_place(field[dim], i) for dim, i in at.items() if field.sizes[dim] > 1]
        yield ", ".join(places), field.isel(at).values


def _place(axis: xr.DataArray, index: int) -> str:
    value, symbol = axis.values[index], axis.attrs.get("symbol", axis.name)
    if axis.dtype.kind not in "if":
        return str(value)
    if "values" in axis.attrs or axis.name in DIMENSIONS:
        return f"${symbol}$: {int(value)}"
    return f"${symbol} = {value:.4g}$"
