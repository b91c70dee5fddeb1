"""The command `solve`."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldtheory.cli import values
from fieldtheory.cli.options import (
    ActivationText,
    BiasVariance,
    BranchScale,
    Depth,
    InputKernel,
    OutputFormat,
    ReadoutBias,
    ReadoutWeight,
    SkipScale,
    WeightVariance,
    Width,
)
from fieldtheory.cli.terminal import Format, print_rows


def solve(
    K0: InputKernel = "0.05",
    depth: Depth = 50,
    activation: ActivationText = "erf",
    branch_scale: BranchScale = "1.0",
    skip_scale: SkipScale = "1.0",
    weight_variance: WeightVariance = 1.25,
    bias_variance: BiasVariance = 0.05,
    readout_weight_variance: ReadoutWeight = None,
    readout_bias_variance: ReadoutBias = None,
    width: Width = 500,
    fluctuations: Annotated[
        bool,
        typer.Option(
            "--fluctuations",
            help="Also Var C and Var K over networks of finite width, for one input.",
        ),
    ] = False,
    format: OutputFormat = Format.table,
) -> None:
    """Kernels and response functions of every layer.

    Columns: the residual kernel C, the kernel K, and their responses eta = ∂C/∂K0 and
    chi = ∂K/∂K0. Row L + 1 is the output, its chi the response of the output. For several inputs
    there is a row for each pair alpha, beta, and responses are those to the same pair's entry.

    Examples:

        fieldtheory solve --depth 50 --branch-scale 0.14

        fieldtheory solve -L 20 -a "tanh(2*h)" --K0 "0.05,0.03;0.03,0.05" --format csv

        fieldtheory solve -L 3 --branch-scale 0.5,0.3,0.1 --fluctuations --format json
    """
    import fieldtheory as ft

    net = values.network(
        depth=depth,
        typed_activation=activation,
        branch_scale=branch_scale,
        skip_scale=skip_scale,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        readout_weight_variance=readout_weight_variance,
        readout_bias_variance=readout_bias_variance,
        width=width,
    )
    solution = ft.solve(net, values.kernel(K0))
    rows = solution.rows(fluctuations)
    title = f"depth {depth}, φ = {net.activation.name}; layer {depth + 1} is the output"
    print_rows(rows, format, title)
