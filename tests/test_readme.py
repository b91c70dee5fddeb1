"""The example of the README runs and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def test_example_prints_what_is_shown():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    shown = re.search(r"prints\n\n```\n(.*?)```", README, re.DOTALL).group(1)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    printed = output.getvalue()
    # Text must agree to the letter, numbers to 9 digits; the last one is a rounding error.
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    for new, old in list(pairs)[:-1]:
        assert abs(float(new) - float(old)) <= 1e-9 * abs(float(old))
    assert float(NUMBER.findall(printed)[-1]) < 1e-15


def test_it_is_short():
    assert len(README.split()) < 700


def test_commands_and_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
    assert "make run" in README and "make test" in README
