"""Covariances of what the layers add to the kernels, from densities of one neuron."""

from __future__ import annotations

import numpy as np

from fieldtheory.numerics.neurons.interacting_neurons import Layers

# Layers whose factors are multiplied before they multiply the densities of earlier ones.
_TOGETHER = 16


def connected_squares(layers: Layers) -> np.ndarray:
    """⟨D(h^(k)) ; D(h^(l))⟩ of all layers, shape (L + 1, L + 1): S22/N without row and column 0.

    D_k is moved on from layer to layer, ⟨D_k ; D_l⟩ = D_l · P_0ᵀ ... P_0ᵀ D_k. Where P_0ᵀ is a
    product with factors, those of a few layers are multiplied first.
    """
    layers = list(layers)
    squares, earlier, start = np.zeros((len(layers), len(layers))), np.zeros((0, 0)), 0
    for l, (D, step) in enumerate(layers):
        if l == start:
            # The densities of the layers from there on, and what averages D of them.
            recent, averaging = np.empty((2, _TOGETHER, len(D.density)))
            factors = np.ones(len(D.density))
        last = l - start + 1
        recent[last - 1], averaging[last - 1] = D.density, D.averaging * factors
        squares[l, start : l + 1] = recent[:last] @ D.averaging
        # Products on nodes beyond the highest order belong to the square, too.
        squares[l, l] = D.square
        if step is not None and step.factors is not None and last < _TOGETHER:
            factors *= step.factors
            recent[:last] *= step.factors
            continue
        if start:
            squares[start : l + 1, :start] = averaging[:last] @ earlier.T
        if step is not None:
            densities = [earlier * factors, recent[:last]] if start else [recent[:last]]
            earlier = step.to_next(0, np.concatenate(densities).T).T
            start = l + 1
    return squares + np.tril(squares, -1).T


def sums_of_squares(layers: Layers, weights: np.ndarray) -> np.ndarray:
    """Σ_{k<=l} w_k ⟨D(h^(k)) ; D(h^(l))⟩ of all layers, shape (L + 1,), in O(L)."""
    sums, total = [], None
    for (D, step), weight in zip(layers, weights, strict=True):
        sums.append(weight * D.square)
        if total is not None:
            sums[-1] += D.averaging @ total
        added = weight * D.density
        total = added if total is None else total + added
        if step is not None:
            total = step.to_next(0, total)
    return np.array(sums)
