"""Webdataset shards: tar files whose consecutive members with one name up to the first dot are a document."""
import os
import re

from ..conversation import Reader
from ..files import MOST_DOCUMENT, read_at, too_long
from ..images import FIRST_BYTES, check_kind, members
from ..problems import Problem, counted, shown
from ..records import Picture, Record
from .fields import MISSING, FieldMap

PICTURES = "jpg,jpeg,png,webp"
META = re.compile(r"__[^/]*__($|/)|(.*/)?(\._[^/]*|\.DS_Store)$")   # notes of other programs and of macOS


def split_name(name):
    """Document and ending: the name up to the first dot after the last slash, and what follows it in small letters."""
    folder, _, last = name.rpartition("/")
    stem, dot, ending = last.partition(".")
    return (f"{folder}/{stem}" if folder else stem), ending.lower() if dot else ""


def documents(shard):
    """(key, {ending: TarInfo}) of each document of a tar file, in order."""
    key, parts = None, {}
    for member in members(shard):
        if META.match(member.name):
            continue
        name, ending = split_name(member.name)
        if name != key:
            if parts:
                yield key, parts
            key, parts = name, {}
        if ending in parts:
            raise Problem(shard, f"document {key} has two members {ending}", "make the shard anew")
        parts[ending] = member
    if parts:
        yield key, parts


class Webdataset:
    needs_images = False   # a document without a picture is text alone
    one_picture = False    # a document with several, of which nobody says that one is taken, is refused

    def __init__(self, inputs, options):
        self._options, self.one_picture = options, not options.fields
        spellings = options.fields or [("image", PICTURES), ("text", "txt")]
        self._map = FieldMap(spellings, "--field")
        # Path, name in its folder, documents that are left out, and how many it must have, if that is known.
        self._shards = [(path, path, frozenset(), None) for path in inputs]

    def settings(self):
        fields = [("image", access) for access in self._map.images] + list(self._map.others.items())
        return [("fields", "  ".join(f"{name}={access.spelling}" for name, access in fields))]

    def files(self):
        return [path for path, *_ in self._shards]

    def size(self):
        return sum(os.path.getsize(shard[0]) for shard in self._shards)

    def tasks(self):
        for shard in self._shards:
            yield os.path.getsize(shard[0]), shard

    def read(self, task):
        path, name, left_out, count = task
        found = 0
        for key, parts in documents(path):
            found += 1
            if f"{name}/{key}" in left_out:
                continue
            try:
                yield self._record(path, key, parts)
            except Problem as problem:
                yield problem
        if count not in (None, found):
            raise Problem(path, f"it has {counted(found, 'document')}, and .nv-meta says {count:,}",
                          "fetch the shard anew, or run `energon prepare` again")

    def _record(self, path, key, parts):
        place = f"{path}: document {key}"
        pictures, passed_over = self._pictures(path, parts, place)
        readers = {ending: (lambda member=member: self._member(path, member, place)) for ending, member in
                   parts.items()}
        values = {name: access.value(readers, place) for name, access in self._map.others.items()}
        missing = [self._map.others[name].spelling for name, value in values.items() if value is MISSING]
        if missing:
            raise Problem(place, f"expected a member {' and '.join(missing)}, found {', '.join(parts)}",
                          "say by --field which members a document has", kind="fields")
        unused = tuple(f".{ending}" for ending in parts if ending in passed_over or ending not in self._map.used())
        record = Record(place, unused=unused)
        # As everywhere in shards, images stand before a text that says nothing else.
        reader = Reader(None, self._options.lists, images_first=True)
        if "messages" in values:
            return reader.conversation(record, values["messages"], "messages", pictures)
        if "context" in values:
            turns = [{"role": "user", "content": self._text(values["context"], f"{place}: context")},
                     {"role": "assistant", "content": self._answer(values["answers"], place)}]
            return reader.conversation(record, turns, "context", pictures)
        return reader.text_record(record, next(iter(values.values())), pictures)

    @staticmethod
    def _member(path, member, place):
        if member.size > MOST_DOCUMENT:
            raise too_long(place, f"a member {member.name}")
        return read_at(path, member.offset_data, member.size)

    def _pictures(self, path, parts, place):
        """Those that the fields name, and the endings of others from which a field had to choose."""
        pictures, taken, others = [], set(), set()
        for access in self._map.images:
            if self.needs_images and access.endings().isdisjoint(parts):
                raise Problem(place, f"expected a member {access.spelling}, found {', '.join(parts)}",
                              "the field map says that each document has it", kind="fields")
            there = [ending for ending, _ in access.options if ending in parts]
            if self.one_picture and len(there) > 1:
                raise Problem(place, f"it has {counted(len(there), 'picture')}: {', '.join(there)}",
                              "say by --field which is taken: --field image=jpg --field text=txt", kind="images")
            for ending in there[:1]:
                member = parts[ending]
                check_kind(read_at(path, member.offset_data, min(member.size, FIRST_BYTES)),
                           f"{path}: {member.name}", place)
                pictures.append(Picture(path, member.name))
            taken.update(there[:1])
            others.update(there[1:])
        return pictures, others - taken

    @staticmethod
    def _text(value, place):
        if not isinstance(value, str):
            raise Problem(place, f"expected a text, found {shown(value)}", "see the field map", kind="fields")
        return value

    def _answer(self, value, place):
        if isinstance(value, list):
            if len(value) != 1:
                raise Problem(f"{place}: answers", f"expected one answer, found {len(value)}",
                              "choose one, as answers=json[answers][0]", kind="fields")
            value = value[0]
        return self._text(value, f"{place}: answers")
