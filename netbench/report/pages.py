"""Pages out of templates/. The style and the script are within each page; its content security
policy allows them, by the script's hash, and no request to any address.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from netbench.base.control_characters import escape_controls

TEMPLATES = Path(__file__).parent / "templates"


def render_page(name: str, **values: Any) -> str:
    """A template of templates/ with these values; what is text is escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Text between tags, where quotes need no escape: a record has hundreds.
    environment.filters["raw"] = lambda text: Markup(escape(text, quote=False))
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = environment.get_template(name)
    return escape_controls(template.render(script=Markup(script), policy=policy, **values))
