"""Conversations about icons, and the samples that a run makes of them, read by the pages of docs/training alone.

`prepare` makes conversations, and shards of them as a user does. `Samples` is another implementation of what a source
is (data.md, data_formats.md): it reads the shards, packs their documents, puts the packs in their order, and lets
transformers' own image processor make the patches. No code is shared with Planwright, so the two agree only if the
pages say it all.
"""
import json
import pathlib
import random
import subprocess
import sys
import tarfile

import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.models.nemotron_h_omni.image_processing_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3ImageProcessor as ImageProcessor)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ICONS = pathlib.Path("/usr/share/icons/gnome")  # Debian: gnome-icon-theme
PAD, IMAGE, END, TURN_BEGINS, TURN_ENDS = "<PAD>", "<IMAGE>", "<EOT>", "<META_START>", "<META_END>"
SPECIAL = [PAD, IMAGE, END, TURN_BEGINS, TURN_ENDS]  # their ids are 0 to 4
PAD_ID, IMAGE_ID = SPECIAL.index(PAD), SPECIAL.index(IMAGE)
SIZES = ("16x16", "22x22", "24x24", "32x32", "48x48")
HELD_OUT = 8  # of every so many pictures one is held out
HELD_OUT_CHATS = 240
COLOURS = {"black": (0, 0, 0), "dark": (64, 64, 64), "grey": (128, 128, 128), "light": (192, 192, 192),
           "white": (255, 255, 255), "red": (160, 40, 40), "brown": (130, 90, 40), "yellow": (200, 180, 60),
           "green": (70, 130, 50), "blue": (60, 100, 160), "purple": (110, 70, 120)}
SOURCE = "icons"
WINDOW = 128  # `data.window` of a recipe that says nothing


class Icon:
    """A picture of the theme: what it means, the colours of its quarters in reading order, and how bright it is."""

    def __init__(self, path):
        self.path, self.words = path, path.stem.replace("-", " ")
        # Where it is transparent, a model sees the colour below.
        picture = Image.open(ICONS / path).convert("RGBA").convert("RGB")
        self.quarters = [nearest_colour(colour) for colour in picture.resize((2, 2), Image.Resampling.BOX).getdata()]
        self.brightness = sum(picture.resize((1, 1), Image.Resampling.BOX).getdata()[0])


def nearest_colour(colour):
    return min(COLOURS, key=lambda name: sum((a - b) ** 2 for a, b in zip(colour, COLOURS[name])))


def icons():
    # A link is another name of the same picture: with both, no picture would tell its text.
    return [Icon(path.relative_to(ICONS)) for size in SIZES for path in sorted((ICONS / size).glob("*/*.png"))
            if not path.is_symlink()]


