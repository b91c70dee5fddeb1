"""Statistical field theory of deep networks, symbolic and numeric.

A network averaged over its random weights is a field theory in its kernels. `derive` gives its
action, saddle point, Hessian and propagator as SymPy expressions and LaTeX; `solve` gives kernels,
response functions and 1/N fluctuations as numbers; `simulate` draws finite networks and `compare`
holds the two against each other.
"""

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.montecarlo.comparison import Comparison, compare
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.perturbation import simulate_response
from fieldtheory.montecarlo.simulated_response import SimulatedResponse
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork, input_kernel
from fieldtheory.numerics.solution import Solution, ValidityWarning, solve
from fieldtheory.scaling import optimal_output_variance, optimal_scaling
from fieldtheory.sweeps.parameter_grid import sweep
from fieldtheory.theory.derivation import Derivation, derive

__all__ = [
    "Activation",
    "Comparison",
    "ConnectedCorrelator",
    "Derivation",
    "Ensemble",
    "FeedForwardNetwork",
    "GaussianAverage",
    "ResidualNetwork",
    "SimulatedResponse",
    "Solution",
    "ValidityWarning",
    "compare",
    "derive",
    "input_kernel",
    "optimal_output_variance",
    "optimal_scaling",
    "simulate",
    "simulate_response",
    "solve",
    "sweep",
]
