"""Long work leaves the interpreter free, ends at Ctrl-C, and goes on from its journal."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import RUNS, SCENARIO, SET

import tidegate

#: Longer than any of this takes.
LIMIT_S = 300


def interrupted(code: str) -> str:
    """Sends SIGINT once the code has printed a line; what it printed then."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=LIMIT_S)
    return out


def body(call: str) -> str:
    return (
        "import threading, tidegate\n"
        "report = lambda done, total: done and not told.is_set() and (told.set(), print('begun', flush=True))\n"
        "told = threading.Event()\n"
        "import contextlib\n"
        "@contextlib.contextmanager\n"
        "def bar(*_):\n"
        "    yield report\n"
        "import tidegate._api as api, tidegate._sweep as sweep\n"
        "api.progress_bar = sweep.progress_bar = bar\n"
        f"try:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )


def test_a_simulation_is_interrupted() -> None:
    text = SCENARIO.replace("'2s'", "'20000s'")
    assert interrupted(body(f"tidegate.simulate({text!r})")) == "interrupted\n"


def test_a_trial_is_interrupted() -> None:
    call = "tidegate.try_('examples/home-gateway.sh', up='1600kbit', down='20mbit', duration='1h')"
    assert interrupted(body(call)) == "interrupted\n"


def test_a_script_is_interrupted(tmp_path: Path) -> None:
    script = tmp_path / "hang.sh"
    script.write_text("#!/bin/sh\nsleep 1000\n")
    # The sandbox is a child of this process.
    code = (
        "import glob, threading, time, tidegate\n"
        "def has_child():\n"
        "    return any(open(path).read() for path in glob.glob('/proc/self/task/*/children'))\n"
        "def tell():\n"
        "    while not has_child():\n"
        "        time.sleep(0.01)\n"
        "    print('begun', flush=True)\n"
        "threading.Thread(target=tell, daemon=True).start()\n"
        f"try:\n    tidegate.check({str(script)!r}, timeout=1000)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    assert interrupted(code) == "interrupted\n"


def test_a_sweep_goes_on_where_it_was(tmp_path: Path, whole: tidegate.SweepResult) -> None:
    journal = tmp_path / "rows.journal"
    call = f"tidegate.sweep({SCENARIO!r}, set={SET!r}, workers=1, journal={str(journal)!r})"
    assert interrupted(body(call)) == "interrupted\n"
    before = journal.read_text().count("\n# run ")
    assert 0 < before < RUNS
    told = []
    import tidegate._sweep as module
    from contextlib import contextmanager

    @contextmanager
    def bar(*_: object):  # type: ignore[no-untyped-def]
        yield lambda done, total: told.append((done, total))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "progress_bar", bar)
        again = tidegate.sweep(SCENARIO, set=SET, journal=journal)
    assert again == whole
    assert told[0][0] >= before and told[-1] == (RUNS, RUNS)


def test_other_threads_run_meanwhile() -> None:
    done, count = threading.Event(), 0

    def work() -> None:
        tidegate.simulate(SCENARIO)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        count += 1
    thread.join()
    # With the interpreter's lock held throughout, this thread would wake once, after the end.
    assert count > 5


def test_tqdm_shows_the_progress(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    tidegate.sweep(SCENARIO, set=SET, figures="ping.p95", progress=True)
    shown = capfd.readouterr().err
    assert "sweeping" in shown and f"{RUNS}/{RUNS}" in shown
