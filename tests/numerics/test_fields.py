"""The table of fields: it tells the truth about every result, and one row is enough."""

import re
from dataclasses import fields

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo import ensemble, perturbation
from fieldtheory.numerics.fields import FIELDS, Field
from fieldtheory.numerics.result import field
from fieldtheory.numerics.tangent import tangent_result
from tests.examples import K0_PAIR, network
from tests.rounding import assert_same
from tests.tables import slow

RESULTS = {
    ft.Solution: FIELDS,
    ft.Ensemble: ensemble.FIELDS,
    ft.SimulatedResponse: perturbation.FIELDS,
    ft.TangentKernels: tangent_result.FIELDS,
}
SIZES = {
    "layer": 5,
    "layer_": 5,
    "hidden_layer": 4,
    "hidden_layer_": 4,
    "input": 2,
    "input_": 2,
    "source": 3,
}
SIZES |= {"pair": 3, "pair_": 3}
CASES = {
    "one input": (network(3), 0.4),
    "pair": (network(3), K0_PAIR),
    "batch": (network(3, branch_scale=[[0.1], [0.2]]), 0.4),
    "batch of pairs": (network(3, branch_scale=[[0.1], [0.2]]), K0_PAIR),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", FIELDS)
def test_fields_have_the_declared_shapes_or_say_what_they_need(name, case):
    net, K0 = CASES[case]
    matrix, batch = np.ndim(K0) > 0, net.batch_shape
    row, solution = FIELDS[name], ft.solve(net, K0, order=2)
    if net.without.get(name):
        with pytest.raises(AttributeError, match=f"ResidualNetwork has no {name}: the kernels"):
            getattr(solution, name)
    elif row.defined(matrix, single=not batch):
        own = tuple(SIZES[dim] for dim in row.dims_for(matrix))
        assert getattr(solution, name).shape == batch * row.batches + own
    else:
        with pytest.raises(ValueError, match=f"^{name} (needs one|is for)"):
            getattr(solution, name)


@pytest.mark.parametrize("name", [row.name for row in FIELDS.values() if row.loops == 2])
def test_fields_of_second_order_name_the_argument(name):
    solution = ft.solve(network(3), 0.4)
    with pytest.raises(ValueError, match=rf"^{name} needs solve\(..., order=2\), got order=1$"):
        getattr(solution, name)
    assert FIELDS[name].column not in solution.rows()[0]


@pytest.mark.parametrize("result", RESULTS, ids=lambda kind: kind.__name__)
def test_docstrings_and_attributes_are_those_of_the_table(result):
    lines = re.findall(r"^    (\w+) {2,}\S.*$", result.__doc__, re.MULTILINE)
    assert set(lines) - {"field"} == set(RESULTS[result])
    assert result.table is RESULTS[result]
    known = {f.name for f in fields(result)} | set(dir(result))
    # Errors of several inputs have rows of their own.
    implied = known - set(result.table)
    for row in result.table.values():
        assert row.name in known and (f"{row.name}_error" in implied) == row.error


def test_what_simulations_measure_has_the_same_meaning():
    kinds = {kind.__name__: table for kind, table in RESULTS.items()}
    measured = [row for row in FIELDS.values() if row.simulated]
    assert len(measured) >= 7
    for row in measured:
        kind, name = row.simulated.split(".")
        other = kinds[kind][name]
        # Of the stream, simulations have the output as well.
        dims = [[dim.removeprefix("hidden_") for dim in each.dims] for each in (row, other)]
        assert dims[0] == dims[1] if row.name == "stream_covariance" else other.dims == row.dims
        assert (other.order, other.error) == (row.order, True)
        # Of pairs of pairs, simulations show those with themselves.
        assert other.of_inputs == row.of_inputs or row.of_inputs == ("pair", "pair_")


ROW = Field(
    name="doubled_kernels",
    symbol="2K^{(l)}",
    long_name="twice the kernels",
    dims=("layer",),
    written="always",
    simulated="Ensemble.kernel_mean",
    panel="kernels",
    column="2K",
)


@pytest.fixture
def doubled(monkeypatch):
    """A solution with one row and one property more."""
    monkeypatch.setitem(FIELDS, ROW.name, ROW)

    @field
    def doubled_kernels(solution):
        return 2 * solution.kernels

    doubled_kernels.__set_name__(ft.Solution, ROW.name)
    monkeypatch.setattr(ft.Solution, ROW.name, doubled_kernels, raising=False)


@pytest.mark.parametrize("K0", [0.4, slow(K0_PAIR)], ids=["one input", "pair"])
def test_one_row_is_enough(doubled, K0, tmp_path):
    solution = ft.solve(network(3), K0)
    expected = 2 * solution.kernels
    for suffix in (".npz", ".nc"):
        solution.save(tmp_path / f"s{suffix}")
        loaded = ft.Solution.load(tmp_path / f"s{suffix}")
        np.testing.assert_array_equal(vars(loaded)[ROW.name], expected)
    labelled = solution.to_xarray()[ROW.name]
    assert labelled.attrs == {"long_name": ROW.long_name, "symbol": ROW.symbol, "units": "1"}
    assert labelled.dims == ROW.dims_for(np.ndim(K0) > 0)
    grid = ft.sweep(network(3), K0, over={"width": [100, 200]}, of=[ROW.name])
    assert_same(grid[ROW.name][0], expected)
    text = solution._repr_html_()
    assert ROW.long_name in text and ROW.symbol in text and ROW.name in text
    assert solution.rows(fluctuations=False)[0]["2K"] == expected[0].flat[0]
    compared = ft.compare(solution, ft.simulate(network(3), K0, samples=20))
    assert ROW.name in {entry.name for entry in compared.extrapolated}
    labels = [line.get_label() for line in solution.plot().axes[0].lines]
    assert any(label.startswith(f"${ROW.symbol}$") for label in labels)


def test_rows_have_any_field_under_the_name_that_is_given():
    s = ft.solve(network(2), K0_PAIR)
    rows = s.rows(of=["chi_out", "K", "output_kurtosis"])
    pair = [row for row in rows if (row["alpha"], row["beta"]) == (0, 1)]
    assert [row["chi_out"] for row in pair] == [None, None, None, s.output_response[0, 1]]
    assert [row["K"] for row in pair] == s.kernels[:, 0, 1].tolist()
    assert rows[-1]["output_kurtosis"] == s.output_kurtosis[1]
    for name in ("kernal", "full_response"):
        with pytest.raises(ValueError, match=f"of must be one of residual_kernels, .*{name}"):
            s.rows(of=[name])


def test_rows_of_a_batch_are_refused():
    with pytest.raises(ValueError, match=r"rows are of one network and one K0, got a batch \(2,\)"):
        ft.solve(*CASES["batch"]).rows()
