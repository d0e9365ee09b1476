"""Small folders of the shapes of published ones, photos with captions, and what makes shards of them, in one folder:
what docs/from_photos.md begins with. Weights are drawn; each tensor is one of tests/exchange/transformers, as
transformers saved it.
"""
import json
import os
import pathlib
import random
import struct
import sys
import zlib

VOCABULARY = 368    # of the language model; the tokenizer has 364 ids
# Width and height of each photo: a square, upright and wide ones, a panorama that is scaled down, one of few pixels.
SIZES = ((48, 48), (30, 64), (64, 40), (200, 40), (96, 96), (9, 14))
COLORS = {"red": (200, 30, 40), "green": (30, 170, 60), "blue": (40, 60, 200)}


def numbers(name, shape, generator):
    """Values of a tensor that a model can begin with."""
    count = 1
    for size in shape:
        count *= size
    if name.endswith("norm_mean"):   # of CLIP
        return [0.48145466, 0.4578275, 0.40821073]
    if name.endswith("norm_std"):
        return [0.26862954, 0.26130258, 0.27577711]
    if name.endswith("lambda1") or "norm" in name and name.endswith("weight"):
        return [1.0] * count
    if name.endswith(("bias", "summary_idxs")):
        return [0] * count
    return [generator.gauss(0, 0.02) for _ in range(count)]


def write_folder(source, name, folder, vocabulary=None):
    """A Hugging Face folder of the toy `name`: config.json and model.safetensors."""
    folder.mkdir()
    config = json.loads((source / f"{name}.config.json").read_text())
    text = config.get("text_config", config)
    before = text.get("vocab_size")
    if vocabulary:
        text["vocab_size"] = vocabulary
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    generator, header, data = random.Random(name), {}, b""
    for line in (source / f"{name}.tensors").read_text().splitlines():
        tensor, dtype, sizes = line.split()
        shape = [int(size) for size in sizes.split(",")]
        if vocabulary and shape[0] == before and tensor.endswith(
                ("embeddings.weight", "embed_tokens.weight", "lm_head.weight")):
            shape[0] = vocabulary
        values = numbers(tensor, shape, generator)
        packed = struct.pack(f"<{len(values)}{'q' if dtype == 'I64' else 'f'}", *values)
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def png(width, height, color):
    """A picture of one color that gets darker to the right."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    row = b"\0" + b"".join(bytes(part * (2 * width - x) // (2 * width) for part in color) for x in range(width))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b""))


def caption(name, color):
    return {"images": [f"photos/{name}"],
            "messages": [{"role": "user", "content": "<image>\nWhich color is it?"},
                         {"role": "assistant", "content": f"It is {color}."}]}


def write_photos(at):
    (at / "photos").mkdir()
    lines = {"captions.jsonl": [], "held_out.jsonl": []}
    for number in range(20):
        color = list(COLORS)[number % len(COLORS)]
        name = f"{number:04d}.png"
        (at / "photos" / name).write_bytes(png(*SIZES[number % len(SIZES)], COLORS[color]))
        lines["held_out.jsonl" if number >= 16 else "captions.jsonl"].append(json.dumps(caption(name, color)))
    for name, text in lines.items():
        (at / name).write_text("\n".join(text) + "\n")


def write_all(source, at, environment):
    """Writes nano, radio, photos, captions and held_out into `at`, and ./dev, which knows `prepare`."""
    toys, tokenizer = source / "tests/exchange/transformers", source / "tests/data/prepare_data/toy"
    write_folder(toys, "lm", at / "nano", VOCABULARY)
    write_folder(toys, "radio", at / "radio")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (at / "nano" / name).write_bytes((tokenizer / name).read_bytes())
    (at / "nano/chat_template.jinja").write_bytes((tokenizer / "chatml.jinja").read_bytes())
    write_photos(at)
    dev = at / "dev"
    dev.write_text(f'#!/bin/sh\ntest "$1" = prepare || exit 2\nshift\nexport PYTHONPATH="{environment["PYTHONPATH"]}" '
                   f'PYTHONDONTWRITEBYTECODE=1\nexec "{sys.executable}" -m prepare_data "$@"\n')
    os.chmod(dev, 0o755)


if __name__ == "__main__":   # toy_folders.py SOURCE FOLDER: to try the page by hand, with what `./dev prepare` fetched
    SOURCE, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    FOLDER.mkdir(parents=True)
    CACHE = pathlib.Path(os.environ.get("PLANWRIGHT_CACHE") or pathlib.Path.home() / ".cache/planwright")
    PACKAGES = CACHE / f"prepare_data-{sys.version_info.major}.{sys.version_info.minor}"
    write_all(SOURCE, FOLDER, {"PYTHONPATH": f"{PACKAGES}:{SOURCE / 'planner/data'}"})
