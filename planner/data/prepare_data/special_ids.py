"""Which ids mean image, padding and end: as the user says, or as the tokenizer's own files say; never by guessing.

An id is taken without being asked for only if a file beside the tokenizer names it, or if exactly one of the usual
names is a special token of the tokenizer. What was taken, and from where, is printed.
"""
import dataclasses

from .problems import Problem
from .tokenizer import MOST_IDS

USUAL = {
    "image": ("<image>", "<|image|>", "<|image_pad|>", "<IMG_CONTEXT>", "<image_soft_token>", "[IMG]"),
    "pad": ("<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>", "<|endofpad|>"),
    "end": ("</s>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "<eos>", "<|eos|>"),
}
IN_FILES = {"image": "image_token", "pad": "pad_token", "end": "eos_token"}


@dataclasses.dataclass(frozen=True)
class SpecialId:
    id: int | None
    text: str = ""
    source: str = ""     # where it comes from, for people


def named(tokenizer, argument, value):
    """An id from what a user wrote: a token's text, or a number. Digits are an id, though they are a token as well."""
    found = tokenizer.id_of(value)
    if found is not None and (value in tokenizer.specials or not value.isdigit()):
        return SpecialId(found, value, argument)
    if value.isascii() and value.isdigit() and len(value) < 10 and int(value) < MOST_IDS:
        return SpecialId(int(value), tokenizer.text_of(int(value)), argument)
    raise Problem(argument, f"expected a token of {tokenizer.path} or an id below {MOST_IDS:,}, found {value!r}",
                  "its special tokens are " + (" ".join(tokenizer.specials) or "none: give an id"))


def from_files(tokenizer, tokens, role):
    token = tokens.get(IN_FILES[role])
    found = tokenizer.id_of(token.text) if token is not None and token.text is not None else None
    return None if found is None else SpecialId(found, token.text, f"{IN_FILES[role]} of {token.file}")


def usual(tokenizer, role):
    present = [text for text in USUAL[role] if text in tokenizer.specials]
    if len(present) != 1:
        return None
    return SpecialId(tokenizer.id_of(present[0]), present[0], "a special token of the tokenizer")


def special_ids(tokenizer, tokens, given):
    """{"image", "pad", "end"} -> SpecialId. `tokens`: name -> NamedToken. `given` has what the user wrote for each, or
    None. All problems at once."""
    ids, problems = {}, []
    for role in ("end", "pad", "image"):
        argument = f"--{role}-token"
        try:
            if given[role] is not None:
                found = named(tokenizer, argument, given[role])
            else:
                found = from_files(tokenizer, tokens, role)
                found = found or usual(tokenizer, role)
            if found is None and role != "image":
                raise Problem(argument, f"nothing says which token of {tokenizer.path} it is",
                              "give one that no text has; its special tokens are " +
                              (" ".join(tokenizer.specials) or "none"))
            ids[role] = found or SpecialId(None)
        except Problem as problem:
            problems.append(problem)
    for one, other, why in (("pad", "image", "images would be padding"), ("image", "end", "ends would be images")):
        if one in ids and other in ids and ids[one].id is not None and ids[one].id == ids[other].id:
            problems.append(Problem(f"--{one}-token", f"it is the same id as --{other}-token, {ids[one].id}: {why}",
                                    f"choose another token; its special tokens are {' '.join(tokenizer.specials)}"))
    return ids, problems
