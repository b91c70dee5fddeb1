"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldtheory.cli.terminal import Format
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.networks.schedules import SCHEDULES

NETWORK = "The network"
ACTIVATION = (
    f"φ: {', '.join(ACTIVATIONS)}, or an expression in h such as `tanh(2*h)` or `h*erf(h)`."
)
Depth = Annotated[
    int,
    typer.Option("--depth", "-L", help="Number of residual layers L.", rich_help_panel=NETWORK),
]
ActivationText = Annotated[
    str, typer.Option("--activation", "-a", help=ACTIVATION, rich_help_panel=NETWORK)
]
BranchScale = Annotated[
    str,
    typer.Option(
        help="ρ >= 0: one number, L numbers 0.3,0.2,..., or a name as of --schedule.",
        rich_help_panel=NETWORK,
    ),
]
ScheduleName = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        help=f"ρ_l by name: {', '.join(f'{name} {s.formula}' for name, s in SCHEDULES.items())}.",
        show_default="ρ as --branch-scale says",
        rich_help_panel=NETWORK,
    ),
]
SkipScale = Annotated[
    str, typer.Option(help="γ: one number, or L numbers.", rich_help_panel=NETWORK)
]
WeightVariance = Annotated[
    float, typer.Option(help="σ_w² of the residual layers.", rich_help_panel=NETWORK)
]
BiasVariance = Annotated[
    float, typer.Option(help="σ_b² of the residual layers.", rich_help_panel=NETWORK)
]
ReadinWeight = Annotated[
    float | None,
    typer.Option(
        help="σ_w² of the read-in; as the residual layers if left out.", rich_help_panel=NETWORK
    ),
]
ReadinBias = Annotated[
    float | None,
    typer.Option(
        help="σ_b² of the read-in, a part of K0; as the residual layers if left out, 0 for "
        "samples that are rescaled.",
        rich_help_panel=NETWORK,
    ),
]
ReadoutWeight = Annotated[
    float | None,
    typer.Option(
        "--readout-weight-variance",
        help="σ_w² of the readout; as the residual layers if left out.",
        rich_help_panel=NETWORK,
    ),
]
ReadoutBias = Annotated[
    float | None,
    typer.Option(
        "--readout-bias-variance",
        help="σ_b² of the readout; as the residual layers if left out.",
        rich_help_panel=NETWORK,
    ),
]
Width = Annotated[int, typer.Option(help="Width N of the layers.", rich_help_panel=NETWORK)]
InputKernel = Annotated[
    str,
    typer.Option(
        "--K0",
        "-k",
        help='Kernel of the input: a variance 0.05, a matrix "0.05,0.03;0.03,0.05" of several '
        "inputs, or a .csv or .npy file with either.",
    ),
]
OutputFormat = Annotated[Format, typer.Option("--format", "-f", help="How to print numbers.")]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Processes that work at once.", show_default="one"),
]
Data = Annotated[
    str | None,
    typer.Option(
        help="Samples in place of K0: digits, mnist, or a .npz or .csv file, one sample per row.",
        show_default=False,
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        help="With --data: the variance K0 that every sample is rescaled to, the read-in without "
        "biases; or none: samples as they are, K0 = σ_w² x·x/d + σ_b².",
        show_default="0.05",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(help="Classes of samples to keep.", show_default="0,3; all of a file"),
]
Count = Annotated[
    int | None,
    typer.Option(help="Number of samples.", show_default="20, or all of a smaller file"),
]
Digits = Annotated[int, typer.Option(help="Decimal digits of the mpmath side, at least 20.")]
