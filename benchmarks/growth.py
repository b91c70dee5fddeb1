"""Growth with the number of inputs P, the depth L and the width N in one run: docs/speed.png.

Processor time of one call after one that warms it up; set OMP_NUM_THREADS=1 to keep BLAS to one
thread. Explicit weights are drawn for few networks, and their time is scaled to 1000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from propagators import seconds

import fieldtheory as ft

PICTURE = Path(__file__).parents[1] / "docs" / "speed.png"
COUNTS, WIDE = (125, 250, 500, 1000, 2000, 4000), 784
DEPTHS = (25, 50, 100, 200, 400, 800, 1600)
WIDTHS = (50, 100, 200, 400, 800)
DRAWN = 1000
Curves = dict[str, list[float]]


def over_inputs() -> Curves:
    """Kernels of P inputs beside X Xᵀ."""
    net = ft.ResidualNetwork(depth=200, branch_scale=200**-0.5, input_dim=WIDE)
    curves: Curves = {"X Xᵀ": [], "kernel, one norm": [], "kernel, different norms": []}
    for count in COUNTS:
        X = np.random.default_rng(0).standard_normal((count, WIDE))
        equal = X * np.sqrt(WIDE) / np.linalg.norm(X, axis=1)[:, None]
        kernel = ft.kernel(net, "output_kernel")
        tasks = partial(np.matmul, X, X.T), partial(kernel, equal), partial(kernel, X)
        for times, task in zip(curves.values(), tasks, strict=True):
            times.append(seconds(task))
    return curves


def solved(net: ft.ResidualNetwork, name: str) -> object:
    return getattr(ft.solve(net, 0.5), name)


def over_depths() -> Curves:
    """One input, erf and tanh."""
    curves: Curves = {"kernels and response": [], "G11, erf": [], "G11, tanh": []}
    for depth in DEPTHS:
        erf, tanh = (
            ft.ResidualNetwork(depth=depth, activation=phi, branch_scale=depth**-0.5)
            for phi in ("erf", "tanh")
        )
        fields = (erf, "output_response"), (erf, "G11"), (tanh, "G11")
        for times, (net, name) in zip(curves.values(), fields, strict=True):
            times.append(seconds(partial(solved, net, name)))
    return curves


def over_widths() -> Curves:
    """1000 networks of 20 layers, one input."""
    curves: Curves = {"exact draws of kernels": [], "explicit weights": []}
    for width in WIDTHS:
        net = ft.ResidualNetwork(depth=20, branch_scale=0.2, width=width)
        few = max(20, DRAWN * 50 // width**2)
        for times, method, samples in zip(
            curves.values(), ("kernel", "weights"), (DRAWN, few), strict=True
        ):
            task = partial(ft.simulate, net, 0.5, samples=samples, method=method)
            times.append(seconds(task, 1) * DRAWN / samples)
    return curves


def main() -> None:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    panels: list[tuple[Sequence[int], Callable[[], Curves], str]] = [
        (COUNTS, over_inputs, "inputs P (784 dimensions, L = 200, erf)"),
        (DEPTHS, over_depths, "depth L (one input)"),
        (WIDTHS, over_widths, "width N (1000 networks, L = 20)"),
    ]
    for ax, (sizes, measured, label) in zip(axes, panels, strict=True):
        print(label)
        for name, times in measured().items():
            ax.loglog(sizes, times, "o-", markersize=3, label=name)
            print(f"  {name:24}", *(f"{t:9.2g}" for t in times), flush=True)
        ax.set(xlabel=label, ylabel="seconds of one processor" if ax is axes[0] else None)
        ax.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
        ax.minorticks_off()
        ax.legend(fontsize=8, frameon=False)
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    main()
