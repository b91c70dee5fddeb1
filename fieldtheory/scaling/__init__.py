"""The optimal scaling of the residual branch: exact, by saturation, and in the deep limit."""

from fieldtheory.scaling.optimum import optimal_scaling

__all__ = ["optimal_scaling"]
