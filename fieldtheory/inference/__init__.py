"""What infinitely wide networks infer: kernels of data, posteriors, training, bounds.

SR is S. Hayou et al., Stable ResNet, AISTATS (2021).
"""

from fieldtheory.inference.gaussian_process import Posterior, condition
from fieldtheory.inference.generalisation import (
    bernoulli_divergence,
    gibbs_risk,
    inverse_bernoulli_divergence,
    largest_probabilities,
    pac_bayes_bound,
)
from fieldtheory.inference.kernel_function import KernelFunction, kernel
from fieldtheory.inference.power_series import power_coefficients
from fieldtheory.inference.spectra import Spectrum, spectrum
from fieldtheory.inference.trained_ensemble import TrainedEnsemble, train

__all__ = [
    "KernelFunction",
    "Posterior",
    "Spectrum",
    "TrainedEnsemble",
    "bernoulli_divergence",
    "condition",
    "gibbs_risk",
    "inverse_bernoulli_divergence",
    "kernel",
    "largest_probabilities",
    "pac_bayes_bound",
    "power_coefficients",
    "spectrum",
    "train",
]
