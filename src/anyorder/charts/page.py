"""The frame of pages: one HTML file with Plotly, style and scripts in it, or the parts of a page.

`write_page` is for files that are mailed and kept, of a campaign or of a study; `anyorder
dashboard` serves the same parts as separate files (`part`). A page's own script gets its data from
`anyorder.data()`, and draws by `anyorder.draw(element, figure)`. Only these scripts run, and
nothing is loaded from elsewhere: the content security policy of the page says so.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from anyorder.charts.base import CONFIG

# The file of the npm package plotly.js-cartesian-dist-min.
PLOTLY_VERSION = "4.1.1"
PLOTLY_SHA256 = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"


def part(name: str) -> str:
    """Return a file that pages share: "plotly.js", "page.js" or "page.css"."""
    place = "plotly/plotly-cartesian.min.js" if name == "plotly.js" else name
    return resources.files(__package__).joinpath(place).read_text("utf-8")


def write_page(
    title: str, body: str, data: Any = None, *, style: str = "", scripts: Sequence[str] = ()
) -> str:
    """Return a page as one file that needs neither a network nor a server.

    Parameters
    ----------
    title
        The title, as text, not HTML.
    body
        The body, as HTML in which everything is escaped already.
    data
        The data for the scripts, which get it as JSON from `anyorder.data()`.
    style
        CSS of this page, placed after the CSS that all pages share.
    scripts
        JavaScript of this page, in order, placed after the scripts that all pages share.
    """
    styles = [f"\n{text}\n" for text in (part("page.css"), style) if text]
    codes = [f"\n{text}\n" for text in (part("plotly.js"), part("page.js"), *scripts)]
    allowed = {"style-src": styles, "script-src": codes}
    policy = "; ".join(
        ["default-src 'none'", "img-src data:"]
        + [f"{kind} {' '.join(map(_digest, texts))}" for kind, texts in allowed.items()]
    )
    return head(
        title,
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        + "".join(f"<style{_STYLE * (k == 0)}>{text}</style>\n" for k, text in enumerate(styles)),
    ) + "".join([
        body,
        f'\n<script type="application/json" id="data">{as_json(data)}</script>\n',
        *(f"<script>{text}</script>\n" for text in codes),
        "</body>\n</html>\n",
    ])  # fmt: skip


# This id tells Plotly that the page has its style, so that it does not add its own.
_STYLE = ' id="plotly.js-style-global" class="no-inline-styles"'


def head(title: str, inside: str) -> str:
    """Return the page up to its body; `inside` is HTML for the head."""
    return (
        '<!doctype html>\n<html lang="en" '
        f'data-config="{html.escape(as_json(CONFIG))}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'{inside}<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n"
    )


def link_parts(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the HTML elements of a head that load style sheets and scripts, in order."""
    return "".join(
        [f'<link rel="stylesheet" href="{name}"{_STYLE * (k == 0)}>\n'
         for k, name in enumerate(styles)]
        + [f'<script src="{name}" defer></script>\n' for name in scripts]
    )  # fmt: skip


def as_json(data: Any) -> str:
    """Return data as JSON that cannot close the HTML element around it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    found = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest())
    return f"'sha256-{found.decode('ascii')}'"
