"""Claims of PDLT-B, appendix B, "Residual learning".

D. A. Roberts, S. Yaida, B. Hanin, The Principles of Deep Learning Theory (2022, arXiv:2106.10165).
"""

from fieldtheory.literature import pdlt_kernels, pdlt_vertex
from fieldtheory.literature.claim import Claim

PAPER = pdlt_kernels.PAPER
CLAIMS: tuple[Claim, ...] = pdlt_kernels.CLAIMS + pdlt_vertex.CLAIMS
