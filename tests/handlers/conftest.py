import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqctl.core.clock import Clock, ManualClock, SystemClock
from mqctl.core.message import Delivery, Message
from mqctl.handlers.exec import ExecHandler, ExecOptions


@pytest.fixture
def delivery() -> Callable[..., Delivery]:
    def make(
        payload: bytes = b"",
        *,
        key: bytes | None = b"k",
        headers: dict[str, str] | None = None,
        partition: int = 3,
    ) -> Delivery:
        message = Message(
            topic="orders",
            partition=partition,
            id="17-4",
            payload=payload,
            key=key,
            headers=headers or {},
            timestamp="2026-01-02T03:04:05.678Z",
            ts_ms=1_767_323_045_678,
        )
        return Delivery(
            message, "billing", "consumer-1", deliveries=1, attempt=2, limit=5
        )

    return make


@pytest.fixture
def handler() -> Callable[..., ExecHandler]:
    def make(
        *command: str,
        encode: Callable[[Delivery], bytes] | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> ExecHandler:
        return ExecHandler(
            command,
            clock=clock or SystemClock(),
            options=ExecOptions(**options),
            encode=encode,
        )

    return make


@pytest.fixture
def shell(handler: Callable[..., ExecHandler]) -> Callable[..., ExecHandler]:
    """A handler that runs a line of shell; the line sees arguments from $1 on."""

    def make(line: str, *args: str, **options: Any) -> ExecHandler:
        return handler("sh", "-c", line, "sh", *args, **options)

    return make


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A named pipe: opening waits for the other side, EOF shows that it is gone."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def in_thread() -> Callable[..., Callable[[], Any]]:
    """Calls a function in a thread; the answer is a function that waits for it."""

    def start(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(function(*args)))
        thread.start()

        def wait() -> Any:
            thread.join()
            return results[0]

        return wait

    return start


@pytest.fixture(params=["pidfd", "ticks"])
def either_way_of_waiting(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run the test with and without the system's notice of a process's end."""
    if request.param == "ticks":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    return str(request.param)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Time for handlers that moves by hand.

    They look at it in ticks, as on systems that do not tell of a process's end.
    """
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    return ManualClock()


@pytest.fixture
def open_files() -> Callable[[], list[str]]:
    return lambda: sorted(p.name for p in Path("/proc/self/fd").iterdir())


@pytest.fixture
def children() -> Callable[[], set[str]]:
    def pids() -> set[str]:
        tasks = Path("/proc/self/task").iterdir()
        return {p for t in tasks for p in (t / "children").read_text().split()}

    return pids
