"""Checks of arguments shared by every entry: one line that names argument, value and range.

Parameters that float64 rounds keep their exact numbers, for results of many digits.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from mpmath.libmp import to_rational

# Longer values are cut in messages.
_LONGEST = 80


def excerpt(value: Any) -> str:
    """A value as a message shows it, in one line.

    Examples
    --------
    >>> excerpt(np.zeros((2, 2))), excerpt("x" * 200)[-2:]
    ('array([[0., 0.], [0., 0.]])', 'x…')
    """
    return shortened(" ".join(repr(value).split()))


def shortened(text: str) -> str:
    """A text cut to the length that values have in messages.

    Examples
    --------
    >>> shortened("x" * 200)[-2:]
    'x…'
    """
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class ExactFloat(float):
    """The float next to a fraction that float64 does not represent, which it keeps.

    Examples
    --------
    >>> third = ExactFloat(Fraction(1, 3))
    >>> third, 3 * third, third.exact, third == 1 / 3
    (1/3, 1.0, Fraction(1, 3), False)
    """

    exact: Fraction

    def __new__(cls, exact: Fraction) -> ExactFloat:
        """The float nearest to a fraction."""
        rounded = super().__new__(cls, exact)
        rounded.exact = exact
        return rounded

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactFloat, (self.exact,)

    def __repr__(self) -> str:
        return str(self.exact)

    def __eq__(self, other: object) -> bool:
        return self.exact == (other.exact if isinstance(other, ExactFloat) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.exact)


def exact(value: float) -> Fraction:
    """The rational number that a parameter is; a float is the binary fraction that it holds.

    Examples
    --------
    >>> exact(0.25), exact(number("0.3")), exact(0.3) == Fraction(3, 10)
    (Fraction(1, 4), Fraction(3, 10), False)
    """
    return value.exact if isinstance(value, ExactFloat) else Fraction(value)


def number(value: Any) -> Any:
    """A float for any real number, an `ExactFloat` for one that it rounds; other values unchanged.

    Examples
    --------
    >>> number(2), number("0.3"), number(Fraction(1, 4)), number("erf")
    (2.0, 3/10, 0.25, 'erf')
    """
    if isinstance(value, float | bool):
        return value if isinstance(value, ExactFloat | bool) else float(value)
    try:
        if isinstance(value, str | Decimal):
            exact = Fraction(value)
        elif isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
        elif isinstance(value, Real) and hasattr(value, "_mpf_") and isfinite(value):
            exact = Fraction(*map(int, to_rational(value._mpf_)))
        else:
            return float(value) if isinstance(value, Real) else value
    except (ValueError, ZeroDivisionError, OverflowError):
        return value
    return float(exact) if exact == float(exact) else ExactFloat(exact)


def numbers(value: Any) -> Any:
    """A nested list or tuple with `number` of every entry.

    Examples
    --------
    >>> numbers([Fraction(1, 3), (0.5, 2)])
    [1/3, [0.5, 2.0]]
    """
    return [*map(numbers, value)] if isinstance(value, list | tuple) else number(value)


def integer(name: str, value: Any, minimum: int) -> int:
    """Return ``value`` as an int, or raise naming the argument and its smallest allowed value."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def is_order(value: Any) -> bool:
    """Whether ``value`` is an order that is offered, the integer 1 or 2."""
    return isinstance(value, Integral) and not isinstance(value, bool) and value in (1, 2)


def nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float >= 0, or raise."""
    return _real(name, value, "a finite real number >= 0", 0, _MOST)


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float > 0, or raise."""
    return _real(name, value, "a finite real number > 0", _LEAST, _MOST)


def within(name: str, value: Any, lowest: float, highest: float) -> float:
    """Return ``value`` as a float between two bounds, or raise."""
    words = f"a number from {lowest:g} to {highest:g}"
    return _real(name, value, words, lowest, highest)


def fraction(name: str, value: Any) -> float:
    """Return ``value`` as a float between 0 and 1, both excluded, or raise."""
    return _real(name, value, "a number between 0 and 1", _LEAST, _BELOW_ONE)


# The least and the largest positive float, and the largest below one.
_LEAST, _MOST, _BELOW_ONE = 5e-324, sys.float_info.max, 1 - 2.0**-53


