"""The package as a whole: light import, names, examples, direction of imports."""

import ast
import doctest
import graphlib
import importlib
import subprocess
import sys
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

import fieldtheory as ft

PACKAGE = Path(ft.__file__).parent
# Imports go down this list, never up.
ROOMS = (
    "families",
    "validation",
    "plotting",
    "averages",
    "compiling",
    "networks",
    "theory",
    "precision",
    "numerics",
    "limits",
    "scaling",
    "criticality",
    "montecarlo",
    "measured_blocks",
    "inference",
    "sklearn",
    "sweeps",
    "literature",
    "data",
    "training",
    "figures",
    # What registers as a family may use all above it, and is imported by its name in no other room;
    # only the audit recognises transformers.
    "transformers",
    "audits",
    "report",
    "front",
    "cli",
    "diffusions",
)
HEAVY = {
    "matplotlib",
    *("scipy.optimize", "scipy.sparse", "scipy.fft"),
    "sklearn",
    "pandas",
    "typer",
    "rich",
    "joblib",
    "xarray",
    "jinja2",
    "latex2mathml",
    "fieldtheory.precision.balls",
    "torch",
    "IPython",
    "distributed",
    "scipy.stats",
}
# Modules with public names of their own.
PUBLIC_MODULES = [
    "fieldtheory",
    *(
        f"fieldtheory.{room}"
        for room in (
            "audits",
            "averages",
            "criticality",
            "data",
            "diffusions",
            "figures",
            "inference",
            "limits",
            "scaling",
            *(["training"] if find_spec("torch") else []),
        )
    ),
]


