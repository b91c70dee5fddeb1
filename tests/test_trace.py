"""How many files and functions of the package one call passes: a short path, held call by call."""

import subprocess
import sys
from pathlib import Path

import pytest

SETTING = """
import importlib, pkgutil, sys
import fieldtheory as ft

for module in pkgutil.walk_packages(ft.__path__, "fieldtheory."):
    try:
        importlib.import_module(module.name)
    except ImportError:
        pass


def residual(depth=50):
    return ft.ResidualNetwork(depth=depth, activation="erf", branch_scale=0.3)
"""
PAIR = "[[0.05, 0.03], [0.03, 0.06]]"
# Files and functions that a call passes at most.
CALLS = {
    "kernels": ("ft.solve(residual(), 0.05).kernels", 30, 127),
    "G11": ("ft.solve(residual(), 0.05).G11", 40, 200),
    "G11 of two inputs": (f"ft.solve(residual(3), {PAIR}).G11", 50, 340),
    "optimal_scaling": ("ft.optimal_scaling(residual(), 0.05)", 30, 146),
}


def passed(call):
    """The files and functions that a call passes in a process of its own, after all imports.

    Comprehensions are part of the function that has them.
    """
    package = Path(__file__).parents[1] / "fieldtheory"
    traced = f"""
seen = set()


def profile(frame, event, _):
    code = frame.f_code
    if code.co_filename.startswith({str(package)!r}) and event == "call":
        if not code.co_name.endswith(("comp>", "<genexpr>")):
            seen.add((code.co_filename, code.co_qualname))


sys.setprofile(profile)
{call}
sys.setprofile(None)
print(len({{file for file, _ in seen}}), len(seen))
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SETTING + traced],
        capture_output=True,
        text=True,
        check=True,
        cwd=package.parent,
    )
    return tuple(map(int, run.stdout.split()))


@pytest.mark.parametrize("name", CALLS)
def test_the_path_of_a_call_is_short(name):
    call, files, functions = CALLS[name]
    found = passed(call)
    assert 0 < found[0] <= files and found[0] < found[1] <= functions, found
