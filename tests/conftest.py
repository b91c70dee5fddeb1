"""Settings for all tests and doctests, and the fixtures that stand for an external program."""

import fcntl
import os
import pickle
from collections import Counter

import pytest
from hypothesis import settings

from fieldtheory.montecarlo.sampling import plan
from fieldtheory.numerics import chunks
from tests import rendering

os.environ.setdefault("MPLBACKEND", "Agg")

# Lines of progress come after seconds, in which slow machines do less: tests of them set others.
chunks.SILENCE = float("inf")

# Fixed seeds; no deadline, since a first call may derive and compile expressions.
settings.register_profile("all", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("quick", settings.get_profile("all"), max_examples=20)


def pytest_configure(config):
    """More examples where the slow tests run as well."""
    settings.load_profile("quick" if config.option.markexpr else "all")


@pytest.fixture(scope="session")
def katex_failures():
    """`rendering.katex_failures`; the test is skipped with a reason where KaTeX cannot run."""
    if reason := rendering.katex_missing():
        pytest.skip(reason)
    return rendering.katex_failures


@pytest.fixture(scope="session")
def chromium():
    """The module `rendering`; the test is skipped with a reason where Chromium cannot run."""
    if reason := rendering.chromium_missing():
        pytest.skip(reason)
    return rendering


@pytest.fixture(scope="session")
def small_run(tmp_path_factory, worker_id):
    """The main job for four digits and five layers: what it found, and the reported steps."""
    if worker_id == "master":
        return _small_run(tmp_path_factory.mktemp("run") / "results")
    # The first worker to come here runs it, the others wait and read.
    shared = tmp_path_factory.getbasetemp().parent / "small_run"
    with open(f"{shared}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = shared.with_suffix(".pickle")
        if not kept.exists():
            shared.mkdir()
            kept.write_bytes(pickle.dumps(_small_run(shared / "results")))
        return pickle.loads(kept.read_bytes())


def _small_run(output):
    import fieldtheory as ft
    from fieldtheory.data import load_digits
    from fieldtheory.report import main_job

    steps = []
    data = load_digits((0, 3), 4)
    network = ft.ResidualNetwork(depth=5, readin_bias_variance=0.0, input_dim=64, width=100)
    inputs = ft.data.scaled_kernel(data.samples, 0.05), data, "digits 0, 3: 4 samples"
    found = main_job.run(
        network, *inputs, output=output, samples=50, progress=lambda *step: steps.append(step)
    )
    return found, steps


@pytest.fixture
def small_blocks(monkeypatch):
    """Simulations in blocks of 16 networks, so that short runs have many of them."""
    monkeypatch.setattr(plan, "BLOCK", 16)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a function with a mark `slow_but` all cases are slow but for those at these places."""
    cases = Counter()
    for item in items:
        if mark := item.get_closest_marker("slow_but"):
            function = item.nodeid.partition("[")[0]
            if cases[function] not in mark.args:
                item.add_marker(pytest.mark.slow)
            cases[function] += 1
