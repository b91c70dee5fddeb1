"""Scripts of sphinx-gallery, one for each printed figure, from gallery.toml and the docstrings."""

import inspect
import re
import tomllib
from pathlib import Path
from shutil import rmtree

from numpydoc.docscrape import FunctionDoc
from sphinx_gallery.scrapers import figure_rst

from fieldtheory import figures

PAPERS = tomllib.loads((Path(__file__).parent / "gallery.toml").read_text(encoding="utf-8"))
LABEL = r"\s*[:(]\s*(F25|F23|PF|SR) (Fig\.|Table) \d+\)?"
SECTIONS = {"name", "source"}
# {marks} is as long as the title.
SCRIPT = '''"""
{title}
{marks}

{question}

{panels}
"""

from fieldtheory.figures import {paper}

numbers = {paper}.{figure}({arguments})
drawn = {paper}.draw_{figure}(numbers)

# %%
# Numbers
# -------
# {says}
#
# Here:

{numbers}

# %%
# What is chosen here, and what differs
# -------------------------------------
{remarks}
#
# .. admonition:: The whole figure
#
#    ``fieldtheory figures {paper}.{figure}`` draws it in full size, with its numbers in a csv file.
#    The function is `{home}.{figure}`.
'''


def write(folder):
    """The scripts and the headers of their sections, as folder/paper/paper_figure.py."""
    files = {"GALLERY_HEADER.rst": HEADER}
    for paper, entries in PAPERS.items():
        header = f"{entries['name']}\n{'-' * 20}\n\n{entries['source']}\n"
        files[f"{paper}/GALLERY_HEADER.rst"] = header
        for figure in entries.keys() - SECTIONS:
            files[f"{paper}/{paper}_{figure}.py"] = script(paper, figure, entries)
    rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


HEADER = """
Gallery
=======

Every printed figure of the five papers, and some that no paper prints: the question, a picture
drawn with this package, its numbers, and what differs from the paper. Pictures on these pages have
fewer networks and shorter training than the papers; the command at the end of each page draws the
figure in full.

"""


def script(paper, figure, entries):
    """The page of one figure as a script."""
    entry, module = entries[figure], getattr(figures, paper)
    about = FunctionDoc(getattr(module, figure))
    first = about["Summary"][0].rstrip(".")
    printed = re.fullmatch(r"(fig|table)(\d+)", figure)
    kind = {"fig": " Fig. ", "table": " Table "}
    label = entries["name"] + (kind[printed[1]] + printed[2] if printed else "")
    # Some docstrings name the figure at the end of their first line.
    title = f"{label}: {re.sub(LABEL, '', first).removesuffix('; needs torch')}"
    draw = getattr(module, f"draw_{figure}")
    # Some figures of F23 are those of F25 in its letters.
    drawn = inspect.getdoc(getattr(draw, "func", draw)).splitlines()[0]
    remarks = about["Notes"] or [line for returned in about["Returns"] for line in returned.desc]
    if "remark" in entry:
        remarks = [*remarks, "", entry["remark"]]
    return SCRIPT.format(
        title=title,
        marks="=" * (2 * len(title)),
        paper=paper,
        home=module.__name__,
        figure=figure,
        question=f"**{entry['question']}**",
        panels=re.sub(r".* as a matplotlib Figure: |^(?=\()", "Panels: ", drawn),
        arguments=entry.get("arguments", ""),
        says=("" if entries["source"].startswith("No paper") else "The paper: ") + entry["says"],
        numbers=entry["numbers"].strip(),
        remarks="\n".join(f"# {line}".rstrip() for line in remarks),
    )


def picture(block, variables, settings):
    """Save the Figure `drawn`, which is not one of pyplot."""
    drawn = variables["example_globals"].pop("drawn", None)
    if drawn is None:
        return ""
    path = next(variables["image_path_iterator"])
    drawn.savefig(path, dpi=150)
    return figure_rst([path], settings["src_dir"])
