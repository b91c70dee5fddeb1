"""The command `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.terminal import display, echo

# Samples on a page: every pair of them is solved in every layer.
MOST = 100


@with_network("K0", data="digits", readin=True, most=MOST, families=False)
def run(
    problem: Problem,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the results; one of an earlier run is replaced."
        ),
    ] = Path("results"),
    samples: Annotated[
        int,
        typer.Option(
            "--samples", "-n", min=20, help="Number of networks of each width to simulate."
        ),
    ] = 200,
) -> None:
    """The main job: what the theory says of your data and a network, on one page.

    report.html has the kernels, their spectrum, the responses, the optimal scaling of every pair of
    samples, fluctuations and mean shift at this width, simulated networks to compare, and commands
    to go on with; numbers, figures and LaTeX are in files next to it. The folder appears when
    everything in it is done. This takes some ten seconds of one core, and twice that the first
    time. Of a file with more than 100 samples 100 are taken: an equal share of every class, or the
    first rows where there are no classes. Columns of different units want --standardise.

    Examples:

        fieldtheory run

        fieldtheory run --data samples.csv --activation gelu --depth 50 --branch-scale 0.2

        fieldtheory run --data table.csv --label species --drop id --standardise

        fieldtheory run --classes 1,7 --count 10 --output ones_and_sevens
    """
    import numpy as np

    from fieldtheory.report import main_job

    assert problem.samples is not None
    network = problem.network.replace(input_dim=problem.samples.samples.shape[1])
    inputs = np.asarray(problem.kernel), problem.samples, problem.words, problem.typed
    with display(main_job.STEPS) as progress:
        findings = main_job.run(network, *inputs, output, samples, progress)
    for words in findings.warnings:
        echo(f"warning: {words}", err=True)
    if findings.few_pairs:
        echo(f"note: {findings.few_pairs}", err=True)
    echo(f"Results in {findings.folder}")
    echo(f"Page to look at: {findings.report}")
