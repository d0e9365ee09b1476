"""A whole run: inputs -> records -> ids and masks -> shards, or the reasons why not."""
import array
import collections
import dataclasses
import errno
import json
import os
import shutil
import sys
import tempfile

from . import prepared, show
from .arguments import only_for
from .encode import Encoded
from .files import check_unchanged, stamp
from .formats import FORMATS, choose
from .images import kind_of
from .load import load
from .pieces import pieces
from .problems import Problem, Problems, counted, unexpected
from .progress import Progress, duration
from .shards import Reference, ShardWriter
from .workers import in_order

MOST_PROBLEMS = 20       # that are listed
LOOKED_FURTHER = 10_000  # documents after the first problem
SHOWN_HEADING = 60       # of what is learnt before the assistant's text
SHOWN = 2000             # characters of the document that is shown at the end


@dataclasses.dataclass
class Packed:
    """A document as bytes, ready for a shard, and what it counts."""
    place: str
    tok: bytes
    mask: bytes | None
    pictures: list
    kinds: list            # of pictures that are bytes
    learnt: int
    literal: dict
    unused: tuple
    unknown: int
    heading: str


@dataclasses.dataclass
class Counts:
    documents: int = 0
    tokens: int = 0
    learnt: int = 0
    images: int = 0
    cut: int = 0           # of those, images that plainly end too early
    first_cut: str = ""
    refused: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    literal: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    unused: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    unknown: int = 0
    headings: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def add(self, packed):
        self.documents += 1
        self.tokens += len(packed.tok) // 4
        self.learnt += packed.learnt
        self.images += len(packed.pictures)
        for picture in packed.pictures:
            self.cut += picture.is_cut
            self.first_cut = self.first_cut or (picture.name() if picture.is_cut else "")
        self.literal.update(packed.literal)
        self.unused.update(packed.unused)
        self.unknown += packed.unknown
        self.headings.update([packed.heading] if packed.heading else [])


def pack(place, encoded):
    ids = array.array("I", encoded.ids)
    if sys.byteorder == "big":
        ids.byteswap()
    for picture in encoded.pictures:
        try:
            (picture.path + picture.member).encode()
        except UnicodeEncodeError as error:
            raise Problem(place, f"the name of an image is not UTF-8: {picture.name()}", "rename it",
                          kind="images") from error
    in_place = [picture for picture in encoded.pictures if not picture.path]
    if in_place and len(in_place) != len(encoded.pictures):
        raise Problem(place, f"{len(in_place)} of {len(encoded.pictures)} images are bytes, the others files",
                      "a document has one or the other", kind="images")
    return Packed(place, ids.tobytes(), None if encoded.mask is None else bytes(encoded.mask), encoded.pictures,
                  [kind_of(picture.data) for picture in in_place], encoded.learnt(), encoded.literal, encoded.unused,
                  encoded.unknown, encoded.heading)


def encode_all(source, encoder):
    """What a worker does with a task: a list of Packed, or Problem, one for each record."""
    def work(task):
        found = []
        try:
            for record in source.read(task):
                try:
                    found.append(record if isinstance(record, Problem) else
                                 pack(record.place, encoder.encode(record)))
                except Problem as problem:
                    found.append(problem)
                    if problem.stops:
                        break
        except Problem as problem:   # of a whole file: no document of it counts
            problem.kind = None
            found.append(problem)
        except (MemoryError, RecursionError) as error:
            found.append(Problem("INPUT", f"it is too large or too deep to read at once: {type(error).__name__}",
                                 "divide it, or give fewer --jobs", kind=None))
        except Exception as error:   # which would end the process that works, and say nothing of the input
            found.append(unexpected(error))
        return found
    return work


