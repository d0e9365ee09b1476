"""The bytes of each token, for people: what `plan data trace` prints of ids."""
import json
import re

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_of_character():
    """The characters by which byte-level tokenizers write bytes in their vocabulary -> the bytes."""
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


def kinds_in(part):
    """Types of a decoder or pre-tokenizer and of those inside it."""
    if not part:
        return set()
    inner = part.get("decoders") or part.get("pretokenizers") or []
    return {part.get("type")}.union(*map(kinds_in, inner))


def pieces(tokenizer, size, others):
    """A list of `size` bytes objects. `others`: ids that the tokenizer has not -> their text."""
    description = tokenizer.description
    kinds = kinds_in(description.get("decoder")) | kinds_in(description.get("pre_tokenizer"))
    added = {token["id"] for token in description.get("added_tokens") or []}
    characters = byte_of_character()
    found = []
    for token in range(size):
        text = others.get(token) or tokenizer.text_of(token)
        if token in others or token in added:
            found.append(text.encode())
        elif "ByteLevel" in kinds:
            found.append(b"".join(bytes([characters[c]]) if c in characters else c.encode() for c in text))
        elif BYTE.fullmatch(text):
            found.append(bytes([int(text[3:5], 16)]))
        elif "WordPiece" in kinds:
            found.append(text[2:].encode() if text.startswith("##") else f" {text}".encode())
        else:
            found.append(text.replace("\u2581", " ").encode())
    return found


def as_json(found):
    """Each byte as the character of that number."""
    return json.dumps([piece.decode("latin-1") for piece in found], ensure_ascii=False) + "\n"
