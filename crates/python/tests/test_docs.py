"""The Python lines of the docs run, and print what the docs say. `TIDEGATE_BLESS=1` writes that anew."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
from conftest import ROOT

#: A block of Python, and what it prints behind it.
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<out>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["docs/python.md", "crates/python/README.md"])
def test_the_docs_run(name: str, tmp_path: Path) -> None:
    path = ROOT / name
    text = path.read_text()
    namespace: Dict[str, Any] = {}
    missing: List[str] = []
    blocks = list(BLOCK.finditer(text))
    assert blocks
    for block in reversed([(block, one(block, namespace, missing)) for block in blocks]):
        match, out = block
        if out is None or match["out"] is None:
            assert not out, f"the docs do not show what this prints:\n{match['code']}{out}"
            continue
        if os.environ.get("TIDEGATE_BLESS"):
            text = text[: match.start("out")] + out + text[match.end("out") :]
        else:
            assert out == match["out"], match["code"]
    if os.environ.get("TIDEGATE_BLESS"):
        path.write_text(text)
    if missing:
        pytest.skip(f"{name}: not all of it was run: {', '.join(missing)}")


def one(block: "re.Match[str]", namespace: Dict[str, Any], missing: List[str]) -> "str | None":
    """What a block prints; `None`: it needs a package that is not installed."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], "docs", "exec"), namespace)  # noqa: S102
    except ModuleNotFoundError as error:
        missing.append(str(error))
        return None
    return printed.getvalue()


def test_the_example_of_the_package_runs() -> None:
    import doctest

    import tidegate

    assert doctest.testmod(tidegate) == (0, 3)
