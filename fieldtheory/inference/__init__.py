"""What networks infer, infinitely wide or to order 1/N: kernels, posteriors, training, bounds.

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
from fieldtheory.inference.network_posterior import NetworkPosterior, posterior
from fieldtheory.inference.spectra import Spectrum, power_coefficients, spectrum
from fieldtheory.inference.trained_ensemble import TrainedEnsemble, train

__all__ = [
    "KernelFunction",
    "NetworkPosterior",
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
    "posterior",
    "power_coefficients",
    "spectrum",
    "train",
]
