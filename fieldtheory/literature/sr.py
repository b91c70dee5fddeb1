"""Claims of SR.

S. Hayou, E. Clerico, B. He, G. Deligiannidis, A. Doucet, J. Rousseau, Stable ResNet (AISTATS 2021,
arXiv:2010.12859).
"""

from fieldtheory.literature import (
    sr_inference,
    sr_kernels,
    sr_limits,
    sr_tangent,
    sr_universality,
)
from fieldtheory.literature.claim import Claim

PAPER = sr_kernels.PAPER
CLAIMS: tuple[Claim, ...] = (
    sr_kernels.CLAIMS
    + sr_tangent.CLAIMS
    + sr_limits.CLAIMS
    + sr_universality.CLAIMS
    + sr_inference.CLAIMS
)
