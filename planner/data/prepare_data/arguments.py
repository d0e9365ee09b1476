"""The command line: what may be said, and everything that is wrong with it, in one list."""
import argparse
import datetime
import json
import os
import re

from .conversation import GIVEN
from .formats import FORMATS
from .problems import PROGRAM, Problem, Problems
from .workers import MOST_JOBS

USAGE = f"{PROGRAM} --tokenizer FOLDER -o OUT INPUT..."
TEXT = """Makes shards of token ids from conversations, texts and pictures, for `data.kind: sources` with
`tokenizer: ids`. OUT gets tar files, prepared.json and pieces.json. Pictures stay where they are, and OUT points to
them; those of parquet are written into OUT. docs/training/prepare_data.md is the tour."""
FORMAT_HELP = """what the inputs are; without it their names say it:
jsonl        *.jsonl: {"messages": [...]}, {"conversations": [...]} or {"text": ...} a line, images beside it;
             texts may be compressed by gzip: *.jsonl.gz, *.json.gz, *.txt.gz
jsonl_media  a folder with one *.jsonl and media/shard_*.tar, or such a file
llava        *.json: one array of {id, image, conversations}
parquet      *.parquet: messages, conversations or text with image bytes; texts and images of OBELICS or of
             The Cauldron
text         *.txt: a document a file, or a line (--lines)
webdataset   *.tar: jpg, png or webp and txt, or what --field says
energon      a folder with .nv-meta"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Problem("arguments", message, f"`{PROGRAM} --help` lists them all")


def parser():
    p = Parser(prog=PROGRAM, usage=USAGE, description=TEXT, allow_abbrev=False,
               formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("inputs", nargs="*", metavar="INPUT", help="files or folders, all of one format")
    p.add_argument("-o", "--out", metavar="OUT", help="the folder to make; it must not exist")
    p.add_argument("--show", metavar="N", help="print document N (from 0) with its mask, and write nothing")

    what = p.add_argument_group("inputs")
    what.add_argument("--format", choices=FORMATS, help=FORMAT_HELP)
    what.add_argument("--images", metavar="FOLDER", help="where relative paths of images begin; of jsonl_media: where\n"
                      "its tar files are (default: beside each input)")
    what.add_argument("--images-first", action="store_true", help="put the marks of a text that has none before it")
    what.add_argument("--field", action="append", metavar="NAME=MEMBER", default=[],
                      help="of webdataset: image=jpg, text=txt, messages=json[conversations],\n"
                      "context=json[0][value] with answers=json[1][value]; as in Energon's field_map")
    what.add_argument("--split", help="of energon: the part of split.yaml (default: train)")
    what.add_argument("--lines", action="store_true", help="of text: each line is a document")

    how = p.add_argument_group("tokens")
    how.add_argument("--tokenizer", metavar="PATH", help="a tokenizer.json, or a folder with one")
    for role, text in (("image", "an image"), ("pad", "padding"), ("end", "the end of a document")):
        how.add_argument(f"--{role}-token", metavar="TOKEN", help=f"the token of {text}: its text or its id")
    how.add_argument("--begin-token", metavar="TOKEN", help="the token before a text, or none\n"
                     "(default: what the tokenizer puts there)")
    how.add_argument("--append-end", choices=("texts", "all", "none"), default="texts",
                     help="which documents get the end token (default: texts; templates end conversations)")
    how.add_argument("--as-special", action="append", metavar="TOKEN", default=[],
                     help="a special token that means itself where a text has it, or all\n"
                     "(default: texts have plain text)")

    chat = p.add_argument_group("conversations")
    chat.add_argument("--template", metavar="FILE", help="a chat template (.jinja), or a tokenizer_config.json\n"
                      "with one (default: those beside the tokenizer)")
    chat.add_argument("--template-name", metavar="NAME", help="which of several named templates (default: tool_use\n"
                      "for documents with tools, default for others)")
    chat.add_argument("--template-set", action="append", metavar="KEY=JSON", default=[],
                      help="a variable of the template, as enable_thinking=false; a document's own ones, in its\n"
                      "chat_template_kwargs, come before it")
    chat.add_argument("--date", metavar="YYYY-MM-DD", help="today, for templates that write it")
    chat.add_argument("--lists", action="store_true", help="give the template content as lists of text and image, as\n"
                      "templates of vision models read it")
    chat.add_argument("--learn", choices=("assistant", "last", "all"),
                      help="whose turns are learnt: all of the assistant (default), its last one, everything")
    chat.add_argument("--refused", choices=("error", "skip"), default="error",
                      help="documents that cannot be prepared: an error (default), or leave them out, count\n"
                      "them, and list them in OUT/refused.jsonl")

    out = p.add_argument_group("shards")
    out.add_argument("--name", help="of the shards: NAME-000000.tar (default: the name of OUT)")
    out.add_argument("--shard-documents", metavar="N", default="10000",
                     help="documents of a shard, at most (default: 10000)")
    out.add_argument("--shard-bytes", metavar="N", default="1G",
                     help="bytes of a shard, at most, with K, M or G (default: 1G)")
    out.add_argument("--jobs", metavar="N", help=f"processes, 1 to {MOST_JOBS} (default: one for each core);\n"
                     "the bytes stay the same")
    return p


def number(argument, text, least, suffixes=False, most=None):
    match = re.fullmatch(r"(\d{1,15})([KMG]?)", text, re.ASCII)
    value = int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]] if match else -1
    if value < least or (match[2] and not suffixes) or (most is not None and value > most):
        raise Problem(argument, f"expected a whole number from {least} " + ("on" if most is None else f"to {most}") +
                      (", with K, M or G" if suffixes else "") + f", found {text!r}")
    return value


def pairs(argument, values, example):
    found = []
    for value in values:
        name, equals, rest = value.partition("=")
        if not name or not equals or not rest:
            raise Problem(argument, f"expected {example}, found {value!r}")
        found.append((name, rest))
    return found


def template_variables(values):
    found = {}
    for name, text in pairs("--template-set", values, "KEY=JSON"):
        if not name.isidentifier() or name in GIVEN:
            raise Problem("--template-set", f"expected a name of a variable that is not set here, found {name!r}")
        try:
            found[name] = json.loads(text)
        except ValueError as error:
            raise Problem("--template-set", f"{name}: expected JSON, found {text!r}", "quote a text: KEY='\"text\"'"
                          ) from error
    return found


def date(text):
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise Problem("--date", f"expected a date as 2026-01-31, found {text!r}") from error


def only_for(options, kind):
    """An option of another format would do nothing, so it is a mistake."""
    objects = ("jsonl", "jsonl_media", "llava", "parquet")
    turns = (*objects, "webdataset", "energon")
    given = (("--field", options.field, ("webdataset", "energon")), ("--lines", options.lines, ("text",)),
             ("--split", options.split, ("energon",)), ("--images", options.images, objects),
             ("--images-first", options.images_first, objects), ("--learn", options.learn, turns),
             ("--lists", options.lists, turns), ("--template-set", options.template_set, turns),
             ("--date", options.date, turns))
    return [Problem(argument, f"it is for {', '.join(kinds)}, and the inputs are {kind}", "leave it out")
            for argument, value, kinds in given if value and kind not in kinds]


def parse(words):
    """The options, with checked values. Raises Problems with all that is wrong."""
    options = parser().parse_args(words)
    problems = []

    def take(name, convert, *rest):
        try:
            setattr(options, name, convert(*rest))
        except Problem as problem:
            problems.append(problem)
    if not options.inputs:
        problems.append(Problem("INPUT", "expected files or folders, found none", USAGE))
    for path in options.inputs:
        if not os.path.exists(path):
            problems.append(Problem(path, "there is no such file or folder",
                                    "the shell expands * and {}, if they are not quoted"))
        elif not os.path.isdir(path) and not os.path.isfile(path):
            problems.append(Problem(path, "expected a file or a folder, found a pipe or a device",
                                    "write it into a plain file"))
        elif os.path.isdir(path) and options.format not in (None, "energon", "jsonl_media"):
            problems.append(Problem(path, f"expected a file for --format {options.format}, found a folder",
                                    "name the files in it"))
    if options.tokenizer is None:
        problems.append(Problem("--tokenizer", "expected a tokenizer.json or a folder with one, found none", USAGE))
    if options.images is not None and not os.path.isdir(options.images):
        problems.append(Problem("--images", f"there is no folder {options.images}"))
    if (options.out is None) == (options.show is None):
        problems.append(Problem("--out", "expected either --out OUT or --show N, found " +
                                ("neither" if options.out is None else "both")))
    if options.out is not None:
        out = os.path.abspath(options.out)
        if os.path.lexists(out):
            problems.append(Problem(options.out, "it is there already, and is not overwritten",
                                    "remove it, or name another"))
        elif not os.path.isdir(os.path.dirname(out)):
            problems.append(Problem(options.out, f"there is no folder {os.path.dirname(out)} to make it in",
                                    "make that first"))
        options.name = options.name or os.path.basename(out)
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", options.name):
            problems.append(Problem("--name", f"expected letters, digits, _ and -, found {options.name!r}",
                                    "give --name"))
    if options.show is not None:
        take("show", number, "--show", options.show, 0)
    take("shard_documents", number, "--shard-documents", options.shard_documents, 1)
    take("shard_bytes", number, "--shard-bytes", options.shard_bytes, 1, True)
    cores = min(len(os.sched_getaffinity(0)), MOST_JOBS)
    take("jobs", number, "--jobs", options.jobs or str(cores), 1, False, MOST_JOBS)
    take("fields", pairs, "--field", options.field, "NAME=MEMBER")
    take("template_set", template_variables, options.template_set)
    if options.date is not None:
        take("date", date, options.date)
    if problems:
        raise Problems(problems)
    return options
