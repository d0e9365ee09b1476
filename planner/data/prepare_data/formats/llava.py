"""LLaVA: one JSON array of {id, image, conversations}, with images in a folder."""
import os

from ..conversation import Reader
from ..files import MOST_ARRAY, Lines
from ..images import Folder
from ..problems import Problem, shown
from .jsonl import parsed

CHUNK = 256  # records that a worker takes at once


class Llava:
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
            with Lines(path) as file:
                data, size = file.read(MOST_ARRAY + 1), file.taken()
            if len(data) > MOST_ARRAY:
                raise Problem(path, f"one JSON array of more than {MOST_ARRAY:,} bytes",
                              "write JSONL, an object a line")
            records = parsed(data.removeprefix(b"\xef\xbb\xbf"), path)
            if not isinstance(records, list):
                raise Problem(path, f"expected one JSON array of documents, found {shown(records)}",
                              "is it JSONL? then give --format jsonl")
            for first in range(0, len(records), CHUNK):
                chunk = records[first:first + CHUNK]
                yield size * len(chunk) / len(records), (path, first, chunk)

    def read(self, task):
        path, first, records = task
        folder = Folder(self._options.images or os.path.dirname(path))
        reader = Reader(folder.find, self._options.lists, self._options.images_first)
        for number, value in enumerate(records, first):
            name = value.get("id") if isinstance(value, dict) else None
            place = f"{path}: record {number}" + (f" (id {name})" if isinstance(name, (str, int)) else "")
            try:
                yield reader.record(value, place)
            except Problem as problem:
                yield problem
