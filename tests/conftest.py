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
