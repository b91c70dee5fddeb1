"""The public names of the package and their modules, each loaded when it is asked for.

Those of families with a theory of their own stand in the objects by which they register.
"""

from fieldtheory.audits.auditing import Audit, audit
from fieldtheory.audits.recognition import from_torch
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.errors import PrecisionError, QuadratureError
from fieldtheory.compiling.explanation import explain
from fieldtheory.compiling.functions import lambdify
from fieldtheory.criticality.susceptibility import CriticalBlock, critical_block
from fieldtheory.criticality.universality import CriticalPoint, EdgeOfChaos, critical_network
from fieldtheory.criticality.weight_gains import Gain, gain
from fieldtheory.inference.gaussian_process import Posterior
from fieldtheory.inference.kernel_function import KernelFunction, kernel
from fieldtheory.inference.network_posterior import NetworkPosterior, posterior
from fieldtheory.inference.spectra import Spectrum, spectrum
from fieldtheory.inference.tilting import TiltedPosterior, tilted_posterior
from fieldtheory.limits import DepthLimit, depth_limit
from fieldtheory.measured_blocks.measurement import BlockMeasurement
from fieldtheory.measured_blocks.measuring import measure_block
from fieldtheory.montecarlo.comparison.comparison_result import Comparison
from fieldtheory.montecarlo.comparison.extrapolation import compare
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.perturbation import SimulatedResponse, simulate_response
from fieldtheory.montecarlo.sampling.many_inputs import TraceCovariance, covariance_with
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork, input_kernel
from fieldtheory.numerics.solution import Solution, solve
from fieldtheory.numerics.tangent.tangent_result import TangentKernels, tangent_kernels
from fieldtheory.numerics.validity import ValidityWarning
from fieldtheory.numerics.variable_data import DataVariability, data_variability
from fieldtheory.scaling import optimal_output_variance, optimal_scaling
from fieldtheory.scaling.demands import required_width, spread_scaling
from fieldtheory.sweeps.parameter_grid import sweep
from fieldtheory.sweeps.saved_results import load
from fieldtheory.theory.derivation import Derivation, derive

__all__ = [
    "Activation",
    "Audit",
    "BlockMeasurement",
    "BlockNetwork",
    "Comparison",
    "ConnectedCorrelator",
    "CriticalBlock",
    "CriticalPoint",
    "DataVariability",
    "DepthLimit",
    "Derivation",
    "EdgeOfChaos",
    "Ensemble",
    "FeedForwardNetwork",
    "Gain",
    "GaussianAverage",
    "KernelFunction",
    "NetworkPosterior",
    "Posterior",
    "PrecisionError",
    "QuadratureError",
    "ResidualNetwork",
    "SimulatedResponse",
    "Solution",
    "Spectrum",
    "TangentKernels",
    "TiltedPosterior",
    "TraceCovariance",
    "ValidityWarning",
    "audit",
    "compare",
    "covariance_with",
    "critical_block",
    "critical_network",
    "data_variability",
    "depth_limit",
    "derive",
    "explain",
    "from_torch",
    "gain",
    "input_kernel",
    "kernel",
    "lambdify",
    "load",
    "measure_block",
    "optimal_output_variance",
    "optimal_scaling",
    "posterior",
    "required_width",
    "simulate",
    "simulate_response",
    "solve",
    "spectrum",
    "spread_scaling",
    "sweep",
    "tangent_kernels",
    "tilted_posterior",
]
