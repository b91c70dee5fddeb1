"""The training loop: SGD against NumPy, checkpoints, divergence, refusals."""

import sys

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.figures import pf

torch = pytest.importorskip("torch", reason="torch is not installed")
from fieldtheory import training  # noqa: E402
from fieldtheory.training import loop  # noqa: E402

NET = ft.ResidualNetwork(depth=2, width=6, input_dim=3)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), RNG.normal(size=10)


def langevin(module, **changes):
    return training.Langevin(module.priors(), **{"step_size": 0.01, "temperature": 0.5} | changes)


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)


def run(optimiser, steps=12, **options):
    module = training.torch_module(NET, copies=2)
    history = training.train(module, X, Y, optimiser(module), steps=steps, **options)
    return history, torch.cat([p.detach().flatten() for p in module.parameters()])


def test_momentum_and_batches_of_a_linear_model_in_numpy():
    module = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64)
    w, v = module.weight.detach().numpy()[0].copy(), np.zeros(3)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    history = training.train(
        module, X, Y, optimiser, steps=7, batch_size=4, loss="mean_squared", seed=3
    )
    for step in range(7):
        order = np.random.default_rng((3, step // 2)).permutation(10)
        rows = order[4 * (step % 2) : 4 * (step % 2) + 4]
        gap = X[rows] @ w - Y[rows]
        assert history.loss[step] == pytest.approx((gap**2).mean() / 2, rel=1e-12)
        v = 0.9 * v + X[rows].T @ gap / 4
        w = w - 0.1 * v
    np.testing.assert_allclose(module.weight.detach()[0], w, rtol=1e-12)


def test_cross_entropy_of_copies():
    module = training.torch_module(NET, outputs=4, copies=2)
    classes = np.arange(10) % 4
    expected = [
        torch.nn.functional.cross_entropy(outputs, torch.tensor(classes)).item()
        for outputs in module(X)
    ]
    history = training.train(
        module, X, classes, sgd(module), steps=30, loss="cross_entropy", every=29
    )
    np.testing.assert_allclose(history.loss[0], expected, rtol=1e-12)
    assert (history.loss[1] < history.loss[0]).all() and history.steps.tolist() == [0, 29]
    assert repr(history) == "TrainingHistory(records=2, copies=2, observed=[])"


@pytest.mark.parametrize("optimiser", [langevin, sgd])
@pytest.mark.parametrize("batch_size", [None, 3])
def test_an_interrupted_run_goes_on_with_the_same_numbers(
    optimiser, batch_size, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "_INTERVAL", -1.0)
    options = {"batch_size": batch_size, "every": 2, "seed": 4}
    calls = []

    def interrupted(module):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return outputs(module)

    def outputs(module):
        return {"f": module(X)}

    expected, parameters = run(optimiser, observe=outputs, **options)
    path = tmp_path / "state.pt"
    with pytest.raises(KeyboardInterrupt):
        run(optimiser, observe=interrupted, checkpoint=path, **options)
    for steps in (8, 12, 12):
        found, same = run(optimiser, steps, observe=outputs, checkpoint=path, **options)
    np.testing.assert_array_equal(same, parameters)
    np.testing.assert_array_equal(found.loss, expected.loss)
    np.testing.assert_array_equal(found.observed["f"], expected.observed["f"])
    with pytest.raises(ValueError, match="steps must be at least the 12 of the checkpoint, got 5"):
        run(optimiser, 5, checkpoint=path, **options)
    with pytest.raises(ValueError, match="is that of another run: module as made, optimiser"):
        run(optimiser, checkpoint=path, **options | {"seed": 5})
    with pytest.raises(ValueError, match="is that of another run"):
        run(lambda m: torch.optim.SGD(m.parameters(), lr=0.1), checkpoint=path, **options)


def test_divergence_is_one_error_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_INTERVAL", -1.0)
    path = tmp_path / "state.pt"
    words = (
        r"^the loss of \d of 2 copies is (inf|nan) at step (\d+): take smaller steps; '.*' holds"
    )
    with pytest.raises(training.DivergenceError, match=words) as caught:
        run(lambda m: langevin(m, step_size=1.9, temperature=1e-3), 500, checkpoint=path)
    done = len(caught.value.history.loss)
    assert done > 2 and np.isfinite(caught.value.history.loss).all()
    assert torch.load(path)["progress"][0] == done
    with pytest.raises(training.DivergenceError, match="take smaller steps$"):
        run(lambda m: langevin(m, step_size=1.9, temperature=1e-3), 500)


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    run(sgd, 3, progress=True)
    assert "train: 3 of 3" in capsys.readouterr().err


MODULE = training.torch_module(NET, outputs=2)
REFUSED = {
    "module must be a torch module": (TypeError, {"module": NET}),
    "optimiser must be one of torch": (TypeError, {"optimiser": "sgd"}),
    "steps must be an integer >= 1": (ValueError, {"steps": 0}),
    "every must be an integer >= 1": (ValueError, {"every": 0}),
    "loss must be one of": (ValueError, {"loss": "hinge"}),
    r"Y must have shape \(10, 2\) for X \(10, 3\), got \(9, 2\)": (ValueError, {"Y": [[0, 1]] * 9}),
    r"Y must have shape \(10, 2\) for X": (ValueError, {"Y": Y}),
    "Y must be finite": (ValueError, {"Y": [[0, np.nan]] * 10}),
    "Y must hold numbers of classes from 0 to 1": (ValueError, {"loss": "cross_entropy"}),
    r"X must have shape \(P, 3\)": (ValueError, {"X": X[:, :2]}),
    "batch_size must be at most the 10 samples": (ValueError, {"batch_size": 11}),
    "checkpoint must lie in a folder that exists": (ValueError, {"checkpoint": "no/such/file"}),
    "checkpoint must be a file of train": (ValueError, {"checkpoint": __file__}),
    "unknown argument 'epochs'": (TypeError, {"epochs": 3}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message):
    kind, arguments = REFUSED[message]
    given = {"module": MODULE, "X": X, "Y": np.full((10, 2), 7.0), "optimiser": sgd(MODULE)}
    with pytest.raises(kind, match=message):
        training.train(**given | {"steps": 2} | arguments)


@pytest.mark.parametrize("name", ["step_size", "temperature"])
def test_refusals_of_langevin(name):
    with pytest.raises(ValueError, match=f"{name} must be a finite real number > 0"):
        langevin(MODULE, **{name: 0.0})


def test_without_torch_the_error_says_how_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("fieldtheory.training")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'fieldtheory-networks\[torch\]'"):
        import fieldtheory.training  # noqa: F401
    with pytest.raises(ImportError, match="needs torch"):
        pf.fig5(quick=True)