class Run:
    def __init__(self, options, out, err):
        self._options, self._stdout, self._stderr = options, out, err
        name, why = choose(options.inputs, options.format)
        wrong = only_for(options, name)
        if wrong:
            raise Problems(wrong)
        self._loaded = load(options)
        self._source = FORMATS[name](options.inputs, options)
        self._say([("format", f"{name} ({why})"), *self._source.settings(), *self._loaded.settings])

    def _say(self, settings):
        width = max(len(name) for name, _ in settings)
        for name, value in settings:
            print(f"{name:<{width}}  {value}", file=self._stdout)
        self._stdout.flush()

    def show(self, number):
        """Prints document `number` and writes nothing. Documents before it are read, and not encoded."""
        at = 0
        for _, task in self._source.tasks():
            for record in self._source.read(task):
                if at == number:
                    if isinstance(record, Problem):
                        raise record
                    self._print(record.place, self._loaded.encoder.encode(record), None)
                    return
                at += 1
        raise Problem("--show", f"there is no document {number}", f"the input has {at:,}, counted from 0")

    def _print(self, place, encoded, most):
        loaded = self._loaded
        names = pieces(loaded.tokenizer, loaded.vocabulary, loaded.others())
        print(show.document(place, encoded, loaded.ids["image"].id, names, show.wants_colour(self._stdout), most),
              file=self._stdout)

    def prepare(self):
        out = os.path.abspath(self._options.out)
        parent, name = os.path.split(out)
        for left in sorted(entry for entry in os.listdir(parent) if entry.startswith(f".{name}.part-")):
            print(f"note: {os.path.join(parent, left)} is what a run left that was killed; nothing reads it",
                  file=self._stderr)
        part = tempfile.mkdtemp(prefix=f".{name}.part-", dir=parent)
        try:
            os.chmod(part, 0o777 & ~umask())
            counts, progress = self._write(part, out)
            os.rename(part, out)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise Problem(self._options.out, "it was made meanwhile, and is not overwritten",
                              "name another") from error
            raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
        self._report(counts, progress)

    def _write(self, part, out):
        options, loaded = self._options, self._loaded
        progress, counts, problems = Progress(self._source.size(), self._stderr), Counts(), []
        before = {path: stamp(path) for path in self._source.files()}
        writer = ShardWriter(part, options.name, options.shard_documents, options.shard_bytes, Reference(out))
        number, first_problem, refused, self._example = 0, None, [], None
        results = in_order(encode_all(self._source, loaded.encoder), self._source.tasks(), options.jobs)
        try:
            for weight, found in results:
                for packed in found:
                    key, number = f"{number:09}", number + 1
                    if not isinstance(packed, Problem):
                        if not problems:
                            writer.add(key, packed)
                            self._remember(packed)
                        counts.add(packed)
                    elif options.refused == "skip" and packed.kind is not None:
                        counts.refused[packed.kind] += 1
                        refused.append({"document": number - 1, "place": packed.place, "kind": packed.kind,
                                        "what": packed.what})
                    else:
                        first_problem = first_problem or number
                        problems.append(packed)
                progress.add(weight, counts.documents)
                if problems and (len(problems) >= MOST_PROBLEMS or number - first_problem > LOOKED_FURTHER or
                                 problems[-1].stops):
                    raise Problems(problems[:MOST_PROBLEMS], f"the list ends after {counted(number, 'document')}")
        finally:
            results.close()
            writer.close()
            progress.clear()
        if problems:
            raise Problems(problems)
        check_unchanged(before)
        if not counts.documents:
            inputs = self._options.inputs
            raise Problem(", ".join(inputs[:3]) + (f" and {len(inputs) - 3:,} more" if len(inputs) > 3 else ""),
                          "there is no document in " + ("it" if len(inputs) == 1 else "them") +
                          (f": {counted(number, 'document')} refused" if number else ""),
                          "look at the " + ("file" if len(inputs) == 1 else "files"))
        if refused:
            with open(os.path.join(part, "refused.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in refused)
        self._pieces = pieces(loaded.tokenizer, loaded.vocabulary, loaded.others())
        prepared.write(part, prepared.description(loaded.tokenizer, loaded.template, loaded.ids, loaded.vocabulary,
                                                  counts, writer.shards), self._pieces)
        self._shards = writer.shards
        return counts, progress

    def _remember(self, packed):
        """The document that is shown at the end: the first that has a mask, or else the first."""
        if self._example is None or (self._example.mask is None and packed.mask is not None):
            self._example = packed

    def _report(self, counts, progress):
        def say(text):
            print(text, file=self._stdout)
        say("\n" + show.document(self._example.place, unpacked(self._example), self._loaded.ids["image"].id,
                                 self._pieces, show.wants_colour(self._stdout), SHOWN) + "\n")
        if counts.literal:
            say("special tokens in texts, which became plain text (--as-special): " +
                ", ".join(f"{text} {counted(count, 'time')}" for text, count in sorted(counts.literal.items())))
        if counts.unknown:
            token = self._loaded.tokenizer.text_of(self._loaded.tokenizer.unknown)
            say(f"characters that the tokenizer does not know became {token}: {counted(counts.unknown, 'token')}")
        if counts.unused:
            listed = sorted(counts.unused.items(), key=lambda item: (-item[1], item[0]))
            say(show.printable("nothing was made of: " + ", ".join(
                f"{key} ({counted(count, 'document')})" for key, count in listed[:MOST_PROBLEMS]) +
                (f" and {len(listed) - MOST_PROBLEMS:,} more" if len(listed) > MOST_PROBLEMS else "")))
        for kind, count in sorted(counts.refused.items()):
            say(f"refused, {kind}: {counted(count, 'document')} (refused.jsonl)")
        size = sum(shard["bytes"] for shard in self._shards)
        say(f"wrote {self._options.out}: {counted(counts.documents, 'document')}, {counted(counts.tokens, 'token')}, "
            f"{counts.learnt:,} learnt, {counted(counts.images, 'image')}, {counted(len(self._shards), 'shard')} of "
            f"{size:,} bytes")
        if counts.headings:
            heading, count = counts.headings.most_common(1)[0]
            print(show.printable(f"note: in {counted(count, 'document')} the template writes "
                                 f"{heading[:SHOWN_HEADING]!r} before what the assistant says, and reads no "
                                 "add_generation_prompt, so it is learnt: write it in the template for "
                                 "add_generation_prompt too"), file=self._stderr)
        if counts.cut:
            print(show.printable(f"note: {counted(counts.cut, 'image')} of {counts.images:,} end too early, such as "
                                 f"{counts.first_cut}: fetch them again, or their documents are padding in their place "
                                 "(data.damaged: skip)"), file=self._stderr)
        seconds = progress.seconds()
        rate = 1 / max(seconds, 1e-9)
        print(f"{counted(counts.documents, 'document')} in {duration(seconds)}, {counts.documents * rate:,.0f} "
              f"documents/s, {counts.tokens * rate:,.0f} tokens/s", file=self._stderr)


def unpacked(packed):
    """A packed document as `show` takes it."""
    ids = array.array("I", packed.tok)
    if sys.byteorder == "big":
        ids.byteswap()
    return Encoded(list(ids), None if packed.mask is None else list(packed.mask), packed.pictures, {})


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
