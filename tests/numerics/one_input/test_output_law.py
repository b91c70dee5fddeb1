"""The law of one output: moments, known mixtures, exact and simulated networks."""

import re
import warnings

import numpy as np
import pytest
from scipy import integrate, special, stats

import fieldtheory as ft
from fieldtheory.numerics.one_input.one_theory import resummed
from fieldtheory.numerics.one_input.output_law import (
    OutputMoments,
    edgeworth,
    mixture,
    nearest_mixture,
)
from tests.examples import K0_PAIR, network, oracle
from tests.oracles import finite_width
from tests.rounding import assert_same
from tests.tables import crossed

METHODS = ("mixture", "edgeworth")


def linear(depth, width, gamma=0.0):
    """Without skip and bias C is K0 times a product of independent chi-squared variables over N."""
    return ft.ResidualNetwork(
        depth=depth,
        activation="linear",
        branch_scale=1.0,
        skip_scale=gamma,
        weight_variance=1.0,
        bias_variance=0.0,
        width=width,
    )


class TestMoments:
    @pytest.mark.parametrize("order", [1, 2])
    def test_edgeworth_has_all_moments_to_its_order(self, order):
        # ⟨y^2n⟩ = (2n − 1)!! K0^n Π_{i<n} (1 + 2i/N)^(L+1), cut off behind N^-order.
        depth, N, K0 = 3, 7.0, 0.6
        law = ft.solve(linear(depth, int(N)), K0, order=order).output_law("edgeworth")
        nodes, weights = special.roots_hermitenorm(40)
        y = nodes * np.sqrt(K0)
        density = law.pdf(y) / np.exp(-(nodes**2) / 2) * np.sqrt(K0)
        for n in range(1, 9):
            series = np.array([1.0, 0.0, 0.0])
            for factor in [[1, 2 * i, 0] for i in range(n)] * (depth + 1):
                series = np.convolve(series, factor)[:3]
            exact = special.factorial2(2 * n - 1) * K0**n
            exact *= series[: order + 1] @ N ** -np.arange(order + 1.0)
            assert weights @ (density * y ** (2 * n)) == pytest.approx(exact, rel=1e-11)

    @pytest.mark.parametrize("activation", ["erf", "relu", "tanh"])
    @pytest.mark.parametrize("order", [1, 2])
    def test_mixture_has_the_mean_and_the_variance(self, activation, order):
        s = ft.solve(network(3, activation, width=30), 0.4, order=order)
        law = s.output_law()
        if order == 1:
            mean, variance = s.residual_kernels[-1] + s.mean_shift[-1], s.G11[-1, -1]
        else:
            mean, variance = s.resummed_mean[-1], s.resummed_variance[-1]
        C, w = law.variances, law.weights
        assert w.sum() == pytest.approx(1, rel=1e-13)
        assert w @ C == pytest.approx(mean, rel=1e-13)
        assert w @ (C - mean) ** 2 == pytest.approx(variance, rel=1e-10)
        assert repr(law) == f"Mixture(mean={mean:.6g}, variances={len(C)})"
        assert C.min() >= s.network.readout_variances[1]

    @pytest.mark.parametrize("activation", ["linear", "erf", "relu", "tanh"])
    def test_mixture_has_the_third_cumulant_to_leading_order(self, activation):
        # Its relative error is of order 1/N.
        errors = []
        for N in (2000, 4000):
            s = ft.solve(network(3, activation, width=N), 0.4, order=2)
            law = s.output_law()
            deviation = law.variances - s.resummed_mean[-1]
            errors.append(law.weights @ deviation**3 / s.third_cumulant[-1] - 1)
        assert abs(errors[1]) < 0.02
        assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)


# Relative variance of C and (3 − s/σ): gamma 2, log-normal 3, inverse gamma 4.
LAWS = {
    "gamma": (2.0, lambda m, v: stats.gamma(m**2 / v, scale=v / m)),
    "log-normal": (
        3.0,
        lambda m, v: stats.lognorm(np.sqrt(np.log1p(v / m**2)), scale=m / np.sqrt(1 + v / m**2)),
    ),
    "inverse gamma": (4.0, lambda m, v: stats.invgamma(2 + m**2 / v, scale=m * (1 + m**2 / v))),
}


