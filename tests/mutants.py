"""Mutants of the core: a random sample, each run against the tests that cover its line.

    python -m tests.mutants [COUNT] [--jobs N]

Mutants are those of cosmic-ray outside annotations, without the operations on bits: with floats
they raise a TypeError, which every test would notice. Which tests cover which line, and how long
each test takes, is measured first, by pytest-cov with a context for every test, of slow tests those
whose function has a mark `slow_but`; of a line that is only run at import the tests of its module
count. The tests of a mutant are taken from the quickest on, up to `BUDGET` seconds. A mutant is
killed if one fails, or if they take much longer than before. Tests that killed one are run once
more without a change: what fails there kills nothing. Results are added to
build/mutants/results.jsonl one by one, so that an interrupted run goes on; the last lines printed
are the score of every room, with a 95 % interval, and the survivors.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
ROOMS = "averages", "numerics", "precision", "theory", "scaling"
SEED, COUNT = 52, 400
# Seconds of tests for a mutant, and how many times as long they may take, beside the start.
BUDGET, SLOWER, START = 30.0, 4.0, 30.0
COPIED = (
    "fieldtheory",
    "tests",
    "benchmarks",
    "docs",
    "derivations",
    "tools",
    "setup.cfg",
    "pyproject.toml",
)
PYTEST = sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"
# Ends of the names of operators that are left out.
BITS = "RShift", "LShift", "BitOr", "BitAnd", "BitXor", "Invert"
# Quantile of the normal law of a 95 % interval.
Z = 1.96


def measure(tests):
    """Run tests once with a context each: lines -> tests in .coverage, durations in an XML file."""
    BUILD.mkdir(parents=True, exist_ok=True)
    rooms = [f"--cov=fieldtheory/{room}" for room in ROOMS]
    command = [*PYTEST, "-m", "not slow or slow_but", "-n", "2", *rooms, "--cov-context=test"]
    command += ["--cov-report=", f"--junitxml={BUILD / 'durations.xml'}", "-o", "junit_logging=no"]
    environment = os.environ | {"COVERAGE_FILE": str(BUILD / ".coverage"), "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, *tests], cwd=ROOT, env=environment, check=False)


def durations():
    """Seconds of every test, by its file, class and name as one text."""
    seconds = defaultdict(float)
    for case in ElementTree.parse(BUILD / "durations.xml").iter("testcase"):
        seconds[f"{case.get('classname')}.{case.get('name')}"] += float(case.get("time"))
    return seconds


def as_in_xml(test):
    """The name of a test in the XML file."""
    path, *names = test.split("::")
    return ".".join([path.removesuffix(".py").replace("/", "."), *names])


def annotated(tree):
    """Lines and columns of annotations, of which there is nothing to test."""
    spans = []
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            part = getattr(node, name, None)
            if part is not None:
                spans.append(
                    ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))
                )
    return spans


def mutants():
    """All mutants as (path, operator, occurrence, line), of which there are tens of thousands."""
    from cosmic_ray.commands.init import _all_work_items

    kept = BUILD / "mutants.json"
    if kept.exists():
        return json.loads(kept.read_text())
    items = []
    for room in ROOMS:
        for path in sorted((ROOT / "fieldtheory" / room).rglob("*.py")):
            spans = annotated(ast.parse(path.read_text(encoding="utf-8")))
            for item in _all_work_items([path], {}):
                (spec,) = item.mutations
                start, end = spec.start_pos, spec.end_pos
                if not spec.operator_name.endswith(BITS) and not any(
                    low <= start and end <= high for low, high in spans
                ):
                    place = str(path.relative_to(ROOT))
                    items.append([place, spec.operator_name, spec.occurrence, start[0]])
    kept.write_text(json.dumps(items))
    return items


class Coverage:
    """Tests of lines, the quickest first."""

    def __init__(self):
        from coverage import CoverageData

        self.data = CoverageData(str(BUILD / ".coverage"))
        self.data.read()
        self.files = {
            str(Path(f).relative_to(ROOT)): self.data.contexts_by_lineno(f)
            for f in self.data.measured_files()
        }
        self.seconds = durations()

    def of(self, path, line):
        """Tests up to the budget, and their seconds."""
        contexts = self.files.get(path, {})
        tests = {test.split("|")[0] for test in contexts.get(line, ()) if test}
        if not tests:
            tests = {t.split("|")[0] for row in contexts.values() for t in row if t}
        chosen, total = [], 0.0
        for test in sorted(tests, key=lambda test: (self.seconds[as_in_xml(test)], test)):
            total += self.seconds[as_in_xml(test)]
            if chosen and total > BUDGET:
                break
            chosen.append(test)
        return chosen, total


def run(mutant, tests, seconds, copy):
    """killed, survived or uncovered, with the change."""
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.plugins import get_operator

    path, operator, occurrence, line = mutant
    record = {"path": path, "operator": operator, "occurrence": occurrence, "line": line}
    if not tests:
        return record | {"outcome": "uncovered"}
    with use_mutation(copy / path, get_operator(operator)(), occurrence) as (before, after):
        pairs = zip(before.splitlines(), after.splitlines(), strict=False)
        change = next(([a.strip(), b.strip()] for a, b in pairs if a != b), ["", ""])
        failed = run_tests(copy, tests, START + SLOWER * seconds)
    outcome = "killed" if failed else "survived"
    return record | {"outcome": outcome, "change": change, "tests": len(tests), "by": failed}


def run_tests(copy, tests, limit=None):
    """The tests that fail, only the first if there is a limit; ["limit"] if that ends them."""
    (copy / "tests.txt").write_text("\n".join(tests))
    stop = ["-x"] if limit else []
    environment = os.environ | {
        "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"
    }  # fmt: skip
    try:
        done = subprocess.run(
            [*PYTEST, "-m", "", *stop, "@tests.txt"],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ["limit"]
    failed = []
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            named = [test for test in tests if line.partition(" ")[2].startswith(test)]
            failed += [max(named, key=len)] if named else []
    # Nothing is run where the package cannot be imported.
    return failed or ["import"] if done.returncode else []


def copies(count):
    """So many copies of what is mutated."""
    for number in range(count):
        copy = BUILD / f"copy{number}"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("node_modules", "__pycache__")
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        yield copy


def interval(killed, count):
    """Wilson's 95 % interval."""
    share, square = killed / count, Z * Z / count
    middle = (share + square / 2) / (1 + square)
    half = Z * (share * (1 - share) / count + square / count / 4) ** 0.5 / (1 + square)
    return middle - half, middle + half


