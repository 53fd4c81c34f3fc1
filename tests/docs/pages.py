"""Reads the blocks of a Markdown page and runs them in order, as a reader would.

An HTML comment right above a block says what is special about it:
`file: NAME` writes it beside the page's other files; `background` starts each line and waits until
it says that it is ready; `exit: N` is the last line's exit code; `repeat until: N` runs the block
again until it ends so; `prints` is text that the commands above have printed; `not run: REASON`
leaves it out. Blocks of other languages than those in RUN are text.

The ports that pages name are exchanged for free ones of this machine, and a line
`export NAME=value` holds for everything that is typed after it.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..support.command_line import CommandLine, Ended
from ..support.waiting import DEADLINE_SECONDS, wait_until

RUN = ("python", "sh", "toml")
READY = ("ready", "Uvicorn running", '"port"')
PORTS = ("8000", "8080")
"""Ports as pages write them."""
OWN = "ackbox "
EXPORT = "export "
_PAUSE_SECONDS = 0.5
_SHOWN_LINES = 40
_FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block. `what` and `value` are the comment's two halves."""

    page: str
    line: int
    language: str
    text: str
    what: str = ""
    value: str = ""

    @property
    def place(self) -> str:
        """Where it stands, for a message."""
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether it is for the machine to run, now or not."""
        return self.language in RUN


def blocks(page: Path, root: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    return list(_blocks(str(page.relative_to(root)), text))


def _blocks(name: str, text: str) -> Iterator[Block]:
    for match in _FENCE.finditer(text):
        what, _, value = (match["note"] or "").partition(":")
        line = text.count("\n", 0, match.start("text"))
        yield Block(name, line, match["language"], match["text"], what.strip(), value.strip())


@dataclass
class Reader:
    """Somebody who follows a page in a folder of their own."""

    folder: Path
    environ: dict[str, str]
    let_time_pass: Callable[[], None] = lambda: None
    """Called once when a block has to be repeated: a reader would go for a coffee."""
    set_variable: Callable[[str, str], None] = os.environ.__setitem__
    """Sets a variable of this process, in which our own commands run."""
    printed: str = ""
    _ports: dict[str, str] = field(default_factory=lambda: {port: free_port() for port in PORTS})
    _names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})
    _said: list[str] = field(default_factory=list)
    _started: list[subprocess.Popen[str]] = field(default_factory=list)
    _readers: list[threading.Thread] = field(default_factory=list)

    def follow(self, block: Block) -> None:
        """Do what one block says. Raises AssertionError where it does not work."""
        for port, free in self._ports.items():
            block = replace(block, text=block.text.replace(f":{port}", f":{free}"))
            block = replace(block, text=block.text.replace(f"port {port}", f"port {free}"))
        if block.what == "prints":
            self._compare(block)
        elif block.what == "file":
            (self.folder / block.value).write_text(block.text, encoding="utf-8")
        elif block.what == "background":
            self._start_all(block)
        elif block.runs and block.what != "not run":
            getattr(self, f"_{block.language}")(block)

    def close(self) -> None:
        """End what runs in the background, in good order."""
        for process in self._started:
            process.send_signal(signal.SIGTERM)
        for process in self._started:
            process.wait(DEADLINE_SECONDS)
        for reader in self._readers:
            reader.join(DEADLINE_SECONDS)

    def _python(self, block: Block) -> None:
        exec(compile(block.text, block.place, "exec"), self._names)

    def _toml(self, block: Block) -> None:
        tomllib.loads(block.text)

    def _sh(self, block: Block) -> None:
        wanted = int(block.value) if block.value else 0
        until = time.monotonic() + DEADLINE_SECONDS
        ended = self._typed(block.text)
        if block.what == "repeat until" and ended.code != wanted:
            self.let_time_pass()
        while block.what == "repeat until" and ended.code != wanted:
            assert time.monotonic() < until, f"{block.place}: {ended.out}{ended.err}"
            threading.Event().wait(_PAUSE_SECONDS)
            ended = self._typed(block.text)
        self.printed += ended.out
        background = "".join(self._said[-_SHOWN_LINES:])
        said = f"{block.place} ended with {ended.code}: {ended.out}{ended.err}\n{background}"
        assert ended.code == wanted, said

    def _typed(self, text: str) -> Ended:
        """Run lines until one fails. Our own commands run in this process: imports are slow."""
        out = ""
        ended = Ended(0, "", "")
        for line in text.splitlines():
            own = line.startswith(OWN)
            if line.startswith(EXPORT):
                self._export(line)
                continue
            ended = CommandLine().run(*shlex.split(line)[1:]) if own else self._shell(line)
            out += ended.out
            if ended.code != 0:
                break
        return Ended(ended.code, out, ended.err)

    def _export(self, line: str) -> None:
        name, _, value = shlex.split(line)[1].partition("=")
        self.environ[name] = value
        self.set_variable(name, value)

    def _shell(self, line: str) -> Ended:
        ended = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.folder, env=self.environ, text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def _start_all(self, block: Block) -> None:
        """Start each line, then wait until all of them are ready."""
        started = [(line, *self._start(line)) for line in block.text.splitlines()]
        for line, process, said in started:
            wait_until(
                lambda said=said, process=process: (  # type: ignore[misc]
                    any(word in one for one in said for word in READY) or process.poll() is not None
                ),
                DEADLINE_SECONDS,
                f"{line} is ready",
            )
            assert process.poll() is None, f"{block.place}: {line} ended: {''.join(said)}"

    def _start(self, line: str) -> tuple[subprocess.Popen[str], list[str]]:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {line}"], cwd=self.folder, env=self.environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self._started.append(process)
        said: list[str] = []
        reader = threading.Thread(target=_drain, args=(process, said, self._said))
        reader.start()
        self._readers.append(reader)
        return process, said

    def _compare(self, block: Block) -> None:
        missing = [line for line in block.text.splitlines() if line not in self.printed]
        assert not missing, f"{block.place}: not printed: {missing}; printed: {self.printed}"


def _drain(process: subprocess.Popen[str], *said: list[str]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            for kept in said:
                kept.append(line)


def free_port() -> str:
    """Return a port that nothing listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def clean_environment() -> dict[str, str]:
    """Return this process's environment without settings, with this Python's commands first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ACKBOX_")}
    folder = str(Path(sys.executable).parent)
    return {**kept, "PATH": f"{folder}{os.pathsep}{kept.get('PATH', '')}"}
