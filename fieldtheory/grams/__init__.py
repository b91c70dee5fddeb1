"""Networks whose Gram matrices are a Markov chain, as `BlockNetwork`: solved and simulated."""

from fieldtheory.grams.gram_solution import GramSolution

__all__ = ["GramSolution"]
