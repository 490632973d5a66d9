"""How `make docs` builds the pages and the API reference. Nothing is fetched from the network."""

from typing import Any

from sphinx.application import Sphinx

import fastglt
from fastglt.data.base import quiet_import

with quiet_import():  # importing PyG warns, and the first thing that autodoc imports may be a part of it
    for name in fastglt.__all__:
        getattr(fastglt, name)

# Pages outside docs/ that the pages link to, and the page that includes each of them here.
OUTSIDE = {"../benchmarks/README.md": "benchmarks.md"}

project = "fastglt"
author = "The fastglt developers"
copyright = author
release = version = fastglt.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "results/*.md"]  # the latter are included by paper.md
suppress_warnings = ["misc.highlighting_failure"]  # JSON with an … in it

myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}

html_theme = "furo"
html_title = f"fastglt {release}"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", link_inside)
    app.connect("html-page-context", make_accessible, priority=900)  # after the theme's own


# What scrolls must be reachable by keyboard, and a heading must say of which level it is.
ACCESSIBLE = {
    'role="heading">': 'role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def make_accessible(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Mend what keyboards and screen readers miss in what Sphinx and the theme write."""
    for name in ("furo_navigation_tree", "body"):
        for theirs, ours in ACCESSIBLE.items() if name in context else ():
            context[name] = context[name].replace(theirs, ours)


def link_inside(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to pages outside lead to where these are included."""
    for outside, inside in OUTSIDE.items():
        source[0] = source[0].replace(f"]({outside}", f"]({inside}")
