"""Critical residual networks: PDLT-B sections B.1 to B.3.

PDLT-B is appendix B, "Residual learning", of D. A. Roberts, S. Yaida, B. Hanin, The Principles of
Deep Learning Theory (2022).
"""

from fieldtheory.criticality.closure import (
    closure_four_point,
    closure_G11,
    closure_kernel_variance,
)
from fieldtheory.criticality.susceptibility import (
    Susceptibilities,
    component_kernels,
    kernel_components,
    susceptibilities,
)
from fieldtheory.criticality.universality import (
    CriticalPoint,
    EdgeOfChaos,
    critical_network,
    critical_point,
    edge_of_chaos,
)
from fieldtheory.criticality.vertex_growth import (
    closure_deficit,
    optimal_aspect_ratio,
    optimal_skip_scale,
    vertex_slope,
)

__all__ = [
    "CriticalPoint",
    "EdgeOfChaos",
    "Susceptibilities",
    "closure_G11",
    "closure_deficit",
    "closure_four_point",
    "closure_kernel_variance",
    "component_kernels",
    "critical_network",
    "critical_point",
    "edge_of_chaos",
    "kernel_components",
    "optimal_aspect_ratio",
    "optimal_skip_scale",
    "susceptibilities",
    "vertex_slope",
]
