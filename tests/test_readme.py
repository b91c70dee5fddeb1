"""The example of the README runs and prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_example_prints_what_is_shown():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    shown = re.search(r"prints\n\n```\n(.*?)```", README, re.DOTALL).group(1)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    assert output.getvalue() == shown


def test_it_is_short():
    assert len(README.split()) < 700


def test_commands_and_links_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
    assert "make run" in README and "make test" in README
