"""`lcm report`, and the pages that other commands end with."""

import base64
import gzip
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.report.run_tables import UNCHANGED
from lcm.derived import seal
from tests.pipelines.conftest import Finished, Lcm
from tests.support.looked_at import copied


def block(page: Path, name: str) -> Any:
    (packed,) = re.findall(rf'id="block-{name}">([^<]*)<', page.read_text())
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_a_run_ends_with_its_page(evaluated: Finished) -> None:
    page = evaluated.folder / "report.html"
    index = block(page, "index")
    queries = pl.read_parquet(evaluated.folder / "queries.parquet")
    assert [question[0] for question in index["questions"]] == queries["query_id"].to_list()
    first = block(page, "q0")[0]
    run = pl.read_parquet(evaluated.folder / "run.parquet").filter(query_id=queries["query_id"][0], arm="system")
    assert [rank for _, rank, *_ in first["rankings"][0]][:5] == run["rank"].sort().head(5).to_list()
    assert len(first["evidence"]) == len(queries["evidence"][0])
    assert "lcm report" in index["notes"][0]


def words(page: Path) -> str:
    """What a reader reads, the explorer apart."""
    text = page.read_text().partition("<main")[2].partition('id="explorer"')[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture
def run(evaluated: Finished, tmp_path: Path) -> Path:
    """A copy of a run, which a test may damage."""
    return Path(shutil.copytree(evaluated.folder, tmp_path / "here" / "run"))


def test_a_page_says_of_control_arms_and_contexts_what_the_terminal_says(
    lcm: Lcm, evaluated: Finished, run: Path
) -> None:
    (against,) = [line for line in evaluated.stdout.splitlines() if line.startswith("by recall@10 the system is")]
    told = words(evaluated.folder / "report.html")
    assert f"B{against[1:]}." in told
    assert "No summary was made here" in told
    assert "summarised: in part, by a passage" in told
    summary = json.loads((run / "summary.json").read_text())
    unsealed = {key: value for key, value in summary.items() if not key.endswith("sha256")}
    (run / "summary.json").write_text(json.dumps(unsealed | {"changed": {}}))
    assert lcm("report", "run", "ladders=false").code == 0
    assert f"N{UNCHANGED[1:]}." in words(run / "report.html")


def test_every_judged_message_is_in_one_place_of_the_page(lcm: Lcm, evaluated: Finished) -> None:
    done = lcm("report", str(evaluated.folder), "into=page.html")
    assert (done.code, done.stdout.rstrip().endswith("Page: page.html")) == (0, True)
    page = done.place / "page.html"
    judged = pl.read_parquet(evaluated.folder / "queries.parquet")["evidence"].list.len().sum()
    text = page.read_text()
    (told,) = re.findall(r"all judged messages</th><td[^>]*>([\d,]+)<", text)
    assert int(told.replace(",", "")) == judged
    ladders = [ladder for n in (0, 1, 2) for one in block(page, f"q{n}") for ladder in one["ladders"][0]]
    assert len(ladders) == judged
    found = sum(ladder["lost"] is None for ladder in ladders)
    assert re.findall(r">found</th><td[^>]*>([\d,]+)<", text) == [f"{found:,}"]
    assert all(ladder["steps"][0][0] == "source" for ladder in ladders if ladder["lost"] is None)
    contexts = [one["contexts"][0] for one in block(page, "q0") if one["evidence"]]
    assert all(len(states) == len(one["evidence"]) for one in block(page, "q0") for _, _, states in one["contexts"][0])
    assert contexts


def test_a_run_without_its_configuration_is_shown_as_far_as_it_is_known(lcm: Lcm, run: Path) -> None:
    for name in ("config.yaml", "run.parquet", "documents.parquet"):
        (run / name).unlink()
    assert lcm("report", "run").code == 0
    index = block(run / "report.html", "index")
    assert any("the dataset is not at hand" in note for note in index["notes"])
    assert any("no run.parquet" in note for note in index["notes"])
    assert len(index["questions"]) == 102


def test_ladders_of_another_ranking_than_the_kept_one_are_not_told(lcm: Lcm, run: Path) -> None:
    kept = pl.read_parquet(run / "run.parquet")
    turned = kept.with_columns(document_id=pl.col("document_id").reverse().over("query_id"))
    turned.write_parquet(run / "run.parquet")
    seal(run)
    assert lcm("report", "run").code == 0
    index = block(run / "report.html", "index")
    assert any("how every stage treated the evidence is not told" in note for note in index["notes"])
    assert not any(told for one in block(run / "report.html", "q0") for told in one["ladders"])


def test_a_sweep_has_one_page(lcm: Lcm, swept: Finished, tmp_path: Path) -> None:
    (page,) = swept.place.rglob("report.html")
    place = page.parent.relative_to(swept.place)
    assert swept.stdout.rstrip().endswith(f"Page: {place}/report.html")
    told = words(page)
    (best,) = [line for line in swept.stdout.splitlines() if line.startswith("Keep the default: ")]
    assert f"{best}." in told
    (following,) = [line for line in swept.stdout.splitlines() if line.startswith("next: ")]
    assert f"N{following[1:]}" in told
    assert "the sample shows the tool; its numbers prove nothing (2 of 2 points)" in told
    assert "What they were asked dataset sample" in told
    assert re.search(r"the default 0\.\d{3} baseline", told)
    columns = block(page, "index")["columns"]
    assert sorted(columns) == ["default", "fusion.dense_weight=0.2", "fusion.dense_weight=0.4"]
    assert columns[1] == "default"
    folder = copied(swept, tmp_path) / place
    shutil.rmtree(folder / json.loads((folder / "summary.json").read_text())["best"]["folder"])
    assert lcm("report", str(place), "into=again.html").code == 0
