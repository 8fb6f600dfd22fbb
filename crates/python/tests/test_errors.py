"""Errors are exceptions with their place; scripts run in the sandbox or not at all."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BATCH, SCENARIO

import tidegate


def failure(call: object, *args: object, **options: object) -> tidegate.Error:
    with pytest.raises(tidegate.Error) as raised:
        call(*args, **options)  # type: ignore[operator]
    return raised.value


def test_a_scenario_has_its_place_and_a_remedy() -> None:
    error = failure(tidegate.simulate, SCENARIO.replace("'1mbit'", "'quick'"))
    assert error.place == tidegate.Place("-", 5, 6) and str(error.place) == "-:5:6"
    assert str(error).startswith("-:5:6: `quick` is not a rate\n  5 | up = 'quick'\n")
    assert error.remedy is not None and error.remedy.startswith("write 128kbit")
    assert error.exit_code == 2
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.place, again.remedy, again.exit_code) == (str(error), error.place, error.remedy, 2)
    in_case = failure(tidegate.sweep, SCENARIO, set={"home.rtt": ["1ms", "soon"]})
    assert "soon" in str(in_case) and in_case.place is not None and in_case.place.line is not None


def test_files_that_are_missing() -> None:
    error = failure(tidegate.check, "none.sh")
    assert error.place == tidegate.Place("none.sh") and "there is no such file; check the path" in str(error)
    error = failure(tidegate.simulate, Path("none.toml"))
    assert (error.place, error.remedy) == (tidegate.Place("none.toml"), "check the path")


def test_values_that_are_wrong(scenario: Path) -> None:
    script = "examples/home-gateway.sh"
    assert "up=\"quick\": " in str(failure(tidegate.try_, script, up="quick", down="1mbit"))
    assert "the link's rate is missing: up and down" in str(failure(tidegate.try_, script))
    assert "unknown load \"x\"" in str(failure(tidegate.try_, script, up="1mbit", down="1mbit", load="x"))
    assert "dev x: no command" in str(failure(tidegate.check, script, dev="x"))
    assert failure(tidegate.explain, BATCH, "tcp nowhere").remedy
    assert "such as (1, 4)" in str(failure(tidegate.sweep, scenario, shard=(5, 4)))
    assert "set home.rtt=2..1:3: " in str(failure(tidegate.sweep, scenario, set={"home.rtt": "2..1:3"}))
    assert "at most a day" in str(failure(tidegate.check, BATCH, timeout=1e9))
    assert "no figure is called `x`" in str(failure(tidegate.sweep, scenario, figures="x"))
    for wrong in [{"engine": "x"}, {"method": "x"}, {"samples": 3}, {"engine": "x", "shard": (1, 2)}]:
        with pytest.raises((TypeError, ValueError)):
            tidegate.sweep(scenario, **wrong)
    with pytest.raises(TypeError, match="list of texts"):
        tidegate.check(script, args="start")


def test_a_script_that_hangs_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "hang.sh"
    script.write_text("#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\nsleep 100\n")
    assert "the script did not come to its end" in str(failure(tidegate.check, script, timeout=0.5))


def test_a_script_as_a_text_is_refused() -> None:
    text = "#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n"
    assert "a script must be a file" in str(failure(tidegate.check, text))


def test_a_script_changes_nothing_outside(tmp_path: Path) -> None:
    canary, script = tmp_path / "canary", tmp_path / "gw.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ntc qdisc add dev lo root fq_codel\n")
    assert tidegate.run(script).code == 0
    assert not canary.exists()


def test_without_the_program_scripts_are_refused(tmp_path: Path) -> None:
    """And other policies are not."""
    package = Path(tidegate.__file__).parent
    shutil.copytree(package, tmp_path / "tidegate", ignore=shutil.ignore_patterns("bin"))
    canary, script = tmp_path / "canary", tmp_path / "gw.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ntc qdisc add dev eth0 root fq_codel\n")
    code = (
        "import sys, tidegate\n"
        f"assert tidegate.__file__.startswith({str(tmp_path)!r})\n"
        f"assert len(tidegate.check({BATCH!r}).findings) == 1\n"
        "try:\n"
        f"    tidegate.check({str(script)!r})\n"
        "except tidegate.Error as error:\n"
        "    print(error)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "which is missing beside this Python package" in done.stdout and "--print batch" in done.stdout
    assert not canary.exists()
