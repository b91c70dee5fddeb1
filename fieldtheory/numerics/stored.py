"""What all results share: files, labelled arrays and tables for notebooks, by a table of fields."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.schedules import scale_text
from fieldtheory.numerics import storage
from fieldtheory.numerics.fields import Field, labelled_coordinates
from fieldtheory.numerics.storage import Labelled, Variables
from fieldtheory.plotting.tables import table_html

if TYPE_CHECKING:
    import xarray as xr

_MACHINERY = (
    *("labelled", "from_content", "of_batches", "table", "settings", "require"),
    *("chain", "progress", "response_shifts", "missing"),
)


class Stored(ABC):
    """A result of one network that can be written to a file, labelled and shown.

    A class derived from it is a frozen dataclass that begins with ``network``, and has a table of
    its fields; those whose arrays are no fields have `labelled` and `from_content` of their own.
    """

    table: ClassVar[Mapping[str, Field]] = {}
    # Numbers and names that a file has next to the network, with their types.
    settings: ClassVar[Mapping[str, type]] = {}

    network: Any

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
        for field in self._available(self._chosen(stored)):
            for name, words in field.arrays.items():
                variables[name] = self._dims(field), self._written(getattr(self, name)), words
        used = {dim for dims, _, _ in variables.values() for dim in dims}
        variables |= self._arguments(stored)
        settings = {name: getattr(self, name) for name in self.settings}
        settings = {name: value for name, value in settings.items() if value is not None}
        attributes = storage.attributes(self.network, settings, variables)
        return Labelled(variables, self._labels(used), attributes)

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
        keywords = {name: values.pop(name) for name in of_class & values.keys()}
        network = storage.network_from_attributes(content)
        result = cls(network, **keywords)  # type: ignore[call-arg]
        vars(result).update(values)
        for field in cls.table.values():
            result._require_shape(field)
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
        if not self._is_costly(field):
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

    def _arguments(self, stored: bool) -> Variables:
        """The inputs of the result, and what else is no field, as labelled arrays."""
        return {}

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        """The same from a file."""
        return {}

    def _shown(self) -> dict[str, Any]:
        """The inputs in the table of a notebook."""
        return {}

    def _written(self, values: Any) -> Any:
        return values

    @classmethod
    def _read(cls, values: Any, settings: dict[str, Any]) -> Any:
        return np.asarray(values, float)[()]

    def _chosen(self, stored: bool) -> list[Field]:
        """The fields of a file, or of labelled arrays."""
        return [
            field
            for field in self.table.values()
            if (field.written == "always" or not stored) and getattr(self, field.name) is not None
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

    def _is_defined(self, field: Field) -> bool:
        return True

    def _is_costly(self, field: Field) -> bool:
        return False

    def _dims(self, field: Field) -> tuple[str, ...]:
        return field.dims

    def _coordinates(self) -> dict[str, Any]:
        """The coordinates of the dimensions of fields."""
        return {}

    def _labels(self, used: Collection[str]) -> dict[str, Any]:
        """Those of the dimensions that are used, as xarray takes them."""
        return labelled_coordinates(self._coordinates(), used)

    def _sizes(self) -> dict[str, int]:
        return {dim: len(values) for dim, values in self._coordinates().items()}

    def _shape(self, field: Field) -> tuple[int, ...]:
        sizes = self._sizes()
        return tuple(sizes[dim] for dim in self._dims(field))

    def _require_shape(self, field: Field) -> None:
        for name in field.arrays:
            values = vars(self).get(name)
            if values is not None and np.shape(values) != (shape := self._shape(field)):
                raise ValueError(f"{name} must have shape {shape}, got {np.shape(values)}")


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
