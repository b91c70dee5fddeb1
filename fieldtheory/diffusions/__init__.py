"""Deep networks with small parameters and their limit, a diffusion: solved and simulated (PF)."""

from fieldtheory.diffusions import diffusion_comparison as diffusion_comparison
from fieldtheory.diffusions import diffusion_simulation as diffusion_simulation
from fieldtheory.diffusions.diffusion_ensemble import DiffusionEnsemble
from fieldtheory.diffusions.diffusion_solution import DiffusionSolution
from fieldtheory.diffusions.functions_drawn import FunctionSamples, function_samples
from fieldtheory.theory.diffusion_limit import diffusion_derivation as diffusion_derivation

__all__ = [
    "DiffusionEnsemble",
    "DiffusionSolution",
    "FunctionSamples",
    "function_samples",
]
