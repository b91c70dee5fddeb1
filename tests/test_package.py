"""The package as a whole: light import, names, direction of imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fieldtheory as ft

PACKAGE = Path(ft.__file__).parent
LIGHT = {"sympy", "numpy", "scipy", "mpmath"}
HEAVY = {
    "matplotlib",
    "sklearn",
    "typer",
    "rich",
    "joblib",
    "xarray",
    "jinja2",
    "latex2mathml",
    "jax",
}


def test_import_loads_the_core_libraries_only():
    program = (
        "import sys; import fieldtheory; "
        f"loaded = {HEAVY!r} & set(sys.modules); print(sorted(loaded)); sys.exit(bool(loaded))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_no_module_shares_its_name_with_a_public_function():
    modules = {path.stem for path in PACKAGE.rglob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir()
    }
    assert modules.isdisjoint(ft.__all__)
    assert all(callable(getattr(ft, name)) for name in ft.__all__)


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("averages", ("theory", "numerics", "lambdify", "scaling", "checks", "cli")),
        ("theory", ("numerics", "lambdify", "scaling", "checks", "cli", "figures")),
        ("numerics", ("theory", "scaling", "checks", "cli", "figures", "workflow", "montecarlo")),
        ("montecarlo", ("theory", "scaling", "checks", "cli", "figures", "workflow")),
        ("figures", ("cli", "workflow", "checks")),
    ],
)
def test_imports_go_down_the_rooms(room, forbidden):
    for path in (PACKAGE / room).glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fieldtheory."):
                assert node.module.split(".")[1] not in forbidden, f"{path.name}: {node.module}"


def test_every_public_name_has_a_docstring_with_an_example():
    for name in ft.__all__:
        documentation = getattr(ft, name).__doc__ or ""
        assert len(documentation) > 60, name
