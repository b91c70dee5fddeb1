"""Figures of trained networks, in their quick sizes: what must hold at any size."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.figures import f25, f25_training, pf, sr
from fieldtheory.figures.f25_training import _contrast, _responses, _turned
from tests.rounding import assert_same
from tests.tables import slow

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def fig7():
    return f25.fig7(quick=True).panels()


def by_label(curves):
    return {curve.label: curve.y for curve in curves}


class TestFig7:
    def test_networks_learn(self, fig7):
        found = by_label(fig7["b"])
        for rho in ("rho = 1", "rho = 0.3"):
            loss, accuracy = found[f"{rho}, loss"], found[f"{rho}, accuracy"]
            assert loss[-10:].mean() < loss[0] / 2 and accuracy[-10:].mean() > 0.75
        # The tangent kernel is larger at ρ = 1.
        assert found["rho = 1, loss"][:15].mean() < found["rho = 0.3, loss"][:15].mean()

    def test_response_before_training_is_near_that_of_the_theory(self, fig7):
        found = by_label(fig7["a"])
        for rho in ("rho = 1", "rho = 0.3"):
            before, theory = found[f"{rho}, before"], found[f"{rho}, theory"]
            assert before[0] == pytest.approx(1, rel=1e-12)
            np.testing.assert_allclose(before, theory, rtol=0.35)

    def test_training_tells_the_classes_apart(self, fig7):
        found = by_label(fig7["d"])
        for rho in ("rho = 1", "rho = 0.3"):
            before, after = found[f"{rho}, before"], found[f"{rho}, after"]
            assert before[0] == pytest.approx(after[0]) and (after[1:] > 1.2 * before[1:]).all()
        matrix = np.array([curve.y for curve in fig7["c, rho = 1, after"]])
        assert matrix.shape == (10, 10) and np.abs(matrix - matrix.T).max() < 1e-5

    @pytest.mark.slow
    def test_an_interrupted_figure_goes_on(self, fig7, tmp_path):
        for _ in range(2):
            again = f25.fig7(quick=True, directory=tmp_path / "parts").panels()
            for first, second in zip(fig7["b"], again["b"], strict=True):
                assert_same(first.y, second.y)


@pytest.mark.slow
def test_response_grows_by_training_near_the_optimal_scale_alone():
    near, far = (f25_training._scanned(rho, f25_training._SCAN, (noise,), 0, None, False)
                 for rho, noise in ((0.3, 0.05), (1.0, 0.2)))  # fmt: skip
    assert near.y[0] - 2 * near.error[0] > 1.03 > far.y[0] + 2 * far.error[0]


@pytest.mark.parametrize("copies", [None, slow(3)])
def test_response_by_differences_is_the_derivative_of_wide_networks(copies):
    from fieldtheory.training import torch_module

    net = ft.ResidualNetwork(depth=3, width=2000, input_dim=2, bias_variance=0.0)
    pair = np.array([[[1.0, 0.3], [0.2, 0.9]]])
    module = torch_module(net, seed=0, copies=copies)
    theory = ft.solve(net, ft.input_kernel(pair[0], net)).residual_response[:, 0, 1]
    found = np.atleast_2d(_responses(module, np.concatenate([pair, pair[:, ::-1]]))[1])
    assert len(found) == (copies or 1)
    np.testing.assert_allclose(found, np.tile(theory, (len(found), 1)), rtol=0.1)
    turned = _turned(pair[:, 0], pair[:, 1], 0.1)
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(pair[0, 0]), rel=1e-14)
    assert turned @ pair[0, 1] > pair[0, 0] @ pair[0, 1]
    labels = np.array([1.0, 1.0, -1.0])
    assert _contrast(np.array([[9.0, 3, 1], [3, 9, 2], [1, 2, 9]]), labels) == 3 - 1.5


def test_rates_of_both_gradients_are_one_update():
    """A step by ε with rate η is one by ΔW with rate η σ_w² Δt/D."""
    from fieldtheory.training import torch_module, train

    net = ft.DiffusionNetwork(depth=4, width=6, bias_variance=0.0)
    X, classes = np.eye(3), [0, 1, 2]
    outputs = []
    for kind, rate in (("ntk", 0.5), ("standard", 0.5 * net.step / 6)):
        module = torch_module(net, inputs=3, outputs=3, parametrization=kind)
        optimiser = torch.optim.SGD(module.layers.parameters(), lr=rate)
        train(module, X, classes, optimiser, steps=20, loss="cross_entropy")
        outputs.append(module(X).detach())
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("compute", [pf.fig5, sr.table3])
def test_parts_are_kept_and_the_seed_decides(compute, tmp_path):
    first = compute(quick=True, directory=tmp_path)
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = compute(quick=True, directory=tmp_path)
    assert kept == {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    other = compute(quick=True, seed=1)
    for curve, same, another in zip(first.listed, again.listed, other.listed, strict=True):
        assert_same(curve.y, same.y)
        assert curve.panel == "c" or (curve.y != another.y).any()
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        compute(quick=True, seed=-1)
