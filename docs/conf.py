"""Settings of the documentation site, which ``make docs`` builds; warnings are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import spectralgp

project = "spectralgp"
author = "the spectralgp developers"
copyright = f"2026, {author}"
release = spectralgp.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,  # seconds: times of the building machine say nothing
    "write_computation_times": False,
    "remove_config_comments": True,
}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what arguments may be
numpydoc_show_class_members = False
templates_path = ["_templates"]
# what scikit-learn gives every estimator is documented there
autosummary_context = {
    "foreign": [
        "get_metadata_routing",
        "get_params",
        "set_params",
        "set_fit_request",
        "set_predict_request",
        "set_score_request",
    ]
}
intersphinx_mapping: dict[str, tuple[str, None]] = {}  # nothing is fetched while building

html_theme = "pydata_sphinx_theme"
html_title = "spectralgp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 4,
}
# a sidebar only where there is something below a page
html_sidebars: dict[str, list[str]] = {
    page.stem: [] for page in Path(__file__).parent.glob("*.md") if page.stem != "api"
}
exclude_patterns = ["_build", "_templates", "gallery"]  # the last is read by sphinx-gallery
nitpicky = True  # a reference that leads nowhere is a warning
html_math_renderer = "mathml"


def write_formula(writer: Any, node: Any) -> None:
    """A formula as MathML, which browsers draw themselves: no script, and nothing to fetch."""
    formula = convert(node.astext(), display="inline" if isinstance(node, nodes.math) else "block")
    writer.body.append(formula if isinstance(node, nodes.math) else f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
