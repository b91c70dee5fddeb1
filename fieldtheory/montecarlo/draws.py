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
    """What the networks are fed: the kernel K0 (P, P), and the data X (P, d) where it is given.

    ``across`` asks for the spread of different pairs of inputs as well, see `Draws`.
    """

    kernel: np.ndarray
    data: np.ndarray | None = None
    across: bool = False


class Draws(NamedTuple):
    """Random kernels of n networks.

    ``residual`` (n, L+1, P, P) are C^(1), ..., C^(L+1). Of the products h_iα h_iβ of the neurons i
    in the layers 0, ..., L, ``second`` (n, L+1, P, P) are the means over i, and ``spread`` the
    unbiased variances over i (0 for one neuron), or the covariances (n, L+1, p, p) of all
    p = P(P+1)/2 pairs of inputs.
    """

    residual: np.ndarray
    second: np.ndarray
    spread: np.ndarray


def neuron_products(h: Any, across: bool = False) -> tuple[Any, Any]:
    """Mean and unbiased variance of h_iα h_iβ over the neurons i, (n, P, N) -> (n, P, P) each.

    With ``across`` the covariances of all pairs of inputs, (n, p, p), in place of the variances.
    """
    mean, width = gram(h), h.shape[-1]
    unbiased = width / max(width - 1, 1)
    if not across:
        return mean, (gram(h * h) - mean**2) * unbiased
    first, second = np.triu_indices(h.shape[-2])
    of_pairs = mean[..., first, second]
    squares = of_pairs[..., :, None] * of_pairs[..., None, :]
    return mean, (gram(h[..., first, :] * h[..., second, :]) - squares) * unbiased
