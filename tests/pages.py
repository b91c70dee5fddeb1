"""Run a page of docs/ as its reader does, block by block, in one namespace and an empty folder.

    pycon     what is typed after >>> and what Python answers
    python    the same; or code, where the next block follows the word "prints" with what it prints;
              if its first line is a comment such as "# blocks.py" it is also a file of that name
    console   commands after $, run by the package without a shell, and what they print
    toml      a file of the name in its first line, a comment

Blocks of other languages are not run. Answers are compared as pytest does, with ... for any text
and numbers by the digits shown. Of code and commands without an answer any will do.

    python -m tests.pages docs/howto/*.md      writes the answers into pages, and their pictures
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

from _pytest.doctest import _get_checker, _get_number_flag
from typer.testing import CliRunner

BLOCK = re.compile(
    r"^```(pycon|python|console|toml)\n(.*?)^```\n(?:\nprints\n\n```\n(.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
FILE = re.compile(r"# (\w+\.(?:py|toml))\n")
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | _get_number_flag()
CHECKER = _get_checker()


class DifferentError(AssertionError):
    """A page shows something else than what is printed."""


def run(path, folder, write=False):
    """Run the blocks of a page in a folder; what they define, and the page with new answers."""
    text, found = Path(path).read_text(encoding="utf-8"), {"__name__": "__main__"}

    def block(match):
        language, content, shown = match.groups()
        if language == "console":
            content = _called(content, write)
        elif language == "toml":
            Path(FILE.match(content)[1]).write_text(content, encoding="utf-8")
        elif content.startswith(">>>"):
            content = _typed(content, found, write)
        else:
            shown = _executed(content, shown, found, write)
        below = f"\nprints\n\n```\n{shown}```\n" if shown else ""
        return f"```{language}\n{content}```\n{below}"

    path = mock.patch.object(sys, "path", [str(folder), *sys.path])
    with contextlib.chdir(folder), path, mock.patch.object(sys, "argv", ["page"]):
        return found, BLOCK.sub(block, text)


def _typed(content, found, write):
    lines = []
    for example in doctest.DocTestParser().get_examples(content):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(example.source, "page", "single"), found)
            except Exception as error:
                if example.exc_msg is None and not write:
                    raise
                header = "Traceback (most recent call last):\n    ...\n"
                printed.write(f"{header}{type(error).__name__}: {error}\n")
        answer = _same(example.source, example.want, printed.getvalue(), write)
        first, *more = example.source.splitlines()
        lines += [f">>> {first}\n", *(f"... {line}".rstrip() + "\n" for line in more), answer]
    return "".join(lines)


def _executed(content, shown, found, write):
    if named := FILE.match(content):
        Path(named[1]).write_text(content, encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(content, "page", "exec"), found)
    return shown and _same(content, shown, printed.getvalue(), write)


def _called(content, write):
    from fieldtheory.cli.app import app

    lines = []
    for command, shown in COMMAND.findall(content):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "fieldtheory", command
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": "88"})
        assert result.exit_code == 0, f"{command}\n{result.output}{result.exception!r}"
        lines += [f"$ {command}\n", shown and _same(command, shown, result.stdout, write)]
    return "".join(lines)


def _same(source, shown, printed, write):
    """What a page is to show: as it is where it agrees, else what is printed or an error."""
    if CHECKER.check_output(shown, printed, FLAGS):
        return shown
    if write:
        return re.sub(r" +$", "", printed, flags=re.MULTILINE)
    raise DifferentError(f"{source}\nthe page shows\n{shown}\nprinted is\n{printed}")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as place:
            page = Path(name).resolve()
            page.write_text(run(page, place, write=True)[1], encoding="utf-8")
            for picture in Path(place).glob("*.png"):
                if f"]({picture.name})" in page.read_text(encoding="utf-8"):
                    shutil.copy(picture, page.parent)
