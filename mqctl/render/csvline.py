"""One line of CSV."""

import csv
from collections.abc import Iterable


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


# With CRLF as the declared end the csv module quotes a lone \r as well as \n;
# the end itself is replaced.
_WRITER = csv.writer(_Echo(), lineterminator="\r\n")


def csv_line(cells: Iterable[object]) -> bytes:
    r"""Return the cells quoted where needed, ending in `\n`; None is empty."""
    text = str(_WRITER.writerow(cells))
    return text[:-2].encode("utf-8", "backslashreplace") + b"\n"
