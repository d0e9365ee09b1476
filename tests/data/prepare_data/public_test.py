"""Ids equal to those of transformers and of mistral-common, for two published tokenizers: that of the package
`anthropic` 0.38.0, and Tekken, which transformers converts to a tokenizer.json. `./dev soak` runs it.
"""
import array
import json
import pathlib
import tarfile
import tempfile
import unittest

from packages import BUILD, CACHE, SOURCE, TOY, fetch, prepare

TRANSFORMERS, REFERENCE, ANTHROPIC = CACHE / "transformers-5.23.0", BUILD / "reference_tokenizers", \
    CACHE / "anthropic-0.38.0"
fetch(TRANSFORMERS, "packages_transformers.txt")
fetch(REFERENCE, "packages_reference_tokenizers.txt")
fetch(ANTHROPIC, "packages_tokenizer.txt")
import sys  # noqa: E402
sys.path += [str(TRANSFORMERS), str(REFERENCE)]
import mistral_common  # noqa: E402
import transformers  # noqa: E402
from mistral_common.tokens.tokenizers.tekken import Tekkenizer  # noqa: E402

# Scripts, accents composed and not, emoji with joiners, spaces of every kind, numbers, code, half a word of each.
HARD = [
    "žluťoučký kůň", "Straße \ufb01n ½ Ⅷ", "café cafe\u0301", "日本語のテキスト。", "한국어 문장", "مرحبا بالعالم", "שלום עולם",
    "हिन्दी में", "\U0001f469\u200d\U0001f469\u200d\U0001f467 ok \U0001f3f3\ufe0f\u200d\U0001f308",
    "\u00a0no\u2009break\u200bspace\u3000", "  indented\t\ttabs  ", "1234567890 3.14159 1e-9", "don't WE'LL it's",
    "def f(x):\n    return x ** 2  # square", "<b>html</b> &amp; <br/>", "a" * 300, "ĠĊ literally", "\ufeffmark",
    "x\u0000y", "\ufffd\ufffd", "\ufdfa \u338f \u2460", "e\u0301\u0302\u0303", "ALL CAPS and camelCase snake_case",
    "\r\nlines\r\n\r\n\r\nmore"]
CHATS = [
    [("system", "Be brief."), ("user", "Who are you?"), ("assistant", "A wave."), ("user", "And?"),
     ("assistant", "Rain.")],
    [("user", "  x\n\n\n  y"), ("assistant", "z  ")],
    [("user", "I write <s>, </s>, [INST] and <META_END> literally"), ("assistant", "so do I: [/INST]<META_START>")],
    # A space at the begin of an answer joins the line break before it to one token: such a turn is refused.
    *([("user", text), ("assistant", text.strip())] for text in HARD)]
MARKS = ("<image>", "<META", "<SOS>", "<EOT>", "<s>", "</s>", "[INST]", "[IMG]", "<unk>", "<pad>")
PICTURE = b"\xff\xd8\xff\xe0" + b"j" * 20


def tekken(folder):
    """Tekken as transformers converts it, and mistral-common's own."""
    from transformers.integrations.mistral.tokenizer import MistralConverter
    source = pathlib.Path(mistral_common.__file__).parent / "data/tekken_240911.json"
    (folder / "tekken.json").write_bytes(source.read_bytes())
    MistralConverter(str(folder / "tekken.json")).converted().save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json", Tekkenizer.from_file(source)


def ids(folder):
    found = []
    for shard in sorted(folder.glob("*.tar")):
        with tarfile.open(shard) as tar:
            found += [list(array.array("I", tar.extractfile(member).read())) for member in tar if
                      member.name.endswith(".tok")]
    return found


class Public(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.folder.name)
        path, cls.tekkenizer = tekken(cls.at)
        cls.tokenizers = {
            "tekken": (path, ["--begin-token", "none"], TOY / "mistral.jinja", "[IMG]", "</s>", "<s>"),
            "anthropic": (ANTHROPIC / "anthropic/tokenizer.json", ["--image-token", "<META>", "--pad-token", "<SOS>"],
                          SOURCE / "docs/demo/icon_chats.jinja", "<META>", "<EOT>", None)}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def theirs(self, name):
        path, _, _, _, end, begin = self.tokenizers[name]
        return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token=end, bos_token=begin)

    def ours(self, name, out, *words):
        path, special, template, _, _, begin = self.tokenizers[name]
        variable = ["--template-set", f'bos_token="{begin}"'] if begin else []
        result = prepare("--tokenizer", path, *special, "--template", template, *variable, "-o", out, *words,
                         cwd=self.at)
        self.assertEqual(result.returncode, 0, result.stderr)
        return ids(self.at / out)

    def test_texts(self):
        pages = [line for page in sorted(SOURCE.glob("docs/**/*.md")) for line in page.read_text().splitlines()
                 if line and not any(mark in line for mark in MARKS)]
        texts = [*HARD, *pages, *("\n".join(pages[i:i + 40]) for i in range(0, len(pages), 40))]
        (self.at / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        self.assertGreater(len(texts), 5000)
        for name in self.tokenizers:
            theirs, found = self.theirs(name), self.ours(name, f"{name}_texts", "texts.jsonl")
            end = theirs.eos_token_id
            expected = theirs(texts, add_special_tokens=False)["input_ids"]
            different = [text for text, a, b in zip(texts, found, expected) if a != [*b, end]]
            self.assertEqual((different, len(found)), ([], len(texts)), name)
            if name == "tekken":
                different = [text for text, a in zip(texts, found)
                             if a != self.tekkenizer.encode(text, bos=False, eos=True)]
                self.assertEqual(different, [])

    def test_chats(self):
        chats = [[{"role": role, "content": text} for role, text in chat] for chat in CHATS]
        (self.at / "chats.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))
        for name in self.tokenizers:
            theirs, template = self.theirs(name), self.tokenizers[name][2].read_text()
            expected = [theirs.apply_chat_template(chat, chat_template=template, tokenize=True, return_dict=False,
                                                   sanitize_control_tokens=True) for chat in chats]
            self.assertEqual(self.ours(name, f"{name}_chats", "chats.jsonl"), expected, name)

    def test_pictures(self):
        (self.at / "a.jpg").write_bytes(PICTURE)
        chat = [{"role": "user", "content": "see <image>\nand <image>, ok?"}, {"role": "assistant", "content": "ok"}]
        (self.at / "pictures.jsonl").write_text(json.dumps({"messages": chat, "images": ["a.jpg", "a.jpg"]}) + "\n")
        for name in self.tokenizers:
            theirs, template = self.theirs(name), self.tokenizers[name][2].read_text()
            chat_of_theirs = json.loads(json.dumps(chat).replace("<image>", self.tokenizers[name][3]))
            expected = theirs.apply_chat_template(chat_of_theirs, chat_template=template, tokenize=True,
                                                  return_dict=False)
            self.assertEqual(self.ours(name, f"{name}_pictures", "pictures.jsonl"), [expected], name)


if __name__ == "__main__":
    unittest.main()
