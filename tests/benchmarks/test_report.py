"""A benchmark on disk."""

import json
from pathlib import Path

from benchmarks.growth import Curve
from benchmarks.peak_memory import IngestPeak
from benchmarks.report import Report, write_report
from benchmarks.timing import RoundTimes, Target, compared_times

MET = compared_times("met", "s", 1, RoundTimes((1.0,), (1.0,)), Target("at most", 1.2), {"recall": 0.5})
MISSED = compared_times("missed", "s", 1, RoundTimes((2.0,), (1.0,)), Target("at most", 1.2))
SHOWN = compared_times("shown", "s", 1, RoundTimes((2.0,), (1.0,)), None)
CURVES = [Curve("store", "ingest", (10, 100), (1.0, 10.0)), Curve("index", "exact add", (10, 100), (0.1, 0.2))]


def test_the_figures_hold_everything(tmp_path: Path) -> None:
    report = Report([MET, MISSED, SHOWN], CURVES, [IngestPeak(1000, 2, 50.5, 1.5)])
    write_report(tmp_path, report, {"seed": 0}, 12.5)
    figures = json.loads((tmp_path / "benchmark.json").read_text())
    assert [entry["is_met"] for entry in figures["comparisons"]] == [True, False, None]
    assert figures["comparisons"][0] == {
        "name": "met", "unit": "s", "ours": 1.0, "bare": 1.0, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0,
        "target": {"bound": "at most", "limit": 1.2}, "rounds": {"ours": [1.0], "bare": [1.0]},
        "facts": {"recall": 0.5}, "is_met": True,
    }  # fmt: skip
    assert figures["growth"][0]["exponent"] == 1.0 or abs(figures["growth"][0]["exponent"] - 1) < 1e-9
    assert figures["memory"] == [{"transcript_bytes": 1000, "messages": 2, "peak_mb": 50.5, "seconds": 1.5}]
    assert figures["missed"] == ["missed"]
    assert (figures["seconds"], figures["config"]) == (12.5, {"seed": 0})
    assert figures["environment"]["packages"]["numpy"]
    assert (tmp_path / "benchmark.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "without curves").mkdir()
    write_report(tmp_path / "without curves", Report([MET], [], []), {}, 1.0)
    assert [path.name for path in (tmp_path / "without curves").iterdir()] == ["benchmark.json"]
