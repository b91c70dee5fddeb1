"""The training loop: SGD against NumPy, checkpoints, divergence, refusals."""

import sys

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.figures import pf
from tests.rounding import assert_same

torch = pytest.importorskip("torch", reason="torch is not installed")
from fieldtheory import training  # noqa: E402
from fieldtheory.training import loop  # noqa: E402
from tests.tables import slow  # noqa: E402

NET = ft.ResidualNetwork(depth=2, width=6, input_dim=3)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), RNG.normal(size=10)


def langevin(module, **changes):
    return training.Langevin(module.priors(), **{"step_size": 0.01, "temperature": 0.5} | changes)


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)


def lbfgs(module):
    return torch.optim.LBFGS(module.parameters(), max_iter=3)


def with_dropout():
    torch.manual_seed(0)
    parts = torch.nn.Linear(3, 4), torch.nn.Dropout(), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    return torch.nn.Sequential(*parts).double()


def run(optimiser, steps=12, made=lambda: training.torch_module(NET, copies=2), **options):
    module = made()
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


@pytest.mark.parametrize("targets", [Y, Y[:, None]])
def test_outputs_without_an_axis(targets):
    class Line(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x)[:, 0]

    line = Line(3, 1, dtype=torch.float64)
    expected = ((line(torch.tensor(X)).detach().numpy() - Y) ** 2).sum() / 2
    assert training.train(line, X, targets, sgd(line), steps=1).loss[0] == pytest.approx(expected)


def test_parts_stay_in_their_mode():
    module = with_dropout().train()
    module[1].eval()
    history = training.train(module, X, Y, sgd(module), steps=2)
    assert [part.training for part in module] == [True, False, True, True]
    other = with_dropout().eval()
    assert_same(history.loss, training.train(other, X, Y, sgd(other), steps=2).loss)


def test_lbfgs_solves_least_squares():
    module = torch.nn.Linear(3, 1, bias=False, dtype=torch.float64)
    optimiser = torch.optim.LBFGS(module.parameters(), line_search_fn="strong_wolfe")
    history = training.train(module, X, Y, optimiser, steps=4)
    solution, residual, *_ = np.linalg.lstsq(X, Y, rcond=None)
    np.testing.assert_allclose(module.weight.detach()[0], solution, rtol=1e-6)
    assert history.loss[-1] == pytest.approx(residual[0] / 2) and history.loss.shape == (4,)


def test_a_module_of_bfloat16():
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 1).bfloat16()
    outputs = module(torch.tensor(X).bfloat16()).detach().double().numpy()[:, 0]
    history = training.train(
        module, X, Y, sgd(module), steps=9, observe=lambda module: {"w": module.weight}
    )
    # Outputs are rounded, their loss is not.
    assert history.loss[0] == pytest.approx(((outputs - Y) ** 2).sum() / 2, rel=1e-6)
    assert history.loss[-1] < history.loss[0] and history.observed["w"].shape == (9, 1, 3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_integers_for_an_embedding(dtype):
    torch.manual_seed(0)
    words = np.arange(900, 910)
    module = torch.nn.Sequential(torch.nn.Embedding(1000, 4), torch.nn.Linear(4, 1)).to(dtype)
    expected = module(torch.tensor(words)).detach().double().numpy()[:, 0]
    history = training.train(module, words, Y, sgd(module), steps=9)
    assert history.loss[0] == pytest.approx(((expected - Y) ** 2).sum() / 2, rel=1e-6)
    assert history.loss[-1] < 0.8 * history.loss[0]
    line = torch.nn.Linear(2, 1)
    assert training.train(line, np.eye(2, dtype=int), [0, 1], sgd(line), steps=1).loss[0] > 0


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


@pytest.mark.parametrize(
    ("optimiser", "options"),
    [
        slow(langevin, {}),
        slow(sgd, {"batch_size": 3}),
        (sgd, {"batch_size": 3, "made": with_dropout}),
        slow(lbfgs, {"made": with_dropout}),
    ],
    ids=["langevin", "sgd", "dropout", "lbfgs"],
)
def test_an_interrupted_run_goes_on_with_the_same_numbers(
    optimiser, options, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "_INTERVAL", -1.0)
    options = options | {"every": 2, "seed": 4}
    calls = []

    def interrupted(module):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return outputs(module)

    def outputs(module):
        return {"f": module(torch.tensor(X))}

    state = torch.get_rng_state()
    expected, parameters = run(optimiser, observe=outputs, **options)
    path = tmp_path / "state.pt"
    with pytest.raises(KeyboardInterrupt):
        run(optimiser, observe=interrupted, checkpoint=path, **options)
    for steps in (8, 12, 12):
        found, same = run(optimiser, steps, observe=outputs, checkpoint=path, **options)
    np.testing.assert_array_equal(same, parameters)
    np.testing.assert_array_equal(found.loss, expected.loss)
    np.testing.assert_array_equal(found.observed["f"], expected.observed["f"])
    if "made" not in options:
        assert torch.equal(torch.get_rng_state(), state)
    for other in (lambda m: outputs(m) | {"g": 1.0}, lambda m: {"f": outputs(m)["f"][..., 0]}):
        with pytest.raises(ValueError, match=r"observe must return the same .* after f \("):
            run(optimiser, observe=other, checkpoint=path, **options)
    with pytest.raises(ValueError, match=r"got nothing after f \("):
        run(optimiser, 14, checkpoint=path, **options)
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


OTHER = torch.nn.Linear(3, 3).double()
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
    r"module must take X of shape \(10, 2\), got .* X must have shape \(P, 3\)": (
        ValueError,
        {"X": X[:, :2]},
    ),
    r"module must map X \(P, ...\) to \(P,\) or \(P, outputs\), got shape \(9,\) for P = 3": (
        ValueError,
        {"module": torch.nn.Sequential(OTHER, torch.nn.Flatten(0)), "optimiser": sgd(OTHER)},
    ),
    "optimiser must have parameters of the module .* none of its 0": (
        ValueError,
        {"module": torch.nn.Tanh()},
    ),
    "optimiser must have parameters of the module": (ValueError, {"optimiser": sgd(OTHER)}),
    "Langevin samples the posterior .* got 'squared' and 3": (
        ValueError,
        {"optimiser": langevin(MODULE), "batch_size": 3},
    ),
    "Langevin samples the posterior .* got 'mean_squared' and None": (
        ValueError,
        {"optimiser": langevin(MODULE), "loss": "mean_squared"},
    ),
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
