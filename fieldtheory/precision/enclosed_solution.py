"""The theory of a network in intervals that are proven to contain it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.precision.ball_arithmetic import ball_arithmetic
from fieldtheory.precision.balls import arb, attempts, ctx
from fieldtheory.precision.layer_recursion import OneInput, TwoInputs


@dataclass(frozen=True, eq=False)
class EnclosedSolution:
    """Kernels, responses and fluctuations as balls ``flint.arb`` that contain the exact values.

    The fields have the names and shapes of `Solution` and are arrays of Python objects:
    ``residual_kernels``, ``kernels``, ``residual_response``, ``response``, ``output_kernel``,
    ``output_response``; of one input also ``G12``, ``S22`` and ``G11``. ``print`` shows a midpoint
    and a radius, ``float(x)`` and ``mpmath.mpf(x.mid())`` give the midpoint, ``float(x.rad())`` the
    radius.

    What is proven: for the network and K^(0) whose parameters are exactly the given floats, the
    saddle point, the response and G11 to order 1/N lie in the intervals. It rests on the closed
    forms and the recursions that the symbolic derivation gives, on Arb, and on the bounds in
    `enclosures` and `hermite`. Radii are at most 10^(−digits) of the largest entry, of the same
    layer for kernels and responses.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    input_kernel : ndarray, shape () or (P, P)
        Positive variances.
    digits : int

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, activation="tanh")
    >>> print(EnclosedSolution(net, np.array(0.5), 30).output_response.str(31))
    [0.2224283563098147005961535323412 +/- 5.18e-33]
    """

    network: LayeredNetwork
    input_kernel: np.ndarray
    digits: int

    @cached_property
    def residual_kernels(self) -> np.ndarray:
        """C*^(l), (L + 2,) or (L + 2, P, P)."""
        return self._field(lambda theory: theory.residual_kernels)

    @cached_property
    def kernels(self) -> np.ndarray:
        """K^(l), (L + 2,) or (L + 2, P, P)."""
        return self._field(lambda theory: theory.kernels)

    @cached_property
    def residual_response(self) -> np.ndarray:
        """η^(l), (L + 1,) or (L + 1, P, P)."""
        return self._field(lambda theory: theory.residual_response)[:-1]

    @cached_property
    def response(self) -> np.ndarray:
        """χ^(l), (L + 1,) or (L + 1, P, P)."""
        return self._responses[:-1]

    @property
    def output_kernel(self) -> Any:
        """K^(L+1)."""
        return self.kernels[-1]

    @property
    def output_response(self) -> Any:
        """χ^out."""
        return self._responses[-1]

    @cached_property
    def G12(self) -> np.ndarray:
        """⟨C^(l) C̃^(m)⟩, (L + 2, L + 2)."""
        return self._matrix("G12", lambda theory: _scaled(theory.propagator, 1 / self._width))

    @cached_property
    def S22(self) -> np.ndarray:
        """∂²S/∂C̃^(k)∂C̃^(l) at the saddle point, (L + 2, L + 2)."""
        return self._matrix("S22", lambda theory: _scaled(theory.source, self._width))

    @cached_property
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m)) to order 1/N, (L + 2, L + 2)."""
        return self._matrix("G11", lambda theory: _scaled(theory.fluctuations, 1 / self._width))

    @property
    def _width(self) -> Any:
        return arb(self.network.width)

    @cached_property
    def _responses(self) -> np.ndarray:
        return self._field(lambda theory: theory.response)

    def _matrix(self, name: str, of_theory: Callable[[OneInput], Any]) -> np.ndarray:
        if self.input_kernel.ndim:
            shape = self.input_kernel.shape
            raise ValueError(f"{name} is proven for one input, got K0 of shape {shape}")
        return self._field(of_theory, True)

    def _field(self, of_theory: Callable[[Any], Any], of_largest: bool = False) -> np.ndarray:
        """A field at the first precision at which its radii are small enough."""
        for bits, theories in zip(attempts(self.digits), self._theories, strict=True):
            with ctx.workprec(bits):
                values = self._arranged([of_theory(theory) for theory in theories])
            if _narrow(values, self.digits, of_largest):
                return values
        widest = max(float(value.rad()) for value in values.ravel())
        raise PrecisionError(
            f"enclosures did not reach {self.digits} digits, the widest radius is {widest:.2g}"
        )

    @cached_property
    def _theories(self) -> list[list[Any]]:
        """The recursions of one input, or of all pairs of inputs, at rising precisions."""
        found = []
        for bits in attempts(self.digits):
            with ctx.workprec(bits):
                arithmetic = ball_arithmetic()
            K = [[sp.Rational(float(k)) for k in row] for row in np.atleast_2d(self.input_kernel)]
            alone = [OneInput(self.network, row[i], arithmetic) for i, row in enumerate(K)]
            pairs = [
                alone[i] if i == j else TwoInputs(alone[i], alone[j], K[i][j])
                for i, j in zip(*np.triu_indices(len(K)), strict=True)
            ]
            found.append(pairs)
        return found

    def _arranged(self, of_pairs: list[Any]) -> np.ndarray:
        values = np.array(of_pairs, dtype=object)
        values = np.vectorize(arb, otypes=[object])(values)
        if not self.input_kernel.ndim:
            return values[0]
        inputs = len(self.input_kernel)
        found = np.empty((values.shape[1], inputs, inputs), dtype=object)
        i, j = np.triu_indices(inputs)
        found[:, i, j] = found[:, j, i] = values.T
        return found

    def __repr__(self) -> str:
        net = self.network
        return (
            f"EnclosedSolution(depth={net.depth}, activation={net.activation.name}, "
            f"digits={self.digits})"
        )


def _scaled(rows: list[list[Any]], factor: Any) -> list[list[Any]]:
    return [[factor * value for value in row] for row in rows]


def _narrow(values: np.ndarray, digits: int, of_largest: bool) -> bool:
    """Whether all radii are small against the largest entry, of the same layer or of all."""
    if not all(value.is_finite() for value in values.ravel()):
        return False
    tolerance = arb(10) ** -digits
    groups = values.reshape(1 if of_largest else len(values), -1)
    return all(
        max(value.rad() for value in group) <= tolerance * max(value.abs_lower() for value in group)
        for group in groups
    )
