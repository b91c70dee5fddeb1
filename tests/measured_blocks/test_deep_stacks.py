"""Deep networks of the blocks of docs/howto/measure_a_block.md keep their kernel by its scales.

They are simulated here block by block, with what the page defines and nothing of the package but
`measure_block`.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import fieldtheory as ft
from tests.tables import slow

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "measure_a_block.md"
BLOCKS = {"ft": ft}
exec(
    "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)),
    BLOCKS,
)


def carried_through(block, kernel, scales, width, samples=200, seed=0):
    """Mean variance behind all layers over that before them, and its standard error."""
    root = np.linalg.cholesky(kernel)
    found = []
    for generator in np.random.default_rng(seed).spawn(samples):
        z = root @ generator.normal(size=(len(kernel), width))
        for skip, branch in scales:
            z = skip * z + branch * block(width, generator)(z)
        found.append((z * z).sum() / (width * kernel.trace()))
    return np.mean(found), np.std(found, ddof=1) / np.sqrt(samples)


DEPTH, SKIP = 16, 0.9
# With K0: independent inputs, and neighbours that resemble each other.
SAME_IN_EVERY_LAYER = {
    "two_layers": np.eye(4),
    "convolution": 0.2 * np.eye(8) + 0.8 * np.eye(8)[np.ix_(*2 * [np.arange(8) // 2])],
}


@pytest.fixture(scope="module")
def measured():
    return {
        name: ft.measure_block(BLOCKS[name], 32, 1000, K0=K0, skip_scale=SKIP, seed=1)
        for name, K0 in SAME_IN_EVERY_LAYER.items()
    }


def deviation(m, scales):
    """By how many standard errors the kernel differs from K0, and the error, with that of ξ."""
    mean, error = carried_through(BLOCKS[m.block], m.input_kernel, scales, m.width)
    # d ln K^(L) / d ln ξ = 2 L (1 − γ²) where G_Rz = 0.
    relative = 2 * DEPTH * (1 - SKIP**2) * m.branch_scale_error / m.branch_scale
    error = np.hypot(error, relative * mean)
    return (mean - 1) / error, error


@pytest.mark.parametrize("name", SAME_IN_EVERY_LAYER)
class TestSameScalesInEveryLayer:
    @pytest.mark.slow_but(1)
    def test_solved_scales_keep_the_kernel(self, measured, name):
        m = measured[name]
        z, error = deviation(m, [(SKIP, m.branch_scale)] * DEPTH)
        assert abs(z) < 4 and error < 0.07
        assert abs(m.perpendicular - 1) < 4 * m.perpendicular_error

    @pytest.mark.slow_but(4)
    @pytest.mark.parametrize(("skip", "factor"), [(SKIP, 1.2), slow(SKIP, 0.8), (1.0, 1.0)])
    def test_wrong_scales_do_not(self, measured, name, skip, factor):
        m = measured[name]
        z, _ = deviation(m, [(skip, factor * m.branch_scale)] * DEPTH)
        assert abs(z) > 8


@pytest.mark.slow
def test_attention_needs_scales_of_every_layer():
    K0, options = np.eye(6), {"width": 64, "samples": 200}
    scales = BLOCKS["layer_by_layer"](BLOCKS["attention"], K0, 8, **options)
    branches = [branch for _, branch in scales]
    # Attention makes tokens alike: from G_RR ~ K/6 to G_RR = K.
    assert branches == sorted(branches, reverse=True)
    assert branches[0] > 1.2 and branches[-1] < 0.85
    mean, error = carried_through(BLOCKS["attention"], K0, scales, 64, samples=150)
    assert error < 0.05 and abs(mean - 1) < 4 * error
    mean, error = carried_through(BLOCKS["attention"], K0, scales[:1] * 8, 64, samples=150)
    assert mean - 1 > 4 * error
    mean, error = carried_through(BLOCKS["attention"], K0, scales[-1:] * 8, 64, samples=150)
    assert mean - 1 < -4 * error
