"""Inputs as people have them. Each format has a class with

  __init__(inputs, options)   raises Problem
  settings()                  what was taken, as (name, value), for people
  files()                     what is read, but for pictures
  size()                      all input, in bytes
  tasks()                     (bytes of input, task): small, in order; the process that writes makes them
  read(task)                  the records of a task in order, and a Problem for each that is none: a worker does it
"""
import glob
import os

from ..problems import Problem
from . import energon, jsonl, llava, parquet, text, webdataset

FORMATS = {"jsonl": jsonl.Jsonl, "llava": llava.Llava, "jsonl_media": jsonl.JsonlMedia, "parquet": parquet.Parquet,
           "text": text.Text, "webdataset": webdataset.Webdataset, "energon": energon.Energon}
ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "llava", ".parquet": "parquet", ".txt": "text",
           ".tar": "webdataset", ".tgz": "webdataset"}
PACKED = {".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip"}   # gzip is read


def guess(path):
    """The format of one input, and why; None if nothing says it."""
    if os.path.isdir(path):
        if os.path.isdir(os.path.join(path, ".nv-meta")):
            return "energon", "it has a folder .nv-meta"
        if os.path.isdir(os.path.join(path, "media")) and len(jsonl.json_lines(path)) == 1:
            return "jsonl_media", "it has a JSONL file and a folder media"
        return None
    stem, ending = os.path.splitext(path.lower())
    if ending in PACKED:
        raise Problem(path, "it is compressed in a way that is not read", f"unpack it: {PACKED[ending]}")
    if ending == ".gz":
        ending = os.path.splitext(stem)[1]
    if ending == ".jsonl" and glob.glob(os.path.join(glob.escape(os.path.dirname(path)), "media", "shard_*.tar")):
        return "jsonl_media", "media/shard_*.tar lies beside it"
    found = path[len(path.lower().rpartition(ending)[0]):] if ending in ENDINGS else ""
    return (ENDINGS[ending], f"its name ends with {found}") if found else None


def choose(inputs, wanted):
    """The name of the inputs' format, and how it was found."""
    if wanted is not None:
        return wanted, "--format"
    found = {path: guess(path) for path in inputs}
    for path, what in found.items():
        if what is None:
            raise Problem(path, "nothing in its name says what it is", f"give --format: {', '.join(FORMATS)}")
    kinds = sorted({what[0] for what in found.values()})
    if len(kinds) > 1:
        raise Problem("inputs", f"they are of several formats: {', '.join(kinds)}",
                      "prepare each format by itself, or give --format")
    return kinds[0], next(iter(found.values()))[1]
