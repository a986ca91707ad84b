"""Pages out of templates/. The style and the script are within each page; its content security
policy allows them, by the script's hash, and no request to any address.
"""

from __future__ import annotations

import base64
import hashlib
import math
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from netbench.base.control_characters import escape_controls
from netbench.report.numbers import number

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
    environment.filters |= {"number": number, "raw": _raw, "values": _values}
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    page = environment.get_template(name).render(
        script=Markup(script), policy=_policy(script), **values
    )
    return escape_controls(page)


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _raw(text: str) -> Markup:
    """Text between tags, where quotes need no escape: a record has hundreds."""
    return Markup(escape(text, quote=False))


def _values(values: Any) -> str:
    """Numbers between commas; nothing for what there is none of."""
    return ",".join("" if math.isnan(value) else f"{value:.5g}" for value in values)
