"""Connected correlators of the observables of two pairs of inputs, one module a situation."""
