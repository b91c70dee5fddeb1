"""Order 1/N² of `solve` against networks of 4 to 32 neurons, where 1/N³ and 1/N⁴ are seen as well.

The simulated cumulants, less their known orders 1 and 1/N, are times N² a polynomial in 1/N whose
constant is the coefficient of 1/N². A weighted fit over seven widths leaves the terms of order 1/N³
and 1/N⁴ free; its chi-square tells whether more are seen. Five layers, of 8 to 64 neurons, show
the order 1/N as well, where 1/N² is known, and that the closure of the vertex on itself does not.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from tests.numerics.neurons.test_finite_width import PHI, panels, solved, uniform
from tests.oracles import neurons, sampling
from tests.tables import some

K0 = 0.4
WIDTHS = np.array([4, 6, 8, 12, 16, 24, 32])
FREE = 3  # 1/N², 1/N³, 1/N⁴
NAMES, SKIPS = ("erf", "tanh", "relu", "gelu"), (0.0, 0.7, 1.0)
CASES = [(name, skip, depth) for depth in (1, 2) for name in NAMES for skip in SKIPS]
QUICK = [("erf", 1.0, 1), ("relu", 0.0, 2)]


# Of networks of five layers.
WIDER = np.array([8, 12, 16, 24, 32, 48, 64])
OF_FIVE = [(name, skip) for name in NAMES for skip in SKIPS]
QUICK_OF_FIVE = [("relu", 0.7)]


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


class Fit(NamedTuple):
    """A coefficient of the theory, that of a fit with its error, and the p-value of the fit."""

    field: str
    layer: int
    theory: float
    value: float
    error: float
    p_value: float

    @property
    def z(self):
        return (self.value - self.theory) / self.error

    @property
    def seen(self):
        """How many standard errors it is from zero."""
        return abs(self.theory) / self.error


def fitted(values, errors, widths, powers):
    """The constant of a sum of powers of 1/N with its error, and the p-value of the fit."""
    columns = (1 / widths[:, None]) ** np.array(powers)
    weighted = columns / errors[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted)
    found = covariance @ weighted.T @ (values / errors)
    square = np.sum(((values - columns @ found) / errors) ** 2)
    p_value = stats.chi2.sf(square, len(widths) - len(powers))
    return found[0], np.sqrt(covariance[0, 0]), p_value


def drawn(net, name, widths, samples, seed):
    phi, nodes = PHI[name][0], panels(name, K0)
    return [sampling.estimate(net, K0, phi, nodes, N, samples, seed + N) for N in widths.tolist()]


def fits(known, found, widths, order):
    """`Fit` of the coefficients of 1/N (1) or 1/N² (2), the one of the other order as known."""
    for field, terms in known.items():
        if order == 1 and field == "third":
            continue
        values = np.array([getattr(e, field).value for e in found])
        errors = np.array([getattr(e, field).error for e in found])
        N = widths[:, None]
        rest = sum(np.asarray(x) / N.astype(float) ** k for k, x in enumerate(terms) if k != order)
        rest, errors = (values - rest) * N**order, errors * N**order
        powers = (0, 2, 3) if order == 1 else tuple(range(FREE))
        # What does not fluctuate, such as the input and the mean of the first layer, is exact.
        for l in np.flatnonzero((errors * N ** (2 - order) > 1e-9).all(axis=0)):
            fit = fitted(rest[:, l], errors[:, l], widths, powers)
            yield Fit(field, int(l), terms[order][l], *fit)


def most_seen(rows, *names):
    return max((row.seen for row in rows if row.field in names), default=0.0)


@pytest.mark.parametrize("case", some(CASES, QUICK))
def test_the_second_order_of_narrow_networks(case):
    quick = case in QUICK
    samples = 2e4 if quick else 4e5
    seed = 1000 * CASES.index(case) if quick else 0
    name, skip, depth = case
    net = uniform(depth, skip)
    found = list(fits(orders(net, name), drawn(net, name, WIDTHS, samples, seed), WIDTHS, 2))
    # The control variates leave no error of the mean of ReLU in one layer without skip.
    assert {row.field for row in found} >= {"variance", "third", "vertex"}
    for row in found:
        assert abs(row.z) < 4, row
        assert row.p_value > 1e-4, row
    # How well 1/N² is seen: third cumulants and, where they are resolved, variances.
    assert most_seen(found, "third") > 10
    if not quick:
        assert most_seen(found, "variance") > 4


def of_five_layers(case, widths, samples):
    """Fits of 1/N and of 1/N², and by how many standard errors the closure of V is off."""
    name, skip = case
    net = uniform(5, skip)
    known = orders(net, name)
    found = drawn(net, name, widths, samples, 0)
    first, second = (list(fits(known, found, widths, order)) for order in (1, 2))
    closed = neurons.closure(net, K0, PHI[name][0], panels(name, K0))
    of_vertex = [row for row in first if row.field == "vertex"]
    return first, second, max(abs(closed[row.layer] - row.value) / row.error for row in of_vertex)


@pytest.mark.parametrize("case", some(OF_FIVE, QUICK_OF_FIVE))
def test_both_orders_of_five_layers(case):
    # Without skip connections the closure is exact; short memory makes it a good one for erf, tanh.
    _, skip = case
    # There it takes more networks to tell them apart, and wider ones, in which 1/N³ does not show.
    many = case not in QUICK_OF_FIVE and skip not in (0, 1)
    samples = 2e5 if many else 1e4 if case in QUICK_OF_FIVE else 1e5
    first, second, closure_off = of_five_layers(case, WIDER * (1 + many), samples)
    for row in first + second:
        assert abs(row.z) < 4, row
        assert row.p_value > 1e-4, row
    assert most_seen(first, "variance") > 10
    assert most_seen(second, "variance", "third") > 10
    assert closure_off < 4 if skip == 0 else closure_off > 10
