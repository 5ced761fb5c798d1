"""Golden NDJSON: what a command prints, with everything masked that changes."""

import json
import os
import re
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "ndjson"
_ID = re.compile(r"\d{13}-\d+")
_TIMES = ("timestamp", "ts_ms")


def check(name: str, out: bytes) -> None:
    """Compare with the golden of that name; MQCTL_GOLDEN=write makes it anew."""
    found = "".join(f"{json.dumps(_masked(r))}\n" for r in map(json.loads, lines(out)))
    path = GOLDEN / f"{name}.ndjson"
    if os.environ.get("MQCTL_GOLDEN") == "write":
        path.write_text(found)
    assert found == path.read_text()


def lines(out: bytes) -> list[bytes]:
    return out.splitlines()


def _masked(value: Any, field: str = "") -> Any:
    match value:
        case dict():
            return {k: _masked(v, k) for k, v in value.items()}
        case list():
            return [_masked(item, field) for item in value]
        case int() if field.endswith("_ms") and not isinstance(value, bool):
            return "TIME" if field.endswith("_at_ms") or field == "ts_ms" else "MS"
        case int() if field == "memory_bytes":
            return "BYTES"
        case str() if field.endswith("_at") or field in _TIMES:
            return "TIME"
        case str():
            return _ID.sub("ID", value)
    return value
