"""Ctrl-C once and twice, in this process; `test_cli` and others press it in real ones."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from anyorder.run.evaluation.evaluators import Inline
from anyorder.run.evaluation.interrupts import Interrupts
from anyorder.run.evaluation.jobs import Jobs


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    """Python's own, also where the tests run in the background of a shell."""
    had = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, had)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def press_twice() -> None:
    press()
    press()


def own_handler(number: int, frame: Any) -> None:
    pass


def test_the_first_is_counted_and_the_second_raises(caplog: pytest.LogCaptureFixture) -> None:
    interrupts = Interrupts("finishing it")
    with interrupts:
        assert interrupts.count == 0
        press()
        assert interrupts.count == 1
        assert caplog.messages == ["finishing it; press Ctrl-C again to stop at once"]
        with pytest.raises(KeyboardInterrupt):
            press()
    assert interrupts.count == 2
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(("waiting", "messages"), [([], 0), ([1], 1)])
def test_says_nothing_if_nothing_is_waited_for(
    waiting: list[int], messages: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Interrupts("finishing it", waiting) as interrupts:
        press()
    assert interrupts.count == 1
    assert len(caplog.messages) == messages


def test_a_message_in_the_middle_of_another_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def warning(*arguments: Any) -> None:
        raise RuntimeError("reentrant call inside <_io.BufferedWriter name='<stderr>'>")

    monkeypatch.setattr("anyorder.run.evaluation.interrupts.logger.warning", warning)
    with Interrupts("finishing it") as interrupts:
        press()
    assert interrupts.count == 1


@pytest.mark.parametrize("always", [False, True])
def test_the_former_handler_comes_back(always: bool) -> None:
    with Interrupts("finishing it", always=always):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt), Interrupts("finishing it", always=always):
        press_twice()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [own_handler, signal.SIG_IGN])
@pytest.mark.parametrize("always", [False, True])
def test_another_handler_keeps_its_place_unless_told(handler: Any, always: bool) -> None:
    signal.signal(signal.SIGINT, handler)
    with Interrupts("finishing it", always=always) as interrupts:
        press()
    assert interrupts.count == always
    assert signal.getsignal(signal.SIGINT) == handler


@pytest.mark.parametrize("always", [False, True])
def test_nothing_is_installed_outside_the_main_thread(always: bool) -> None:
    seen = []

    def elsewhere() -> None:
        with Interrupts("finishing it", always=always):
            seen.append(signal.getsignal(signal.SIGINT))
        seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler] * 2


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals to threads")
def test_one_that_another_thread_receives_is_noticed_while_waiting() -> None:
    """It does not end the wait, no more than one that comes just before the wait begins."""
    jobs = Jobs(lambda done: Inline(len, done))
    late = threading.Event()

    def elsewhere() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        late.wait(60)
        jobs._done.put((-1, None))  # type: ignore[arg-type]  # it was not noticed: no hanging test

    with Interrupts("finishing it") as interrupts:
        thread = threading.Thread(target=elsewhere)
        threading.Timer(0.1, thread.start).start()
        while not interrupts.count:
            jobs.wait()
    late.set()
    thread.join()
