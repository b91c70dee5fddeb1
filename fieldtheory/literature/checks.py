"""High-precision checks: the theory's identities and its float64 numbers against mpmath.

What the papers print is checked elsewhere, see `fieldtheory.literature.verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages import GaussianAverage, precise
from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.literature.evidence import FLOAT64_TOLERANCE, integrated
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics import chunks
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.numerics.solution import solve
from fieldtheory.scaling import maximum_entropy as entropy

# Off-diagonal entries are neither weakly nor fully correlated.
VARIANCE_X, VARIANCE_Y, COVARIANCE = sp.Rational(7, 10), sp.Rational(1, 2), sp.Rational(1, 3)
# Activations with closed forms and those of the papers, which are checked if none are named.
CHECKED = (
    *("erf", "tanh", "relu", "leaky_relu", "linear"),
    *("logistic", "gelu", "swish", "sin"),
)
# Activations whose correlator ⟨φ²;φ²⟩ is checked, with and without a kink.
CONNECTED = ("erf", "relu")
# Activations with closed forms of the maximum-entropy condition.
SATURATING = ("erf", "tanh", "logistic")
_GUARD = 5

x, y = sp.symbols("x y", real=True)
_a, _b = sp.symbols("a b", positive=True)
_c = sp.Symbol("c", real=True)
_POINT = {_a: VARIANCE_X, _b: VARIANCE_Y, _c: COVARIANCE}


@dataclass(frozen=True)
class Check:
    """One number computed in two ways.

    Parameters
    ----------
    group, quantity : str
        What is compared.
    float64 : str
        The package's float64 value; empty where both sides are mpmath numbers.
    mpmath : str
        The value to the digits asked for.
    difference : float
        Relative difference, absolute where the value is zero.
    tolerance : float
        Largest difference that passes.
    """

    group: str
    quantity: str
    float64: str
    mpmath: str
    difference: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the two agree."""
        return self.difference <= self.tolerance

    @property
    def row(self) -> dict[str, Any]:
        """The check as a row of a table."""
        return {**asdict(self), "passed": self.passed}


def run_checks(
    digits: int = 50,
    progress: Callable[[str], None] | None = None,
    jobs: int = 1,
    activations: Sequence[str] | None = None,
) -> Iterator[Check]:
    """Price's theorem, closed forms, kernels, propagators and maximum entropy, each when checked.

    >>> all(check.passed for check in maximum_entropy_checks("erf", 20))
    True
    """
    digits = validation.integer("digits", digits, 20)
    validation.integer("jobs", jobs, 1)
    names = chosen_activations(activations)
    # Those with steps take longest.
    by_length = sorted(names, key=lambda name: not has_steps(ACTIVATIONS[name].expression))
    tasks: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = []
    for what, function, chosen in (
        ("Price's theorem and averages", activation_checks, by_length),
        ("connected correlator", connected_checks, [n for n in CONNECTED if n in names]),
        ("network", network_checks, [None]),
        ("maximum entropy", maximum_entropy_checks, [n for n in SATURATING if n in names]),
    ):
        tasks += [
            (f"{what}, {name}", function, (name, digits)) if name else (what, function, (digits,))
            for name in chosen
        ]

    def checked() -> Iterator[Check]:
        calls = ((function, *arguments) for _, function, arguments in tasks)
        results = chunks.in_order(calls, jobs, "checks in several processes")
        for (description, _, _), checks in zip(tasks, results, strict=True):
            if progress is not None:
                progress(description)
            yield from checks

    return checked()


def chosen_activations(activations: Sequence[str] | None) -> tuple[str, ...]:
    """The registered activations that are meant, each once; ``CHECKED`` if left out.

    >>> chosen_activations(["erf", "relu", "erf"])
    ('erf', 'relu')
    """
    if activations is None:
        return CHECKED
    if isinstance(activations, str):
        raise TypeError(f"activations must be a sequence of names, got {activations!r}")
    return tuple(
        dict.fromkeys(
            validation.choice("activations", name, tuple(ACTIVATIONS)) for name in activations
        )
    )


def activation_checks(name: str, digits: int) -> list[Check]:
    """Price's theorem for one φ, and its averages in float64 against integration."""
    phi = ACTIVATIONS[name]
    average = layer_functions(phi)
    square, product = phi(x) ** 2, phi(x) * phi(y)
    one, pair = [[VARIANCE_X]], [[VARIANCE_X, COVARIANCE], [COVARIANCE, VARIANCE_Y]]
    numbers = [float(k) for k in (VARIANCE_X, VARIANCE_Y, COVARIANCE)]

    def integral(F: sp.Expr, K: list[Any]) -> Any:
        return precise.average(F, (x, y)[: len(K)], K, digits + _GUARD)

    moment = integral(square, one)
    slope = integrated(GaussianAverage(square, x, _a).diff(_a), _POINT, digits)
    covariance = integral(product, pair)
    joint = GaussianAverage(product, (x, y), [[_a, _c], [_c, _b]])
    covariance_slope = integrated(joint.diff(_c), _POINT, digits)
    price = [
        ("∂⟨φ²⟩/∂K = ⟨φ'²+φφ''⟩", integral(square * density_score(1), one), slope),
        ("∂⟨φφ⟩/∂K_xy = ⟨φ'φ'⟩", integral(product * density_score(2), pair), covariance_slope),
    ]
    averages = [
        ("M(K)", average.second_moment(numbers[0]), moment),
        ("M'(K)", average.susceptibility(numbers[0]), slope),
        ("⟨φφ⟩", average.covariance(*numbers), covariance),
        ("⟨φ'φ'⟩", average.covariance_susceptibility(*numbers), covariance_slope),
    ]
    return [
        *(_identity("Price's theorem", f"{q}, {name}", a, b, digits) for q, a, b in price),
        *(_float64("averages", f"{q}, {name}", a, b, digits) for q, a, b in averages),
    ]


