"""What is taken when nobody says it: templates and special tokens beside a tokenizer. And Jinja as in transformers."""
import datetime
import hashlib
import json
import pathlib
import shutil
import tempfile
import unittest

import packages  # noqa: F401 (fetches)
from packages import TOY

from prepare_data import arguments
from prepare_data.load import load
from prepare_data.problems import Problem, Problems
from prepare_data.records import Record
from prepare_data.template import ChatTemplate


class Choices(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        shutil.copy(TOY / "tokenizer.json", self.at)

    def write(self, name, value):
        (self.at / name).write_text(value if isinstance(value, str) else json.dumps(value))

    def load(self, *words):
        return load(arguments.parse(["--show", "0", "--tokenizer", str(self.at), *words, str(self.at)]))

    def rendered(self, *words):
        return self.load(*words).template.render([{"role": "user", "content": "x"}], None, False, "r:1")

    def test_templates(self):
        self.write("tokenizer_config.json", {"chat_template": "config", "bos_token": {"content": "<s>"}})
        self.assertEqual(self.rendered(), "config")
        self.write("tokenizer_config.json", {"chat_template": [{"name": "default", "template": "first{{ bos_token }}"},
                                                               {"name": "other", "template": "second{{ a }}"}],
                                             "bos_token": "<s>"})
        self.assertEqual(self.rendered(), "first<s>")
        self.assertEqual(self.rendered("--template-name", "other", "--template-set", "a=[1]"), "second[1]")
        with self.assertRaises(Problems) as caught:
            self.load("--template-name", "third")
        self.assertEqual(str(caught.exception.problems[0]), f"{self.at}/tokenizer_config.json: chat_template has no "
                         "'third': it has default, other; choose one by --template-name")
        self.write("chat_template.jinja", "file")
        self.assertEqual(self.rendered(), "file")
        self.write("mine.jinja", "mine\n")
        self.assertEqual(self.rendered("--template", str(self.at / "mine.jinja")), "mine")
        self.assertEqual(self.load("--template", str(self.at / "mine.jinja")).template.sha256,
                         "fcbc800db3f1867000b852f1ce0044b8f1584f76ade1ed6e65189824f95c3cda")   # of "mine\n"
        self.assertEqual(self.rendered("--template", str(self.at / "tokenizer_config.json")), "first<s>")

    def with_tools(self, tools, *words):
        chosen = self.load(*words).template.of(tools)
        return chosen.render([{"role": "user", "content": "x"}], tools, False, "r:1")

    def test_documents_with_tools_have_the_template_that_transformers_takes(self):
        tools = [{"type": "function", "function": {"name": "f"}}]
        of_tools = "tools {{ tools | tojson }}"
        named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": of_tools}]
        self.write("tokenizer_config.json", {"chat_template": named})
        written = "tools " + json.dumps(tools)
        self.assertEqual((self.with_tools(tools), self.with_tools(None)), (written, "plain"))
        self.assertEqual(self.with_tools(tools, "--template", str(self.at / "tokenizer_config.json")), written)
        self.assertEqual(self.with_tools(tools, "--template-name", "default"), "plain")
        self.assertEqual(self.with_tools(None, "--template-name", "tool_use"), "tools null")
        found = self.load()
        self.assertEqual(found.template.sha256, hashlib.sha256(f"plain\0{of_tools}".encode()).hexdigest())
        place = f"{self.at}/tokenizer_config.json"
        self.assertEqual([words for name, words in found.settings if name in ("template", "with tools")],
                         [f"{place} (default)", f"{place} (tool_use)"])
        # As transformers saves them. The files come before tokenizer_config.json.
        self.write("chat_template.jinja", "plain file")
        self.assertEqual(self.with_tools(tools), "plain file")
        (self.at / "additional_chat_templates").mkdir()
        self.write("additional_chat_templates/tool_use.jinja", "tools file")
        self.assertEqual((self.with_tools(tools), self.with_tools(None)), ("tools file", "plain file"))
        self.assertEqual(self.with_tools(None, "--template-name", "tool_use"), "tools file")
        (self.at / "chat_template.jinja").unlink()
        with self.assertRaises(Problems) as caught:
            self.load()
        self.assertEqual(str(caught.exception.problems[0]), f"{self.at}: chat_template has no 'default': it has "
                         "tool_use; choose one by --template-name")

    def test_tools_that_the_template_does_not_read_are_told(self):
        tools = [{"type": "function", "function": {"name": "f"}}]
        call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
        turns = [{"role": "user", "content": "Q"}, call, {"role": "tool", "content": "42"},
                 {"role": "assistant", "content": "y"}]
        plain = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}" \
                "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
        self.write("chat_template.jinja", plain)

        def unused(messages):
            return self.load().encoder.encode(Record("a:1", messages=messages, tools=tools)).unused
        with self.assertRaises(Problem) as caught:
            unused(turns)
        self.assertEqual(str(caught.exception), f"a:1: turn 1 of the assistant has tool_calls alone, and the template "
                         f"{self.at}/chat_template.jinja writes nothing of them: an empty turn would be learnt; give a "
                         "template that knows tools (--template, --template-name), or leave the document out")
        self.assertEqual(unused([turns[0], {**call, "content": "I call f"}, *turns[2:]]), ("tools", "tool_calls"))
        self.write("chat_template.jinja", plain.replace("{{ m.content }}", "{{ m.content }}{{ m.tool_calls }}"))
        self.assertEqual(unused(turns), ("tools",))
        self.write("chat_template.jinja", "{{ tools | tojson }}" + plain.replace(
            "{{ m.content }}", "{{ m.content }}{{ m.tool_calls }}"))
        self.assertEqual(unused(turns), ())

    def refusal(self, *words):
        with self.assertRaises(Problems) as caught:
            self.load(*words)
        return str(caught.exception.problems[0])

    def test_templates_have_the_special_tokens_that_transformers_gives_them(self):
        self.write("chat_template.jinja", "{{ bos_token }}|{{ sot_token }}|{{ image_token }}|{{ eos_token }}")
        self.write("tokenizer_config.json", {"image_token": "<image>", "eos_token": "<pad>",
                                             "extra_special_tokens": {"sot_token": "<|im_start|>"}})
        self.write("special_tokens_map.json", {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>",
                                               "pad_token": "<pad>"})
        self.assertEqual(self.rendered(), "<s>|<|im_start|>|<image>|</s>")
        self.assertEqual(self.ids()["end"], (2, "eos_token of special_tokens_map.json"))
        # With added_tokens_decoder, transformers reads no special_tokens_map.json.
        self.write("tokenizer_config.json", {"image_token": "<image>", "eos_token": "<|im_end|>", "bos_token": "<s>",
                                             "model_specific_special_tokens": {"sot_token": "[INST]"},
                                             "added_tokens_decoder": {"1": {"content": "<s>", "special": True}}})
        self.assertEqual(self.rendered(), "<s>|[INST]|<image>|<|im_end|>")

    def test_special_tokens_that_nobody_names_are_not_left_out(self):
        self.write("chat_template.jinja", "{% if sep_token %}s{% endif %}{{ cls_token or '' }}{{ other }}"
                   "<{{ bos_token }}>")
        with self.assertRaises(Problem) as caught:
            self.rendered()
        self.assertEqual(str(caught.exception), f"{self.at}/chat_template.jinja: the template writes bos_token, and no "
                         "file beside the tokenizer says which token it is; say it: --template-set "
                         "bos_token='\"TEXT\"'")
        self.assertEqual(self.rendered("--template-set", 'bos_token="b"'), "<b>")
        self.write("tokenizer_config.json", {"bos_token": None})   # a file says that there is none
        self.assertEqual(self.rendered(), "<>")

    def test_tokens_that_the_tokenizer_lacks(self):
        how = "write it anew: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OUT)"
        added = {str(number): {"content": text} for number, text in enumerate(("<s>", "<|turn|>", "<|x|>"))}
        self.write("tokenizer_config.json", {"added_tokens_decoder": added})
        self.assertEqual(self.refusal(), f"{self.at}/tokenizer.json: its added tokens lack '<|turn|>' and 1 more, "
                         f"which added_tokens_decoder of tokenizer_config.json adds; {how}")
        self.write("tokenizer_config.json", {"additional_special_tokens": ["<s>", "<|y|>"]})
        self.assertEqual(self.refusal(), f"{self.at}/tokenizer.json: its added tokens lack '<|y|>', which "
                         f"additional_special_tokens of tokenizer_config.json adds; {how}")
        self.write("tokenizer_config.json", {})
        self.write("added_tokens.json", {"<|z|>": 364})
        self.assertEqual(self.refusal(), f"{self.at}/tokenizer.json: its added tokens lack '<|z|>', which "
                         f"added_tokens.json adds; {how}")
        self.write("added_tokens.json", {"<s>": 1})
        self.write("tokenizer_config.json", {"bos_token": "<begin>", "sep_token": "<sep>"})
        self.write("chat_template.jinja", "{{ bos_token }}")
        self.assertEqual(self.refusal(), f"{self.at}/chat_template.jinja: it writes bos_token, which is '<begin>' by "
                         f"tokenizer_config.json, and the added tokens of {self.at}/tokenizer.json lack it; write the "
                         "tokenizer anew: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OUT)")
        self.assertEqual(self.rendered("--template-set", 'bos_token="b"'), "b")

    def ids(self, *words):
        return {role: (found.id, found.source) for role, found in self.load(*words).ids.items()}

    def test_special_tokens(self):
        usual = "a special token of the tokenizer"
        self.assertEqual(self.ids(), {"end": (2, usual), "pad": (0, usual), "image": (3, usual)})
        # Padding is known by its place: it may have the id of the end.
        self.write("tokenizer_config.json", {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>",
                                             "image_token": "[INST]"})
        self.assertEqual(self.ids(), {"end": (5, "eos_token of tokenizer_config.json"),
                                      "pad": (5, "pad_token of tokenizer_config.json"),
                                      "image": (10, "image_token of tokenizer_config.json")})
        self.assertEqual(self.ids("--pad-token", "7", "--image-token", "<image>"), {
            "end": (5, "eos_token of tokenizer_config.json"), "pad": (7, "--pad-token"), "image": (3, "--image-token")})

    def test_padding_may_be_the_end(self):
        """Padding is known by its place, so texts have their ends, which are learnt."""
        self.write("tokenizer_config.json", {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>"})
        shutil.copy(TOY / "chatml.jinja", self.at / "chat_template.jinja")
        encoder = self.load("--append-end", "all").encoder
        turns = [{"role": "user", "content": "wave?"}, {"role": "assistant", "content": "yes"},
                 {"role": "user", "content": "<|im_end|>"}, {"role": "assistant", "content": "no"}]
        found = encoder.encode(Record("a:1", text="a wave"))
        self.assertEqual((found.ids[-1], found.mask), (5, None))
        found = encoder.encode(Record("a:2", messages=turns))
        ends = [i for i, token in enumerate(found.ids) if token == 5]
        # Ends of four turns and of the conversation: those of the assistant, and the last one, are learnt.
        self.assertEqual([found.mask[i] for i in ends], [0, 1, 0, 1, 1])
        self.write("tokenizer_config.json", {"eos_token": "</s>", "pad_token": "<|im_end|>"})
        with self.assertRaises(Problem) as caught:
            self.load().encoder.encode(Record("a:3", messages=turns))
        self.assertEqual(str(caught.exception), "a:3: id 7 is the pad token, which no text may have; choose another "
                         "--pad-token")

    def test_what_the_tokenizer_puts_before_a_text(self):
        self.assertIsNone(self.load().encoder.begin)
        tokenizer = json.loads((self.at / "tokenizer.json").read_text())
        tokenizer["post_processor"] = {
            "type": "TemplateProcessing", "pair": [],
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
        self.write("tokenizer.json", tokenizer)
        self.assertEqual(self.load().encoder.begin, 1)
        self.assertIsNone(self.load("--begin-token", "none").encoder.begin)
        self.assertEqual(self.load("--begin-token", "</s>").encoder.begin, 2)


class Jinja(unittest.TestCase):
    def rendered(self, text, **rest):
        return ChatTemplate(text, "t.jinja", {"value": {"a": "ř<b>"}}, **rest).render(
            [{"role": "user", "content": None, "reasoning": "so"}], None, False, "r:1")

    def test_as_transformers_renders(self):
        self.assertEqual(self.rendered("{% for m in messages %}\n  {% if true %}\nx\n  {% endif %}\n{% endfor %}\ny"),
                         "x\ny")
        self.assertEqual(self.rendered("{{ value | tojson }}"), '{"a": "ř<b>"}')
        self.assertEqual(self.rendered("{{ value | tojson(indent=1) }}"), '{\n "a": "ř<b>"\n}')
        self.assertEqual(self.rendered("{{ messages[0].reasoning_content }}{{ 'content' in messages[0] }}"), "soFalse")
        self.assertEqual(self.rendered("{% for i in [1, 2] %}{% break %}{% endfor %}{% generation %}z"
                                       "{% endgeneration %}"), "z")

    def test_a_date_must_be_said(self):
        text = "{{ strftime_now('%d %B %Y') }}"
        with self.assertRaisesRegex(Problem, "say which date: --date"):
            self.rendered(text)
        self.assertEqual(self.rendered(text, date=datetime.date(2026, 1, 31)), "31 January 2026")

    def test_it_cannot_reach_out(self):
        with self.assertRaisesRegex(Problem, "unsafe"):
            self.rendered("{{ messages.__class__.__mro__ }}")


if __name__ == "__main__":
    unittest.main()
