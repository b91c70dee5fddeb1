"""The command `simulate`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fieldtheory.cli.options import Jobs, OutputFormat, Seed
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.resuming import parts_of
from fieldtheory.cli.terminal import echo, print_rows


@with_network()
def simulate(
    problem: Problem,
    *,
    samples: Annotated[int, typer.Option("--samples", "-n", help="Number of networks.")] = 1000,
    seed: Seed = 0,
    method: Annotated[
        Literal["kernel", "weights"],
        typer.Option(
            "--method",
            "-m",
            help="weights: explicit weight matrices, the definition; kernel: the same law without "
            "them, about N times faster for few inputs.",
        ),
    ] = "kernel",
    jobs: Jobs = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Compare with the theory. Is it right? Widths N and 2N are simulated and "
            "extrapolated. Does it describe width N? To 5 %. For one input the responses are "
            "compared as well. The method kernel reduces the variance. For several inputs "
            "the fluctuations are compared where they take seconds, and the answer names what is "
            "left out. The exit code is 1 unless both answers are yes.",
        ),
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            help="An .npz file for the estimates. Interrupted with Ctrl-C, the same command goes "
            "on from where it stopped."
        ),
    ] = None,
    format: OutputFormat = "table",
) -> None:
    """Draw finite networks at random: means and fluctuations of their kernels, with errors.

    Columns, each with its standard error: the residual kernel C and the kernel K, averaged over
    networks; var_C and var_K, their variances; V, the four-point vertex. Row L + 1 is the output.
    For several inputs there is a row for each pair alpha, beta.

    Examples:

        fieldtheory simulate --depth 20 --branch-scale 0.3 --samples 10000

        fieldtheory simulate -L 10 --width 200 --compare

        fieldtheory simulate --family block -L 4 --width 32 -k 1 -n 4000 --compare

        fieldtheory simulate -L 20 -n 100000 --jobs 2 --save ensemble.npz --format csv
    """
    net = problem.network
    options = {"samples": samples, "jobs": jobs, "progress": True}
    with parts_of(save, ".npz") as parts:
        ensemble, comparison = _simulated(
            problem, seed, method, compare, options | {"directory": parts}
        )
        if save is not None:
            ensemble.save(save)
    title = f"{samples} networks of width {net.width}, φ = {net.activation.name}"
    if comparison is None:
        print_rows(ensemble.rows(), format, title)
        return
    if format == "table":
        echo(f"{samples} networks of each width, φ = {net.activation.name}\n\n{comparison}")
    else:
        print_rows(comparison.rows, format, title)
    if (comparison.verdict, comparison.description) != ("agrees", "describes"):
        raise typer.Exit(1)


def _simulated(
    problem: Problem, seed: int, method: str, compare: bool, options: dict[str, Any]
) -> tuple[Any, Any]:
    """The ensemble asked for, and its comparison with the theory if that is asked for."""
    import numpy as np

    from fieldtheory.montecarlo import perturbation, simulation
    from fieldtheory.montecarlo.comparison import extrapolation
    from fieldtheory.montecarlo.comparison.layer_fields import computes_fluctuations
    from fieldtheory.numerics.solution import solve

    net, kernel, drawing = problem.network, problem.kernel, options | {"method": method}
    if not compare:
        return simulation.simulate(net, kernel, seed=seed, **drawing), None
    one_input, nets = np.ndim(kernel) == 0, (net, net.replace(width=2 * net.width))
    if not one_input:
        drawing["cross_inputs"] = computes_fluctuations(solve(net, kernel))
    reduced = drawing | ({"variance_reduction": "control_variate"} if method == "kernel" else {})

    def drawn(draw: Any, options: dict[str, Any]) -> list[Any]:
        return [draw(each, kernel, seed=seed + i, **options) for i, each in enumerate(nets)]

    # Families without control variates or perturbed neurons refuse them.
    try:
        ensembles = drawn(simulation.simulate, reduced)
    except TypeError:
        ensembles = drawn(simulation.simulate, drawing)
    answers = []
    if one_input and kernel > 0:
        with contextlib.suppress(TypeError):
            answers = drawn(perturbation.simulate_response, options)
    solution = solve(net, ensembles[0].input_kernel)
    return ensembles[0], extrapolation.compare(solution, ensembles, responses=answers)
