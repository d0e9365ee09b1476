"""Inputs with one mistake each, and what is said of it, to the letter."""
import io
import json
import tarfile

JPG = b"\xff\xd8\xff\xe0" + b"j" * 20
TURNS = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]


def line(value):
    return (json.dumps(value) + "\n").encode()


def tar(*members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return stream.getvalue()


# What stands in a file (name, bytes), and what is said of it.
RECORDS = [
    ("a.jsonl", b"{\"text\": }\n", "a.jsonl:1: expected JSON, found something else at column 10: Expecting value; "
     "write the file by a JSON library"),
    ("a.jsonl", line({"text": "x"}) + b"{\"text\": \"\xff\"}\n",
     "a.jsonl:2: expected UTF-8, found byte 0xff at byte 11; convert the file: iconv -f LATIN1 -t UTF-8"),
    ("a.jsonl", b"[" * 100_000 + b"\n", "a.jsonl:1: the JSON is too large to read: maximum recursion depth exceeded "
     "while decoding a JSON array from a unicode string; leave it out"),
    ("a.jsonl", b'{"text": "a", "text": "b"}\n', "a.jsonl:1: the key 'text' stands twice in one object; name it once"),
    ("a.jsonl", b'{"messages": [{"role": "user", "content": "a", "role": "user"}]}\n', "a.jsonl:1: the key 'role' "
     "stands twice in one object; name it once"),
    ("a.json", b'[{"text": "a", "text": "b"}]', "a.json: the key 'text' stands twice in one object; name it once"),
    ("a.tar", tar(("0.jpg", JPG), ("0.txt", b"x"), ("0.jpeg", JPG)), "a.tar: document 0: it has 2 pictures: jpg, jpeg; "
     "say by --field which is taken: --field image=jpg --field text=txt"),
    ("a.jsonl", line([1]), "a.jsonl:1: expected an object with messages, conversations or text, found a list; write "
     "one object a document"),
    ("a.jsonl", line({"text": None}), "a.jsonl:1: text: expected a text or turns, found null; leave such documents "
     "out"),
    ("a.jsonl", line({"prompt": "x"}), "a.jsonl:1: expected one of messages, conversations and text, found the keys "
     "prompt; name the keys as such, or convert the file first"),
    ("a.jsonl", line({"text": "x", "messages": TURNS}), "a.jsonl:1: expected one of messages, conversations and text, "
     "found messages and text; name the keys as such, or convert the file first"),
    ("a.jsonl", line({"text": 3}), "a.jsonl:1: text: expected a text, found a number 3; quote it"),
    ("a.jsonl", line({"text": ""}), "a.jsonl:1: the text is empty; leave it out"),
    ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl:1: the text has half a character, U+D800; write the file anew by a "
     "JSON library"),
    ("a.jsonl", line({"text": "x", "video": "x.mp4"}), "a.jsonl:1: video: only text and images are trained; leave such "
     "documents out"),
    ("a.jsonl", line({"messages": {}}), 'a.jsonl:1: messages: expected a list of turns, found an object; write '
     '[{"role": "user", "content": "..."}, ...]'),
    ("a.jsonl", line({"messages": ["x"]}), "a.jsonl:1: messages[0]: expected an object, found text 'x'; write "
     "{\"role\": "
     '..., "content": ...}'),
    ("a.jsonl", line({"messages": [{"role": "narrator", "content": "x"}]}), "a.jsonl:1: messages[0]: role: expected "
     "one of "
     "human, user, gpt, assistant, system, developer, tool, observation, function, ipython, found text 'narrator'; "
     "rename the speakers"),
    ("a.jsonl", line({"messages": [{"role": "user"}]}), "a.jsonl:1: messages[0]: content: expected a text or a list, "
     "found nothing; only a turn of the assistant with tool_calls may have none"),
    ("a.jsonl", line({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}),
     "a.jsonl:1: messages[0]: content[0]: audio: only text and images are trained; leave such documents out"),
    ("a.jsonl", line({"messages": [{"role": "user", "content": [{"kind": "text"}]}]}),
     'a.jsonl:1: messages[0]: content[0]: expected {"type": "text", "text": ...} or {"type": "image", ...}, found an '
     "object; convert the file first"),
    ("a.jsonl", line({"text": "a <image>"}), "a.jsonl:1: 1 mark <image> in the text, and 0 images; write one mark "
     "for each image"),
    ("a.jsonl", line({"messages": TURNS, "image": "there.jpg"}), "a.jsonl:1: 0 marks <image> in the text, and 1 image; "
     "write one mark for each image, or give --images-first"),
    ("a.jsonl", line({"text": "a", "image": "there.jpg"}), "a.jsonl:1: 0 marks <image> in the text, and 1 image; "
     "write one mark for each image, or give --images-first"),
    ("a.jsonl", line({"text": "<image>", "image": "gone.jpg"}), "a.jsonl:1: image: there is no image gone.jpg; images "
     "lie beside the file that names them, or in --images FOLDER"),
    ("a.jsonl", line({"text": "<image>", "image": "a\x1b[31m\n.jpg"}), "a.jsonl:1: image: there is no image "
     "a\\x1b[31m\\n.jpg; images lie beside the file that names them, or in --images FOLDER"),
    ("a.jsonl", line({"text": "<image>", "image": "https://x.org/a.jpg"}), "a.jsonl:1: image: expected a file, found "
     "the address https://x.org/a.jpg; fetch the images first, and write where they lie"),
    ("a.jsonl", line({"text": "<image>", "image": "picture.gif"}), "a.jsonl:1: image: picture.gif: expected a JPEG, "
     "PNG or WebP picture, found a file that begins with 47 49 46 38 39 61 00 00; convert the pictures first"),
    ("a.jsonl", line({"messages": [{"role": "user", "content": [{"type": "image", "image": "there.jpg"}]}, TURNS[1]],
                      "images": ["there.jpg"]}), "a.jsonl:1: images stand in the turns (1) and in a list of the "
     "document (1); name each image in one place"),
    ("a.jsonl", line({"messages": TURNS, "tools": "x"}), "a.jsonl:1: tools: expected a list of objects, found text "
     "'x'; write JSON schemas, as chat templates expect them"),
    ("a.jsonl", line({"text": "x", "tools": [{"a": json.loads("[" * 700 + "]" * 700)}]}).replace(b'"text": "x"', line(
        {"messages": TURNS})[1:-2]), "a.jsonl:1: its lists and objects stand too deep in each other; leave it out"),
    ("a.jsonl", b"\n\n", "a.jsonl: there is no document in it; look at the file"),
    ("a.json", line({"id": 1}), "a.json: expected one JSON array of documents, found an object; is it JSONL? then give "
     "--format jsonl"),
    ("a.json", line([{"id": "x7", "conversations": []}]), 'a.json: record 0 (id x7): conversations: expected a list of '
     'turns, found none; write [{"role": "user", "content": "..."}, ...]'),
    ("a.txt", b"\xe9", "a.txt: expected UTF-8, found byte 0xe9 at byte 1; convert the file: iconv -f LATIN1 -t UTF-8"),
    ("a.tar", b"x" * 2000, "a.tar: expected a tar file that is not compressed, found another or a damaged one: "
     "invalid header; unpack it, or make it anew"),
    ("a.tar", tar(("0.jpg", b"GIF89a"), ("0.txt", b"x")), "a.tar: document 0: a.tar: 0.jpg: expected a JPEG, PNG or "
     "WebP picture, found a file that begins with 47 49 46 38 39 61; convert the pictures first"),
    ("a.tar", tar(("0.jpg", JPG), ("0.cls", b"3")), "a.tar: document 0: expected a member txt, found jpg, cls; say by "
     "--field which members a document has"),
    ("a.tar", tar(("0.txt", b"x"), ("0.txt", b"y")), "a.tar: document 0 has two members txt; make the shard anew"),
    ("a.parquet", b"PAR1", "a.parquet: expected a parquet file, found another: Parquet file size is 4 bytes, smaller "
     "than the minimum file footer (8 bytes); give --format"),
    ("a.jsonl", line({"text": "<image>", "image": "a\0b.jpg"}), "a.jsonl:1: image: 'a\\x00b.jpg' is no name of a "
     "file: embedded null byte; mend the name"),
    ("a.bin", b"x", "a.bin: nothing in its name says what it is; give --format: jsonl, llava, jsonl_media, parquet, "
     "text, webdataset, energon"),
]