def _real(name: str, value: Any, words: str, lowest: float, highest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {words}, got {value!r}")
    if not lowest <= float(value) <= highest:
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return value if isinstance(value, ExactFloat) else float(value)


def choice(name: str, value: Any, allowed: Iterable[str], others: str = "") -> str:
    """Return ``value`` if it is one of ``allowed``, or raise listing them and the one meant."""
    if value not in allowed:
        spelled = (str(value), str(value).lower())
        close = [m for word in spelled for m in get_close_matches(word, allowed, n=1, cutoff=0.6)]
        meant = f"; did you mean {close[0]}?" if close else ""
        listed = f"{others}one of {', '.join(allowed)}"
        raise ValueError(f"{name} must be {listed}, got {value!r}{meant}")
    return str(value)


# What else quantities are called: the first of the names that is allowed is meant.
_NAMES_OF_QUANTITIES: dict[str, tuple[str, ...]] = {
    "s": ("action",),
    "c": ("residual_kernels",),
    "k": ("kernels", "kernel"),
    "kernel": ("kernels",),
    "nngp": ("output_kernel",),
    "eta": ("residual_response",),
    "chi": ("response",),
    "chi_out": ("output_response",),
    "theta": ("tangent_kernel", "tangent_kernels"),
    "ntk": ("tangent_kernel", "output_tangent_kernel"),
    "tangent_kernel": ("tangent_kernels",),
    "tangent_kernels": ("tangent_kernel",),
    "var_c": ("g11",),
    "var_k": ("kernel_variance",),
    "v": ("four_point",),
    "(67)": ("saturation",),
    "(68)": ("large_depth",),
}


def quantity(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return that of the ``allowed`` names of quantities which is meant, or raise as `choice`.

    Examples
    --------
    >>> quantity("of", "χ^out", ["kernels", "output_response"])
    'output_response'
    """
    names = tuple(allowed)
    if not isinstance(value, str):
        return choice(name, value, names)
    plain = value.strip().lower().translate(_PLAIN).replace("^", "_")
    plain = f"({plain})" if plain.isdigit() else plain
    spelled = {word.lower(): word for word in names}
    words = (plain, *(word.lower() for word in _NAMES_OF_QUANTITIES.get(plain, ())))
    return choice(name, next((spelled[w] for w in words if w in spelled), value), names)


_PLAIN = str.maketrans({" ": "_", "-": "_", "η": "eta", "χ": "chi", "θ": "theta"})


def is_torch_module(value: Any) -> bool:
    """Whether it is a torch module or a class of them; who has one has imported torch."""
    torch = sys.modules.get("torch")
    kind = value if isinstance(value, type) else type(value)
    return torch is not None and issubclass(kind, torch.nn.Module)


def require_arguments(name: str, function: Any, *arguments: str) -> None:
    """Raise TypeError unless a function, or a class, can be called with these."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        form = f"{name}({', '.join(arguments)})"
        raise TypeError(f"{name} must be callable as {form}: {error}") from None
    except ValueError:
        # A builtin that does not tell its arguments.
        pass


def without_tensors(value: Any) -> Any:
    """The same with arrays for tensors of torch, on any device, that require grad or not."""
    torch = sys.modules.get("torch")
    if torch is None:
        return value
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    return [*map(without_tensors, value)] if isinstance(value, list | tuple) else value


def finite_array(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a float64 array without NaN or infinity, or raise."""
    try:
        array = np.asarray(without_tensors(value))
        if array.dtype.kind not in "iufO":
            raise TypeError
        if array.dtype.kind == "O" and not all(isinstance(v, Real) for v in array.flat):
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a real number or an array of them, got {excerpt(value)}"
        ) from None
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {float(array[~np.isfinite(array)][0])!r}")
    return array


def layer_scales(name: str, value: Any, depth: int) -> float | tuple[Any, ...]:
    """Return a scale as a float or nested tuple whose last axis is 1 or ``depth``, or raise."""
    exact = numbers(value)
    array = finite_array(name, exact)
    if array.ndim and array.shape[-1] not in (1, depth):
        raise ValueError(
            f"{name} must be a scalar or have 1 or depth={depth} entries on its last axis, "
            f"got shape {array.shape}"
        )
    return as_tuples(exact if isinstance(exact, list | ExactFloat) else array.tolist())


def as_tuples(value: Any) -> Any:
    """Nested lists as nested tuples, which can be hashed."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


# Asymmetry of products of matrices of float32, and of what other programs write with fewer digits
# than float64 has or sum in another order.
_SINGLE, _ROUNDED = 1e-5, 1e-8
# What is most likely meant where a kernel has the form of data.
_DATA = "; the kernel of data X (P, d) is ft.input_kernel(X, network)"


def input_kernel_array(name: str, value: Any) -> np.ndarray:
    """Return K0 as variances (any shape with ndim < 2) or covariance matrices (..., P, P)."""
    kernel = finite_array(name, value)
    if kernel.ndim < 2:
        if (kernel < 0).any():
            meant = _DATA if kernel.size > 1 else ""
            raise ValueError(f"{name} must be a variance >= 0, got {float(kernel.min())!r}{meant}")
        return kernel
    if kernel.shape[-1] != kernel.shape[-2]:
        raise ValueError(
            f"{name} must be a scalar or square (P, P), got shape {kernel.shape}{_DATA}"
        )
    size = max(kernel.max(), -kernel.min())
    transpose = kernel.swapaxes(-1, -2)
    exactly = np.array_equal(kernel, transpose)
    with np.errstate(over="ignore"):
        has_single = np.array_equal(kernel, kernel.astype(np.float32))
    rounding = _SINGLE if has_single else _ROUNDED
    if not exactly and np.abs(kernel - transpose).max() > rounding * size:
        raise ValueError(
            f"{name} must be symmetric, got entries differing from the transpose{_DATA}"
        )
    # Its mean with the transpose, without zeros of negative sign.
    kernel = kernel + 0.0 if exactly else kernel / 2 + transpose / 2
    if not _clearly_semidefinite(kernel, 1e-10 * size):
        smallest = np.linalg.eigvalsh(kernel).min()
        if smallest < -1e-10 * size:
            lost = "; it has the digits of float32: make it of data in float64"
            raise ValueError(
                f"{name} must be positive semidefinite, got eigenvalue {smallest:.6g}"
                f"{lost if has_single and smallest > -rounding * size else ''}"
            )
    return kernel


def _clearly_semidefinite(matrices: np.ndarray, tolerance: float) -> bool:
    """Whether a Cholesky decomposition shows that no eigenvalue lies below −tolerance."""
    shifted = matrices.copy()
    diagonal = np.arange(shifted.shape[-1])
    shifted[..., diagonal, diagonal] += tolerance / 2
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def level_of_user() -> int:
    """The ``stacklevel`` for a warning at the line outside the package that asked for a result."""
    level, frame = 1, sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] in ("fieldtheory", "functools"):
        if frame.f_back is None:
            break
        level, frame = level + 1, frame.f_back
    return level
