"""The optimal scaling of the residual branch: exact, by saturation, and in the deep limit."""

from fieldtheory.scaling.maximum_entropy import maximum_entropy_variance
from fieldtheory.scaling.optimum import optimal_scaling
from fieldtheory.scaling.output_variance import optimal_output_variance
from fieldtheory.scaling.pair_means import few_pairs, mean_scaling

__all__ = [
    "few_pairs",
    "maximum_entropy_variance",
    "mean_scaling",
    "optimal_output_variance",
    "optimal_scaling",
]
