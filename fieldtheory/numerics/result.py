"""What all results share: files, labelled arrays, a table for notebooks and a plot."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import LayeredNetwork, NetworkFamily
from fieldtheory.networks.parameters import described
from fieldtheory.networks.schedules import scale_text
from fieldtheory.numerics import storage
from fieldtheory.numerics.fields import (
    Field,
    batch_dims,
    coordinates,
    labelled_coordinates,
    notes,
)
from fieldtheory.numerics.storage import Labelled
from fieldtheory.numerics.symmetric_matrices import unpacked
from fieldtheory.plotting.curves import Curve, over_layers
from fieldtheory.plotting.tables import table_html

if TYPE_CHECKING:
    import xarray as xr

_PAIRS = ("pair", "pair_")
_MACHINERY = (
    *("labelled", "from_content", "of_batches", "table", "settings"),
    *("pair_theory", "shift_of_variances", "progress", "parts"),
)


class Stored(ABC):
    """A result that can be written to a file, labelled and shown.

    A class derived from it gives its arrays in `labelled` and takes them back in `from_content`.
    """

    @abstractmethod
    def labelled(self, stored: bool) -> Labelled:
        """The arrays that files hold, or all those of `to_xarray`."""

    @classmethod
    @abstractmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The result of the arrays, numbers and text in a file."""

    @abstractmethod
    def plot(self) -> Any:
        """The result as a matplotlib Figure; needs matplotlib."""

    def to_xarray(self) -> xr.Dataset:
        """The result as an `xarray.Dataset` with named dimensions; needs xarray."""
        return storage.dataset(self.labelled(stored=False))

    def save(self, path: str | Path) -> None:
        """Write the result to a file, as a whole or not at all.

        Parameters
        ----------
        path : str or Path
            Ends in .npz, or in .nc for netCDF, which needs xarray.

        Raises
        ------
        ValueError
            If ``path`` ends otherwise or lies in no folder, or the activation has a function that
            cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import fieldtheory as ft
        >>> s = ft.solve(ft.ResidualNetwork(depth=20, branch_scale=0.3), 0.05)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     s.save(f"{folder}/solution.npz")
        ...     loaded = ft.Solution.load(f"{folder}/solution.npz")
        >>> loaded.network == s.network, bool((loaded.kernels == s.kernels).all())
        (True, True)
        """
        storage.write(path, type(self).__name__, self.labelled(stored=True))

    def __dir__(self) -> list[str]:
        """The names that a user meets, without those by which results are made and stored."""
        return [name for name in super().__dir__() if name not in _MACHINERY]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The result in a file of `save`, every float as it was written.

        Raises
        ------
        ValueError
            If the file is missing, damaged, of another kind of result or of a newer format, or its
            network of an unknown family.
        """
        return storage.read(path, cls.__name__, cls.from_content)


class Result(Stored):
    """A result whose fields stand in a table: arrays of one network (or a batch) and one K0.

    A class derived from it is a frozen dataclass whose first fields are ``network`` and
    ``input_kernel``.
    """

    table: ClassVar[Mapping[str, Field]]
    # Numbers and names that a file has next to the network, with their types.
    settings: ClassVar[Mapping[str, type]] = {}

    network: LayeredNetwork
    input_kernel: np.ndarray

    @property
    def inputs(self) -> int:
        """P; 1 where K0 was given as variances."""
        return self.input_kernel.shape[-1] if self._has_matrix else 1

    def to_xarray(self) -> xr.Dataset:
        """The fields with named dimensions and coordinates; needs xarray.

        Returns
        -------
        xarray.Dataset
            ``input_kernel`` and the fields, with their names in words and in LaTeX in the
            attributes ``long_name`` and ``symbol``, standard errors as ``<name>_error``. Fields of
            a `Solution` that are costly for several inputs or a batch are there if they have been
            computed. Dimensions are ``batch`` (``batch_0``, ... if several), ``layer`` and
            ``layer_`` of length L + 2, ``hidden_layer`` of length L + 1, ``input`` and ``input_``.
            The attributes are the parameters of the network and of the simulation.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> net = ft.ResidualNetwork(depth=20, branch_scale=[[0.1], [0.3]])
        >>> labelled = ft.solve(net, 0.05).to_xarray()
        >>> labelled.kernels.dims, labelled.branch_scale.values
        (('batch', 'layer'), array([0.1, 0.3]))
        >>> labelled.kernels.sel(layer=20).values.round(6), labelled.attrs["depth"]
        (array([0.077715, 0.584483]), 20)
        """
        return super().to_xarray()

    def labelled(self, stored: bool) -> Labelled:
        """The arrays that files hold, or all those of `to_xarray`."""
        variables: dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]] = {}
        for field in self._available(self._chosen(stored)):
            dims = self._dims(field)
            words = notes(field.long_name, field.symbol)
            variables[field.name] = (dims, getattr(self, field.name), words)
            if field.error:
                name = f"{field.name}_error"
                error = f"standard error of the {field.long_name}", rf"\sigma[{field.symbol}]"
                variables[name] = (dims, getattr(self, name), notes(*error))
        used = {dim for dims, _, _ in variables.values() for dim in dims}
        coords = labelled_coordinates(self._coordinates(), used)
        for name in self.network.layer_parameters:
            scale = np.asarray(getattr(self.network, name, 0.0))
            if scale.ndim > 1 and scale.shape[-1] == 1:
                batch = np.broadcast_to(scale[..., 0], self._batch)
                coords[name] = (batch_dims(self._batch), batch, notes(*described(name)))
        words = notes("kernel of the inputs", "K^{(0)}")
        variables["input_kernel"] = (self._kernel_dims(), self.input_kernel, words)
        chosen = {name: getattr(self, name) for name in self.settings}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        return Labelled(variables, coords, storage.attributes(self.network, chosen, variables))

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The result of the arrays, numbers and text in a file."""
        network = storage.network_from_attributes(content)
        kernel = validation.input_kernel_array("input_kernel", content["input_kernel"])
        values: dict[str, Any] = {
            name: kind(np.asarray(content[name]).item())
            for name, kind in cls.settings.items()
            if name in content
        }
        for field in cls.table.values():
            names = (field.name, f"{field.name}_error") if field.error else (field.name,)
            values |= {name: np.asarray(content[name], float) for name in names if name in content}
        arguments = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        keywords = {name: value for name, value in values.items() if name in arguments}
        result = cls(network, kernel, **keywords)  # type: ignore[call-arg]
        vars(result).update({name: v for name, v in values.items() if name not in arguments})
        for field in cls.table.values():
            result._require_shape(field)
        return result

    def plot(self) -> Any:
        """The main fields over the layers, with bars of one standard error; needs matplotlib.

        Fields over two layers are drawn for each layer with itself, the output apart. Pairs of
        inputs and members of a batch are lines from dark to light, those of two inputs dashed.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fieldtheory.plotting.layers import draw_layers

        return draw_layers(self._curves(), self.network.depth + 1)

    def rows(
        self, fluctuations: bool = True, of: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """A dict for every layer, the output last, and for every pair of several inputs.

        Parameters
        ----------
        fluctuations : bool
            Also those fields of a `Solution` that are costly.
        of : sequence of str, optional
            Names of fields to give instead, such as "log_kernels" or "chi_out", under these names.
            Those of the output alone are None in the hidden layers.

        Returns
        -------
        list of dict
            ``layer``, for several inputs ``alpha`` and ``beta`` from 0 on, and the fields that the
            table gives a column, with standard errors as ``<column>_error``. A field that the
            output does not have is None there.

        Raises
        ------
        ValueError
            If the result has batch axes, or fluctuations are asked for that it does not have.
        OverflowError
            If a kernel exceeds float64; "log_kernels" and "log_response" do not.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> s = ft.solve(ft.ResidualNetwork(depth=1, branch_scale=0.3), 0.05)
        >>> [row["K"] for row in s.rows()] == s.kernels.tolist(), list(s.rows()[0])
        (True, ['layer', 'C', 'K', 'eta', 'chi', 'var_C', 'var_K', 'mean_shift', 'V'])
        """
        if self._batch:
            raise ValueError(f"rows are of one network and one K0, got a batch {self._batch}")
        columns: dict[str, list[Any]] = {}
        names = [name for name, field in self.table.items() if self._has_column(field)]
        for name in of or ():
            columns[name] = self._column(self.table[validation.quantity("of", name, names)], "")
        for field in self.table.values() if of is None else ():
            wanted = fluctuations or field.written == "always"
            if (
                field.column
                and wanted
                and self._has_order(field)
                and getattr(self, field.name) is not None
            ):
                columns[field.column] = self._column(field, "")
                if field.error:
                    columns[f"{field.column}_error"] = self._column(field, "_error")
        pairs = list(zip(*np.triu_indices(self.inputs), strict=True)) if self._has_matrix else [()]
        return [
            {"layer": layer}
            | {key: int(i) for key, i in zip(("alpha", "beta"), pair, strict=False)}
            | {
                key: None if v[layer] is None else float(v[layer][pair])
                for key, v in columns.items()
            }
            for layer in range(self.network.depth + 2)
            for pair in pairs
        ]

    def _has_column(self, field: Field) -> bool:
        layers = field.dims[:1] in ((), ("layer",), ("hidden_layer",)) and len(field.dims) < 3
        return layers and self._is_defined(field) and "source" not in field.of_inputs

    def _column(self, field: Field, suffix: str) -> list[Any]:
        """The values of a field at every layer, None where it has none."""
        values = getattr(self, f"{field.name}{suffix}")
        if self._has_matrix and field.of_inputs == ("input",):
            own = np.eye(self.inputs, dtype=bool)
            values = np.where(own, values[..., None], np.nan)
        if not field.dims:
            return [*[None] * (self.network.depth + 1), values]
        if len(field.dims) > 1:
            layers = np.arange(len(values))
            values = values[layers, layers]
        values = self._of_one_pair(field, values)
        missing = self.network.depth + 2 - len(values)
        last = [None] * missing
        if missing and field.at_output:
            output = self.table[field.at_output]
            last = [getattr(self, f"{output.name}{suffix}")]
            if output.dims:
                last = self._column(output, suffix)[-1:]
        return [*values, *last]

    def _repr_html_(self) -> str:
        others = {name: getattr(self, name) for name in self.settings}
        others |= {"inputs": self.inputs, "K0": self.input_kernel}
        rows = [self._row(field) for field in self.table.values() if self._is_defined(field)]
        title = f"{type(self).__name__} of a {type(self.network).__name__}"
        own = parameters_html(title, self.network, others)
        return own + table_html([row for row in rows if row], "Fields")

    def _row(self, field: Field) -> dict[str, str]:
        """A field in the table of a notebook: numbers where they are there or few."""
        values = ""
        if field.name in vars(self) or not (field.dims or field.order):
            try:
                value = getattr(self, field.name)
                if value is None:
                    return {}
                values = summary(value)
            except (ValueError, ArithmeticError) as error:
                values = str(error)
        return {
            "field": field.name,
            "symbol": f"${field.symbol}$",
            "meaning": field.long_name,
            "shape": str(self._shape(field)),
            "values": values,
        }

    @property
    def _has_matrix(self) -> bool:
        return self.input_kernel.ndim > 1

    @property
    def _batch(self) -> tuple[int, ...]:
        own = self.input_kernel.shape
        return np.broadcast_shapes(self.network.batch_shape, own[:-2] if self._has_matrix else own)

    def _has_order(self, field: Field) -> bool:
        """Whether fields of its power of 1/N are there."""
        return True

    def _is_defined(self, field: Field) -> bool:
        return field.defined(self._has_matrix, single=not self._batch)

    def _chosen(self, stored: bool) -> list[Field]:
        """Fields that are there or cheap; unless for files, those of a single input as well."""
        single = not (self._batch or self._has_matrix)
        always = ("always",) if stored or not single else ("always", "one input")
        return [
            field
            for field in self.table.values()
            if vars(self).get(field.name) is not None
            or (
                field.name not in vars(self) and field.written in always and self._is_defined(field)
            )
        ]

    def _available(self, chosen: list[Field]) -> Iterator[Field]:
        """Those that can be computed; the others are named in a warning."""
        for field in chosen:
            try:
                getattr(self, field.name)
            except ArithmeticError as error:
                warnings.warn(
                    f"{field.name} is left out: {error}",
                    stacklevel=validation.level_of_user(),
                )
            else:
                yield field

    def _coordinates(self) -> dict[str, Any]:
        return coordinates(self.network.depth, self.inputs, getattr(self, "samples", 0) or 0)

    def _dims(self, field: Field) -> tuple[str, ...]:
        batch = batch_dims(self._batch) if field.batches else ()
        return batch + field.dims_for(self._has_matrix)

    def _kernel_dims(self) -> tuple[str, ...]:
        """Dimensions of K0; an axis that broadcasts against the batch has one of its own."""
        pair = ("input", "input_") if self._has_matrix else ()
        own = self.input_kernel.shape[: self.input_kernel.ndim - len(pair)]
        start = len(self._batch) - len(own)
        sizes = zip(batch_dims(self._batch)[start:], own, self._batch[start:], strict=True)
        return tuple(dim if size == full else f"{dim}_of_K0" for dim, size, full in sizes) + pair

    def _shape(self, field: Field) -> tuple[int, ...]:
        coords = self._coordinates()
        own = tuple(len(coords[dim]) for dim in field.dims_for(self._has_matrix))
        return (self._batch if field.batches else ()) + own

    def _require_shape(self, field: Field) -> None:
        for name in (field.name, f"{field.name}_error"):
            values = vars(self).get(name)
            if values is not None and values.shape != self._shape(field):
                raise ValueError(f"{name} must have shape {self._shape(field)}, got {values.shape}")

    def _curves(self) -> dict[str, list[list[Curve]]]:
        """For every panel the lines of its fields: pairs of inputs or members of a batch."""
        panels: dict[str, list[list[Curve]]] = {}
        for field in self._available(self._chosen(stored=False)):
            if field.panel:
                panels.setdefault(field.panel, []).append(self._lines(field))
        return panels

    def _lines(self, field: Field) -> list[Curve]:
        """One line for every pair of inputs or member of a batch, up to the output."""
        values = self._with_output(field, "")
        errors = self._with_output(field, "_error") if field.error else [None] * len(values)
        labels = [f"${field.diagonal or field.symbol}$"] * len(values)
        if self._has_matrix and field.of_inputs:
            first, second = np.triu_indices(self.inputs)
            kinds = np.where(first == second, ", one input", ", two inputs")
            labels = [labels[0] + kind for kind in np.resize(kinds, len(values))]
        lines = zip(labels, values, errors, strict=True)
        return [over_layers(field.panel, *line) for line in lines]

    def _with_output(self, field: Field, suffix: str) -> np.ndarray:
        """The values as lines (lines, layers), continued to the output where the table says so."""
        lines = self._over_layers(field, getattr(self, f"{field.name}{suffix}"))
        if not field.at_output:
            return lines
        output = self.table[field.at_output]
        output_values = getattr(self, f"{output.name}{suffix}")
        if not output.dims:
            output_values = np.expand_dims(output_values, len(self._batch) if output.batches else 0)
        return np.concatenate([lines, self._over_layers(output, output_values)[:, -1:]], axis=1)

    def _of_one_pair(self, field: Field, values: np.ndarray) -> np.ndarray:
        """Values of pairs of inputs with themselves, as matrices (..., P, P)."""
        if not self._has_matrix or field.of_inputs != _PAIRS:
            return values
        return unpacked(np.diagonal(values, axis1=-2, axis2=-1), True)

    def _over_layers(self, field: Field, values: np.ndarray) -> np.ndarray:
        """The values as lines, (lines, layers)."""
        start = len(self._batch) if field.batches else 0
        values = np.moveaxis(values, start, 0)
        if len(field.dims) > 1:
            values = np.moveaxis(np.diagonal(values, axis1=0, axis2=start + 1), -1, 0)
        values = self._of_one_pair(field, values)
        if self._has_matrix and field.of_inputs[:2] in (("input", "input_"), _PAIRS):
            first, second = np.triu_indices(self.inputs)
            values = values[(slice(None),) * (1 + start) + (first, second)]
        return values.reshape(len(values), -1).T


def parameters_html(title: str, network: NetworkFamily, others: Mapping[str, Any]) -> str:
    """The parameters of a network, and others, that are there, as a table for notebooks."""
    parameters = {f.name: getattr(network, f.name) for f in fields(network)} | dict(others)
    rows = [
        {"parameter": name, "value": summary(value)}
        for name, value in parameters.items()
        if value is not None
    ]
    return table_html(rows, title)


def summary(value: Any) -> str:
    """A number, or the range and shape of an array."""
    if isinstance(value, str | int) or hasattr(value, "expression"):
        return str(getattr(value, "name", value))
    if callable(value):
        return scale_text(value)
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{float(array):.6g}"
    return f"{array.min():.6g} … {array.max():.6g}, shape {array.shape}"
