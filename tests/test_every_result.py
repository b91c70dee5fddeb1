"""Every public function, and what it gives: an object that shows itself, or plain numbers."""

import tempfile

import numpy as np
import pytest
import sympy as sp
import xarray

import fieldtheory as ft

H = sp.Symbol("h", real=True)
NET = ft.ResidualNetwork(depth=2, width=20)


def single_layer(width, rng):
    weights = rng.normal(size=(width, width)) / width**0.5
    return lambda z: np.tanh(z) @ weights.T


def saved_and_loaded(result):
    with tempfile.TemporaryDirectory() as folder:
        result.save(f"{folder}/result.npz")
        return ft.load(f"{folder}/result.npz")


def _chain():
    nn = pytest.importorskip("torch").nn
    return nn.Sequential(*(nn.Sequential(nn.Tanh(), nn.Linear(20, 20)) for _ in range(2)))


CALLS = {
    "solve": lambda: ft.solve(NET, 0.3),
    "simulate": lambda: ft.simulate(NET, 0.3, samples=20),
    "simulate_response": lambda: ft.simulate_response(NET, 0.3, samples=20),
    "compare": lambda: ft.compare(ft.solve(NET, 0.3), ft.simulate(NET, 0.3, samples=20)),
    "sweep": lambda: ft.sweep(NET, 0.3, over={"depth": [2, 3]}),
    "load": lambda: saved_and_loaded(ft.solve(NET, 0.3)),
    "tangent_kernels": lambda: ft.tangent_kernels(NET, 0.3),
    "explain": lambda: ft.explain(
        ft.GaussianAverage(sp.erf(sp.Symbol("h")) ** 2, sp.Symbol("h"), 1)
    ),
    "derive": lambda: ft.derive(depth=1),
    "kernel": lambda: ft.kernel(NET),
    "spectrum": lambda: ft.spectrum(NET, count=3),
    "input_kernel": lambda: ft.input_kernel([[1.0, 2.0]], NET),
    "optimal_scaling": lambda: ft.optimal_scaling(NET, 0.05),
    "optimal_output_variance": lambda: ft.optimal_output_variance(NET),
    "critical_network": lambda: ft.critical_network("relu", skip_scale=0.6),
    "gain": lambda: ft.gain("relu"),
    "spread_scaling": lambda: ft.spread_scaling(ft.BlockNetwork(depth=4), 1.0, 2.0),
    "required_width": lambda: ft.required_width(NET, 0.05, 0.1),
    "critical_block": lambda: ft.critical_block(ft.BlockNetwork(depth=1, skip_scale=0.5)),
    "measure_block": lambda: ft.measure_block(single_layer, 20, 20),
    "covariance_with": lambda: ft.covariance_with(
        ft.solve(NET, [[0.3, 0.1], [0.1, 0.3]]), np.eye(2)
    ),
    "data_variability": lambda: ft.data_variability(NET, [[[0.3, 0.1], [0.1, 0.3]], np.eye(2) / 2]),
    "posterior": lambda: ft.posterior(NET, [[0.3, 0.1], [0.1, 0.3]], [1.0], 0.1),
    "tilted_posterior": lambda: ft.tilted_posterior(
        NET.replace(activation="linear"), [[0.3, 0.1], [0.1, 0.3]], [1.0], 0.1
    ),
    "lambdify": lambda: ft.lambdify([H], H),
    "depth_limit": lambda: ft.depth_limit(NET.replace(branch_scale="uniform"), 0.3),
    "audit": lambda: ft.audit(pytest.importorskip("torch").nn.Linear(20, 20)),
    "from_torch": lambda: ft.from_torch(_chain()),
}
LIMIT = ft.DiffusionNetwork(depth=4, width=5)
# What the same functions give for diffusion networks.
DIFFUSIONS = {
    "solve": lambda: ft.solve(LIMIT, [0.0, 1.0]),
    "simulate": lambda: ft.simulate(LIMIT, [0.0, 1.0], samples=20),
    "compare": lambda: ft.compare(ft.solve(LIMIT, [1.0]), ft.simulate(LIMIT, [1.0], samples=20)),
}
DRAWN = (
    *("solve", "load", "simulate", "simulate_response", "compare", "sweep"),
    *("covariance_with", "spectrum", "tangent_kernels", "depth_limit"),
    *("posterior", "tilted_posterior", "data_variability"),
)


def test_classes_of_results_are_importable():
    theory = ft.derive(depth=1)
    (diagram, *_) = theory.diagrams(legs=1, loops=1)
    for found, name in (
        (theory.hessian, "Hessian"),
        (theory.saddle_point, "SaddlePoint"),
        (theory.propagator, "Propagator"),
        (diagram, "Diagram"),
        (CALLS["explain"](), "Explanation"),
        (CALLS["sweep"](), "GridDataset"),
    ):
        assert isinstance(found, getattr(ft, name)) and name in dir(ft)
    assert not [name for name in ft._ELSEWHERE if not isinstance(getattr(ft, name), type)]


