"""Log lines: their shape, who may write them, and what never appears in them."""

import io
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import structlog
from rq.logutils import setup_loghandlers
from sqlalchemy import create_engine, text
from sqlalchemy.exc import StatementError

from ackbox.app.logging import configure_logging, log_uncaught_exceptions
from ackbox.app.redaction import REDACTED, clean_text
from ackbox.app.urls import database_url
from ackbox.outbox.errors import ConfigError

SECRET = "s3cr3t-Value-91"
URL = f"postgresql+psycopg://someone:{SECRET}@db.example/plans"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Log JSON into a stream, and put global logging back afterwards."""
    root = logging.getLogger()
    former = root.handlers[:], root.level, logging.raiseExceptions
    written = io.StringIO()
    configure_logging("debug", "json", written)
    structlog.contextvars.clear_contextvars()
    yield written
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()
    root.handlers[:], logging.raiseExceptions = former[0], former[2]
    root.setLevel(former[1])
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("rq", "sqlalchemy", "third")):
            logging.getLogger(name).setLevel(logging.NOTSET)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_line_is_one_json_object_with_context(stream: io.StringIO) -> None:
    """An event is one line: time in UTC, level, logger, event, and what the context bound."""
    structlog.contextvars.bind_contextvars(
        intent_id="r1:open", generation=0, fence=3, worker="host-1"
    )
    structlog.get_logger("ackbox.workers").info(
        "intent_claimed", lane="default", waited_seconds=0.5
    )
    (line,) = lines(stream)
    moment = datetime.fromisoformat(line.pop("timestamp"))
    assert moment.utcoffset() == UTC.utcoffset(None)
    assert line == {
        "event": "intent_claimed",
        "level": "info",
        "logger": "ackbox.workers",
        "intent_id": "r1:open",
        "generation": 0,
        "fence": 3,
        "worker": "host-1",
        "lane": "default",
        "waited_seconds": 0.5,
    }


def test_level_is_respected(stream: io.StringIO) -> None:
    """What is below the level is not written, for structlog and standard loggers alike."""
    configure_logging("warning", "json", stream)
    structlog.get_logger("ackbox").info("quiet")
    logging.getLogger("third.party").info("quiet")
    structlog.get_logger("ackbox").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_terminal_gets_no_json_and_a_pipe_does(stream: io.StringIO) -> None:
    """The automatic format is JSON unless a terminal reads along."""
    terminal, pipe = Terminal(), io.StringIO()
    for target in (terminal, pipe):
        configure_logging("info", "auto", target)
        structlog.get_logger("ackbox").info("intent_claimed", password=SECRET)
    with pytest.raises(json.JSONDecodeError):
        json.loads(terminal.getvalue())
    assert "intent_claimed" in terminal.getvalue()
    assert json.loads(pipe.getvalue())["event"] == "intent_claimed"
    assert SECRET not in terminal.getvalue() + pipe.getvalue()


def test_rq_loggers_keep_our_handler(stream: io.StringIO) -> None:
    """RQ's own set-up, called later, adds no handler; what it says of each job is left out."""
    configure_logging("info", "json", stream)
    for name in ("rq.worker", "rq.job"):
        setup_loghandlers("INFO", name=name)
        logger = logging.getLogger(name)
        assert not logger.handlers
        assert logger.propagate
        logger.info("%s: Job OK (%s)", "ackbox.default", "j1")
        logger.warning("Worker %s: started with PID %d", "w1", 7)
    assert [(line["logger"], line["event"]) for line in lines(stream)] == [
        ("rq.worker", "Worker w1: started with PID 7"),
        ("rq.job", "Worker w1: started with PID 7"),
    ]


def test_rq_loggers_say_everything_at_debug(stream: io.StringIO) -> None:
    """Whoever asks for debug gets RQ's lines of each job."""
    configure_logging("debug", "json", stream)
    setup_loghandlers("DEBUG", name="rq.worker")
    logging.getLogger("rq.worker").debug("job %s", "j1")
    assert [line["event"] for line in lines(stream)] == ["job j1"]


class Opaque:
    def __repr__(self) -> str:
        return SECRET


class RemoteError(Exception):
    pass


def _raise_chain() -> None:
    local_variable = SECRET
    try:
        raise ValueError(local_variable)
    except ValueError as error:
        raise RemoteError({"args": SECRET}) from error


def _log_exception(write: Callable[[], object]) -> None:
    try:
        _raise_chain()
    except RemoteError:
        write()


def _statement_error() -> None:
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT :x"), {"y": SECRET})
    except StatementError:
        structlog.get_logger("ackbox").exception("statement_failed")
    finally:
        engine.dispose()


def _echo_of_sqlalchemy() -> None:
    logging.getLogger("sqlalchemy.engine").setLevel(logging.INFO)
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.execute(text("SELECT :x"), {"x": SECRET})
    engine.dispose()


def _ours(**fields: Any) -> Callable[[], object]:
    return lambda: structlog.get_logger("ackbox").info("event", **fields)


def _foreign(message: str, *arguments: Any, **options: Any) -> Callable[[], object]:
    return lambda: logging.getLogger("third.party").error(message, *arguments, **options)


