"""The command `measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldtheory.cli.options import InputKernel, OutputFormat, Seed
from fieldtheory.cli.terminal import echo, print_rows
from fieldtheory.cli.user_modules import imported


def measure(
    block: Annotated[
        str,
        typer.Option(
            "--block",
            "-b",
            help="module:name of a function block(width, rng) that draws a block and returns it "
            "as a function of z, or of a torch module; module may be a file such as blocks.py.",
        ),
    ],
    width: Annotated[int, typer.Option(help="Width N of the signal.")] = 64,
    K0: InputKernel = "1.0",
    samples: Annotated[int, typer.Option("--samples", "-n", help="Number of blocks.")] = 1000,
    skip_scale: Annotated[
        float, typer.Option(help="γ, the scale of the skip connection.", show_default="0.707107")
    ] = 0.5**0.5,
    seed: Seed = 0,
    format: OutputFormat = "table",
) -> None:
    """Measure a residual block of any kind and find the scales at which its network is critical.

    Random blocks R of layers z' = γ z + ξ R(z) are applied to random signals: the ξ with which a
    layer keeps the mean square of z (Roberts, Yaida, Hanin, appendix B.4), and what it then makes
    of perturbations of the size of the signal (parallel) and of differences between signals
    (perpendicular), each with its error.

    Examples:

        fieldtheory measure --block blocks.py:two_layers --width 64 --samples 500

        fieldtheory measure -b mypackage.layers:attention --width 128 --K0 tokens.npy

        fieldtheory measure -b blocks:two_layers --skip-scale 0.9 -f json
    """
    from fieldtheory.cli import values
    from fieldtheory.measured_blocks.measuring import measure_block

    measured = measure_block(
        imported("block", block),
        width,
        samples,
        K0=values.kernel(K0),
        skip_scale=skip_scale,
        seed=seed,
        progress=True,
    )
    print_rows(measured.rows, format, measured.title)
    if format == "table":
        echo(measured.statement)
