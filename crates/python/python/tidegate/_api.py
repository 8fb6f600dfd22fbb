"""What users call, but for sweeps."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._progress import progress_bar
from ._results import CheckResult, Experiment, Explanation, RunResult, TrialResult

__all__ = ["Source", "check", "explain", "run", "simulate", "try_"]

#: A policy or scenario: the path of a file (`str` or `os.PathLike`), or its text (a `str` with a line break).
Source = Union[str, "os.PathLike[str]"]

#: How long a script may run, seconds.
TIMEOUT = 60.0


def given(source: Source) -> Dict[str, Optional[str]]:
    """A file, or a text under the name that standard input has on the command line."""
    if isinstance(source, str) and "\n" in source:
        return {"path": "-", "text": source}
    return {"path": os.fspath(source), "text": None}


def loading(
    args: Sequence[str],
    also: Sequence[Source],
    timeout: float,
    private: bool,
    linux: str,
    tc: str,
    dissect: str,
    netns: Optional[str],
) -> Dict[str, Any]:
    if dissect not in ("modern", "legacy"):
        raise ValueError(f'dissect is "modern" or "legacy", not {dissect!r}')
    return {
        "args": words(args, "args"),
        "also": [os.fspath(file) for file in listed(also)],
        "sandbox": sandbox(timeout, private, netns),
        "linux": str(linux),
        "tc": str(tc),
        "legacy": dissect == "legacy",
    }


def sandbox(timeout: float, private: bool, netns: Optional[str] = None) -> Dict[str, Any]:
    return {"timeout": float(timeout), "private": bool(private), "netns": netns, "answers": []}


def listed(values: Any) -> List[Any]:
    """A list; one text or path is a list of one."""
    return [values] if isinstance(values, (str, os.PathLike)) else list(values)


def words(values: Sequence[str], name: str) -> List[str]:
    if isinstance(values, str):
        raise TypeError(f"{name} is a list of texts, such as [{values!r}]")
    return [str(value) for value in values]


def cases(
    policy: Union[str, Sequence[str]],
    load: Union[str, Sequence[str]],
    seed: Optional[int],
    repeats: Optional[int],
    duration: Optional[str],
) -> Dict[str, Any]:
    return {
        "policies": listed(policy),
        "loads": listed(load),
        "seed": seed,
        "repeats": repeats,
        "duration": duration,
    }


def check(
    policy: Source,
    *,
    args: Sequence[str] = (),
    also: Sequence[Source] = (),
    dev: Optional[str] = None,
    linux: str = "6.1",
    tc: str = "6.1",
    dissect: str = "modern",
    timeout: float = TIMEOUT,
    private: bool = False,
    netns: Optional[str] = None,
) -> CheckResult:
    """Find mistakes in a policy: where, what happens, how to fix it (`tidegate check`).

    Args:
        policy: a shell script, a tc batch, iptables-save, nft rules, a short policy and so on: a path, or a text
            with a line break. A script must be a file; it runs in a sandbox and changes nothing outside.
        args: arguments for a script.
        also: more files of the policy.
        dev: only findings about this device.
        linux: the release of Linux whose behaviour is shown, ``"6.1"`` to ``"7.2"``.
        tc: the release of tc whose arithmetic and words are used, ``"6.1"`` or ``"7.2"``.
        dissect: how far the kernel's flow dissector looks into packets: ``"modern"``, or ``"legacy"`` as Linux 3.2.
        timeout: how long a script may run, seconds.
        private: hide home directories and the environment from scripts.
        netns: the network namespace of a script to look at; without it the one that the script begins in, unless
            only others have traffic control.

    Raises:
        tidegate.Error: the policy cannot be read, configures nothing, or did not come to its end.
    """
    files = loading(args, also, timeout, private, linux, tc, dissect, netns)
    return CheckResult(*_native.check(given(policy), files, dev))


def explain(
    policy: Source,
    *packets: str,
    reply: bool = False,
    versus: Optional[Source] = None,
    args: Sequence[str] = (),
    also: Sequence[Source] = (),
    linux: str = "6.1",
    tc: str = "6.1",
    dissect: str = "modern",
    timeout: float = TIMEOUT,
    private: bool = False,
    netns: Optional[str] = None,
) -> Explanation:
    """Show which rules, class and queue packets meet, and why (`tidegate explain`).

    Args:
        policy: as for `check`.
        packets: each in words: ``"udp 192.168.1.7 > 1.1.1.1:53 out eth0"``.
        reply: explain the reply to each packet, too.
        versus: another policy: where the packets' paths differ.
        args, also, linux, tc, dissect, timeout, private, netns: as for `check`.

    Raises:
        tidegate.Error: the policy or a packet cannot be read, or the packet cannot come about.
    """
    if not packets:
        raise TypeError("explain() needs a packet, such as 'udp 192.168.1.7 > 1.1.1.1:53'")
    files = loading(args, also, timeout, private, linux, tc, dissect, netns)
    other = None if versus is None else given(versus)
    return Explanation(*_native.explain(given(policy), list(packets), files, reply, other))


def run(
    policy: Source,
    *,
    args: Sequence[str] = (),
    then: Sequence[Sequence[str]] = (),
    devices: Sequence[str] = (),
    linux: str = "6.1",
    tc: str = "6.1",
    dissect: str = "modern",
    timeout: float = TIMEOUT,
    private: bool = False,
    netns: Optional[str] = None,
) -> RunResult:
    """Run a script in a sandbox, on a model of the machine, and show what it configures (`tidegate run`).

    Args:
        policy: the script's path; another policy is carried out once, and may be a text with a line break.
        args: arguments for the script.
        then: run it again, on the same machine, with each of these lists of arguments.
        devices: devices that exist beside those that the script names.
        linux, tc, dissect, timeout, private, netns: as for `check`.

    Raises:
        tidegate.Error: the script cannot be read or run. Its own failure is in the result.
    """
    files = loading(args, (), timeout, private, linux, tc, dissect, netns)
    turns = [words(turn, "each of `then`") for turn in then]
    return RunResult(*_native.run(given(policy), turns, listed(devices), files))


def try_(
    policy: Source,
    *,
    up: Optional[str] = None,
    down: Optional[str] = None,
    rtt: Optional[str] = None,
    buffer: Optional[str] = None,
    down_buffer: Optional[str] = None,
    duration: Optional[str] = None,
    load: Union[str, Sequence[str]] = (),
    probes: Union[None, str, Sequence[str]] = None,
    flows: Optional[int] = None,
    dev: Optional[str] = None,
    over: Optional[Tuple[str, str]] = None,
    cable: Optional[str] = None,
    ring: Optional[int] = None,
    bql: Optional[str] = None,
    ipv6: bool = False,
    seed: int = 1,
    keep_going: bool = False,
    args: Sequence[str] = (),
    also: Sequence[Source] = (),
    linux: str = "6.1",
    tc: str = "6.1",
    dissect: str = "modern",
    timeout: float = TIMEOUT,
    private: bool = False,
    netns: Optional[str] = None,
    progress: Optional[bool] = None,
) -> TrialResult:
    """Simulate one policy on a home link, without and with it, and report what it changes (`tidegate try`).

    Rates, times and sizes are texts with their unit: ``"20mbit"``, ``"1500ms"``, ``"24kB"``.

    Args:
        policy: as for `check`.
        up, down: the link's rates; a short policy may have them.
        rtt: round-trip time of the idle path; default 30 ms.
        buffer: the modem's upload buffer, a size or a time at the upload rate; default 1500 ms.
        down_buffer: the provider's download buffer; default 250 ms, at least 64 kB.
        duration: how long each load is measured; default 60 s.
        load: what loads the link: ``"idle"``, ``"up"``, ``"down"``, ``"both"``, …; default these four.
        probes: what is measured beside it: ``"ping"``, ``"voip"``, ``"dns"``, ``"ssh"``, ``"web"``; default all.
        flows: transfers of the load, each way.
        dev: the device that leads to the modem; default: the one that the policy shapes.
        over: two devices, the upper one on the lower: ``("ppp0", "eth1")``.
        cable: the rate of the cable to the modem.
        ring: frames in the transmit ring of that device.
        bql: its byte queue limit, a size.
        ipv6: send everything over IPv6.
        seed: the same seed gives the same document, to the byte.
        keep_going: continue although a command of the script failed.
        progress: show a bar with tqdm; default: on a terminal or in a notebook, if tqdm is installed.
        args, also, linux, tc, dissect, timeout, private, netns: as for `check`.

    Raises:
        tidegate.Error: the policy cannot be read or a script failed; a value that is no rate, time or size.
    """
    link = {
        "up": up,
        "down": down,
        "rtt": rtt,
        "buffer": buffer,
        "down_buffer": down_buffer,
        "duration": duration,
        "dev": dev,
        "over": over,
        "cable": cable,
        "ring": ring,
        "bql": bql,
        "load": listed(load),
        "flows": flows,
        "probes": None if probes is None else listed(probes),
        "ipv6": ipv6,
        "seed": seed,
        "keep_going": keep_going,
    }
    files = loading(args, also, timeout, private, linux, tc, dissect, netns)
    with progress_bar(progress, "simulating", "s") as report:
        return TrialResult(*_native.try_(given(policy), link, files, report))


def simulate(
    scenario: Source,
    *,
    set: Optional[Mapping[str, object]] = None,
    policy: Union[str, Sequence[str]] = (),
    load: Union[str, Sequence[str]] = (),
    seed: Optional[int] = None,
    repeats: Optional[int] = None,
    duration: Optional[str] = None,
    timeout: float = TIMEOUT,
    private: bool = False,
    progress: Optional[bool] = None,
) -> Experiment:
    """Run a scenario in simulation, on all processors (`tidegate sim`).

    Args:
        scenario: the path of a scenario (docs/scenario.md), its text, or the name of one that is part of tidegate
            (``"rfc7928/bursts"``).
        set: values by path that replace or extend the file's: ``{"home.up": "10mbit"}``.
        policy: only these policies.
        load: only these loads.
        seed: of the first repeat; the same seed gives the same document, to the byte.
        repeats: how many times each case is run, each time with the next seed.
        duration: how long each run is measured, a time with its unit: ``"30s"``.
        timeout: how long a script of a policy may run, seconds.
        private: hide home directories and the environment from scripts.
        progress: show a bar with tqdm; default: on a terminal or in a notebook, if tqdm is installed.

    Raises:
        tidegate.Error: the scenario is wrong, with its place, or a policy is refused.
        KeyboardInterrupt: the simulation is ended, and there is no result.
    """
    chosen = cases(policy, load, seed, repeats, duration)
    values = [(path, str(value)) for path, value in (set or {}).items()]
    with progress_bar(progress, "simulating", "s") as report:
        return Experiment(*_native.simulate(given(scenario), values, chosen, sandbox(timeout, private), report))
