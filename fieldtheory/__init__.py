"""Statistical field theory of deep networks, symbolic and numeric.

A network averaged over its random weights is a field theory in its kernels. `derive` gives its
action, saddle point, Hessian and propagator as SymPy expressions and LaTeX; `solve` gives kernels,
response functions and 1/N fluctuations as numbers.
"""

from fieldtheory.activations import Activation
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.network import FeedForwardNetwork, ResidualNetwork, input_kernel
from fieldtheory.numerics.solution import Solution, ValidityWarning, solve
from fieldtheory.parameter_grid import sweep
from fieldtheory.scaling import optimal_scaling
from fieldtheory.theory.derivation import Derivation, derive

__all__ = [
    "Activation",
    "ConnectedCorrelator",
    "Derivation",
    "FeedForwardNetwork",
    "GaussianAverage",
    "ResidualNetwork",
    "Solution",
    "ValidityWarning",
    "derive",
    "input_kernel",
    "optimal_scaling",
    "solve",
    "sweep",
]
