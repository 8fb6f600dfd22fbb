"""Results: thin objects over the documents of the command line's `--json`."""

from __future__ import annotations

import html
import json
from importlib import import_module
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, cast

from . import _native

__all__ = ["CheckResult", "Document", "Experiment", "Explanation", "Rows", "RunResult", "SweepResult", "TrialResult"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class Document:
    """A result: a JSON document, the same to the byte as the command line prints with `--json`."""

    def __init__(self, text: str, notes: Sequence[str] = ()) -> None:
        self._text = text
        self._dict: Optional[Dict[str, Any]] = None
        #: What else is to be said, a sentence each: the command line's warnings.
        self.notes: List[str] = list(notes)

    def to_json(self) -> str:
        """The document as text, with the end of line."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The document, read. Times in it are seconds and rates bits per second unless its schema says otherwise."""
        if self._dict is None:
            self._dict = json.loads(self._text)
        return self._dict

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __contains__(self, key: object) -> bool:
        return key in self.to_dict()

    def keys(self) -> Iterator[str]:
        """The names of the document's members."""
        return iter(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self._text, self.notes))

    def __repr__(self) -> str:
        return f"<tidegate.{type(self).__name__}: {self._words()}>"

    def _words(self) -> str:
        return f"{len(self._text)} bytes of JSON"


class _Report(Document):
    """A document that has a report."""

    def to_html(self) -> str:
        """The report as a page: one file that needs no network."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        # In a frame of its own its styles stay its own.
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


class CheckResult(Document):
    """The findings about a policy (`tidegate check --json`)."""

    @property
    def findings(self) -> List[Dict[str, Any]]:
        """Each finding: rule, level, place, what happens, why, and a fix where one is known."""
        return cast("List[Dict[str, Any]]", self.to_dict()["findings"])

    @property
    def ok(self) -> bool:
        """Is there no warning and no error?"""
        return all(finding["level"] == "note" for finding in self.findings)

    def _words(self) -> str:
        levels = [finding["level"] for finding in self.findings]
        return ", ".join(_count(levels.count(level), level) for level in ("error", "warning", "note"))


class Explanation(Document):
    """What packets meet (`tidegate explain --json`)."""

    @property
    def packets(self) -> List[Dict[str, Any]]:
        """Each packet's path, and where it ends."""
        return cast("List[Dict[str, Any]]", self.to_dict()["packets"])

    def _words(self) -> str:
        return "; ".join(f"{one['packet']}: {one['end']['text']}" for one in self.packets)


class RunResult(Document):
    """The machine that a script's runs leave, and every call (`tidegate run --json`)."""

    def __init__(self, text: str, code: Optional[int], notes: Sequence[str] = ()) -> None:
        super().__init__(text, notes)
        #: The exit code of the last run, 128 + N for signal N; ``None``: it did not come to its end.
        self.code = code

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self._text, self.code, self.notes))

    @property
    def commands(self) -> List[List[str]]:
        """The commands that were carried out, as words."""
        return cast("List[List[str]]", self.to_dict()["commands"])

    def _words(self) -> str:
        return f"code {self.code}, {_count(len(self.commands), 'command')}"


class TrialResult(_Report):
    """A policy on a simulated home link (`tidegate try --json`)."""

    def to_html(self) -> str:
        """The report as a page: what `tidegate try -o FILE.html` writes."""
        return _native.trial_html(self._text)


class Experiment(_Report):
    """All runs of a scenario (`tidegate sim --json`)."""

    def __init__(self, text: str, exit_code: int = 0, notes: Sequence[str] = ()) -> None:
        super().__init__(text, notes)
        #: 1 if an assertion of the scenario fails, else 0.
        self.exit_code = exit_code

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self._text, self.exit_code, self.notes))

    @property
    def ok(self) -> bool:
        """Do all assertions of the scenario hold?"""
        return self.exit_code == 0

    @property
    def runs(self) -> List[Dict[str, Any]]:
        """The runs, by policy, then by load, then by repeat."""
        return cast("List[Dict[str, Any]]", self.to_dict()["runs"])

    def to_html(self) -> str:
        """The report as a page: what `tidegate sim -o FILE.html` writes."""
        return _native.experiment_html(self._text)

    def _words(self) -> str:
        return _count(len(self.runs), "run")


class Rows(Dict[str, List[Any]]):
    """The rows of a sweep as columns: a `dict` of lists, one row for each run and figure.

    `pandas.DataFrame(rows)`, `polars.DataFrame(rows)` and `pyarrow.table(rows)` take it as it is. Whole numbers are
    `int`, `value` and columns in units (`home.rtt (s)`) are `float` or `None`, the rest are `str`. `unit` has the
    unit of `value`: `s`, `bit/s`, or nothing for a count or a share.
    """

    def __repr__(self) -> str:
        return f"<tidegate.Rows: {self.height} rows of {len(self)} columns>"

    @property
    def height(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.values()), []))

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`."""
        return import_module("pandas").DataFrame(dict(self))

    def to_polars(self) -> Any:
        """As a `polars.DataFrame`."""
        return import_module("polars").DataFrame(dict(self), strict=False)

    def to_arrow(self) -> Any:
        """As a `pyarrow.Table`."""
        return import_module("pyarrow").table(dict(self))


class SweepResult(Document):
    """The rows of a sweep, and their summary (`tidegate sweep --json`)."""

    def __init__(self, rows: str) -> None:
        self._rows = rows
        self._columns: Optional[Rows] = None
        super().__init__("")

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self._rows,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SweepResult) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def to_csv(self) -> str:
        """The rows as CSV, the same to the byte as `tidegate sweep -o FILE.csv` writes them."""
        return self._rows

    @property
    def rows(self) -> Rows:
        """The rows as columns, for pandas, polars and pyarrow."""
        if self._columns is None:
            self._columns = Rows(_native.columns(self._rows))
        return self._columns

    def to_json(self) -> str:
        """The summary of all figures as text, as `tidegate sweep --json` prints it."""
        if not self._text:
            self._text = _native.summary(self._rows, [], [], [], None)
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """The summary of all figures, read."""
        self.to_json()
        return super().to_dict()

    def summary(
        self,
        figures: Sequence[str] = (),
        where: Optional[Mapping[str, object]] = None,
        by: Sequence[str] = (),
        versus: Optional[Tuple[str, object]] = None,
    ) -> Dict[str, Any]:
        """Means with 95 % intervals, medians and ranges, as `tidegate results --json` prints them.

        Args:
            figures: only these, such as ``["ping.p95"]``.
            where: only runs with these values: ``{"policy": "fq_codel"}``.
            by: a row for each combination of these; without it of all that differ, except repeats.
            versus: compare with the runs that have this value: ``("policy", "none")``.
        """
        only = [(name, str(value)) for name, value in (where or {}).items()]
        against = None if versus is None else (versus[0], str(versus[1]))
        text = _native.summary(self._rows, list(figures), only, list(by), against)
        return cast("Dict[str, Any]", json.loads(text))

    def _words(self) -> str:
        sweep = self.to_dict()
        return f"{sweep['done']} of {sweep['runs']} runs over {', '.join(sweep['axes']) or 'no parameter'}"
