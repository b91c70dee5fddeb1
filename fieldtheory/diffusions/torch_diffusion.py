"""Diffusion networks as torch modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from fieldtheory import validation
from fieldtheory.training.modules import Affine, TorchNetwork, torch_function


class TorchDiffusion(TorchNetwork):
    """x_{l+1} = x_l + φ(W_l ψ(x_l) + b_l), x_0 = W_I z, y = W_O x_L (PF eq. (7), section 4.3)."""

    @classmethod
    def inputs_of(cls, network: Any, inputs: int | None) -> int:
        """The inputs, which have to be given."""
        if network.depth is None or network.parameter_law or inputs is None:
            raise ValueError(
                "a DiffusionNetwork must have a finite depth and independent parameters, and needs "
                f"inputs, got {validation.excerpt(network)}, inputs={inputs!r}"
            )
        return inputs

    def _variances(self, inputs: int) -> tuple[tuple[float, float], tuple[float, float]]:
        # Of the entries of W_I and W_O, 1; times fan-in, as all here.
        return (inputs, 0.0), (self.network.width, 0.0)

    def _branch(self, l: int, affine: Callable[..., Affine]) -> torch.nn.Module:
        net = self.network
        layer = net.weight_variance * net.step, net.bias_variance * net.step
        return affine(net.width, net.width, layer)

    def _layers(self, X: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        x, psi = self.readin(self._tensor(X)), torch_function(self.network.input_activation)
        for layer in self.layers:
            yield x, x
            x = x + self.phi(layer(psi(x)))
        yield x, x

    def residual_kernels(self, X: Any) -> torch.Tensor:
        """Refused: what a layer adds is no covariance of its own."""
        raise ValueError("a DiffusionNetwork has no residual kernels")

    kernels = residual_kernels
