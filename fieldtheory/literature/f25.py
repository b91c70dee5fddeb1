"""Claims of F25.

K. Fischer, D. Dahmen, M. Helias, Field theory for optimal signal propagation in ResNets (2025,
arXiv:2305.07715).
"""

from fieldtheory.literature import f25_entropy, f25_scaling, f25_theory
from fieldtheory.literature.claim import Claim

PAPER = f25_theory.PAPER
CLAIMS: tuple[Claim, ...] = f25_theory.CLAIMS + f25_scaling.CLAIMS + f25_entropy.CLAIMS
