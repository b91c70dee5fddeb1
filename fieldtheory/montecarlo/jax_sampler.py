"""Explicit weights drawn by JAX, on the device that it finds: the law of `draw_weights`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from fieldtheory.averages.steps import pieces
from fieldtheory.compiling.functions import lambdify
from fieldtheory.compiling.jax_functions import require_jax
from fieldtheory.montecarlo.samplers import TILE_JAX, Draws, Inputs, psd_root
from fieldtheory.networks import activations
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.finite import require_finite


def draw_weights(
    network: ResidualNetwork, inputs: Inputs, generator: np.random.Generator, samples: int
) -> Draws:
    """Draw all weights and biases of networks with JAX, in float64.

    Parameters, returns and errors are those of `samplers.draw_weights`. The numbers are others:
    ``generator`` gives the keys of JAX's generator. They may differ in rounding between devices.

    Raises
    ------
    ImportError
        If JAX is not installed.
    ValueError
        If it computes in float32.
    """
    require_jax()

    data = psd_root(inputs.kernel) if inputs.data is None else inputs.data
    fan_in = max(network.width, *data.shape)
    # Powers of two, for few compilations; the networks beyond ``samples`` are dropped.
    size = min(samples, max(1, TILE_JAX // (network.width * fan_in)))
    tile = 1 << (size - 1).bit_length()
    layers = layer_coefficients(network)
    scales = {
        "rho": np.asarray(network.branch_scales),
        "gamma": np.asarray(network.skip_scales),
        "a": layers.weights[1:],
        "c": layers.biases[1:],
        "hidden": np.sqrt([network.weight_variance, network.bias_variance]),
        "readin": np.sqrt(network.readin_variances),
    }
    draw = _compiled(network.activation, network.width, tile, inputs.data is None)
    words = generator.integers(2**32, size=(-(-samples // tile), 2), dtype=np.uint32)
    parts = [draw(key, data, scales) for key in words]
    found = Draws(*(np.concatenate(rows)[:samples] for rows in zip(*parts, strict=True)))
    for l, kernel in enumerate(found.residual.swapaxes(0, 1), 1):
        require_finite("a kernel", kernel, l)
    return found


@lru_cache(maxsize=32)
def _compiled(activation: Activation, width: int, count: int, from_kernel: bool) -> Callable:
    """A function of the words of a key, of data and scales that returns the arrays of `Draws`.

    They are for ``count`` networks. ``data`` is a root of K0 where ``from_kernel``, else X.
    """
    import jax
    import jax.numpy as jnp

    phi = lambdify([activations.h], pieces(activation.expression, [activations.h]), "jax")

    def normal(key: Any, rows: int) -> Any:
        # Drawn in one line: of three axes XLA takes long to compile the index.
        return jax.random.normal(key, (count * rows * width,)).reshape(count, rows, width)

    def affine(key: Any, x: Any, deviations: Any) -> Any:
        fan_in = x.shape[-1]
        normals = normal(key, fan_in + 1)
        weight, bias = deviations
        return weight / np.sqrt(fan_in) * (x @ normals[:, 1:]) + bias * normals[:, :1]

    def gram(x: Any) -> Any:
        return x @ x.swapaxes(1, 2) / width

    def found(h: Any, activity: Any, a: Any, c: Any) -> tuple[Any, Any, Any]:
        mean = gram(h)
        spread = (gram(h * h) - mean**2) * (width / max(width - 1, 1))
        return a * gram(activity) + c, mean, spread

    def networks(words: Any, data: Any, scales: dict[str, Any]) -> Any:
        first, *rest = jax.random.split(
            jax.random.wrap_key_data(words, impl="threefry2x32"), 1 + len(scales["rho"])
        )
        if from_kernel:
            h = data @ normal(first, data.shape[1])
        else:
            h = affine(first, data, scales["readin"])

        def layer(h: Any, at: tuple) -> tuple[Any, Any]:
            key, rho, gamma, a, c = at
            activity = phi(h)
            h_next = gamma * h + rho * affine(key, activity, scales["hidden"])
            return h_next, found(h, activity, a, c)

        a, c = scales["a"], scales["c"]
        steps = (jnp.stack(rest), scales["rho"], scales["gamma"], a[:-1], c[:-1])
        h, rows = jax.lax.scan(layer, h, steps)
        last = found(h, phi(h), a[-1], c[-1])
        joined = (jnp.concatenate([row, end[None]]) for row, end in zip(rows, last, strict=True))
        return [jnp.moveaxis(row, 0, 1) for row in joined]

    return jax.jit(networks)
