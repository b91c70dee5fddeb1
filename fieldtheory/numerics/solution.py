"""`solve`: the theory of a network in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.networks.dispatch import OwnTheory, of_families
from fieldtheory.networks.family import (
    CONVENTIONS,
    DeepNetwork,
    deep_network,
)
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.network_solution import Solution

if TYPE_CHECKING:
    from fieldtheory.numerics.precise_solution import PreciseSolution
    from fieldtheory.precision.enclosed_solution import EnclosedSolution

__all__ = ["Solution", "solve"]


@overload
def solve(
    network: DeepNetwork,
    K0: Any,
    convention: str = ...,
    rtol: float = ...,
    order: int = ...,
    progress: bool = ...,
    digits: None = ...,
    proven: Literal[False] = ...,
) -> Solution: ...
@overload
def solve(
    network: DeepNetwork,
    K0: Any,
    convention: str = ...,
    rtol: float = ...,
    order: int = ...,
    progress: bool = ...,
    *,
    digits: int,
    proven: Literal[False] = ...,
) -> PreciseSolution: ...
@overload
def solve(
    network: DeepNetwork, K0: Any, *, digits: int, proven: Literal[True]
) -> EnclosedSolution: ...
@overload
def solve(network: OwnTheory, /, *args: Any, **options: Any) -> Any: ...


@of_families
@named_arguments
def solve(
    network: DeepNetwork,
    K0: Any,
    convention: str = "derivative",
    rtol: float = DEFAULT_TOLERANCE,
    order: int = 1,
    progress: bool = False,
    digits: int | None = None,
    proven: bool = False,
) -> Solution | PreciseSolution | EnclosedSolution:
    """Kernels, responses and fluctuations of a network for given inputs.

    Parameters
    ----------
    network : ResidualNetwork, FeedForwardNetwork, BlockNetwork or of a family like them
        Its ``branch_scale`` and ``skip_scale`` may have leading batch axes.
    K0 : float or array_like
        Kernel of the input: a variance, an array of variances (a batch), or a covariance matrix
        (..., P, P) of P inputs. See `input_kernel`. A variance of zero is the limit of small ones:
        where φ jumps at zero, as sign(h) and Heaviside(h) do, averages do not see φ(0), but φ on
        either side, so that ⟨φ⟩ is the mean of both.
    convention : {"derivative", "F25"}
        "derivative": η, χ, χ^out and N G12 are derivatives by the kernel of the input, with
        η^(0) = 1 (F25 eq. (57)). "F25": they are N ⟨· C̃^(0)⟩ with ν_0 = d_in/N, from
        ``network.input_dim``, so that η^(0) = N/d_in (F25, after eq. (51)): N/d_in times the
        derivatives. Responses to other layers, kernels and fluctuations are the same.
    rtol : float
        Relative error that the integrals over signals have to reach, from 1e-14 to 0.1; the
        default is 1e-12. A larger one admits activations whose integrals converge slowly or
        cancel. Closed forms and series are as exact as they are. The terms of order 1/N of the
        means are found to 1e-10, those of order 1/N² to 1e-8, or to ``rtol`` where it is larger,
        of themselves or, where they nearly cancel, of 1e-5 of their natural size, powers of
        Var C/C*² times C*. At order 1/N² layers that add less than about 1e-5 of their kernel
        (ReLU, ``branch_scale=0.003``) are too close to one another if φ has kinks or is steep,
        which an error says.
    order : {1, 2}
        Up to which power of 1/N fields are defined; 2 for those of order 1/N².
    progress : bool
        Show progress bars on stderr while G11 and mean_shift of several inputs are computed.
    digits : int, optional
        From 16 to 1000: compute to so many digits with mpmath, for one input or two; see
        `PreciseSolution` for the fields. Floats are the binary fractions that they are; fractions,
        rational numbers of SymPy, those of mpmath and text such as "0.05" are exact, as K0 and as
        parameters of the network. Not with ``rtol`` or ``order=2``.
    proven : bool
        With ``digits``, any number of them: intervals that are proven to contain the values, in
        ball arithmetic; see `EnclosedSolution`. It needs python-flint, the extra ``proven``.

    Returns
    -------
    Solution
        A `PreciseSolution` with ``digits``, an `EnclosedSolution` if ``proven``.

    Raises
    ------
    TypeError, ValueError
        If K0 is not finite, not symmetric, not positive semidefinite or of the wrong shape, or
        another argument is not of the stated kind. From a field, if it is not defined for this K0,
        order or activation.
    QuadratureError
        From a field, if an average misses ``rtol``.

    Warns
    -----
    ValidityWarning
        From a field of order 1/N, if kernels of the hidden layers fluctuate by half of them, or a
        mean is shifted by half of the kernel, once each; or if the terms of order 1/N² exceed a
        tenth of those of order 1/N.

    Examples
    --------
    >>> import numpy as np
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20, branch_scale=0.3)
    >>> s = solve(net, 0.05)
    >>> round(float(s.output_response), 6)
    1.715363
    >>> round(float(solve(net, 0.05, convention="F25").output_response), 6)
    8.576814
    >>> s = solve(net.replace(width=50), 0.05, order=2)
    >>> mean = s.residual_kernels + s.mean_shift + s.mean_shift_2
    >>> variance = np.diagonal(s.G11) + s.variance_2
    >>> bool(s.order_ratio.max() < 0.1)
    True
    """
    checked = deep_network(network)
    validation.choice("convention", convention, CONVENTIONS)
    if digits is not None:
        for name, value, default in (("order", order, 1), ("rtol", rtol, DEFAULT_TOLERANCE)):
            if value != default:
                raise ValueError(f"{name} must be left out with digits, got {value!r}")
        if proven:
            # It needs python-flint.
            from fieldtheory.precision.enclosed_solution import enclosed_solution

            return enclosed_solution(checked, K0, digits, convention)
        from fieldtheory.numerics.precise_solution import precise_solution

        return precise_solution(checked, K0, digits, convention)
    if proven:
        raise ValueError("digits must be given with proven=True")
    kernel = validation.input_kernel_array("K0", K0)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    if not validation.is_order(order):
        raise ValueError(f"order must be 1 or 2, the highest power of 1/N, got {order!r}")
    return Solution(checked, kernel, convention, rtol, int(order), progress)
