"""One document as people can check it: its text by tokens, with what is learnt in another colour."""
import os

from .problems import counted

GREEN, DIM, MAGENTA, RESET = "\x1b[32m", "\x1b[2m", "\x1b[35m", "\x1b[0m"


def wants_colour(stream):
    return stream.isatty() and not os.environ.get("NO_COLOR")


def printable(text):
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def runs(encoded, image):
    """Consecutive ids of one kind: "image", "learnt" or "read"."""
    mask = encoded.mask or [1] * len(encoded.ids)
    found = []
    for token, learnt in zip(encoded.ids, mask):
        kind = "image" if token == image else "learnt" if learnt else "read"
        if not found or found[-1][0] != kind or kind == "image":
            found.append((kind, []))
        found[-1][1].append(token)
    return found


def document(place, encoded, image, pieces, colour, most=None):
    """Lines for people. Without colour what is learnt stands between ⟦ and ⟧. `most`: characters that are shown."""
    text, number, cut = [], 0, False
    marks = {"learnt": (GREEN, RESET), "read": (DIM, RESET), "image": (MAGENTA, RESET)} if colour else {
        "learnt": ("⟦", "⟧"), "read": ("", ""), "image": ("", "")}
    room = most if most is not None else float("inf")
    for kind, ids in runs(encoded, image):
        if kind == "image":
            shown = f"<image {number}: {encoded.pictures[number].name()}>"
            number += 1
        else:
            shown = printable(b"".join(pieces[token] for token in ids).decode(errors="replace"))
        if len(shown) > room:
            shown, cut = shown[:int(room)], True
        room -= len(shown)
        text.append(marks[kind][0] + shown + marks[kind][1])
        if cut:
            text.append(" ...")
            break
    head = (f"{place}: {counted(len(encoded.ids), 'token')}, {encoded.learnt():,} learnt " +
            ("(green)" if colour else "(in ⟦ ⟧)") + f", {counted(len(encoded.pictures), 'image')}")
    return head + "\n" + "".join(text)
