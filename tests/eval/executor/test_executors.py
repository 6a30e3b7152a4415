"""The laws of executors: every result, in order; one failure stops nobody; nobody is left behind."""

import errno
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.executor import Executor, FailedItem, Local, NoExecutor, Ray
from lcm.errors import LcmError
from lcm.faults import MachineFaultError
from lcm.redaction import redacted
from tests.support.ray_of_two import RAY_OF_TWO
from tests.support.secrets import SECRETS

EXECUTORS = [
    pytest.param(NoExecutor(), id="none"),
    pytest.param(Local(), id="local", marks=pytest.mark.slow),
    pytest.param(Ray(), id="ray", marks=[*RAY_OF_TWO, pytest.mark.full]),
]


def told(item: int) -> Iterator[tuple[int, int, str]]:
    """As many results as the item says; a negative one fails after a first result, 99 before any."""
    if item == 99:
        raise LcmError("this one\nis refused")
    if item < 0:
        yield (item, 0, str(Path.cwd()))
        raise OSError(f"{item} is wrong")
    for i in range(item):
        yield (item, i, str(Path.cwd()))


def logging_a_key(item: str) -> Iterator[str]:
    record = logging.getLogger().makeRecord("a library", logging.WARNING, "", 0, "the key is %s", (item,), None)
    yield record.getMessage()


def dying(item: int) -> Iterator[int]:
    yield item
    if item == 1:
        os._exit(7)
    yield item


def defective(item: int) -> Iterator[int]:
    yield item
    raise TypeError(f"no {item}")


def without_room(item: int) -> Iterator[int]:
    yield item
    raise OSError(errno.ENOSPC, "No space left on device", "a.db")


@pytest.fixture(autouse=True)
def started(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node.callspec.params.get("executor") if hasattr(request.node, "callspec") else None, Ray):
        request.getfixturevalue("ray_of_two")


@pytest.mark.parametrize("executor", EXECUTORS[1:])
def test_workers_log_no_key(executor: Executor) -> None:
    texts = [text for text, _ in SECRETS.values()]
    assert "\n".join(executor.map(logging_a_key, ["\n".join(texts)])) == redacted(
        "\n".join(["the key is " + texts[0], *texts[1:]])
    )


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_result_comes_in_the_order_of_its_item_and_a_failure_stops_no_other(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    items = [2, -1, 99, 3]
    found = list(executor.map(told, items))
    for item, count in ((2, 2), (-1, 1), (3, 3)):
        assert [one for one in found if one[0] == item and not isinstance(one, FailedItem)] == [
            (item, i, str(tmp_path)) for i in range(count)
        ]
    failed = sorted(one for one in found if isinstance(one, FailedItem))
    assert failed == [FailedItem(1, "-1 is wrong"), FailedItem(2, "this one is refused")]
    assert len(found) == 2 + 1 + 3 + len(failed)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_full_disk_ends_all_with_path_and_remedy(executor: Executor) -> None:
    with pytest.raises(MachineFaultError, match=r"^a\.db: No space left on device; make room and give the same"):
        list(executor.map(without_room, [1, 2, 3]))


@pytest.mark.parametrize(
    ("executor", "reason"),
    [
        pytest.param(Local(), "its process ended with exit code 7", id="local", marks=pytest.mark.slow),
        pytest.param(Ray(), "its worker died: The actor died", id="ray", marks=[*RAY_OF_TWO, pytest.mark.full]),
    ],
)
def test_a_worker_that_dies_is_one_failure(executor: Executor, reason: str) -> None:
    found = list(executor.map(dying, [0, 1]))
    assert [one for one in found if not isinstance(one, FailedItem)].count(0) == 2
    (failed,) = [one for one in found if isinstance(one, FailedItem)]
    assert failed.item == 1
    assert failed.reason.startswith(reason)


@pytest.mark.full
@pytest.mark.parametrize("executor", [pytest.param(Ray(workers=1), id="ray", marks=RAY_OF_TWO)])
def test_a_defect_is_named_and_whoever_stops_listening_leaves_no_worker(executor: Ray) -> None:
    import ray

    assert list(executor.map(defective, [5])) == [5, FailedItem(0, "TypeError: no 5 (a defect)")]
    listening = executor.map(told, [3, 3])
    assert next(listening)
    listening.close()
    assert next(iter(executor.map(told, [1])))[:2] == (1, 0)  # its processor is free again
    assert ray.is_initialized()


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_cluster_that_is_not_there_is_one_line(scheme: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(LcmError, match=rf"^executor.address={address}: there is no Ray cluster .*ray start --head"):
            list(Ray(address=address).map(told, [1]))


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(LcmError, match=r"pip install '\.\[ray\]' in the checkout"):
        list(Ray().map(told, [1]))


@pytest.mark.parametrize("settings", [{"workers": 0}, {"num_cpus": 0}])
def test_a_number_that_makes_no_sense_is_refused(settings: dict[str, int]) -> None:
    ((name, _),) = settings.items()
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
        Ray(**settings)


def test_workers_get_threads_as_processors_the_callers_settings_and_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", "/shared/cache")
    monkeypatch.setenv("LCM_DATASETS_DIR", "/here/alone")
    own = {"LCM_DATASETS_DIR": "/there", "KEY": "k"}
    found = Ray(num_cpus=3, runtime_env={"working_dir": "/code", "env_vars": own})._environment()
    assert found["working_dir"] == "/code"
    expected = {"OMP_NUM_THREADS": "3", "LCM_CACHE_DIR": "/shared/cache", **own}
    assert expected.items() <= found["env_vars"].items()