def connected_checks(name: str, digits: int) -> list[Check]:
    """The correlator ⟨φ²;φ²⟩ of S22 in float64 against integration, of two layers and of one."""
    phi = ACTIVATIONS[name]
    connected, squares = layer_functions(phi).connected, (phi(x) ** 2, phi(y) ** 2)
    checks = []
    for a, b, c in ((VARIANCE_X, VARIANCE_Y, COVARIANCE), (VARIANCE_X,) * 3):
        precise_value = precise.cumulant(squares, (x, y), [[a, c], [c, b]], digits + _GUARD)
        value = connected(float(a), float(b), float(c))
        label = f"⟨φ²;φ²⟩ at K = {a}, {b}, {c}, {name}"
        checks.append(_float64("averages", label, value, precise_value, digits))
    return checks


def network_checks(digits: int) -> list[Check]:
    """All results of `solve` for a network of two layers in float64 against many digits."""
    net = ResidualNetwork(depth=2, branch_scale=(0.5, 0.75), skip_scale=0.875, width=500)
    s, reference = solve(net, 0.25), solve(net, 0.25, digits=digits + _GUARD)
    quantities: dict[str, Callable[[Any], Any]] = {
        "K": lambda of: of.kernels,
        "η": lambda of: [*of.residual_response, of.output_response],
        "χ": lambda of: [*of.response, of.output_response],
    }
    checks = [
        _float64("network", f"{name}^({l}), erf", value, values(reference)[l], digits)
        for name, values in quantities.items()
        for l, value in enumerate(values(s))
    ]
    for block in ("G12", "G11"):
        numbers, precisely = getattr(s, block), getattr(reference, block)
        checks += [
            _float64("network", f"{block}[{l},{m}], erf", numbers[l, m], precisely[l, m], digits)
            for l, m in zip(*np.tril_indices(len(numbers)), strict=True)
            if precisely[l, m] != 0
        ]
    return checks


def maximum_entropy_checks(name: str, digits: int) -> list[Check]:
    """The variance that makes φ(h) most uniform, and the divergence there and elsewhere."""
    group, working = "maximum entropy", digits + 2 * _GUARD
    with mpmath.workdps(working):
        formula = precise.mpf(entropy.variance_formula(name), working)
        integral = entropy.precise_variance(name, working)
        checks = [_identity(group, f"σ² at the minimum of D_KL, {name}", formula, integral, digits)]
        for variance in (0.25, 30.0):
            value = entropy.divergence(name, variance)
            reference = entropy.precise_divergence(name, variance, working)
            quantity = f"D_KL at σ² = {variance:g}, {name}"
            checks.append(_float64(group, quantity, value, reference, digits))
    return checks


def density_score(size: int) -> sp.Expr:
    """∂ ln N(h; 0, K)/∂K by the variance (one variable) or by the covariance (two), at a point.

    >>> density_score(1)
    50*x**2/49 - 5/7
    """
    K = sp.Matrix([[_a]]) if size == 1 else sp.Matrix([[_a, _c], [_c, _b]])
    h = sp.Matrix([x, y][:size])
    log_density = -sp.log(K.det()) / 2 - (h.T * K.inv() * h)[0] / 2
    return sp.expand(sp.diff(log_density, K[0, size - 1]).subs(_POINT))


def _identity(group: str, quantity: str, left: Any, right: Any, digits: int) -> Check:
    with mpmath.workdps(digits + 2 * _GUARD):
        difference = _relative(left, right)
    return Check(group, quantity, "", mpmath.nstr(right, digits), difference, 10.0**-digits)


def _float64(group: str, quantity: str, value: Any, reference: Any, digits: int) -> Check:
    with mpmath.workdps(digits + 2 * _GUARD):
        difference = _relative(mpmath.mpf(float(value)), reference)
    reference_text = mpmath.nstr(reference, digits)
    return Check(group, quantity, repr(float(value)), reference_text, difference, FLOAT64_TOLERANCE)


def _relative(value: Any, reference: Any) -> float:
    difference, size = abs(value - reference), abs(reference)
    is_zero = size <= mpmath.mpf(10) ** (-mpmath.mp.dps // 2)
    return float(difference if is_zero else difference / size)
