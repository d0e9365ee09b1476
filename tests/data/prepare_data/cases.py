"""For tests that prepare whole folders: inputs, runs, and what they left, read by tarfile and json alone."""
import array
import io
import json
import pathlib
import tarfile
import tempfile
import unittest

from packages import TOY, prepare

JPG, PNG = b"\xff\xd8\xff\xe0" + b"j" * 20, b"\x89PNG\r\n\x1a\n" + b"p" * 20
WEBP = b"RIFF\x20\0\0\0WEBPVP8 " + b"w" * 20


def read(folder):
    """Documents of a prepared folder: {name of document: {ending: bytes}} in order, and prepared.json."""
    about = json.loads((folder / "prepared.json").read_text())
    documents = {}
    for shard in about["shards"]:
        with tarfile.open(folder / shard["file"], "r:") as tar:
            for member in tar:
                key, _, ending = member.name.partition(".")
                documents.setdefault(key, {})[ending] = tar.extractfile(member).read()
        assert (folder / shard["file"]).stat().st_size == shard["bytes"]
    assert sum(shard["documents"] for shard in about["shards"]) == about["documents"] == len(documents)
    assert sum(len(parts["tok"]) // 4 for parts in documents.values()) == about["tokens"]
    return documents, about


def text_of(folder, document):
    names = [piece.encode("latin-1") for piece in json.loads((folder / "pieces.json").read_text())]
    return b"".join(names[token] for token in array.array("I", document["tok"])).decode()


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.at = pathlib.Path(self._folder.name)

    def write(self, name, value):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else
                         (value if isinstance(value, str) else json.dumps(value)).encode())
        return path

    def lines(self, name, values):
        return self.write(name, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def tar(self, name, members):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for member, data in members:
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return path

    def prepared(self, *words, out="out"):
        """Runs in the folder of the test, so that paths are relative."""
        result = prepare("--tokenizer", TOY, "--template", TOY / "chatml.jinja", "-o", out, "--jobs", "1", *words,
                         cwd=self.at)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.said, self.noted = result.stdout, result.stderr
        return read(self.at / out)

    def texts(self, documents, out="out"):
        return [text_of(self.at / out, parts) for parts in documents.values()]
