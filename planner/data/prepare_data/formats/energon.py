"""A folder that Megatron-Energon has prepared: .nv-meta/dataset.yaml says the fields, split.yaml the shards.

Samples that Python code makes (sample loaders, cookers of crude data sets) are refused by name: that code is not run.
"""
import itertools
import os
import re

from ..files import whole
from ..problems import Problem, shown
from .fields import FieldMap
from .webdataset import Webdataset

SAMPLES = {"CaptioningSample": {"image", "caption"}, "VQASample": {"image", "context", "answers"},
           "TextSample": {"text"}}
MOST_NAMES = 1_000_000   # that braces of split.yaml may make
RANGE = re.compile(r"\{(-?\d+)\.\.(-?\d+)")


def read_yaml(path):
    import yaml
    try:
        value = yaml.safe_load(whole(path))
    except FileNotFoundError as error:
        raise Problem(path, "there is no such file", "run `energon prepare` on the folder") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Problem(path + (f":{mark.line + 1}" if mark else ""), f"expected YAML, found something else: "
                      f"{getattr(error, 'problem', error)}", "run `energon prepare` again") from error
    if not isinstance(value, dict):
        raise Problem(path, f"expected keys and values, found {shown(value)}", "run `energon prepare` again")
    return value


def fields_of(path):
    """(name, spelling) of each field of a dataset.yaml."""
    value = read_yaml(path)
    kind = value.get("sample_type") or value
    name = str(kind.get("__class__")) if isinstance(kind, dict) else shown(kind)
    if name.endswith("Webdataset"):   # how data sets were named before they had a sample_type
        name = name.removesuffix("Webdataset") + "Sample"
    crude = any(isinstance(part, dict) and "Crude" in str(part.get("__class__")) for part in (value, kind))
    if crude or "cookers" in value:
        raise Problem(path, "the data set is crude: a cooker, which is Python code, makes its samples, and is not run",
                      "say the fields yourself: --format webdataset --field ...")
    if "sample_loader" in value or "part_filter" in value:
        raise Problem(path, f"sample_loader {value.get('sample_loader')} is Python code, and is not run",
                      "say the fields yourself: --format webdataset --field ...")
    if name not in SAMPLES:
        raise Problem(path, f"expected a sample_type {', '.join(SAMPLES)}, found {name}",
                      "say the fields yourself: --format webdataset --field ...")
    mapped = value.get("field_map")
    if not isinstance(mapped, dict) or not all(isinstance(text, str) for text in mapped.values()):
        raise Problem(path, f"field_map: expected names and fields, found {shown(mapped)}",
                      "run `energon prepare` again")
    more = sorted(set(mapped) - SAMPLES[name])
    if more:
        raise Problem(path, f"field_map: {', '.join(more)} of {name} cannot be taken over",
                      "remove it, or say the fields yourself: --format webdataset --field ...")
    return list(mapped.items())


def shard_counts(folder):
    """How many documents each shard has, by its name, as `energon prepare` counted them; nothing where it did not."""
    for name in (".info.json", ".info.yaml"):
        path = os.path.join(folder, ".nv-meta", name)
        if os.path.isfile(path):
            counts = read_yaml(path).get("shard_counts")   # JSON is YAML too
            if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
                raise Problem(path, f"shard_counts: expected shards and numbers, found {shown(counts)}",
                              "run `energon prepare` again")
            return counts
    return {}


def shards_of(folder, split):
    """(path, name, names of documents that are left out) of each shard of a split."""
    import braceexpand
    path = os.path.join(folder, ".nv-meta", "split.yaml")
    value = read_yaml(path)
    parts = value.get("split_parts")
    if not isinstance(parts, dict) or not isinstance(parts.get(split), list):
        raise Problem(path, f"expected a part {split!r}, found {', '.join(map(str, parts)) if parts else 'none'}",
                      "give --split")
    def expanded(entries):
        for entry in entries:
            for first, last in RANGE.findall(str(entry)):   # which are lists before they are names
                if abs(int(first[:20]) - int(last[:20])) > MOST_NAMES:
                    raise Problem(path, f"it names more than {MOST_NAMES:,} shards or documents", "divide the folder")
        every = itertools.chain.from_iterable(braceexpand.braceexpand(str(entry)) for entry in entries)
        found = list(itertools.islice(every, MOST_NAMES + 1))
        if len(found) > MOST_NAMES:
            raise Problem(path, f"it names more than {MOST_NAMES:,} shards or documents", "divide the folder")
        return found
    left_out = set(expanded(value.get("exclude") or []))
    names = [name for name in expanded(parts[split]) if name not in left_out]
    if not names:
        raise Problem(path, f"part {split!r} has no shards", "give --split")
    for name in names:
        if not os.path.isfile(os.path.join(folder, name)):
            raise Problem(path, f"shard {name} is not in the folder", "run `energon prepare` again")
    documents = frozenset(name for name in left_out if "/" in name)
    counts = shard_counts(folder)
    return [(os.path.join(folder, name), name, documents, counts.get(name)) for name in names]


class Energon(Webdataset):
    needs_images = True

    def __init__(self, inputs, options):
        if options.fields:
            raise Problem("--field", "an Energon folder says its fields itself", "use --format webdataset for others")
        self._options, self._map, self._shards = options, None, []
        self._split = options.split or "train"
        mapped = None
        for folder in inputs:
            if not os.path.isdir(os.path.join(folder, ".nv-meta")):
                raise Problem(folder, "expected a folder with .nv-meta, found none", "run `energon prepare` on it")
            path = os.path.join(folder, ".nv-meta", "dataset.yaml")
            fields = fields_of(path)
            if mapped not in (None, fields):
                raise Problem(path, "its fields are others than those of the folders before it",
                              "prepare the folders one by one")
            mapped = fields
            self._map = FieldMap(fields, path)
            self._shards += shards_of(folder, self._split)

    def settings(self):
        return [("split", self._split), *super().settings()]
