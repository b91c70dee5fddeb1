"""Certificates: proven intervals in files that a program without this package can check."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.family import DeepNetwork
from fieldtheory.precision.balls import arb
from fieldtheory.precision.layer_recursion import exact_coefficients, exact_parameters

# Digits of ends beyond those that are claimed.
_GUARD = 3


def ends(ball: arb, digits: int) -> list[str]:
    """The ends of a ball in decimals, rounded outwards.

    Examples
    --------
    >>> ends(arb(1) / 3, 3)
    ['0.333333', '0.333334']
    """
    middle, radius = (_fraction(part) for part in (ball.mid(), ball.rad()))
    size = abs(middle) + radius
    # A power of ten at least as large as the number.
    exponent = len(str(size.numerator)) - len(str(size.denominator)) + 1 if size else 0
    places = max(0, digits + _GUARD - exponent + 1)
    unit = 10**places
    low, high = (middle - radius) * unit, (middle + radius) * unit
    whole = low.numerator // low.denominator, -(-high.numerator // high.denominator)
    decimals = []
    for end in whole:
        text = str(abs(end)).zfill(places + 1)
        text = f"{text[:-places]}.{text[-places:]}" if places else text
        decimals.append("-" * (end < 0) + text)
    return decimals


def _fraction(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.man_exp())
    return mantissa * Fraction(2) ** exponent


def of_solution(
    network: DeepNetwork, K0: Any, digits: int, fields: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Parameters, a, c, γ of the layers, K^(0), and intervals of the fields over the layers."""
    pairs = {"00": (0, 0), "11": (1, 1), "01": (0, 1)}
    if not isinstance(K0, sp.MatrixBase):
        pairs, K0 = {"00": (0, 0)}, sp.Matrix([[K0]])
        fields = {name: values[:, None, None] for name, values in fields.items()}
    return {
        "kind": "solution",
        "activation": str(network.activation.expression),
        "digits": digits,
        "depth": network.depth,
        "network": {
            name: [*map(str, value)] if isinstance(value, list) else str(value)
            for name, value in exact_parameters(network).items()
        },
        "layers": [[str(x) for x in layer] for layer in exact_coefficients(network)[1:]],
        "input_kernel": {name: str(K0[pair]) for name, pair in pairs.items()},
        "claims": {
            field: {
                name: [ends(ball, digits) for ball in values[:, *pair]]
                for name, pair in pairs.items()
            }
            for field, values in fields.items()
        },
    }


def of_output_variance(network: DeepNetwork, digits: int, ball: arb) -> dict[str, Any]:
    """σ²_w, σ²_b and the interval of K*_out."""
    branch = exact_coefficients(network.replace(branch_scale=1.0))[1]
    return {
        "kind": "optimal output variance",
        "activation": str(network.activation.expression),
        "digits": digits,
        "weight": str(branch.weight),
        "bias": str(branch.bias),
        "interval": ends(ball, digits),
    }


def write(path: str | Path, certificate: dict[str, Any]) -> None:
    """A certificate as a JSON file."""
    Path(path).write_text(json.dumps(certificate, indent=1) + "\n", encoding="utf-8")
