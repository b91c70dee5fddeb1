"""One layer of the saddle point: the recursion that every kernel and response is computed with.

The functions take numbers, arrays and mpmath numbers. That they are what the action says, a test
checks for symbols.
"""

from __future__ import annotations

from typing import Any


def residual_kernel(weight: Any, bias: Any, average: Any) -> Any:
    """C^(l) = a_l ⟨g⟩ + c_l (F25 eqs. (29), (108)).

    Parameters
    ----------
    weight, bias : number or array
        a_l and c_l.
    average : number or array
        ⟨φ²⟩ over the signals of layer l − 1, or ⟨φφ⟩ for a covariance.

    Examples
    --------
    >>> residual_kernel(0.5, 0.125, 2.0)
    1.125
    """
    return weight * average + bias


def carried(skip: Any, before: Any, residual: Any) -> Any:
    """K^(l) = γ_l² K^(l-1) + C^(l) (F25 eq. (30)), and likewise responses and fluctuations.

    Parameters
    ----------
    skip : number or array
        γ_l².
    before, residual : number or array
        K^(l-1) and C^(l).

    Examples
    --------
    >>> carried(0.25, 4.0, 0.5)
    1.5
    """
    return skip * before + residual
