"""The public names of the room, whose modules register what `derive`, `solve` and others do."""

from fieldtheory.diffusions import diffusion_comparison as diffusion_comparison
from fieldtheory.diffusions import diffusion_simulation as diffusion_simulation
from fieldtheory.diffusions.diffusion_ensemble import DiffusionEnsemble as DiffusionEnsemble
from fieldtheory.diffusions.diffusion_ensemble import OutputDistances as OutputDistances
from fieldtheory.diffusions.diffusion_limit.diffusion_derivation import (
    DiffusionDerivation as DiffusionDerivation,
)
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork as DiffusionNetwork
from fieldtheory.diffusions.diffusion_network import ParameterLaw as ParameterLaw
from fieldtheory.diffusions.diffusion_simulation import FunctionSamples as FunctionSamples
from fieldtheory.diffusions.diffusion_simulation import function_samples as function_samples
from fieldtheory.diffusions.diffusion_solution import DiffusionSolution as DiffusionSolution
