"""What goes wrong, as exceptions."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

__all__ = ["Error", "Place"]


class Place(NamedTuple):
    """Where something is wrong.

    ``line`` and ``column`` count from 1; ``None``: the whole file, or the whole line.
    """

    file: str
    line: Optional[int] = None
    column: Optional[int] = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in self if part is not None)


class Error(Exception):
    """Why a call has no result; ``str(error)`` is what the command line prints.

    Attributes:
        place: where, or ``None``.
        remedy: what to do about it, where that is known apart from the message; else ``None``.
        exit_code: what the command line ends with: 2 wrong input, 3 a partial result, 4 not permitted, 70 a bug
            in tidegate.
    """

    place: Optional[Place]
    remedy: Optional[str]
    exit_code: int

    def __init__(
        self,
        message: str,
        place: Optional[Tuple[object, Optional[int], Optional[int]]] = None,
        remedy: Optional[str] = None,
        exit_code: int = 2,
    ) -> None:
        super().__init__(message)
        self.place = None if place is None else Place(str(place[0]), place[1], place[2])
        self.remedy = remedy
        self.exit_code = exit_code

    def __reduce__(self) -> Tuple[object, ...]:
        # An engine's workers send it to their caller.
        return (Error, (str(self), self.place, self.remedy, self.exit_code))
