"""Results are the documents of the command line, to the byte."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Callable

import pytest
from conftest import BATCH, RUNS, SCENARIO, SET, SET_OPTIONS

import tidegate

Cli = Callable[..., bytes]


def test_versions_are_the_same(cli: Cli) -> None:
    assert cli("--version").decode().split()[1] == tidegate.__version__


def test_check(cli: Cli) -> None:
    script = "examples/home-gateway.sh"
    checked = tidegate.check(script)
    assert checked.to_json().encode() == cli("check", "--json", script)
    assert checked.ok and repr(checked) == "<tidegate.CheckResult: 0 errors, 0 warnings, 6 notes>"
    one = tidegate.check(script, dev="eth0", dissect="legacy")
    assert one.to_json().encode() == cli("check", "--json", "--dev", "eth0", "--dissect", "legacy", script)


def test_check_of_a_text(cli: Cli) -> None:
    checked = tidegate.check(BATCH)
    assert checked.to_json().encode() == cli("check", "--json", "-", text=BATCH, code=1)
    assert [finding["rule"] for finding in checked.findings] == ["R13"] and not checked.ok
    assert checked == pickle.loads(pickle.dumps(checked))


def test_explain(cli: Cli) -> None:
    script, packet = "examples/three-bands.sh", "tcp 192.168.1.7:51820 > 1.1.1.1:22 dscp AF21 len 120"
    explained = tidegate.explain(script, packet, reply=True)
    assert explained.to_json().encode() == cli("explain", "--json", "--reply", script, packet)
    differs = tidegate.explain(script, packet, versus="examples/home-gateway.sh")
    other = ["--diff", "examples/home-gateway.sh"]
    assert differs.to_json().encode() == cli("explain", "--json", *other, script, packet, code=1)
    two = tidegate.explain(BATCH, packet, "udp 192.168.1.7 > 1.1.1.1:53")
    assert [one["end"]["classes"] for one in two.packets] == [["1:20"], ["1:20"]]


def test_run(cli: Cli) -> None:
    script = "examples/home-gateway.sh"
    run = tidegate.run(script, args=["start"], then=[["show"], ["stop"]], devices=["wlan0"])
    words = ["--then", "show", "--then", "stop", "--dev", "wlan0", "--", "start"]
    assert run.to_json().encode() == cli("run", "--json", script, *words)
    assert run.code == 0 and ["tc", "qdisc"] in [words[:2] for words in run.commands]
    text = tidegate.run(BATCH)
    assert [qdisc["kind"] for qdisc in text["qdiscs"]] == ["htb"]


def test_try(cli: Cli, tmp_path: Path) -> None:
    script = "examples/home-gateway.sh"
    tried = tidegate.try_(
        script, up="1600kbit", down="20mbit", duration="2s", load=["idle", "up"], probes=["ping"], seed=7
    )
    words = ["--up", "1600kbit", "--down", "20mbit", "-d", "2s", "--load", "idle,up", "--probes", "ping"]
    assert tried.to_json().encode() == cli("try", "--json", script, *words, "--seed", "7")
    # A report on disk names its file in the command that makes it again.
    page = tmp_path / "page.html"
    cli("try", script, *words, "--seed", "7", "-o", page)
    assert tried.to_html() == page.read_text().replace(f" -o {page}", "")
    assert "<iframe srcdoc=" in tried._repr_html_()


def test_simulate(cli: Cli, scenario: Path) -> None:
    simulated = tidegate.simulate(scenario, policy="fair", repeats=3, duration="1s", seed=5)
    words = ["--policy", "fair", "--repeats", "3", "-d", "1s", "--seed", "5"]
    assert simulated.to_json().encode() == cli("sim", "--json", scenario, *words)
    page = scenario.with_suffix(".html")
    cli("sim", scenario, *words, "-o", page)
    assert simulated.to_html() == page.read_text()
    assert (len(simulated.runs), simulated.ok) == (3, True)


def test_simulate_a_scenario_by_name_with_values_set(cli: Cli) -> None:
    words = ["--policy", "fifo", "--repeats", "1", "-d", "1s"]
    for name, values in [("rfc7928/bursts", {}), ("examples/scenarios/sweep.toml", {"rate": "2mbit"})]:
        simulated = tidegate.simulate(name, set=values, policy="fifo", repeats=1, duration="1s")
        options = [word for path, value in values.items() for word in ("--set", f"{path}={value}")]
        assert simulated.to_json().encode() == cli("sim", "--json", name, *options, *words)
    with pytest.raises(tidegate.Error, match="known: rfc7928/same-window"):
        tidegate.simulate("rfc7928/none")
    assert tidegate.plan("rfc7928/bursts", repeats=1).cases == 1


def test_simulate_a_text_whose_assertion_fails(cli: Cli) -> None:
    text = SCENARIO + "[[expect]]\nfigure = 'ping.median'\nof = 'fair/load'\nbelow = '1ms'\n"
    simulated = tidegate.simulate(text)
    assert simulated.to_json().encode() == cli("sim", "--json", "-", text=text, code=1)
    assert not simulated.ok


def test_simulate_with_a_script_in_the_sandbox(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "gw.sh").write_text("#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n")
    path = tmp_path / "x.toml"
    path.write_text(SCENARIO.replace("[[traffic]]", "[policies.script]\ngateway = 'gw.sh'\n[[traffic]]", 1))
    assert tidegate.simulate(path).to_json().encode() == cli("sim", "--json", path)


def test_sweep(cli: Cli, scenario: Path, whole: tidegate.SweepResult) -> None:
    rows = scenario.with_suffix(".csv")
    summary = cli("sweep", "--json", scenario, *SET_OPTIONS, "-o", rows)
    assert (whole.to_csv(), whole.to_json()) == (rows.read_text(), summary.decode())
    assert tidegate.sweep(scenario, set=SET, workers=1) == whole
    assert whole.to_dict()["done"] == RUNS
    by_policy = whole.summary(figures=["ping.p95"], by=["policy"], versus=("policy", "none"))
    words = ["--figure", "ping.p95", "--by", "policy", "--versus", "policy=none"]
    assert by_policy == json.loads(cli("results", "--json", rows, *words))
    chosen = tidegate.sweep(
        scenario, set={"home.rtt": "10..160ms"}, method="latin", samples=3, skip="rtt > 100ms", figures="ping.p95"
    )
    words = ["--set", "home.rtt=10..160ms", "--latin", "3", "--skip", "rtt > 100ms", "--figure", "ping.p95"]
    cli("sweep", scenario, *words, "-o", rows)
    assert chosen.to_csv() == rows.read_text()


def test_shards_are_merged(whole: tidegate.SweepResult) -> None:
    parts = [tidegate.sweep(SCENARIO, set=SET, shard=(part, 3)) for part in (1, 2, 3)]
    assert tidegate.merge(parts[2], parts[0], parts[1].to_csv(), parts[0]) == whole
    assert tidegate.plan(SCENARIO, set=SET)[1:] == (RUNS, 6, ["home.rtt", "home.up"])
    with pytest.raises(tidegate.Error, match="rows of sweep"):
        tidegate.merge(whole, tidegate.sweep(SCENARIO, set={"home.rtt": ["1ms"]}))


def test_rows_are_columns(whole: tidegate.SweepResult) -> None:
    rows = whole.rows
    assert rows.height == len(whole.to_csv().splitlines()) - 1
    assert [type(rows[name][0]) for name in ("run", "policy", "home.rtt", "value", "home.rtt (s)")] == [
        int,
        str,
        str,
        float,
        float,
    ]
    of_first = {name: rows["value"][at] for at, name in enumerate(rows["figure"]) if rows["run"][at] == 0}
    assert 0.01 < of_first["ping.median"] < 10
    pandas = pytest.importorskip("pandas")
    frame = rows.to_pandas()
    assert frame.equals(pandas.DataFrame(rows)) and str(frame["value"].dtype) == "float64"
    pyarrow = pytest.importorskip("pyarrow")
    table = rows.to_arrow()
    assert table == pyarrow.table(rows) and str(table.schema.field("value").type) == "double"
    polars = pytest.importorskip("polars")
    assert rows.to_polars().equals(polars.DataFrame(rows)) and rows.to_polars().height == rows.height
