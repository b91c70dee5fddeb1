"""Networks whose Gram matrices are a Markov chain, as `BlockNetwork`: scaled."""

from fieldtheory.grams import gram_scaling as gram_scaling
from fieldtheory.theory import gram_derivation as gram_derivation
