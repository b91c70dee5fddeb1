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

    Attributes
    ----------
    network : ResidualNetwork
    data : Dataset
    words : str
        What the samples are and how they were scaled.
    solution : Solution
        Of all samples.
    typical : int
        The sample whose variance is the median; fluctuations are its.
    single : Solution
        Of this sample.
    scaling : ndarray, shape (P, P), or str
        ρ* of every entry of the kernel, or why there is none.
    response : tuple of ndarray, shapes (R,), (R, 2)
        Scalings ρ, and the responses at them of a variance and of the covariance of the samples
        whose correlation is the median.
    harmonics : Spectrum or str
        Of inputs on the sphere of the samples, or why it is not known.
    ensemble : Ensemble
        Networks of the width of the network.
    comparison : Comparison or str
        Theory and networks of this width and twice as wide, or why they are not compared.
    warnings : tuple of str
        Where the theory is at its limits.
    folder : Path
        The results.
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
