"""The program `tidegate`, which the wheel brings along: it confines scripts and plays their tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn, Optional

__all__ = ["main", "program"]

#: Why scripts are refused where the program is missing.
MISSING = (
    "scripts run in a sandbox of the program `tidegate`, which is missing beside this Python package; install the "
    "wheel of tidegate, or give the commands that the script comes to, in a file: "
    "`tidegate run SCRIPT --print batch > FILE.batch`"
)


def program() -> Optional[Path]:
    """The program's file; ``None``: it is missing. Only the one that came with this package is taken."""
    path = Path(__file__).resolve().parent / "bin" / "tidegate"
    return path if os.access(path, os.X_OK) else None


def main() -> NoReturn:
    """Becomes the program: the command `tidegate` of a wheel."""
    path = program()
    if path is None:
        sys.exit(f"tidegate: {MISSING}")
    os.execv(path, ["tidegate", *sys.argv[1:]])