def report(records):
    """Scores by room, and the survivors."""
    rooms = defaultdict(list)
    for record in records:
        rooms[record["path"].split("/")[1]].append(record["outcome"] == "killed")
    rooms["all"] = [killed for each in list(rooms.values()) for killed in each]
    for room, outcomes in rooms.items():
        low, high = interval(sum(outcomes), len(outcomes))
        score = f"{sum(outcomes)}/{len(outcomes)}"
        print(
            f"{room:10s} {score:>9s}  {sum(outcomes) / len(outcomes):.3f} [{low:.3f}, {high:.3f}]"
        )
    for record in records:
        if record["outcome"] != "killed":
            before, after = record.get("change", ["", ""])
            print(
                f"{record['outcome']} {record['path']}:{record['line']}\n  - {before}\n  + {after}"
            )


def main():
    """Measure, draw, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=COUNT)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tests", nargs="*", default=[], help="what is measured, instead of all")
    options = parser.parse_args()
    if not (BUILD / "durations.xml").exists():
        measure(options.tests)
    coverage, results = Coverage(), BUILD / "results.jsonl"
    drawn = random.Random(SEED).sample(mutants(), options.count)
    known = (
        [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    )
    places = {(r["path"], r["operator"], r["occurrence"]) for r in known}
    free = SimpleQueue()
    for copy in copies(options.jobs):
        free.put(copy)

    def one(mutant):
        copy = free.get()
        try:
            return run(mutant, *coverage.of(mutant[0], mutant[3]), copy)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(options.jobs) as pool, results.open("a") as file:
        for record in pool.map(one, [m for m in drawn if tuple(m[:3]) not in places]):
            file.write(json.dumps(record) + "\n")
            file.flush()
            known.append(record)
    report(known)
    killing = sorted({test for r in known for test in r.get("by", ()) if "::" in test})
    if killing:
        print("fail without a change:", run_tests(next(copies(1)), killing))


if __name__ == "__main__":
    main()
