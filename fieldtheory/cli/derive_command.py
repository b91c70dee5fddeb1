"""The command `derive`."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldtheory.cli.options import ACTIVATION, Depth, Quantity


def derive(
    depth: Depth = 2,
    inputs: Annotated[int, typer.Option(help="Number of inputs P.")] = 1,
    what: Annotated[
        Quantity, typer.Option("--what", "-w", help="What to print; S.. and G.. are single blocks.")
    ] = Quantity.hessian,
    activation: Annotated[
        str | None,
        typer.Option("--activation", "-a", help=ACTIVATION + " Left undetermined if not given."),
    ] = None,
    branch_scale: Annotated[
        str | None,
        typer.Option(
            help="ρ: a number, `symbol` for one ρ, or `per-layer` for ρ_1, ρ_2, ...",
            show_default="symbol",
        ),
    ] = None,
    skip_scale: Annotated[
        str | None,
        typer.Option(
            help="γ: a number (0 for a feed-forward network), `symbol` or `per-layer`.",
            show_default="1, as in the paper",
        ),
    ] = None,
) -> None:
    """Print the theory of a network as LaTeX.

    The LaTeX goes to standard output without delimiters, ready for an equation environment.

    Examples:

        fieldtheory derive --depth 2 --what hessian

        fieldtheory derive --depth 1 --inputs 2 --what saddle_point

        fieldtheory derive --skip-scale per-layer --branch-scale per-layer --what S21

        fieldtheory derive --activation erf --what G12 > G12.tex
    """
    from fieldtheory import derive as derivation
    from fieldtheory.cli import values

    theory = derivation(
        depth,
        inputs,
        None if activation is None else values.activation(activation),
        values.layer_scale("branch_scale", branch_scale),
        values.layer_scale("skip_scale", skip_scale),
    )
    typer.echo(theory.latex(what.value))
