"""A record -> ids and mask. Masks come from rendering turn by turn, never from looking for words of a template.

Before and after each turn of the assistant the conversation so far is rendered alone. Where that is no beginning of the
whole conversation, in text or in ids, the template writes turns in another way once more follow: then no mask says
which ids the assistant writes, and the document is refused.
"""
import dataclasses

from .problems import Problem
from .tokenizer import BadCharacter, GivesUp


@dataclasses.dataclass
class Encoded:
    ids: list
    mask: list | None      # 0 or 1 for each id; None: every id is learnt
    pictures: list
    literal: dict          # special tokens that stood in texts and became plain text: how often
    unused: tuple = ()
    unknown: int = 0       # tokens that stand for characters which the tokenizer does not know
    heading: str = ""      # what the template writes before the assistant's text, and is learnt though it is a prompt

    def learnt(self):
        return len(self.ids) if self.mask is None else sum(self.mask)


class Encoder:
    """`ids`: {"image", "pad", "end"} -> id or None. `begin`: id before each text, or None. `end_of`: which documents
    get the end token, "texts", "all" or "none". `learn`: which turns are learnt, "assistant", "last" or "all"."""

    def __init__(self, tokenizer, template, ids, begin=None, end_of="texts", learn="assistant"):
        self.tokenizer, self.template, self.ids = tokenizer, template, ids
        self.begin, self.end_of, self.learn = begin, end_of, learn

    def encode(self, record):
        literal = {}
        try:
            ids, mask, unread, heading = (self._text(record, literal) if record.text is not None else
                         self._conversation(record, literal))
        except GivesUp as error:
            raise Problem(record.place, f"the tokenizer gives up on its text: {error}", "divide the text, or leave it "
                          "out", kind="tokenizer") from error
        except BadCharacter as error:
            what, help_text = error.args
            raise Problem(record.place, f"the text has {what}", help_text, kind="characters") from error
        except RecursionError as error:
            raise Problem(record.place, "its lists and objects stand too deep in each other", "leave it out") from error
        self._check(record, ids, mask)
        return Encoded(ids, None if mask is None or all(mask) else mask, record.pictures, literal,
                       (*record.unused, *unread),
                       ids.count(self.tokenizer.unknown) if self.tokenizer.unknown is not None else 0, heading)

    def _text(self, record, literal):
        if not record.text:
            raise Problem(record.place, "the text is empty", "leave it out", kind="empty")
        ids = self.tokenizer.encode(self.tokenizer.protect(record.text, literal))
        ids = ids if self.begin is None else [self.begin, *ids]
        return [*ids, self.ids["end"]] if self.end_of != "none" else ids, None, (), ""

    def _conversation(self, record, literal):
        if self.template is None:
            raise Problem(record.place, "a conversation needs a chat template, and the tokenizer's folder has none",
                          "give --template FILE.jinja", kind="template")
        messages = self.tokenizer.protect(record.messages, literal)
        tools = self.tokenizer.protect(record.tools, {})
        variables = self.tokenizer.protect(record.variables, literal)

        template = self.template.of(tools)

        def rendered(turns, prompt=False, **switched):
            return template.render(messages[:turns], tools, prompt, record.place, {**variables, **switched})
        whole = rendered(len(messages))
        unread = unread_tools(template, messages, tools, variables, whole, record)
        spans = Spans(self.tokenizer, whole, record, template.read)
        mask, heading = [0] * len(spans.ids), ""
        learnt = self._learnt_turns(record)
        # Earlier turns of the assistant are rendered also where only the last is learnt: history must stay as it was.
        for turn in (i for i, message in enumerate(record.messages) if message["role"] == "assistant"):
            prompt = self._prompt(template, rendered, turn, whole, variables)
            begin = spans.border(prompt, turn, prompt=True)
            end = len(spans.ids) if turn + 1 == len(messages) else spans.border(rendered(turn + 1), turn + 1)
            if turn in learnt:
                mask[begin:end] = [1] * (end - begin)
                heading = heading or learnt_heading(template, whole[len(prompt):], messages[turn]["content"])
        ids = spans.ids
        if self.learn == "all":
            mask, heading = None, ""
        if self.end_of == "all":
            ids = [*ids, self.ids["end"]]
            mask = None if mask is None else [*mask, int(len(messages) - 1 in learnt)]
        return ids, mask, unread, heading

    @staticmethod
    def _prompt(template, rendered, turn, whole, variables):
        """What stood before the assistant wrote a turn. A template that thinks asks for it, or says that there is none:
        it is the prompt with which the conversation goes on, unless it is said which one."""
        plain = rendered(turn, prompt=True)
        switch = template.switch
        if switch is None or switch in variables or switch in template.variables or whole.startswith(plain):
            return plain
        others = (rendered(turn, prompt=True, **{switch: value}) for value in (False, True))
        return next((other for other in others if whole.startswith(other)), plain)

    def _learnt_turns(self, record):
        turns = [i for i, message in enumerate(record.messages) if message["role"] == "assistant"]
        if self.learn != "all" and not turns:
            raise Problem(record.place, "no turn is the assistant's, so nothing would be learnt",
                          "leave it out, or give --learn all", kind="nothing learnt")
        return set(turns[-1:] if self.learn == "last" else turns)

    def _check(self, record, ids, mask):
        found = ids.count(self.ids["image"]) if self.ids["image"] is not None else 0
        if record.pictures and self.ids["image"] is None:
            raise Problem(record.place, "the document has images, and nothing says which id is the image token",
                          f"give --image-token; special tokens are {' '.join(self.tokenizer.specials) or 'none'}",
                          kind="images")
        if found != len(record.pictures):
            raise Problem(record.place, f"{found} image tokens in the ids, and {len(record.pictures)} images",
                          "the template or a text writes or drops image tokens: look at --show", kind="images")
        # Padding is known by its place. An id that is the end too may stand in a text.
        if self.ids["pad"] != self.ids["end"] and self.ids["pad"] in ids:
            raise Problem(record.place, f"id {ids.index(self.ids['pad'])} is the pad token, which no text may have",
                          "choose another --pad-token", kind="padding")
        if mask is not None and not any(mask):
            raise Problem(record.place, "the template writes nothing for the assistant's turns, so nothing would be "
                          "learnt", "leave it out", kind="nothing learnt")


