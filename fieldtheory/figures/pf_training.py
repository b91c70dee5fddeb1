"""PF Fig. 5 scaled down, training by reparametrised gradients; reached as `pf.fig5`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.data import load_mnist
from fieldtheory.figures.parts import Curves, note
from fieldtheory.networks.diffusion import DiffusionNetwork
from fieldtheory.numerics.chunks import ordered_chunks
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GREEN, panels, scale_values, styled, tints

# In which gradients are taken: ε of PF eq. (16), and ΔW.
_KINDS = {"ntk": "by ε", "standard": "by ΔW"}


class _Size(NamedTuple):
    # L and D.
    networks: tuple[tuple[int, int], ...] = ((10, 50), (10, 200), (100, 50), (100, 200))
    rates: tuple[tuple[float, ...], ...] = (
        (0.1, 0.3, 1.0, 3.0),
        (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    )
    images: int = 4000
    tested: int = 1000
    steps: int = 200


_QUICK = _Size(((3, 10), (6, 20)), ((0.3, 1.0), (1e-3, 3e-3)), images=200, tested=100, steps=5)


def fig5(
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    directory: str | Path | None = None,
    progress: bool = False,
) -> Curves:
    """Training loss of networks of several L and D at one learning rate (PF Fig. 5); needs torch.

    Parameters
    ----------
    quick : bool
        Two small networks and 5 steps, in three seconds; else 10 and 100 layers of 50 and 200
        neurons and 200 steps, in four minutes on one core.
    seed, jobs, directory, progress
        As for `simulate`; an interrupted call goes on from the parts in the folder.

    Returns
    -------
    Curves
        Losses at the common rate with gradients (a) by ε, (b) by ΔW; (c) the worst test accuracy of
        the networks against the rate. The common rate is that where this is best.

    Notes
    -----
    As in PF section 4.3, φ = tanh, ψ = id, σ_w² = σ_b² = T = 1, read-in and readout are standard
    normals that are not trained, and batches have 200 images; but 4000 images of MNIST, of unit
    length, in ten epochs for 60,000 in one. The gradient by ε is σ_w √(Δt/D) times that by ΔW, so
    that one step by ε with a rate is one by ΔW with σ_w² Δt/D times it.

    Found with the seed 0: by ε the common rate 1 gives all four losses one course, and 76 to 84 %
    of the test images right; by ΔW it is slow for small and unstable for large D L, 66 to 83 % at
    the best common rate. PF has 87 to 91 %, and at most 72 %, on fifteen times the images.
    """
    size = _QUICK if quick else _Size()
    seed = validation.integer("seed", seed, 0)
    grids = list(zip(_KINDS, size.rates, strict=True))
    cases = [(kind, rate, net) for kind, rates in grids for rate in rates for net in size.networks]
    tasks = [(i, *case, size, seed) for i, case in enumerate(cases)]
    parts = ordered_chunks(
        _trained, tasks, len(tasks), jobs, "pf.fig5", directory=directory,
        specification={"figure": "pf.fig5", "size": size, "seed": seed}, progress=progress,
    )  # fmt: skip
    # A progress bar ends with its results.
    rest, found = iter(list(parts)), list[Curve]()
    for panel, (kind, rates) in zip("ab", grids, strict=True):
        rows = [[next(rest) for _ in size.networks] for _ in rates]
        worst = np.array([min(part["accuracy"] for part in row) for row in rows])
        best = int(worst.argmax())
        for (L, D), part in zip(size.networks, rows[best], strict=True):
            label = f"{_KINDS[kind]}, rate {rates[best]:g}, L = {L}, D = {D}"
            found.append(Curve(panel, label, np.arange(size.steps), part["loss"]))
        found.append(Curve("c", _KINDS[kind], np.array(rates), worst))
    return Curves(tuple(found))


def _trained(task: tuple[Any, ...]) -> tuple[int, dict[str, np.ndarray]]:
    """Loss, NaN from where it is not finite on, and accuracy of one network."""
    from fieldtheory.training import DivergenceError, torch_module, train

    # isort: split
    # After it, since that says how to install it.
    import torch

    index, kind, rate, (depth, width), size, seed = task
    images, known = load_mnist(range(10), 5000), size.images
    order = np.random.default_rng(seed).permutation(len(images.samples))[: known + size.tested]
    X, labels = images.samples[order], np.asarray(images.labels)[order]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    net = DiffusionNetwork(depth=depth, width=width)
    module = torch_module(
        net, inputs=X.shape[1], outputs=10, parametrization=kind, seed=seed, dtype="float32"
    )
    optimiser = torch.optim.SGD(module.layers.parameters(), lr=rate)
    data = X[:known], labels[:known]
    try:
        history = train(
            module,
            *data,
            optimiser,
            steps=size.steps,
            loss="cross_entropy",
            batch_size=200,
            seed=seed,
        )
    except DivergenceError as error:
        history = error.history
    loss = np.full(size.steps, np.nan)
    loss[: len(history.loss)] = history.loss
    guessed = module(X[known:]).argmax(dim=-1).numpy()
    return index, {"loss": loss, "accuracy": np.mean(guessed == labels[known:])}


@styled
def draw_fig5(numbers: Curves) -> Any:
    """Loss with gradients (a) by ε and (b) by ΔW, (c) the worst accuracy against the rate."""
    figure, axes = panels((2.8, 2.8, 2.8), 2.7)
    shown = numbers.panels()
    rows = zip("ab", (BLUE, GREEN), shown["c"], strict=True)
    for ax, (panel, colour, worst) in zip(axes, rows, strict=False):
        curves = shown[panel]
        for curve, shade in zip(curves, tints(colour, len(curves)), strict=True):
            kind, rate, name = curve.label.split(", ", 2)
            ax.plot(curve.x, curve.y, color=shade, linewidth=1, label=name)
        ax.set_title(f"{kind}, {rate}", fontsize=9.5, pad=7)
        scale_values(ax, np.concatenate([curve.y for curve in curves]))
        ax.set(xlabel="step", ylabel="loss of the batch")
        ax.legend(fontsize=7)
        axes[2].semilogx(
            worst.x, 100 * worst.y, "o-", color=colour, markersize=3, label=worst.label
        )
    axes[2].set(xlabel="learning rate", ylabel="accuracy of the worst network (%)")
    axes[2].legend()
    note(figure, "chosen here: images of unit length, ten epochs of 4000, sizes, learning rates")
    return figure
