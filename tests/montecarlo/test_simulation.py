"""`simulate`: estimates, reproducibility, resuming, limits and bad input."""

import os
import re

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.montecarlo import simulation
from fieldtheory.montecarlo.sampling import block_moments, plan
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.numerics import memory
from tests.examples import K0_PAIR, K0_TRIPLE, network
from tests.montecarlo.statistics_of_draws import assert_same as assert_identical
from tests.rounding import assert_same
from tests.tables import slow

NET = network(3, "erf", 0.7, width=12)


@pytest.fixture
def counted(monkeypatch):
    """The indices of the chunks that were computed in this process."""
    indices = []
    original = block_moments._evaluate

    def evaluate(task):
        indices.append(task[0])
        return original(task)

    monkeypatch.setattr(block_moments, "_evaluate", evaluate)
    return indices


@pytest.mark.parametrize("method", ["kernel", slow("weights")])
def test_estimates_of_several_inputs_are_those_of_the_draws(small_blocks, method):
    e = simulate(NET, K0_TRIPLE, samples=301, seed=3, method=method, keep=True, cross_inputs=True)
    C = e.residual_kernels
    assert C.shape == (301, 5, 3, 3)
    np.testing.assert_array_equal(C[:, 0], np.broadcast_to(K0_TRIPLE, (301, 3, 3)))
    np.testing.assert_array_equal(C, C.swapaxes(2, 3))
    K = C.copy()
    for l in range(1, 4):
        K[:, l] += 0.7**2 * K[:, l - 1]
    cross = np.cov(C.reshape(301, -1), rowvar=False).reshape(5, 3, 3, 5, 3, 3)
    cross = cross.transpose(0, 3, 1, 2, 4, 5)
    expected = {
        "mean": C.mean(axis=0),
        "covariance": np.einsum("lmabab->lmab", cross),
        "kernel_mean": K.mean(axis=0),
        "kernel_variance": K[:, :-1].var(axis=0, ddof=1),
        "output_kurtosis": np.diag(3 * C.var(axis=0, ddof=1)[-1] / C.mean(axis=0)[-1] ** 2),
        "cross_covariance": cross,
        "four_point": np.einsum("labab->lab", e.cross_four_point),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(e, name), values, rtol=1e-11, atol=1e-15, err_msg=name)
        assert getattr(e, f"{name}_error").shape == values.shape
    centred = K - K.mean(axis=0)
    covariance = np.einsum("nlab,nmab->lmab", centred, centred) / 300
    np.testing.assert_allclose(e.kernel_covariance, covariance, rtol=1e-11, atol=1e-15)
    assert e.four_point.shape == e.four_point_error.shape == (4, 3, 3)
    assert "inputs=3" in repr(e) and f"method={method}" in repr(e)


def test_one_input_is_the_first_of_several():
    one = simulate(NET, 0.4, samples=100, keep=True)
    matrix = simulate(NET, [[0.4]], samples=100, keep=True)
    assert one.residual_kernels.shape == (100, 5) and one.output_kurtosis.shape == ()
    for name in ("mean", "covariance", "kernel_variance", "four_point", "residual_kernels"):
        wide = getattr(matrix, name)
        assert wide.shape == (*getattr(one, name).shape, 1, 1)
        assert_same(wide[..., 0, 0], getattr(one, name))
    assert one.inputs == matrix.inputs == 1


def test_what_was_not_asked_for_is_not_there():
    e = simulate(NET, 0.4, samples=20)
    assert e.residual_kernels is None and e.cross_covariance is None
    assert e.cross_covariance_error is None and e.batches == 20