def first(turns):
    return "the first turn" if turns == 1 else f"the first {turns} turns"


def learnt_heading(template, written, content):
    """What a template that reads no add_generation_prompt writes in the assistant's turn before `content`, such as the
    name of the role. Templates may begin the turn with the content; then there is no heading, and this is empty."""
    if "add_generation_prompt" in template.reads or not isinstance(content, str) or not content.strip():
        return ""
    before, found, _ = written.partition(content.strip())
    return before if found and before.strip() else ""


def unread_tools(template, messages, tools, variables, whole, record):
    """Which of `tools` and the turns' `tool_calls` the template makes nothing of: it writes the same, `whole`, without
    them. A turn of nothing but calls would then be learnt as an empty one."""
    def same(turns, of_tools):
        try:
            return template.render(turns, of_tools, False, record.place, variables) == whole
        except Problem as problem:   # it cannot do without
            if problem.stops:
                raise
            return False
    unread = ("tools",) if tools and same(messages, None) else ()
    calling = [i for i, message in enumerate(messages) if message.get("tool_calls")]
    if not calling or not same([{**message, "tool_calls": None} for message in messages], tools):
        return unread
    empty = next((i for i in calling if not messages[i]["content"]), None)
    if empty is not None:
        raise Problem(record.place, f"turn {empty} of the assistant has tool_calls alone, and the template "
                      f"{template.place} writes nothing of them: an empty turn would be learnt",
                      "give a template that knows tools (--template, --template-name), or leave the document out",
                      kind="template")
    return (*unread, "tool_calls")


class Spans:
    """The ids of a whole conversation, and where in them a shorter one ends."""

    def __init__(self, tokenizer, whole, record, read=()):
        """`read`: variables of the template, for messages."""
        self._tokenizer, self._whole, self._record, self._read = tokenizer, whole, record, read
        self._starts, self._borders = [], {}   # of special tokens: (index, character); character -> ids before it
        if tokenizer.is_protected(whole):
            self.ids = tokenizer.encode(whole)
        else:
            self.ids, specials = tokenizer.encode_with_specials(whole)
            self._starts = [(index, start) for index, start, _ in specials]
            self._borders = {start: index for index, start, _ in specials}
            self._borders |= {end: index + 1 for index, _, end in specials}

    def border(self, shorter, turns, prompt=False):
        """The number of ids of `shorter`, the rendering of the first `turns` turns. They must begin the whole."""
        if not self._whole.startswith(shorter):
            raise self._differs(shorter, turns, prompt)
        # A text is cut at special tokens before anything else, so what stands on one side of them does not change the
        # ids on the other: a border there is one of ids too, and elsewhere only ids since the last one are compared.
        if len(shorter) in self._borders:
            return self._borders[len(shorter)]
        index, start = next(((index, start) for index, start in reversed(self._starts) if start < len(shorter)), (0, 0))
        ids = self._tokenizer.encode(shorter[start:])
        if self.ids[index:index + len(ids)] != ids:
            raise self._splits(shorter, index, ids, turns)
        return index + len(ids)

    def _differs(self, shorter, turns, prompt):
        whole = self._whole
        at = next((i for i, (a, b) in enumerate(zip(shorter, whole)) if a != b), min(len(shorter), len(whole)))
        bare = self._tokenizer.bare
        more = " and the begin of the assistant's turn" if prompt else ""
        return Problem(self._record.place, f"the template writes {first(turns)}{more} in another way once "
                       f"more follow: character {at} begins {bare(shorter[at:at + 24])!r} alone, and "
                       f"{bare(whole[at:at + 24])!r} in the whole",
                       "use a template that keeps history as it was" +
                       (f", or set its variables ({', '.join(self._read)}) by --template-set, or by "
                        "chat_template_kwargs of the document" if self._read else ""), kind="rewritten history")

    def _splits(self, shorter, index, ids, turns):
        at = next((i for i, (a, b) in enumerate(zip(ids, self.ids[index:])) if a != b), len(ids))
        text = self._tokenizer.text_of
        mine, theirs = (repr(text(found[at])) if at < len(found) else "nothing" for found in (ids, self.ids[index:]))
        return Problem(self._record.place, f"ids of {first(turns)} are others once more follow: id "
                       f"{index + at} is {mine} alone, and {theirs} in the whole",
                       "strip the spaces around the turn, or put a special token between turns in the template",
                       kind="joined tokens")