PLACES: dict[str, Callable[[], object]] = {
    "args": _ours(args={"title": SECRET}),
    "args of any type": _ours(args=SECRET),
    "result": _ours(result=[SECRET]),
    "password": _ours(password=SECRET),
    "database_password": _ours(database_password=SECRET),
    "token": _ours(api_token=SECRET),
    "tokens that are no count": _ours(tokens=[SECRET]),
    "authorization": _ours(Authorization=f"Bearer {SECRET}"),
    "header deep inside": _ours(tool={"options": [{"x-api-key": SECRET}]}),
    "cookie": _ours(set_cookie=SECRET),
    "number as a secret": _ours(client_secret=SECRET),
    "url as a field": _ours(database_url=URL),
    "url in a text": _ours(reason=f"cannot reach {URL}"),
    "url in a key": _ours(seen={URL: 1}),
    "secret url object": _ours(where=database_url(URL)),
    "bearer in a text": _ours(reason=f"sent Authorization: Bearer {SECRET}"),
    "assignment in a text": _ours(reason=f"password={SECRET} host=x"),
    "json in a text": _ours(reason=json.dumps({"api_key": SECRET})),
    "opaque object": _ours(thing=Opaque()),
    "opaque object deep inside": _ours(things=[{"x": (Opaque(),)}]),
    "exception as a field": _ours(error=ValueError(SECRET)),
    "bytes": _ours(raw=SECRET.encode()),
    "exception": lambda: _log_exception(lambda: structlog.get_logger("ackbox").exception("failed")),
    "exception given": _ours(exc_info=RemoteError(SECRET)),
    "stack": _ours(stack_info=True),
    "exception of a statement": _statement_error,
    "our own exception with a url": _ours(error=ConfigError(f"bad {URL}", next_step=URL)),
    "foreign exception": lambda: _log_exception(
        lambda: logging.getLogger("third.party").exception("failed")
    ),
    "foreign argument": _foreign("failed: %s", ValueError(SECRET)),
    "foreign repr": _foreign("failed: %r", Opaque()),
    "foreign mapping": _foreign("failed: %(password)s", {"password": SECRET}),
    "foreign mapping as a whole": _foreign("failed: %s %s", {"x": SECRET}, [SECRET]),
    "foreign url": _foreign("cannot reach %s", URL),
    "foreign url in the message": _foreign(f"cannot reach {URL}"),
    "foreign traceback in a text": _foreign(
        "job %s failed\n%s", "j1", f"Traceback (most recent call last):\n  File x\nE: {SECRET}"
    ),
    "foreign record that cannot be formatted": _foreign("%d", SECRET),
    "statement parameters": _echo_of_sqlalchemy,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_secret_never_appears(
    place: str, log_format: Any, stream: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wherever a secret is put, neither the log nor the terminal shows it."""
    configure_logging("debug", log_format, stream)
    PLACES[place]()
    captured = capfd.readouterr()
    assert SECRET not in stream.getvalue()
    assert SECRET not in captured.out + captured.err
    assert stream.getvalue()


def test_exception_is_told_by_class_frames_and_cause(stream: io.StringIO) -> None:
    """Without its message an exception still says what and where it was."""
    _log_exception(lambda: structlog.get_logger("ackbox").exception("failed"))
    told = lines(stream)[0]["exception"]
    assert told["type"].endswith("RemoteError")
    assert told["frames"][-1].endswith("_raise_chain")
    assert told["cause"]["type"] == "builtins.ValueError"


def test_own_exception_keeps_its_three_parts(stream: io.StringIO) -> None:
    """Our messages hold no payload by rule, so they are kept."""
    error = ConfigError("the file is missing", next_step="ackbox config")
    structlog.get_logger("ackbox").error("failed", exc_info=error)
    told = lines(stream)[0]["exception"]
    assert (told["code"], told["what"]) == ("config_error", "the file is missing")
    assert told["next_step"] == "ackbox config"


def test_harmless_values_are_kept(stream: io.StringIO) -> None:
    """Counts, ids, times and nested plain values are what logs are for."""
    structlog.get_logger("ackbox").info(
        "passed",
        tokens=3,
        id=UUID(int=1),
        at=datetime(2026, 1, 2, tzinfo=UTC),
        lanes=("a", "b"),
        open={"held": 1},
        nothing=None,
    )
    line = lines(stream)[0]
    assert (line["tokens"], line["lanes"], line["open"]) == (3, ["a", "b"], {"held": 1})
    assert line["id"] == "00000000-0000-0000-0000-000000000001"
    assert line["at"].startswith("2026-01-02")
    assert line["nothing"] is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (f"redis://:{SECRET}@h:1/0 down", "redis://***@h:1/0 down"),
        (f"redis://:a@b{SECRET}@h:1/0 down", "redis://***@h:1/0 down"),
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        (f"token: {SECRET}, lane a", f"token: {REDACTED}, lane a"),
        ("intent r1:step claimed", "intent r1:step claimed"),
    ],
)
def test_texts_lose_credentials_only(given: str, kept: str) -> None:
    """A text keeps all that is no credential."""
    assert clean_text(given) == kept


def test_other_handlers_see_the_record_as_it_was(stream: io.StringIO) -> None:
    """Cleaning works on a copy, so a test's own handler still gets the arguments."""
    seen: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    logging.getLogger().addHandler(Keeper())
    error = ValueError("x")
    logging.getLogger("third.party").error("failed: %s", error)
    assert seen[0].args == (error,)


def test_uncaught_exceptions_are_logged_without_message(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A crash of the process or of a thread is one line, and quotes nothing."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    log_uncaught_exceptions()
    thread = threading.Thread(target=_raise_chain, name="beat")
    thread.start()
    thread.join()
    try:
        _raise_chain()
    except RemoteError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    assert [line["event"] for line in lines(stream)] == ["thread_crashed", "process_crashed"]
    captured = capfd.readouterr()
    assert SECRET not in stream.getvalue() + captured.out + captured.err


def test_stderr_is_the_default(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs never mix into what a command prints on stdout."""
    error_stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", error_stream)
    configure_logging()
    structlog.get_logger("ackbox").info("seen", pid=os.getpid())
    assert json.loads(error_stream.getvalue())["pid"] == os.getpid()
