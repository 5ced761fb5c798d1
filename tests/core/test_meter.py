from collections.abc import Mapping

from mqctl.core.meter import Meter
from mqctl.render.prometheus import prometheus


def test_totals_timings_and_gauges_are_kept_by_name_and_tags() -> None:
    told: list[tuple[str, float, Mapping[str, str]]] = []
    meter = Meter(lambda name, value, tags: told.append((name, value, tags)))

    meter.count("a_total", 2, topic="t")
    meter.count("a_total", 3, topic="t")
    meter.count("a_total", 0, topic="u")
    meter.time("b_ms", 0.5)
    meter.time("b_ms", 0.25)
    meter.gauge("c", 4)
    meter.gauge("c", 4)

    assert prometheus(meter.snapshot()).decode().splitlines() == [
        "# TYPE a_total counter",
        'a_total{topic="t"} 5',
        "# TYPE b_ms_seconds summary",
        "b_ms_seconds_count 2",
        "b_ms_seconds_sum 0.75",
        "# TYPE b_ms_seconds_max gauge",
        "b_ms_seconds_max 0.5",
        "# TYPE c gauge",
        "c 4",
    ]
    assert [name for name, _, _ in told] == ["a_total", "a_total", "b_ms", "b_ms", "c"]


def test_labels_are_escaped() -> None:
    meter = Meter()
    meter.count("a_total", 1, topic='q"\\\n')

    assert b'a_total{topic="q\\"\\\\\\n"} 1' in prometheus(meter.snapshot())
