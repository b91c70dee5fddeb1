"""Explicit weights drawn by JAX, on the device that it finds: the law of `draw_weights`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fieldtheory.compiling.jax_functions import require_jax
from fieldtheory.montecarlo.draws import TILE_JAX, Draws, Inputs, neuron_products
from fieldtheory.montecarlo.forward import (
    affine,
    feature_functions,
    gram,
    psd_root,
    tile_size,
)
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.recursion import carried, residual_kernel


def draw_weights(
    network: LayeredNetwork, inputs: Inputs, generator: np.random.Generator, samples: int
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
    size = min(samples, tile_size(network.width * fan_in, TILE_JAX))
    tile = 1 << (size - 1).bit_length()
    layers, parameters = layer_coefficients(network), network.parameters
    scanned = {name: parameters.pop(name) for name in network.layer_parameters}
    scales = {
        "layers": scanned,
        "shared": parameters,
        "gamma": network.skip_scales,
        "a": layers.weights[1:],
        "c": layers.biases[1:],
    }
    psi = feature_functions(network, "jax")
    kind = inputs.data is None, inputs.across
    draw = _compiled(type(network).branch, psi, network.width, tile, *kind)
    words = generator.integers(2**32, size=(-(-samples // tile), 2), dtype=np.uint32)
    parts = [draw(key, data, scales) for key in words]
    found = Draws(*(np.concatenate(rows)[:samples] for rows in zip(*parts, strict=True)))
    for l, kernel in enumerate(found.residual.swapaxes(0, 1), 1):
        require_finite("a kernel", kernel, l)
    return found


@lru_cache(maxsize=32)
def _compiled(
    branch: Callable, psi: Callable, width: int, count: int, from_kernel: bool, across: bool
) -> Callable:
    """A function of the words of a key, of data and scales that returns the arrays of `Draws`.

    They are for ``count`` networks of the features ``psi``. ``data`` is a root of K0 where
    ``from_kernel``, else X.
    """
    import jax
    import jax.numpy as jnp

    def normal(key: Any, rows: int) -> Any:
        # Drawn in one line: of three axes XLA takes long to compile the index.
        return jax.random.normal(key, (count * rows * width,)).reshape(count, rows, width)

    def drawn(keys: Iterator, x: Any, weight_variance: Any, bias_variance: Any) -> Any:
        normals = normal(next(keys), x.shape[-1] + 1)
        deviations = jnp.sqrt(weight_variance), jnp.sqrt(bias_variance)
        return affine(x, normals[:, 1:], normals[:, :1], deviations)

    def found(h: Any, features: tuple, a: Any, c: Any) -> tuple[Any, Any, Any]:
        return residual_kernel(a, c, gram(*features)), *neuron_products(h, across)

    def networks(words: Any, data: Any, scales: dict[str, Any]) -> Any:
        layers, shared, a, c = (scales[name] for name in ("layers", "shared", "a", "c"))
        first, *rest = jax.random.split(
            jax.random.wrap_key_data(words, impl="threefry2x32"), 1 + len(scales["gamma"])
        )
        if from_kernel:
            h = data @ normal(first, data.shape[1])
        else:
            readin = (shared[f"readin_{kind}_variance"] for kind in ("weight", "bias"))
            h = drawn(iter([first]), data, *readin)

        def layer(h: Any, at: tuple) -> tuple[Any, Any]:
            key, own, gamma, a, c = at
            features = psi(h)
            # One key for every matrix that the layer draws.
            keys = (jax.random.fold_in(key, i) if i else key for i in itertools.count())
            residual = branch(features, partial(drawn, keys), shared | own)
            return carried(gamma, h, residual), found(h, features, a, c)

        steps = (jnp.stack(rest), layers, scales["gamma"], a[:-1], c[:-1])
        h, rows = jax.lax.scan(layer, h, steps)
        last = found(h, psi(h), a[-1], c[-1])
        joined = (jnp.concatenate([row, end[None]]) for row, end in zip(rows, last, strict=True))
        return [jnp.moveaxis(row, 0, 1) for row in joined]

    return jax.jit(networks)
