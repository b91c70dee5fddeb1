"""The optimal scaling of the residual branch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.averages.routes import relative_tolerance
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.family import (
    DeepNetwork,
    LayeredNetwork,
    checked_network,
    deep_network,
)
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.precision.layer_recursion import exact_kernel
from fieldtheory.scaling import deep_covariance, exact, output_variance, responses, saturation

# Pairs of inputs, times networks, that are solved together.
_AT_ONCE = 1024
# Relative differences of variances that are rounding, and the p + q − 2r of two inputs, relative to
# p + q, below which rounding of K0 moves ρ* of the pair by 1e-4 and more: they are equal.
_ROUNDING, _EQUAL = 1e-14, 1e-12
# The arguments that not every method takes, and the methods that take them.
_ONLY = {
    "dynamic_range": ("saturation", "large_depth"),
    "slope": ("saturation", "large_depth"),
    "order": ("deep_limit",),
}
# A room that builds on this one, loaded by its name as those of families are.
_AFTER_LABELS = "fieldtheory.inference.learned_scaling"


class _Asked(NamedTuple):
    """What is asked for: networks of features ψ(h), or one of another family, and its inputs."""

    networks: list[Any]
    layered: bool
    K0: Any
    kernel: np.ndarray
    method: str
    dynamic_range: float
    slope: float | None
    order: int
    rtol: float
    progress: bool
    digits: int
    labels: Any
    noise_variance: float | None


@named_arguments
def optimal_scaling(
    network: DeepNetwork | Sequence[LayeredNetwork],
    K0: Any,
    method: str = "response",
    dynamic_range: float | None = None,
    slope: float | None = None,
    order: int | None = None,
    rtol: float = DEFAULT_TOLERANCE,
    progress: bool = False,
    digits: int | None = None,
    proven: bool = False,
    labels: Any = None,
    noise_variance: float | None = None,
) -> Any:
    """The residual scaling ρ*, one for all layers, with the largest response of the output.

    "response" is exact: ρ* = argmax χ^out(ρ), the root of the derivative of the recursion of F25
    eqs. (51)-(55), found by a bracketing root finder around the highest maximum on a grid, for all
    networks and entries of the kernel at once. "saturation" is F25 eq. (67), the scaling at which
    the linearised signal fills the dynamic range, K^(L) = (V/2)²; "large_depth" its form (68) for
    L → ∞, up to O(L^{-3/2}). "deep_limit" is exact for L → ∞,

        ρ* = c*/√L,   c*² = ∫ dK/F(K) from K^(0) to K*_out,   F = σ²_w M + σ²_b

    for a variance (see `optimal_output_variance`), the time to the largest response along the flow
    of two inputs for a covariance; up to O(L^{-3/2}), for ``order=2`` up to O(L^{-5/2}).

    Parameters
    ----------
    network : LayeredNetwork or sequence of them
        ``branch_scale`` is ignored. Several networks, of one activation, are solved at once. One
        `BlockNetwork` has the method "response": behind a norm with ε = 0, which fixes its
        variance, one input has no ρ*, and mostly none without a norm, where the output is linear
        in a stream that grows with ρ. In a matrix such variances are NaN, with a warning.
    K0 : float or array_like, shape (P,) or (..., P, P)
        Kernel of the input: a variance, several variances, or covariance matrices.
    method : {"response", "saturation", "large_depth", "deep_limit"}
        All but the first need γ = 1; "saturation" and "large_depth" are for variances.
    dynamic_range : float, optional
        V of the activation, for "saturation" and "large_depth" only; 1 if left out.
    slope : float, optional
        Slope of the linearised activation, for the same two only; φ'(0) if left out. F23 eq. (8) is
        ``slope=1``.
    order : {1, 2}, optional
        For "deep_limit" only: 1, as if left out, for c*/√L, 2 with the correction of relative
        order 1/L.
    digits : int, optional
        With ``proven=True``: digits of the interval.
    proven : bool
        For one network and one variance, by "response" or "deep_limit" of order 1: an interval, a
        ball ``flint.arb``. Of "response" the derivative of χ^out is proven to be positive at its
        lower and negative at its upper end, so that a local maximum lies in it; of "deep_limit"
        c*/√L of the maximum K*_out that `optimal_output_variance` proves. That they are the
        global maxima is not proven. It needs python-flint, the extra ``proven``.
    labels : array_like, shape (P,) or (P, d), optional
        Of the first P inputs of a matrix K0, for one network: ρ* to order 1/N of networks that
        learned them, of the ``output_response`` of `posterior`. N(ρ* with labels less ρ* without)
        is a coefficient of 1/N, from sampled paths with an error of some 5 to 20 %.
    noise_variance : float, optional
        κ > 0 of the labels.

    Returns
    -------
    float or ndarray, shape of K0, or flint.arb if proven
        ρ* of the variance, or of every entry of the kernel, with a first axis for several networks.
        It is 0 where the response falls from ρ = 0 on, at every depth, as for inputs with
        K^(0) >= K*_out. Of several maxima the highest counts. It is NaN for the covariance of two
        equal inputs, which responds the more the larger ρ, and wherever that of two inputs has no
        maximum, as that of nearly equal ones in a shallow network or of inputs that stay opposite.

    Warns
    -----
    UserWarning
        If an entry is 0; it names the variance K*_out below which a scaling is > 0. If the
        covariances of pairs have no ρ*; it names their number and the first of them.

    Raises
    ------
    TypeError
        If ``network`` is neither a network nor a sequence of them.
    ValueError
        If an argument is not allowed, or not with this method; if the response of a variance has no
        maximum (as for linear networks and ReLU, whose response grows without bound); if there are
        no weights, so that the output knows of biases only; or if an approximation is asked for
        where it is not made.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=50)
    >>> round(optimal_scaling(net, 0.05), 6)
    0.138385
    >>> round(optimal_scaling(net, 0.05, method="deep_limit", order=2), 6)
    0.13836
    >>> optimal_scaling([net.replace(depth=10), net], [0.05, 0.1]).round(4)
    array([[0.3265, 0.2599],
           [0.1384, 0.1111]])
    >>> print(optimal_scaling(net, 0.05, digits=20, proven=True).str(21))
    [0.138384538142605391511 +/- 3.82e-23]
    """
    networks, layered = _checked(network)
    asked = _Asked(
        networks,
        layered,
        K0,
        validation.input_kernel_array("K0", K0),
        validation.choice("method", method, _METHODS),
        1.0 if dynamic_range is None else dynamic_range,
        slope,
        1 if order is None else order,
        validation.within("rtol", rtol, 1e-14, 0.1),
        progress,
        output_variance.proven_digits(digits, proven) if proven or digits is not None else 0,
        labels,
        noise_variance,
    )
    find = _chosen(network, asked, {"dynamic_range": dynamic_range, "slope": slope, "order": order})
    with relative_tolerance(asked.rtol):
        values = find(asked)
        if isinstance(values, np.ndarray) and not (values > 0).all():
            _say_what_is_missing(asked, values)
    result = values if isinstance(network, Sequence) else values[0]
    return float(result) if isinstance(result, np.floating) else result


def _chosen(network: Any, asked: _Asked, options: dict[str, Any]) -> Callable[[_Asked], Any]:
    """The function that finds ρ*, ValueError where there is none for what is asked."""
    method = asked.method
    of_labels = asked.labels is not None or asked.noise_variance is not None
    for name, value in options.items():
        if value is not None and method not in _ONLY[name]:
            allowed = " and ".join(_ONLY[name])
            raise ValueError(f"{name} must be left out but for {allowed}, got {value!r}")
    if options["order"] is not None and not validation.is_order(asked.order):
        raise ValueError(f"order must be 1 or 2, got {asked.order!r}")
    if not asked.layered:
        only = {f"method={method!r}": method != "response", "proven": asked.digits > 0}
        for name, given in (only | {"labels": of_labels}).items():
            if given:
                raise not_there(name, network)
    if asked.digits:
        if isinstance(network, Sequence) or asked.kernel.ndim or asked.kernel <= 0:
            raise ValueError("proven must be False but for one network and one variance K0 > 0")
        if method not in ("response", "deep_limit") or asked.order == 2:
            raise ValueError(
                "proven must be False but for the methods response and deep_limit of order 1, got "
                f"method={method!r}, order={options['order']!r}"
            )
        return _enclosed
    if of_labels:
        if isinstance(network, Sequence) or method != "response":
            raise ValueError(
                "labels must be left out but for one network and the method response, got "
                f"method={method!r}"
            )
        return _after_labels
    return _METHODS[method]


def _by_response(asked: _Asked) -> np.ndarray:
    """The highest maximum of the response, (networks, *shape of the kernel)."""
    first, must = asked.networks[0], asked.layered or asked.kernel.ndim < 2
    each: Any = responses.Solved(first, asked.rtol)
    name = f"one input of a {type(first).__name__}"
    if asked.layered:
        each = responses.stacked(asked.networks, pair_functions(network_functions(first)))
        name = first.activation.name
    return _of_kernel(partial(exact.optima, each, name, must), asked)


def _by_saturation(asked: _Asked) -> np.ndarray:
    """Of variances, by eq. (67) or (68)."""
    kernel, method = asked.kernel, asked.method
    if kernel.ndim > 1:
        raise ValueError(f"K0 must be a variance for the method {method}, got {kernel.shape}")
    options = method, asked.dynamic_range, asked.slope
    scalings = [
        [saturation.scaling(net, K, *options) for K in kernel.ravel()] for net in asked.networks
    ]
    return np.reshape(scalings, (len(asked.networks), *kernel.shape))


def _by_deep_limit(asked: _Asked) -> np.ndarray:
    """c*/√L, with order 2 its correction."""

    def optima(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        alone = (p == r) & (q == r)
        result = np.empty((len(asked.networks), len(p)))
        for values, net in zip(result, asked.networks, strict=True):
            if not (net.skip_scales == 1).all():
                raise ValueError("network must have skip_scale=1 for the method deep_limit")
            if alone.any():
                values[alone] = output_variance.variance_scaling(net, p[alone], asked.order)
            if not alone.all():
                pairs = p[~alone], q[~alone], r[~alone]
                values[~alone] = deep_covariance.covariance_scaling(net, *pairs, asked.order)
        return result

    return _of_kernel(optima, asked)


def _after_labels(asked: _Asked) -> np.ndarray:
    """ρ* of a network that learned labels, from that of the prior."""
    after, best = import_module(_AFTER_LABELS).scaling_after_labels, _by_response(asked)[0]
    moved = after(asked.networks[0], asked.kernel, asked.labels, asked.noise_variance, best)
    return np.asarray(moved)[None]


def _enclosed(asked: _Asked) -> list[Any]:
    """ρ* as a ball, from its value in float64."""
    # It needs python-flint.
    from fieldtheory.scaling import enclosed_optima

    (network,), kernel, digits = asked.networks, exact_kernel(asked.K0), asked.digits
    value = float(_METHODS[asked.method](asked)[0])
    if value == 0:
        raise ValueError("proven must be False where ρ* = 0")
    if asked.method == "response":
        return [enclosed_optima.scaling(network, kernel, value, digits)]
    end = output_variance.optimal_output_variance(network, digits + 5, proven=True)
    return [enclosed_optima.deep_scaling(network, kernel, end, digits)]


_METHODS = {
    "response": _by_response,
    "saturation": _by_saturation,
    "large_depth": _by_saturation,
    "deep_limit": _by_deep_limit,
}


def _checked(network: Any) -> tuple[list[Any], bool]:
    """The networks, and whether they are of features ψ(h) of the stream, with shared averages."""
    networks = list(network) if isinstance(network, Sequence) else [network]
    if not networks:
        raise TypeError("network must be one network or a sequence of them, got none")
    layered = not getattr(network, "markov", False)
    for net in networks:
        deep_network(net, "optimal_scaling")
        if layered:
            checked_network(net, "a sequence of networks" if net is not network else "")
            weight, batch = unit_branch(net).weight, net.skip_scales.ndim > 1
        else:
            weight, _, skip = net.layer(net.parameters | {"branch_scale": 1.0})
            batch = np.ndim(weight) > 1 or np.ndim(skip) > 1
        if not (np.all(weight > 0) and net.readout(net.parameters).weight > 0):
            raise ValueError("network must have weight variances > 0 to respond to its input")
        if batch:
            raise ValueError("network must not have batch axes, got one in weights or skip_scale")
    if len(networks) > 1 and len(set(map(network_functions, networks))) > 1:
        names = {net.activation.name for net in networks}
        raise ValueError(f"network must be of one activation, got {', '.join(sorted(names))}")
    return networks, layered


def _say_what_is_missing(asked: _Asked, values: np.ndarray) -> None:
    """Warn of ρ* = 0, with the variance below which it is > 0, and of pairs without ρ*."""
    if (values == 0).any():
        name, bounds = "K*_out", [_limit(net) for net in asked.networks]
        if asked.method in _ONLY["dynamic_range"]:
            name, bounds = "(V/2)²", [asked.dynamic_range**2 / 4]
        text = (
            f"K0 has {np.count_nonzero(values == 0)} of {values.size} entries with ρ* = 0: their "
            "response is largest without a residual branch"
        )
        if max(bounds) > 0:
            span = " to ".join(f"{bound:.4g}" for bound in sorted({min(bounds), max(bounds)}))
            text += (
                f", at every depth. A variance has ρ* > 0 below {name} = {span}, with which the "
                "network with the largest response ends: rescale the inputs to a K0 below it"
            )
        elif max(bounds) == 0:
            text += (
                f". At these variances of weights and biases {name} = 0, so that this holds for "
                "every input and depth: take a smaller bias_variance"
            )
        warnings.warn(text, stacklevel=validation.level_of_user())
    kernel, missing = asked.kernel, np.isnan(values).any(axis=0)
    if kernel.ndim < 2 or not missing.any():
        return
    pairs = np.broadcast_to(np.triu(np.ones(kernel.shape[-2:], dtype=bool), 1), kernel.shape)
    missing = missing & pairs
    if not missing.any():
        return
    *batch, first, second = places = tuple(index[0] for index in np.nonzero(missing))
    p, q, r = _entries_of(kernel, places)
    correlation = r / (np.sqrt(p * q) or 1.0)
    kind = "which are equal" if _equal(p, q, r) else f"whose correlation is {correlation:.10g}"
    of_batch = f" of kernel {', '.join(map(str, batch))}" if batch else ""
    warnings.warn(
        f"K0 has {missing.sum()} of {pairs.sum()} pairs of inputs without ρ*, the first of inputs "
        f"{first} and {second}{of_batch}, counted from 0, {kind}: the response of equal inputs, "
        "and in shallow networks of nearly equal ones, grows with ρ as far as it is searched. "
        "Their entries are NaN, and mean_scaling leaves them out",
        stacklevel=validation.level_of_user(),
    )


def _limit(network: Any) -> float:
    """K*_out, or −1 where there is none."""
    try:
        plain = (network.skip_scales == 1).all()
        return output_variance.optimal_output_variance(network) if plain else -1.0
    except (AttributeError, ValueError, ArithmeticError):
        return -1.0


def _of_kernel(optima: Callable[..., np.ndarray], asked: _Asked) -> np.ndarray:
    """ρ* of all entries, (networks, *shape of the kernel)."""
    kernel, networks = asked.kernel, len(asked.networks)
    if kernel.ndim < 2:
        return optima(*[kernel.ravel()] * 3).reshape(networks, *kernel.shape)
    upper = np.nonzero(np.broadcast_to(np.triu(np.ones(kernel.shape[-2:])), kernel.shape))
    p, q, r = _entries_of(kernel, upper)
    # Variances that rounding alone parts are the same.
    ordered, places = np.unique([p, q], return_inverse=True)
    first = np.append(True, np.diff(ordered) > _ROUNDING * ordered[1:])
    p, q = ordered[first][np.cumsum(first) - 1][places].reshape(2, -1)
    alone = upper[-2] == upper[-1]
    q, r = np.where(alone, p, q), np.where(alone, p, r)
    (sought,) = np.nonzero(alone | ~_equal(p, q, r))
    p, q, r = p[sought], q[sought], r[sought]
    count, size = len(p), max(1, _AT_ONCE // networks)
    parts = (np.arange(at, min(at + size, count)) for at in range(0, count, size))
    blocks: Iterator[tuple[np.ndarray, ...]] = ((i, optima(p[i], q[i], r[i])) for i in parts)
    if asked.progress:
        blocks = chunks.with_progress(blocks, count, "optimal_scaling", lambda part: len(part[0]))
    of_pairs = np.full((networks, len(alone)), np.nan)
    for index, values in blocks:
        of_pairs[:, sought[index]] = values
    result = np.empty((networks, *kernel.shape))
    by_entry = np.moveaxis(result, 0, -1)
    transposed = (*upper[:-2], upper[-1], upper[-2])
    by_entry[upper] = by_entry[transposed] = of_pairs.T
    return result


def _entries_of(
    kernel: np.ndarray, pairs: tuple[Any, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K_xx, K_yy and K_xy of pairs of inputs, each (pairs,)."""
    *batch, first, second = pairs
    return kernel[(*batch, first, first)], kernel[(*batch, second, second)], kernel[pairs]


def _equal(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Whether two inputs are equal up to rounding, for every pair."""
    return p + q - 2 * r <= _EQUAL * (p + q)