def test_these_are_all_functions():
    functions = {name for name in ft.__all__ if not isinstance(getattr(ft, name), type)}
    assert functions == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_what_a_function_gives_shows_itself_or_is_plain(name, tmp_path):
    found = CALLS[name]()
    if name in DRAWN:
        for suffix in (".nc", ".npz")[: 1 if name == "sweep" else 2]:
            found.save(path := tmp_path / f"file{suffix}")
            assert type(ft.load(path)) is type(found)
        assert len(found.plot().axes) >= 1
        assert "<" in found._repr_html_()
        assert set(found.to_xarray().dims)
        assert callable(getattr(type(found), "load_file" if name == "sweep" else "load"))
    elif name == "audit":
        assert len(found.plot().axes) == 1 and "<table>" in found._repr_html_()
        assert repr(found).startswith("Audit(Nothing deviates") and found.statement in repr(found)
    elif name == "explain":
        assert found._repr_html_().startswith("<table>")
    elif name == "measure_block":
        assert found._repr_html_().startswith("<table>") and found.statement in str(found)
    elif name == "critical_block":
        assert isinstance(found, ft.CriticalBlock)
    elif name == "derive":
        assert found.latex("saddle_point")
    elif name in ("critical_network", "from_torch"):
        assert isinstance(found, ft.ResidualNetwork)
    elif name == "gain":
        assert "fixed point" in str(found) and repr(found).startswith("Gain(relu")
    else:
        assert isinstance(found, float | int | np.ndarray) or callable(found)


def test_kernels_and_symbols_show_themselves():
    k = ft.kernel(NET)
    (line,) = k.plot().axes[0].lines
    np.testing.assert_allclose(
        line.get_ydata()[[0, 90]], k([[1.0, 1.0]], [[-1.0, -1.0], [1, -1]])[0]
    )
    assert "output kernel" in k._repr_html_() and "erf" in k._repr_html_()
    symbols = ft.derive(depth=1).symbols
    assert all(name in symbols._repr_html_() for name in symbols)


@pytest.mark.slow_but(0, 1)
@pytest.mark.parametrize("name", DIFFUSIONS)
def test_diffusions_show_themselves(name):
    found = DIFFUSIONS[name]()
    assert len(found.plot().axes) >= 1
    assert "<" in found._repr_html_()


@pytest.mark.parametrize("name", ["solve", "simulate", "compare"])
def test_completion_shows_no_machinery(name):
    hidden = {"labelled", "from_content", "of_batches", "table", "settings", "pair_theory"}
    for found in (calls[name]() for calls in (CALLS, DIFFUSIONS) if name in calls):
        shown = {entry for entry in dir(found) if not entry.startswith("_")}
        assert {"plot", "save", "load", "to_xarray"} <= shown and not shown & hidden


def test_inputs_are_counted_from_zero_everywhere(tmp_path):
    """As arrays are indexed: in tables, labelled arrays, files, legends and messages."""
    K0 = np.array([[0.3, 0.1], [0.1, 0.4]])
    s, e = ft.solve(NET, K0), ft.simulate(NET, K0, samples=20)
    _ = s.G11
    pairs = {(0, 0), (0, 1), (1, 1)}
    found = ft.compare(s, e)
    diffusion = ft.compare(ft.solve(LIMIT, [0.0, 1.0]), ft.simulate(LIMIT, [0.0, 1.0], samples=20))
    for rows in (s.rows(), e.rows(), found.rows, diffusion.rows):
        of_pairs = [row for row in rows if row["beta"] is not None]
        assert {(row["alpha"], row["beta"]) for row in of_pairs} == pairs
    places = {row["largest |z| at"].split(", inputs ")[1] for row in diffusion.summary}
    assert places <= {f"{i}, {j}" for i, j in pairs}
    labelled = s.to_xarray()
    assert labelled.input.values.tolist() == [0, 1]
    expected = s.G11[1, 2, 0, 1]
    s.save(tmp_path / "s.nc")
    for one in (labelled, xarray.load_dataset(tmp_path / "s.nc", engine="scipy")):
        assert one.pair.values.tolist() == ["(0,0)", "(0,1)", "(1,1)"]
        of = one.G11.sel(layer=1, layer_=2, pair="(0,0)", pair_="(0,1)")
        assert float(of) == expected
    grid = ft.sweep(NET, K0, over={"width": [10, 20]}, of=["G11"])
    assert grid.pair_.values.tolist() == ["(0,0)", "(0,1)", "(1,1)"]
