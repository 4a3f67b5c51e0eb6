# SPDX-License-Identifier: BSD-3-Clause
"""How the documentation is built: ``sphinx-build -W -b html docs docs/_build`` beside an installed ofipy."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "ofipy"
author = "the ofipy developers"
copyright = "2026, the ofipy developers"
release = version = installed_version("ofipy")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "ofipy_reference",
]
exclude_patterns = ["_build", "_extensions", "_templates"]
templates_path = ["_templates"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the numpydoc sections say it in words, with shapes and units
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # the page of a class lists them itself

html_theme = "pydata_sphinx_theme"
html_title = f"ofipy {release}"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_prev_next": True}
html_static_path = ["_static"]
html_css_files = ["ofipy.css"]
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
