"""Figures, blocks and the shell by themselves."""

import base64
import gzip
import hashlib
import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.report.figure import Interval, intervals, lines, scatter, shares
from eval.report.page import Blocks, Facts, Figure, Notes, ReportPage, Section, Source, parted, rendered
from eval.report.system_flow import differing, system_flow
from eval.table import Cell, Table, titled

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7 * 7 }} \u202eabc\u2028 \"'`javascript:alert(1)"
)


def unpacked(packed: str) -> object:
    return json.loads(gzip.decompress(base64.b64decode(packed)))


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_a_block_gives_back_what_was_packed(texts: list[str]) -> None:
    blocks = Blocks()
    blocks.add("b", texts)
    assert unpacked(blocks.packed["b"]) == texts
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", blocks.packed["b"])


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_parts_are_the_list_again_and_none_is_empty(sizes: list[int], most: int) -> None:
    parts = list(parted(sizes, sizes, most))
    assert [one for part in parts for one in part] == sizes
    assert all(parts)
    assert all(sum(part) <= most or sum(part[:-1]) == 0 for part in parts)


def test_the_parts_of_a_long_list_begin_where_the_index_says() -> None:
    blocks = Blocks()
    assert blocks.add_series("m", [["a", "b"], ["c"], ["d", "e"]]) == [0, 2, 3]
    assert unpacked(blocks.packed["m2"]) == ["d", "e"]


TAGS = {"svg", "g", "line", "text", "circle", "rect", "title", "polyline"}


@pytest.mark.parametrize(
    "figure",
    [
        intervals([Interval(HOSTILE, 0.5, 0.4, 0.6), Interval("b", 0.5)], HOSTILE),
        intervals([Interval("a", -0.1, -0.2, 0.1, is_own=True)], "t", zero=0.0),
        intervals([], "nothing"),
        lines({HOSTILE: [(1, 0.1), (10, 0.5)], "b": [(1, 0.2)]}, HOSTILE, HOSTILE, "y"),
        lines({"over a logarithm": [(10, 0.1), (10_000, 0.5)]}, "t", "x", "y"),
        shares({HOSTILE: {"a": 3, HOSTILE: 1}, "none": {}}, "t"),
        scatter(
            [(1, 9.0, Interval(HOSTILE, 0.5, 0.4, 0.6, True)), (2, 9.0, Interval("b", 0.5))], "t", "c", "v"
        ),
    ],
)  # fmt: skip
def test_a_figure_is_whole_and_drawn_for_broad_and_narrow_screens_whatever_its_words_say(figure: Figure) -> None:
    assert "nan" not in figure.svg
    drawn = list(ElementTree.fromstring(f"<both>{figure.svg}</both>"))
    for root, name, width in zip(drawn, ("broad", "narrow"), (720, 360), strict=True):
        assert (root.attrib["role"], root.attrib["class"]) == ("img", name)
        assert root.attrib["aria-label"]
        assert root.attrib["viewBox"].startswith(f"0 0 {width} ")
        elements = list(root.iter())
        assert {element.tag for element in elements} <= TAGS
        names = {name for element in elements for name in element.attrib}
        assert not [name for name in names if name.startswith("on") or name == "style"]
        places = [float(one.attrib[at]) for one in elements for at in ("x", "cx", "x1", "x2") if at in one.attrib]
        assert all(0 <= x <= width for x in places)
    circles = [len(list(root.iter("circle"))) for root in drawn]
    assert circles[0] == circles[1]


def test_points_stand_where_their_numbers_are() -> None:
    figure = intervals([Interval("a", 0.0), Interval("b", 0.5), Interval("c", 1.0)], "t")
    for root in ElementTree.fromstring(f"<both>{figure.svg}</both>"):
        low, middle, high = (float(one.attrib["cx"]) for one in root.iter("circle"))
        assert middle == pytest.approx((low + high) / 2, abs=0.1)


