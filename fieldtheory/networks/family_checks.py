"""Checks of what a family of one's own offers: one sentence for each way to miss the contract."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.activation import Activation
from fieldtheory.validation import excerpt

_FIELDS = ("depth", "activation", "width", "input_dim")
_READIN = ("readin_weight_variance", "readin_bias_variance")
_ALLOWED = {
    "features": "return a tuple of SymPy expressions ψ_k(h), with functions of SymPy, not of NumPy",
    "layer": "return Coefficients(a_l, c_l, γ_l), with arithmetic that SymPy symbols allow",
    "readout": "return Coefficients(a_{L+1}, c_{L+1}, 0), with arithmetic that SymPy symbols allow",
    "branch": "return residuals of the shape of the features (ψ_1, ψ_2, …)",
}
_EXPRESSION = (sp.Expr, numbers.Real)
# Networks, inputs and neurons of the features that a branch is tried with.
_SHAPE = (1, 2, 3)
# Covariances that agree differ by rounding alone.
_ROUNDING = 1e-10


def check_family(network: Any) -> None:
    """Raise TypeError or ValueError, in one sentence, if the family of a network is not complete.

    Features and coefficients are tried with symbols, once for each family.
    """
    family: Any = type(network)
    check_fields(family)
    parameters = _checked_parameters(network)
    _check_symbolic(family, tuple(parameters))
    for method in ("layer", "readout"):
        variances = getattr(family, method)(parameters)[:2]
        if any(np.less(variance, 0).any() for variance in variances):
            raise ValueError(
                f"{family.__name__}.{method} must return a_l and c_l >= 0, got {excerpt(variances)}"
            )


def check_branch(network: Any) -> None:
    """Raise TypeError or ValueError if explicit weights are not of the law of the layers."""
    family: Any = type(network)
    # Those of one layer are refused.
    _ = network.feature_parameters
    features = _check_symbolic(family, tuple(network.parameters))
    psi = tuple(np.random.default_rng(0).standard_normal((len(features), *_SHAPE)))
    batch = network.batch_shape
    one = network.member(batch, (0,) * len(batch)) if batch else network
    for index in (1, network.depth):
        layer = one.of_layer(index)
        a, c, _ = family.layer(layer)
        expected = a * sum(map(_products, psi)) + c
        covariance = _covariance(family, psi, layer)
        if np.abs(expected - covariance).max() > _ROUNDING * np.abs(expected).max():
            raise ValueError(
                f"{family.__name__}.branch must return residuals of covariance "
                "a_l (1/N) Σ_i Σ_k ψ_k ψ_k + c_l, as features and layer say; in layer "
                f"{index} a variance is {covariance[0, 0, 0]:.6g} and not "
                f"{expected[0, 0, 0]:.6g}"
            )


def check_fields(family: Any) -> None:
    """Raise TypeError if a family is no frozen dataclass with the fields of every network."""
    if not getattr(getattr(family, "__dataclass_params__", None), "frozen", False):
        raise TypeError(f"{family.__name__} must be decorated with @dataclass(frozen=True)")
    if missing := {*_FIELDS} - {field.name for field in fields(family)}:
        raise TypeError(f"{family.__name__} must have the fields {', '.join(sorted(missing))}")


def _checked_parameters(network: Any) -> Mapping[str, Any]:
    """The parameters of a network, with the read-in and an axis of layers where it must be."""
    family, parameters = type(network).__name__, network.parameters
    if not isinstance(network.activation, Activation):
        raise TypeError(
            f"activation of {family} must be an Activation, got {excerpt(network.activation)}; "
            "a __post_init__ of its own begins with super().__post_init__()"
        )
    try:
        hash(network)
    except TypeError as error:
        raise TypeError(f"{family} must have fields that can be hashed, got {error}") from None
    for name in (*_READIN, *network.layer_parameters):
        if name not in parameters:
            raise ValueError(f"parameters of {family} must have {name}, got {sorted(parameters)}")
    for name in network.layer_parameters:
        if np.shape(parameters[name])[-1:] != (network.depth,):
            raise ValueError(
                f"parameters of {family} must have {name} for every layer, an array "
                f"(..., {network.depth}) such as per_layer(self.{name}, self.depth), "
                f"got {excerpt(parameters[name])}"
            )
    return parameters


def _called(family: Any, method: str, *arguments: Any) -> Any:
    """The value of a method of a family, errors in it as one sentence."""
    try:
        return getattr(family, method)(*arguments)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if isinstance(error, KeyError):
            names = ", ".join(arguments[-1])
            raise ValueError(
                f"{family.__name__}.{method} must use parameters of the network, {names}, "
                f"got {error}"
            ) from error
        raise TypeError(
            f"{family.__name__}.{method} must {_ALLOWED[method]}; it raised {reason}"
        ) from error


def _refused(family: Any, method: str, value: Any) -> TypeError:
    return TypeError(f"{family.__name__}.{method} must {_ALLOWED[method]}, got {excerpt(value)}")


@lru_cache
def _check_symbolic(family: Any, names: tuple[str, ...]) -> tuple[sp.Expr, ...]:
    """Features, layer and readout with symbols; the features are returned."""
    symbols = {name: sp.Symbol(name, positive=True) for name in names}
    features = _called(family, "features", sp.Function("phi"), sp.Symbol("h", real=True), symbols)
    if isinstance(features, sp.Expr):
        raise TypeError(f"{_refused(family, 'features', features)}; write ({features},)")
    if not isinstance(features, tuple | list) or not all(
        isinstance(value, _EXPRESSION) for value in features
    ):
        raise _refused(family, "features", features)
    for method in ("layer", "readout"):
        coefficients = _called(family, method, symbols)
        known = hasattr(coefficients, "_fields")
        if not known or not all(isinstance(value, _EXPRESSION) for value in coefficients):
            raise _refused(family, method, coefficients)
    return tuple(features)


def _covariance(family: Any, psi: tuple[np.ndarray, ...], layer: Mapping[str, Any]) -> np.ndarray:
    """Covariance over the inputs of the residuals of a branch, from its calls of ``affine``."""
    kernels: list[np.ndarray] = []

    def residuals(values: Any) -> np.ndarray:
        kernels.clear()

        def affine(x: Any, weight_variance: Any, bias_variance: Any) -> np.ndarray:
            kernels.append(weight_variance * _products(x) + (bias_variance or 0.0))
            return np.full((*x.shape[:-1], _SHAPE[-1]), next(values))

        residual = _called(family, "branch", psi, affine, layer)
        if np.shape(residual) != _SHAPE:
            raise _refused(family, "branch", residual)
        return np.asarray(residual, dtype=float)

    drawn, calls = residuals(count(2.0)), len(kernels)
    scales = np.array([residuals(iter(row)) for row in np.eye(calls)]).reshape(calls, *_SHAPE)
    off = np.abs(drawn - np.tensordot(np.arange(2.0, calls + 2), scales, 1)).max()
    if off > _ROUNDING * np.abs(drawn).max() or np.ptp(scales.reshape(calls, -1), axis=1).any():
        raise ValueError(
            f"{family.__name__}.branch must return a sum of what affine returns times numbers, "
            "which is Gaussian; the skip connection is not part of it"
        )
    return np.tensordot(scales[:, 0, 0, 0] ** 2, np.reshape(kernels, (calls, 1, 2, 2)), 1)


def _products(x: np.ndarray) -> np.ndarray:
    """Σ_i x_iα x_iβ over the number of neurons."""
    return x @ np.swapaxes(x, -1, -2) / x.shape[-1]
