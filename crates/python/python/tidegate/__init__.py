"""tidegate: try a traffic-control policy before you trust your link to it.

Policies are checked, explained, run on a model of the machine and tried on a simulated link; scenarios are
simulated and swept over ranges of parameters. Results are the documents of the command line's `--json`, to the
byte. Rates, times and sizes are texts with their unit: ``"20mbit"``, ``"30ms"``, ``"24kB"``.

>>> import tidegate
>>> policy = (
...     "qdisc add dev eth0 root handle 1: htb default 20\\n"
...     "class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\\n"
... )
>>> [finding["rule"] for finding in tidegate.check(policy).findings]
['R13']
"""

from __future__ import annotations

from . import _native
from ._api import check, explain, run, simulate, try_
from ._errors import Error, Place
from ._program import MISSING as _MISSING
from ._program import program as _program
from ._results import CheckResult, Document, Experiment, Explanation, Rows, RunResult, SweepResult, TrialResult
from ._sweep import SweepPlan, merge, plan, sweep

__all__ = [
    "CheckResult",
    "Document",
    "Error",
    "Experiment",
    "Explanation",
    "Place",
    "Rows",
    "RunResult",
    "SweepPlan",
    "SweepResult",
    "TrialResult",
    "__version__",
    "check",
    "explain",
    "merge",
    "plan",
    "run",
    "simulate",
    "sweep",
    "try_",
]

__version__: str = _native.version()

_native.set_program(_program(), _MISSING)
