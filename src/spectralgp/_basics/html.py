"""Tables of names and values for notebooks. Texts are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def as_html(title: str, properties: Mapping[str, object]) -> str:
    """Table with a title; all texts are escaped."""
    left = 'style="text-align: left"'
    rows = "".join(
        f'<tr><th scope="row" {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>'
        for name, value in properties.items()
    )
    return f"<table><caption {left}><b>{escape(title)}</b></caption><tbody>{rows}</tbody></table>"
