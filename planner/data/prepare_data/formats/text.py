"""Plain text in UTF-8: a document a file, or a line (--lines)."""
import os

from ..files import MOST_DOCUMENT, Lines, line_chunks, not_utf8, too_long
from ..records import Record

CHUNK = 1 << 18  # bytes of lines that a worker takes at once


class Text:
    def __init__(self, inputs, options):
        self._inputs, self._lines = inputs, options.lines

    def settings(self):
        return [("documents", "one a line" if self._lines else "one a file (--lines: one a line)")]

    def files(self):
        return self._inputs

    def size(self):
        return sum(os.path.getsize(path) for path in self._inputs)

    def tasks(self):
        for path in self._inputs:
            if not self._lines:
                yield os.path.getsize(path), (path, 0, None)
                continue
            for size, line, lines in line_chunks(path, CHUNK):
                yield size, (path, line, lines)

    def read(self, task):
        path, first, lines = task
        if lines is None:
            with Lines(path) as file:
                data = file.read(MOST_DOCUMENT + 1)
            lines = [data if len(data) <= MOST_DOCUMENT else None]
        for number, data in enumerate(lines, first):
            place = f"{path}:{number}" if self._lines else path
            if data is None:
                yield too_long(place, "a line" if self._lines else "a document")
                continue
            try:
                text = data.decode("utf-8-sig" if number <= 1 else "utf-8")
                text = text.rstrip("\r\n") if self._lines else text
                if text or not self._lines:
                    yield Record(place, text=text)
            except UnicodeDecodeError as error:
                yield not_utf8(data, error, place, "no text")
