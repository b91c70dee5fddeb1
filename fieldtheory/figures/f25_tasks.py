"""Figures of F25 on data sets: Fig. 5, Fig. 6 and Fig. 9; reached as `f25.fig5` and so on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.data import Dataset, equal_angles, load_mnist, scaled_kernel
from fieldtheory.figures.parts import Numbers, curves_of, in_turn, integers, note, picture
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.plotting.curves import matrix_rows
from fieldtheory.plotting.style import BLUE, GRAY, GREEN, draw_matrix, panels, styled, tints
from fieldtheory.scaling import mean_scaling, optimal_scaling

# K^(0) of every sample, in the captions.
INPUT_SCALE = 0.05
_IMAGES = "images, the first of each class"
_ABSENT = """empty: no images of {0} were given
and the package holds none.

With your copy, in the shell:
--data-folder cifar-10-batches-py

in Python:
cifar10=load_cifar10(folder)"""


def fig5(
    dataset: Dataset | None = None,
    depths: Sequence[int] = (10, 20, 50, 100, 200),
    weight_variances: Sequence[float] = (1.0, 1.25, 1.5, 2.0),
    bias_variances: Sequence[float] = (0.0, 0.05, 0.1),
    progress: bool = False,
) -> Numbers:
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
    Numbers
        ρ* averaged over the variances and, second, over the covariances of the kernel:
        ``by_weight_variance`` (2, W, D) and ``by_bias_variance`` (2, B, D). The ``name`` of the
        samples; ``depths``, ``weight_variances``, ``bias_variances``.

    Notes
    -----
    As in the caption P = 20, K^(0) = 0.05 and φ = erf. It states neither the depths nor the
    variances; those here are a choice. Its averages divide by the number of entries, P and P(P-1)
    (printed as N and N(N-1)). The read-in has no bias, see `scaled_kernel`. The default takes
    ten seconds.
    """
    samples = load_mnist() if dataset is None else dataset
    K0 = scaled_kernel(samples.samples, INPUT_SCALE)
    L = integers("depths", depths)
    if not L.size:
        raise ValueError(f"depths must hold at least one depth, got {depths!r}")
    weight = validation.finite_array("weight_variances", weight_variances)
    bias = validation.finite_array("bias_variances", bias_variances)
    default = ResidualNetwork(depth=1)
    settings = [{"weight_variance": value} for value in weight.tolist()]
    settings += [{"bias_variance": value} for value in bias.tolist()]
    networks = [default.replace(depth=depth, **each) for each in settings for depth in L.tolist()]
    # One network after the other: the deepest would set the time of all.
    optima = in_turn([partial(optimal_scaling, net, K0) for net in networks], "f25.fig5", progress)
    means = np.reshape(mean_scaling(np.stack(optima)), (2, len(settings), len(L)))
    labels = [f"weight variance {value:g}" for value in weight]
    labels += [f"bias variance {value:g}" for value in bias]
    curves = curves_of("a", labels, L, means[0]) + curves_of("b", labels, L, means[1])
    values = {"name": samples.name, "depths": L, "weight_variances": weight}
    values |= {"bias_variances": bias, "by_weight_variance": means[:, : len(weight)]}
    values |= {"by_bias_variance": means[:, len(weight) :]}
    return Numbers(curves, f"depths, variances and {_IMAGES}", values)


