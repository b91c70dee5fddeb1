"""The command `sweep`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from fieldtheory.cli.options import Jobs, OutputFormat
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.resuming import parts_of
from fieldtheory.cli.terminal import print_rows


@with_network()
def sweep(
    problem: Problem,
    *,
    over: Annotated[
        list[str],
        typer.Option(
            help="A parameter and its values, `depth=10,50`, `branch_scale=0.1:1:10` (start:stop:"
            "count), `activation=erf,tanh(2*h)` or `K0=0.05,0.1`; give it once for each axis.",
            show_default=False,
        ),
    ],
    of: Annotated[
        str,
        typer.Option(
            help="What to compute, separated by commas: output_response, kernels, "
            "response, G11, ... (the fields of ft.Solution) and optimal_scaling."
        ),
    ] = "output_response",
    chunk: Annotated[
        int | None,
        typer.Option(
            help="Points of one part: what an interruption loses, and what one process takes.",
            show_default="about 5 s with --save, else 64",
        ),
    ] = None,
    jobs: Jobs = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="A netCDF file (.nc) for the grid, for xarray.open_dataset. Interrupted with "
            "Ctrl-C, the same command goes on from where it stopped."
        ),
    ] = None,
    format: OutputFormat = "table",
) -> None:
    """Kernels, responses, fluctuations or the optimal scaling on a grid of parameters.

    A row for every point of the grid; for fields of layers also for every layer, for several
    inputs for each pair alpha, beta. The other parameters are those of the options.

    Examples:

        fieldtheory sweep --over depth=10,50,200 --over branch_scale=0.05:1:20

        fieldtheory sweep --over K0=0.02,0.05 --over depth=50,100 --of optimal_scaling -f csv

        fieldtheory sweep --over depth=10,100,1000 --over branch_scale=uniform,decreasing -a relu

        fieldtheory sweep -L 20 --over branch_scale=0.1:1:50 --of kernels --save grid.nc
    """
    import fieldtheory as ft
    from fieldtheory.cli import values

    axes: dict[str, list[Any]] = {}
    for text in over:
        name, values_of_axis = values.axis(text)
        if name in axes:
            raise ValueError(f"over must have every parameter once, got {name} again")
        axes[name] = values_of_axis
    kernel = None if "K0" in axes else problem.kernel
    with parts_of(save, ".nc") as parts:
        grid = ft.sweep(
            problem.network,
            kernel,
            over=axes,
            of=values.names(of) or [],
            directory=parts,
            jobs=jobs,
            progress=True,
            # Without a file small enough to be worth a bar.
            chunk=64 if chunk is None and parts is None else chunk,
        )
        if save is not None:
            grid.save(save)
    points = " × ".join(f"{len(values_of_axis)} {name}" for name, values_of_axis in axes.items())
    print_rows(_rows(grid, list(axes)), format, f"{of} on a grid of {points}")


def _rows(grid: Any, swept: list[str]) -> list[dict[str, Any]]:
    """A row for every point, layer and pair of inputs; what has fewer axes is repeated."""
    own = {name: [dim for dim in field.dims if dim not in swept] for name, field in grid.items()}
    longest = max(own.values(), key=len)
    if any(set(dims) - set(longest) for dims in own.values()):
        raise ValueError(
            f"of must have fields over the same layers for one table, got {', '.join(own)}"
        )
    text = {
        name: json.loads(grid[name].attrs["values"])
        for name in swept
        if "values" in grid[name].attrs
    }
    frame = grid.to_dataframe(dim_order=[*swept, *longest]).reset_index()
    rows = []
    for row in frame.to_dict("records"):
        pair = row.get("input", 0), row.get("input_", 0)
        if pair[0] > pair[1]:
            continue
        row |= {name: str(names_of[row[name]]) for name, names_of in text.items()}
        names = {"hidden_layer": "layer", "input": "alpha", "input_": "beta"}
        rows.append({names.get(k, k): v for k, v in row.items()})
    return rows
