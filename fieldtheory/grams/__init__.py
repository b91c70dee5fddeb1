"""Networks whose Gram matrices are a Markov chain, as `BlockNetwork`: simulated."""

from fieldtheory.grams import gram_simulation as gram_simulation
