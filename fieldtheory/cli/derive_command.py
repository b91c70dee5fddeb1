"""The command `derive`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from fieldtheory.cli.options import ACTIVATION, Depth, Family, Gated, Normalization, NormPosition
from fieldtheory.cli.terminal import echo


def derive(
    depth: Depth = 2,
    inputs: Annotated[int, typer.Option(help="Number of inputs P.")] = 1,
    what: Annotated[
        str,
        typer.Option(
            "--what",
            "-w",
            help="What to print: action, saddle_point, kernels, hessian, propagator; a block S11, "
            "S12, S21, S22, G11, G12, G21, G22; residual_response (eta), response (chi), "
            "output_response (chi_out); tangent_kernel (theta); saturation, large_depth (ρ* of F25 "
            "(67), (68)); symbols, what they mean. Several with commas have one list of "
            "definitions.",
        ),
    ] = "hessian",
    layers: Annotated[
        Literal["generic", "explicit"],
        typer.Option(help="For symbolic layers k, l, or with their numbers at this depth."),
    ] = "generic",
    abbreviate: Annotated[
        bool,
        typer.Option(
            "--abbreviate/--no-abbreviate",
            help="Write a_l, c_l, M'_l, Q_kl and list what they mean, or write all out.",
        ),
    ] = True,
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
    width: Annotated[
        float, typer.Option(help="Of the column in points; 246 for a paper in two columns.")
    ] = 345.0,
    numbered: Annotated[
        bool,
        typer.Option("--numbered", help="Numbered, labelled equations that break across pages."),
    ] = False,
    notation: Annotated[
        str | None, typer.Option(help="F25 for the letters of the paper, coefficients written out.")
    ] = None,
    document: Annotated[
        bool,
        typer.Option(
            "--document",
            help="The derivation step by step, a document for pdflatex; with the options above but "
            "--what, --abbreviate and --numbered.",
        ),
    ] = False,
    family: Family = "residual",
    normalization: Normalization = None,
    norm_position: NormPosition = None,
    gated: Gated = None,
    misprints: Annotated[
        bool,
        typer.Option(
            "--misprints/--no-misprints",
            help="With --document: remark which printed equations of the paper do not hold.",
        ),
    ] = True,
) -> None:
    """Print the theory of a network as LaTeX.

    The LaTeX goes to standard output without delimiters, ready for an equation environment, with
    the definitions of its symbols. It fits the width of a column. Without the options for scales
    the network is that of the paper: one ρ, γ = 1.

    Examples:

        fieldtheory derive --what hessian

        fieldtheory derive --depth 3 --what hessian --layers explicit

        fieldtheory derive --depth 1 --inputs 2 --what saddle_point

        fieldtheory derive --skip-scale per-layer --branch-scale per-layer --what S21

        fieldtheory derive --activation erf --what chi --no-abbreviate > chi.tex

        fieldtheory derive --what saddle_point,hessian --numbered --width 246 > theory.tex

        fieldtheory derive --what hessian --notation F25

        fieldtheory derive --activation gelu --document > appendix.tex

        fieldtheory derive --document --no-misprints --width 246 > columns.tex

        fieldtheory derive --family block --gated --what fluctuations,mean_shift
    """
    from fieldtheory import derive as derivation
    from fieldtheory.cli import values

    quantities = what.split(",")
    several = quantities if len(quantities) > 1 else what
    given: Any = {"normalization": normalization, "norm_position": norm_position, "gated": gated}
    scales = {"branch_scale": branch_scale, "skip_scale": skip_scale}
    for name, value in (scales if family == "block" else given).items():
        if value is not None:
            raise ValueError(f"{name} must be left out for --family {family}, got {value!r}")
    if family == "block":
        theory = derivation(values.network(activation, family=family, depth=depth, **given), inputs)
    else:
        of_layers: Any = {n: values.layer_scale(n, scale) for n, scale in scales.items()}
        theory = derivation(depth, inputs, activation, **of_layers)
    if document:
        text = theory.document(layers, width=width, notation=notation, misprints=misprints)
        echo(text.rstrip())
    else:
        options: Any = {"width": width, "numbered": numbered, "notation": notation}
        echo(theory.latex(several, layers, abbreviate, **options))
