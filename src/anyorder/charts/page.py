"""The shell of pages: one HTML file with Plotly, style and scripts in it, or their parts.

`write_page` is for files that are mailed and kept, of a campaign as of a study; what `anyorder
dashboard` serves has the same parts as files of their own (`part`). A page's own script gets the
data that is passed to it by `anyorder.data()`, and draws by `anyorder.draw(element, figure)`.
Nothing but these scripts runs, and nothing is loaded from anywhere: the page's policy says so.
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

# Of the package plotly.js-cartesian-dist-min, as it is on npm.
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
        Text, not HTML.
    body
        HTML, in which everything is escaped already.
    data
        For JSON; scripts get it by `anyorder.data()`.
    style
        CSS of this page, after what pages share.
    scripts
        JavaScript of this page, in order, after what pages share.
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


# By this Plotly knows that its style is in ours, and puts none of its own into the page.
_STYLE = ' id="plotly.js-style-global" class="no-inline-styles"'


def head(title: str, inside: str) -> str:
    """Return a page up to its body; `inside` is HTML for its head."""
    return (
        '<!doctype html>\n<html lang="en" '
        f'data-config="{html.escape(as_json(CONFIG))}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'{inside}<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n"
    )


def link_parts(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the elements of a head that load files of style and scripts, in order."""
    return "".join(
        [f'<link rel="stylesheet" href="{name}"{_STYLE * (k == 0)}>\n'
         for k, name in enumerate(styles)]
        + [f'<script src="{name}" defer></script>\n' for name in scripts]
    )  # fmt: skip


def as_json(data: Any) -> str:
    """Return data as JSON that cannot end the element it is in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    found = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest())
    return f"'sha256-{found.decode('ascii')}'"
