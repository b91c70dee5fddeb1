"""Options that several commands share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fieldtheory.cli.terminal import Format

NETWORK = "The network"
# Written out, so that a help page does not load what computes with them.
ACTIVATIONS = (
    "erf, tanh, relu, leaky_relu, linear, logistic, gelu, swish, sin, gelu_tanh, quick_gelu, elu, "
    "selu, celu, softplus, softsign, mish, hard_tanh, hard_sigmoid, hard_swish, relu6, "
    "squared_relu, softshrink, hardshrink, tanhshrink, log_sigmoid, arctan, arcsinh, sinh, isru, "
    "gaussian, abs, sign, heaviside, cos, square, cubic, log_cosh, exp"
)
INTENTS = (
    "gpt2, llama, megatron, plain, lns, layerscale, zero, deepnorm, mup-depth, completep, torch, "
    "kaiming, xavier"
)
SCHEDULES = "uniform 1/√L, decreasing 1/(√l ln(l+1)), none 1"
ACTIVATION = f"φ: {ACTIVATIONS}, or an expression in h such as `tanh(2*h)` or `h*erf(h)`."
_network = partial(typer.Option, rich_help_panel=NETWORK)
_block = partial(typer.Option, rich_help_panel="Of --family block")
Depth = Annotated[int, _network("--depth", "-L", help="Number of residual layers L.")]
NetworkFile = Annotated[
    Path | None,
    _network(
        "--network",
        help="A .toml file with parameters of a network by their names in Python, and family = "
        '"ResidualNetwork", "FeedForwardNetwork", "BlockNetwork" or the class of another command. '
        "Options that are typed come first.",
        show_default=False,
    ),
]
Family = Annotated[
    Literal["residual", "block"] | None,
    _network(
        help="residual: one matrix in every branch. block: two, with a norm and perhaps a gate, as "
        "transformers have.",
        show_default="residual",
    ),
]
Normalization = Annotated[
    Literal["rms", "layer", "none"] | None, _block(help="The norm.", show_default="rms")
]
NormPosition = Annotated[
    Literal["pre", "post"] | None,
    _block(help="In front of the branch, or behind the sum.", show_default="pre"),
]
Gated = Annotated[
    bool | None, _block(help="Hidden units φ(u) v, as of SwiGLU.", show_default="no-gated")
]


def option(
    kind: Any, words: str, default: str | bool = False, *flags: str, panel: str
) -> tuple[Any, None]:
    """The annotation of an option that is None if it is not typed, and this None."""
    shown = typer.Option(*flags, help=words, show_default=default, rich_help_panel=panel)
    return Annotated[kind | None, shown], None


of_network = partial(option, panel=NETWORK)
_of_block = partial(option, panel="Of --family block")
_AS_LAYERS = "as the residual layers"
READIN = {
    "readin_weight_variance": of_network(float, "σ_w² of the read-in.", _AS_LAYERS),
    "readin_bias_variance": of_network(
        float, "σ_b² of the read-in, a part of K0; 0 for samples that are rescaled.", _AS_LAYERS
    ),
}
# Parameters of networks; what is not typed is left to a file or the family.
PARAMETERS: dict[str, Any] = {
    "network": (NetworkFile, None),
    "depth": of_network(int, "Number of residual layers L.", "50", "--depth", "-L"),
    # `with_network` says what it is if it is left out.
    "activation": None,
    "branch_scale": of_network(
        str, "ρ >= 0: one number, L numbers 0.3,0.2,..., or a name as of --schedule.", "1"
    ),
    "schedule": of_network(str, f"ρ_l by name: {SCHEDULES}.", "ρ as --branch-scale says"),
    "skip_scale": of_network(str, "γ: one number, or L numbers.", "1"),
    "weight_variance": of_network(float, "σ_w² of the residual layers.", "1.25"),
    "bias_variance": of_network(float, "σ_b² of the residual layers.", "0.05"),
    **READIN,
    "readout_weight_variance": of_network(float, "σ_w² of the readout.", _AS_LAYERS),
    "readout_bias_variance": of_network(float, "σ_b² of the readout.", _AS_LAYERS),
    "width": of_network(int, "Width N of the layers.", "500"),
}
# What other families have besides.
OF_FAMILIES: dict[str, Any] = {
    "family": (Family, None),
    "normalization": (Normalization, None),
    "norm_position": (NormPosition, None),
    "gated": (Gated, None),
    "epsilon": _of_block(float, "ε of the norm.", "0"),
    "expansion": _of_block(float, "Hidden units over the width, M/N.", "4"),
    "inner_weight_variance": _of_block(str, "σ_w²: one number, or L numbers.", "1"),
    "gate_weight_variance": _of_block(str, "σ_v² of the gate, likewise.", "1"),
    "outer_weight_variance": _of_block(
        str, "σ_w'², likewise; none keeps the signal, 1/⟨a²⟩.", "none"
    ),
    "inner_bias_variance": _of_block(float, "σ_b².", "0"),
    "outer_bias_variance": _of_block(float, "σ_b'².", "0"),
}
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
of_samples = partial(option, panel="Samples")
# Samples, which of them are taken, and the columns of a file.
SAMPLES: dict[str, Any] = {
    "data": of_samples(
        str, "Samples as inputs: digits, mnist, or a .npz or .csv file, one sample per row."
    ),
    "classes": of_samples(str, "Classes of samples to keep.", "0,3; all of a file"),
    "count": of_samples(int, "Number of samples.", "20 of digits and mnist; all of a file"),
    "label": of_samples(
        str,
        "Column, or array of an .npz file, of the labels.",
        "label, labels, y, target or class",
    ),
    "drop": of_samples(str, "Columns of a .csv file to leave out, by name: `id,date`."),
    "standardise": of_samples(
        bool,
        "Columns of a file with mean 0 and deviation 1, for different units.",
        False,
        "--standardise",
    ),
}
INPUTS: dict[str, Any] = {
    "K0": (InputKernel, "0.05"),
    "data": SAMPLES["data"],
    "scale": of_samples(
        str,
        "With --data: the variance K0 that every sample is rescaled to, the read-in without "
        "biases; or none: samples as they are, K0 = σ_w² x·x/d + σ_b².",
        "0.05",
    ),
    **SAMPLES,
}
Digits = Annotated[int, typer.Option(help="Decimal digits of the mpmath side, at least 20.")]
Save = Annotated[
    Path | None, typer.Option(help="A file for the result, .npz or .nc; ft.load reads it.")
]
