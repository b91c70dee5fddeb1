"""Logarithms of functions on panels that one layer after the other uses, against mpmath."""

import numpy as np
import pytest
from mpmath import mp

from fieldtheory.averages.growing.logarithm_panels import LogarithmPanels

RHO = np.linspace(-3, 3, 41)


@pytest.mark.parametrize("exponent", [2, 40, 400, 10**6])
def test_digits_do_not_depend_on_the_size(exponent):
    scale = mp.mpf(10) ** exponent / 3
    reference = scale * mp.asinh(scale)
    panels = LogarithmPanels(lambda z: z * mp.asinh(z))
    found = panels.sampled(scale, reference, np.array([-3.0, 3.0]), 40)(RHO)
    with mp.workdps(40):
        signals = [scale * mp.exp(float(rho)) for rho in RHO]
        expected = [float(mp.log(z * mp.asinh(z) / reference)) for z in signals]
    np.testing.assert_allclose(found.logs, [expected] * 2, rtol=0, atol=3e-14)
    assert (found.signs == 1).all()


def test_functions_of_one_side():
    panels = LogarithmPanels(lambda z: -(z**3) if z > 0 else mp.zero)
    found = panels.sampled(mp.mpf(5), mp.mpf(125), np.array([-3.0, 3.0]), 8)(RHO)
    np.testing.assert_allclose(found.logs[0], 3 * RHO, rtol=0, atol=3e-14)
    assert np.isneginf(found.logs[1]).all() and (found.signs == [[-1], [0]]).all()


def test_panels_are_kept_for_the_next_variance():
    taken = []
    panels = LogarithmPanels(lambda z: taken.append(z) or mp.log(1 + abs(z)))
    scale, limits = mp.mpf(10) ** 120, np.array([-5.0, 3.0])
    assert panels.sampled(scale, mp.one, limits, 8) is not None
    count = len(taken)
    for _ in range(20):
        scale *= mp.mpf("1.1")
        panels.sampled(scale, mp.one, limits, 8)
    assert len(taken) <= 2 * count


def test_changes_of_sign_are_no_polynomials():
    panels = LogarithmPanels(lambda z: mp.log(abs(z)))
    assert panels.sampled(mp.one, mp.one, np.array([-1.0, 1.0]), 8) is None
