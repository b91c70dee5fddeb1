"""What samplers are given and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.forward import gram

# Most numbers in one array for JAX: enough for a GPU, 128 MiB.
TILE_JAX = 2**24


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the networks are fed: the kernel K0 (P, P), and the data X (P, d) where it is given."""

    kernel: np.ndarray
    data: np.ndarray | None = None


class Draws(NamedTuple):
    """Random kernels of n networks.

    ``residual`` (n, L+1, P, P) are C^(1), ..., C^(L+1). Of the products h_iα h_iβ of the neurons i
    in the layers 0, ..., L, ``second`` (n, L+1, P, P) are the means over i, and ``spread`` the
    unbiased variances over i (0 for one neuron).
    """

    residual: np.ndarray
    second: np.ndarray
    spread: np.ndarray


def neuron_products(h: Any) -> tuple[Any, Any]:
    """Mean and unbiased variance of h_iα h_iβ over the neurons i, (n, P, N) -> (n, P, P) each."""
    mean, width = gram(h), h.shape[-1]
    return mean, (gram(h * h) - mean**2) * (width / max(width - 1, 1))
