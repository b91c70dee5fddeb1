"""SR Table 3 scaled down, trained networks with batch normalisation; reached as `sr.table3`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.figures.parts import Numbers, note
from fieldtheory.figures.sr_depth import COLOURS, SCHEDULES, stable_networks
from fieldtheory.figures.sr_regression import standardised
from fieldtheory.figures.trainer import Run, Size, trained_in_parts
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import panels, styled

# SR: the rate falls by ten after a half and after three quarters of the steps.
_PHASES = ((0.5, 1.0), (0.25, 0.1), (0.25, 0.01))
_FULL = Size(
    networks=((10, 50), (50, 50), (100, 50)),
    images=1000,
    tested=1000,
    steps=200,
    rates=((0.003, 0.01, 0.03, 0.1, 0.3, 1.0),),
    copies=3,
)
_QUICK = Size(((3, 10),), images=200, tested=200, steps=8, rates=((0.1,),), copies=2)


def table3(
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    directory: str | Path | None = None,
    progress: bool = False,
) -> Numbers:
    """Accuracy of trained networks against the learning rate, by schedule and depth; needs torch.

    Parameters
    ----------
    quick : bool
        3 layers of 10 neurons and 8 steps, in two seconds; else 10, 50 and 100 layers of 50
        neurons, 1000 images and 200 steps, in five minutes on one core.
    seed, jobs, directory, progress
        As for `simulate`; an interrupted call goes on from the parts in the folder.

    Returns
    -------
    Numbers
        A panel for each depth, a curve for each schedule: test accuracies against learning rates,
        means over 3 networks with standard errors, 1/10 where a loss was not finite.

    Notes
    -----
    SR trains convolutional networks on CIFAR and TinyImageNet, at a learning rate of 0.1. Here they
    are fully connected, h + λ_l BN(W φ(h)), and see 1000 images of MNIST, with momentum 0.9,
    batches of 100 and SR's decay of the rate.

    What is found with the seed 0 is on the page docs/howto/train_networks.md.
    """
    size = _QUICK if quick else _FULL
    (rates,) = size.rates
    copies: int = size.copies or 1
    phases = [(round(p * size.steps), factor, i) for i, (p, factor) in enumerate(_PHASES)]
    runs = [
        Run(
            net.replace(width=width), {"batch_norm": True, "copies": copies},
            rate, phases, batch_size=100, momentum=0.9,
        )
        for depth, width in size.networks
        for net in stable_networks(depth)
        for rate in rates
    ]  # fmt: skip
    parts = trained_in_parts("sr.table3", runs, size, standardised, seed, jobs, directory, progress)
    chance = np.full(copies, 0.1)
    values = [part["accuracy"] if np.isfinite(part["loss"]).all() else chance for part in parts]
    accuracies = np.reshape(values, (len(size.networks), len(SCHEDULES), len(rates), copies))
    mean, error = accuracies.mean(axis=-1), accuracies.std(axis=-1, ddof=1) / copies**0.5
    curves = [
        Curve(f"L = {L}", name, np.array(rates), mean[i, j], error[i, j])
        for i, (L, _) in enumerate(size.networks)
        for j, name in enumerate(SCHEDULES)
    ]
    width = size.networks[0][1]
    chosen = f"fully connected with batch normalisation, {width} neurons, {size.images} images"
    return Numbers(curves, f"{chosen} of MNIST; errors over {copies} networks")


@styled
def draw_table3(numbers: Numbers) -> Any:
    """The accuracy against the learning rate, a panel for each depth."""
    by_depth = numbers.panels()
    figure, axes = panels((2.5,) * len(by_depth), 2.6)
    for ax, (depth, curves) in zip(axes, by_depth.items(), strict=True):
        for curve, colour in zip(curves, COLOURS, strict=True):
            points = {"fmt": "o-", "color": colour, "markersize": 3, "label": curve.label}
            ax.errorbar(curve.x, 100 * curve.y, 100 * np.asarray(curve.error), **points)
        ax.set(xscale="log", xlabel="learning rate", ylim=(0, 100))
        ax.set_title(f"${depth}$", fontsize=9.5, pad=7)
    axes[0].set_ylabel("test accuracy (%)")
    axes[0].legend(loc="lower left")
    note(figure, numbers.chosen)
    return figure
