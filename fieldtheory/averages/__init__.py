"""Gaussian averages ⟨F(h)⟩_{N(0,K)} and cumulants: nodes, closed forms, and their numbers.

Which rule evaluates an average is chosen in `choosing`, `numeric` and `many`, from
what these folders offer (imports go down here):

    nodes               averages and correlators as SymPy nodes, their closed forms
    growing             functions that grow exponentially, of signals of any size
    precise             mpmath
    oscillating         waves that are short against the signals
    polynomial_pieces   polynomials between kinks
    sizes               integrals in the logarithms of signals
    integrals           integrals in float64 with an estimate of their error
    integrands          functions with kinks, forms that keep their digits
"""

from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage

__all__ = ["ConnectedCorrelator", "GaussianAverage"]
