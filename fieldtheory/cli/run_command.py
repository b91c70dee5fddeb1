"""The command `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldtheory.cli.options import Classes, Count, Digits
from fieldtheory.cli.terminal import display


def run(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Samples: .npz (array X, labels y) or .csv (rows are samples; a column named "
            "label may hold classes). Default: digits of scikit-learn's set.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the results; one of an earlier run is replaced."
        ),
    ] = Path("results"),
    depths: Annotated[str, typer.Option(help="Depths of the network.")] = "10,50,100,200",
    digits: Digits = 50,
    classes: Classes = None,
    count: Count = None,
) -> None:
    """The main job: formulas, numbers, figures, checks and one page, for digits or a file.

    It writes the action, saddle point and Hessian as LaTeX, the propagators, the optimal scaling of
    every pair of samples, four figures, the high-precision checks, and report.html, a page that
    holds all of it. The folder appears when everything in it is done; this takes about two minutes.

    Examples:

        fieldtheory run

        fieldtheory run --classes 1,7 --count 10 --output ones_and_sevens

        fieldtheory run --data samples.npz --depths 20,40,80
    """
    from fieldtheory.cli import values
    from fieldtheory.report import main_job

    chosen = values.classes(classes, data is None)
    layers = values.integers("depths", depths)
    with display(main_job.STEPS) as progress:
        found = main_job.run(data, output, layers, digits, chosen, count, progress)
    typer.echo(f"Results in {found.folder}")
    typer.echo(f"Page to look at: {found.report}")
    L = found.depth
    lines = [
        (f"optimal scaling of a single sample, L = {L}", f"{found.variance_scaling:.6g}"),
        (f"mean over pairs, {found.pair_class}, L = {L}", f"{found.covariance_scaling:.6g}"),
        ("largest relative difference float64 - mpmath", f"{found.largest_difference:.1e}"),
    ]
    for name, value in lines:
        typer.echo(f"  {name:<48} {value}")
    if found.failed_checks:
        typer.echo(f"{found.failed_checks} checks fail, see checks.csv.", err=True)
        raise typer.Exit(1)
