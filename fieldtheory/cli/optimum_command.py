"""The command `optimum`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from fieldtheory.cli.options import OutputFormat
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.terminal import echo, print_rows


@with_network("branch_scale", "schedule", "width", data=True)
def optimum(
    problem: Problem,
    *,
    method: Annotated[
        Literal["response", "saturation", "large_depth", "deep_limit"],
        typer.Option(
            "--method",
            "-m",
            help="response: the exact maximum of the output's response; deep_limit: that of an "
            "infinitely deep network, with --order 2 its next order; saturation and large_depth:"
            " the approximations (67) and (68) of Fischer, Dahmen, Helias (2025), for one input.",
        ),
    ] = "response",
    order: Annotated[
        int | None, typer.Option(help="1 or 2, for deep_limit only.", show_default="1")
    ] = None,
    dynamic_range: Annotated[
        float | None,
        typer.Option(
            help="V of the activation, for saturation and large_depth only.", show_default="1.0"
        ),
    ] = None,
    slope: Annotated[
        float | None,
        typer.Option(
            help="Slope of the linear activation, for saturation and large_depth only.",
            show_default="φ'(0)",
        ),
    ] = None,
    format: OutputFormat = "table",
) -> None:
    """The scaling of the residual branch with the largest response of the output.

    One scaling ρ for all layers. For several inputs there is a row for every pair alpha, beta: the
    scaling at which this entry of the output kernel responds most. For --data there are two rows,
    the means over all variances and over all covariances; that over the covariances is the one to
    use, since they tell the samples apart. Pairs of equal samples have no ρ and are left out, which
    a warning says; a note says so if few pairs carry the mean. Samples are rescaled to one
    variance, see --scale.

    Examples:

        fieldtheory optimum --depth 200

        fieldtheory optimum -L 200 --data mnist --classes 0,3

        fieldtheory optimum -L 50 --data samples.csv --scale none

        fieldtheory optimum -L 200 --K0 "0.05,0.03;0.03,0.05" --format csv

        fieldtheory optimum -L 50 --method deep_limit --order 2
    """
    import numpy as np

    import fieldtheory as ft
    from fieldtheory.scaling import few_pairs

    net, sampled = problem.network, problem.samples is not None
    title = f"optimal scaling ({method}), φ = {net.activation.name}"
    kernel = np.asarray(problem.kernel)
    if sampled:
        title = f"{title}, {problem.words}"
        if method in ("saturation", "large_depth"):
            kernel = np.diagonal(kernel)
    options = {"dynamic_range": dynamic_range, "slope": slope, "order": order}
    given: Any = {name: value for name, value in options.items() if value is not None}
    scalings = np.asarray(ft.optimal_scaling(net, kernel, method, progress=sampled, **given))
    rows: list[dict[str, Any]] = [{"depth": net.depth, "K0": kernel, "rho": scalings}]
    if sampled:
        rows = _data_rows(scalings)
        if scalings.ndim > 1 and (words := few_pairs(scalings)):
            echo(f"note: {words}", err=True)
    elif scalings.ndim:
        rows = [
            {"depth": net.depth, "alpha": a, "beta": b, "K0": kernel[a, b]}
            | {"rho": None if np.isnan(scalings[a, b]) else scalings[a, b]}
            for a, b in zip(*np.triu_indices(len(scalings)), strict=True)
        ]
    print_rows(rows, format, title)


def _data_rows(scaling: Any) -> list[dict[str, Any]]:
    """Means over the variances and, of a matrix, over its pairs, with their number and range."""
    import numpy as np

    entries = {"variances": scaling}
    if scaling.ndim > 1:
        pairs = scaling[np.triu_indices(len(scaling), 1)]
        entries = {"variances": scaling.diagonal(), "covariances": pairs[~np.isnan(pairs)]}
    columns: dict[str, Any] = {
        "mean rho": np.mean,
        "median": np.median,
        "min": np.min,
        "max": np.max,
    }
    return [
        {"entries": name, "number": len(values)}
        | {column: of(values) if len(values) else None for column, of in columns.items()}
        for name, values in entries.items()
    ]
