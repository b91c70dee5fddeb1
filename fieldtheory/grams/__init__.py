"""Networks whose Gram matrices are a Markov chain, as `BlockNetwork`: solved and simulated."""

from fieldtheory.grams import gram_scaling as gram_scaling
from fieldtheory.grams import gram_simulation as gram_simulation
from fieldtheory.grams.gram_solution import GramSolution
from fieldtheory.grams.gram_tangents import GramTangentKernels

__all__ = ["GramSolution", "GramTangentKernels"]
