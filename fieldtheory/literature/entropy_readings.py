"""Two readings of the maximum-entropy condition of F25 beside the optimum of the response."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from fieldtheory.literature import f25_entropy
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.layer_averages.entries import entries
from fieldtheory.scaling.maximum_entropy import VARIANCE, divergence_formula
from fieldtheory.scaling.output_variance import optimal_output_variance


@dataclass(frozen=True)
class Reading:
    """One reading of the maximum-entropy condition for φ = erf.

    Parameters
    ----------
    condition : str
        ∂D_KL/∂σ² = 0 as it is read.
    variance : float
        The σ² that solves it.
    divergence, slope : float
        D_KL and ∂D_KL/∂σ² at that σ², of F25 eq. (141).
    relative_response : float
        Response of a deep network that ends at that σ², relative to the largest one.
    """

    condition: str
    variance: float
    divergence: float
    slope: float
    relative_response: float

    @property
    def holds(self) -> bool:
        """Whether the divergence is stationary there."""
        return self.slope == 0


@dataclass(frozen=True)
class MaximumEntropyReport:
    """Both readings of F25 eq. (142) beside the optimum of the response.

    Parameters
    ----------
    printed : Reading
        1/σ² − 1/(4σ⁴) = 0, as in F25 eq. (142).
    differentiated : Reading
        The derivative of F25 eq. (141).
    output_variance : float
        K*_out of the network, see `optimal_output_variance`.
    """

    printed: Reading
    differentiated: Reading
    output_variance: float

    @property
    def verdict(self) -> str:
        """What the numbers say, in two sentences."""
        printed, right = self.printed, self.differentiated
        return (
            f"D_KL is smallest at σ² = {right.variance:g}, where it is {right.divergence:g}; at "
            f"σ² = {printed.variance:g}, as F25 (142) has it, it is {printed.divergence:.4g} and "
            f"changes by {printed.slope:g} per unit of σ². The response is largest at "
            f"K*_out = {self.output_variance:.4g}; it reaches {printed.relative_response:.2%} of "
            f"that at σ² = {printed.variance:g} and {right.relative_response:.2%} at "
            f"σ² = {right.variance:g}."
        )


def maximum_entropy_report(network: ResidualNetwork) -> MaximumEntropyReport:
    """Evaluate both readings of F25 eq. (142) and set them beside the optimum of the response.

    Parameters
    ----------
    network : ResidualNetwork
        With φ = erf. Only its σ²_b/σ²_w matters, for the response.

    Returns
    -------
    MaximumEntropyReport

    Raises
    ------
    ValueError
        For another activation, or if `optimal_output_variance` raises.

    Notes
    -----
    σ² = 1/4 is not the condition of maximum entropy. It is that of the dynamic range, (V/2)² with
    V = 1, and works because the response M'(K) [σ²_w M(K) + σ²_b] of a deep network has its
    maximum K*_out close by: 0.3054 without biases, 1/4 at σ²_b/σ²_w = 0.0409.

    Examples
    --------
    >>> report = maximum_entropy_report(ResidualNetwork(depth=1, bias_variance=0.0))
    >>> report.printed.variance, report.printed.slope, report.differentiated.slope
    (0.25, -2.0, 0.0)
    >>> round(report.output_variance, 4), round(report.printed.relative_response, 4)
    (0.3054, 0.989)
    """
    if network.activation != as_activation("erf"):
        raise ValueError(
            f"network must have the activation erf of F25 (142), got {network.activation.name}"
        )
    best = optimal_output_variance(network)
    formula = divergence_formula()
    slope = sp.diff(formula, VARIANCE)

    def reading(condition: sp.Expr) -> Reading:
        (variance,) = sp.solve(condition, VARIANCE)
        return Reading(
            condition=f"{condition} = 0",
            variance=float(variance),
            divergence=float(formula.subs(VARIANCE, variance)),
            slope=float(slope.subs(VARIANCE, variance)),
            relative_response=_deep_response(network, float(variance))
            / _deep_response(network, best),
        )

    return MaximumEntropyReport(reading(f25_entropy.SLOPE), reading(slope), best)


def _deep_response(network: ResidualNetwork, K: float) -> float:
    """M'(K) [σ²_w M(K) + σ²_b], the response of a deep network that ends at K, up to a factor."""
    averages = entries(network.activation)
    rate = network.weight_variance * averages.second_moment(K) + network.bias_variance
    return float(averages.susceptibility(K) * rate)
