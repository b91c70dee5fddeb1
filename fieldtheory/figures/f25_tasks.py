"""Figures of F25 on data sets: Fig. 5, Fig. 6 and Fig. 9; reached as `f25.fig5` and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.data import Dataset, equal_angles, load_mnist, scaled_kernel
from fieldtheory.figures.parts import in_turn, note
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.plotting.curves import Curve, matrix_rows
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, draw_matrix, panels, styled, tints
from fieldtheory.scaling import mean_scaling, optimal_scaling

INPUT_SCALE = 0.05
_ENTRIES = ("diagonal", "off-diagonal")
_IMAGES = "images, the first of each class"
_ABSENT = """empty: no images of {0} were given
and the package holds none.

With your copy, in the shell:
--data-folder cifar-10-batches-py

in Python:
cifar10=load_cifar10(folder)"""


@dataclass(frozen=True, eq=False)
class Fig5:
    """Numbers of F25 Fig. 5; axes of length 2 are (diagonal, off-diagonal).

    Attributes
    ----------
    name : str
        The samples.
    depths : ndarray, shape (D,)
    weight_variances, bias_variances : ndarray, shapes (W,) and (B,)
        σ_w² and σ_b².
    by_weight_variance, by_bias_variance : ndarray, shapes (2, W, D) and (2, B, D)
        ρ* averaged over the entries of the kernel.
    """

    name: str
    depths: np.ndarray
    weight_variances: np.ndarray
    bias_variances: np.ndarray
    by_weight_variance: np.ndarray
    by_bias_variance: np.ndarray

    def curves(self) -> list[Curve]:
        """The plotted curves."""
        labels = [f"weight variance {value:g}" for value in self.weight_variances]
        labels += [f"bias variance {value:g}" for value in self.bias_variances]
        rows = np.concatenate([self.by_weight_variance, self.by_bias_variance], axis=1)
        return [
            Curve(panel, label, self.depths, row)
            for panel, entry in zip("ab", rows, strict=True)
            for label, row in zip(labels, entry, strict=True)
        ]


def fig5(
    dataset: Dataset | None = None,
    depths: Sequence[int] = (10, 20, 50, 100, 200),
    weight_variances: Sequence[float] = (1.0, 1.25, 1.5, 2.0),
    bias_variances: Sequence[float] = (0.0, 0.05, 0.1),
    progress: bool = False,
) -> Fig5:
    """Mean optimal scaling of a data set over depth, for several variances (F25 Fig. 5).

    Parameters
    ----------
    dataset : Dataset, optional
        Samples of the task, F25: 20 airplanes and dogs of CIFAR-10, see
        `fieldtheory.data.load_cifar10`. The default is 20 digits 0 and 3 of MNIST.
    depths : sequence of int, shape (D,)
        Depths L.
    weight_variances, bias_variances : sequence of float, shapes (W,) and (B,)
        σ_w² at σ_b² = 0.05, and σ_b² at σ_w² = 1.25.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Fig5

    Notes
    -----
    As in the caption P = 20, K^(0) = 0.05 and φ = erf. It states neither the depths nor the
    variances; those here are a choice. Its averages divide by the number of entries, P and P(P-1)
    (printed as N and N(N-1)). The read-in has no bias, see `scaled_kernel`. The default takes
    ten seconds.
    """
    samples = load_mnist() if dataset is None else dataset
    K0 = scaled_kernel(samples.samples, INPUT_SCALE)
    found = [validation.integer("depths", depth, 1) for depth in depths]
    if not found:
        raise ValueError(f"depths must hold at least one depth, got {depths!r}")
    weight = validation.finite_array("weight_variances", weight_variances)
    bias = validation.finite_array("bias_variances", bias_variances)
    default = ResidualNetwork(depth=1)
    settings = [(value, default.bias_variance) for value in weight.tolist()]
    settings += [(default.weight_variance, value) for value in bias.tolist()]
    networks = [
        ResidualNetwork(depth=depth, weight_variance=weight_variance, bias_variance=bias_variance)
        for weight_variance, bias_variance in settings
        for depth in found
    ]
    # One network after the other: the deepest would set the time of all.
    optima = in_turn([partial(optimal_scaling, net, K0) for net in networks], "f25.fig5", progress)
    means = mean_scaling(np.stack(optima))
    both = np.reshape(means, (2, len(settings), len(found)))
    return Fig5(
        samples.name, np.array(found), weight, bias, both[:, : len(weight)], both[:, len(weight) :]
    )


@styled
def draw_fig5(numbers: Fig5) -> Any:
    """F25 Fig. 5 as a matplotlib Figure: mean ρ* over L of (a) variances, (b) covariances."""
    figure, axes = panels((3.1, 3.1), 2.8)
    L = numbers.depths
    shades = (
        tints(BLUE, len(numbers.weight_variances)),
        tints(GREEN, len(numbers.bias_variances)),
    )
    for entry, ax in enumerate(axes):
        rows = numbers.by_weight_variance[entry], numbers.by_bias_variance[entry]
        guide = 1.3 * max(map(np.max, rows)) * np.sqrt(L[0] / L)
        ax.plot(L, guide, "--", color=GRAY, linewidth=1, label=r"$\propto 1/\sqrt{L}$")
        labels = (
            [rf"$\sigma_w^2 = {value:g}$" for value in numbers.weight_variances],
            [rf"$\sigma_b^2 = {value:g}$" for value in numbers.bias_variances],
        )
        for marker, names, colours, values in zip("os", labels, shades, rows, strict=True):
            for name, colour, row in zip(names, colours, values, strict=True):
                ax.plot(L, row, color=colour, marker=marker, markersize=3, linewidth=1, label=name)
        ax.set(xscale="log", yscale="log", xlabel="depth $L$")
        ax.set_title(_ENTRIES[entry], fontsize=9.5)
    axes[0].set_ylabel(r"mean optimal scaling $\bar{\rho}^*$")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle(numbers.name, fontsize=9.5)
    note(figure, f"chosen here: depths, variances and {_IMAGES}")
    return figure


@dataclass(frozen=True, eq=False)
class TaskMatrix:
    """A panel: a matrix over the samples of one task.

    Attributes
    ----------
    name : str
        The task.
    values : ndarray, shape (P, P), or None
        None where the data are absent.
    labels : ndarray, shape (P,), or None
        Classes of the samples.
    """

    name: str
    values: np.ndarray | None
    labels: np.ndarray | None


@dataclass(frozen=True, eq=False)
class TaskMatrices:
    """Numbers of F25 Fig. 6, ρ* of every entry of the kernels, or of Fig. 9, normalised overlaps.

    Attributes
    ----------
    panels : tuple of TaskMatrix
    """

    panels: tuple[TaskMatrix, ...]

    def curves(self) -> list[Curve]:
        """The rows of the matrices."""
        return [
            curve
            for letter, panel in zip("abc", self.panels, strict=False)
            if panel.values is not None
            for curve in matrix_rows(letter, panel.values)
        ]


def fig6(
    cifar10: Dataset | None = None,
    count: int = 20,
    network: ResidualNetwork | None = None,
    progress: bool = False,
) -> TaskMatrices:
    """Optimal scaling of all pairs of samples of three tasks (F25 Fig. 6).

    Parameters
    ----------
    cifar10 : Dataset, optional
        Samples of panel (c), as `fieldtheory.data.load_cifar10` returns them; left out, the panel
        is empty and says so.
    count : int
        Number of samples P in panels (a) and (b), even.
    network : ResidualNetwork, optional
        Its ``branch_scale`` is ignored; the default has the caption's L = 200, σ_w² = 1.25,
        σ_b² = 0.05, φ = erf.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    TaskMatrices
        (a) synthetic samples at equal angles, (b) digits 0 and 3 of MNIST, (c) CIFAR-10.

    Raises
    ------
    ValueError
        If ``count`` is odd or the response of a covariance has no maximum, as for samples at small
        angles in a network of one layer.

    Notes
    -----
    All samples have the length at which K^(0) = 0.05 on the diagonal, with a read-in without bias,
    see `scaled_kernel`. Which images the paper shows is not stated; here the first of each class.
    The diagonal holds ρ* of the variances. Samples at the angle π have the covariance -0.05. The
    biases of the residual layers raise it, and ρ* is smooth there and has its smallest value; a
    ``network`` without these biases keeps such samples opposite, and their response has no maximum
    if φ is odd.
    """
    net = ResidualNetwork(depth=200) if network is None else network

    def scaling(dataset: Dataset) -> np.ndarray:
        return np.asarray(optimal_scaling(net, scaled_kernel(dataset.samples, INPUT_SCALE)))

    tasks = {"equal angles": equal_angles(count), "MNIST": load_mnist(count=count)}
    return _matrices("f25.fig6", {**tasks, "CIFAR-10": cifar10}, scaling, progress)


def fig9(cifar10: Dataset | None = None, count: int = 20, progress: bool = False) -> TaskMatrices:
    """Overlaps x_α·x_β of the samples of two tasks, divided by the largest (F25 Fig. 9).

    Parameters
    ----------
    cifar10 : Dataset, optional
        As for `fig6`.
    count : int
        Number of samples P of MNIST, even.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    TaskMatrices
        (a) digits 0 and 3 of MNIST, (b) CIFAR-10.

    Notes
    -----
    Samples are the pixels as they are, neither centred nor of equal length. The text to which the
    caption refers describes these two tasks.
    """

    def overlap(dataset: Dataset) -> np.ndarray:
        found = dataset.samples @ dataset.samples.T
        return found / found.max()

    tasks = {"MNIST": load_mnist(count=count), "CIFAR-10": cifar10}
    return _matrices("f25.fig9", tasks, overlap, progress)


def _matrices(
    title: str,
    tasks: dict[str, Dataset | None],
    matrix: Callable[[Dataset], np.ndarray],
    progress: bool,
) -> TaskMatrices:
    def panel(name: str, dataset: Dataset | None) -> TaskMatrix:
        if dataset is None:
            return TaskMatrix(name, None, None)
        return TaskMatrix(name, matrix(dataset), dataset.labels)

    parts = [partial(panel, *task) for task in tasks.items()]
    return TaskMatrices(tuple(in_turn(parts, title, progress)))


@styled
def draw_fig6(numbers: TaskMatrices) -> Any:
    """F25 Fig. 6 as a matplotlib Figure: ρ* of all pairs, a panel for each task."""
    return _draw_tasks(numbers.panels, r"optimal scaling $\rho^*$")


@styled
def draw_fig9(numbers: TaskMatrices) -> Any:
    """F25 Fig. 9 as a matplotlib Figure: normalised overlaps, a panel for each task."""
    return _draw_tasks(numbers.panels, r"overlap $x_\alpha \cdot x_\beta$ / largest")


def _draw_tasks(tasks: Iterable[TaskMatrix], name: str) -> Any:
    tasks = tuple(tasks)
    figure, axes = panels((2.9,) * len(tasks), 2.6)
    for ax, task in zip(axes, tasks, strict=True):
        ax.set_title(task.name, fontsize=9.5, pad=7)
        if task.values is not None:
            draw_matrix(figure, ax, task.values, task.labels, name)
        else:
            ax.set_axis_off()
            text = _ABSENT.format(task.name)
            ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
    note(figure, f"chosen here: {_IMAGES}")
    return figure
