"""Claims of SR on what kernels can express: (6), Propositions 2–6, 8 and 9, Theorem 1, Corollary 1.

On spheres a kernel is universal if all its eigenvalues are positive, for which strictly positive
coefficients of its power series in x·x' suffice. For ReLU d²⟨φφ⟩/dC² = 1/(2π √(1 − C²)) at variance
one, so that ⟨φφ⟩ has the powers 0, 1 and all even ones of C, with positive coefficients. Where C
has a constant and a linear term, as from the second layer on, its even powers have all those of
x·x'; they are checked up to a degree. On other compact sets positive eigenvalues of the kernel on
some inputs are checked, no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.inference.kernel_function import kernel
from fieldtheory.inference.spectra import power_coefficients
from fieldtheory.literature.claim import bound, claims_of, double, interval, number, unchecked
from fieldtheory.literature.evidence import at
from fieldtheory.literature.sr_kernels import BIASED, UNBIASED, stable_network
from fieldtheory.literature.sr_limits import INPUTS, limit_of
from fieldtheory.networks.residual import input_kernel
from fieldtheory.numerics.solution import solve

_DEGREES = 24
_POSITIVE = (0.0, np.inf)
_SERIES = f"smallest of the first {_DEGREES} coefficients of the power series in x·x'"
_SPHERE = f"{_SERIES} of Ψ_{{L−1}}, a part of Q_L"
_EIGENVALUE = "smallest eigenvalue over the trace, 5 inputs of different lengths"
_ALL_DEGREES = "positive for all degrees by the series of ⟨φφ⟩, which has all even powers"
_SOME_INPUTS = "it is shown for these inputs alone"

t = sp.Symbol("t", real=True)
# A positive zonal kernel.
_PROFILE = (1 + 2 * t + 3 * t**2 + t**3 + t**4) / 8
_POLAR, _AZIMUTH, _POLAR_2, _AZIMUTH_2 = sp.symbols("a b a' b'", real=True)
_PLACES = tuple(
    dict(zip((_POLAR, _AZIMUTH, _POLAR_2, _AZIMUTH_2), angles, strict=True))
    for angles in ((1, 2, sp.Rational(1, 3), -1), (sp.Rational(5, 2), 0, 1, 3))
)


def least_coefficient(schedule: Any, depth: int, parameters: Mapping[str, Any]) -> float:
    """The smallest coefficient of the part λ² Ψ_{L−1} of Q_L, without λ², on the unit circle."""
    network = stable_network(schedule, depth, **parameters)
    scales = network.branch_scales[:-1]
    before = stable_network(scales, depth - 1, **parameters)
    return float(power_coefficients(before, count=_DEGREES).min())


def least_eigenvalue(Q: np.ndarray) -> float:
    """The smallest eigenvalue over the trace."""
    return float(np.linalg.eigvalsh(Q)[0] / np.trace(Q))


def _increments() -> dict[str, float]:
    """The smallest eigenvalue of Q_{l+1} − Q_l over the layers."""
    eigenvalues = {}
    for schedule in ("uniform", "decreasing", "none"):
        network = stable_network(schedule, 6, **BIASED)
        changes = np.diff(solve(network, input_kernel(INPUTS, network)).kernels[:7], axis=0)
        eigenvalues[network.schedule.formula] = min(map(least_eigenvalue, changes))
    return eigenvalues


def _coefficients(parameters: Mapping[str, Any], *cases: tuple[Any, int]) -> dict[str, float]:
    return {
        f"L = {depth}, λ_l = {stable_network(schedule, depth).schedule.formula}": (
            least_coefficient(schedule, depth, parameters)
        )
        for schedule, depth in cases
    }


def _flow_coefficients(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Of dq_t/dt, to the order 1/L² from L = 32 and 64; those of q_t are their integrals."""

    def least(t: float) -> float:
        coarse, fine = (
            power_coefficients(
                stable_network(depth**-0.5, int(depth * t), **parameters), count=_DEGREES
            )
            for depth in (32, 64)
        )
        return float((2 * fine - coarse).min())

    return at("t", (0.125, 1), least)


def _deep_eigenvalues(schedule: str, difference: bool) -> dict[str, float]:
    """Of q_t, or of θ_t − q_t, at two depths; of Q_∞ or Θ_∞ − Q_∞ at infinite depth."""
    limit = limit_of(schedule)
    values = limit.tangent_kernels - limit.kernels if difference else limit.kernels
    places = {"t = 0.05": 1, "t = 1": -1} if schedule == "uniform" else {"L = ∞": -1}
    return {name: least_eigenvalue(values[place]) for name, place in places.items()}


