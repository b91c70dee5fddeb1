"""A picture of ρ* of all pairs of any inputs, and of what it depends on.

`pairs` computes what is plotted; `draw_pairs` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.data.dataset import pair_classes
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.plotting.curves import Curve, matrix_rows
from fieldtheory.plotting.style import BLUE, GRAY, ORANGE, draw_matrix, panels, styled
from fieldtheory.scaling import optimal_scaling


@dataclass(frozen=True, eq=False)
class Pairs:
    """Optimal scalings of all pairs of inputs, for `draw_pairs`.

    Attributes
    ----------
    scaling : ndarray, shape (P, P)
        ρ* of every entry of the kernel.
    overlap : ndarray, shape (P, P)
        Correlation of the inputs, K_αβ / √(K_αα K_ββ).
    labels : ndarray, shape (P,), or None
        Classes of the inputs.
    curve_overlap, curve_scaling : ndarray, shape (S,)
        ρ* over the correlation of synthetic inputs that all have the mean variance of the given
        ones.
    """

    scaling: np.ndarray
    overlap: np.ndarray
    labels: np.ndarray | None
    curve_overlap: np.ndarray
    curve_scaling: np.ndarray

    def curves(self) -> list[Curve]:
        """The rows of the matrix (a) and the curves of (b)."""
        groups = [
            Curve("b", name, self.overlap[members], self.scaling[members])
            for name, members in self.groups().items()
        ]
        variances = np.diagonal(self.scaling)
        return [
            *matrix_rows("a", self.scaling),
            Curve("b", "synthetic inputs", self.curve_overlap, self.curve_scaling),
            *groups,
            Curve("b", "same input", np.ones(len(variances)), variances),
        ]

    def groups(self) -> dict[str, np.ndarray]:
        """Masks (P, P) of the classes of pairs of two inputs, each pair once."""
        found = pair_classes(self.labels, len(self.scaling))
        names = {"different samples": "pairs of inputs"}
        return {names.get(n, n): mask for n, mask in found.items() if n != "same sample"}


def pairs(
    K0: Any,
    labels: Any = None,
    network: ResidualNetwork | None = None,
    scaling: np.ndarray | None = None,
) -> Pairs:
    """Optimal scaling of every pair of inputs, and over their correlation (as F25 Fig. 6).

    Parameters
    ----------
    K0 : array_like, shape (P, P)
        Kernel of the inputs.
    labels : array_like, shape (P,), optional
        Classes of the inputs, for the picture.
    network : ResidualNetwork, optional
        Its ``branch_scale`` is ignored; the default has L = 200, σ_w² = 1.25, σ_b² = 0.05,
        φ = erf.
    scaling : ndarray, shape (P, P), optional
        ρ* if it is known already.

    Returns
    -------
    Pairs
    """
    kernel = validation.input_kernel_array("K0", K0)
    if kernel.ndim != 2 or len(kernel) < 2:
        raise ValueError(f"K0 must be a matrix (P, P) with P >= 2, got shape {kernel.shape}")
    net = ResidualNetwork(depth=200) if network is None else network
    if scaling is None:
        scaling = np.asarray(optimal_scaling(net, kernel))
    variances = np.diagonal(kernel)
    size = np.sqrt(variances)
    overlap = kernel / np.outer(size, size)
    correlation = _spread(overlap[np.triu_indices(len(overlap), 1)])
    # One input with these correlations to others that are otherwise uncorrelated. Where these are
    # positive, no two of the others have a larger correlation than with the first.
    synthetic = np.outer(correlation, correlation)
    np.fill_diagonal(synthetic, 1)
    curve = np.asarray(optimal_scaling(net, variances.mean() * synthetic))[0]
    classes = None if labels is None else np.asarray(labels)
    return Pairs(scaling, overlap, classes, correlation[1:], curve[1:])


def _spread(overlap: np.ndarray) -> np.ndarray:
    """1, and correlations from the largest overlap to below the smallest, at equal angles."""
    lowest = max(overlap.min() - 0.05, -1.0)
    angles = np.linspace(np.arccos(min(overlap.max(), 1.0)), np.arccos(lowest), 16)
    return np.append(1.0, np.cos(angles))


@styled
def draw_pairs(numbers: Pairs) -> Any:
    """A matplotlib Figure: (a) ρ* of all pairs, (b) ρ* over their correlation."""
    figure, axes = panels((3.2, 3.6), 2.9)
    draw_matrix(figure, axes[0], numbers.scaling, numbers.labels, r"optimal scaling $\rho^*$")
    ax = axes[1]
    ax.plot(
        numbers.curve_overlap,
        numbers.curve_scaling,
        color=GRAY,
        linewidth=1,
        label="synthetic inputs",
    )
    groups = numbers.groups().items()
    for (name, members), colour, marker in zip(groups, (BLUE, ORANGE), "os", strict=False):
        ax.plot(
            numbers.overlap[members],
            numbers.scaling[members],
            marker,
            color=colour,
            markersize=3,
            alpha=0.6,
            markeredgewidth=0,
            label=name,
        )
    variances = np.diagonal(numbers.scaling)
    ax.plot(
        np.ones(len(variances)), variances, "D", color="black", markersize=3, label="same input"
    )
    ax.set(
        xlabel=r"correlation of the inputs $\alpha$ and $\beta$",
        ylabel=r"optimal scaling $\rho^*$",
    )
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left")
    return figure
