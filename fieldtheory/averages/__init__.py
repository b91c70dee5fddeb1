"""Gaussian averages ⟨F(h)⟩_{N(0,K)} and cumulants: nodes, closed forms, and their numbers.

One algorithm computes any average in float64 (`choosing`):

    closed form       if the nodes have one and it does not cancel
    one variable      Gauss-Legendre panels between breakpoints, at the scales of the function and
                      of the Gaussian; tables in ln K where many variances are asked for
    two variables     Mehler's series while its Parseval remainder is below the tolerance, else
                      nested panels in sum and difference
    many pairs        Chebyshev interpolants of the same over all layers (`numerics.pair_maps`)

    nodes          averages and correlators as SymPy nodes, Price's theorem, closed forms
    integrands     functions with kinks and jumps, forms that keep their digits
    quadrature     functions on panels, Hermite coefficients, series, nested panels
    choosing       which algorithm evaluates a node in float64
    precise        mpmath
"""

from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage

__all__ = ["ConnectedCorrelator", "GaussianAverage"]
