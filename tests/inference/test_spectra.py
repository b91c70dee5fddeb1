"""Eigenvalues on spheres against mpmath, matrices of points, and exact kernels."""

import mpmath as mp
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.inference import power_coefficients, spectra
from fieldtheory.inference.spectra import multiplicities
from tests.tables import slow


def relu_kernel(theta, depth, dimension, digits=30):
    """K^(L+1) of a ReLU network without biases, σ_w² = 2, ρ² = 1/L, for inputs at an angle."""
    with mp.workdps(digits):
        K = mp.mpf(2) / dimension
        c = mp.cos(theta)
        for layer in range(depth + 1):
            angle = mp.acos(c)
            image = (mp.sin(angle) + (mp.pi - angle) * c) / mp.pi
            if layer == depth:
                return K * image
            c = (c + image / depth) / (1 + mp.mpf(1) / depth)
            K *= 1 + mp.mpf(1) / depth


def relu(depth):
    return ft.ResidualNetwork(
        depth=depth,
        activation="relu",
        branch_scale=depth**-0.5,
        weight_variance=2.0,
        bias_variance=0.0,
    )


@pytest.mark.parametrize(("dimension", "depth"), [(2, 1), slow(2, 30), slow(3, 5), slow(10, 2)])
def test_eigenvalues_of_relu_are_those_of_mpmath(dimension, depth):
    found = ft.spectrum(relu(depth), dimension=dimension, count=8)

    def polynomial(k, t):
        if dimension == 2:
            return mp.chebyt(k, t)
        index = mp.mpf(dimension) / 2 - 1
        return mp.gegenbauer(k, index, t) / mp.gegenbauer(k, index, 1)

    def integral(f):
        return mp.quad(
            lambda x: f(x) * mp.sin(x) ** (dimension - 2), [0, 0.05, 0.5, mp.pi / 2, 2.5, mp.pi]
        )

    with mp.workdps(20):
        total = integral(lambda x: mp.mpf(1))
        for k in (0, 1, 3, 4, 7):
            exact = integral(
                lambda x, k=k: relu_kernel(x, depth, dimension, 20) * polynomial(k, mp.cos(x))
            )
            assert found.eigenvalues[k] == pytest.approx(float(exact / total), rel=1e-10, abs=1e-14)


def of_power(n, dimension, count):
    """Eigenvalues of tⁿ: binom(n, k) k! Γ(d/2) Γ((n−k+1)/2) / (2^k √π Γ((n+k+d)/2))."""
    found = [mp.mpf(0)] * count
    for k in range(n % 2, min(n + 1, count), 2):
        gammas = mp.gammaprod(
            [mp.mpf(dimension) / 2, mp.mpf(n - k + 1) / 2], [mp.mpf(n + k + dimension) / 2]
        )
        found[k] = mp.binomial(n, k) * mp.factorial(k) * gammas / 2**k / mp.sqrt(mp.pi)
    return np.array(found)


@pytest.mark.parametrize("dimension", [2, 3, 10, 100, 784, 3072, 10_000, 100_000])
@pytest.mark.parametrize("count", [1, 6, 60])
def test_spheres_of_all_dimensions(dimension, count):
    """The weight sin^(d−2) θ is a peak of width 1/√d, at any count."""
    for n in (0, 1, 2, 3, 7, 20):
        exact = of_power(n, dimension, count).astype(float)
        for nodes in spectra._NODES:
            found = spectra._projected(lambda a, n=n: np.cos(a) ** n, dimension, count, nodes)
            assert np.abs(found - exact).max() < 2e-15


@pytest.mark.parametrize("dimension", [784, 3072, 100_000])
def test_eigenvalues_of_relu_on_images(dimension):
    """Their power series, of which few terms count where cosines are of order 1/√d."""
    found = ft.spectrum(relu(1), dimension=dimension, norm=28.0, count=8)
    with mp.workdps(30):
        series = mp.taylor(lambda t: relu_kernel(mp.acos(t), 1, dimension, 500), 0, 14)
        exact = 28**2 * sum(b * of_power(n, dimension, 8) for n, b in enumerate(series))
    assert np.abs(found.eigenvalues - exact.astype(float)).max() < 1e-14 * found.trace
    shares = (multiplicities(dimension, 2) * exact[:2]).astype(float) / found.trace
    assert found.shares[:2] == pytest.approx(shares, rel=1e-9)


def test_eigenvalues_are_those_of_a_matrix_of_points_on_the_circle():
    net = ft.ResidualNetwork(depth=6, activation="tanh", branch_scale=0.5)
    angles = 2 * np.pi * np.arange(64) / 64
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    values = np.linalg.eigvalsh(ft.kernel(net)(points))[::-1] / 64
    found = ft.spectrum(net, count=12)
    expected = np.repeat(found.eigenvalues, found.multiplicities.astype(int))
    assert values[: len(expected)] == pytest.approx(np.sort(expected)[::-1], abs=1e-14)


