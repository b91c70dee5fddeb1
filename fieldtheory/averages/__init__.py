"""Gaussian averages ⟨F(h)⟩_{N(0,K)} and cumulants: nodes, closed forms, and their numbers.

One algorithm computes any average in float64; `routes` lists them with what each is for, and
`explain` says which a solution took:

    closed form       if the nodes have one and it does not cancel
    panels            one variable: Gauss-Legendre panels between breakpoints, at the scales of the
                      function and of the Gaussian; tables in ln K
    Mehler series     two variables, while the Parseval remainder is below the tolerance
    nested panels     other pairs: panels in sum and difference; three and more variables over the
                      Cholesky factor of their covariance
    tables            many pairs of one variance: Chebyshev interpolants of the same
    angles, maps      of whole recursions, in `numerics`: φ = a_± h, and many pairs in all layers

    nodes          averages and correlators as SymPy nodes, Price's theorem, closed forms
    integrands     functions with kinks and jumps, forms that keep their digits
    quadrature     functions on panels, Hermite coefficients, series, nested panels
    choosing       which algorithm evaluates a node in float64
    routes         their names and counts, tolerances and budgets
    precise        mpmath
"""

from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage

__all__ = ["ConnectedCorrelator", "GaussianAverage"]
