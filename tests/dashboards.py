"""What tests of the dashboard share: studies of all kinds, requests without a network, a server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyorder as ao
from anyorder.dashboard.studies import Studies
from anyorder.dashboard.views import Updates, View

HOSTILE = (
    "</script><img src=x onerror=alert(1)>", "javascript:alert(1)", "x" * 10_000, "a\x1b[31m\x00b",
    "$\\alpha$", "<b>&amp;</b>", "Größe", "深さ", "عمق",
)  # fmt: skip


def record(path: Path, space: ao.Space, f: Any, budget: int = 30, **options: Any) -> Path:
    """Run a random search and keep it in a study."""
    options = {"algorithm": "random", "seed": 0, "on_failure": "worst", **options}
    ao.maximize(f, space, budget=budget, study=path, progress=False, **options)
    return path


MIXED = ao.Space(
    {
        "algo": ao.Categorical(["a", "b", "<i>c</i>"]),
        "depth": ao.Integer(1, 8),
        "tree": ao.Integer(1, 3, when={"algo": "b"}),
        "sub": ao.Subset(["x", "y", "z"]),
        "order": ao.Permutation(["p", "q", "r"]),
    }
)


def mixed(point: dict[str, Any]) -> float:
    """Fail for some points."""
    if point["depth"] == 7:
        raise RuntimeError("<img src=x onerror=alert(1)> at 7 & more")
    return float(point["depth"] + len(point["sub"]) + point.get("tree", 0))


def odd_studies(folder: Path) -> dict[str, Path]:
    """Write studies that a page may meet; by what is odd about them."""

    def fail(point: Any) -> float:
        raise ValueError(HOSTILE[0])

    def extreme(point: Any) -> float:
        return [math.nan, math.inf, -math.inf, 1e308, -1e308, 1.0, 2.0, 3.0][int(point["k"]) % 8]

    hostile = ao.Space({name: ao.Categorical(list(HOSTILE)) for name in HOSTILE})
    one = ao.Space({"k": ao.Integer(0, 63)})
    rng = random.Random(0)
    return {
        "mixed": record(folder / "mixed.db", MIXED, mixed, 60),
        "failures": record(folder / "failures.db", one, fail),
        "one variable": record(folder / "one.db", one, lambda p: 0.0 + p["k"]),
        "constant": record(folder / "constant.db", one, lambda p: 1.0),
        "extreme": record(folder / "extreme.db", one, extreme, 60),
        "hostile": record(folder / "hostile.db", hostile, lambda p: rng.random()),
        "vectors": record(folder / "vectors.db", ao.Space.binary(9), lambda x: float(x.sum())),
        "single value": record(
            folder / "single.db", ao.Space({"k": ao.Integer(3, 3), "c": ao.Binary()}),
            lambda p: float(p["c"]), 2,
        ),
    }  # fmt: skip


def all_parts(updates: Updates) -> dict[str, Any]:
    """Return the parts that a reader has once nothing is new."""
    found: dict[str, Any] = {}
    for _ in range(50):
        text = updates.next()
        if text is None:
            return found
        found |= json.loads(text)["parts"]
    raise AssertionError("there is always something new")


def parts_of(path: Path, **view: Any) -> dict[str, Any]:
    """Return what a page shows of a study."""
    return all_parts(Updates(Studies([path]), View(**view)))


class Answer(NamedTuple):
    """Of a server."""

    status: int
    headers: dict[str, str]
    text: str


def ask(
    app: Any, path: str = "/", method: str = "GET", host: str = "127.0.0.1:8421", **headers: str
) -> Answer:
    """Send a request to an application, without a server."""
    place, _, query = path.partition("?")
    names = {"host": host, **headers}
    scope = {
        "type": "http", "method": method, "path": place, "raw_path": place.encode(),
        "query_string": query.encode(), "http_version": "1.1", "scheme": "http", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in names.items()],
        "server": ("127.0.0.1", 8421), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], found, body.decode())


@contextlib.contextmanager
def serving(path: Path, *options: str) -> Iterator[str]:
    """Serve a study by the command; the address of the page."""
    command = [sys.executable, "-m", "anyorder", "dashboard", str(path), "--port", "0", *options]
    with subprocess.Popen(
        [*command, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        timer = threading.Timer(120, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http://" in line, line + process.stdout.read()
            yield "http://" + line.split("http://")[1].split()[0]
        finally:
            timer.cancel()
            process.kill()
