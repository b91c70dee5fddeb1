"""Claims of SR.

S. Hayou, E. Clerico, B. He, G. Deligiannidis, A. Doucet, J. Rousseau, Stable ResNet (AISTATS 2021,
arXiv:2010.12859).
"""

from fieldtheory.literature import sr_kernels, sr_tangent
from fieldtheory.literature.claim import Claim

PAPER = sr_kernels.PAPER
CLAIMS: tuple[Claim, ...] = sr_kernels.CLAIMS + sr_tangent.CLAIMS
