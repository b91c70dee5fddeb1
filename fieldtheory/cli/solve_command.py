"""The command `solve`."""

from __future__ import annotations

from typing import Annotated, Any

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
    rows = _rows(solution)
    if fluctuations:
        variances = solution.G11.diagonal().tolist()
        of_kernels = [*solution.kernel_variance.tolist(), variances[-1]]
        for row, residual, kernel in zip(rows, variances, of_kernels, strict=True):
            row |= {"var_C": residual, "var_K": kernel}
    title = f"depth {depth}, φ = {net.activation.name}; layer {depth + 1} is the output"
    print_rows(rows, format, title)


def _rows(solution: Any) -> list[dict[str, Any]]:
    """A row for every layer, the output last, and for every pair of several inputs."""
    import numpy as np

    last = solution.output_response[None]
    columns = {
        "C": solution.residual_kernels,
        "K": solution.kernels,
        "eta": np.concatenate([solution.residual_response, last]),
        "chi": np.concatenate([solution.response, last]),
    }
    layers = range(len(columns["C"]))
    if columns["C"].ndim == 1:
        return [{"layer": l, **{name: float(v[l]) for name, v in columns.items()}} for l in layers]
    pairs = list(zip(*np.triu_indices(solution.inputs), strict=True))
    return [
        {"layer": l, "alpha": int(a) + 1, "beta": int(b) + 1}
        | {name: float(v[l, a, b]) for name, v in columns.items()}
        for l in layers
        for a, b in pairs
    ]