class TestKnownMixtures:
    @pytest.mark.parametrize(("name", "spread"), crossed(LAWS, [1e-10, 0.1, 1.5]))
    def test_densities_and_tails(self, name, spread):
        ratio, law_of = LAWS[name]
        C, floor = 0.7, 0.2
        variance = spread * C**2
        moments = OutputMoments(
            C + floor, floor, 0, variance, 2, 0, 0, ratio * variance**2 / C, C + floor, variance
        )
        found, law = mixture(moments), law_of(C, variance)
        for y in (0.1, 3.0):
            for of_y, given in (
                (found.pdf(y), lambda c, y=y: stats.norm.pdf(y, scale=np.sqrt(c))),
                (found.sf(y), lambda c, y=y: stats.norm.sf(y, scale=np.sqrt(c))),
            ):
                # Over probabilities, from both sides where quantiles are exact.
                expected = sum(
                    integrate.quad(lambda p: given(floor + side(p)), 0, 0.5, epsrel=1e-10)[0]  # noqa: B023
                    for side in (law.ppf, law.isf)
                )
                assert of_y == pytest.approx(expected, rel=1e-6 if spread < 1 else 1e-4)

    def test_a_kernel_that_does_not_fluctuate_leaves_a_gaussian(self):
        net = network(2, readout_weight_variance=0.0, readout_bias_variance=0.3)
        for order in (1, 2):
            for method in METHODS:
                law = ft.solve(net, 0.4, order=order).output_law(method)
                y = np.linspace(-3, 3, 7)
                exact = stats.norm(scale=np.sqrt(0.3))
                np.testing.assert_allclose(law.pdf(y), exact.pdf(y), rtol=1e-13)
                np.testing.assert_allclose(law.sf(y), exact.sf(y), rtol=1e-13)

    @pytest.mark.parametrize("skewness", [-1e4, -50.0, 50.0, 1e4])
    @pytest.mark.parametrize("spread", [1e-20, 1e-6, 0.2])
    def test_extreme_skewness_is_bounded(self, skewness, spread):
        third = skewness * spread**1.5
        law = mixture(OutputMoments(1.0, 0.0, 0.0, spread, 2, 0.0, 0.0, third, 1.0, spread))
        C, w = law.variances, law.weights
        assert len(C) < 50_000 and w @ C == pytest.approx(1, rel=1e-12)
        assert w @ (C - 1) ** 2 == pytest.approx(spread, rel=1e-4 if spread > 1e-10 else 0.1)
        assert np.isfinite(law.ppf([0.01, 0.999])).all()

    def test_wide_networks_have_the_gaussian_of_the_theory(self):
        s = ft.solve(network(3, width=10**9), 0.4, order=2)
        exact = stats.norm(scale=np.sqrt(s.output_kernel))
        for method in METHODS:
            np.testing.assert_allclose(
                s.output_density([0.0, 1.0, 3.0], method), exact.pdf([0, 1, 3]), rtol=1e-7
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [1, 2])
class TestOneLaw:
    @pytest.fixture
    def law(self, method, order):
        return ft.solve(network(4, "relu", width=20), 0.4, order=order).output_law(method)

    def test_probabilities_are_integrals_of_the_density(self, law):
        assert 2 * integrate.quad(law.pdf, 0, np.inf, epsabs=1e-12)[0] == pytest.approx(1, rel=1e-9)
        for t in (0.3, 2.0, 5.0):
            expected = integrate.quad(law.pdf, t, np.inf, epsrel=1e-10, epsabs=0)[0]
            assert law.sf(t) == pytest.approx(expected, rel=1e-7)

    def test_it_is_symmetric(self, law):
        y = np.array([[0.0, 0.4], [1.7, 6.0]])
        assert_same(law.pdf(-y), law.pdf(y))
        assert_same(law.cdf(-y), law.sf(y))
        np.testing.assert_allclose(law.cdf(y) + law.sf(y), 1, rtol=1e-14)
        assert law.pdf(y).shape == law.sf(y).shape == (2, 2) and law.pdf(0.3).shape == ()
        assert law.cdf(0.0) == pytest.approx(0.5, rel=1e-14)

    def test_quantiles_invert_it(self, law):
        p = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.999])
        y = law.ppf(p)
        np.testing.assert_allclose(law.cdf(y), p, rtol=1e-11)
        assert y[4] == 0 and law.ppf(0.5).shape == ()
        np.testing.assert_allclose(law.ppf([0.25]), -law.ppf([0.75]), rtol=1e-13)

    def test_many_values_are_those_of_each(self, law):
        y = np.linspace(-8, 8, 10_001)
        np.testing.assert_allclose(law.pdf(y)[::500], [law.pdf(v) for v in y[::500]], rtol=1e-13)


# Width, activation, γ, samples; leading order and both orders are told apart.
SIMULATED = {
    "linear": (16, "linear", 1.0),
    "relu": (40, "relu", 0.7),
    "gelu": (40, "gelu", 1.0),
    "erf": (10, "erf", 0.0),
    "tanh": (12, "tanh", 0.0),
}


