"""Progress bars, with tqdm where it is installed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Iterator, Optional

__all__ = ["Report", "progress_bar"]

#: Is called with how much is done, and of how much.
Report = Callable[[int, int], None]


@contextmanager
def progress_bar(wanted: Optional[bool], what: str, unit: str) -> Iterator[Optional[Report]]:
    """What long work reports to.

    ``wanted``: ``None`` for a bar on a terminal or in a notebook if tqdm is installed; ``True``: always.
    """
    tqdm: Any = None
    if wanted or (wanted is None and ("ipykernel" in sys.modules or sys.stderr.isatty())):
        try:
            tqdm = import_module("tqdm.auto").tqdm
        except ImportError:
            if wanted:
                raise
    if tqdm is None:
        yield None
        return
    bar = tqdm(desc=what, unit=unit, leave=False)

    def report(done: int, total: int) -> None:
        bar.total = total or None
        bar.n = done
        bar.refresh()

    try:
        yield report
    finally:
        bar.close()
