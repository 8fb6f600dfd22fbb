"""The notebooks of the docs run, and print what they show. `TIDEGATE_BLESS=1` writes that anew."""

from __future__ import annotations

import os
from typing import Any, Dict, List

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def printed(cells: List[Dict[str, Any]]) -> List[str]:
    """What each cell prints, and the texts of its values; pictures differ from one matplotlib to the next."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    streams = [output["text"] for output in outputs if output["output_type"] == "stream" and output["name"] == "stdout"]
    values = [output["data"]["text/plain"] for output in outputs if output["output_type"] == "execute_result"]
    return streams + values


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path) -> None:  # type: ignore[no-untyped-def]
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    for needed in ("ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    notebook = nbformat.read(path, as_version=4)
    shown = printed(notebook.cells)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    if os.environ.get("TIDEGATE_BLESS"):
        for cell in notebook.cells:
            cell.get("metadata", {}).pop("execution", None)
        nbformat.write(notebook, path)
    else:
        assert printed(notebook.cells) == shown