@pytest.mark.parametrize("count", [5, 200])
@pytest.mark.parametrize("quantity", ["output_kernel", "tangent_kernel"])
def test_transform_on_the_circle_is_the_integral(quantity, count, monkeypatch):
    net = ft.ResidualNetwork(depth=20, activation="erf", branch_scale="uniform")
    found = ft.spectrum(net, quantity=quantity, count=count)
    monkeypatch.setattr(spectra, "_transformed", lambda *_: (np.empty(0), np.inf))
    integrated = ft.spectrum(net, quantity=quantity, count=count)
    assert not np.array_equal(found.eigenvalues, integrated.eigenvalues)
    errors = np.abs(found.eigenvalues - integrated.eigenvalues)
    assert errors.max() < 3e-15 * found.trace


@pytest.mark.parametrize("dimension", [2, 3, 50, 784, 100_000])
def test_linear_networks_have_two_degrees(dimension):
    net = ft.ResidualNetwork(depth=3, activation="linear", branch_scale=0.5)
    found = ft.spectrum(net, dimension=dimension, norm=2.0, count=5)
    gain = (1 + 0.25 * 1.25) ** 3 * 1.25
    slope = 1.25 * 4.0 / dimension * gain
    assert found.eigenvalues[1] == pytest.approx(slope / dimension, rel=1e-12)
    assert found.eigenvalues[0] + slope == pytest.approx(found.trace, rel=1e-12)
    assert np.all(np.abs(found.eigenvalues[2:]) < 1e-14 * found.trace)
    assert found.shares.sum() == pytest.approx(1)


def test_shares_add_up_to_one():
    for quantity in ("output_kernel", "tangent_kernel"):
        found = ft.spectrum(relu(4), dimension=3, quantity=quantity, count=400)
        # What is left falls off with the degree as a power, by kinks.
        assert (
            0 < 1 - found.shares.sum() < {"output_kernel": 1e-6, "tangent_kernel": 5e-3}[quantity]
        )
        assert found.eigenvalues.min() > 0
    assert multiplicities(4, 4).tolist() == [1, 4, 9, 16]


def test_result_shows_and_stores_itself(tmp_path):
    found = ft.spectrum(relu(3), count=6)
    found.save(tmp_path / "spectrum.npz")
    again = type(found).load(tmp_path / "spectrum.npz")
    assert again.network == found.network and again.trace == found.trace
    assert np.array_equal(again.eigenvalues, found.eigenvalues)
    assert len(found.plot().axes) == 1 and "<table>" in found._repr_html_()
    assert found.to_xarray().eigenvalues.dims == ("degree",)
    assert repr(found) == "Spectrum(output kernel on a circle, degrees=0..5)"


class TestPowerCoefficients:
    def test_relu_by_its_taylor_series(self):
        """f(c) = (√(1−c²) + (π − arccos c) c)/π, composed by mpmath."""
        with mp.workdps(40):

            def kernel(t):
                K, c = mp.mpf(1), t
                for layer in range(3):
                    image = (mp.sqrt(1 - c * c) + (mp.pi - mp.acos(c)) * c) / mp.pi
                    if layer == 2:
                        return K * image
                    c = (c + image / 2) / mp.mpf(1.5)
                    K *= mp.mpf(1.5)

            exact = mp.taylor(kernel, 0, 9)
        found = power_coefficients(relu(2), count=10)
        assert found == pytest.approx([float(b) for b in exact], rel=1e-12)

    def test_they_add_up_to_the_kernel(self):
        net = ft.ResidualNetwork(depth=3, activation="tanh", branch_scale=0.5)
        b = power_coefficients(net, dimension=3, norm=1.2, count=50)
        t = np.array([-0.9, 0.0, 0.3, 0.8])
        points = 1.2 * np.sqrt(2 / 3) * np.stack([t, np.sqrt(1 - t**2)], axis=1)
        start = np.array([[1.2 * np.sqrt(2 / 3), 0.0]])
        assert np.polynomial.Polynomial(b)(t) == pytest.approx(
            ft.kernel(net)(start, points)[0], rel=1e-9
        )

    def test_universality(self):
        """SR Propositions 4 and 6: ReLU expresses all degrees, odd functions without bias half."""
        assert np.all(power_coefficients(relu(2), count=40) > 0)
        odd = ft.ResidualNetwork(depth=5, activation="erf", bias_variance=0.0)
        assert np.all((power_coefficients(odd, count=20) > 0) == (np.arange(20) % 2 == 1))
        assert np.all(power_coefficients(odd.replace(bias_variance=0.1), count=20) > 0)
        linear = power_coefficients(odd.replace(activation="linear", bias_variance=0.1), count=9)
        assert np.all((linear > 0) == (np.arange(9) < 2))
