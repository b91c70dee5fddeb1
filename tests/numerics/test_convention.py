"""ν_0 = d_in/N on request: what it changes, what it does not, in `solve` and in `lambdify`."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fieldtheory as ft
from tests.examples import K0_PAIR, block, derivation, network, precise_oracle
from tests.oracles import action, exact, recursion
from tests.rounding import assert_same
from tests.tables import slow

# N = 200.
RATIOS = {"narrow": (50, 0.25), "as wide": (200, 1.0), "wide": (500, 2.5)}
TO_THE_INPUT = ("residual_response", "response", "output_response")


@pytest.mark.parametrize("input_dim, ratio", RATIOS.values(), ids=RATIOS)
@pytest.mark.parametrize("K0", [0.4, K0_PAIR], ids=["variance", "pair"])
def test_responses_to_the_input_and_nothing_else(K0, input_dim, ratio):
    net = network(3, input_dim=input_dim)
    derivative, paper = ft.solve(net, K0), ft.solve(net, K0, convention="F25")
    for name in TO_THE_INPUT:
        np.testing.assert_allclose(
            getattr(paper, name) * ratio, getattr(derivative, name), rtol=1e-15
        )
    for name in (f"{name}_shift" for name in TO_THE_INPUT):
        np.testing.assert_allclose(
            getattr(paper, name) * ratio, getattr(derivative, name), rtol=1e-15
        )
    assert paper.residual_response.reshape(4, -1)[0] == pytest.approx(200 / input_dim)
    np.testing.assert_allclose(paper.G12[:, 0] * ratio, derivative.G12[:, 0], rtol=1e-15)
    assert_same(paper.G12[:, 1:], derivative.G12[:, 1:])
    assert_same(paper.kernels, derivative.kernels)
    if np.ndim(K0) == 0:
        assert_same(paper.G11, derivative.G11)
    else:
        np.testing.assert_allclose(
            paper.full_response * ratio, derivative.full_response, rtol=1e-15
        )


def test_output_response_alone_and_with_batches():
    net = network(3, input_dim=50).replace(branch_scale=[[0.1], [0.4]])
    for K0 in (0.4, K0_PAIR):
        paper, derivative = (
            ft.solve(net, K0, convention=c).output_response for c in ("F25", "derivative")
        )
        np.testing.assert_allclose(paper, 4 * derivative, rtol=1e-15)


@pytest.mark.parametrize("input_dim, ratio", [slow(*ratios) for ratios in RATIOS.values()])
def test_it_is_the_inverse_of_the_hessian_of_the_action(input_dim, ratio):
    """−S''^{-1} by differences of the action itself, with ν_0 = d_in/N in it."""
    net = network(1, branch_scale=0.8, input_dim=input_dim)
    precise = precise_oracle(net)
    with mpmath.workdps(18):
        C, _ = recursion.kernels(precise, mpf(0.3), exact.erf_average)
        S = action.hessian(precise, list(C), mpmath.erf, nu0=mpf(ratio))
    G = -np.linalg.inv(S) / net.width
    paper = ft.solve(net, 0.3, convention="F25")
    np.testing.assert_allclose(paper.G12, G[:3, 3:], rtol=0, atol=1e-8 / net.width)
    np.testing.assert_allclose(paper.G11, G[:3, :3], rtol=0, atol=1e-8 / net.width)


@pytest.mark.parametrize("convention", [slow("derivative"), slow("F25")])
def test_symbolic_blocks_take_the_same_convention(convention):
    net = network(2, input_dim=50)
    numbers = {
        name: derivation(2).lambdify(name, convention=convention)(net, 0.4)
        for name in ("S21", "S22", "G12", "G11")
    }
    solution = ft.solve(net, 0.4, convention=convention)
    np.testing.assert_allclose(numbers["G12"], solution.G12, rtol=1e-12)
    np.testing.assert_allclose(numbers["G11"], solution.G11, rtol=1e-11, atol=1e-18)
    np.testing.assert_allclose(numbers["G12"] @ numbers["S21"], -np.eye(4), atol=1e-12)
    assert numbers["S21"][0, 0] == {"derivative": -200, "F25": -50}[convention]
    np.testing.assert_allclose(numbers["S22"], block("S22", 2)(net, 0.4), rtol=1e-12)


def test_files_keep_the_convention(tmp_path):
    solution = ft.solve(network(2), K0_PAIR, convention="F25")
    solution.save(tmp_path / "s.npz")
    loaded = ft.Solution.load(tmp_path / "s.npz")
    assert loaded.convention == "F25"
    np.testing.assert_array_equal(loaded.response, solution.response)
    assert_same(loaded.G12, solution.G12)


def test_comparisons_are_of_derivatives():
    net = network(1, width=100)
    ensemble = ft.simulate(net, 0.3, samples=200, seed=1)
    answers = ft.simulate_response(net, 0.3, samples=200, seed=2)
    one, other = (
        ft.compare(ft.solve(net, 0.3, convention=c), ensemble, responses=answers)
        for c in ("F25", "derivative")
    )
    assert str(one) == str(other)


@pytest.mark.parametrize("name", ["f25", "paper", None, 1])
def test_unknown_conventions(name):
    match = f"convention must be one of derivative, F25, got {name!r}"
    with pytest.raises(ValueError, match=match):
        ft.solve(network(1), 0.3, convention=name)
    with pytest.raises(ValueError, match=match):
        derivation(1).lambdify("G12", convention=name)
