"""Files of the input: plain ones alone, as reading a pipe or a device may never end, and bounded, as one document of a
terabyte is none."""
import gzip
import json
import os
import stat
import zlib

from .problems import Problem, shown

MOST_DOCUMENT = 64 << 20   # bytes of a line, a file or a member that is one document; a book has one or two million
MOST_FILE = 512 << 20      # of a tokenizer, a template or another file that is read as a whole
MOST_ARRAY = 8 << 30       # of one JSON array; that of LLaVA has one
GZIP = b"\x1f\x8b"         # no text in UTF-8 begins so


def opened(path):
    """A plain file, open for reading bytes. OSError as open() has it."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)   # opening a pipe would wait for its writer
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Problem(path, "expected a file, found a folder, a pipe or a device", "write it into a plain file")
    file = os.fdopen(number, "rb")
    begin = file.read(32)
    file.seek(0)
    if begin.startswith(b"version https://git-lfs"):
        file.close()
        raise Problem(path, "expected the file, found a pointer of Git LFS", "fetch it: `git lfs pull` in its folder")
    return file


class Lines:
    """A file of texts, which may be compressed by gzip: that is said by its first bytes, not by its name. Its damage is
    a Problem."""

    def __init__(self, path):
        self._path, self._raw = path, opened(path)
        packed = self._raw.read(2) == GZIP
        self._raw.seek(0)
        self._file = gzip.GzipFile(fileobj=self._raw) if packed else self._raw
        self._told = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._raw.close()

    def _read(self, act, most):
        try:
            return act(most)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Problem(self._path, f"the gzip file is damaged: {str(error) or 'it ends too early'}",
                          "fetch it anew", kind=None) from error

    def read(self, most):
        return self._read(self._file.read, most)

    def readline(self, most):
        return self._read(self._file.readline, most)

    def taken(self):
        """Bytes of the file that were read since this was asked last."""
        now = self._raw.tell()
        before, self._told = self._told, now
        return now - before


def not_utf8(data, error, place, kind):
    """What a text is that is not in UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Problem(place, "expected UTF-8, found UTF-16", "convert the file: iconv -f UTF-16 -t UTF-8", kind=kind)
    return Problem(place, f"expected UTF-8, found byte {data[error.start]:#04x} at byte {error.start + 1}",
                   "convert the file: iconv -f LATIN1 -t UTF-8", kind=kind)


def whole(path, most=MOST_FILE):
    """All of a file that is not larger than `most`."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Problem(path, f"it has more than {most:,} bytes", "no such file is so large")
    return data


class Twice(ValueError):
    """An object of JSON has a key twice. Which of the two counts, programs do not agree on."""


def once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set()
        raise Twice("the key " + repr(next(key for key, _ in pairs if key in seen or seen.add(key))) +
                    " stands twice in one object")
    return found


def parsed_once(text):
    """The value of a text of JSON. ValueError: it is none, or an object has a key twice (Twice)."""
    return json.loads(text, object_pairs_hook=once)


def stamp(path):
    """What changes where a file is written: its number, size and time."""
    about = os.stat(path)
    return about.st_ino, about.st_size, about.st_mtime_ns


def check_unchanged(before):
    """`before`: stamps of files by their paths."""
    for path, known in before.items():
        if stamp(path) != known:
            raise Problem(path, "it was changed while it was read, so nobody knows what is missing",
                          "wait until it is whole")


def too_long(place, what):
    return Problem(place, f"{what} of more than {MOST_DOCUMENT:,} bytes", "divide the document", kind="too long")


def line_chunks(path, size):
    """(bytes of the file, number of the first line, lines) of a file of texts, each about `size` bytes of lines. A line
    of more than MOST_DOCUMENT bytes is None."""
    with Lines(path) as file:
        number = 1
        while True:
            lines, taken = [], 0
            while taken < size:
                line = file.readline(MOST_DOCUMENT + 1)
                if not line:
                    break
                taken += len(line)
                if len(line) <= MOST_DOCUMENT:
                    lines.append(line)
                    continue
                lines.append(None)
                while line and not line.endswith(b"\n"):
                    line = file.readline(1 << 20)
                    taken += len(line)
            if not lines:
                return
            yield file.taken(), number, lines
            number += len(lines)


def read_at(path, offset, size):
    """Bytes of a file that are known to be there."""
    with opened(path) as file:
        file.seek(offset)
        data = file.read(size)
    if len(data) != size:
        raise Problem(path, f"it ends at byte {offset + len(data):,}, and had {offset + size:,} when its headers were "
                      "read", "do not change the input meanwhile", kind=None)
    return data


def read(path):
    """All of a file that an argument names, or that lies beside it."""
    try:
        return whole(path)
    except OSError as error:
        raise Problem(path, f"it cannot be read: {error.strerror}", "look at its path") from error


def read_config(path):
    """The JSON object of a file."""
    try:
        value = json.loads(read(path))
    except ValueError as error:
        raise Problem(path, f"expected JSON, found something else: {error}", "fetch it anew") from error
    if not isinstance(value, dict):
        raise Problem(path, f"expected an object, found {shown(value)}", "fetch it anew")
    return value
