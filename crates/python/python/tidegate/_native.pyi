"""The native half of tidegate; `tidegate` has what users call."""

from os import PathLike
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

_Path = Union[str, PathLike[str]]
_Report = Optional[Callable[[int, int], None]]

def version() -> str: ...
def set_program(path: Optional[_Path], why: str) -> None: ...
def check(policy: Mapping[str, Any], loading: Mapping[str, Any], dev: Optional[str]) -> Tuple[str, List[str]]: ...
def explain(
    policy: Mapping[str, Any],
    packets: Sequence[str],
    loading: Mapping[str, Any],
    reply: bool,
    other: Optional[Mapping[str, Any]],
) -> Tuple[str, List[str]]: ...
def run(
    policy: Mapping[str, Any], then: Sequence[Sequence[str]], devices: Sequence[str], loading: Mapping[str, Any]
) -> Tuple[str, Optional[int]]: ...
def try_(
    policy: Mapping[str, Any], link: Mapping[str, Any], loading: Mapping[str, Any], report: _Report
) -> Tuple[str, List[str]]: ...
def trial_html(json: str) -> str: ...
def simulate(
    scenario: Mapping[str, Any],
    set: Sequence[Tuple[str, str]],
    cases: Mapping[str, Any],
    sandbox: Mapping[str, Any],
    report: _Report,
) -> Tuple[str, int]: ...
def experiment_html(json: str) -> str: ...
def plan(sweep: Mapping[str, Any]) -> Tuple[str, int, int, List[str]]: ...
def sweep(
    sweep: Mapping[str, Any],
    shard: Tuple[int, int],
    workers: Optional[int],
    journal: Optional[_Path],
    report: _Report,
) -> Tuple[str, int]: ...
def merge(parts: Sequence[str]) -> Tuple[str, int, str]: ...
def summary(
    rows: str,
    figures: Sequence[str],
    only: Sequence[Tuple[str, str]],
    by: Sequence[str],
    versus: Optional[Tuple[str, str]],
) -> str: ...
def columns(rows: str) -> Dict[str, List[Any]]: ...