def _of_layer_two(X: np.ndarray, parameters: Mapping[str, Any]) -> float:
    network = stable_network("none", 2, **parameters)
    return least_eigenvalue(solve(network, input_kernel(X, network)).kernels[2])


@lru_cache
def zonal_eigenvalue(profile: sp.Expr, degree: int) -> sp.Expr:
    """μ_k = 2π ∫ p(t) P_k(t) dt of a kernel p(x·x') on the sphere in three dimensions.

    >>> [zonal_eigenvalue(t**2, k) for k in range(4)]
    [4*pi/3, 0, 8*pi/15, 0]
    """
    return 2 * sp.pi * sp.integrate(sp.expand(profile * sp.legendre(degree, t)), (t, -1, 1))


def _decomposed(point: Mapping[Any, Any], digits: int) -> Any:
    """Σ_k μ_k Σ_j Y_kj(x) Y_kj(x')."""
    with mpmath.workdps(digits + 10):
        a, b, c, d = (mpmath.mpmathify(sp.N(point[s], digits + 10)) for s in _PLACES[0])
        total = mpmath.mpf(0)
        for k in range(sp.degree(_PROFILE, t) + 1):
            weight = mpmath.mpmathify(sp.N(zonal_eigenvalue(_PROFILE, k), digits + 10))
            for m in range(-k, k + 1):
                one, other = mpmath.spherharm(k, m, a, b), mpmath.spherharm(k, m, c, d)
                total += weight * mpmath.re(one * mpmath.conj(other))
        return total


def _zonal(point: Mapping[Any, Any], digits: int) -> Any:
    product = sp.cos(_POLAR) * sp.cos(_POLAR_2)
    product += sp.sin(_POLAR) * sp.sin(_POLAR_2) * sp.cos(_AZIMUTH - _AZIMUTH_2)
    return mpmath.mpmathify(sp.N(_PROFILE.subs(t, product).subs(point), digits + 10))


def _operator() -> dict[str, float]:
    angles = 2 * np.pi * np.arange(40) / 40
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    eigenvalues = {}
    for schedule in ("uniform", "decreasing", "none"):
        network = stable_network(schedule, 3)
        Q = solve(network, input_kernel(X, network)).kernels[3]
        eigenvalues[network.schedule.formula] = least_eigenvalue(Q)
    return eigenvalues


def _expanded() -> dict[str, float]:
    """Σ μ_k ψ_k(x) ψ_k(x') − Q_3(x, x') on the circle, with μ_k from 4096 inputs."""
    function = kernel(stable_network("uniform", 3), "kernel", 3)

    def profile(angles: np.ndarray) -> np.ndarray:
        points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.asarray(function(np.array([[1.0, 0.0]]), points))[0]

    count = 4096
    mu = np.fft.rfft(profile(2 * np.pi * np.arange(count) / count)).real / count
    k = np.arange(len(mu))
    angles = np.array([0.5, 1.2345, 3.0])
    series = mu[0] + 2 * np.cos(np.outer(angles, k[1:-1])) @ mu[1:-1]
    deviations = np.abs(series - profile(angles))
    return {f"angle {a:g}": float(d) for a, d in zip(angles, deviations, strict=True)}


_TRAINED = unchecked(
    "the trained networks and kernels of section 7",
    "percent",
    lambda: "it takes images and hours of computing; see fieldtheory figures for Table 3",
)
_BIASED_SPHERE, _UNBIASED_SPHERE = "σ_b > 0, on spheres", "σ_b = 0, on spheres"
_PARALLEL = "σ_b > 0, two of the inputs parallel"
_PRODUCTS = (
    "by (9) it is a sum of products of covariances, with or without bias: the tangent kernel is "
    "universal where the other is"
)

