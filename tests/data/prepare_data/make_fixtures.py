"""Makes tests/golden/data_fixtures: data sets as public programs write them. usage: make_fixtures.py OUT

The `webdataset` package writes shards, megatron-energon prepares folders, megatron-core's builder writes .bin and .idx.
PYTHONPATH has them (third_party/packages_data_fixtures.txt) and torch. Pictures are drawn here. OUT must not exist.
"""
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy
import webdataset
from PIL import Image


def picture(width, height, seed):
    """A smooth picture, so that it stays small as a file: waves of `seed`."""
    rows, columns = numpy.mgrid[0:height, 0:width]
    waves = [numpy.sin(rows * (seed + 1) / 9 + shift) + numpy.cos(columns * (seed + 2) / 7) for shift in (0, 2, 4)]
    return Image.fromarray((numpy.stack(waves, axis=2) * 60 + 128).clip(0, 255).astype(numpy.uint8))


def encoded(image, kind):
    stream = io.BytesIO()
    image.save(stream, format={"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}[kind])
    return stream.getvalue()


def write_shard(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    with webdataset.TarWriter(str(path), mtime=0) as writer:
        for key, parts in samples:
            writer.write({"__key__": key, **parts})


def make_webdataset(out):
    """Pictures with text in the three kinds of files, one text without a picture, keys with folders and dots behind."""
    write_shard(out / "shard-000000.tar", [
        ("waves_0", {"jpg": encoded(picture(64, 48, 0), "jpg"), "txt": "slow waves"}),
        ("waves_1", {"png": encoded(picture(48, 64, 1), "png"), "txt": "steeper <image> waves, seen upright"}),
        ("note_2", {"txt": "no picture here: žluťoučký kůň"})])
    write_shard(out / "shard-000001.tar", [
        ("more/waves_3", {"webp": encoded(picture(96, 32, 2), "webp"), "txt": "wide waves"}),
        ("more/waves_4", {"0.jpg": encoded(picture(32, 32, 3), "jpg"), "1.png": encoded(picture(40, 24, 4), "png"),
                          "txt": "first <image>, then <image>"})])


def prepare_energon(out, sample_type, field_map):
    subprocess.run([sys.executable, "-m", "megatron.energon.cli.main", "prepare", "--non-interactive", "--no-progress",
                    "--num-workers", "1", "--split-ratio", "1,0,0", "--sample-type", sample_type, "--field-map",
                    json.dumps(field_map), str(out)], check=True, stdout=subprocess.DEVNULL)


def make_energon(out):
    """Captions and questions: two folders that `energon prepare` has indexed."""
    captions = out / "captions"
    write_shard(captions / "shard_000.tar", [
        (f"sample_{i}", {"jpg": encoded(picture(48, 32, i), "jpg"), "txt": f"waves number {i}"}) for i in range(3)])
    write_shard(captions / "shard_001.tar", [
        (f"sample_{i}", {"jpg": encoded(picture(32, 48, i), "jpg"), "txt": f"waves number {i}"}) for i in range(3, 5)])
    prepare_energon(captions, "CaptioningSample", {"image": "jpg", "caption": "txt"})
    questions = out / "questions"
    conversations = [[{"from": "human", "value": f"<image>\nHow many waves in picture {i}?"},
                      {"from": "gpt", "value": f"I count {i + 3}."}] for i in range(3)]
    write_shard(questions / "shard_000.tar", [
        (f"question_{i}", {"jpg": encoded(picture(40, 40, i), "jpg"), "json": conversations[i]}) for i in range(3)])
    prepare_energon(questions, "VQASample", {"image": "jpg", "context": "json[0][value]", "answers": "json[1][value]"})


# Documents as lists of sequences. The second has two, the fourth none, and the fifth an empty one.
DOCUMENTS = {
    "uint16": [[[5, 6, 7, 2]], [[8, 9], [10, 11, 2]], [[65499, 0, 2]], [], [[], [12, 2]],
               [list(range(100, 300)) + [2]]],
    "int32": [[[5, 131071, 7, 2]], [[8, 9], [70000, 11, 2]], [[65499, 0, 2]], [], [[], [12, 2]],
              [list(range(131000, 131072)) + [2]]],
}


def make_megatron(out):
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
    out.mkdir(parents=True)
    for name, documents in DOCUMENTS.items():
        prefix = out / f"{name}_text_document"
        builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=getattr(numpy, name))
        for sequences in documents:
            tokens = [token for sequence in sequences for token in sequence]
            builder.add_document(torch.tensor(tokens, dtype=torch.int64), [len(sequence) for sequence in sequences])
        builder.finalize(f"{prefix}.idx")


# Ids of the prepared folder: byte b is 3 + b, so that no id is its byte.
PAD, END, IMAGE, FIRST_BYTE, VOCABULARY = 0, 1, 2, 3, 259


def ids_of(text):
    """Ids of a text with its marks, and the end token."""
    parts = text.split("<image>")
    ids = [FIRST_BYTE + byte for byte in parts[0].encode()]
    for part in parts[1:]:
        ids += [IMAGE, *(FIRST_BYTE + byte for byte in part.encode())]
    return [*ids, END]


def prepared_document(key, text, learnt=None, images=None, **in_place):
    """Members of a document. `learnt`: the text from which on tokens are learnt; None: all, and no mask is written."""
    ids = ids_of(text)
    document = {"__key__": key, "tok": numpy.array(ids, dtype="<u4").tobytes(), **in_place}
    if learnt is not None:
        before = len(ids_of(text[:text.index(learnt)])) - 1
        document["mask"] = bytes([0] * before + [1] * (len(ids) - before))
    if images is not None:
        document["images"] = json.dumps(images).encode()
    return document


def make_prepared(out):
    """A folder of ids, by hand: images by reference and in place, several in a document, masks, text alone."""
    (out / "pictures").mkdir(parents=True)
    (out / "pictures/loose.jpg").write_bytes(encoded(picture(56, 40, 7), "jpg"))
    in_shard = {"shard": "../webdataset/shard-000000.tar", "member": "waves_0.jpg"}
    in_folder = {"shard": "../webdataset/shard-000001.tar", "member": "more/waves_3.webp"}
    loose = {"file": "pictures/loose.jpg"}
    shards = [
        [prepared_document("000000000", "<image>\nWhat is it?A wave.", "A wave.", [in_shard]),
         prepared_document("000000001", "Compare <image> with <image>, and <image>.Alike.", "Alike.",
                           [loose, in_folder, in_shard]),
         prepared_document("000000002", "Text alone, all of it learnt.")],
        [prepared_document("000000003", "Here: <image> There: <image>", None, None,
                           **{"0.png": encoded(picture(40, 24, 8), "png"),
                              "1.jpg": encoded(picture(24, 40, 9), "jpg")}),
         prepared_document("000000004", "<image>One in place.", "One", None, webp=encoded(picture(32, 48, 10), "webp")),
         prepared_document("000000005", "Question?Answer.", "Answer.")]]
    totals = {"documents": 0, "tokens": 0, "learnt": 0, "images": 0}
    listed = []
    for number, documents in enumerate(shards):
        path = out / f"prepared-{number:06}.tar"
        with webdataset.TarWriter(str(path), mtime=0, encoder=False) as writer:
            for document in documents:
                writer.write(document)
        tokens = [numpy.frombuffer(document["tok"], "<u4") for document in documents]
        listed.append({"file": path.name, "documents": len(documents), "tokens": sum(map(len, tokens)),
                       "bytes": path.stat().st_size})
        totals["documents"] += len(documents)
        totals["tokens"] += listed[-1]["tokens"]
        totals["learnt"] += sum(sum(document.get("mask", b"\1" * len(ids))) for document, ids in zip(documents, tokens))
        totals["images"] += sum(int((ids == IMAGE).sum()) for ids in tokens)
    sha = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("tokenizer", "template")}
    (out / "prepared.json").write_text(json.dumps({
        "format": "planwright_prepared", "version": 1,
        "tokenizer": {"name": "tokenizer.json", "sha256": sha["tokenizer"]}, "template": {"sha256": sha["template"]},
        "ids": {"image": IMAGE, "pad": PAD, "end": END}, "vocabulary": VOCABULARY, **totals, "shards": listed},
        indent=2) + "\n")
    pieces = ["<pad>", "</s>", "<image>", *(chr(byte) for byte in range(256))]
    (out / "pieces.json").write_text(json.dumps(pieces, ensure_ascii=False) + "\n")


def main(out):
    out.mkdir(parents=True)
    make_webdataset(out / "webdataset")
    make_energon(out / "energon")
    make_megatron(out / "megatron")
    make_prepared(out / "prepared")


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    main(pathlib.Path(sys.argv[1]))