def module_name(path, package=PACKAGE):
    """fieldtheory.theory.action for fieldtheory/theory/action.py."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path, modules, package=PACKAGE):
    """Modules of the package that a file imports, wherever in the file the import stands."""
    here = list(path.relative_to(package.parent).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            # A name taken from a package is a module of it, or something that its __init__ has.
            names = [
                whole if (whole := f"{source}.{alias.name}") in modules else source
                for alias in node.names
            ]
        else:
            continue
        found.update(name for name in names if name in modules)
    return found


def graph_of(package=PACKAGE):
    """Each module with the modules that it imports."""
    paths = {module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {name: imported_modules(path, set(paths), package) for name, path in paths.items()}


@cache
def graph():
    return graph_of()


def cycle(modules):
    """The modules of one circle of imports, or nothing."""
    try:
        graphlib.TopologicalSorter(modules).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def climbing(modules):
    """Imports that go up the rooms, as "where <- what"."""

    def height(name):
        # The front module stands above all rooms but the shell, which imports it.
        return ROOMS.index(name.split(".")[1]) if "." in name else ROOMS.index("cli") - 0.5

    return [
        f"{name} <- {other}"
        for name, others in modules.items()
        for other in sorted(others)
        if height(other) > height(name)
    ]


def test_import_loads_the_core_libraries_only():
    program = (
        "import sys; import fieldtheory; "
        "assert not {'sympy', 'numpy'} & set(sys.modules); "
        "fieldtheory.solve(fieldtheory.ResidualNetwork(depth=2), 0.05).kernels; "
        f"loaded = {HEAVY!r} & set(sys.modules); print(sorted(loaded)); sys.exit(bool(loaded))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_front_door_has_rooms_and_version():
    assert {"criticality", "data", "figures", "scaling", "__version__", *ft.__all__} <= set(dir(ft))
    assert ft.figures is importlib.import_module("fieldtheory.figures")
    assert ft.data.load_digits and ft.scaling.optimal_scaling is ft.optimal_scaling
    assert ft.__version__ == metadata.version("fieldtheory-networks")
    with pytest.raises(AttributeError, match="'fieldtheory' has no attribute 'rooms'"):
        _ = ft.rooms


def public_names():
    for path in PUBLIC_MODULES:
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", ()):
            if callable(getattr(module, name)):
                yield pytest.param(getattr(module, name), id=f"{path}.{name}")


@pytest.mark.parametrize("thing", list(public_names()))
def test_every_public_name_has_an_example_that_is_run(thing):
    """What doctest finds in the home of the name is what pytest runs."""
    home = importlib.import_module(thing.__module__)
    found = {test.name: test.examples for test in doctest.DocTestFinder().find(home)}
    assert found.get(f"{thing.__module__}.{thing.__name__}")


def test_no_module_shares_its_name_with_a_public_function():
    names = {name.rsplit(".")[-1] for name in graph()} - {"fieldtheory"}
    assert names.isdisjoint(ft.__all__)
    assert all(callable(getattr(ft, name)) for name in ft.__all__)


def test_no_two_modules_share_a_name():
    names = [name.rsplit(".")[-1] for name in graph()]
    # A paper has its claims in literature and its figures in figures; audits are a room and
    # what is drawn of them; every family has its registration.
    shared = {"f23", "audits", "registration"}
    assert {name for name in names if names.count(name) > 1} <= shared


def test_the_package_has_its_rooms_and_nothing_beside_them():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    files = {path.name for path in PACKAGE.glob("*.py")}
    modules = {"families", "front", "sklearn", "validation"}
    assert files == {"__init__.py", *(f"{module}.py" for module in modules)}
    assert folders | modules == set(ROOMS)


@pytest.mark.parametrize(
    ("family", "name"), [("diffusions", "diffusion"), ("transformers", "fieldtheory.transformers")]
)
def test_only_the_list_of_families_names_them(family, name):
    lines = [
        line.strip()
        for path in PACKAGE.rglob("*.py")
        if not {family, "audits"} & {*path.relative_to(PACKAGE).parts}
        for line in path.read_text(encoding="utf-8").splitlines()
        if name in line.lower()
    ]
    assert lines == [f'"fieldtheory.{family}.registration:FAMILY",']


def test_imports_go_down_the_rooms():
    assert not climbing(graph())


def test_no_circles_of_imports():
    assert not cycle(graph())


def folders(modules):
    """The same graph, where the modules of a folder inside a room are one."""

    def folder(name):
        return ".".join(name.split(".")[:3])

    whole = {folder(name): set() for name in modules}
    for name, others in modules.items():
        whole[folder(name)] |= {folder(other) for other in others} - {folder(name)}
    return whole


def test_no_circles_between_the_folders_of_a_room():
    assert not cycle(folders(graph()))
    assert cycle(folders({"p.r.a.x": {"p.r.b.y"}, "p.r.b.y": set(), "p.r.b.z": {"p.r.a.x"}}))


def test_imports_are_seen_wherever_they_stand(tmp_path):
    package = tmp_path / "fieldtheory"
    for room, file, text in (
        ("averages", "node", "def f():\n    from fieldtheory.theory import action"),
        ("theory", "action", "if TYPE_CHECKING:\n    import fieldtheory.averages.node"),
        ("networks", "family", "from ..scaling import optimum, absent"),
        ("numerics", "gains", "from . import kernels"),
        ("numerics", "kernels", "import numpy"),
        ("scaling", "optimum", "from fieldtheory.numerics.gains import gain"),
    ):
        (package / room).mkdir(parents=True, exist_ok=True)
        (package / room / "__init__.py").touch()
        (package / room / f"{file}.py").write_text(text)
    found = graph_of(package)
    assert found["fieldtheory.networks.family"] == {
        "fieldtheory.scaling",
        "fieldtheory.scaling.optimum",
    }
    assert found["fieldtheory.numerics.gains"] == {"fieldtheory.numerics.kernels"}
    assert found["fieldtheory.scaling.optimum"] == {"fieldtheory.numerics.gains"}
    assert set(cycle(found)) == {"fieldtheory.averages.node", "fieldtheory.theory.action"}
    assert climbing(found) == [
        "fieldtheory.averages.node <- fieldtheory.theory.action",
        "fieldtheory.networks.family <- fieldtheory.scaling",
        "fieldtheory.networks.family <- fieldtheory.scaling.optimum",
    ]
