"""The command `tangent`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from fieldtheory.cli.options import OutputFormat, Save
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.resuming import require_place
from fieldtheory.cli.terminal import print_rows, rows_or_logarithms

_TRAINING = "What is trained"


@with_network(data=True, readin=True, dimension="--parametrization standard")
def tangent(
    problem: Problem,
    *,
    parametrization: Annotated[
        Literal["ntk", "standard"],
        typer.Option(
            case_sensitive=False,
            help="ntk: w and b of variance one are trained, W = σ_w w/√N, as in the papers. "
            "standard: the entries W of the matrices themselves, as in PyTorch.",
            rich_help_panel=_TRAINING,
        ),
    ] = "ntk",
    rate: Annotated[
        list[str] | None,
        typer.Option(
            help="Learning rate of a kind of parameters, 0 is not trained: weight=0 or, one for "
            "each layer, bias=0,1. Kinds are readin_weight, readin_bias, weight, bias, "
            "readout_weight, readout_bias; of --family block inner_, gate_ and outer_ in place of "
            "weight and bias. May be given several times.",
            show_default="all 1",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    save: Save = None,
    format: OutputFormat = "table",
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

        fieldtheory tangent -L 2 --rate readin_weight=0 --rate weight=1,0.5 --format csv

        fieldtheory tangent -L 20 --parametrization standard --width 1000 -k 0.8 --input-dim 784

        fieldtheory tangent -L 2000 -a relu --weight-variance 2

        fieldtheory tangent --family block -L 12 -k 1 --rate readin_weight=0

        fieldtheory tangent -L 20 --data samples.csv --scale none --save theta.npz
    """
    import fieldtheory as ft
    from fieldtheory.cli import values

    require_place(save, ".npz", ".nc")
    title = values.title(problem.network, problem.words)
    options: dict[str, Any] = {"rates": values.rates(rate or [])}
    if parametrization == "standard":
        problem.require_dimension("in the standard parametrization")
        title, options["parametrization"] = f"{title}; standard parametrization", parametrization
    kernels: Any = ft.tangent_kernels(problem.network, problem.kernel, **options)
    logarithms = {"log_tangent_kernels": "ln|Theta|"}
    if kernels.inputs > 1:
        logarithms["tangent_signs"] = "sign"
    rows = rows_or_logarithms(kernels, logarithms)
    if save is not None:
        kernels.save(save)
    print_rows(rows, format, title)
