"""The network and the inputs of a command: options that are typed in one way everywhere."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fieldtheory.cli import options
from fieldtheory.cli.options import NETWORK

if TYPE_CHECKING:
    import numpy as np

    from fieldtheory.data import Dataset

_INPUTS = {
    "K0": (options.InputKernel, "0.05"),
    "data": (options.Data, None),
    "scale": (options.Scale, None),
    "classes": (options.Classes, None),
    "count": (options.Count, None),
    "label": (options.Label, None),
    "drop": (options.Drop, None),
    "standardise": (options.Standardise, False),
}
_READIN = {
    "readin_weight_variance": (options.ReadinWeight, None),
    "readin_bias_variance": (options.ReadinBias, None),
}
_PARAMETERS = {
    "depth": (options.Depth, 50),
    "activation": (options.NetworkActivation, None),
    "branch_scale": (options.BranchScale, "1.0"),
    "schedule": (options.ScheduleName, None),
    "skip_scale": (options.SkipScale, "1.0"),
    "weight_variance": (options.WeightVariance, None),
    "bias_variance": (options.BiasVariance, None),
    **_READIN,
    "readout_weight_variance": (options.ReadoutWeight, None),
    "readout_bias_variance": (options.ReadoutBias, None),
    "width": (options.Width, 500),
}
_FAMILIES = {"family": (options.Family, "residual")} | {
    name: (option, None) for name, option in options.BLOCK.items()
}
# Parameters of `values.network` that have another name on the command line.
_NAMES = {"activation": "typed_activation", "schedule": "schedule_name"}


class Problem(NamedTuple):
    """Network and inputs of a command.

    Parameters
    ----------
    network : ResidualNetwork or BlockNetwork
    kernel : float or ndarray, shape (P, P)
        K0.
    words : str
        What samples were read and how they were scaled; empty for a kernel that was typed.
    samples : Dataset or None
        The samples as they are, if the inputs are samples.
    typed : str
        The options that name the samples, as they were typed.
    measured : bool
        Whether their dimension d_in is known: it was typed, or there are no samples.
    """

    network: Any
    kernel: float | np.ndarray
    words: str
    samples: Dataset | None
    typed: str
    measured: bool

    def require_dimension(self, where: str) -> None:
        """Raise where d_in counts, but was not typed."""
        if not self.measured:
            raise ValueError(
                f"input_dim must be given with data {where}, got none: it is the number of columns"
            )


def with_network(
    *without: str,
    data: bool | str = False,
    readin: bool = False,
    dimension: str = "",
    most: int | None = None,
    families: bool = True,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a network and its inputs, and hand it the `Problem` of them.

    Parameters
    ----------
    *without : str
        Parameters of the network, or K0, that the command does not have.
    data : bool or str
        Whether samples may take the place of K0, or the samples that are there by default.
    readin : bool
        Whether the variances of the read-in may be typed. Rescaled samples have no biases there.
    dimension : str
        The option for which the dimension of the inputs counts, if it may be typed.
    most : int, optional
        Of more samples than this a part is taken, see `fieldtheory.report.inputs.part`.
    families : bool
        Whether the command is for networks of all families.
    """
    inputs = {n: o for n, o in _INPUTS.items() if (data or n == "K0") and n not in without}
    if isinstance(data, str):
        inputs["data"] = (options.Data, data)
    left = {*without, *(() if readin else _READIN)}
    every = _PARAMETERS | (_FAMILIES if families else {})
    parameters = {name: option for name, option in every.items() if name not in left}
    if dimension:
        help_text = f"Dimension d_in of the inputs, for {dimension}."
        option = typer.Option(
            help=help_text, show_default="100, but none with --data", rich_help_panel=NETWORK
        )
        parameters["input_dim"] = (Annotated[int | None, option], None)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in (inputs | parameters).items()
    ]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, option in signature.parameters.items()
            if name != "problem"
        ]
        first = [option for option in own if option.default is inspect.Parameter.empty]
        optional = [option for option in own if option not in first]

        @wraps(command)
        def run(**arguments: Any) -> None:
            typed = {name: arguments.pop(name) for name in inputs}
            network = {name: arguments.pop(name) for name in parameters}
            command(_problem(typed, network, most), **arguments)

        order = [*first, *shared, *optional]
        run.__signature__ = signature.replace(parameters=order)  # type: ignore[attr-defined]
        return run

    return with_options


def _problem(inputs: dict[str, Any], parameters: dict[str, Any], most: int | None) -> Problem:
    from fieldtheory.cli import samples, values

    data, scale = inputs.get("data"), inputs.get("scale")
    sampled = data is not None
    if not sampled:
        samples.require_none({n: v for n, v in inputs.items() if n not in ("K0", "data")})
    measured = not sampled
    if "input_dim" in parameters:
        measured |= parameters["input_dim"] is not None
        parameters["input_dim"] = parameters["input_dim"] or 100
    if "readin_bias_variance" in parameters and sampled and samples.variance(scale) is not None:
        readin_bias = parameters["readin_bias_variance"]
        parameters["readin_bias_variance"] = 0.0 if readin_bias is None else readin_bias
    parameters.setdefault("depth", 1)
    network = values.network(**{_NAMES.get(name, name): v for name, v in parameters.items()})
    dataset = None if data is None else _samples(inputs, most)
    words, kernel = samples.given_kernel(inputs.get("K0", "1"), dataset, scale, network)
    if dataset is not None:
        samples.tell(dataset)
    chosen = {n: v for n, v in inputs.items() if n != "K0" and v is not None and v is not False}
    typed = [
        word for n, v in chosen.items() for word in (f"--{n}", str(v))[: 1 if v is True else 2]
    ]
    return Problem(network, kernel, words, dataset, shlex.join(typed), measured)


def _samples(inputs: dict[str, Any], most: int | None) -> Dataset:
    """The samples; what a part of them takes is written into the options."""
    from fieldtheory.cli import samples
    from fieldtheory.report.inputs import part

    data, classes, count = inputs["data"], inputs.get("classes"), inputs.get("count")
    columns = {name: inputs.get(name) for name in samples.COLUMNS}
    if most is not None and count is not None and count > most:
        raise ValueError(f"count must be at most {most} for one page, got {count}")
    dataset = samples.chosen(data, classes, count, **columns)
    if most is not None and len(dataset.samples) > most:
        names, inputs["count"] = part(dataset, most, classes is not None)
        inputs["classes"] = None if names is None else ",".join(names)
        dataset = samples.chosen(data, inputs["classes"], inputs["count"], **columns)
    return dataset
