"""Where the parts of a sweep are run: this process, a Dask cluster, a Ray cluster.

Each part is one of the shards of `tidegate sweep --shard I/N`, and the parts' rows are merged as
`tidegate results` does: a run that is in two of them counts once, and a run that is in none is an error.
"""

from __future__ import annotations

import uuid
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _native
from ._errors import Error
from ._progress import Report

__all__ = ["Engine", "run_parts"]

#: ``"local"``, ``"ray"``, the module `ray`, or a `dask.distributed.Client`.
Engine = Any

#: How often a part is run again whose worker was lost.
RETRIES = 5
#: Parts for each worker's thread: more even out, and less is lost with a worker; each reads the scenario again.
PARTS_EACH = 4

Job = Dict[str, Any]


def _part(job: Job, shard: Tuple[int, int], journal: Optional[str] = None) -> Tuple[str, int]:
    """One part, on one thread: what a worker runs."""
    return _native.sweep(job, shard, 1, journal, None)


def run_parts(job: Job, engine: Engine, parts: Optional[int], report: Optional[Report]) -> str:
    """All rows of a sweep, from a cluster."""
    collect, threads = _cluster(engine)
    # What is wrong with it is said here, before anything is sent.
    planned, runs, _, _ = _native.plan(job)
    many = min(parts or max(1, threads * PARTS_EACH), runs)
    rows: List[str] = []
    done = 0
    for part, of_part in collect(job, many):
        rows.append(part)
        done += of_part
        if report is not None:
            report(done, runs)
    merged, missing, of_workers = _native.merge(rows)
    if of_workers != planned:
        raise Error(
            "the workers ran another sweep: they have another version of tidegate, or other files under the "
            "scenario's paths"
        )
    if missing:
        raise Error(f"{missing} of {runs} runs are missing: the engine returned not all parts", exit_code=3)
    return merged


Collect = Callable[[Job, int], Iterator[Tuple[str, int]]]


def _cluster(engine: Engine) -> Tuple[Collect, int]:
    if engine == "ray" or getattr(engine, "__name__", None) == "ray":
        return _ray()
    if hasattr(engine, "submit") and hasattr(engine, "nthreads"):
        return _dask(engine)
    raise TypeError(f'engine is "local", "ray" or a dask.distributed.Client, not {engine!r}')


def _dask(client: Any) -> Tuple[Collect, int]:
    as_completed: Any = import_module("distributed").as_completed

    def collect(job: Job, many: int) -> Iterator[Tuple[str, int]]:
        name = f"tidegate-{uuid.uuid4().hex}"
        futures = [
            # The same part gives the same rows, but another sweep's must not be taken for it.
            client.submit(_part, job, (at, many), key=f"{name}-{at}", pure=False, retries=RETRIES)
            for at in range(1, many + 1)
        ]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            client.cancel(futures)

    return collect, sum(client.nthreads().values())


def _ray() -> Tuple[Collect, int]:
    ray: Any = import_module("ray")
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    task = ray.remote(max_retries=RETRIES)(_part)

    def collect(job: Job, many: int) -> Iterator[Tuple[str, int]]:
        left = [task.remote(job, (at, many)) for at in range(1, many + 1)]
        try:
            while left:
                ready, left = ray.wait(left, num_returns=1)
                try:
                    part = ray.get(ready[0])
                except ray.exceptions.RayTaskError as error:
                    cause = error.cause
                    raise cause if isinstance(cause, Error) else error
                yield part
        finally:
            for reference in left:
                ray.cancel(reference, force=True)

    return collect, int(ray.cluster_resources().get("CPU", 1))
