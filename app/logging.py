"""How the applications log: one line per event on stderr, JSON unless a terminal reads along.

Only applications call this; the library logs through structlog and never configures it. The
loggers of RQ and SQLAlchemy go through the same formatter, and are set up before RQ adds handlers
of its own and stops propagating. What a line may hold is decided in `redaction`.
May import structlog.
"""

from __future__ import annotations

import copy
import logging
import sys
import threading
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor, WrappedLogger

from .redaction import clean_value, describe_exception, redact_fields

LogFormat = Literal["auto", "json", "console"]
Entry = MutableMapping[str, Any]

# Set up here first; RQ leaves loggers alone that already reach a handler. At info they write three
# lines for each token, in which nobody finds the one that says that something is parked.
_RQ_LOGGERS = ("rq", "rq.worker", "rq.job", "rq.scheduler", "rq.cron")
# At info these tell statements with parameters, and URLs of requests.
_QUIET_LOGGERS = (
    "sqlalchemy",
    "sqlalchemy.engine",
    "alembic",
    "httpx2",
    "httpcore2",
    "urllib3",
    "asyncio",
)


def configure_logging(
    level: str = "info", log_format: LogFormat = "auto", stream: TextIO | None = None
) -> None:
    """Send structlog and standard logging to `stream` (stderr) as one kind of line.

    Replaces the handlers of the root logger and of RQ. May be called again.
    """
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_formatter(_is_json(log_format, stream), stream))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Else a record that cannot be formatted is printed raw, with its arguments.
    logging.raiseExceptions = False
    _route_foreign_loggers()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_common_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def log_uncaught_exceptions() -> None:
    """Log what nobody caught instead of printing it, since its message may quote anything."""
    sys.excepthook = _on_crash
    threading.excepthook = _on_thread_crash


class SafeFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats records of any logger; cleans the arguments of those that are not structlog's."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record without its payload; other handlers still see it as it was."""
        record = copy.copy(record)
        record.exc_text = None
        record.stack_info = None
        if not isinstance(record.msg, dict):
            record.msg, record.args = _foreign_message(record), None
        return super().format(record)


def _formatter(as_json: bool, stream: TextIO) -> SafeFormatter:
    renderers: list[Processor] = (
        [structlog.processors.JSONRenderer(sort_keys=True)]
        if as_json
        else [_exception_as_text, structlog.dev.ConsoleRenderer(colors=stream.isatty())]
    )
    meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return SafeFormatter(
        foreign_pre_chain=_common_processors(), processors=[meta, *renderers], use_get_message=True
    )


def _common_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _tell_exception,
        _redact,
    ]


def _tell_exception(logger: WrappedLogger, method: str, entry: Entry) -> Entry:
    """Replace `exc_info` by what may be told of the exception."""
    given = entry.pop("exc_info", None)
    entry.pop("stack_info", None)
    if isinstance(given, BaseException):
        error: BaseException | None = given
    elif isinstance(given, tuple):
        error = given[1]
    else:
        error = sys.exc_info()[1] if given else None
    if error is not None:
        entry["exception"] = describe_exception(error)
    return entry


def _exception_as_text(logger: WrappedLogger, method: str, entry: Entry) -> Entry:
    """Write the exception as indented lines, for a person."""
    told = entry.get("exception")
    written: list[str] = []
    while isinstance(told, dict):
        details = [f"{k}: {v}" for k, v in told.items() if k not in ("type", "frames", "cause")]
        written += [f"  {told['type']} {'; '.join(details)}".rstrip()]
        written += [f"    at {frame}" for frame in told["frames"]]
        told = told.get("cause")
    if written:
        entry["exception"] = "\n".join(written)
    return entry


def _redact(logger: WrappedLogger, method: str, entry: Entry) -> Entry:
    return redact_fields(entry)


def _foreign_message(record: logging.LogRecord) -> str:
    """Format a foreign message with clean arguments; its template alone where that fails."""
    template = str(record.msg)
    if record.name.startswith("asyncio"):
        # Its messages go on with the repr of tasks and of their exceptions.
        template = template.split("\n", 1)[0]
    arguments = _clean_arguments(record.args)
    try:
        return template % arguments if arguments else template
    except (TypeError, ValueError, KeyError):
        return template


def _clean_arguments(arguments: Any) -> Any:
    """Clean what a foreign logger formats into its message; numbers stay numbers for %d."""
    if isinstance(arguments, Mapping):
        return {name: _flat(clean_value(value, str(name))) for name, value in arguments.items()}
    if isinstance(arguments, tuple):
        return tuple(_argument(argument) for argument in arguments)
    return arguments


def _argument(argument: Any) -> Any:
    # Positional containers have no names that tell payload from counts, so they go as a whole.
    if isinstance(argument, Mapping | list | tuple | set | frozenset):
        return f"<{type(argument).__name__}>"
    return _flat(clean_value(argument))


def _flat(cleaned: Any) -> Any:
    return cleaned["type"] if isinstance(cleaned, dict) and "type" in cleaned else cleaned


def _tells_trouble(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _route_foreign_loggers() -> None:
    wordy = logging.getLogger().level <= logging.DEBUG
    for name in _RQ_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        # No level of ours would last: RQ's worker sets its own.
        logger.filters[:] = [] if wordy else [_tells_trouble]
    for name in _QUIET_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(max(logging.WARNING, logging.getLogger().level))


def _is_json(log_format: LogFormat, stream: TextIO) -> bool:
    return log_format == "json" or (log_format == "auto" and not stream.isatty())


def _on_crash(
    error_type: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(error_type, KeyboardInterrupt):
        structlog.get_logger("ackbox").warning("process_interrupted")
        return
    structlog.get_logger("ackbox").critical("process_crashed", exc_info=error)


def _on_thread_crash(crash: threading.ExceptHookArgs) -> None:
    name = crash.thread.name if crash.thread else "unknown"
    structlog.get_logger("ackbox").critical(
        "thread_crashed", thread=name, exc_info=crash.exc_value or True
    )
