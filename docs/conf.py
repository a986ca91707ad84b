"""Configuration of the documentation site; `make docs` builds it."""

from netbench import __version__

project = "netbench"
version = release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["conf.py"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"netbench {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
# Where no pygments lexer is named the block is text: a transcript, a formula, a file tree.
highlight_language = "text"
