"""The command `tangent`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fieldtheory.cli import samples, values
from fieldtheory.cli.options import (
    ActivationText,
    BiasVariance,
    BranchScale,
    Classes,
    Count,
    Data,
    Depth,
    InputKernel,
    OutputFormat,
    ReadoutBias,
    ReadoutWeight,
    Scale,
    ScheduleName,
    SkipScale,
    WeightVariance,
    Width,
)
from fieldtheory.cli.resuming import require_place
from fieldtheory.cli.terminal import Format, print_rows

_NETWORK = "The network"
_TRAINING = "What is trained"
_EACH = "one number, or one each for the read-in, the L layers and the readout; 0 is not trained"


class Parametrization(StrEnum):
    """What the trained parameters are."""

    ntk = "ntk"
    standard = "standard"


def tangent(
    K0: InputKernel = "0.05",
    data: Data = None,
    scale: Scale = None,
    classes: Classes = None,
    count: Count = None,
    depth: Depth = 50,
    activation: ActivationText = "erf",
    branch_scale: BranchScale = "1.0",
    schedule: ScheduleName = None,
    skip_scale: SkipScale = "1.0",
    weight_variance: WeightVariance = 1.25,
    bias_variance: BiasVariance = 0.05,
    readin_weight_variance: Annotated[
        float | None,
        typer.Option(
            help="σ_w² of the read-in; as the residual layers if left out.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    readin_bias_variance: Annotated[
        float | None,
        typer.Option(
            help="σ_b² of the read-in, a part of K0; as the residual layers if left out, 0 for "
            "samples that are rescaled.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    readout_weight_variance: ReadoutWeight = None,
    readout_bias_variance: ReadoutBias = None,
    width: Width = 500,
    input_dim: Annotated[
        int | None,
        typer.Option(
            help="Dimension d_in of the inputs, for --parametrization standard.",
            show_default="100, but none with --data",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    parametrization: Annotated[
        Parametrization,
        typer.Option(
            case_sensitive=False,
            help="ntk: w and b of variance one are trained, W = σ_w w/√N, as in the papers. "
            "standard: the entries W of the matrices themselves, as in PyTorch.",
            rich_help_panel=_TRAINING,
        ),
    ] = Parametrization.ntk,
    weight_rates: Annotated[
        str,
        typer.Option(help=f"Learning rates of the weights: {_EACH}.", rich_help_panel=_TRAINING),
    ] = "1",
    bias_rates: Annotated[
        str,
        typer.Option(help="Learning rates of the biases, likewise.", rich_help_panel=_TRAINING),
    ] = "1",
    save: Annotated[
        Path | None,
        typer.Option(help="A file for the result, .npz or .nc; ft.TangentKernels.load reads it."),
    ] = None,
    format: OutputFormat = Format.table,
) -> None:
    """The neural tangent kernel of every layer.

    Column Theta: the sum over all weights and biases, of a wide network, of the products of the
    gradients of a signal for two inputs, Θ = Σ ∂h/∂θ ∂h'/∂θ. Row L + 1 is the output, whose Theta
    moves it when the network is trained. For several inputs there is a row for each pair alpha,
    beta. Beyond float64 the columns are ln|Theta| and, for several inputs, the sign of Theta.
    Samples of --data are rescaled to one variance, see --scale.

    Examples:

        fieldtheory tangent -L 20 -a relu --branch-scale 0.2

        fieldtheory tangent -L 20 -a relu --schedule uniform --K0 "0.5,0.3;0.3,0.5"

        fieldtheory tangent -L 2 --weight-rates 0,1,1,1 --bias-rates 0 --format csv

        fieldtheory tangent -L 20 --parametrization standard --width 1000 -k 0.8 --input-dim 784

        fieldtheory tangent -L 2000 -a relu --weight-variance 2

        fieldtheory tangent -L 20 --data samples.csv --scale none --save theta.npz
    """
    import fieldtheory as ft

    require_place(save, ".npz", ".nc")
    rescaled = data is not None and samples.variance(scale) is not None
    if rescaled and readin_bias_variance is None:
        readin_bias_variance = 0.0
    net = values.network(
        depth=depth,
        typed_activation=activation,
        branch_scale=branch_scale,
        schedule_name=schedule,
        skip_scale=skip_scale,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        readin_weight_variance=readin_weight_variance,
        readin_bias_variance=readin_bias_variance,
        readout_weight_variance=readout_weight_variance,
        readout_bias_variance=readout_bias_variance,
        width=width,
        input_dim=100 if input_dim is None else input_dim,
    )
    standard = parametrization is Parametrization.standard
    if standard and data is not None and input_dim is None:
        raise ValueError(
            "input_dim must be given with data in the standard parametrization, got none: it is "
            "the number of columns"
        )
    words, kernel = samples.given_kernel(K0, data, classes, count, scale, net)
    title = values.title(net, words)
    if standard:
        title = f"{title}; standard parametrization"
    found = ft.tangent_kernels(
        net,
        kernel,
        parametrization.value,
        weight_rates=values.numbers("weight_rates", weight_rates),
        bias_rates=values.numbers("bias_rates", bias_rates),
    )
    rows = _rows(found)
    if save is not None:
        found.save(save)
    print_rows(rows, format, title)


def _rows(found: Any) -> list[dict[str, Any]]:
    """The layers in numbers, or in logarithms where the numbers exceed float64."""
    try:
        return found.rows()
    except OverflowError:
        wanted = {"log_tangent_kernels": "ln|Theta|"}
        if found.inputs > 1:
            wanted["tangent_signs"] = "sign"
        rows = found.rows(of=list(wanted))
        return [{wanted.get(name, name): value for name, value in row.items()} for row in rows]
