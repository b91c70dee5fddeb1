"""Where torch is not installed, there are no doctests of what needs it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import fieldtheory

collect_ignore = [] if find_spec("torch") else ["fieldtheory/training", "fieldtheory/audits"]

# The distribution `fieldtheory` of the index, another package, installs a module of this name.
if Path(fieldtheory.__file__).parent != Path(__file__).parent / "fieldtheory":
    raise pytest.UsageError(
        f"these are the tests of {Path(__file__).parent}, but `import fieldtheory` finds "
        f"{fieldtheory.__file__}; run `make install`, or pip uninstall fieldtheory if that is "
        "another package"
    )
