"""PF Fig. 5 scaled down, training by reparametrised gradients; reached as `pf.fig5`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.figures.parts import Numbers, picture
from fieldtheory.figures.trainer import Run, Size, trained_in_parts
from fieldtheory.plotting.curves import Curve
from fieldtheory.plotting.style import BLUE, GREEN, scale_values, tints

# In which gradients are taken: ε of PF eq. (16), and ΔW.
_KINDS = {"ntk": "by ε", "standard": "by ΔW"}
_FULL = Size(
    networks=((10, 50), (10, 200), (100, 50), (100, 200)),
    images=4000,
    tested=1000,
    steps=200,
    rates=((0.1, 0.3, 1.0, 3.0), (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)),
)
_QUICK = Size(((3, 10), (6, 20)), images=200, tested=100, steps=5, rates=((0.3, 1.0), (1e-3, 3e-3)))


def fig5(
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    directory: str | Path | None = None,
    progress: bool = False,
) -> Numbers:
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
    Numbers
        Losses at the common rate with gradients (a) by ε, (b) by ΔW; (c) the worst test accuracy of
        the networks against the rate. The common rate is that where this is best.

    Notes
    -----
    As in PF section 4.3, φ = tanh, ψ = id, σ_w² = σ_b² = T = 1, read-in and readout are standard
    normals that are not trained, and batches have 200 images; but 4000 images of MNIST, of unit
    length, in ten epochs for 60,000 in one. The gradient by ε is σ_w √(Δt/D) times that by ΔW, so
    that one step by ε with a rate is one by ΔW with σ_w² Δt/D times it.

    What is found with the seed 0 is on the page docs/howto/train_networks.md.
    """
    # As in PF.
    batch = 200
    size = _QUICK if quick else _FULL
    grids = list(zip(_KINDS, size.rates, strict=True))
    runs = [
        Run(
            DiffusionNetwork(depth=depth, width=width), {"parametrization": kind},
            rate, [(size.steps, 1.0, seed)], batch, inner=True,
        )
        for kind, rates in grids
        for rate in rates
        for depth, width in size.networks
    ]  # fmt: skip
    parts = iter(
        trained_in_parts("pf.fig5", runs, size, _of_unit_length, seed, jobs, directory, progress)
    )
    curves = []
    for panel, (kind, rates) in zip("ab", grids, strict=True):
        rows = [[next(parts) for _ in size.networks] for _ in rates]
        worst = np.array([min(part["accuracy"] for part in row) for row in rows])
        best = int(worst.argmax())
        for (L, D), part in zip(size.networks, rows[best], strict=True):
            label = f"{_KINDS[kind]}, rate {rates[best]:g}, L = {L}, D = {D}"
            curves.append(Curve(panel, label, np.arange(size.steps), part["loss"]))
        curves.append(Curve("c", _KINDS[kind], np.array(rates), worst))
    epochs = f"{size.steps * batch // size.images} epochs of {size.images}"
    return Numbers(curves, f"images of unit length, {epochs}, sizes, learning rates")


def _of_unit_length(samples: np.ndarray) -> np.ndarray:
    return samples / np.linalg.norm(samples, axis=1, keepdims=True)


@picture((2.8, 2.8, 2.8), 2.7)
def draw_fig5(axes: Any, numbers: Numbers) -> None:
    """Loss with gradients (a) by ε and (b) by ΔW, (c) the worst accuracy against the rate."""
    worst = numbers.panels()["c"]
    for ax, panel, colour, rates in zip(axes, "ab", (BLUE, GREEN), worst, strict=False):
        curves = numbers.panels()[panel]
        for curve, shade in zip(curves, tints(colour, len(curves)), strict=True):
            kind, rate, name = curve.label.split(", ", 2)
            ax.plot(curve.x, curve.y, color=shade, linewidth=1, label=name)
        ax.set_title(f"{kind}, {rate}", fontsize=9.5, pad=7)
        scale_values(ax, np.concatenate([curve.y for curve in curves]))
        ax.set(xlabel="step", ylabel="loss of the batch")
        ax.legend(fontsize=7)
        look: Any = {"color": colour, "markersize": 3, "label": rates.label}
        axes[2].semilogx(rates.x, 100 * rates.y, "o-", **look)
    axes[2].set(xlabel="learning rate", ylabel="accuracy of the worst network (%)")
    axes[2].legend()
