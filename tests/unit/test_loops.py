"""A role's loop: it ends soon after it is told to, however long its poll is."""

import threading

from ackbox.outbox.shell.loops import Loop

FAR_SECONDS = 3600.0
DEADLINE_SECONDS = 30.0


def test_a_loop_that_waits_for_its_poll_ends_when_told() -> None:
    """The poll of an idle role would be over in an hour."""
    stop, passed = threading.Event(), threading.Event()

    def run_once() -> bool:
        passed.set()
        return False

    thread = Loop("idle", run_once, poll_seconds=FAR_SECONDS, stop=stop).start()
    assert passed.wait(DEADLINE_SECONDS)
    stop.set()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()


def test_a_ring_ends_the_wait() -> None:
    """The next pass comes with the ring."""
    stop, passes = threading.Event(), threading.Semaphore(0)

    def run_once() -> bool:
        passes.release()
        return False

    loop = Loop("rung", run_once, poll_seconds=FAR_SECONDS, stop=stop)
    thread = loop.start()
    assert passes.acquire(timeout=DEADLINE_SECONDS)
    loop.ring()
    assert passes.acquire(timeout=DEADLINE_SECONDS)
    stop.set()
    thread.join(DEADLINE_SECONDS)
