"""What notebooks show: names and values in a table. Names are data, never markup."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def as_html(title: str, properties: Mapping[str, object]) -> str:
    """A small table with a title, whose every text is escaped.

    Examples
    --------
    >>> as_html("Graph", {"<b>": 3})
    '<table><caption style="text-align: left"><b>Graph</b></caption><tbody><tr><th scope="row" style="text-align:
    left">&lt;b&gt;</th><td style="text-align: left">3</td></tr></tbody></table>'
    """
    left = 'style="text-align: left"'
    rows = "".join(
        f'<tr><th scope="row" {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>'
        for name, value in properties.items()
    )
    return f"<table><caption {left}><b>{escape(title)}</b></caption><tbody>{rows}</tbody></table>"
