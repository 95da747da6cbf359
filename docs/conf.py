"""Settings of the documentation's site: `make docs`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import anyorder

HERE = Path(__file__).parent
sys.modules["anyorder.stopping"] = anyorder.stopping  # documented by its public name

project = "anyorder"
author = copyright = "The anyorder developers"
version = release = anyorder.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "notebooks/*.ipynb"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # settings that are functions

# Names in single backquotes are linked where they are documented, and code elsewhere.
default_role = "py:obj"
autodoc_typehints = "none"  # numpydoc lists parameters with their meaning
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# The inventories are kept here, so that building requires no network.
intersphinx_mapping = {
    name: (url, str(HERE / "_inventories" / f"{name}.inv"))
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
    }.items()
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    # shown without its outcome where there is no compiler
    "filename_pattern": r"\.py$" if shutil.which("gcc") else r"/(?!compiler_flags)\w+\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1_000,
    "remove_config_comments": True,
}

# Where the search finds a word first: its page, before the API and pages that mention it.
PAGES_OF_WORDS = {
    "constraint": ("constraints", "# Constraints"),
    "categorical": ("spaces", "# Spaces"),
    "parallel": ("running", "## Parallel evaluation"),
    "resume": ("running", "## Studies"),
}


def name_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links that have the name of a file as their text show the title of its page."""
    source[0] = re.sub(r"\[[\w/]+\.md\]\(", "[](", source[0])


def add_index_entries(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the words into the index of their pages, below the heading that is named."""
    for word, (name, heading) in PAGES_OF_WORDS.items():
        if name == page:
            before, line, after = source[0].partition(f"{heading}\n")
            if not line:
                raise ValueError(f"{name}.md has no heading {heading!r}, for {word!r}")
            source[0] = f"{before}{line}\n```{{index}} ! {word}\n```\n{after}"


def setup(app: Sphinx) -> None:
    """Connect what is defined here."""
    app.connect("source-read", name_links)
    app.connect("source-read", add_index_entries)


html_theme = "pydata_sphinx_theme"
html_title = "anyorder"
html_static_path = ["_static"]
html_css_files = ["anyorder.css"]
html_show_sourcelink = False
LOGO = html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system has it
html_theme_options: dict[str, Any] = {
    "navbar_persistent": ["search-button"],
    "logo": {"image_light": LOGO, "image_dark": LOGO, "text": "anyorder"},
    "github_url": "https://github.com/anyorder/anyorder",
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
if os.environ.get("READTHEDOCS"):  # elsewhere there is one version
    html_theme_options["navbar_end"].insert(0, "version-switcher")
    html_theme_options["switcher"] = {
        "json_url": "https://anyorder.readthedocs.io/en/latest/_static/versions.json",
        "version_match": os.environ["READTHEDOCS_VERSION"],
    }
    html_theme_options["check_switcher"] = False  # building needs no network