@picture((3.1, 3.1), 2.8)
def draw_fig5(axes: Any, numbers: Numbers) -> None:
    """F25 Fig. 5 as a matplotlib Figure: mean ρ* over L of (a) variances, (b) covariances."""
    L, split = numbers.depths, len(numbers.weight_variances)
    shades = tints(BLUE, split), tints(GREEN, len(numbers.bias_variances))
    for ax, title, curves in zip(
        axes, ("diagonal", "off-diagonal"), numbers.panels().values(), strict=True
    ):
        guide = 1.3 * max(curve.y.max() for curve in curves) * np.sqrt(L[0] / L)
        ax.plot(L, guide, "--", color=GRAY, linewidth=1, label=r"$\propto 1/\sqrt{L}$")
        families = curves[:split], curves[split:]
        for marker, colours, family in zip("os", shades, families, strict=True):
            look: Any = {"marker": marker, "markersize": 3, "linewidth": 1}
            for curve, colour in zip(family, colours, strict=True):
                kind, value = curve.label.split(" variance ")
                label = rf"$\sigma_{kind[0]}^2 = {value}$"
                ax.plot(L, curve.y, color=colour, label=label, **look)
        ax.set(xscale="log", yscale="log", xlabel="depth $L$")
        ax.set_title(title, fontsize=9.5)
    axes[0].set_ylabel(r"mean optimal scaling $\bar{\rho}^*$")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[0].figure.suptitle(numbers.name, fontsize=9.5)


def fig6(
    cifar10: Dataset | None = None,
    count: int = 20,
    network: ResidualNetwork | None = None,
    progress: bool = False,
) -> Numbers:
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
    Numbers
        For (a) synthetic samples at equal angles, (b) digits 0 and 3 of MNIST, (c) CIFAR-10: the
        ``names`` of the tasks, ``matrices`` of ρ* (P, P), and ``labels``, the classes (P,). The
        latter two are None where the data are absent. An ``entry`` is named for the colour bar.

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

    tasks: dict[str, Dataset | None] = {"equal angles": equal_angles(count)}
    tasks |= {"MNIST": load_mnist(count=count), "CIFAR-10": cifar10}
    return _matrices("f25.fig6", tasks, scaling, r"optimal scaling $\rho^*$", progress)


def fig9(cifar10: Dataset | None = None, count: int = 20, progress: bool = False) -> Numbers:
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
    Numbers
        As of `fig6`, with overlaps in the matrices of (a) digits 0 and 3 of MNIST, (b) CIFAR-10.

    Notes
    -----
    Samples are the pixels as they are, neither centred nor of equal length. The text to which the
    caption refers describes these two tasks.
    """

    def overlap(dataset: Dataset) -> np.ndarray:
        products = dataset.samples @ dataset.samples.T
        return products / products.max()

    tasks = {"MNIST": load_mnist(count=count), "CIFAR-10": cifar10}
    entry = r"overlap $x_\alpha \cdot x_\beta$ / largest"
    return _matrices("f25.fig9", tasks, overlap, entry, progress)


def _matrices(
    title: str,
    tasks: dict[str, Dataset | None],
    matrix: Callable[[Dataset], np.ndarray],
    entry: str,
    progress: bool,
) -> Numbers:
    parts = [partial(matrix, each) if each else lambda: None for each in tasks.values()]
    matrices = in_turn(parts, title, progress)
    curves = [
        curve
        for letter, values in zip("abc", matrices, strict=False)
        if values is not None
        for curve in matrix_rows(letter, values)
    ]
    labels = [each.labels if each else None for each in tasks.values()]
    values = {"names": [*tasks], "matrices": matrices, "labels": labels, "entry": entry}
    return Numbers(curves, _IMAGES, values)


@styled
def draw_fig6(numbers: Numbers) -> Any:
    """F25 Fig. 6 or Fig. 9 as a matplotlib Figure: a matrix over the samples of each task."""
    figure, axes = panels((2.9,) * len(numbers.names), 2.6)
    tasks = zip(axes, numbers.names, numbers.matrices, numbers.labels, strict=True)
    for ax, task, values, labels in tasks:
        ax.set_title(task, fontsize=9.5, pad=7)
        if values is not None:
            draw_matrix(figure, ax, values, labels, numbers.entry)
        else:
            ax.set_axis_off()
            text = _ABSENT.format(task)
            ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
    note(figure, numbers.chosen)
    return figure


draw_fig9 = draw_fig6
