"""Eigenvalues of kernels on circles and spheres, and their power series.

For inputs of one norm a kernel depends on their angle alone, Q(x, x') = p(cos θ), and spherical
harmonics are its eigenfunctions (SR Proposition 5). By its power series in cos θ it can or cannot
express any function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import fft, special

from fieldtheory import validation
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import composite
from fieldtheory.inference.kernel_function import kernel
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork, deep_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.infinite_width.block_functions import Entry, network_functions
from fieldtheory.numerics.infinite_width.kernels import variances
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.numerics.stored import Stored
from fieldtheory.plotting.layers import draw_curve
from fieldtheory.plotting.tables import table_html

# By how much eigenvalues may change with fewer nodes, relative to p(1).
_ERROR = 1e-12
# Nodes of a panel in the angle, and fewer.
_NODES = (20, 15)
# Cuts of the peak of the weight, in its widths: beyond nothing is left.
_PEAK = np.arange(-12.0, 12.5, 1.0)
# Fewest intervals of the angle for a transform, a power of two.
_FEWEST = 128
FIELDS = fields_of(
    r"""
    eigenvalues | degree | \mu_k | eigenvalues of the kernel | always
    multiplicities | degree | N(d, k) | spherical harmonics of the degree | labelled
    shares | degree | N \mu_k / p(1) | part of the variance in the degree | labelled
    """
)


@dataclass(frozen=True, eq=False)
class Spectrum(Stored):
    """Eigenvalues of a kernel on a sphere, as `spectrum` returns them.

    Parameters
    ----------
    network : DeepNetwork
    quantity : str
    dimension : int
        d of the inputs; the sphere S^(d−1) is the circle for d = 2.
    norm : float
        |x| of the inputs.
    eigenvalues : ndarray, shape (count,)
        μ_k of the integral operator for the uniform distribution over the sphere, degree k
        ascending.
    trace : float
        p(1) = Σ_k N(d, k) μ_k over all degrees.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> found = spectrum(ft.ResidualNetwork(depth=3, activation="linear"), count=3)
    >>> found.shares.round(12).tolist()[2], found.multiplicities.tolist()
    (0.0, [1.0, 2.0, 2.0])
    """

    table = FIELDS
    settings: ClassVar = {"quantity": str, "dimension": int, "norm": float, "trace": float}

    network: DeepNetwork
    quantity: str
    dimension: int
    norm: float
    eigenvalues: np.ndarray
    trace: float

    @property
    def multiplicities(self) -> np.ndarray:
        """N(d, k), the number of spherical harmonics of degree k, shape (count,)."""
        return multiplicities(self.dimension, len(self.eigenvalues))

    @property
    def normalised(self) -> np.ndarray:
        """The eigenvalues relative to the largest, as SR Fig. 2 shows them, shape (count,)."""
        return np.asarray(self.eigenvalues / self.eigenvalues.max())

    @property
    def shares(self) -> np.ndarray:
        """The part of the variance in every degree, N(d, k) μ_k / p(1), shape (count,).

        Zero where the eigenvalue is below its error.
        """
        parts = self.eigenvalues / self.trace
        return np.where(np.abs(parts) > _ERROR, self.multiplicities * parts, 0.0)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for every degree, for a table."""
        columns = {
            "degree": range(len(self.eigenvalues)),
            "multiplicity": self.multiplicities.tolist(),
            "eigenvalue": self.eigenvalues.tolist(),
            "share": self.shares.tolist(),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def plot(self) -> Any:
        """The eigenvalues relative to the largest against their degree, those above rounding.

        Returns
        -------
        matplotlib.figure.Figure
        """
        degrees = np.flatnonzero(self.normalised > _ERROR)
        names = "degree $k$", r"$\mu_k \,/\, \max_k \mu_k$"
        return draw_curve(degrees, self.normalised[degrees], names, self._title, logarithmic=True)

    def _coordinates(self) -> dict[str, Any]:
        return {"degree": np.arange(len(self.eigenvalues))}

    def __repr__(self) -> str:
        return f"Spectrum({self._title}, degrees=0..{len(self.eigenvalues) - 1})"

    def _repr_html_(self) -> str:
        return table_html(self.rows, self._title)

    @property
    def _title(self) -> str:
        where = "circle" if self.dimension == 2 else f"sphere in {self.dimension} dimensions"
        return f"{self.quantity.replace('_', ' ')} on a {where}"


@named_arguments
def spectrum(
    network: DeepNetwork,
    dimension: int = 2,
    norm: float = 1.0,
    quantity: str = "output_kernel",
    count: int = 30,
) -> Spectrum:
    """Eigenvalues of a kernel of infinitely wide networks for inputs uniform on a sphere.

        μ_k = ∫ p(t) P_k(t) (1 − t²)^((d−3)/2) dt / ∫ (1 − t²)^((d−3)/2) dt

    with Q(x, x') = p(cos θ) and P_k the Gegenbauer polynomials, P_k(1) = 1 (SR Proposition 5); on
    the circle P_k(cos θ) = cos kθ. The integrals are taken over the angle, in which kernels are
    smooth up to its ends; in t they are not. On the circle they are a fast Fourier transform where
    that converges, as for smooth φ; with kinks, or where depth makes all angles but the smallest
    alike, it falls off as a power of the number of angles only, and panels are used as on spheres.

    Parameters
    ----------
    network : DeepNetwork
        Its kernel of the input is σ²_w,in |x|² cos θ/d + σ²_b,in.
    dimension : int
        d >= 2.
    norm : float
        |x| > 0 of the inputs.
    quantity : str
        Which kernel, as for `fieldtheory.kernel`.
    count : int
        The number of degrees k = 0, ..., count − 1.

    Returns
    -------
    Spectrum
        Errors of μ_k are below 1e-12 p(1); eigenvalues below that are rounding.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.
    QuadratureError
        If this error is missed.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=20, activation="relu", branch_scale=20**-0.5)
    >>> found = spectrum(net, dimension=3, count=4)
    >>> [int(n) for n in found.multiplicities], bool((found.eigenvalues > 0).all())
    ([1, 3, 5, 7], True)
    """
    deep_network(network, "spectrum")
    dimension = validation.integer("dimension", dimension, 2)
    count = validation.integer("count", count, 1)
    norm = validation.positive("norm", norm)
    function = kernel(network, quantity)
    # Two coordinates suffice; the kernel of the input divides by their number instead of d.
    radius = norm * math.sqrt(2 / dimension)

    def profile(angles: np.ndarray) -> np.ndarray:
        points = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.asarray(function(np.array([[radius, 0.0]]), points))[0]

    trace = float(profile(np.zeros(1))[0])
    eigenvalues, error = np.empty(0), np.inf
    if dimension == 2:
        eigenvalues, error = _transformed(profile, count)
    if not error <= _ERROR * trace:
        eigenvalues, rougher = (_projected(profile, dimension, count, nodes) for nodes in _NODES)
        error = np.abs(eigenvalues - rougher).max()
    if not error <= _ERROR * trace:
        raise QuadratureError(
            f"the eigenvalues on the sphere are known to {error / trace:.1g} of their sum only, "
            f"not to {_ERROR:.0g}"
        )
    return Spectrum(
        network,
        quantity,
        dimension,
        norm,
        eigenvalues,
        trace,
    )


def _transformed(profile: Any, count: int) -> tuple[np.ndarray, float]:
    """Σ p cos kθ over equal angles by a fast Fourier transform, and what half of them change."""
    intervals = max(_FEWEST, 2 ** math.ceil(math.log2(4 * count)))
    values = profile(np.pi * np.arange(intervals + 1) / intervals)
    sums, rougher = (
        fft.dct(values[::step], type=1)[:count] * (step / (2 * intervals)) for step in (1, 2)
    )
    return sums, float(np.abs(sums - rougher).max())


def _projected(profile: Any, dimension: int, count: int, nodes: int) -> np.ndarray:
    """∫ p(cos θ) P_k(cos θ) sin^(d−2) θ dθ over that of 1, on panels that halve towards 0 and π."""
    # Weights relative to their sum that a spectrum does not need, as |p(t) P_k(t)| <= p(1).
    negligible = 1e-20
    # They halve so often since deep networks tell apart small angles; times the degree they are no
    # wider than this.
    halvings, widest = 26, 6.0
    halves = np.pi / 2 * 0.5 ** np.arange(halvings + 1)
    evenly = np.linspace(0, np.pi, 2 + int(count * np.pi / widest))
    peak = np.pi / 2 + _PEAK / np.sqrt(dimension)
    cuts = np.concatenate([halves, np.pi - halves, evenly, peak[(peak > 0) & (peak < np.pi)]])
    angles, weights = composite(np.unique(cuts), nodes)
    # The logarithm of the weight, as its powers underflow in many dimensions.
    logs = (dimension - 2) * np.log(np.sin(angles))
    weights = weights * np.exp(logs)
    # In many dimensions nearly all inputs are nearly orthogonal: no kernels at other angles.
    kept = weights > negligible * weights.sum()
    angles, weights = angles[kept], weights[kept]
    cosines = np.cos(angles)
    weighted = weights / weights.sum() * profile(angles)
    # (k + d − 2) P_{k+1} = (2k + d − 2) t P_k − k P_{k-1}, which is stable; on the circle cos kθ.
    before, polynomial = cosines, np.ones_like(cosines)
    coefficients = np.empty(count)
    for k in range(count):
        coefficients[k] = weighted @ polynomial
        divisor = k + dimension - 2
        following = (2 * k + dimension - 2) * cosines * polynomial - k * before
        before, polynomial = polynomial, following / divisor if divisor else cosines
    return coefficients


def multiplicities(dimension: int, count: int) -> np.ndarray:
    """N(d, k) = (2k + d − 2)/(k + d − 2) binomial(k + d − 2, k) for k = 0, ..., count − 1.

    Examples
    --------
    >>> multiplicities(2, 3).tolist(), multiplicities(3, 3).tolist()
    ([1.0, 2.0, 2.0], [1.0, 3.0, 5.0])
    """
    k = np.arange(count)
    if dimension == 2:
        return np.where(k == 0, 1.0, 2.0)
    ways = special.binom(k + dimension - 2, k)
    return np.asarray((2 * k + dimension - 2) / (k + dimension - 2) * ways)


@named_arguments
def power_coefficients(
    network: DeepNetwork, dimension: int = 2, norm: float = 1.0, count: int = 12
) -> np.ndarray:
    """The output kernel on a sphere as a power series, p(t) = Σ_n b_n tⁿ with t = cos θ.

    No b_n is negative, so that the kernel is positive on spheres of any dimension. An eigenvalue
    of degree k is a sum over n = k, k + 2, ... of b_n times a positive number: where infinitely
    many b_n of even and of odd n are positive, all eigenvalues are, and the kernel is universal on
    the sphere (SR Propositions 4 and 6).

    Layers compose the series of the correlation c(t) with that of φ in Hermite polynomials,
    ⟨φφ⟩ = Σ_m ⟨φ h_m⟩² c^m. All terms are positive, so that no digits cancel.

    Parameters
    ----------
    network : DeepNetwork
    dimension, norm
        As for `spectrum`.
    count : int
        The number of coefficients, 1 to 60.

    Returns
    -------
    ndarray, shape (count,)
        b_n from the first 64 Hermite polynomials. Without biases these are all that contribute;
        else it is a lower bound. Coefficients ⟨φ h_m⟩ below 1e-13 √⟨φ²⟩ count as zero.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> relu, erf = (ft.ResidualNetwork(depth=1, activation=phi, bias_variance=0.0)
    ...              for phi in ("relu", "erf"))
    >>> bool((power_coefficients(relu) > 0).all())
    True
    >>> [n for n, b in enumerate(power_coefficients(erf, count=8)) if b > 0]
    [1, 3, 5, 7]
    """
    deep_network(network, "power_coefficients")
    dimension = validation.integer("dimension", dimension, 2)
    norm = validation.nonnegative("norm", norm)
    count = validation.integer("count", count, 1)
    if count > 60:
        raise ValueError(f"count must be an integer from 1 to 60, got {count}")
    parameters = network.parameters
    slope = parameters["readin_weight_variance"] * norm**2 / dimension
    series = np.array([parameters["readin_bias_variance"], slope, *np.zeros(count)])[:count]
    K = variances(network, np.array(parameters["readin_bias_variance"] + slope))[1]
    layers, functions = layer_coefficients(network), network_functions(network)
    for l in range(1, network.depth + 2):
        layer, composed, carried = functions.layer(l), np.eye(1, count)[0], series
        if isinstance(layer, LayerFunctions):
            composed = _composed(layer, K[l - 1], series)
        else:
            for phi, signal in zip(layer.factors, layer.signals, strict=True):
                Q = float(signal.own(K[l - 1])[0])
                part = _composed(phi, Q, _of_series(signal, K[l - 1], series))
                composed = np.convolve(composed, part)[:count]
            if layer.stream is not None:
                carried = _of_series(layer.stream, K[l - 1], series)
        series = layers.skips[l] * carried + layers.weights[l] * composed
        series[0] += layers.biases[l]
    return series


def _of_series(entry: Entry, K: float, series: np.ndarray) -> np.ndarray:
    """The series of an entry that is linear in K_αβ at fixed variances."""
    value, _, _, slope = (float(x) for x in entry.pair(K, K, 0.0, order=1))
    found = slope * series
    found[0] += value
    return found


def _composed(functions: LayerFunctions, K: float, series: np.ndarray) -> np.ndarray:
    """⟨φφ⟩ = Σ_m ⟨φ h_m⟩² c^m for the series of the covariance, c = K_αβ/K."""
    composed = np.zeros(len(series))
    strengths = np.sum([_coefficients(psi, K) ** 2 for psi in functions.functions], axis=0)
    for strength in strengths[::-1]:
        composed = np.convolve(composed, series / K if K else series)[: len(series)]
        composed[0] += strength
    return composed


def _coefficients(psi: Function, K: float) -> np.ndarray:
    """⟨ψ h_m⟩ over signals of variance K, without those that are rounding, shape (modes,)."""
    modes, rounding = 64, 1e-13
    (values,), _ = Coefficients(psi, modes - 1)(np.array([K]))
    coefficients, size = values[:-1], np.sqrt(values[-1])
    return np.where(np.abs(coefficients) < rounding * size, 0.0, coefficients)
