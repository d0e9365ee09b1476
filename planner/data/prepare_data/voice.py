"""What is said to people, on streams that may be closed, full or of few characters. What is not said ends nothing."""
import locale
import os
import sys


def keep_first_files():
    """Opens what stdin, stdout and stderr are if they are closed: else the next file, such as a shard, would be it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)   # gets the lowest number that is free


def encoding():
    """Of the terminal, by the locale; UTF-8 if that knows ASCII alone."""
    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        return "utf-8"
    name = locale.nl_langinfo(locale.CODESET)
    return "utf-8" if name in ("ANSI_X3.4-1968", "US-ASCII", "") else name


class Voice:
    """Writes to a stream, or to nobody if there is none. `lost`: why something was not said, or None."""

    def __init__(self, stream, number):
        self._stream, self._number, self.lost = stream, number, None
        if stream is None:
            self.lost = "it is closed"
        elif hasattr(stream, "reconfigure"):
            given = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
            try:
                stream.reconfigure(encoding=given or encoding(), errors="backslashreplace")
            except LookupError:   # a locale of which Python knows nothing
                stream.reconfigure(errors="backslashreplace")

    def write(self, text):
        if self.lost is None:
            self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self):
        if self.lost is None:
            self._try(self._stream.flush)

    def isatty(self):
        return self.lost is None and self._stream.isatty()

    def _try(self, act):
        try:
            act()
        except (OSError, ValueError) as error:
            self.lost = getattr(error, "strerror", None) or str(error)
            if self._stream in (sys.__stdout__, sys.__stderr__):   # what is left in it goes nowhere, and says nothing
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._number)
                os.close(nowhere)
