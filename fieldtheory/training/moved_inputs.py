"""Responses of single networks, as trained, to inputs moved in directions that they do not use."""

from __future__ import annotations

from typing import Any

import torch

from fieldtheory.training.modules import TorchNetwork


def measure_response(module: TorchNetwork, X: Any, direction: Any) -> torch.Tensor:
    """η_αβ^(l) = ∂²C_αβ^(l)/∂ε_α∂ε_β over that of C^(0), for inputs x_α + ε_α v: by derivatives.

    Where v is orthogonal to all inputs, those of the training too, the mean over networks is the
    response of the covariance of two inputs at every width, before training and after it (F25
    section III.4 measures it by finite differences); for α = β of two inputs at one place.

    Parameters
    ----------
    module : TorchNetwork
    X : array_like, shape (P, d)
    direction : array_like, shape (d,)
        v.

    Returns
    -------
    torch.Tensor, shape ([n,] L + 2, P, P)
        Last that of the output.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> from fieldtheory.training import torch_module
    >>> module = torch_module(ft.ResidualNetwork(depth=2, width=20, input_dim=3), seed=0)
    >>> measure_response(module, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.0, 0.0, 1.0]).shape
    torch.Size([4, 2, 2])
    """
    x, v = (torch.as_tensor(each, dtype=module.readin.weight.dtype) for each in (X, direction))
    moves = v.expand_as(x)

    def features(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(psi for _, psi in module._layers(x))

    changes = torch.func.jvp(features, (x,), (moves,))[1]
    (readin, _), *layers = module._coefficients()
    first, rows = readin * (v @ v) / len(v), zip(layers, changes, strict=True)
    later = [a * (d @ d.mT) / d.shape[-1] / first for (a, _), d in rows]
    return torch.stack([torch.ones_like(later[0]), *later], dim=-3).detach()
