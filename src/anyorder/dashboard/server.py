"""The server of the page: read-only, and for this machine only, unless a token is given.

Only GET requests are answered. A request for an unknown host gets 400, so that no web site reads
the page through the reader's browser. The page's content security policy allows only the server's
own files, and no inline script.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anyorder._internal.checks import require
from anyorder.dashboard import pages
from anyorder.dashboard.studies import Studies
from anyorder.dashboard.views import Updates, View

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"
)
LOCAL = ("127.0.0.1", "localhost", "::1")
_HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
}  # fmt: skip
# the least number of seconds between updates, and how often Ctrl-C is checked in that time
_EVERY, _STEPS = 1.0, 5
_QUIET = 15  # after so many updates without news, a sign of life is sent
_COOKIE = "anyorder"
_TYPES = {".js": "text/javascript", ".css": "text/css"}

Scope = dict[str, Any]
App = Callable[..., Any]


def make_app(studies: Studies, host: str = LOCAL[0], token: str | None = None) -> Starlette:
    """Return the application.

    Parameters
    ----------
    host
        The address that the server is bound to; it determines under which names a browser may call
        it.
    token
        The secret that a reader must know; the address `/?token=...` stores it in a cookie.
    """
    for package in ("starlette", "uvicorn"):
        require(package, "dashboard", f"the dashboard requires {package}")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import RedirectResponse, Response, StreamingResponse
    from starlette.routing import Route

    texts = {name: pages.read_part(name) for name in (*pages.STYLES, *pages.SCRIPTS)}

    async def show(request: Request) -> Response:
        if token is not None and "token" in request.query_params:
            known = RedirectResponse("/", 303)
            known.set_cookie(_COOKIE, token, httponly=True, samesite="lax")
            return known
        return Response(pages.live_page(studies.title), media_type="text/html")

    async def send_file(request: Request) -> Response:
        name = request.url.path[1:]
        return Response(texts[name], media_type=_TYPES[name[name.rindex(".") :]])

    async def send_events(request: Request) -> Response:
        try:
            view = _read_view(request)
        except ValueError as error:
            return Response(str(error), 400, media_type="text/plain")
        events = _events(Updates(studies, view), lambda: bool(request.app.state.is_ending()))
        return StreamingResponse(events, media_type="text/event-stream")

    routes = [Route("/", show), Route("/events", send_events)]
    routes += [Route(f"/{name}", send_file) for name in texts]
    names = [*LOCAL, "[::1]", host] if token is None or host not in ("0.0.0.0", "::") else ["*"]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(_Guard, token=token),
            Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False),
        ],
    )
    app.state.is_ending = lambda: False  # `serve` sets it
    return app


class _Guard:
    """Reject all but GET requests, and readers without the token; add headers to responses."""

    def __init__(self, app: App, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: App, send: App) -> None:
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        app: App = self._app
        if scope["method"] != "GET":
            app = PlainTextResponse("only GET is allowed", 405, {"Allow": "GET"})
        elif self._token is not None and not self._knows_token(Request(scope)):
            app = PlainTextResponse("the address must end with ?token= and the token", 401)

        async def add(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                more = [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await app(scope, receive, add)

    def _knows_token(self, request: Request) -> bool:
        said = request.query_params.get("token") or request.cookies.get(_COOKIE) or ""
        return hmac.compare_digest(said.encode(), (self._token or "").encode())


def _read_view(request: Request) -> View:
    found = request.query_params
    numbers: dict[str, int] = {}
    for name in ("variable", "objective"):
        if (value := found.get(name)) is not None:
            if not (value.isascii() and value.isdecimal() and len(value) < 10):
                raise ValueError(f"{name} is {value[:40]!r}, expected a number")
            numbers[name] = int(value)
    studies = tuple(found.getlist("study"))
    return View(studies, numbers.get("variable"), numbers.get("objective", 0),
                "influence" in found)  # fmt: skip


async def _events(updates: Updates, is_ending: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield news as server-sent events, at most one a second, until the server ends."""
    quiet = 0
    while not is_ending():
        text = await asyncio.to_thread(updates.next)
        if text is not None:
            quiet = 0
            yield b"data: " + text.encode("utf-8", "backslashreplace") + b"\n\n"
        elif (quiet := quiet + 1) >= _QUIET:
            quiet = 0
            yield b": there\n\n"
        for _ in range(_STEPS):
            if not is_ending():
                await asyncio.sleep(_EVERY / _STEPS)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise OSError if the port is taken. Port 0 is any free port."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        # on Windows the option would let two servers listen to one port
        if sys.platform != "win32":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(64)
    except BaseException:
        found.close()
        raise
    return found


def address_of(host: str, port: int, token: str | None = None) -> str:
    """Return the address of the page, as a URL."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + ("" if token is None else f"?token={quote(token, safe='')}")


def serve(app: Starlette, found: socket.socket, open_at: str | None = None) -> None:
    """Serve the application until Ctrl-C.

    Parameters
    ----------
    found
        The socket that `listen` returned.
    open_at
        An address to open in the browser.
    """
    import uvicorn

    if open_at is not None:
        Thread(target=webbrowser.open, args=(open_at,), daemon=True).start()
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=3,
                       server_header=False)
    )  # fmt: skip
    app.state.is_ending = lambda: server.should_exit
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[found])
