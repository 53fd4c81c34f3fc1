"""A command that runs on, as a real process in a group of its own, with its output in a file."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from .waiting import DEADLINE_SECONDS, wait_until


class Running:
    """`ackbox ARGUMENTS` in a folder. `close` ends it whatever became of it."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.output_path = folder / "output"
        bare = {k: v for k, v in os.environ.items() if not k.startswith("ACKBOX_")}
        with self.output_path.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ackbox", *arguments], cwd=folder, start_new_session=True,
                env={**bare, **environ}, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def output(self) -> str:
        """Return what it printed so far."""
        return self.output_path.read_text(encoding="utf-8")

    def wait_for(self, text: str) -> None:
        """Wait until it has printed a text; fail the test where it ended before."""

        def printed() -> bool:
            assert text in self.output() or self.process.poll() is None, self.output()
            return text in self.output()

        wait_until(printed, DEADLINE_SECONDS, f"{text!r} was printed")

    def interrupt(self) -> None:
        """Press Ctrl-C: the whole group of the terminal gets the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def terminate(self) -> None:
        """Send SIGTERM to the process alone, as a service manager does."""
        self.process.terminate()

    def exit_code(self) -> int:
        """Wait for the end."""
        return self.process.wait(DEADLINE_SECONDS)

    def close(self) -> None:
        """End the process and what it started, politely first: it may own servers."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(DEADLINE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
