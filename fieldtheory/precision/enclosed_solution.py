"""The theory of a network in intervals that are proven to contain it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages.errors import PrecisionError
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.precision.ball_arithmetic import ball_arithmetic
from fieldtheory.precision.balls import arb, attempts, ctx
from fieldtheory.precision.certificates import of_solution, write
from fieldtheory.precision.layer_recursion import Recursion, exact_kernel


@dataclass(frozen=True, eq=False)
class EnclosedSolution:
    """Kernels, responses and fluctuations as balls ``flint.arb`` that contain the exact values.

    The fields have the names and shapes of `Solution` and are arrays of Python objects:
    ``residual_kernels``, ``kernels``, ``residual_response``, ``response``, ``output_kernel``,
    ``output_response``; of one input also ``G12``, ``S22`` and ``G11``. ``x.str(31)`` shows a
    midpoint of 31 digits and a radius; ``print`` and arithmetic are those of ``flint.ctx.dps``
    digits, 15 unless it is set. ``float(x)`` and ``mpmath.mpf(x.mid())`` give the midpoint.

    What is proven: for the network whose parameters are exactly the given floats, and K^(0) as in
    `exact_kernel`, the saddle point, the response and G11 to order 1/N lie in the intervals. It
    rests on the closed forms and the recursions of the symbolic derivation, on Arb, and on the
    bounds in `enclosures` and `hermite`. Radii are at most 10^(−digits) of the largest entry, of
    the same layer for kernels and responses.

    Parameters
    ----------
    network : DeepNetwork
        Without batch axes.
    input_kernel : sympy.Rational, or a matrix of two inputs
    digits : int

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=3, activation="tanh"), 0.5, digits=30, proven=True)
    >>> print(s.output_response.str(31))
    [0.2224283563098147005961535323412 +/- 5.18e-33]
    """

    network: DeepNetwork
    input_kernel: Any
    digits: int

    @cached_property
    def residual_kernels(self) -> np.ndarray:
        """C*^(l), (L + 2,) or (L + 2, 2, 2)."""
        return self._field("residual_kernels")

    @cached_property
    def kernels(self) -> np.ndarray:
        """K^(l), (L + 2,) or (L + 2, 2, 2)."""
        return self._enclosed(
            lambda theory: theory.reported(theory.of_layers("kernels"), "kernels")
        )

    @cached_property
    def residual_response(self) -> np.ndarray:
        """η^(l), (L + 1,) or (L + 1, 2, 2)."""
        return self._field("residual_response")[:-1]

    @cached_property
    def response(self) -> np.ndarray:
        """χ^(l), (L + 1,) or (L + 1, 2, 2)."""
        return self._enclosed(
            lambda theory: theory.reported(theory.of_layers("response"), "response")
        )[:-1]

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

    def certificate(self, path: str | Path) -> None:
        """Write the intervals and what is needed to check them to a JSON file.

        It holds the exact parameters and coefficients of the layers, K^(0), and
        ``residual_kernels``, ``kernels`` and ``response``, the output last, with decimal ends that
        are rounded outwards.
        ``tools/check_certificate.py`` of the repository checks it for erf and ReLU with Python's
        integers alone, by enclosures of its own.

        Parameters
        ----------
        path : str or Path

        Examples
        --------
        >>> import fieldtheory as ft, json, pathlib, tempfile
        >>> s = ft.solve(ft.ResidualNetwork(depth=1), 1, digits=6, proven=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     s.certificate(path := pathlib.Path(folder, "erf.json"))
        ...     print(json.loads(path.read_text())["claims"]["kernels"]["00"][-1])
        ['0.743566980', '0.743566981']
        """
        names = ("residual_kernels", "kernels")
        fields = {name: getattr(self, name) for name in names} | {"response": self._responses}
        write(path, of_solution(self.network, self.input_kernel, self.digits, fields))

    @property
    def _width(self) -> Any:
        return arb(self.network.width)

    @cached_property
    def _responses(self) -> np.ndarray:
        return self._field("response")

    def _matrix(self, name: str, of_theory: Callable[[Recursion], Any]) -> np.ndarray:
        if isinstance(self.input_kernel, sp.MatrixBase):
            raise ValueError(f"{name} is proven for one input, got K0 of two")
        if self.network.markov:
            raise ValueError(
                f"{name} is proven for networks whose branches have one matrix, got a "
                f"{type(self.network).__name__}"
            )
        return self._enclosed(of_theory, True)

    def _field(self, name: str) -> np.ndarray:
        return self._enclosed(lambda theory: theory.of_layers(name))

    def _enclosed(self, of_theory: Callable[[Any], Any], of_largest: bool = False) -> np.ndarray:
        """A field at the first precision at which its radii are small enough."""
        for bits, theory in zip(attempts(self.digits), self._theories, strict=True):
            with ctx.workprec(bits):
                values = np.array(of_theory(theory), dtype=object)
                values = np.vectorize(arb, otypes=[object])(values)
                if _is_narrow(values, self.digits, of_largest):
                    return values
        widest = max(float(value.rad()) for value in values.ravel())
        raise PrecisionError(
            f"enclosures did not reach {self.digits} digits, the widest radius is {widest:.2g}"
        )

    @cached_property
    def _theories(self) -> list[Recursion]:
        """The recursion at rising precisions."""
        theories: list[Recursion] = []
        for bits in attempts(self.digits):
            with ctx.workprec(bits):
                arithmetic = ball_arithmetic()
            theories.append(Recursion(self.network, self.input_kernel, arithmetic))
        return theories

    def __repr__(self) -> str:
        net = self.network
        return (
            f"EnclosedSolution(depth={net.depth}, activation={net.activation.name}, "
            f"digits={self.digits})"
        )


def _scaled(rows: list[list[Any]], factor: Any) -> list[list[Any]]:
    return [[factor * value for value in row] for row in rows]


def _is_narrow(values: np.ndarray, digits: int, of_largest: bool) -> bool:
    """Whether all radii are small against the largest entry, of the same layer or of all."""
    if not all(value.is_finite() for value in values.ravel()):
        return False
    tolerance = arb(10) ** -digits
    groups = values.reshape(1 if of_largest else len(values), -1)
    return all(
        max(value.rad() for value in group) <= tolerance * max(value.abs_lower() for value in group)
        for group in groups
    )


def enclosed_solution(
    network: DeepNetwork, K0: Any, digits: int, convention: str
) -> EnclosedSolution:
    """Result of `solve` with ``proven=True``; K0 as in `exact_kernel`."""
    digits = validation.integer("digits", digits, 1)
    if network.batch_shape:
        raise ValueError(f"proven needs one network, got scales of shape {network.batch_shape}")
    if convention != "derivative":
        raise ValueError(f"convention must be 'derivative' with proven=True, got {convention!r}")
    return EnclosedSolution(network, exact_kernel(K0), digits)
