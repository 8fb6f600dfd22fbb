"""Every engine gives the same rows, and a worker that is killed loses and doubles none."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Callable, List

import pytest
from conftest import SCENARIO, SET

import tidegate

#: Parts into which the sweep is divided.
PARTS = 8
#: Longer than any of this takes.
LIMIT_S = 300.0


def until(what: Callable[[], bool]) -> None:
    """Waits for something that comes in any case; a bound for when it does not."""
    end = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster():  # type: ignore[no-untyped-def]
    distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local, distributed.Client(local) as client:
        yield client


def test_dask(cluster, whole: tidegate.SweepResult) -> None:  # type: ignore[no-untyped-def]
    assert tidegate.sweep(SCENARIO, set=SET, engine=cluster, parts=PARTS) == whole
    assert tidegate.sweep(SCENARIO, set=SET, engine=cluster) == whole


def test_an_error_of_a_worker_is_raised(cluster) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(tidegate.Error, match="no figure is called `x`"):
        tidegate.sweep(SCENARIO, set=SET, figures="x", engine=cluster)
    with pytest.raises(tidegate.Error, match="soon"):
        tidegate.sweep(SCENARIO, set={"home.rtt": ["soon"]}, engine=cluster)


def test_rows_of_another_sweep_are_refused(cluster, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """As when the workers have another script under the same path."""
    import tidegate._engines as engines

    script, path = tmp_path / "gw.sh", tmp_path / "x.toml"
    path.write_text(SCENARIO.replace("[[traffic]]", "[policies.script]\ngateway = 'gw.sh'\n[[traffic]]", 1))
    script.write_text("#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n")
    planned = engines._native.plan

    class Changed:
        """The native half, in this process, with a script that changes behind the plan."""

        merge = staticmethod(engines._native.merge)

        @staticmethod
        def plan(job):  # type: ignore[no-untyped-def]
            result = planned(job)
            script.write_text("#!/bin/sh\ntc qdisc add dev eth0 root sfq\n")
            return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "_native", Changed)
        with pytest.raises(tidegate.Error, match="the workers ran another sweep"):
            tidegate.sweep(path, engine=cluster, figures="ping.p95", duration="1s", repeats=1)


def in_thread(call: Callable[[], tidegate.SweepResult], meanwhile: Callable[[], None]) -> tidegate.SweepResult:
    results: List[object] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    meanwhile()
    thread.join()
    (result,) = results
    assert isinstance(result, tidegate.SweepResult), result
    return result


def test_dask_with_a_worker_killed(cluster, whole: tidegate.SweepResult) -> None:  # type: ignore[no-untyped-def]
    workers = cluster.run(os.getpid)
    killed: List[int] = []

    def meanwhile() -> None:
        # One that has a part now.
        busy: List[str] = []

        def is_one_busy() -> bool:
            running = cluster.processing()
            busy[:] = [name for name, tasks in running.items() if any("tidegate-" in str(task) for task in tasks)]
            return bool(busy)

        until(is_one_busy)
        killed.append(workers[busy[0]])
        kill(killed[0])

    result = in_thread(lambda: tidegate.sweep(SCENARIO, set=SET, engine=cluster, parts=PARTS), meanwhile)
    assert result == whole
    assert killed[0] not in cluster.run(os.getpid).values()


def ray_workers() -> List[int]:
    """Ray's processes that run a part now."""
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or []
        if words and words[0].startswith("ray::_part"):
            found.append(process.info["pid"])
    return found


@pytest.fixture(scope="module")
def ray():  # type: ignore[no-untyped-def]
    module = pytest.importorskip("ray", reason="ray is not installed")
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield module
    module.shutdown()


def test_ray_with_a_worker_killed(ray, whole: tidegate.SweepResult) -> None:  # type: ignore[no-untyped-def]
    assert tidegate.sweep(SCENARIO, set=SET, engine="ray", parts=PARTS) == whole
    with pytest.raises(tidegate.Error, match="no figure is called `x`"):
        tidegate.sweep(SCENARIO, set=SET, figures="x", engine=ray)
    killed: List[int] = []

    def meanwhile() -> None:
        until(lambda: bool(killed.extend(ray_workers()[:1]) or killed))
        kill(killed[0])

    result = in_thread(lambda: tidegate.sweep(SCENARIO, set=SET, engine=ray, parts=PARTS), meanwhile)
    assert result == whole and killed
