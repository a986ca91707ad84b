"""Reports: sections of data, and renderers that make text, HTML, markdown, CSV or JSON of them."""
