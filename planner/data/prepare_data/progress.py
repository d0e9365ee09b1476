"""How far a run is, on a terminal: documents, documents a second, time left. Nothing where no one looks."""
import sys
import time


def duration(seconds):
    seconds = max(0, int(seconds + 0.5))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


class Progress:
    def __init__(self, total, stream=sys.stderr, every=0.5):
        self._total, self._stream, self._every = max(total, 1), stream, every
        self._begin = self._last = time.monotonic()
        self._live, self._done = stream.isatty(), 0

    def add(self, weight, documents):
        self._done += weight
        now = time.monotonic()
        if self._live and now - self._last >= self._every:
            self._last = now
            took, part = now - self._begin, min(self._done / self._total, 1)
            left = duration(took / part - took) if part > 0 else "?"
            self._stream.write(f"\r{documents:,} documents  {documents / took:,.0f} documents/s  {part:.0%}  "
                               f"left {left}\x1b[K")
            self._stream.flush()

    def clear(self):
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def seconds(self):
        return time.monotonic() - self._begin
