"""Networks whose Gram matrices are a Markov chain, to order 1/N."""