def test_the_policy_names_the_very_style_and_script_of_the_page() -> None:
    table = Table(titled(HOSTILE, ("n",)), [(Cell(HOSTILE, tone="better", note=HOSTILE), HOSTILE)], HOSTILE)
    parts = [table, Facts([(HOSTILE, HOSTILE)]), Notes([HOSTILE]), Source(HOSTILE, HOSTILE)]
    page = rendered(ReportPage("run", HOSTILE, [HOSTILE], [Section("a", HOSTILE, parts, HOSTILE)], HOSTILE))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for tag in ("style", "script"):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy or f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "default-src" in policy
    assert "{{ 7 * 7 }}" in page
    assert "\u202e" not in page
    assert "\u2028" not in page
    assert "[U+202E]abc" in page
    assert "<img" not in page


def test_what_is_off_is_not_drawn() -> None:
    limit, off = (
        {"_target_": f"lcm.retrieval.{name}"} for name in ("ranking.stages.limit.Limit", "decay.none.NoDecay")
    )
    stages = {"limit": {**limit, "n": 20}, "further": None, "decay": {"_target_": "a.DecayBoost", "decay": off}}
    source = {"_target_": "lcm.retrieval.source.indexes.Hybrid", "dense_pool_size": 20}
    config = {
        "extraction": {"_target_": "lcm.writing.extraction.said.Steps", "roles": ["user"], "annotation": None},
        "admission": {"_target_": "lcm.writing.admission.amac.AdmitAll"},
        "compaction": {"_target_": "lcm.compaction.work.NoCompaction"},
        "summarizer": {"_target_": "lcm.compaction.summarizer.extractive.Extractive"},
        "ranking": {"source": source, "stages": stages, "order": None},
    }
    lanes = system_flow(config).lanes
    assert {name: [step.name for step in steps] for name, steps in lanes.items()} == {
        "messages become documents": ["steps"],
        "a question is ranked": ["hybrid", "limit"],
    }
    assert lanes["a question is ranked"][1].settings == [("n", "20")]


def external(*command: str) -> dict[str, object]:
    transport = {"_target_": "eval.external.process.Stdio", "command": list(command)}
    return {
        "embedder": {"_target_": "lcm.retrieval.embedder.hashing.Hashing", "dim": 384},
        "external": transport,
        "ranking": {"_target_": "a.External", "transport": transport, "k": 20, "revision": ""},
    }


def test_an_external_memory_is_drawn_as_it_is_reached_and_no_part_of_ours_is() -> None:
    lanes = system_flow(external("python3", "mine.py")).lanes
    (steps,) = lanes.values()
    assert [(step.role, step.name, step.settings) for step in steps] == [
        ("external", "stdio", [("command", "python3, mine.py")]),
        ("ranking", "external", [("transport", "stdio"), ("k", "20")]),
    ]
    told = differing(external("python3", "mine.py"), external("python3", "other.py"), ())
    assert told == [("external.command", "python3, mine.py", "python3, other.py")]


def test_a_component_in_the_place_of_another_is_one_difference() -> None:
    before = {"fusion": {"_target_": "a.WeightedSum", "dense_weight": 0.7}, "n": 20, "tracking": "here"}
    after = {"fusion": {"_target_": "a.ReciprocalRank", "k": 60}, "n": 40, "tracking": "there", "new": True}
    assert differing(before, after, ("tracking",)) == [
        ("n", "20", "40"),
        ("new", "—", "yes"),
        ("fusion", "weighted sum", "reciprocal rank"),
    ]
    own, other = ({"_target_": "a.WeightedSum", "dense_weight": weight} for weight in (0.7, 0.5))
    repeated = [{"fusion": fusion, "ranking": {"stages": {"fusion": fusion}}} for fusion in (own, other)]
    assert differing(*repeated, ()) == [("fusion.dense_weight", "0.7", "0.5")], "what a ranking repeats is told once"