@pytest.mark.parametrize("case", SIMULATED)
class TestSimulation:
    @pytest.fixture
    def drawn(self, case):
        width, activation, gamma = SIMULATED[case]
        scale = 1.0 if gamma == 0 else 0.5
        net = ft.ResidualNetwork(
            depth=5,
            activation=activation,
            skip_scale=gamma,
            branch_scale=scale,
            bias_variance=0.0,
            width=width,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ft.ValidityWarning)
            laws = {order: ft.solve(net, 0.5, order=order) for order in (1, 2)}
            laws = {
                (method, order): s.output_law(method)
                for order, s in laws.items()
                for method in METHODS
            }
        e = ft.simulate(net, 0.5, samples=20_000, seed=7, keep=True)
        gaussian = stats.norm(scale=np.sqrt(ft.solve(net, 0.5).output_kernel))
        return laws, gaussian, e.residual_kernels[:, -1]

    def test_outputs_follow_the_law_and_not_the_gaussian(self, drawn):
        laws, gaussian, C = drawn
        y = np.sqrt(C) * np.random.default_rng(3).standard_normal(C.shape)

        grid = np.linspace(0, np.abs(y).max(), 500)

        def p_value(law):
            below = 1 - 2 * law.sf(grid)
            return stats.kstest(np.abs(y), lambda t: np.interp(t, grid, below)).pvalue

        assert p_value(gaussian) < 1e-8
        found = {name: p_value(law) for name, law in laws.items()}
        assert min(found.values()) > 1e-3

    def test_tails(self, drawn):
        # Given C the probability of a tail is known, which leaves a smaller error than counting.
        laws, gaussian, C = drawn
        law = laws["mixture", 2]
        for p in (0.1, 0.01, 1e-3):
            t = law.ppf(1 - p / 2)
            beyond = 2 * stats.norm.sf(t, scale=np.sqrt(C))
            error = beyond.std() / np.sqrt(len(C))
            assert abs(beyond.mean() - p) < 4 * error + 0.02 * p
            if p < 0.05:
                assert beyond.mean() - 2 * gaussian.sf(t) > 10 * error
        y = np.abs(np.sqrt(C) * np.random.default_rng(4).standard_normal(C.shape))
        for p in (0.1, 0.01):
            count = np.sum(y > law.ppf(1 - p / 2))
            assert abs(count - p * y.size) < 4 * np.sqrt(p * y.size)


class TestResummation:
    def test_it_differs_at_the_third_order(self):
        def differences(N):
            s = ft.solve(network(4, "relu", width=N), 0.4, order=2)
            C = s.residual_kernels
            mean, variance = C + s.mean_shift + s.mean_shift_2, np.diagonal(s.G11) + s.variance_2
            return s.resummed_mean - mean, s.resummed_variance - variance

        for near, far in zip(differences(1000), differences(2000), strict=True):
            moves = near != 0
            assert moves.any()
            np.testing.assert_allclose(near[moves] / far[moves], 8, rtol=0.02)

    @pytest.mark.parametrize(("depth", "width"), [(5, 10), (10, 10), (20, 40)])
    def test_deep_linear_networks_are_closer(self, depth, width):
        net = linear(depth, width)
        exact, _ = finite_width.linear_exact(oracle(net), 0.5, width)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ft.ValidityWarning)
            s = ft.solve(net, 0.5, order=2)
            plain = s.G11[-1, -1] + s.variance_2[-1]
            resummed = s.resummed_variance[-1]
        variance = float(exact[-1, 1])
        assert abs(resummed / variance - 1) < 0.35 * abs(plain / variance - 1)

    def test_overflow_is_an_error(self):
        C, terms = np.array([0.5, 2.0]), np.array([0.0, 1.0])
        with pytest.raises(OverflowError, match="^resummed_variance exceeds .* in layer 1"):
            resummed(C, terms, 4 * terms, terms, 4000 * terms)
        still = resummed(np.zeros(2), *np.zeros((4, 2)))
        np.testing.assert_array_equal(still, 0.0)