class TestSameSeedSameNumbers:
    arguments = {"samples": 150, "seed": 11, "keep": True}  # noqa: RUF012

    @pytest.mark.parametrize("method", ["kernel", slow("weights")])
    def test_whatever_the_chunk_size(self, small_blocks, method):
        one = simulate(NET, K0_PAIR, method=method, **self.arguments)
        for chunk in (1, 40, 150, 1000):
            other = simulate(NET, K0_PAIR, method=method, chunk=chunk, **self.arguments)
            assert_identical(one, other)

    def test_whatever_the_number_of_workers(self):
        # Workers do not see what a fixture changes: blocks are small by the width. The matrices
        # are large enough for several threads of BLAS, of which the workers have fewer.
        threadpoolctl = pytest.importorskip("threadpoolctl")
        net, K0 = NET.replace(width=400, depth=2, branch_scale=0.5), np.eye(20) + 0.1
        arguments = {"method": "weights", "samples": 40, "seed": 1}
        with threadpoolctl.threadpool_limits(2):
            one = simulate(net, K0, **arguments)
        for chunk in (None, 30):
            assert_identical(one, simulate(net, K0, jobs=2, chunk=chunk, **arguments))
        run = plan.checked_run(net, K0, None, 40, 1, "weights", False, False)
        blocks = plan.chunks_of(40, plan.block_size(run), 30)
        assert len(blocks) > 1 and len(blocks[0]) > 1

    def test_and_other_seeds_methods_and_blocks_other_ones(self, small_blocks):
        one = simulate(NET, 0.4, **self.arguments).residual_kernels[:, 1]
        seed = simulate(NET, 0.4, **self.arguments | {"seed": 12}).residual_kernels[:, 1]
        method = simulate(NET, 0.4, method="weights", **self.arguments).residual_kernels[:, 1]
        draws = np.concatenate([one, seed, method])
        assert len(np.unique(draws)) == 450


