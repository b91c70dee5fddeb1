"""Settings for all tests and doctests, and the fixtures that stand for an external program."""

import os

import pytest
from hypothesis import settings

from tests import rendering

os.environ.setdefault("MPLBACKEND", "Agg")

# Fixed seeds; no deadline, since a first call may derive and compile expressions.
settings.register_profile("fieldtheory", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("fieldtheory")


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
def small_run(tmp_path_factory):
    """The main job for four digits, two depths and few checks: its summary and reported steps."""
    from fieldtheory.literature import checks
    from fieldtheory.report import main_job

    def few_checks(digits, progress, jobs):
        progress("maximum entropy")
        number = checks.Check("averages", "M(K), erf", "0.5", "0.5" + 24 * "0", 2e-16, 1e-12)
        return [*checks.maximum_entropy(digits), number]

    steps = []
    output = tmp_path_factory.mktemp("run") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "run_checks", few_checks)
        patch.setattr(main_job, "SIMULATED", (20, 2))
        summary = main_job.run(
            output=output,
            depths=(5, 8),
            digits=20,
            count=4,
            progress=lambda *step: steps.append(step),
        )
    return summary, steps