class TestOutsideTheExpansion:
    """No positive law has all moments: a warning that says which ones, and a law of the others."""

    @staticmethod
    def found(net, order):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            s = ft.solve(net, 0.5, order=order)
            law, density = s.output_law(), s.output_density([0.0, 1.0])
        said = {str(one.message) for one in caught if " left out of the law" in str(one.message)}
        assert all(one.category is ft.ValidityWarning for one in caught)
        assert_same(law.pdf([0.0, 1.0]), density)
        assert (density > 0).all() and law.sf(0.0) == pytest.approx(0.5, rel=1e-12)
        return s, law, said

    # Of a negative variance, no third cumulant, and a variance beyond float64.
    @pytest.mark.parametrize(
        ("name", "depth", "width", "bias"),
        [("relu", 20, 2, 0.05), ("relu", 20, 2, 0.0), ("gelu", 4, 4, 0.0), ("gelu", 8, 2, 0.0)],
    )
    def test_of_order_2_it_is_the_law_of_order_1(self, name, depth, width, bias):
        scales = {"skip_scale": 0.0, "branch_scale": 1.0, "weight_variance": 2.0}
        net = ft.ResidualNetwork(
            depth=depth, activation=name, bias_variance=bias, width=width, **scales
        )
        s, law, said = self.found(net, 2)
        (message,) = said
        assert f"width {width}: the terms of order 1/N² are left out" in message
        mean = s.residual_kernels[-1] + s.mean_shift[-1]
        C, w = law.variances, law.weights
        assert w @ C == pytest.approx(mean, rel=1e-12)
        assert w @ (C - mean) ** 2 == pytest.approx(s.G11[-1, -1], rel=1e-9)
        _, first, none = self.found(net, 1)
        assert not none
        assert_same(law.pdf([0.3, 2.0]), first.pdf([0.3, 2.0]))

    def test_of_a_mean_below_that_of_the_bias_it_has_that_of_infinite_width(self):
        scales = {"branch_scale": 2.0, "skip_scale": 1.0, "weight_variance": 2.0}
        net = ft.ResidualNetwork(
            depth=5, activation="exp(-h**2)", bias_variance=0.0, width=1, **scales
        )
        s, law, said = self.found(net, 1)
        assert s.residual_kernels[-1] + s.mean_shift[-1] < s.network.readout_variances[1]
        (message,) = said
        assert "width 1: the shift of its mean to order 1/N is left out" in message
        C, w = law.variances, law.weights
        assert w @ C == pytest.approx(s.residual_kernels[-1], rel=1e-12)
        variance = w @ (C - s.residual_kernels[-1]) ** 2
        assert variance == pytest.approx(s.G11[-1, -1], rel=1e-9)

    def test_both_are_left_out(self):
        moments = OutputMoments(1.0, 0.5, -0.6, 0.3, 2, 0.0, -0.4, 0.1, 0.4, -0.1)
        law, left_out = nearest_mixture(moments)
        assert left_out == "the terms of order 1/N² and the shift of its mean to order 1/N are"
        assert law.weights @ law.variances == pytest.approx(1.0, rel=1e-12)


class TestBadInput:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("name", ["pdf", "cdf", "sf"])
    @pytest.mark.parametrize(
        ("value", "kind", "words"),
        [
            (np.nan, ValueError, "y must be finite, got nan"),
            ([0.0, np.inf], ValueError, "y must be finite, got inf"),
            ("one", TypeError, "y must be a real number or an array of them, got 'one'"),
            ([], ValueError, "y must not be empty"),
        ],
    )
    def test_of_values(self, method, name, value, kind, words):
        law = ft.solve(network(2), 0.4).output_law(method)
        with pytest.raises(kind, match=f"^{re.escape(words)}"):
            getattr(law, name)(value)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("p", [0, 1, -0.1, [0.5, 1.5], np.nan])
    def test_of_probabilities(self, method, p):
        law = ft.solve(network(2), 0.4).output_law(method)
        with pytest.raises(ValueError, match="^p must (lie between 0 and 1|be finite), got"):
            law.ppf(p)

    def test_of_the_method(self):
        with pytest.raises(ValueError, match="^method must be one of mixture, edgeworth, got 'gam"):
            ft.solve(network(2), 0.4).output_law("gamma")

    def test_of_the_solution(self):
        with pytest.raises(ValueError, match=r"^output_law is for one input, got K0 of shape \(2,"):
            ft.solve(network(2), K0_PAIR).output_density(0.0)
        with pytest.raises(ValueError, match="^output_law needs one network, got scales"):
            ft.solve(network(2, branch_scale=[[0.1], [0.2]]), 0.4).output_law()
        with pytest.raises(ValueError, match="^output_law needs one kernel, got shape"):
            ft.solve(network(2), [0.4, 0.5]).output_law()
        with pytest.raises(ValueError, match="^the output vanishes: it has no density"):
            ft.solve(linear(2, 10), 0.0).output_law()

    def test_of_moments_without_a_law(self):
        moments = OutputMoments(1.0, 0.5, -0.6, 0.3)
        with pytest.raises(ValueError, match="^no positive law of the output kernel has its mean"):
            mixture(moments)
        assert np.isfinite(edgeworth(moments).pdf(0.0))
        negative = OutputMoments(1.0, 0.0, 0.0, 0.3, 2, 0.0, -0.4, 0.1, 1.0, -0.1)
        with pytest.raises(ValueError, match="1/N²: 1 and -0.1, the variance of the bias being 0"):
            mixture(negative)
