"""JSONL: a JSON object a line; images are files, or members of media/shard_*.tar beside it (jsonl_media)."""
import glob
import json
import os

from ..conversation import Reader
from ..files import Twice, line_chunks, not_utf8, parsed_once, too_long
from ..images import Folder, Media
from ..problems import Problem

CHUNK = 1 << 18  # bytes of lines that a worker takes at once


def parsed(line, place):
    """The value of one line or file of JSON."""
    try:
        return parsed_once(line.decode())
    except UnicodeDecodeError as error:
        raise not_utf8(line, error, place, "no JSON") from error
    except Twice as error:
        raise Problem(place, str(error), "name it once", kind="no JSON") from error
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise Problem(place, f"expected JSON, found something else at {at}: {error.msg}",
                      "write the file by a JSON library", kind="no JSON") from error
    except (ValueError, RecursionError) as error:
        raise Problem(place, f"the JSON is too large to read: {error}", "leave it out", kind="no JSON") from error


def json_lines(folder):
    """The JSONL files of a folder."""
    return sorted(path for ending in ("", ".gz") for path in
                  glob.glob(os.path.join(glob.escape(folder), "*.jsonl" + ending)))


class Jsonl:
    def __init__(self, inputs, options):
        self._inputs, self._options = inputs, options

    def settings(self):
        return [("images", self._options.images or "beside each file")]

    def files(self):
        return self._inputs

    def size(self):
        return sum(os.path.getsize(path) for path in self._inputs)

    def tasks(self):
        for path in self._inputs:
            for size, line, lines in line_chunks(path, CHUNK):
                yield size, (path, line, lines)

    def _finder(self, path):
        return Folder(self._options.images or os.path.dirname(path))

    def read(self, task):
        path, first, lines = task
        reader = Reader(self._finder(path).find, self._options.lists, self._options.images_first)
        for number, line in enumerate(lines, first):
            if line is None:
                yield too_long(f"{path}:{number}", "a line")
                continue
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if line.strip():
                try:
                    yield reader.record(parsed(line, f"{path}:{number}"), f"{path}:{number}")
                except Problem as problem:
                    yield problem


class JsonlMedia(Jsonl):
    """Inputs are JSONL files, or folders with one and a folder media."""

    def __init__(self, inputs, options):
        files = []
        for path in inputs:
            if os.path.isdir(path):
                found = json_lines(path)
                if len(found) != 1:
                    raise Problem(path, f"expected one JSONL file in the folder, found {len(found)}",
                                  "name the files themselves")
                path = found[0]
            files.append(path)
        super().__init__(files, options)
        self._media, self._count = {}, 0
        for path in files:
            folder = options.images or os.path.join(os.path.dirname(path), "media")
            if folder not in self._media:
                shards = sorted(glob.glob(os.path.join(glob.escape(folder), "shard_*.tar")))
                if not shards:
                    raise Problem(folder, "expected tar files media/shard_*.tar, found none",
                                  "give their folder by --images, or --format jsonl if images are files")
                self._media[folder] = Media(shards)
                self._count += len(shards)

    def settings(self):
        return [("images", f"{self._count} tar files of {', '.join(self._media)}")]

    def _finder(self, path):
        return self._media[self._options.images or os.path.join(os.path.dirname(path), "media")]
