"""A figure of learning: whether the optimal scaling of the prior is optimal for learning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from fieldtheory import validation
from fieldtheory.data import load_digits, load_mnist, normalise
from fieldtheory.figures.f25_tasks import INPUT_SCALE
from fieldtheory.figures.learning_response import draw_response as draw_response
from fieldtheory.figures.learning_response import response as response
from fieldtheory.figures.parts import Numbers, integers, picture
from fieldtheory.inference import condition, kernel
from fieldtheory.inference.network_posterior import posterior
from fieldtheory.networks.residual import ResidualNetwork, input_kernel
from fieldtheory.numerics.chunks import ordered_chunks
from fieldtheory.numerics.validity import ValidityWarning
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, tints
from fieldtheory.scaling import mean_scaling, optimal_scaling

# Data sets and how many images of the digits 0 and 3 they hold, as many of each.
_DATA = {"MNIST": (load_mnist, 1000), "digits": (load_digits, 356)}


def scaling(
    depths: Sequence[int] = (10, 50, 100),
    multiples: Sequence[float] = tuple(2.0 ** np.array([-2, -1, 0, 0.5, 1, 1.5, 2, 3])),
    training: int = 100,
    tested: int = 20,
    width: int = 1000,
    noise_variance: float = 0.01,
    jobs: int | None = None,
    directory: str | Path | None = None,
    progress: bool = False,
) -> Numbers:
    """Evidence, test error and learned kernels over the scaling of the residual branch.

    Parameters
    ----------
    depths : sequence of int, shape (L,)
    multiples : sequence of float, shape (R,)
        ρ/ρ* > 0, where ρ* is that of one input (`optimal_scaling`).
    training : int
        Labels P, half of them of each class.
    tested : int
        Images whose predictions have the order 1/N; the error at infinite width is that of all
        images but those for training.
    width : int
        N.
    noise_variance : float
        κ of labels ±1.
    jobs, directory, progress
        As for `simulate`.

    Returns
    -------
    Numbers
        ``names`` of the D data sets; ``depths`` and their ``optima`` ρ*, the maxima of χ^out of a
        variance, (L,); ``optima_of_pairs`` (D, L), the mean of ρ* over the covariances of training
        images; ``multiples`` (R,). For every data set, depth and ρ/ρ* (D, L, R), each in a panel:

        * ``evidence``, ln p(Y)/P with 1/N, its standard error ``evidence_error``,
          ``evidence_nngp`` at infinite width, and ``evidence_fixed``, the same with σ²_out of the
          hidden layers; ``readout``, σ²_out of the greatest evidence over that of these layers;
        * ``squared_error_nngp`` and ``misclassified_nngp``, the mean squared error and the share of
          wrong signs on all images that are not for training; ``squared_error``, the former with
          its change by 1/N, which is a mean over the ``tested`` images;
        * ``kernel_shift``, the norm of what the output kernel C learned over that of its prior mean
          on training images; ``alignment`` YᵀCY/(P |HCH|), H = 1 − 1/P, of the mean output kernel
          and ``alignment_prior`` of its prior mean; ``expansion_ratio`` of `posterior`.

    Notes
    -----
    Labels are ±1 for digits 0 and 3, images have K^(0) = 0.05 and no bias of the read-in as in F25
    Fig. 6, φ = erf, σ_w² = 1.25, σ_b² = 0.05. The readout has the variances of greatest evidence at
    infinite width, in the ratio of the hidden layers: ρ changes the scale of the outputs too, and
    would otherwise be chosen by the size of the labels. The noise is 1 % of their variance; that of
    greatest evidence is smaller and goes to zero near the best ρ, where the order 1/N does not
    hold at this width. The default takes a quarter of an hour; one depth, four multiples and 20
    labels take seconds.
    """
    L = integers("depths", depths)
    r = np.array([validation.positive("multiples", value) for value in multiples])
    P = validation.integer("training", training, 2)
    T = validation.integer("tested", tested, 1)
    tasks: list[tuple[Any, ...]] = []
    optima, pairs = [], []
    for load, count in _DATA.values():
        if P + T > count:
            raise ValueError(f"training + tested must be at most {count}, got {P + T}")
        images = load((0, 3), count)
        # Sorted by class; classes take turns here.
        order = np.arange(count).reshape(2, -1).T.ravel()
        y = np.where(np.asarray(images.labels)[order] == 0, 1.0, -1.0)
        X = images.samples[order]
        one = ResidualNetwork(depth=1, readin_bias_variance=0.0, width=width, input_dim=X.shape[1])
        networks = [one.replace(depth=depth) for depth in L.tolist()]
        X = normalise(X, INPUT_SCALE, one.weight_variance)
        K0 = input_kernel(X[:P], one)
        optima = [float(optimal_scaling(net, INPUT_SCALE)) for net in networks]
        pairs.append([mean_scaling(np.asarray(optimal_scaling(net, K0)))[1] for net in networks])
        for net, best in zip(networks, optima, strict=True):
            for rho in (r * best).tolist():
                scaled = net.replace(branch_scale=rho)
                tasks.append((len(tasks), scaled, X, y, P, T, noise_variance))
    decided = [L.tolist(), r.tolist(), P, T, width, noise_variance]
    rows = list(
        ordered_chunks(
            _learned, tasks, len(tasks), jobs, "learning.scaling", directory=directory,
            specification={"figure": "learning.scaling", "decided": decided}, progress=progress,
        )
    )  # fmt: skip
    learned = {
        key: np.reshape([each[key] for each in rows], (len(_DATA), len(L), len(r)))
        for key in rows[0]
    }
    curves = [
        Curve(key, f"{name}, L = {depth}", r, cube[i, j])
        for key, cube in learned.items()
        for i, name in enumerate(_DATA)
        for j, depth in enumerate(L)
    ]
    chosen = (
        rf"digits 0 and 3, $P = {P}$ labels, $N = {width}$ (solid) and infinite (dashed), "
        rf"$\kappa = {noise_variance:g}$, readout of the greatest evidence at infinite width "
        r"(dotted: as the hidden layers); triangles: $\rho^*$ of covariances"
    )
    values: dict[str, Any] = {"names": [*_DATA], "depths": L, "optima": np.array(optima)}
    values |= {"optima_of_pairs": np.array(pairs), "multiples": r}
    return Numbers(curves, chosen, values | learned)


@picture((2.4,) * 4, 2.6)
def draw_scaling(axes: Any, numbers: Numbers) -> None:
    """Evidence, test error, kernel shift and alignment over ρ/ρ*: solid with 1/N, dashed without.

    Lines of one colour are those of one data set, from dark to light by depth. Dots mark the best
    of every line, triangles ρ* of the covariances, circles without filling where the order 1/N is
    not small.
    """
    content: tuple[tuple[str, str | None, str, Any], ...] = (
        ("evidence", "evidence_nngp", r"$\ln p(Y) / P$", np.argmax),
        ("squared_error", "squared_error_nngp", "mean squared test error", np.argmin),
        ("kernel_shift", None, "kernel shift / kernel", None),
        ("alignment", "alignment_prior", "alignment with the labels", None),
    )
    r, values = numbers.multiples, numbers.values
    for ax, (name, dashed, label, best) in zip(axes, content, strict=True):
        ax.axvline(1, color=GRAY, linewidth=0.8)
        ax.set(xscale="log", xlabel=r"$\rho / \rho^*$", ylabel=label)
        ticks = 2.0 ** np.arange(*np.round(np.log2([r.min(), 2.1 * r.max()])))
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        for i, (data, colour) in enumerate(zip(numbers.names, (BLUE, ORANGE), strict=True)):
            for j, shade in enumerate(tints(colour, len(numbers.depths))):
                y = values[name][i, j]
                ax.plot(r, y, color=shade, label=f"{data}, $L = {numbers.depths[j]}$")
                if dashed is not None:
                    ax.plot(r, values[dashed][i, j], "--", color=shade, linewidth=0.9)
                if best is not None:
                    ax.plot(r[best(y)], y[best(y)], "o", color=shade, markersize=4)
                # Where `posterior` warns.
                doubtful = numbers.expansion_ratio[i, j] > 0.3
                ax.plot(r[doubtful], y[doubtful], "o", mfc="none", color=shade, markersize=7)
            ax.plot(
                numbers.optima_of_pairs[i] / numbers.optima, np.zeros(len(numbers.optima)),
                "v", color=colour, markersize=4, transform=ax.get_xaxis_transform(), clip_on=False,
            )  # fmt: skip
    for fixed, colour in zip(numbers.evidence_fixed[:, 0], (BLUE, ORANGE), strict=True):
        axes[0].plot(r, fixed, ":", color=colour, linewidth=0.9)
    # The dotted lines go far below the others.
    axes[0].set_ylim(bottom=numbers.evidence_nngp.min() - 0.5 * np.ptp(numbers.evidence_nngp))
    axes[3].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _learned(task: tuple[Any, ...]) -> tuple[int, dict[str, np.ndarray]]:
    """The numbers of one network, by the names that `scaling` lists."""
    index, network, X, y, P, T, noise = task
    labels = y[:P]
    fixed = condition(kernel(network), X[:P], labels, noise)
    readout = _best_readout(np.asarray(fixed.kernel(X[:P])), labels, noise)
    network = network.replace(
        readout_weight_variance=readout * network.weight_variance,
        readout_bias_variance=readout * network.bias_variance,
    )
    wide = condition(kernel(network), X[:P], labels, noise)
    predicted = wide.mean(X[P:])
    squared = np.mean((predicted - y[P:]) ** 2)
    with warnings.catch_warnings():
        # The ratio is part of the result and of the picture.
        warnings.simplefilter("ignore", ValidityWarning)
        result = posterior(network, Y=labels, noise_variance=noise, X=X[:P], X_test=X[P : P + T])
    change = (result.mean - y[: P + T]) ** 2 - (result.mean_nngp - y[: P + T]) ** 2
    learned = result.kernel_shift[-1, :P, :P]
    C = result.kernels[-1, :P, :P]
    numbers = {
        "readout": readout,
        "evidence": result.log_evidence / P,
        "evidence_error": result.log_evidence_error / P,
        "evidence_nngp": wide.log_evidence / P,
        "evidence_fixed": fixed.log_evidence / P,
        "squared_error_nngp": squared,
        "misclassified_nngp": np.mean(np.sign(predicted) != y[P:]),
        "squared_error": squared + change[P:].mean(),
        "kernel_shift": np.linalg.norm(learned) / np.linalg.norm(C - learned),
        "alignment": _alignment(C, labels),
        "alignment_prior": _alignment(C - learned, labels),
        "expansion_ratio": result.expansion_ratio,
    }
    return index, {name: np.asarray(value) for name, value in numbers.items()}


def _best_readout(C: np.ndarray, labels: np.ndarray, noise: float) -> float:
    """The factor s of the kernel C of greatest evidence with s C + κ."""
    values, modes = np.linalg.eigh(C)
    squares, values = (modes.T @ labels) ** 2, np.maximum(values, 0.0)

    def negative(log_s: float) -> float:
        A = np.exp(log_s) * values + noise
        return float(np.sum(squares / A + np.log(A)))

    # Variances are tried within three powers of ten of those of the hidden layers.
    bounds = float(np.log(1e-3)), float(np.log(1e3))
    return float(np.exp(optimize.minimize_scalar(negative, bounds=bounds, method="bounded").x))


def _alignment(C: np.ndarray, labels: np.ndarray) -> float:
    """Cosine between YYᵀ and the kernel without its mean over images (Cortes et al. 2012)."""
    centred = C - C.mean(axis=0) - C.mean(axis=1)[:, None] + C.mean()
    return float(labels @ C @ labels / (len(C) * np.linalg.norm(centred)))
