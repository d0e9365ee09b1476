"""Which members of a tar document are what, in Energon's spelling: `jpg`, `json[0][value]`, `jpg,png` (the first that
is there)."""
import re

from ..files import Twice, parsed_once
from ..problems import Problem, shown

FIELD = re.compile(r"([^\[\]]+)((?:\[[^\[\]]+\])*)")
NAMES = ("image", "text", "caption", "messages", "context", "answers")
MISSING = object()


class Access:
    """One field: the alternatives of its spelling, each a member's ending and keys into its JSON."""

    def __init__(self, spelling, place):
        self.spelling, self.options = spelling, []
        for option in spelling.split(","):
            match = FIELD.fullmatch(option)
            if not match:
                raise Problem(place, f"expected a member's ending with keys, as json[0][value], found {option!r}",
                              "keys stand in square brackets")
            self.options.append((match[1].lower(), re.findall(r"\[([^\[\]]+)\]", match[2])))

    def endings(self):
        return {ending for ending, _ in self.options}

    def value(self, parts, place):
        """`parts`: ending -> function that reads the member. MISSING if no alternative is there."""
        wrong = None
        for ending, keys in self.options:
            if ending not in parts:
                continue
            try:
                return self._inside(parts[ending](), ending, keys, f"{place}: {ending}")
            except Problem as problem:
                wrong = problem
        if wrong:
            raise wrong
        return MISSING

    def _inside(self, data, ending, keys, place):
        try:
            text = data.decode("utf-8-sig")
            value = parsed_once(text) if ending.split(".")[-1] == "json" else text
        except Twice as error:
            raise Problem(place, str(error), "name it once", kind="no JSON") from error
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            kind = "JSON" if ending.endswith("json") else "a text"
            raise Problem(place, f"expected {kind} in UTF-8, found something else: {error}",
                          "write the member anew", kind="no JSON") from error
        for i, key in enumerate(keys):
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise Problem(f"{place}{''.join(f'[{k}]' for k in keys[:i])}",
                              f"expected something with {key!r}, found {shown(value)}",
                              "see the field map", kind="fields") from error
        return value


class FieldMap:
    """`spellings`: [(name, spelling)]; image may stand several times, in the order of marks."""

    def __init__(self, spellings, place):
        self.images, self.others = [], {}
        for name, spelling in spellings:
            name = "image" if name == "images" else name
            if name not in NAMES:
                raise Problem(place, f"expected one of {', '.join(NAMES)}, found {name!r}", "name the field as such")
            access = Access(spelling, place)
            if name == "image":
                if any(keys for _, keys in access.options):
                    raise Problem(place, f"image: expected the ending of a member, found {spelling!r}",
                                  "images must be members of the tar file")
                self.images.append(access)
            elif name in self.others:
                raise Problem(place, f"{name} stands twice", "say each field once")
            else:
                self.others[name] = access
        kinds = sorted(self.others)
        if kinds not in (["text"], ["caption"], ["messages"], ["answers", "context"]):
            raise Problem(place, f"expected text, caption, messages, or context with answers, found "
                          f"{' and '.join(kinds) or 'none of them'}", "a document has one kind of text")

    def used(self):
        return {ending for access in (*self.images, *self.others.values()) for ending in access.endings()}
