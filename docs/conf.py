"""The settings of the site: `make docs` builds it into build/docs."""

import os
import warnings
from importlib.metadata import version as installed_version

# The pages draw pictures and start notebooks: neither needs a window or more than one thread.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", category=DeprecationWarning)

project = "fieldtheory"
author = copyright = "fieldtheory developers"
version = release = installed_version("fieldtheory-networks")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax with its fonts: no page asks the network for anything
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["gallery_src", "**.ipynb_checkpoints", "api/_templates"]
templates_path = ["_templates"]
suppress_warnings = ["toc.empty_glob"]

# Pages
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = os.path.join(os.path.dirname(__file__), "..", "build", "pages")
nb_execution_timeout = 120
nb_execution_excludepatterns = [
    "notebooks/*"
]  # shown as they are: tests/test_notebooks.py runs them
nb_execution_raise_on_error = True
nb_merge_streams = True
copybutton_exclude = ".linenos, .gp, .go"

# API
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

# Look
html_theme = "pydata_sphinx_theme"
html_title = "fieldtheory"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
