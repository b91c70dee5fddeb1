"""The claims of S. Peluchetti, S. Favaro, Infinitely deep neural networks as diffusion processes.

AISTATS 2020, arXiv:1905.11065; PF in the tables.
"""

from fieldtheory.diffusions.pf_claims import pf_experiments, pf_limits, pf_properties

CLAIMS = (*pf_limits.CLAIMS, *pf_properties.CLAIMS, *pf_experiments.CLAIMS)
