"""Claims of PF.

S. Peluchetti, S. Favaro, Infinitely deep neural networks as diffusion processes (AISTATS 2020,
arXiv:1905.11065).
"""

from fieldtheory.literature import pf_experiments, pf_limits, pf_properties
from fieldtheory.literature.claim import Claim

PAPER = pf_limits.PAPER
CLAIMS: tuple[Claim, ...] = pf_limits.CLAIMS + pf_properties.CLAIMS + pf_experiments.CLAIMS
