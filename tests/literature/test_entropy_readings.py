"""Both readings of F25 eq. (142): what they give, and how the response stands to them."""

import math

import pytest

import fieldtheory as ft
from fieldtheory.literature.entropy_readings import maximum_entropy_report


class TestReport:
    def test_both_readings(self):
        report = maximum_entropy_report(ft.ResidualNetwork(depth=3))
        printed, right = report.printed, report.differentiated
        assert (printed.variance, printed.slope, printed.holds) == (0.25, -2.0, False)
        assert printed.divergence == pytest.approx(0.5 - math.log(2) / 2, rel=1e-15)
        assert (right.variance, right.slope, right.divergence, right.holds) == (0.5, 0, 0, True)
        assert "smallest at σ² = 0.5" in report.verdict
        assert "changes by -2 per unit of σ²" in report.verdict

    @pytest.mark.parametrize(("ratio", "best"), [(0.0, 0.3054), (0.0409, 0.25), (0.4, 0.0)])
    def test_optimum_of_the_response_is_beside_them(self, ratio, best):
        network = ft.ResidualNetwork(depth=3, weight_variance=2.0, bias_variance=2 * ratio)
        report = maximum_entropy_report(network)
        assert report.output_variance == pytest.approx(best, abs=5e-5)
        for reading in (report.printed, report.differentiated):
            K = reading.variance
            expected = _response(K, ratio) / _response(report.output_variance, ratio)
            assert reading.relative_response == pytest.approx(expected, rel=1e-12)
            assert reading.relative_response <= 1

    @pytest.mark.parametrize("ratio", [0.0, 0.02, 0.0409, 0.1, 0.3])
    def test_the_printed_variance_is_the_better_choice_for_the_response(self, ratio):
        report = maximum_entropy_report(ft.ResidualNetwork(depth=3, bias_variance=1.25 * ratio))
        assert report.printed.relative_response > report.differentiated.relative_response
        if ratio <= 0.05:
            assert report.printed.relative_response > 0.98

    def test_it_is_about_erf(self):
        with pytest.raises(ValueError, match="network must have the activation erf"):
            maximum_entropy_report(ft.ResidualNetwork(depth=3, activation="tanh"))


def _response(K, ratio):
    """M'(K) [M(K) + σ²_b/σ²_w] for erf."""
    gain = 4 / math.pi / ((1 + 2 * K) * math.sqrt(1 + 4 * K))
    return gain * (2 / math.pi * math.asin(2 * K / (1 + 2 * K)) + ratio)
