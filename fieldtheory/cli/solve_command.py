"""The command `solve`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from fieldtheory.cli.options import OutputFormat, Save
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.resuming import require_place
from fieldtheory.cli.terminal import print_rows, rows_or_logarithms

_LOGARITHMS = {"log_kernels": "ln|K|", "log_response": "ln|chi|"}


@with_network(data=True, dimension="--convention F25")
def solve(
    problem: Problem,
    *,
    convention: Annotated[
        Literal["derivative", "F25"],
        typer.Option(
            help="derivative: eta and chi are derivatives by K0, 1 at layer 0. F25: they are "
            "N/d_in there, as after eq. (51) of F25, and larger by that factor in every layer.",
        ),
    ] = "derivative",
    fluctuations: Annotated[
        bool,
        typer.Option(
            "--fluctuations",
            help="Also Var C, Var K, the shift of ⟨C⟩ and the four-point vertex V.",
        ),
    ] = False,
    decorrelation: Annotated[
        bool,
        typer.Option(
            "--decorrelation",
            help="Also 1 − c, c the correlation of two inputs, with its digits where c is near 1.",
        ),
    ] = False,
    order: Annotated[
        int,
        typer.Option(
            help="1: fluctuations to order 1/N. 2: their terms of order 1/N² too, for one input.",
        ),
    ] = 1,
    digits: Annotated[
        int | None,
        typer.Option(
            help="Compute to so many digits, from 16 on, for one input or two: numbers are text, "
            "and decimals as they are typed."
        ),
    ] = None,
    save: Save = None,
    format: OutputFormat = "table",
) -> None:
    """Kernels and response functions of every layer.

    Columns: the residual kernel C, the kernel K, and their responses eta = ∂C/∂K0 and
    chi = ∂K/∂K0. Row L + 1 is the output, its chi the response of the output. For several inputs
    there is a row for each pair alpha, beta, and responses are those to the same pair's entry.
    Kernels and responses beyond float64 are given by their logarithms ln|K| and ln|chi|. Samples of
    --data are rescaled to one variance, see --scale.

    Examples:

        fieldtheory solve --depth 50 --branch-scale 0.14

        fieldtheory solve -L 20 -a "tanh(2*h)" --K0 "0.05,0.03;0.03,0.05" --format csv

        fieldtheory solve -L 3 --branch-scale 0.5,0.3,0.1 --fluctuations --format json

        fieldtheory solve -L 100 -a relu --schedule uniform

        fieldtheory solve -L 20 --width 30 --order 2

        fieldtheory solve -L 20 --width 500 --input-dim 784 --convention F25

        fieldtheory solve -L 20 --data samples.csv --scale none --save solution.npz

        fieldtheory solve -L 20 -a relu --digits 50 --format json

        fieldtheory solve --network net.toml --depth 100

        fieldtheory solve --family block -L 12 -a silu --gated --schedule uniform -k 1
    """
    import fieldtheory as ft
    from fieldtheory.cli import values

    require_place(save, ".npz", ".nc")
    network, kernel = problem.network, problem.kernel
    title = values.title(network, problem.words)
    options: Any = {"order": order, "progress": digits is None}
    if convention == "F25":
        problem.require_dimension("in the convention of F25")
        title, options["convention"] = f"{title}; eta and chi in the convention of F25", convention
    if digits is not None:
        if decorrelation:
            raise ValueError("--decorrelation is not there with --digits")
        network, kernel = values.as_typed(network), values.decimals(kernel)
        options["digits"] = digits
    solution = ft.solve(network, kernel, **options)
    also = {"fluctuations": fluctuations or order > 1}
    rows = rows_or_logarithms(solution, _LOGARITHMS, **also)
    if decorrelation:
        if solution.inputs < 2:
            raise ValueError("decorrelation is of two inputs or more, got one")
        more = solution.rows(of=["decorrelation"])
        rows = [row | columns for row, columns in zip(rows, more, strict=True)]
    if save is not None:
        solution.save(save)
    print_rows(rows, format, title)
