"""Moments and pairs against 30 digits of mpmath: what is promised, and the estimates of errors."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.two_variables import PairAverages
from fieldtheory.networks.activations import as_activation

h = sp.Symbol("h", real=True)
ROWS = json.loads((Path(__file__).parent / "references.json").read_text())
# Of the natural size.
PROMISED, ROUNDING = 1e-12, 1e-14


@cache
def function(name):
    return function_of(as_activation(name)(h), h)


def held(value, error, reference, size):
    """Whether a number keeps the promise, and its estimate is not far below its error."""
    off = abs(value - float(reference))
    assert off <= PROMISED * size
    assert off <= max(10 * error, ROUNDING * size)


def label(row):
    return f"{row['activation']}-{'-'.join(f'{number:g}' for number in row['at'])}"


@pytest.mark.parametrize("row", [r for r in ROWS if len(r["at"]) == 1], ids=label)
def test_moments(row):
    """M, K M' and K² M'' relative to M, on panels and from a table."""
    (K,), size = row["at"], float(row["values"][0])
    coefficients = Coefficients(function(row["activation"]).square, 4)
    for asked in (np.array([K]), K * np.linspace(0.9, 1.1, 9)):
        scales = np.stack([1 / asked**0, 1 / (2**0.5 * asked), 24**0.5 / (4 * asked**2)])
        values, errors = (f[:, :5:2].T * scales for f in coefficients(asked))
        place = int(np.argmin(np.abs(asked - K)))
        for order in range(3):
            reference = row["values"][order]
            held(values[order, place], errors[order, place], reference, size / K**order)


@pytest.mark.parametrize("row", [r for r in ROWS if len(r["at"]) == 3], ids=label)
def test_pairs(row):
    """⟨φφ⟩, ⟨φ'φ'⟩ and ⟨φ''φ⟩/2 relative to √(MM), over √(ab) and a."""
    a, b, c = row["at"]
    phi, t = function(row["activation"]), c * np.sqrt(a * b)
    moments = Coefficients(phi, 2)(np.array([a, b]))[0][:, -1]
    size = np.sqrt(moments.prod())
    value, by_t, by_a, _ = row["values"]
    values, errors = PairAverages(phi)(a, b, t, kinds=1 if by_t is None else 4)
    held(values.value[0], errors.value[0], value, size)
    if by_t is not None:
        held(values.by_t[0], errors.by_t[0], by_t, size / np.sqrt(a * b))
        held(values.by_a[0], errors.by_a[0], by_a, size / a)


@pytest.mark.parametrize("row", [r for r in ROWS if len(r["at"]) == 3], ids=label)
def test_connected_pairs(row):
    """⟨φ²;φ²⟩ relative to √(Var φ² Var φ²)."""
    a, b, c = row["at"]
    square = function(row["activation"]).square
    f = Coefficients(square, 40)(np.array([a, b]))[0]
    variances = np.maximum((f[:, 1:-1] ** 2).sum(axis=1), f[:, -1] - f[:, 0] ** 2)
    pairs = PairAverages(square, connected=True)
    values, errors = pairs(a, b, c * np.sqrt(a * b), kinds=1)
    # φ² of sign is constant: its variance is rounding, of other sizes on other machines.
    fluctuates = variances.min() > ROUNDING * f[0, -1]
    size = np.sqrt(variances.prod()) if fluctuates else f[0, -1]
    held(values.value[0], errors.value[0], row["values"][3], size)
