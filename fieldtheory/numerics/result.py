"""Results over the layers of one network and one kernel of the input: tables of layers, plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldtheory import validation
from fieldtheory.averages import routes
from fieldtheory.averages.routes import relative_tolerance
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.parameters import described
from fieldtheory.numerics.fields import Field, batch_dims, coordinates, notes
from fieldtheory.numerics.storage import Variables
from fieldtheory.numerics.stored import Stored
from fieldtheory.numerics.symmetric_matrices import unpacked
from fieldtheory.plotting.curves import Curve, over_layers

if TYPE_CHECKING:
    import xarray as xr

_PAIRS = ("pair", "pair_")


def field(compute: Callable[[Any], np.ndarray]) -> cached_property[np.ndarray]:
    """A field that is kept once computed, to ``rtol``, and refused where the table has none."""

    @wraps(compute)
    def checked(result: Any) -> np.ndarray:
        result.require(name := compute.__name__)
        with relative_tolerance(result.rtol), routes.recorded(result.averages):
            # Kept before it is doubted, which may ask for it.
            vars(result)[name] = values = compute(result)
            if doubt := result.table[name].doubted_by:
                getattr(result, f"_{doubt}")
        return values

    return cached_property(checked)


class Result(Stored):
    """A result whose fields stand in a table: arrays of one network (or a batch) and one K0.

    A class derived from it is a frozen dataclass whose first fields are ``network`` and
    ``input_kernel``.
    """

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

    def has_order(self, field: Field) -> bool:
        """Whether fields of its power of 1/N are there."""
        return True

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
                and self.has_order(field)
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
                key: None if v[layer] is None else self._entry(v[layer], pair)
                for key, v in columns.items()
            }
            for layer in range(self.network.depth + 2)
            for pair in pairs
        ]

    def _entry(self, values: Any, pair: Any) -> Any:
        return float(values[pair])

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

    @property
    def _has_matrix(self) -> bool:
        return np.ndim(self.input_kernel) > 1

    @property
    def _batch(self) -> tuple[int, ...]:
        own = np.shape(self.input_kernel)
        return np.broadcast_shapes(self.network.batch_shape, own[:-2] if self._has_matrix else own)

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

    def _is_costly(self, field: Field) -> bool:
        return field.name not in vars(self) and bool(field.dims or field.order)

    def _coordinates(self) -> dict[str, Any]:
        return coordinates(self.network.depth, self.inputs, getattr(self, "samples", 0) or 0)

    def _dims(self, field: Field) -> tuple[str, ...]:
        batch = batch_dims(self._batch) if field.batches else ()
        return batch + field.dims_for(self._has_matrix)

    def _labels(self, used: Collection[str]) -> dict[str, Any]:
        coords = super()._labels(used)
        for name in self.network.layer_parameters:
            scale = np.asarray(getattr(self.network, name, 0.0))
            if scale.ndim > 1 and scale.shape[-1] == 1:
                batch = np.broadcast_to(scale[..., 0], self._batch)
                coords[name] = (batch_dims(self._batch), batch, notes(*described(name)))
        return coords

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | dict(zip(batch_dims(self._batch), self._batch, strict=True))

    def _arguments(self, stored: bool) -> Variables:
        """K0; an axis that broadcasts against the batch has a dimension of its own."""
        pair = ("input", "input_") if self._has_matrix else ()
        own = np.shape(self.input_kernel)[: np.ndim(self.input_kernel) - len(pair)]
        start = len(self._batch) - len(own)
        sizes = zip(batch_dims(self._batch)[start:], own, self._batch[start:], strict=True)
        dims = tuple(dim if size == full else f"{dim}_of_K0" for dim, size, full in sizes) + pair
        words = notes("kernel of the inputs", "K^{(0)}")
        return {"input_kernel": (dims, self.input_kernel, words)}

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        kernel = validation.input_kernel_array("input_kernel", content["input_kernel"])
        return {"input_kernel": kernel}

    def _shown(self) -> dict[str, Any]:
        return {"inputs": self.inputs, "K0": self.input_kernel}

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


class Computed(Result):
    """A result whose fields are computed when first asked for, to the tolerance ``rtol``."""

    @cached_property
    def averages(self) -> Counter[str]:
        """How many averages each route has computed for the fields so far, see `explain`."""
        return Counter()

    def require(self, name: str, what: str = "") -> None:
        """Raise ValueError unless a field is defined for this network and K0.

        ``what`` is what the message speaks of, if not of the field.
        """
        row, name = self.table[name], what or name
        if not self.has_order(row):
            raise ValueError(f"{name} needs solve(..., order={row.loops}), got order=1")
        if not row.batches and self.network.batch_shape:
            raise ValueError(f"{name} needs one network, got scales with batch axes")
        if not row.batches and self.input_kernel.ndim not in (0, 2):
            raise ValueError(f"{name} needs one kernel, got shape {self.input_kernel.shape}")
        if not row.defined(self._has_matrix):
            number = {"one": "one input", "several": "several inputs"}[row.inputs]
            raise ValueError(f"{name} is for {number}, got K0 of shape {self.input_kernel.shape}")
