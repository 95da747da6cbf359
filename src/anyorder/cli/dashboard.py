"""`anyorder dashboard` and `anyorder report`: look at runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from anyorder.cli.common import check_folder, echo, errors

_LOCAL = ("127.0.0.1", "localhost", "::1")


class _WrongArgument(click.ClickException):
    exit_code = 2


@contextlib.contextmanager
def _wrong_arguments() -> Iterator[None]:
    """Report in one line, with exit status 2, that a file or a port cannot be used."""
    try:
        yield
    except (RuntimeError, OSError, ValueError) as error:
        raise _WrongArgument(str(error)) from error


@click.command()
@click.argument("study", type=click.Path(exists=True))
@click.option("--port", default=8421, show_default=True, type=click.IntRange(0, 65535),
              help="Of this machine; 0: any that is free.")  # fmt: skip
@click.option("--host", default=_LOCAL[0], show_default=True,
              help="Where to listen; beyond this machine it requires --token.")  # fmt: skip
@click.option("--token", help="What readers must know: the address then ends with it.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page.")
def dashboard(study: str, port: int, host: str, token: str | None, browser: bool) -> None:
    """Show a STUDY, or a folder of studies, as a page in the browser, live while runs continue.

    Studies are only read. Ctrl-C ends the page, but no run. To watch a run on another machine:
    `ssh -L 8421:localhost:8421 machine anyorder dashboard run.db --no-browser`.
    """
    if token is not None and not token:
        raise click.UsageError("--token is empty, expected a text that others cannot guess")
    if host not in _LOCAL and token is None:
        raise click.UsageError(
            f"--host {host} shows the study to everyone who reaches this machine: add --token"
        )
    with errors():
        from anyorder.dashboard.server import address_of, listen, make_app, serve
        from anyorder.dashboard.studies import Studies

        with _wrong_arguments():
            studies = Studies([Path(study)])
        app = make_app(studies, host, token)
        with _wrong_arguments():
            try:
                found = listen(host, port)
            except OSError as error:
                raise OSError(f"port {port} of {host}: {error.strerror or error}") from error
        address = address_of(host, found.getsockname()[1], token)
        echo(f"{studies.title}: {address} (Ctrl-C ends it)")
        serve(app, found, address if browser else None)


@click.command()
@click.argument("studies", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False),
              help="Write the page here (HTML).")  # fmt: skip
@click.option("--title", help="What the page is called.", show_default="the study's name")
def report(studies: tuple[str, ...], output: str, title: str | None) -> None:
    """Write STUDIES, at most four side by side, as one HTML file that needs no network.

    The file is the page of `anyorder dashboard`, for mail and archives.
    """
    with errors():
        check_folder("--output", output)
        from anyorder.dashboard.pages import write_report

        with _wrong_arguments():
            write_report([Path(study) for study in studies], output, title)
        echo(f"{output}: {Path(output).stat().st_size / 1e6:.1f} MB")
