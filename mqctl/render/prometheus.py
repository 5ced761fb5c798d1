"""Figures as Prometheus text: the Java library's meters by name, ours beside them."""

from mqctl.core.meter import Snapshot, Tags

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def prometheus(snapshot: Snapshot) -> bytes:
    """Return the exposition text, sorted by name and tags."""
    lines: list[str] = []
    families: dict[str, tuple[str, list[str]]] = {}
    for (name, tags), value in snapshot.counts.items():
        _add(families, name, "counter", f"{name}{_labels(tags)} {_number(value)}")
    for (name, tags), value in snapshot.gauges.items():
        _add(families, name, "gauge", f"{name}{_labels(tags)} {_number(value)}")
    for (name, tags), timing in snapshot.timings.items():
        base, labels = f"{name}_seconds", _labels(tags)
        for suffix, value in (("count", timing.count), ("sum", timing.total)):
            _add(families, base, "summary", f"{base}_{suffix}{labels} {_number(value)}")
        longest = f"{base}_max{labels} {_number(timing.longest)}"
        _add(families, f"{base}_max", "gauge", longest)
    for name in sorted(families):
        kind, rows = families[name]
        lines += [f"# TYPE {name} {kind}", *sorted(rows)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _add(
    families: dict[str, tuple[str, list[str]]], name: str, kind: str, row: str
) -> None:
    families.setdefault(name, (kind, []))[1].append(row)


def _labels(tags: Tags) -> str:
    if not tags:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in tags) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
