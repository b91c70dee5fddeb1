"""Divergences and bounds against mpmath, definitions and sampling."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldtheory as ft
from fieldtheory.inference import (
    bernoulli_divergence,
    condition,
    gibbs_risk,
    inverse_bernoulli_divergence,
    largest_probabilities,
    pac_bayes_bound,
)


def divergence(a, p):
    with mp.workdps(40):
        a, p = mp.mpf(a), mp.mpf(p)
        return (a * mp.log(a / p) if a else 0) + (
            (1 - a) * mp.log((1 - a) / (1 - p)) if a < 1 else 0
        )


@pytest.mark.parametrize("a", [0.0, 1e-12, 0.1, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("p", [1e-12, 0.1, 0.7, 1 - 1e-9])
def test_bernoulli_divergence(a, p):
    # Its two terms cancel to second order where a = p.
    assert bernoulli_divergence(a, p) == pytest.approx(float(divergence(a, p)), 1e-13, abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.floats(1e-8, 50))
def test_inverse_is_the_largest_with_the_divergence(a, bound):
    p = inverse_bernoulli_divergence(a, bound)
    assert a <= p <= 1
    if p < 1 - 1e-6:
        assert bernoulli_divergence(a, p) == pytest.approx(bound, rel=1e-6)
    assert inverse_bernoulli_divergence(a, 2 * bound) >= p


def test_inverse_by_bisection_in_mpmath():
    for a, bound in ((0.0, 0.3), (0.02, 0.07), (0.3, 1e-4), (0.5, 10.0)):
        with mp.workdps(40):
            root = mp.findroot(
                lambda p, a=a, bound=bound: divergence(a, p) - bound,
                (mp.mpf(a) + mp.mpf("1e-8"), 1 - mp.mpf("1e-20")),
                solver="anderson",
                tol=1e-30,
            )
        assert inverse_bernoulli_divergence(a, bound) == pytest.approx(float(root), rel=1e-13)


def test_bound_holds_and_is_tight_without_divergence():
    # One hypothesis of risk 0.1: the bound fails in fewer than δ of the samples.
    rng = np.random.default_rng(0)
    risks = rng.binomial(100, 0.1, size=2000) / 100
    failures = np.mean([pac_bayes_bound(risk, 0.0, 100, 0.05) < 0.1 for risk in risks])
    assert failures < 0.05
    assert pac_bayes_bound(0.2, np.inf, 100) == 1.0
    # ln(2√N/δ)/N as printed.
    p = pac_bayes_bound(0.0, 3.0, 100, 0.05)
    assert -np.log1p(-p) == pytest.approx((3.0 + np.log(2 * 10 / 0.05)) / 100)


def test_gibbs_risk_is_that_of_drawn_functions():
    k = ft.kernel(ft.ResidualNetwork(depth=3, activation="relu", branch_scale=0.5))
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    y = np.sign(X[:, 0] + rng.standard_normal(30))
    posterior = condition(k, X, y, 0.5)
    Q = k(X)
    inverse = np.linalg.inv(Q + 0.5 * np.eye(30))
    covariance = Q - Q @ inverse @ Q
    drawn = rng.multivariate_normal(Q @ inverse @ y, covariance, size=40000, method="eigh")
    errors = (np.sign(drawn) != y).mean(axis=1)
    z = (errors.mean() - gibbs_risk(posterior)) / (errors.std() / 200)
    assert abs(z) < 4
    assert errors.std() / 200 < 0.005 * errors.mean()
    with pytest.raises(ValueError, match="labels y of one output that are -1 or 1"):
        gibbs_risk(condition(k, X, 2 * y, 0.5))


def test_largest_probabilities_by_sampling_and_in_closed_form():
    mean = np.array([[0.3, -0.2, 0.1], [5.0, 0.0, 0.0], [0.0, 0.0, 1e-9]])
    deviation = np.array([0.4, 0.1, 1e-12])
    found = largest_probabilities(mean, deviation)
    draws = mean[0] + 0.4 * np.random.default_rng(2).standard_normal((200000, 3))
    shares = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
    assert found[0] == pytest.approx(shares, abs=4 * np.sqrt(0.25 / len(draws)))
    assert found[1:] == pytest.approx(np.array([[1, 0, 0], [0, 0, 1]]), abs=1e-12)
    # Two classes: Φ((m_1 − m_2)/√2 s).
    pair = largest_probabilities(mean[:1, :2], deviation[:1])
    assert pair[0, 0] == pytest.approx(float(mp.ncdf(0.5 / (mp.sqrt(2) * 0.4))), rel=1e-12)
