"""The network and the inputs of a command: options that are typed in one way everywhere."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from fieldtheory.cli import options

if TYPE_CHECKING:
    import numpy as np

    from fieldtheory.data import Dataset


class Problem(NamedTuple):
    """Network and inputs of a command: K0 and words on it, or the samples and their options.

    ``given`` are the parameters of the network that were typed or stand in its file.
    """

    network: Any
    given: frozenset[str]
    kernel: float | np.ndarray
    words: str
    samples: Dataset | None
    typed: str

    def require_dimension(self, where: str) -> None:
        """Raise where d_in counts, but was not given for samples."""
        if self.samples is not None and "input_dim" not in self.given:
            raise ValueError(
                f"input_dim must be given with data {where}, got none: it is the number of columns"
            )


def with_options(
    *groups: Mapping[str, tuple[Any, Any]], build: Callable[..., tuple[Any, ...]] = lambda *t: t
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command groups of options, each an annotation and a default by name.

    What is typed is handed to it as a mapping for each group, or as what ``build`` makes of them;
    its own options stand behind its ``*``.
    """
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for group in groups
        for name, (kind, default) in group.items()
    ]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
        first = [option for option in own if option.default is option.empty]
        optional = [option for option in own if option not in first]

        @wraps(command)
        def run(**arguments: Any) -> None:
            typed = [{name: arguments.pop(name) for name in group} for group in groups]
            command(*build(*typed), **arguments)

        order = [*first, *shared, *optional]
        run.__signature__ = signature.replace(parameters=order)  # type: ignore[attr-defined]
        return run

    return decorated


def with_network(
    *without: str,
    data: bool | str = False,
    readin: bool = False,
    dimension: str = "",
    most: int | None = None,
    families: bool = True,
    activation: str = "erf; gelu of blocks",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a network and its inputs, and hand it the `Problem` of them.

    ``without`` are options that it does not have; ``data`` says whether samples may take the place
    of K0, or which do by default, ``readin`` whether the variances of the read-in may be typed,
    ``dimension`` for which option that of the inputs counts. Of more samples than ``most`` a part
    is taken. ``activation`` is what its help says of φ that is not typed.
    """
    inputs = {n: o for n, o in options.INPUTS.items() if (data or n == "K0") and n not in without}
    if isinstance(data, str):
        inputs["data"] = (inputs["data"][0], data)
    every = options.PARAMETERS | (options.OF_FAMILIES if families else {})
    left = {*without, *(() if readin else options.READIN)}
    parameters = {name: option for name, option in every.items() if name not in left}
    flags = "--activation", "-a"
    parameters["activation"] = options.of_network(str, options.ACTIVATION, activation, *flags)
    if dimension:
        words = f"Dimension d_in of the inputs, for {dimension}."
        parameters["input_dim"] = options.of_network(int, words, "100, but none with --data")
    return with_options(
        inputs, parameters, build=lambda *typed: (_problem(most, families, *typed),)
    )


def _problem(
    most: int | None, families: bool, inputs: dict[str, Any], parameters: dict[str, Any]
) -> Problem:
    from fieldtheory.cli import samples, values

    typed_kernel, scale = inputs.pop("K0", "1"), inputs.get("scale")
    # The first two are those with one matrix in every branch.
    allowed = values.LAYERED if families else values.LAYERED[:2]
    kind, given = values.parameters(file=parameters.pop("network"), families=allowed, **parameters)
    dataset, words = samples.read(inputs, most), ""
    if "readin_bias_variance" in parameters and dataset and samples.variance(scale) is not None:
        given.setdefault("readin_bias_variance", 0.0)
    network = kind(**given)
    if dataset is None:
        kernel = values.kernel(typed_kernel)
    else:
        words, kernel = samples.kernel_of(dataset, scale, network)
    typed: list[str] = []
    for name, value in inputs.items():
        if value is not None and value is not False:
            typed += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return Problem(network, frozenset(given), kernel, words, dataset, shlex.join(typed))
