"""What the main job found of some samples and a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldtheory.data import Dataset
from fieldtheory.data.dataset import pair_classes
from fieldtheory.inference.spectra import Spectrum
from fieldtheory.montecarlo.comparison.comparison_result import Comparison
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.solution import Solution
from fieldtheory.scaling import few_pairs, mean_scaling


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """Results of a run.

    ``words`` say what the samples are and how they were scaled. ``single`` is the solution of the
    ``typical`` sample, whose variance is the median; fluctuations are its. ``scaling`` is ρ* of
    every entry of the kernel (P, P). ``response`` has scalings ρ (R,) and the responses at them of
    a variance and of the covariance of the samples whose correlation is the median (R, 2). What
    cannot be had is a text that says why.
    """

    network: ResidualNetwork
    data: Dataset
    words: str
    solution: Solution
    typical: int
    single: Solution
    scaling: np.ndarray | str
    response: tuple[np.ndarray, np.ndarray]
    harmonics: Spectrum | str
    ensemble: Ensemble
    comparison: Comparison | str
    warnings: tuple[str, ...]
    folder: Path

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """Masks (P, P) of the classes of pairs."""
        return pair_classes(self.data.labels, len(self.data.samples))

    @property
    def best_scale(self) -> str:
        """Mean of ρ* over pairs of different samples, as it is printed everywhere."""
        return f"{mean_scaling(np.asarray(self.scaling))[1]:.4g}"

    @property
    def few_pairs(self) -> str:
        """Words on the few pairs that carry this mean, with the median; empty if many do."""
        return "" if isinstance(self.scaling, str) else few_pairs(self.scaling)

    @property
    def report(self) -> Path:
        """The page."""
        return self.folder / "report.html"
