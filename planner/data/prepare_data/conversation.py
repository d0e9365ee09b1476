"""A JSON object as people write it -> a record: messages or text, with a mark for each picture.

Taken are the keys `messages` or `conversations`, or `text`; `image` or `images`; `tools`; `chat_template_kwargs`. A
turn is {role, content} or LLaVA's {from, value}; content is text with marks, or a list of {type: text} and
{type: image}.
"""
import re

from .problems import Problem, counted, shown
from .records import MARK, Picture, Record

ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system",
         "developer": "developer", "tool": "tool", "observation": "tool", "function": "tool", "ipython": "ipython"}
OTHER_MEDIA = ("video", "videos", "audio", "audios", "sound", "sounds")
PATHS = ("image", "path", "file_name", "image_path", "url")
VARIABLES = "chat_template_kwargs"   # as transformers and TRL call it
GIVEN = ("messages", "tools", "documents", "add_generation_prompt")   # what a template has beside its variables
URL = re.compile(r"[a-z][a-z0-9+.-]*://|data:", re.I)


class Reader:
    """`find(path, place)` gives the Picture that a path of the input means. `lists`: content goes to the template as
    lists of {type: text} and {type: image}, as templates of vision models expect it."""

    def __init__(self, find, lists=False, images_first=False):
        self._find, self._lists, self._images_first = find, lists, images_first

    def record(self, value, place):
        if not isinstance(value, dict):
            raise Problem(place, f"expected an object with messages, conversations or text, found {shown(value)}",
                          "write one object a document")
        for key in OTHER_MEDIA:
            if value.get(key):
                raise Problem(place, f"{key}: only text and images are trained", "leave such documents out")
        kinds = [key for key in ("messages", "conversations", "text") if value.get(key) is not None]
        for key in ("messages", "conversations", "text"):
            if not kinds and key in value:
                raise Problem(f"{place}: {key}", "expected a text or turns, found null", "leave such documents out")
        if len(kinds) != 1:
            raise Problem(place, "expected one of messages, conversations and text, found " +
                          (" and ".join(kinds) or f"the keys {', '.join(map(str, value)) or 'none'}"),
                          "name the keys as such, or convert the file first")
        of_template = ("tools", VARIABLES)   # which no text gets
        used = {*kinds, "image", "images", *(key for key in of_template if kinds[0] != "text" or not value.get(key))}
        record = Record(place, tools=self._tools(value.get("tools"), place),
                        variables=self._variables(value.get(VARIABLES), place),
                        unused=tuple(key for key in value if key not in used))
        listed = self._listed(value, place)
        if kinds[0] == "text":
            return self.text_record(record, value["text"], listed)
        return self.conversation(record, value[kinds[0]], kinds[0], listed)

    def text_record(self, record, text, pictures):
        if not isinstance(text, str):
            raise Problem(record.place, f"text: expected a text, found {shown(text)}", "quote it")
        record.text, record.pictures = self._with_marks(text, len(pictures), record.place), pictures
        return record

    def conversation(self, record, turns, key, pictures):
        place = record.place
        if not isinstance(turns, list) or not turns:
            raise Problem(place, f"{key}: expected a list of turns, found {shown(turns) if turns != [] else 'none'}",
                          'write [{"role": "user", "content": "..."}, ...]')
        named, unnamed = [], [0]
        record.messages = [self._turn(turn, f"{place}: {key}[{i}]", named, unnamed) for i, turn in enumerate(turns)]
        if named and pictures:
            raise Problem(place, f"images stand in the turns ({len(named)}) and in a list of the document "
                          f"({len(pictures)})", "name each image in one place", kind="images")
        record.pictures = named or pictures
        if named and unnamed[0]:
            raise Problem(place, f"{len(named)} images of the turns have a path and {unnamed[0]} have none",
                          "give all of them a path, or none and a list `images`", kind="images")
        texts = [part for message in record.messages for part in _texts(message["content"])]
        marks = sum(text.count(MARK) for text in texts)
        if marks == 0 and record.pictures and self._images_first:
            self._put_first(record, place)
        elif marks != len(record.pictures):
            raise _marks(place, marks, len(record.pictures))
        if self._lists:
            for message in record.messages:
                if isinstance(message["content"], str) and MARK in message["content"]:
                    message["content"] = as_list(message["content"])
        return record

    def _put_first(self, record, place):
        for message in record.messages:
            if message["role"] == "user":
                message["content"] = MARK * len(record.pictures) + (message["content"] or "")
                return
        raise Problem(place, "--images-first puts marks before the first text of the user, and there is none",
                      "write the marks <image> into the turns", kind="images")

    def _with_marks(self, text, pictures, place):
        marks = text.count(MARK)
        if marks == 0 and pictures and self._images_first:
            return MARK * pictures + text
        if marks != pictures:
            raise _marks(place, marks, pictures)
        return text

    def _tools(self, tools, place):
        if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
            raise Problem(place, f"tools: expected a list of objects, found {shown(tools)}",
                          "write JSON schemas, as chat templates expect them")
        return tools or None

    def _variables(self, variables, place):
        if variables is None:
            return {}
        if not isinstance(variables, dict) or not all(str(name).isidentifier() and name not in GIVEN for name in
                                                      variables):
            raise Problem(f"{place}: {VARIABLES}", "expected an object with variables of the template, found " +
                          (f"the keys {', '.join(map(str, variables))}" if isinstance(variables, dict) else
                           shown(variables)), f'write "{VARIABLES}": {{"enable_thinking": false}}')
        return {name: value for name, value in variables.items() if value is not None}   # as columns of parquet have it

    def _listed(self, value, place):
        """Pictures of the keys image and images."""
        found = []
        for key in ("image", "images"):
            paths = value.get(key)
            # Mixtures have "" for documents without one.
            paths = [] if paths in (None, "") else paths if isinstance(paths, list) else [paths]
            found += [self.picture(path, f"{place}: {key}") for path in paths]
        return found

    def picture(self, value, place):
        if isinstance(value, dict):
            if isinstance(value.get("bytes"), bytes):
                return Picture(data=value["bytes"])
            value = next((value[key] for key in PATHS if value.get(key) is not None), value)
        if isinstance(value, bytes):
            return Picture(data=value)
        if not isinstance(value, str) or not value:
            raise Problem(place, f"expected the path of an image, found {shown(value)}", 'write "images": ["a.jpg"]',
                          kind="images")
        if URL.match(value):
            raise Problem(place, f"expected a file, found the address {value[:60]}",
                          "fetch the images first, and write where they lie", kind="images")
        return self._find(value, place)

    def _turn(self, turn, place, named, unnamed):
        if not isinstance(turn, dict):
            raise Problem(place, f"expected an object, found {shown(turn)}", 'write {"role": ..., "content": ...}')
        speaker, content = (("from", "value") if "from" in turn and "role" not in turn else ("role", "content"))
        role = ROLES.get(turn.get(speaker)) if isinstance(turn.get(speaker), str) else None
        if role is None:
            raise Problem(f"{place}: {speaker}", f"expected one of {', '.join(ROLES)}, found "
                          f"{shown(turn.get(speaker))}", "rename the speakers", kind="roles")
        others = {key: value for key, value in turn.items() if key not in (speaker, content)}
        text = turn.get(content)
        if text is None and not (role == "assistant" and others.get("tool_calls")):
            raise Problem(f"{place}: {content}", "expected a text or a list, found nothing",
                          "only a turn of the assistant with tool_calls may have none")
        if isinstance(text, list):
            text = "".join(self._item(item, f"{place}: {content}[{i}]", named, unnamed) for i, item in enumerate(text))
        elif text is not None and not isinstance(text, str):
            raise Problem(f"{place}: {content}", f"expected a text or a list, found {shown(text)}", "quote it")
        return {"role": role, "content": text, **others}

    def _item(self, item, place, named, unnamed):
        if isinstance(item, str):
            return item
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "text" and isinstance(item.get("text"), str):
            return item["text"]
        if kind in ("image", "image_url"):
            value = item.get("image_url") if kind == "image_url" else next(
                (item[key] for key in (*PATHS, "bytes") if item.get(key) is not None), None)
            if value is None:
                unnamed[0] += 1
            else:
                named.append(self.picture(value, place))
            return MARK
        if kind in ("video", "audio", "input_audio", "video_url", "audio_url"):
            raise Problem(place, f"{kind}: only text and images are trained", "leave such documents out")
        raise Problem(place, 'expected {"type": "text", "text": ...} or {"type": "image", ...}, found ' +
                      shown(item) + (f" of type {shown(kind)}" if kind is not None else ""), "convert the file first")


def _texts(content):
    return [content] if isinstance(content, str) else []


def _marks(place, marks, pictures):
    return Problem(place, f"{counted(marks, 'mark')} <image> in the text, and {counted(pictures, 'image')}",
                   "write one mark for each image" + (", or give --images-first" if not marks else ""), kind="images")


def as_list(text):
    parts = text.split(MARK)
    items = [{"type": "text", "text": parts[0]}] if parts[0] else []
    for part in parts[1:]:
        items.append({"type": "image"})
        if part:
            items.append({"type": "text", "text": part})
    return items
