"""What the tests have in common: the installed wheel, its own program, and small scenarios."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable

import pytest

import tidegate
from tidegate._program import program

#: The repository.
ROOT = Path(__file__).resolve().parents[3]

#: A batch with one mistake.
BATCH = (
    "qdisc add dev eth0 root handle 1: htb default 20\n"
    "class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n"
)

#: A network in which a run takes a moment.
SCENARIO = """duration = '2s'
warm-up = '0s'
repeats = 2
[home]
up = '1mbit'
down = '10mbit'
[policies.none]
[policies.fair]
gateway = ["tc qdisc add dev eth0 root handle 1: htb default 1",
           "tc class add dev eth0 parent 1: classid 1:1 htb rate 900kbit",
           "tc qdisc add dev eth0 parent 1:1 fq_codel"]
[[traffic]]
id = 'upload'
tcp = 'a -> server'
[[traffic]]
ping = 'b -> server'
every = '100ms'
"""

#: The parameters that the tests vary.
SET = {"home.rtt": "10..160ms:log3", "home.up": ["1mbit", "2mbit"]}
#: The same as options of the command line.
SET_OPTIONS = ["--set", "home.rtt=10..160ms:log3", "--set", "home.up=1mbit,2mbit"]
#: How many runs that is: cases, policies, repeats.
RUNS = 3 * 2 * 2 * 2


@pytest.fixture(scope="session")
def cli() -> Callable[..., bytes]:
    """The command line of the same wheel: its standard output."""
    path = program()
    assert path is not None, "the wheel has the program"

    def run(*words: object, text: str | None = None, cwd: object = ROOT, code: int = 0) -> bytes:
        stdin = None if text is None else text.encode()
        done = subprocess.run([path, *map(str, words)], input=stdin, capture_output=True, cwd=cwd, check=False)
        assert done.returncode == code, done.stderr.decode()
        return done.stdout

    return run


@pytest.fixture(autouse=True)
def in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of examples are those of the repository."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "home.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="session")
def whole() -> tidegate.SweepResult:
    """The sweep, as this process runs it."""
    return tidegate.sweep(SCENARIO, set=SET)
