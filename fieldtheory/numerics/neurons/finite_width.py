"""The coefficients of 1/N and 1/N² of a network, with as many modes, waves or nodes as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio, require_finite
from fieldtheory.numerics.neurons.hermite_modes import Modes, observables, overlooks, square_of
from fieldtheory.numerics.neurons.interacting_neurons import (
    FirstOrder,
    Layers,
    SecondOrder,
    first_order,
    second_order,
)
from fieldtheory.numerics.neurons.neurons_in_modes import in_modes
from fieldtheory.numerics.neurons.neurons_in_waves import grids_of, in_waves
from fieldtheory.numerics.neurons.neurons_on_nodes import nodes_needed, on_nodes
from fieldtheory.numerics.substitution import accumulate

# Relative errors that are asked for unless ``rtol`` is larger.
_AT_FIRST, SECOND_TOLERANCE = 1e-10, 1e-8
# Modes to start with, and the most: of smooth functions, and of those with kinks at first order,
# where the high orders follow from the kinks. Where there are more than a few, waves are faster.
_FEWEST, _FEW, _MOST, _MOST_OF_KINKS = 128, 512, 4096, 1 << 13
# Squares of numbers of modes that take as long as one node, at second order.
_AS_LONG = 2500
# What is left out of the waves of φ², and how far they reach, in deviations of the signals; widths
# of panels, in deviations of the noise, and their nodes. They are tried one after the other: what
# two of them differ by is taken as the error of the finer one.
_WAVES = (1e-8, 8.5), (1e-10, 9.5), (1e-13, 10.5), (1e-16, 11.5)
_PANELS = (8.0, 19), (8.0, 20), (8.0, 24), (4.0, 20), (2.0, 20), (1.0, 20)
# The most nodes of a layer, in networks of any depth and of few layers, and of all layers.
_NODES_OF_ANY, _MOST_NODES, _NODES_OF_ALL = 1 << 15, 1 << 17, 1 << 23
# Nodes that are faster than modes of φ with kinks that have their own place in every layer, and of
# what is narrower than this part of a deviation of the signals.
_FEW_NODES, _NARROW = 4096, 1 / 12
# Errors that one may want to take.
_ACCEPTABLE = 0.05
# Of the sums over the orders left out; what the last ones add where it is rounding, relatively.
_SAFETY, _ROUNDING = 4.0, 1e-15
# Corrections smaller than this times their natural size are compared with that.
_NATURAL = 1e-5


def at_first_order(
    network: LayeredNetwork, layers: LayerCoefficients, kernels: tuple[np.ndarray, np.ndarray]
) -> FirstOrder:
    """The coefficients of 1/N.

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    kernels : pair of ndarray, shape (L + 2,)
        C*^(l) and K*^(l).

    Returns
    -------
    FirstOrder

    Raises
    ------
    QuadratureError
        If neither modes nor nodes find the result to 1e-10, or to ``rtol``.
    """
    C, K = kernels
    kinks, waves = bool(square_of(network).kinks), _fit(network, kernels)
    most = _MOST_OF_KINKS if kinks else _FEW if waves else _MOST
    allowed = max(tolerance(), _AT_FIRST)

    # Signals of small branches hardly fluctuate, and means are shifted by no more than they do.
    share = ratio(accumulate(layers.skips[:-1], np.append(0.0, C[1:-1])), K[:-1])

    def scales(found: FirstOrder) -> list[np.ndarray]:
        q = np.abs(found.variance)
        return [np.abs(found.shift) + _NATURAL * share * ratio(q, C[1:]), q]

    def compute(count: int) -> FirstOrder:
        return first_order(in_modes(network, layers, K[:-1], count))

    square = square_of(network)
    aside = any(square.kinks) or square.steep[1] < _NARROW * np.sqrt(K[:-1].max())
    if aside and nodes_needed(kernels, *_PANELS[1]) <= _FEW_NODES:
        found, failures = _converged(first_order, network, layers, kernels, scales, allowed)
        if not any(failures):
            return found
    start = _start(network, layers, kernels, allowed, most)
    if start <= most or kinks:
        found, failures = _resolved(compute, scales, min(start, most), most, allowed)
        if not any(failures):
            return found
    found, failures = _converged(first_order, network, layers, kernels, scales, allowed)
    if any(failures):
        raise QuadratureError(next(filter(None, failures)))
    return found


def at_second_order(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    kernels: tuple[np.ndarray, np.ndarray],
    variance: np.ndarray,
) -> tuple[SecondOrder, tuple[str, ...]]:
    """The coefficients of 1/N², and which of them are not resolved.

    Parameters
    ----------
    network, layers, kernels
        As in `at_first_order`.
    variance : ndarray, shape (L + 2,)
        N Var C^(l) to order 1/N.

    Returns
    -------
    found : SecondOrder
    failures : tuple of str
        For the shift, the variance and the third cumulant: why it misses 1e-8, or ``rtol``; empty
        if it does not.
    """
    C, K = kernels
    allowed = max(tolerance(), SECOND_TOLERANCE)
    with np.errstate(over="ignore"):
        q2 = variance[1:] ** 2
    if not np.isfinite(q2).all():
        layer = int(np.argmin(np.isfinite(q2))) + 1
        raise QuadratureError(f"squares of variances exceed float64 from layer {layer} on")

    def scales(found: SecondOrder) -> list[np.ndarray]:
        sizes = [np.abs(values) for values in found[:3]]
        return [size + _NATURAL * ratio(q2, C[1:] ** (3 - k)) for k, size in enumerate(sizes)]

    def compute(count: int) -> SecondOrder:
        return second_order(in_modes(network, layers, K[:-1], count))

    if not square_of(network).kinks:
        nodes = nodes_needed(kernels, *_PANELS[1])
        most = _FEW if _fit(network, kernels) else _MOST
        # Orders that resolve 1/N to 1e-10 nearly always resolve 1/N² to 1e-8.
        start = _start(network, layers, kernels, _AT_FIRST, most)
        if start <= most and (start**2 <= _AS_LONG * nodes or nodes > _MOST_NODES):
            found, failures = _resolved(compute, scales, start, most, allowed)
            if not any(failures):
                return found, failures
    return _converged(second_order, network, layers, kernels, scales, allowed)


def resummed(
    C: np.ndarray, shift: np.ndarray, variance: np.ndarray, shift_2: np.ndarray, more: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """⟨C⟩ and Var C from the logarithms of the first two moments, expanded to order 1/N².

        ln(⟨C⟩/C*) = m_1 + m_2 − m_1²/2,    ln(⟨C²⟩/⟨C⟩²) = v_1 + v_2 − 2 m_1 v_1 − v_1²/2

    with m and v the terms of (⟨C⟩ − C*)/C* and Var C/C*².

    Parameters
    ----------
    C, shift, variance, shift_2, more : ndarray, shape (L + 2,)
        C*, and the terms of order 1/N and 1/N² of the mean and of the variance.

    Raises
    ------
    OverflowError
        If a moment exceeds the range of float64.
    """
    m1, m2, v1, v2 = (
        ratio(x, C**k) for x, k in ((shift, 1), (shift_2, 1), (variance, 2), (more, 2))
    )
    with np.errstate(over="ignore", invalid="ignore"):
        mean = C * np.exp(m1 + m2 - m1**2 / 2)
        spread = mean**2 * np.expm1(v1 + v2 - 2 * m1 * v1 - v1**2 / 2)
    for name, values in (("resummed_mean", mean), ("resummed_variance", spread)):
        for layer, value in enumerate(values):
            require_finite(name, value, layer)
    return mean, spread


def _fit(network: LayeredNetwork, kernels: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether waves serve: of two numbers of them errors show."""
    return all(grids_of(network, kernels, *limits) for limits in _WAVES[:2])


