"""Inputs as people have them. Each format has a class with

  __init__(inputs, options)   raises Problem
  settings()                  what was taken, as (name, value), for people
  files()                     what is read, but for pictures
  size()                      all input, in bytes
  tasks()                     (bytes of input, task): small, in order; the process that writes makes them
  read(task)                  the records of a task in order, and a Problem for each that is none: a worker does it
"""
import glob
import itertools
import json
import os

from ..problems import PROGRAM, Problem
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


PICTURES = (".jpg", ".jpeg", ".png", ".webp")
LOOKED_AT = 1000   # entries of a folder


def picture_of(path):
    """A picture: `path` itself, or one of the first in this folder or in a folder of it; None if there is none."""
    if not os.path.isdir(path):
        return path if path.lower().endswith(PICTURES) else None
    names = itertools.chain(glob.iglob(os.path.join(glob.escape(path), "*")),
                            glob.iglob(os.path.join(glob.escape(path), "*", "*")))
    return next((name for name in itertools.islice(names, LOOKED_AT) if name.lower().endswith(PICTURES)), None)


def unknown(path):
    """The Problem of an input of which nothing says what it is."""
    picture = picture_of(path)
    if picture is None:
        return Problem(path, "nothing in its name says what it is", f"give --format: {', '.join(FORMATS)}")
    line = {"images": [os.path.relpath(picture)],
            "messages": [{"role": "user", "content": "<image>\nWhat is this?"},
                         {"role": "assistant", "content": "..."}]}
    what = "a folder of pictures" if os.path.isdir(path) else "a picture"
    return Problem(path, f"expected documents, found {what}",
                   "write a file with a line for each picture, such as "
                   f"{json.dumps(line, ensure_ascii=False)}, and name it: {PROGRAM} ... captions.jsonl "
                   "(docs/training/prepare_data.md#inputs)")


def choose(inputs, wanted):
    """The name of the inputs' format, and how it was found."""
    if wanted is not None:
        return wanted, "--format"
    found = {path: guess(path) for path in inputs}
    for path, what in found.items():
        if what is None:
            raise unknown(path)
    kinds = sorted({what[0] for what in found.values()})
    if len(kinds) > 1:
        raise Problem("inputs", f"they are of several formats: {', '.join(kinds)}",
                      "prepare each format by itself, or give --format")
    return kinds[0], next(iter(found.values()))[1]
