"""What `solve` returns with ``digits``: the fields of a solution as numbers of mpmath."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, ClassVar

import mpmath
import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.storage import Variables
from fieldtheory.plotting.tables import table_html, table_text
from fieldtheory.precision.layer_correlators import MPMATH
from fieldtheory.precision.layer_recursion import Recursion, exact_kernel, matrices

# Digits that may be asked for: fewer are those of float64.
FEWEST, MOST = 16, 1000
# Digits of the recursion beyond those asked for, and of the results.
_GUARD, _SHOWN = 10, 2
# More digits with which a number is read again as it was written.
_READ_AGAIN = 3
_WORDS = {"one": "one input", "several": "two inputs"}


def _field(compute: Callable[[Any], Any]) -> cached_property[np.ndarray]:
    """A field: an array of mpf, computed with guard digits when it is first asked for."""

    @wraps(compute)
    def rounded(solution: PreciseSolution) -> np.ndarray:
        solution.require(compute.__name__)
        with mpmath.workdps(solution.working):
            values = np.array(compute(solution), dtype=object)
        with mpmath.workdps(solution.digits + _SHOWN):
            return np.array([mpmath.mpf(v) for v in values.flat], dtype=object).reshape(
                values.shape
            )[()]

    return cached_property(rounded)


@dataclass(frozen=True, eq=False)
class PreciseSolution(Computed):
    """The theory of one network to many digits; every field is computed when first asked for.

    The names, shapes and meanings of the fields are those of `Solution`; they are arrays of
    `mpmath.mpf` of ``digits`` + 2 digits. Of their largest entry ``digits`` are right.

    * one and two inputs: residual_kernels, kernels, residual_response, response, output_kernel,
      output_response
    * one input: G12, G11, kernel_variance, mean_shift, kernel_shift, four_point, output_kurtosis
    * two inputs: full_response

    Arithmetic with them rounds to ``mpmath.mp.dps`` digits, 15 unless it is set, and so does
    printing of an array; ``print(s)`` and `rows` have all digits, and so have files.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=3, activation="relu"), 0.05, digits=40)
    >>> s
    PreciseSolution(depth=3, activation=relu, inputs=1, width=500, digits=40)
    >>> s.G11.shape, mpmath.nstr(s.output_kernel, 40)
    ((5, 5), '0.3486450195312500193536864052240575873043')
    """

    settings: ClassVar = {"digits": int, "convention": str}

    network: DeepNetwork
    input_kernel: Any
    digits: int
    convention: str = "derivative"

    @_field
    def residual_kernels(self) -> Any:
        """C*^(l), (L + 2,) or (L + 2, 2, 2)."""
        return self._recursion.of_layers("residual_kernels")

    @_field
    def kernels(self) -> Any:
        """K^(l), in the same shape."""
        return self._recursion.reported(self._recursion.of_layers("kernels"), "kernels")

    @_field
    def output_kernel(self) -> Any:
        """K^(L+1)."""
        return self._recursion.of_layers("kernels")[-1]

    @_field
    def residual_response(self) -> Any:
        """η^(l), (L + 1,) or (L + 1, 2, 2)."""
        return self._recursion.of_layers("residual_response")[:-1] / self._input_width

    @_field
    def response(self) -> Any:
        """χ^(l), (L + 1,) or (L + 1, 2, 2)."""
        response = self._recursion.reported(self._recursion.of_layers("response"), "response")
        return response[:-1] / self._input_width

    @_field
    def output_response(self) -> Any:
        """χ^out = ∂K^(L+1)/∂K^(0)."""
        return self._recursion.of_layers("response")[-1] / self._input_width

    @_field
    def full_response(self) -> Any:
        """∂K_αβ^(l)/∂(K_αα, K_ββ, K_αβ)^(0), (L + 1, 2, 2, 3); a variance responds in the last."""
        first, second = self._recursion.by_variances
        zero = [mpmath.mpf(0)] * len(first)
        by_one, by_other = (
            matrices(zero, zero, first, second),
            matrices(zero, zero, second, first),
        )
        own = self._recursion.reported(self._recursion.of_layers("response"), "response")
        return np.stack([by_one, by_other, own], axis=-1)[:-1] / self._input_width

    @_field
    def G12(self) -> Any:
        """⟨C^(l) C̃^(m)⟩, (L + 2, L + 2), with its 1/N."""
        propagator = np.array(self._recursion.propagator, dtype=object) / self.network.width
        propagator[:, 0] /= self._input_width
        return propagator

    @_field
    def G11(self) -> Any:
        """Cov(C^(l), C^(m)), (L + 2, L + 2), to order 1/N."""
        return self._over_width(self._recursion.fluctuations)

    @_field
    def kernel_variance(self) -> Any:
        """Var K^(l), (L + 1,), to order 1/N."""
        return self._over_width(self._recursion.kernel_variance)

    @_field
    def mean_shift(self) -> Any:
        """⟨C^(l)⟩ − C*^(l), (L + 2,), to order 1/N."""
        return self._over_width(self._recursion.mean_shift)

    @_field
    def kernel_shift(self) -> Any:
        """⟨K^(l)⟩ − K*^(l), (L + 2,), to order 1/N."""
        return self._over_width(self._recursion.kernel_shift)

    @_field
    def four_point(self) -> Any:
        """The vertex V^(l), (L + 1,)."""
        return self._recursion.four_point

    @_field
    def output_kurtosis(self) -> Any:
        """3 Var C/C*² of the output."""
        variance = self._recursion.fluctuations[-1][-1] / self.network.width
        return 3 * variance / self._recursion.residual_kernels[0, 0][-1] ** 2

    def rows(
        self, fluctuations: bool = False, of: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """A dict for every layer and pair of inputs, as `Solution.rows`, numbers as text.

        Parameters
        ----------
        fluctuations : bool
            Also ``var_C``, ``var_K``, ``mean_shift`` and ``V``, of one input.
        of : sequence of str, optional
            As for `Solution.rows`.

        Examples
        --------
        >>> import fieldtheory as ft
        >>> ft.solve(ft.ResidualNetwork(depth=1, activation="relu"), 0.5, digits=20).rows()[1]
        {'layer': 1, 'C': '0.36249999999999999722', 'K': '0.86249999999999999722', \
'eta': '0.625', 'chi': '1.625'}
        """
        return super().rows(fluctuations, of)

    def require(self, name: str) -> None:
        """Raise ValueError unless the field exists for this number of inputs."""
        field = self.table[name]
        if field.order and self.network.markov:
            raise ValueError(
                f"{name} with digits is of networks whose branches have one matrix, got a "
                f"{type(self.network).__name__}; leave digits out for it"
            )
        if not self._is_defined(field):
            raise ValueError(
                f"{name} with digits is of {_WORDS[field.inputs]}, got K0 of {self.inputs}; "
                "leave digits out for it"
            )

    @property
    def working(self) -> int:
        """Digits of the recursion: those asked for, and those that the layers lose."""
        return self._theory[1]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{name} is not computed to many digits; there are {', '.join(self.table)}"
        )

    def __repr__(self) -> str:
        net = self.network
        return (
            f"PreciseSolution(depth={net.depth}, activation={net.activation.name}, "
            f"inputs={self.inputs}, width={net.width}, digits={self.digits})"
        )

    def __str__(self) -> str:
        return table_text(self.rows(), repr(self))

    def _repr_html_(self) -> str:
        return table_html(self.rows(), repr(self))

    def _written(self, values: Any) -> np.ndarray:
        numbers = np.asarray(values, dtype=object)
        text = [mpmath.nstr(value, self.digits + _SHOWN + _READ_AGAIN) for value in numbers.flat]
        return np.array(text).reshape(numbers.shape)

    @classmethod
    def _read(cls, values: Any, settings: dict[str, Any]) -> Any:
        text = np.asarray(values)
        with mpmath.workdps(settings["digits"] + _SHOWN):
            numbers = np.array([mpmath.mpf(str(value)) for value in text.flat], dtype=object)
        return numbers.reshape(text.shape)[()]

    def _arguments(self, stored: bool) -> Variables:
        ((dims, kernel, words),) = super()._arguments(stored).values()
        numbers = np.array(kernel, dtype=object).reshape(np.shape(kernel))
        return {"input_kernel": (dims, numbers.astype(str), words)}

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        return {"input_kernel": exact_kernel(np.asarray(content["input_kernel"]).tolist())}

    def _available(self, stored: bool) -> Iterator[Field]:
        """Those that have been computed, kernels and responses."""
        return super()._available(stored=True)

    def _entry(self, value: Any) -> str:
        return mpmath.nstr(value, self.digits)

    @cached_property
    def _theory(self) -> tuple[Recursion, int]:
        guard = _GUARD
        while True:
            theory = Recursion(self.network, self.input_kernel, MPMATH)
            with mpmath.workdps(self.digits + guard):
                lost = int(mpmath.log10(theory.amplification)) + _SHOWN
            if lost <= guard - _SHOWN:
                return theory, self.digits + guard
            guard = lost + _GUARD

    @property
    def _recursion(self) -> Recursion:
        return self._theory[0]

    @cached_property
    def _input_width(self) -> Any:
        """ν_0, see `networks.family.input_width`."""
        net = self.network
        return mpmath.mpf(net.input_dim) / net.width if self.convention == "F25" else 1

    def _over_width(self, values: Any) -> np.ndarray:
        return np.array(values, dtype=object) / self.network.width


def precise_solution(
    network: DeepNetwork, K0: Any, digits: int, convention: str
) -> PreciseSolution:
    """The solution of a network to a number of digits, its arguments checked."""
    digits = validation.integer("digits", digits, FEWEST)
    if digits > MOST:
        raise ValueError(f"digits must be at most {MOST}, got {digits}")
    if network.batch_shape:
        raise ValueError(f"digits needs one network, got scales of shape {network.batch_shape}")
    return PreciseSolution(network, exact_kernel(K0), digits, convention)


# Fluctuations, of order 1/N or of pairs of pairs, are those of one input.
PreciseSolution.table = {
    name: replace(row, inputs="one") if row.order or "pair" in row.of_inputs else row
    for name, row in FIELDS.items()
    if name in vars(PreciseSolution)
}
