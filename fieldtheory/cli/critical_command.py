"""The command `critical`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fieldtheory.cli.options import OutputFormat
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.terminal import print_rows

_WITHOUT = (
    *("K0", "depth", "width", "branch_scale", "schedule", "skip_scale"),
    *("weight_variance", "bias_variance", "readout_weight_variance", "readout_bias_variance"),
)


@with_network(*_WITHOUT, activation="relu; gelu of blocks")
def critical(
    problem: Problem,
    *,
    skip_scale: Annotated[
        str | None,
        typer.Option(
            help="γ: one number or several, above −1 and below 1.",
            show_default="0, or the best for --depth and --width",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", "-L", help="Number of residual layers.", show_default=False),
    ] = None,
    width: Annotated[
        int | None, typer.Option(help="Width N of the layers.", show_default=False)
    ] = None,
    outputs: Annotated[
        int, typer.Option(help="Number n_L of outputs, for the best L/N and γ.")
    ] = 1,
    K0: Annotated[
        float,
        typer.Option("--K0", "-k", help="Of --family block: the variance of the stream to keep."),
    ] = 1.0,
    format: OutputFormat = "table",
) -> None:
    """Weights and biases at which a residual network neither amplifies nor damps signals.

    A row for every skip scale gamma: the universality class of the activation, σ_w² and σ_b² of
    the residual layers with ρ = 1, the variance K* that is kept (any of a scale-invariant
    activation), the growth nu of the four-point vertex with depth, exact to order 1/N and as
    Roberts, Yaida, Hanin (2022) print it in (B.29) and (B.35), and the ratio r = L/N of depth to
    width at which outputs share most information, (B.36) with the exact nu.

    With --depth and --width and without --skip-scale, gamma is the best one for that ratio.

    For --family block, whose weights are typed, rho is the scale of the branches that keeps the
    variance K0 of the stream, chi_par and chi_perp what a layer multiplies small changes of the
    variance and of the distance of two inputs by.

    Examples:

        fieldtheory critical -a relu --skip-scale 0,0.5,0.9

        fieldtheory critical -a tanh --depth 200 --width 100

        fieldtheory critical -a "h/(1+abs(h))" --skip-scale 0.7 --format json

        fieldtheory critical --family block -a silu --gated --skip-scale 0.7,0.9
    """
    from fieldtheory import validation
    from fieldtheory.cli import values
    from fieldtheory.criticality import (
        critical_point,
        optimal_aspect_ratio,
        optimal_skip_scale,
        vertex_slope,
    )
    from fieldtheory.criticality.susceptibility import critical_block
    from fieldtheory.networks.activations import as_activation
    from fieldtheory.networks.block import BlockNetwork

    network = problem.network
    phi = network.activation if "activation" in problem.given else as_activation("relu")
    scales: Any = 0.0
    if skip_scale is not None:
        scales = values.numbers("skip_scale", skip_scale)
    elif "skip_scale" in problem.given:
        scales = network.skip_scale
    elif (depth is None) != (width is None):
        raise ValueError("depth and width must be given together, got one of them")
    elif depth is not None:
        ratio = validation.integer("depth", depth, 1) / validation.integer("width", width, 1)
        scales = optimal_skip_scale(phi, ratio, outputs)
    scales = scales if isinstance(scales, list) else [scales]
    if isinstance(network, BlockNetwork):
        if (depth, width, outputs) != (None, None, 1):
            raise ValueError("depth, width and outputs must be left out for --family block")
        found = [
            (gamma, *critical_block(network.replace(skip_scale=gamma), K0)) for gamma in scales
        ]
        rows = [
            dict(zip(("gamma", "rho", "chi_par", "chi_perp"), row, strict=True)) for row in found
        ]
        print_rows(rows, format, "blocks")
        return
    rows = []
    for gamma in scales:
        point = critical_point(phi, gamma)
        rows.append(
            {
                "gamma": gamma,
                "class": point.kind,
                "weight_variance": point.weight_variance,
                "bias_variance": point.bias_variance,
                "K*": "any" if point.kernel is None else point.kernel,
                "nu": vertex_slope(phi, gamma),
                "nu as printed": vertex_slope(phi, gamma, closure=True),
                "best L/N": optimal_aspect_ratio(phi, gamma, outputs),
            }
        )
    print_rows(rows, format, f"critical networks, φ = {phi.name}")
