"""Networks whose Gram matrices are a Markov chain, as `BlockNetwork`: simulated and scaled."""

from fieldtheory.grams import gram_scaling as gram_scaling
from fieldtheory.grams import gram_simulation as gram_simulation