@pytest.mark.slow
def test_memory_does_not_grow_with_the_samples():
    import tracemalloc

    peaks = []
    simulate(NET, 0.4, samples=4000)
    for samples in (30_000, 120_000):
        tracemalloc.start()
        simulate(NET, 0.4, samples=samples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert 120_000 * 5 * 8 > 2 * peaks[0]


class TestResuming:
    def run(self, directory, **changes):
        arguments = {"samples": 96, "chunk": 32, "seed": 2, "directory": directory} | changes
        return simulate(NET, K0_PAIR, **arguments)

    def test_after_an_exception(self, small_blocks, tmp_path, monkeypatch, counted):
        original = simulation._block

        def fail(run, block):
            if block.number == 5:
                raise KeyboardInterrupt
            return original(run, block)

        with monkeypatch.context() as patch:
            patch.setattr(simulation, "_block", fail)
            with pytest.raises(KeyboardInterrupt):
                self.run(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
        counted.clear()
        resumed = self.run(tmp_path)
        assert counted == [2]
        assert_identical(resumed, self.run(None))

    def test_finished_chunks_are_read_not_computed(self, small_blocks, tmp_path, counted):
        first = self.run(tmp_path / "new" / "folder", keep=True)
        counted.clear()
        assert_identical(self.run(tmp_path / "new" / "folder", keep=True), first)
        assert not counted

    def test_a_chunk_that_cannot_be_read_is_computed_again(self, small_blocks, tmp_path, counted):
        first = self.run(tmp_path)
        damaged = sorted(tmp_path.iterdir())[1]
        damaged.write_bytes(damaged.read_bytes()[:50])
        counted.clear()
        assert_identical(self.run(tmp_path), first)
        assert counted == [1]

    @pytest.mark.slow_but(0)
    @pytest.mark.parametrize(
        "changes",
        [
            {"samples": 95},
            {"seed": 3},
            {"chunk": 16},
            {"method": "weights"},
            {"keep": True},
            {"cross_inputs": True},
        ],
        ids=str,
    )
    def test_another_specification_uses_no_old_chunk(
        self, small_blocks, tmp_path, changes, counted
    ):
        self.run(tmp_path)
        counted.clear()
        assert_identical(self.run(tmp_path, **changes), self.run(None, **changes))
        assert counted[: len(counted) // 2] == counted[len(counted) // 2 :] != []

    def test_another_network_or_input_uses_no_old_chunk(self, tmp_path, counted):
        arguments = {"samples": 20, "directory": tmp_path}
        X = np.eye(2)
        for net in (NET, NET.replace(width=13)):
            simulate(net, ft.input_kernel(X, net), **arguments)
            simulate(net, 2 * ft.input_kernel(X, net), **arguments)
            simulate(net, X=X, **arguments)
        assert len(counted) == len(list(tmp_path.iterdir())) == 6

    def test_an_activation_that_cannot_be_written_needs_no_file(self, tmp_path):
        x = sp.Symbol("x", real=True)
        net = NET.replace(activation=sp.besselj(1, x))
        assert simulate(net, 0.4, samples=20).mean.shape == (5,)
        with pytest.raises(ValueError, match="activation cannot be written"):
            simulate(net, 0.4, samples=20, directory=tmp_path)


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_numbers():
    distributed = pytest.importorskip("distributed")
    import joblib

    net, arguments = NET.replace(width=300), {"samples": 60, "method": "weights"}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        assert os.getpid() not in client.run(os.getpid).values()
        found = simulate(net, 0.4, **arguments)
    assert_identical(found, simulate(net, 0.4, **arguments))


def test_progress_is_shown_on_stderr(capsys, small_blocks, tmp_path, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    for _ in range(2):
        simulate(NET, 0.4, samples=40, directory=tmp_path, progress=True)
    captured = capsys.readouterr()
    assert len(re.findall(r"simulate: (\d+) of \1\n", captured.err)) == 2
    assert re.search(r"simulate: (\d+) of \1 parts found\n", captured.err)
    assert not captured.out


def test_blocks_cut_the_samples_as_batches_do(small_blocks):
    for samples in (20, 39, 40, 41, 96, 1000, 1001):
        run = plan.checked_run(NET, 0.4, None, samples, 0, "kernel", False, False)
        blocks = plan.blocks_of(samples, plan.block_size(run))
        assert [block.number for block in blocks] == list(range(len(blocks)))
        assert {block.size for block in blocks[:-1]} <= {16} and blocks[-1].size <= 16
        parts = [part for block in blocks for part in block.parts]
        assert [part.batch for part in parts] == sorted(part.batch for part in parts)
        sizes = np.zeros(min(samples, 40), dtype=int)
        for part in parts:
            assert part.size > 0
            sizes[part.batch] += part.size
        assert sizes.sum() == samples and sizes.max() - sizes.min() <= 1


def test_more_memory_than_there_is(monkeypatch):
    with pytest.raises(ValueError, match=r"needs about .* GB of memory, .* GB are free"):
        simulate(NET, np.eye(2), samples=10**12, keep=True)
    with pytest.raises(ValueError, match=r"neither keep nor cross_inputs"):
        simulate(NET.replace(depth=500, branch_scale=1.0), np.eye(100), cross_inputs=True)
    run = plan.checked_run(NET, 0.4, None, 10**9, 0, "kernel", False, False)
    monkeypatch.setattr(memory, "memory_available", lambda: int(2 * plan.memory_needed(run, 1)))
    memory.require_memory("it", plan.memory_needed(run, 1), "")
    monkeypatch.setattr(memory, "memory_available", lambda: None)
    memory.require_memory("it", plan.memory_needed(run, 10**9), "")


@pytest.mark.slow
def test_the_memory_that_is_needed_is_about_that_used():
    import tracemalloc

    small = NET.replace(depth=12, branch_scale=0.3, width=50)
    deep = network(40, "erf", 1.0, width=200, branch_scale=0.2)
    for net, P, keep, cross, reduced in (
        (small, 1, False, False, None),
        (small, 6, True, False, None),
        (small, 4, False, True, None),
        (deep, 1, False, False, "control_variate"),
    ):
        K0 = np.eye(P) + 0.1
        run = plan.checked_run(net, K0, None, 2000, 0, "kernel", keep, cross, reduced)
        options = {"keep": keep, "cross_inputs": cross, "variance_reduction": reduced}
        simulate(net, K0, samples=20, **options)
        tracemalloc.start()
        simulate(net, K0, samples=2000, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.4 < plan.memory_needed(run, 1) / peak < 2.5


def test_a_width_of_one_is_warned_of():
    with pytest.warns(ft.ValidityWarning, match="width 1 has no two neurons"):
        e = simulate(NET.replace(width=1), K0_PAIR, samples=50)
    assert e.four_point is None and e.four_point_error is None
    assert np.isfinite(e.covariance_error).all()


def test_outputs_that_vanish_have_no_kurtosis():
    net = NET.replace(readout_weight_variance=0.0, readout_bias_variance=0.0)
    e = simulate(net, K0_PAIR, samples=20)
    np.testing.assert_array_equal(e.output_kurtosis, [0, 0])
    np.testing.assert_array_equal(e.output_kurtosis_error, [0, 0])
    assert not e.mean[-1].any() and e.mean[-2].all()
