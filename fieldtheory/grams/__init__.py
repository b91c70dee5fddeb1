"""Networks whose Gram matrices are a Markov chain, as `BlockNetwork`: solved and simulated."""

from fieldtheory.grams import gram_simulation as gram_simulation
from fieldtheory.grams.gram_solution import GramSolution
from fieldtheory.grams.gram_tangents import GramTangentKernels
from fieldtheory.theory import gram_derivation as gram_derivation

__all__ = ["GramSolution", "GramTangentKernels"]