def _start(
    network: LayeredNetwork,
    layers: LayerCoefficients,
    kernels: tuple[np.ndarray, np.ndarray],
    allowed: float,
    most: int,
) -> int:
    """A number of orders to start with, from the coefficients at the largest kernel alone.

    More than ``most`` if it takes more.
    """
    count, square, (C, K) = _FEWEST, square_of(network), kernels
    widest = int(np.argmax(K[:-1]))
    # Tables of more orders than are taken fill the memory.
    while count <= most:
        (D,) = observables(square, np.ones(1), K[[widest]], count)
        assert isinstance(D.space, Modes)
        g = square.function(np.sqrt(K[widest]) * D.space.nodes)
        if overlooks(layers, C, widest, g, D.space.roots**2):
            count *= 2
            continue
        # Order 1/N takes two derivatives, which grow as n.
        terms = np.arange(len(D.coefficients)) * D.coefficients**2
        near, last = D.space.windows(terms)
        if last <= allowed * terms.sum():
            return count
        wanted = _enough(count, last / near, allowed * float(terms.sum()) / last)
        if wanted < 2 * count or square.kinks:
            return wanted
        count = wanted
    return count


def _resolved(
    compute: Callable[[int], Any],
    scales: Callable[[Any], list[np.ndarray]],
    count: int,
    most: int,
    allowed: float,
) -> tuple[Any, tuple[str, ...]]:
    """A result with enough modes, as the last ones tell, and what each quantity still misses."""
    while True:
        found = compute(count)
        scale = np.stack(scales(found), axis=-1)
        # Errors of a layer go on to all later ones.
        near, last = np.moveaxis(np.cumsum(found.windows, axis=0), -1, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            fall = np.where(near > 0, last / near, 0.0)
            left_out = np.where(fall < 1, _SAFETY * last * fall / (1 - fall), np.inf)
            # Rounding does not fall off.
            left_out = np.where(last <= _ROUNDING * scale, last, left_out)
            error = np.where(scale > 0, left_out / scale, 0.0)
        error = np.maximum(error, found.missed[:, None])
        worst = np.unravel_index(np.argmax(error), error.shape)
        if error[worst] <= allowed or count >= most:
            return found, tuple(
                _failure(f"{count} Hermite modes", of_one, allowed) for of_one in error.T
            )
        count = min(_enough(count, float(fall[worst]), allowed / error[worst]), most)


def _converged(
    compute: Callable[[Layers], Any],
    network: LayeredNetwork,
    layers: LayerCoefficients,
    kernels: tuple[np.ndarray, np.ndarray],
    scales: Callable[[Any], list[np.ndarray]],
    allowed: float,
) -> tuple[Any, tuple[str, ...]]:
    """A result of waves or on nodes, as many as it takes, and what each quantity still misses."""
    waves = None
    if _fit(network, kernels):
        chains = _chains_of_waves(network, layers, kernels)
        waves = _compared(compute, chains, scales, allowed)
        if not any(waves[1]):
            return waves
    most, limit = nodes_needed(kernels, *_PANELS[1]), _most_nodes(network.depth)
    if most <= limit:
        return _compared(compute, _chains_of_nodes(network, layers, kernels), scales, allowed)
    if waves is not None:
        return waves
    raise QuadratureError(
        f"{most} nodes are needed, allowed are {limit}: layers that add so little "
        "are too close to one another for an activation that is steep or has kinks"
    )


def _most_nodes(depth: int) -> int:
    """Of a layer: more in shallow networks, whose layers take seconds each."""
    return max(_NODES_OF_ANY, min(_MOST_NODES, _NODES_OF_ALL // (depth + 1)))


def _chains_of_waves(
    network: LayeredNetwork, layers: LayerCoefficients, kernels: tuple[np.ndarray, np.ndarray]
) -> Iterator[tuple[str, Layers]]:
    """The layers on more and more waves, and how many there are."""
    for limits in _WAVES:
        grids = grids_of(network, kernels, *limits)
        if grids is None:
            return
        most = max(grid.count for grid in grids)
        yield f"waves of {most} lengths", in_waves(network, layers, kernels, grids)


def _chains_of_nodes(
    network: LayeredNetwork, layers: LayerCoefficients, kernels: tuple[np.ndarray, np.ndarray]
) -> Iterator[tuple[str, Layers]]:
    """The layers on more and more nodes, and how many there are."""
    for panels in _PANELS:
        count = nodes_needed(kernels, *panels)
        if count > _MOST_NODES:
            return
        yield f"{count} nodes", on_nodes(network, layers, kernels, *panels)


def _compared(
    compute: Callable[[Layers], Any],
    chains: Iterable[tuple[str, Layers]],
    scales: Callable[[Any], list[np.ndarray]],
    allowed: float,
) -> tuple[Any, tuple[str, ...]]:
    """The first result that hardly differs from the one before, and what each quantity misses."""
    found: Any = None
    for what, chain in chains:
        rough, found = found, compute(chain)
        if rough is None:
            continue
        scale = np.stack(scales(found))
        change = np.abs(np.stack(found[: len(scale)]) - np.stack(rough[: len(scale)]))
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.where(scale > 0, change / scale, 0.0)
        errors = np.maximum(errors, found.missed)
        failures = tuple(_failure(what, of_one, allowed) for of_one in errors)
        if not any(failures):
            break
    return found, failures


def _failure(what: str, errors: np.ndarray, allowed: float) -> str:
    """What is wrong with the errors of the layers, empty if nothing is."""
    layer = int(np.argmax(errors))
    error = float(errors[layer])
    if error <= allowed:
        return ""
    said = (
        f"{what} leave a relative error of {error:.1g} in layer {layer + 1}, "
        f"allowed is {allowed:.1g}"
    )
    if error < _ACCEPTABLE:
        return f"{said}; solve(..., rtol={2 * error:.1g}) takes it"
    return f"{said}: the activation is too steep, or the layers are too close to one another"


def _enough(count: int, fall: float, wanted: float) -> int:
    """Orders at which terms that fall off as exp(−τ√n) are smaller by a factor ``wanted``."""
    if not 0 < fall < 0.5:
        return 2 * count
    tau = -np.log(fall) / (np.sqrt(7 / 8 * count) - np.sqrt(5 / 8 * count))
    more = np.sqrt(count) - np.log(wanted / _SAFETY) / tau
    return int(np.clip(32 * np.ceil(more**2 / 32), 1.25 * count, 4 * count))
