"""Blocking work beside the event loop."""

from __future__ import annotations

import threading

from executors.background import has_ended


def test_a_thread_has_ended_once_it_ran_and_not_before_it_is_started() -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    assert not has_ended(thread)
    thread.start()
    assert not has_ended(thread)
    go_on.set()
    thread.join()
    assert has_ended(thread)
