"""The command `posterior`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldtheory.cli.options import OutputFormat, Save, Seed
from fieldtheory.cli.problem import Problem, with_network
from fieldtheory.cli.resuming import require_place
from fieldtheory.cli.terminal import print_rows

if TYPE_CHECKING:
    import numpy as np


@with_network("K0", data="digits")
def posterior(
    problem: Problem,
    *,
    labels: Annotated[
        str | None,
        typer.Option(
            help="A .csv or .npy file of numbers, one row for each sample; several columns are "
            "several outputs.",
            show_default="the classes of the data: ±1 of two, indicators minus 1/n of n",
        ),
    ] = None,
    noise: Annotated[float, typer.Option(help="Variance of the noise in the labels.")] = 0.1,
    test: Annotated[
        float, typer.Option(help="Share of the samples that are held out, drawn by the seed.")
    ] = 0.25,
    order: Annotated[int, typer.Option(help="1: to order 1/N; 0: infinite width alone.")] = 1,
    paths: Annotated[
        int | None,
        typer.Option(
            help="Paths of neurons that are sampled; more of them make errors smaller.",
            show_default="4096, none for few samples and layers",
        ),
    ] = None,
    response: Annotated[
        bool,
        typer.Option("--response", help="Also how kernels respond to inputs moved afterwards."),
    ] = False,
    seed: Seed = 0,
    save: Save = None,
    format: OutputFormat = "table",
) -> None:
    """Evidence, predictions and kernels of a network of finite width after labels.

    Columns: the number at infinite width, that of width N to order 1/N, and its standard error.
    Rows: the log evidence of the training labels per label; the mean squared error and the share
    of wrong signs, or wrong classes, of the samples held out; how far the kernels of the last
    hidden layer and of the output moved, relative to their size; and the expansion ratio, which
    must be small for the order 1/N to hold. With --response also the response of the output kernel
    to the input kernel, entry by entry, its mean over the samples held out, with what labels add;
    what width N adds without labels is response_shift of solve.

    Examples:

        fieldtheory posterior --depth 20 --width 200 --branch-scale 0.3 --count 60

        fieldtheory posterior -L 10 --count 30 --response

        fieldtheory posterior -L 10 --data mnist --classes 0,3 --count 100 --noise 0.05

        fieldtheory posterior -L 10 --data mine.csv --labels targets.csv --save posterior.npz
    """
    import numpy as np

    from fieldtheory.inference.network_posterior import posterior as network_posterior
    from fieldtheory.numerics.solution import solve

    require_place(save, ".npz", ".nc")
    if not 0 <= test < 1:
        raise ValueError(f"test must be a share from 0 to below 1, got {test!r}")
    kernel = np.asarray(problem.kernel)
    targets = _targets(problem, labels)
    order_of = np.random.default_rng(seed).permutation(len(kernel))
    kernel, targets = kernel[np.ix_(order_of, order_of)], targets[order_of]
    count = len(kernel) - round(test * len(kernel))
    result = network_posterior(
        problem.network, kernel, targets[:count], noise, order,
        samples=paths, seed=seed, progress=True,
    )  # fmt: skip
    found = _found(result, targets[count:])
    if response:
        # Of the mean of entries at most the mean of their errors.
        before = solve(problem.network, kernel).output_response
        fields = before, result.output_response_shift, result.output_response_shift_error
        first = count if test else 0
        chi, shift, error = (each[first:, first:].mean() for each in fields)
        found["response of the output"] = chi, chi + shift, error
    columns = "infinite", "width N", "error"
    rows = [
        {"quantity": name} | dict(zip(columns, map(float, values), strict=True))
        for name, values in found.items()
    ]
    if save is not None:
        result.save(save)
    title = f"{problem.words}, {count} of them with labels, φ = {problem.network.activation.name}"
    print_rows(rows, format, f"{title}, N = {problem.network.width}")


def _targets(problem: Problem, typed: str | None) -> np.ndarray:
    """The labels of all samples, of a file or the classes of the data as numbers."""
    import numpy as np

    assert problem.samples is not None
    samples = problem.samples
    if typed is None:
        if samples.labels is None:
            raise ValueError("labels must be given, the data have no column of them")
        classes, place = np.unique(samples.labels, return_inverse=True)
        if len(classes) == 2:
            return np.asarray(2.0 * place - 1.0)
        return np.asarray(np.eye(len(classes))[place] - 1 / len(classes))
    from fieldtheory.cli.values import table_of_file

    if Path(typed).suffix not in (".csv", ".npy"):
        raise ValueError(
            f"labels must be a .csv or .npy file of numbers, got {typed!r}; for a column of the "
            "data say --label"
        )
    table = table_of_file("labels", Path(typed))
    table = table[:, 0] if table.ndim > 1 and table.shape[1] == 1 else table
    if len(table) != len(samples.samples):
        raise ValueError(
            f"labels = {typed!r}: {len(table)} rows, must be one for each of the "
            f"{len(samples.samples)} samples"
        )
    return table


def _found(result: Any, held_out: np.ndarray) -> dict[str, tuple[Any, Any, Any]]:
    """Quantities at infinite width, at width N, and the standard errors of the latter."""
    import numpy as np

    count = len(result.labels)
    evidence = result.log_evidence_nngp, result.log_evidence, result.log_evidence_error
    found = {"log evidence per label": tuple(value / count for value in evidence)}
    if len(held_out):
        means = result.mean_nngp[count:], result.mean[count:]
        error = 2 * np.abs(means[1] - held_out) * result.mean_error[count:]
        squares = (((mean - held_out) ** 2).mean() for mean in means)
        found["squared error of held out"] = (*squares, np.sqrt((error**2).sum()) / error.size)
        # The class is the sign of one output, the largest of several.
        several = held_out.ndim > 1
        classes = [x.argmax(axis=1) if several else x > 0 for x in (*means, held_out)]
        wrong = ((mean != classes[2]).mean() for mean in classes[:2])
        found["share of wrong classes"] = (*wrong, 0.0)
    for name, layer in (("last hidden layer", -2), ("output", -1)):
        shift, error, size = (
            np.linalg.norm(each[layer])
            for each in (result.kernel_shift, result.kernel_shift_error, result.kernels)
        )
        found[f"kernel learned, {name}"] = 0.0, shift / size, error / size
    return found | {"expansion ratio": (0.0, result.expansion_ratio, 0.0)}
