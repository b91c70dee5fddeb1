"""Order 1/N² of `solve` against networks of 4 to 32 neurons, where 1/N³ and 1/N⁴ are seen as well.

The simulated cumulants, less their known orders 1 and 1/N, are times N² a polynomial in 1/N whose
constant is the coefficient of 1/N². A weighted fit over seven widths leaves the terms of order 1/N³
and 1/N⁴ free; its chi-square tells whether more are seen.
"""

import warnings

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from tests.numerics.test_finite_width import PHI, panels, solved, uniform
from tests.oracles import sampling
from tests.tables import some

K0 = 0.4
WIDTHS = np.array([4, 6, 8, 12, 16, 24, 32])
FREE = 3  # 1/N², 1/N³, 1/N⁴
NAMES, SKIPS = ("erf", "tanh", "relu", "gelu"), (0.0, 0.7, 1.0)
CASES = [(name, skip, depth) for depth in (1, 2) for name in NAMES for skip in SKIPS]
QUICK = [("erf", 1.0, 1), ("relu", 0.0, 2)]


def orders(net, name):
    """Of every cumulant: its orders 1 and 1/N, and 1/N² as `solve` has it, all at N = 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.ValidityWarning)
        s = solved(net, name, K0, 1)
        return {
            "mean": (s.residual_kernels, s.mean_shift, s.mean_shift_2),
            "variance": (0.0, np.diagonal(s.G11), s.variance_2),
            "third": (0.0, 0.0, s.third_cumulant),
            "vertex": (0.0, s.four_point, s.four_point_2),
        }


def fitted(values, errors):
    """The constant of the polynomial in 1/N with its error, and the p-value of the fit."""
    powers = np.vander(1 / WIDTHS, FREE, increasing=True)
    weighted = powers / errors[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted)
    found = covariance @ weighted.T @ (values / errors)
    square = np.sum(((values - powers @ found) / errors) ** 2)
    p_value = stats.chi2.sf(square, len(WIDTHS) - FREE)
    return found[0], np.sqrt(covariance[0, 0]), p_value


def coefficients(name, skip, depth, samples, seed):
    """For every cumulant and layer: 1/N² of the theory and of the fit, its error, the p-value."""
    net = uniform(depth, skip)
    known = orders(net, name)
    drawn = [
        sampling.estimate(net, K0, PHI[name][0], panels(name, K0), N, samples, seed=seed + N)
        for N in WIDTHS.tolist()
    ]
    for field, (constant, first, second) in known.items():
        of_field = [getattr(e, field) for e in drawn]
        rest = [
            (e.value - constant - first / N) * N**2 for e, N in zip(of_field, WIDTHS, strict=True)
        ]
        errors = np.array([e.error * N**2 for e, N in zip(of_field, WIDTHS, strict=True)])
        # What does not fluctuate, such as the input and the mean of the first layer, is exact.
        for l in np.flatnonzero((errors > 1e-9).all(axis=0)):
            yield field, second[l], *fitted(np.array(rest)[:, l], errors[:, l])


@pytest.mark.parametrize("case", some(CASES, QUICK))
def test_the_second_order_of_narrow_networks(case):
    quick = case in QUICK
    samples = 5e4 if quick else 4e5
    seed = 1000 * CASES.index(case) if quick else 0
    found = list(coefficients(*case, samples, seed))
    # The control variates leave no error of the mean of ReLU in one layer without skip.
    assert {field for field, *_ in found} >= {"variance", "third", "vertex"}
    for field, theory, fit, error, p_value in found:
        assert abs(fit - theory) < 4 * error, (field, theory, fit, error)
        assert p_value > 1e-4, (field, p_value)
    # How well 1/N² is seen: third cumulants and, where they are resolved, variances.
    seen = {
        field: max(abs(row[1]) / row[3] for row in found if row[0] == field)
        for field in ("variance", "third")
    }
    assert seen["third"] > 10
    if not quick:
        assert seen["variance"] > 4
