"""Parquet with image bytes: columns messages, conversations or text, with image or images; texts and images, as in
OBELICS or in The Cauldron.

Pictures have no file of their own, so their bytes are written into the shards.
"""
import os

from ..conversation import VARIABLES, Reader
from ..images import Folder, check_kind
from ..problems import Problem, shown
from ..records import MARK, Record

ROWS = 64  # rows that are read at once
USED = ("messages", "conversations", "text", "texts", "image", "images", "tools", VARIABLES)


def arrow():
    import pyarrow
    import pyarrow.parquet
    return pyarrow, pyarrow.parquet


class Parquet:
    def __init__(self, inputs, options):
        pyarrow, parquet = arrow()
        self._options, self._files = options, []
        for path in inputs:
            try:
                file = parquet.ParquetFile(path)
            except (pyarrow.ArrowException, OSError, ValueError) as error:
                raise Problem(path, f"expected a parquet file, found another: {str(error).splitlines()[0]}",
                              "give --format") from error
            columns = file.schema_arrow.names
            if not {"messages", "conversations", "text", "texts"} & set(columns):
                raise Problem(path, "expected a column messages, conversations, text or texts, found " +
                              ", ".join(columns), "rename the columns first")
            sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
            rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            self._files.append((path, columns, sizes, rows))

    def settings(self):
        columns = self._files[0][1]
        unused = [name for name in columns if name not in USED]
        return [("columns", ", ".join(name for name in columns if name in USED) +
                 (f"; not used: {', '.join(unused)}" if unused else ""))]

    def files(self):
        return [path for path, *_ in self._files]

    def size(self):
        return sum(sum(sizes) for _, _, sizes, _ in self._files)

    def tasks(self):
        for path, columns, sizes, rows in self._files:
            first = 0
            for group, size in enumerate(sizes):
                yield size, (path, [name for name in columns if name in USED], group, first, rows[group])
                first += rows[group]

    def read(self, task):
        path, columns, group, number, rows = task
        end = number + rows
        pyarrow, parquet = arrow()
        folder = Folder(self._options.images or os.path.dirname(path))
        reader, before = (Reader(folder.find, self._options.lists, first) for first in
                          (self._options.images_first, True))
        try:
            for batch in parquet.ParquetFile(path).iter_batches(ROWS, [group], columns, use_threads=False):
                for row in batch.to_pylist():
                    place = f"{path}: row {number}"
                    number += 1
                    try:
                        yield checked(reader.record(row, place) if "texts" not in row else
                                      answered(row, place, before) if has_answers(row["texts"]) else
                                      interleaved(row, place, reader))
                    except Problem as problem:
                        yield problem
        except (pyarrow.ArrowException, OSError) as error:
            raise Problem(path, f"row group {group} is damaged: {str(error).splitlines()[0]}",
                          "fetch or write the file anew") from error
        if number != end:
            raise Problem(path, f"row group {group} has {number - end + rows:,} rows, and the file says {rows:,}",
                          "fetch or write the file anew")


def checked(record):
    """Kinds of the pictures that are bytes; files are looked at when they are found."""
    for number, picture in enumerate(record.pictures):
        if not picture.path:
            check_kind(picture.data, f"image {number}", record.place)
    return record


def has_answers(texts):
    return isinstance(texts, list) and any(isinstance(text, dict) for text in texts)


def answered(row, place, reader):
    """The Cauldron: `texts` are questions and answers, one conversation about `images`, which stand before it."""
    turns, unused = [], set()
    for number, pair in enumerate(row["texts"]):
        if not isinstance(pair, dict) or not all(isinstance(pair.get(key), str) for key in ("user", "assistant")):
            raise Problem(f"{place}: texts[{number}]", "expected texts user and assistant, as in The Cauldron, found " +
                          (f"the keys {', '.join(map(str, pair))}" if isinstance(pair, dict) else shown(pair)),
                          "rename the columns first")
        turns += [{"role": role, "content": pair[role]} for role in ("user", "assistant")]
        unused |= {f"texts[].{key}" for key in pair if key not in ("user", "assistant")}
    images = row.get("images") or []
    if not isinstance(images, list):
        raise Problem(place, f"images: expected a list, found {shown(images)}", "as in The Cauldron", kind="images")
    pictures = [reader.picture(image, f"{place}: images[{number}]") for number, image in enumerate(images)]
    return reader.conversation(Record(place, unused=tuple(sorted(unused))), turns, "texts", pictures)


def interleaved(row, place, reader):
    """OBELICS: in each position of `texts` and `images` one of the two is null. Pieces are joined by a blank line."""
    texts, images = row["texts"], row.get("images")
    if not isinstance(texts, list) or not isinstance(images, list) or len(texts) != len(images):
        raise Problem(place, f"expected lists texts and images of one length, found {shown(texts)} and {shown(images)}",
                      "as in OBELICS: in each position one of the two is null")
    parts, pictures = [], []
    for position, (text, image) in enumerate(zip(texts, images)):
        if (text is None) == (image is None):
            raise Problem(place, f"position {position} of texts and images has {'neither' if text is None else 'both'}",
                          "as in OBELICS: in each position one of the two is null")
        if image is not None:
            pictures.append(reader.picture(image, f"{place}: images[{position}]"))
        parts.append(MARK if image is not None else text)
    return reader.text_record(Record(place), "\n\n".join(parts), pictures)
