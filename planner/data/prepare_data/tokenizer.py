"""A tokenizer.json, by Hugging Face's `tokenizers`: texts with marks and special tokens to ids, ids to bytes."""
import hashlib
import json
import os
import re

import tokenizers

from .problems import Problem
from .records import MARK

# Around a special token that stands literally in a text of the user. Private characters, which no text should have.
OPENING, CLOSING = "\U000f0000", "\U000f0001"


MOST_IDS = 1 << 24   # no vocabulary has more
NOWHERE = os.open(os.devnull, os.O_WRONLY)


class BadCharacter(Exception):
    """A character that no text may have here: what it is, and how to mend it."""


class GivesUp(Exception):
    """The library cannot make ids of a text, such as where a pattern looks for too long."""


def check(text):
    if OPENING in text or CLOSING in text:
        raise BadCharacter("U+F0000 or U+F0001, which protects special tokens here", "remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadCharacter(f"half a character, U+{ord(text[error.start]):04X}",
                           "write the file anew by a JSON library") from error


class Tokenizer:
    """`path` is a tokenizer.json, `data` its bytes. After `finish` it encodes."""

    def __init__(self, path, data):
        self.path, self.sha256 = path, hashlib.sha256(data).hexdigest()
        try:
            self.description = json.loads(data)
            self._whole = tokenizers.Tokenizer.from_str(data.decode())
        except Exception as error:  # whatever the library says of a file that is none
            raise Problem(path, f"expected a tokenizer.json of Hugging Face's tokenizers, found another file: {error}",
                          "other kinds must be converted first: docs/training/prepare_data.md") from error
        self._whole.no_truncation()
        self._whole.no_padding()
        added = self._whole.get_added_tokens_decoder()
        self.added = {token.content for token in added.values()}
        self.specials = [token.content for _, token in sorted(added.items()) if token.special]
        model = self.description.get("model") or {}
        self.unknown = self.id_of(model["unk_token"]) if model.get("unk_token") else model.get("unk_id")
        self.vocabulary = max(self._whole.get_vocab(with_added_tokens=True).values()) + 1
        if self.vocabulary > MOST_IDS:
            raise Problem(path, f"it has the id {self.vocabulary - 1:,}; ids are below {MOST_IDS:,} here",
                          "mend the ids of its added tokens")

    def id_of(self, text):
        return self._whole.token_to_id(text)

    def text_of(self, token):
        return self._whole.id_to_token(token) or ""

    def before_a_text(self):
        """Ids that the tokenizer itself puts before a text (such as a begin token)."""
        bare, full = (self._whole.encode("x", add_special_tokens=special).ids for special in (False, True))
        for at in range(len(full) - len(bare) + 1):
            if full[at:at + len(bare)] == bare:
                return full[:at]
        return []

    def finish(self, image_id, as_special):
        """`image_id`: what a mark becomes, or None. `as_special`: special tokens that mean themselves where a text has
        them; all others are plain text there."""
        self.image_id = image_id
        literal = sorted((text for text in self.specials if text != MARK and text not in as_special), key=len)
        self._literal = re.compile("|".join(map(re.escape, reversed(literal)))) if literal else None
        # Special tokens of old files are looked for in normalized text, which may have them where the text has not.
        added = self._whole.get_added_tokens_decoder().values()
        self._normalizer = self._whole.normalizer if any(t.special and t.normalized for t in added) else None
        self._marked = re.compile(f"{OPENING}([^{OPENING}{CLOSING}]*){CLOSING}|[{OPENING}{CLOSING}]")
        if image_id is not None:   # a mark is found where an added token is, whatever stands beside it
            self._whole.add_special_tokens([tokenizers.AddedToken(MARK, special=True, normalized=False)])
        self._mark = self._whole.token_to_id(MARK)
        self._newline = self._whole.encode("\n", add_special_tokens=False).ids
        # The unknown token also stands where no special token is written.
        self._special_ids = ({self.id_of(text) for text in self.specials} | {self._mark}) - {self.unknown}

    def protect(self, value, count):
        """Text (or a list or object of texts) with its literal special tokens between private characters. `count` is
        a dict that counts them."""
        if isinstance(value, str):
            check(value)
            if self._literal is None:
                return value
            if self._normalizer is not None:
                self._check_normalized(value)

            def marked(match):
                count[match[0]] = count.get(match[0], 0) + 1
                return OPENING + match[0] + CLOSING
            return self._literal.sub(marked, value)
        if isinstance(value, dict):
            for key in value:
                check(str(key))
            return {key: self.protect(item, count) for key, item in value.items()}
        if isinstance(value, list):
            return [self.protect(item, count) for item in value]
        return value

    def _check_normalized(self, text):
        found = self._literal.findall(self._guarded(self._normalizer.normalize_str, text))
        if len(found) > len(self._literal.findall(text)):
            raise BadCharacter(f"characters that the tokenizer turns into a special token, one of {' '.join(found)}",
                               "remove them")

    def _ids(self, ids):
        if self.image_id == self._mark or self._mark not in ids:
            return ids
        return [self.image_id if token == self._mark else token for token in ids]

    def _encoded(self, text):
        return self._guarded(lambda value: self._whole.encode(value, add_special_tokens=False), text)

    @staticmethod
    def _guarded(act, text):
        stderr = os.dup(2)
        os.dup2(NOWHERE, 2)   # a panic prints its own lines
        try:
            return act(text)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:   # a panic of the library is no Exception
            lines = str(error).splitlines()
            raise GivesUp(lines[0] if lines else type(error).__name__) from error
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)

    def encode(self, text):
        """Ids of a text: marks become the image id, special tokens themselves, protected ones plain text."""
        if OPENING not in text and CLOSING not in text:
            return self._ids(self._encoded(text).ids)
        ids = []
        for at, piece in enumerate(self._marked.split(text)):
            if piece:
                ids += self._as_text(piece, not ids) if at % 2 else self._piece(piece, not ids)
        return self._ids(ids)

    def _piece(self, piece, first):
        """A piece from the middle is encoded behind a line break, so that no prefix of a text's begin is put on it."""
        if not first:
            ids = self._encoded("\n" + piece).ids
            if ids[:len(self._newline)] == self._newline:
                return ids[len(self._newline):]
        return self._encoded(piece).ids

    def _as_text(self, piece, first):
        """Ids of a special token's text, none of which is that token."""
        self._whole.encode_special_tokens = True
        try:
            ids = self._piece(piece, first)
        finally:
            self._whole.encode_special_tokens = False
        if not self._special_ids.isdisjoint(ids):
            raise BadCharacter(f"the special token {piece}, for which the tokenizer has no plain text",
                               f"remove it, or give --as-special '{piece}'")
        return ids

    def encode_with_specials(self, text):
        """As `encode`, and (index, first character, character behind it) of each special token. Not for texts with
        protected tokens."""
        encoding = self._encoded(text)
        ids = encoding.ids
        specials = [(index, *encoding.token_to_chars(index)) for index, token in enumerate(ids)
                    if token in self._special_ids]
        return self._ids(ids), specials

    @staticmethod
    def is_protected(text):
        return OPENING in text or CLOSING in text

    @staticmethod
    def bare(text):
        """Without private characters, for people."""
        return text.replace(OPENING, "").replace(CLOSING, "")
