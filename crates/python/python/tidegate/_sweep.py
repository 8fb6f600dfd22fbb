"""Sweeps: a scenario over ranges of parameters."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _native
from ._api import TIMEOUT, Source, cases, given, listed, sandbox
from ._engines import Engine, run_parts
from ._progress import progress_bar
from ._results import SweepResult

__all__ = ["SweepPlan", "merge", "plan", "sweep"]

#: Values of a parameter: ``"10..160ms:log5"``, ``["10ms", "20ms"]``, ``[1, 2, 4]``.
Values = Union[str, float, Sequence[Union[str, float]]]


class SweepPlan(NamedTuple):
    """What a sweep has to do."""

    #: What its rows belong to: the scenario, its files, the options and the version of tidegate.
    id: str
    #: How many runs.
    runs: int
    #: How many cases; each is run under each policy and load, as often as there are repeats.
    cases: int
    #: The parameters' paths.
    axes: List[str]


def _setting(path: str, values: Values) -> str:
    if isinstance(values, (str, int, float)):
        values = [values]
    return f"{path}={','.join(str(value) for value in values)}"


def _job(
    scenario: Source,
    set: Optional[Mapping[str, Values]],
    method: str,
    samples: Optional[int],
    only: Union[str, Sequence[str]],
    skip: Union[str, Sequence[str]],
    figures: Union[str, Sequence[str]],
    chosen: Dict[str, Any],
    confined: Dict[str, Any],
) -> Dict[str, Any]:
    if method not in ("grid", "paired", "latin"):
        raise ValueError(f'method is "grid", "paired" or "latin", not {method!r}')
    if (method == "latin") != (samples is not None):
        raise ValueError('method="latin" goes with samples=N, the number of cases that are drawn')
    source = given(scenario)
    path = source["path"]
    if path is not None and os.path.exists(path):
        # A worker runs in another directory. Scenarios that are part of tidegate have names.
        source["path"] = os.path.abspath(path)
    return {
        "scenario": source,
        "set": [_setting(path, values) for path, values in (set or {}).items()],
        "paired": method == "paired",
        "latin": samples,
        "only": listed(only),
        "skip": listed(skip),
        "figures": listed(figures),
        "cases": chosen,
        "sandbox": confined,
    }


def sweep(
    scenario: Source,
    *,
    set: Optional[Mapping[str, Values]] = None,
    method: str = "grid",
    samples: Optional[int] = None,
    only: Union[str, Sequence[str]] = (),
    skip: Union[str, Sequence[str]] = (),
    figures: Union[str, Sequence[str]] = (),
    policy: Union[str, Sequence[str]] = (),
    load: Union[str, Sequence[str]] = (),
    seed: Optional[int] = None,
    repeats: Optional[int] = None,
    duration: Optional[str] = None,
    engine: Engine = "local",
    workers: Optional[int] = None,
    parts: Optional[int] = None,
    shard: Optional[Tuple[int, int]] = None,
    journal: Optional["os.PathLike[str] | str"] = None,
    timeout: float = TIMEOUT,
    private: bool = False,
    progress: Optional[bool] = None,
) -> SweepResult:
    """Simulate a scenario over ranges of parameters (`tidegate sweep`).

    The same repeat of all cases has the same seed, and the rows are the same to the byte from every engine and
    from the command line.

    Args:
        scenario: the path of a scenario (docs/scenario.md), or its text. Its table `[sweep]` is read, too.
        set: values by path: ``{"home.rtt": "10..160ms:log5", "values.target": ["5ms", "20ms"]}``. Quantities have
            their unit (docs/sweep.md).
        method: ``"grid"``, ``"paired"``, or ``"latin"`` with `samples`.
        samples: how many cases a Latin hypercube draws.
        only, skip: conditions of cases that are kept, or left out: ``"rtt > 20ms and tcp = bbr"``.
        figures: only these, such as ``["ping.p95", "upload.rate"]``; default: all.
        policy, load, seed, repeats, duration, timeout, private, progress: as for `simulate`.
        engine: ``"local"``: threads of this process; a `dask.distributed.Client`; or ``"ray"``. Workers need this
            version of tidegate, and the scenario's files under the same paths.
        workers: threads of the local engine; default: one for each processor.
        parts: into how many parts a cluster's sweep is divided; default: four for each of its threads.
        shard: only this part of the runs, from 1: ``(1, 16)``; local engine only. See `merge`.
        journal: a file that runs are written to as they end, so that a sweep that was stopped goes on where it
            was; local engine only. Delete it when the rows are kept.

    Raises:
        tidegate.Error: the scenario or a value is wrong, with its place, or a policy is refused.
        KeyboardInterrupt: the sweep is ended; what is done is in the journal, if there is one.
    """
    chosen = cases(policy, load, seed, repeats, duration)
    job = _job(scenario, set, method, samples, only, skip, figures, chosen, sandbox(timeout, private))
    is_local = isinstance(engine, str) and engine == "local"
    if not is_local and (shard is not None or journal is not None or workers is not None):
        raise ValueError("shard, journal and workers go with the local engine")
    if is_local and parts is not None:
        raise ValueError("parts go with a cluster")
    if workers is not None and workers < 1:
        raise ValueError("workers must be 1 or more")
    with progress_bar(progress, "sweeping", " runs") as report:
        if is_local:
            file = None if journal is None else os.fspath(journal)
            rows, _ = _native.sweep(job, shard or (1, 1), workers, file, report)
        else:
            rows = run_parts(job, engine, parts, report)
    return SweepResult(rows)


def plan(
    scenario: Source,
    *,
    set: Optional[Mapping[str, Values]] = None,
    method: str = "grid",
    samples: Optional[int] = None,
    only: Union[str, Sequence[str]] = (),
    skip: Union[str, Sequence[str]] = (),
    figures: Union[str, Sequence[str]] = (),
    policy: Union[str, Sequence[str]] = (),
    load: Union[str, Sequence[str]] = (),
    seed: Optional[int] = None,
    repeats: Optional[int] = None,
    duration: Optional[str] = None,
    timeout: float = TIMEOUT,
    private: bool = False,
) -> SweepPlan:
    """What a sweep has to do; nothing is simulated. Arguments as for `sweep`.

    Raises:
        tidegate.Error: the scenario or a value is wrong, with its place, or a policy is refused.
    """
    chosen = cases(policy, load, seed, repeats, duration)
    job = _job(scenario, set, method, samples, only, skip, figures, chosen, sandbox(timeout, private))
    return SweepPlan(*_native.plan(job))


def merge(*parts: Union[SweepResult, str]) -> SweepResult:
    """The rows of a sweep's parts as one (`tidegate results`): each run once.

    Args:
        parts: results of `sweep` with `shard`, or the texts of files that `tidegate sweep -o FILE.csv` wrote.

    Raises:
        tidegate.Error: rows of different sweeps, or two different values of one run.
    """
    rows = [part.to_csv() if isinstance(part, SweepResult) else part for part in parts]
    return SweepResult(_native.merge(rows)[0])
