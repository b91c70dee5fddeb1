"""The propagator: forward substitution, and the closed form as a running product."""

import itertools
import random

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import notation as sym
from fieldtheory.theory.propagator import forward_substitution
from tests.examples import derivation
from tests.tables import slow
from tests.theory.test_hessian import slope
from tests.theory.test_saddle_point import coefficients

MASKS = {}


def masked(expression):
    """Averages and correlators as plain symbols, so that rational functions can be cancelled."""
    nodes = expression.atoms(GaussianAverage, ConnectedCorrelator)
    for node in sorted(nodes, key=sp.default_sort_key):
        MASKS.setdefault(node, sp.Symbol(f"m_{len(MASKS)}"))
    return expression.xreplace({node: MASKS[node] for node in nodes})


def equal(left, right):
    return sp.cancel(masked(left - right)) == 0


@pytest.mark.parametrize("depth", [1, 2, 3, slow(4)])
def test_response_is_a_running_product(depth):
    """Δ12^lm = a_l M'_{l-1} Π_{j=m+1}^{l-1} (γ_j² + a_j M'_{j-1}), column 0 over ν_0."""
    G12 = derivation(depth).propagator.G12
    for l, m in itertools.product(range(depth + 2), repeat=2):
        if l < m:
            assert G12[l, m] == 0
            continue
        expected = 1 / sym.WIDTH / (sym.INPUT_WIDTH if m == 0 else 1)
        if l > m:
            expected *= coefficients(l, depth)[0] * slope(l - 1)
            for j in range(m + 1, l):
                gain = coefficients(j, depth)[0] * slope(j - 1)
                expected *= sym.skip_scale(j) ** 2 + gain
        assert equal(G12[l, m], expected)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("depth, inputs", [(1, 1), (2, 1), (1, 2)])
def test_blocks_are_those_of_the_inverse(depth, inputs):
    """G S'' = −1 with random rationals for all averages and symbols: exact, no rounding."""
    th = derivation(depth, inputs)
    names = ("S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22")
    blocks = {name: th.block(name).applyfunc(masked) for name in names}
    symbols = sorted(set().union(*(b.free_symbols for b in blocks.values())), key=str)
    draw = random.Random(0)
    values = {s: sp.Rational(draw.randint(1, 50), draw.randint(1, 50)) for s in symbols}
    blocks = {name: sp.Matrix(b.xreplace(values)) for name, b in blocks.items()}
    S, G = (
        sp.Matrix(
            sp.BlockMatrix(
                [[blocks[f"{x}11"], blocks[f"{x}12"]], [blocks[f"{x}21"], blocks[f"{x}22"]]]
            )
        )
        for x in "SG"
    )
    assert G * S == -sp.eye(S.rows)


def test_product_stays_a_product():
    """Written out, the last entry would have 2^7 terms."""
    G12 = ft.derive(7, activation="linear", branch_scale="per layer").propagator.G12
    assert G12[8, 0].is_Mul
    assert G12[8, 0].count_ops() < 100
    assert len(sp.Add.make_args(sp.expand(G12[8, 0]))) == 2**7


def random_lower(size, seed, zeros=0.0):
    draw = random.Random(seed)

    def entry(k, l):
        if l > k or (l < k and draw.random() < zeros):
            return 0
        return sp.Rational(draw.choice([-1, 1]) * draw.randint(1, 9), draw.randint(1, 9))

    return sp.ImmutableMatrix(size, size, entry)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_forward_substitution_of_any_lower_triangle(seed, zeros):
    S21 = random_lower(5, seed, zeros)
    assert forward_substitution(S21) == -S21.inv()
