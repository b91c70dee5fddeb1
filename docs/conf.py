"""The settings of the site: `make docs` builds it into build/docs."""

import importlib
import os
import re
import sys
import warnings
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from shutil import copy2

from docutils.parsers.rst.states import Inliner
from sphinx.ext import autosummary

from fieldtheory.numerics.result import _MACHINERY

# The pages draw pictures and start notebooks: neither needs a window or more than one thread.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", category=DeprecationWarning)
# Small trained networks of the gallery, whose page says so.
warnings.filterwarnings("ignore", message="terms of order 1/N are")

project = "fieldtheory"
author = copyright = "fieldtheory developers"
if not find_spec("torch"):
    raise ImportError("the site shows trained networks: install torch, the build for CPUs will do")
version = release = installed_version("fieldtheory-networks")

# The notebooks are shown as they are, with their outputs: tests/test_notebooks.py runs them.
HERE = Path(__file__).parent
(HERE / "notebooks").mkdir(exist_ok=True)
for notebook in HERE.parent.glob("notebooks/*.ipynb"):
    copy2(notebook, HERE / "notebooks")


GALLERY = HERE.parent / "build" / "gallery"
sys.path.insert(0, str(HERE))
gallery_pages = importlib.import_module("gallery_pages")
gallery_pages.write(GALLERY)
sphinx_gallery_conf = {
    "examples_dirs": str(GALLERY),
    "gallery_dirs": "gallery",
    "filename_pattern": "",
    "image_scrapers": "gallery_pages.picture",
    "only_warn_on_example_error": False,
    "subsection_order": [f"../build/gallery/{paper}" for paper in gallery_pages.PAPERS],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "show_memory": False,
    "write_computation_times": False,
    "copyfile_regex": "",
}


def links_within(app, name, source):
    """Links that are right in the repository, made right in the site, which has all in docs/."""
    text = re.sub(r"\]\((?:\.\./)+notebooks/(?!\))", "](/notebooks/", source[0])
    text = re.sub(r"\]\((?:\.\./)+notebooks/\)", "](/tutorials.md)", text)
    source[0] = text.replace("](../docs/", "](/") if name.startswith("notebooks/") else text


extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = [
    "**.ipynb_checkpoints",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/**.zip",
    "gallery/**.json",
]
templates_path = ["_templates"]

# Pages
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "pages")
nb_execution_timeout = 120
nb_execution_excludepatterns = [
    "notebooks/*"
]  # shown as they are: tests/test_notebooks.py runs them
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables and formulas that cells print
copybutton_exclude = ".linenos, .gp, .go"

# API
autosummary_generate = True
# The first sentence does not end at "(F25 eq. (57))".
autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.", "Fig.", "Figs.", "Prop.")
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
default_role = "py:obj"


# In docstrings |h| is a modulus, not a substitution of reStructuredText.
def as_text(inliner, match, line):
    return match.string[: match.end()], [], match.string[match.end() :], []


Inliner.dispatch = Inliner.dispatch | {"|": as_text}


def left_out(app, what, name, member, skip, options):
    """Leave out methods of other packages, which document them, and those for the package's use."""
    function = getattr(member, "fget", None) or getattr(member, "func", member)
    home = getattr(function, "__module__", None) or "fieldtheory"
    foreign = callable(function) and not home.startswith("fieldtheory")
    return True if foreign or name in _MACHINERY else None


def setup(app):
    app.connect("source-read", links_within)
    app.connect("autodoc-skip-member", left_out)


# Look
html_theme = "pydata_sphinx_theme"
html_title = "fieldtheory"
# With MathJax and its fonts: no page asks the network for anything.
html_static_path = [
    "_static",
    str(Path(find_spec("sphinx-mathjax-offline").origin).parent / "static"),
]
mathjax_path = "mathjax/tex-chtml.js"
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages without pages below them have no navigation at the left.
html_sidebars = {page.stem: [] for page in HERE.glob("*.md") if page.stem != "tutorials"}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
