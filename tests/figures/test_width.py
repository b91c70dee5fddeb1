"""The figure of narrow networks: the numbers, and that the picture shows them."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.figures import width


@pytest.fixture(scope="module")
def found():
    return width.orders(widths=(8, 16, 64), samples=4000, seed=1)


def test_both_orders_are_seen(found):
    first, second = np.moveaxis(found.coefficients, -1, 0)[..., None]
    both = first + second / found.widths
    # What is left at N = 16 is of order 1/N³, at N = 64 nothing.
    assert np.abs((found.simulated - both) / found.error)[..., -1].max() < 4
    missed = np.abs(found.simulated - first)[..., 0] / found.error[..., 0]
    assert missed[0].min() > 4 and missed[1, 1] > 3
    left = np.abs(found.simulated - both)[..., 0] / found.error[..., 0]
    assert (left < missed)[[0, 0, 1], [0, 1, 1]].all()


def test_numbers_are_those_of_the_solution(found):
    net = ft.ResidualNetwork(depth=5, skip_scale=0.7, branch_scale=1.0, width=32)
    s = ft.solve(net, 0.5, order=2)
    C = s.output_kernel
    mean = [s.mean_shift[-1], s.mean_shift_2[-1]]
    variance = [s.G11[-1, -1] / C, s.variance_2[-1] / C]
    expected = np.array([mean, variance]) / C * np.array([32, 32**2])
    np.testing.assert_allclose(found.coefficients[0], expected, rtol=1e-12)
