"""What all results share: files, labelled arrays and tables for notebooks, by a table of fields."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.parameters import described
from fieldtheory.networks.schedules import scale_text
from fieldtheory.numerics import storage
from fieldtheory.numerics.fields import Field, batch_dims, labelled_coordinates, notes
from fieldtheory.numerics.storage import Labelled, Variables
from fieldtheory.plotting.tables import table_html

if TYPE_CHECKING:
    import xarray as xr

_MACHINERY = (
    *("labelled", "from_content", "of_batches", "table", "settings", "require", "averages"),
    *("chain", "progress", "response_shifts", "missing"),
)


class Stored(ABC):
    """A result that can be written to a file, labelled and shown, by a table of its fields.

    A class derived from it is a frozen dataclass, most of them with a ``network`` first. What is
    neither a field nor one of the settings is written and read by `_arguments`.
    """

    table: ClassVar[Mapping[str, Field]] = {}
    # Numbers and names that a file has next to the network, and what reads them.
    settings: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    network: Any
    input_kernel: Any

    @abstractmethod
    def plot(self) -> Any:
        """The result as a matplotlib Figure; needs matplotlib."""

    def __getattr__(self, name: str) -> Any:
        """Say which field was meant; names of Python's own are asked for by many."""
        network = vars(self).get("network")
        if why := getattr(network, "without", {}).get(name):
            kind = type(network).__name__
            raise AttributeError(f"a {kind} has no {name}: {why}", name=name, obj=self)
        meant = ""
        if not name.startswith("_"):
            try:
                meant = f": did you mean {validation.quantity('field', name, self.table)}?"
            except ValueError as error:
                meant = f"; {error}"
        raise AttributeError(f"{type(self).__name__} has no {name!r}{meant}", name=name, obj=self)

    def to_xarray(self) -> xr.Dataset:
        """The result with named dimensions and coordinates; needs xarray.

        Returns
        -------
        xarray.Dataset
            The inputs and the fields, with their names in words and in LaTeX in the attributes
            ``long_name`` and ``symbol``, standard errors as ``<name>_error``. Fields of a
            `Solution` that are costly for several inputs or a batch are there if they have been
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
        return storage.import_xarray().Dataset(*self.labelled(stored=False))

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

    def __dir__(self) -> list[str]:
        """The names that a user meets, without those by which results are made and stored."""
        return [name for name in super().__dir__() if name not in _MACHINERY]

    def labelled(self, stored: bool) -> Labelled:
        """The arrays that files hold, or all those of `to_xarray`."""
        variables: Variables = {}
        for field in self._available(stored):
            for name, words in field.arrays.items():
                variables[name] = self._dims(field), self._written(getattr(self, name)), words
        used = {dim for dims, _, _ in variables.values() for dim in dims}
        variables |= self._arguments(stored)
        settings = {name: getattr(self, name) for name in self.settings}
        settings = {
            name: json.dumps(value) if isinstance(value, tuple) else value
            for name, value in settings.items()
            if value is not None
        }
        network = vars(self).get("network")
        if network is not None:
            settings = storage.attributes(network, settings, variables)
        coords = labelled_coordinates(self._coordinates(), used)
        for name in getattr(network, "layer_parameters", ()):
            scale = np.asarray(getattr(network, name, 0.0))
            if scale.ndim > 1 and scale.shape[-1] == 1:
                batch = np.broadcast_to(scale[..., 0], self._batch)
                coords[name] = (batch_dims(self._batch), batch, notes(*described(name)))
        return Labelled(variables, coords, settings)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The result of the arrays, numbers and text in a file."""
        values: dict[str, Any] = {
            name: kind(np.asarray(content[name]).item())
            for name, kind in cls.settings.items()
            if name in content
        }
        for name in (name for field in cls.table.values() for name in field.arrays):
            if name in content:
                values[name] = cls._read(content[name], values)
        values |= cls._read_arguments(content)
        of_class = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        if "network" in of_class:
            values["network"] = storage.network_from_attributes(content)
        result = cls(**{name: values.pop(name) for name in of_class & values.keys()})
        vars(result).update(values)
        for name, field in ((n, f) for f in cls.table.values() for n in f.arrays):
            found = vars(result).get(name)
            if found is not None and np.shape(found) != (shape := result._shape(field)):
                raise ValueError(f"{name} must have shape {shape}, got {np.shape(found)}")
        return result

    def _repr_html_(self) -> str:
        parameters = {f.name: getattr(self.network, f.name) for f in fields(self.network)}
        parameters |= {name: getattr(self, name) for name in self.settings} | self._shown()
        own = [
            {"parameter": name, "value": summary(value)}
            for name, value in parameters.items()
            if value is not None
        ]
        rows = [self._row(field) for field in self.table.values() if self._is_defined(field)]
        title = f"{type(self).__name__} of a {type(self.network).__name__}"
        return table_html(own, title) + table_html([row for row in rows if row], "Fields")

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

    def has_order(self, field: Field) -> bool:
        """Whether fields of its power of 1/N are there."""
        return True

    @property
    def _has_matrix(self) -> bool:
        return np.ndim(vars(self).get("input_kernel", 0.0)) > 1

    @property
    def _batch(self) -> tuple[int, ...]:
        own = np.shape(vars(self).get("input_kernel", 0.0))
        of_network = getattr(vars(self).get("network"), "batch_shape", ())
        return np.broadcast_shapes(of_network, own[:-2] if self._has_matrix else own)

    def _arguments(self, stored: bool) -> Variables:
        """K0; an axis that broadcasts against the batch has a dimension of its own."""
        if "input_kernel" not in vars(self):
            return {}
        kernel, pair = self.input_kernel, ("input", "input_") if self._has_matrix else ()
        own = np.shape(kernel)[: np.ndim(kernel) - len(pair)]
        start = len(self._batch) - len(own)
        sizes = zip(batch_dims(self._batch)[start:], own, self._batch[start:], strict=True)
        dims = tuple(dim if size == full else f"{dim}_of_K0" for dim, size, full in sizes) + pair
        return {"input_kernel": (dims, kernel, notes("kernel of the inputs", "K^{(0)}"))}

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        """The same from a file."""
        if "input_kernel" not in content:
            return {}
        kernel = validation.input_kernel_array("input_kernel", content["input_kernel"])
        return {"input_kernel": kernel}

    def _shown(self) -> dict[str, Any]:
        """The inputs in the table of a notebook."""
        return {"K0": vars(self).get("input_kernel")}

    def _written(self, values: Any) -> Any:
        return values

    @classmethod
    def _read(cls, values: Any, settings: dict[str, Any]) -> Any:
        return np.asarray(values, float)[()]

    def _available(self, stored: bool) -> Iterator[Field]:
        """Fields that are there or cheap; unless for files, those of a single input as well."""
        single = not (self._batch or self._has_matrix)
        always = ("always",) if stored or not single else ("always", "one input")
        for field in self.table.values():
            cheap = field.written in always and self._is_defined(field)
            try:
                if (field.name in vars(self) or cheap) and getattr(self, field.name) is not None:
                    yield field
            except ArithmeticError as error:
                text = f"{field.name} is left out: {error}"
                warnings.warn(text, stacklevel=validation.level_of_user())

    def _is_defined(self, field: Field) -> bool:
        return field.defined(self._has_matrix, single=not self._batch)

    def _dims(self, field: Field) -> tuple[str, ...]:
        batch = batch_dims(self._batch) if field.batches else ()
        return batch + field.dims_for(self._has_matrix)

    def _coordinates(self) -> dict[str, Any]:
        """The coordinates of the dimensions of fields."""
        return {}

    def _shape(self, field: Field) -> tuple[int, ...]:
        sizes = {dim: len(values) for dim, values in self._coordinates().items()}
        sizes |= dict(zip(batch_dims(self._batch), self._batch, strict=True))
        return tuple(sizes[dim] for dim in self._dims(field))


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
