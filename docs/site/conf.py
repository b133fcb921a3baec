"""The site of the documentation, built by scripts/docs from the Markdown files of the tree."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]

tags: Any  # Sphinx's

import docstrings  # noqa: E402
import penstock  # noqa: E402

project = "Penstock"
copyright = "the Penstock authors, Apache-2.0"
version = release = penstock.__version__

DOXYGEN = ROOT / "build-docs/doxygen/xml"
has_doxygen = (DOXYGEN / "index.xml").is_file()

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "tests/*/README.md"]
exclude_patterns = ["build*", ".*"]
if has_doxygen:
    extensions.append("breathe")
    tags.add("doxygen")  # noqa: F821
    breathe_projects = {"penstock": str(DOXYGEN)}
    breathe_default_project = "penstock"
    breathe_show_include = False
else:
    exclude_patterns.append("docs/site/cpp/*")

# MyST. Anchors of headings are GitHub's; links to files of the tree that are no page become downloads.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "text"

# Python. Neither the compiled part nor the optional libraries are needed to read docstrings.
autodoc_mock_imports = ["penstock._native"] + [
    name for name in ("torch", "torch_geometric", "networkx") if importlib.util.find_spec(name) is None
]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
aliases = ("ArrayLike", "GraphLike", "Progress", "StepProgress", "VertexValues")
autodoc_type_aliases = {name: name for name in aliases}
python_maximum_signature_line_length = 88

# C++. What the annotation macros are to a compiler, they are not to a reader.
cpp_maximum_signature_line_length = 88
cpp_id_attributes = ["PENSTOCK_FN", "PENSTOCK_FORCE_INLINE", "PENSTOCK_COLD"]

html_theme = "furo"
html_title = f"Penstock {version}"
html_copy_source = html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_style, pygments_dark_style = "friendly", "github-dark"

# Broken references are warnings, except to what this site does not have: types of other projects and of
# Penstock's private modules in signatures, and C++ names of headers that are not listed.
nitpicky = True
PRIVATE = (
    r"penstock\.(arrays\.(exports|peers|size)|graph\.(_binding|results)"
    r"|gnn\.training\.(ranks|results|sources))\..*"
)
nitpick_ignore_regex = [("py:class", rf"(?!penstock\b).*|{PRIVATE}"), ("cpp:identifier", ".*")]
# Without doxygen the pages of the headers are not there.
suppress_warnings = [] if has_doxygen else ["toc.excluded"]


def write_start_page(app: Any, failure: Exception | None) -> None:
    """The site's address opens the start page, which is no file of the root's."""
    if failure is None and app.builder.name == "html":
        page = '<!doctype html><meta charset="utf-8"><title>Penstock</title>'
        refresh = '<meta http-equiv="refresh" content="0; url=docs/index.html">'
        link = '<a href="docs/index.html">Penstock</a>'
        (Path(app.outdir) / "index.html").write_text(f"{page}{refresh}{link}\n")


def setup(app: Any) -> None:
    docstrings.setup(app)
    app.connect("build-finished", write_start_page)
