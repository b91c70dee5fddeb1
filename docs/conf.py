"""The settings of the site: `make docs` builds it into build/docs."""

import os
import re
import sys
import warnings
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree, rmtree

from docutils.parsers.rst.states import Inliner
from sphinx.errors import ConfigError
from sphinx.ext import autosummary

from fieldtheory.numerics.stored import _MACHINERY

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"
if not find_spec("torch"):
    raise ConfigError("the site shows trained networks: install torch, the build for CPUs will do")
# Pages draw pictures and start notebooks: neither needs a window or more than one thread.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Kernels warn of what an execution on one machine need not care about: a profile of errors only.
PROFILE = BUILD / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')
os.environ |= {"IPYTHONDIR": str(PROFILE.parent), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
warnings.filterwarnings("ignore", category=DeprecationWarning)

project = "fieldtheory"
author = copyright = "fieldtheory developers"
version = release = installed_version("fieldtheory-networks")
extensions = [
    *("sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"),
    *("sphinx_gallery.gen_gallery", "myst_nb", "sphinx_design", "sphinx_copybutton"),
]
exclude_patterns = [
    "**.ipynb_checkpoints",
    *(f"gallery/**.{end}" for end in "ipynb py zip json".split()),
]
templates_path = ["_templates"]
# Links of pages must lead somewhere; names in docstrings may be of what has no page.
nitpicky = True
nitpick_ignore_regex = [("py:obj", ".*")]

# Pages
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(BUILD / "pages")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables and formulas that cells print
copybutton_exclude = ".linenos, .gp, .go"

# Tutorials: the notebooks with their outputs, which tests/test_notebooks.py runs.
rmtree(HERE / "notebooks", ignore_errors=True)
copytree(HERE.parent / "notebooks", HERE / "notebooks")
nb_execution_excludepatterns = ["notebooks/*"]


def links_within(app, name, source):
    """Links that are right in the repository, made right in the site, which has all in docs/."""
    text = re.sub(r"\]\((?:\.\./)+notebooks/(?!\))", "](/notebooks/", source[0])
    text = re.sub(r"\]\((?:\.\./)+notebooks/\)", "](/tutorials.md)", text)
    source[0] = text.replace("](../docs/", "](/") if name.startswith("notebooks/") else text


# Gallery
sys.path.insert(0, str(HERE))
import gallery_pages  # noqa: E402

gallery_pages.write(BUILD / "gallery")
# Its small trained networks, of which their page says so.
warnings.filterwarnings("ignore", message="terms of order 1/N are")
sphinx_gallery_conf = {
    "examples_dirs": str(BUILD / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": "",
    "image_scrapers": "gallery_pages.picture",
    "subsection_order": [f"../build/gallery/{paper}" for paper in gallery_pages.PAPERS],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

# API
autosummary_generate = True
# The first sentence does not end at "(F25 eq. (57))".
autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.", "Fig.", "Figs.", "Prop.")
autodoc_typehints = "none"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
default_role = "py:obj"


def as_text(inliner, match, line):
    """In docstrings |h| is a modulus, not a substitution of reStructuredText."""
    return match.string[: match.end()], [], match.string[match.end() :], []


Inliner.dispatch = Inliner.dispatch | {"|": as_text}


def left_out(app, what, name, member, skip, options):
    """Leave out methods of other packages, which document them, and those for the package's use."""
    function = getattr(member, "fget", None) or getattr(member, "func", member)
    home = getattr(function, "__module__", None) or "fieldtheory"
    foreign = callable(function) and not home.startswith("fieldtheory")
    return True if foreign or name in _MACHINERY else None


def by_last_name(app, env, node, content):
    """What a docstring calls `simulate` is `fieldtheory.simulate`, also outside this module."""
    python, last = env.get_domain("py"), node.get("reftarget")
    found = [name for name in python.objects if name.rpartition(".")[2] == last]
    if node.get("refdomain") != "py" or not found:
        return None
    whole = min(found, key=len)
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", whole, node, content)


def setup(app):
    app.connect("missing-reference", by_last_name)
    app.connect("source-read", links_within)
    app.connect("autodoc-skip-member", left_out)


# Look
html_theme = "pydata_sphinx_theme"
html_title = "fieldtheory"
html_context = {"default_mode": "auto"}
# With MathJax and its fonts: no page asks the network for anything.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static"
html_static_path = ["_static", str(MATHJAX)]
mathjax_path = "mathjax/tex-chtml.js"
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages without pages below them have no navigation at the left.
html_sidebars = {page.stem: [] for page in HERE.glob("*.md") if page.stem != "tutorials"}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