_STATEMENTS = {
    "Proposition 2: smallest eigenvalue over the trace of Q_{l+1} − Q_l, not negative": interval(
        "l = 0 to 5, 5 inputs of different lengths, σ_b > 0",
        _POSITIVE,
        _increments,
        "λ² Ψ_l is a covariance, so that it is so for all inputs (N. Aronszajn 1950)",
    ),
    "Lemma 2: smallest eigenvalue of T(Q_3) over the trace, not below rounding": interval(
        "ReLU kernels, 40 inputs on the circle",
        (-1e-12, np.inf),
        _operator,
        "the lemma is standard; these are instances",
    ),
    "Lemma 3: expressive Gaussian processes": unchecked(
        "universal kernels",
        "of every universal kernel",
        lambda: "a statement on all functions of L²(K)",
    ),
    "Table 1: test accuracies of Wide-ResNet kernels": _TRAINED,
    "Table 2: test accuracies of fully connected kernels": _TRAINED,
    "Table 3: test accuracies of trained convolutional ResNets": _TRAINED,
    "(6): |Σ_k μ_k ψ_k(x) ψ_k(x') − Q_L(x, x')|, zero up to rounding": interval(
        "uniform scaling, L = 3, on the circle",
        (-1e-10, 1e-10),
        _expanded,
        "the covariance of the two sides; Gaussian processes have no other cumulant",
    ),
    f"Proposition 3: {_SPHERE}": interval(
        _BIASED_SPHERE,
        _POSITIVE,
        partial(_coefficients, BIASED, ("none", 2), ("uniform", 2), ("none", 20)),
        f"{_ALL_DEGREES}; with a bias Q_1 has them, too",
    ),
    f"Proposition 3: {_EIGENVALUE}": interval(
        _PARALLEL, _POSITIVE, lambda: {"L = 2": _of_layer_two(INPUTS, BIASED)}, _SOME_INPUTS
    ),
    "text after Proposition 3: smallest eigenvalue over the trace of Q_2 for x and 2x, "
    "zero without bias": double(
        "σ_b = 0", sp.S.Zero, lambda point: _of_layer_two(INPUTS[:2], UNBIASED)
    ),
    f"Proposition 4: {_SPHERE}": interval(
        "σ_b = 0, L >= 2, on spheres",
        _POSITIVE,
        partial(_coefficients, UNBIASED, ("none", 2), ("uniform", 2), ("none", 20)),
        f"{_ALL_DEGREES}; Q_1 lacks the odd ones from 3 on",
    ),
    "Proposition 5: p(x·x') from spherical harmonics and their eigenvalues": number(
        "d = 3, p of degree 4", _decomposed, _zonal, points=_PLACES
    ),
    "Proposition 5: eigenvalues μ_k of tⁿ, not negative": bound(
        "d = 3, n and k up to 5",
        sp.zeros(6, 6),
        lambda: sp.Matrix(6, 6, lambda n, k: zonal_eigenvalue(t**n, k)),
    ),
    f"Theorem 1: {_SERIES} of dq_t/dt": interval(
        _BIASED_SPHERE, _POSITIVE, partial(_flow_coefficients, BIASED), _ALL_DEGREES
    ),
    f"Proposition 6: {_SERIES} of dq_t/dt": interval(
        _UNBIASED_SPHERE, _POSITIVE, partial(_flow_coefficients, UNBIASED), _ALL_DEGREES
    ),
    f"Theorem 1: {_EIGENVALUE}": interval(
        _PARALLEL, _POSITIVE, partial(_deep_eigenvalues, "uniform", False), _SOME_INPUTS
    ),
    f"Corollary 1: {_SPHERE}": [
        interval(
            region,
            _POSITIVE,
            partial(_coefficients, parameters, ("decreasing", 2), ("decreasing", 50)),
            f"{_ALL_DEGREES}; Q_∞ has them by Proposition 2",
        )
        for parameters, region in (
            (BIASED, _BIASED_SPHERE),
            (UNBIASED, _UNBIASED_SPHERE),
        )
    ],
    f"Corollary 1: {_EIGENVALUE}": interval(
        _PARALLEL, _POSITIVE, partial(_deep_eigenvalues, "decreasing", False), _SOME_INPUTS
    ),
    f"Proposition 8: {_EIGENVALUE}, of Θ_∞ − Q_∞": interval(
        _PARALLEL, _POSITIVE, partial(_deep_eigenvalues, "decreasing", True), _PRODUCTS
    ),
    f"Proposition 9: {_EIGENVALUE}, of θ_t − q_t": interval(
        _PARALLEL, _POSITIVE, partial(_deep_eigenvalues, "uniform", True), _PRODUCTS
    ),
}

CLAIMS = claims_of("SR", _STATEMENTS)