def make_chats(pictures, count):
    """Questions in turn: what an icon means, which colours its quarters have, and which of two is darker. The pictures
    are drawn. In 3,000 steps each picture is asked the first two about seven times, and no pair comes again."""
    draw, chats = random.Random(1), []
    for number in range(count):
        one, other = draw.sample(pictures, 2)
        question, answer, asked = [
            ("<image>\nWhat does this icon mean?", one.words, [one]),
            ("<image>\nWhich colours are in its quarters?", " ".join(one.quarters), [one]),
            ("Which is darker, <image> or <image>?", "the first" if one.brightness < other.brightness else "the second",
             [one, other])][number % 3]
        chats.append({"id": f"{number}", "image": [str(icon.path) for icon in asked],
                      "conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]})
    return chats


def prepare(folder, vocabulary, count):
    """Makes folder/train, of `count` conversations, and folder/held_out, if they are not there: shards, with a
    tokenizer of `vocabulary` tokens that is learnt from the texts. No picture of the one is in the other, but most
    icons are, in other sizes."""
    if (folder / "held_out/prepared.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    pictures = icons()
    held = pictures[::HELD_OUT]
    sets = {"train": make_chats([icon for icon in pictures if icon not in held], count),
            "held_out": make_chats(held, HELD_OUT_CHATS)}
    learn_tokenizer(sets["train"], vocabulary).save(str(folder / "tokenizer.json"))
    for name, chosen in sets.items():
        (folder / f"{name}.json").write_text(json.dumps(chosen, indent=1) + "\n")
        if not (folder / name).exists():
            run([ROOT / "dev", "prepare", "--tokenizer", folder / "tokenizer.json", "--image-token", IMAGE,
                 "--pad-token", PAD, "--end-token", END, "--template", ROOT / "docs/demo/icon_chats.jinja",
                 "--images", ICONS, "-o", folder / name, folder / f"{name}.json"])


def run(command):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")


def learn_tokenizer(chats, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [turn["value"] for chat in chats for turn in chat["conversations"]] + ["user", "assistant"]
    tokenizer.train_from_iterator(sorted(texts), trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    return tokenizer


class Document:
    """`ids` and `learnt` with an image token for each picture, and the files of the pictures."""

    def __init__(self, members, folder):
        def numbers(member, dtype):
            return torch.frombuffer(bytearray(members[member]), dtype=dtype).tolist()

        self.ids = numbers("tok", torch.int32)
        self.learnt = numbers("mask", torch.uint8)
        self.pictures = [folder / entry["file"] for entry in json.loads(members.get("images", b"[]"))]


def read_documents(folder):
    """The documents of a folder of shards, in the order of shards and members (data_formats.md#documents)."""
    documents = []
    for shard in json.loads((folder / "prepared.json").read_text())["shards"]:
        key, members = None, {}
        with tarfile.open(folder / shard["file"]) as tar:
            for member in tar:
                directory, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if key not in (None, (directory, stem)):
                    documents.append(Document(members, folder))
                    members = {}
                key = directory, stem
                members[extension.lower()] = tar.extractfile(member).read()
        documents.append(Document(members, folder))
    return documents


# --- orders (layout_independence.md#draws, data.md#permutations)


def philox(counter, key):
    """Philox4x32-10."""
    mask = 0xFFFFFFFF
    for _ in range(10):
        a, b = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = (b >> 32 ^ counter[1] ^ key[0], b & mask, a >> 32 ^ counter[3] ^ key[1], a & mask)
        key = (key[0] + 0x9E3779B9 & mask, key[1] + 0xBB67AE85 & mask)
    return counter


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def permutation(seed, name, size):
    """A list with the number at each place."""
    mask, h = 0xFFFFFFFF, fnv1a(name)

    def uniform(index):
        words = philox((index & mask, index >> 32, h & mask, h >> 32), (seed & mask, seed >> 32))
        return ((words[1] << 32 | words[0]) >> 11) / 2**53

    a = next(a for a in range(1, size + 1) if a * a >= size)
    b = -(-size // a)

    def at(place):
        while True:
            left, right = divmod(place, b)
            for round_ in range(0, 8, 2):
                left = (left + int(a * uniform((round_ << 32) + right))) % a
                right = (right + int(b * uniform((round_ + 1 << 32) + left))) % b
            place = left * b + right
            if place < size:
                return place

    return [at(place) for place in range(size)]


class Samples:
    """The samples of one source with `shuffle: all` and `packing: first_fit`, by their number."""

    def __init__(self, folder, seed, length, encoder, data):
        self.seed, self.length = seed, length
        self.documents = read_documents(folder)
        self.processor = ImageProcessor(patch_size=encoder["patch"], downsample_factor=2, downsample_ratio=0.5,
                                        min_num_patches=data["min_patches"], max_num_patches=data["max_patches"])
        self.pictures = {}  # patches and grid of each file
        self.expanded = [self.expand(document) for document in self.documents]
        self.packs = self.pack()
        self.order = {}  # of the packs in an epoch

    def picture(self, path):
        if path not in self.pictures:
            made = self.processor(Image.open(path), return_tensors="pt")
            self.pictures[path] = made.pixel_values, made.image_grid_hw[0].tolist()
        return self.pictures[path]

    def expand(self, document):
        """Ids and whether each is learnt, with as many image tokens as the pictures have."""
        ids, learnt, pictures = [], [], iter(document.pictures)
        for token, is_learnt in zip(document.ids, document.learnt):
            if token == IMAGE_ID:
                rows, columns = self.picture(next(pictures))[1]
                ids += [IMAGE_ID] * (rows * columns // 4)
                learnt += [0] * (rows * columns // 4)
            else:
                ids.append(token)
                learnt.append(is_learnt)
        return ids, learnt

    def pack(self):
        """Lists of documents (data.md#packing)."""
        order, packs = permutation(self.seed, f"sources.documents.{SOURCE}", len(self.documents)), []
        for begin in range(0, len(order), WINDOW):
            rooms, opened = [], []
            for document in order[begin:begin + WINDOW]:
                tokens = len(self.expanded[document][0])
                if tokens > self.length:
                    raise SystemExit(f"a document of {tokens} tokens does not fit {self.length}")
                place = next((i for i, room in enumerate(rooms) if room >= tokens), len(rooms))
                if place == len(rooms):
                    rooms.append(self.length)
                    opened.append([])
                rooms[place] -= tokens
                opened[place].append(document)
            packs += opened
        return packs

    def documents_of(self, number):
        epoch, place = divmod(number, len(self.packs))
        if epoch not in self.order:
            self.order[epoch] = permutation(self.seed, f"sources.samples.{epoch}.{SOURCE}", len(self.packs))
        return self.packs[self.order[epoch][place]]

    def row(self, number):
        """Tokens, labels and mask of a sample, and the files of its pictures (data.md#samples)."""
        chosen = self.documents_of(number)
        ids = [token for document in chosen for token in self.expanded[document][0]]
        learnt = [flag for document in chosen for flag in self.expanded[document][1]]
        padding = self.length - len(ids)
        ids, learnt = ids + [PAD_ID] * padding, learnt + [0] * padding
        return (ids, ids[1:] + [PAD_ID], learnt[1:] + [0],
                [path for document in chosen for path in self.documents[document].pictures])

    def batch(self, numbers):
        """Samples as `families` takes them."""
        rows = [self.row(number) for number in numbers]
        pictures = [self.picture(path) for row in rows for path in row[3]]
        return {"token_ids": torch.tensor([row[0] for row in rows]), "labels": torch.tensor([row[1] for row in rows]),
                "loss_mask": torch.tensor([row[2] for row in rows], dtype=torch.float32),
                "patches": torch.cat([patches for patches, _ in pictures]),
                "image_grid": torch.tensor([grid for _, grid in pictures])}
