"""Borders of turns, over tokenizers of every kind: found with few encodings, and the same as by encoding all anew.

A shorter conversation is encoded as a whole here. If its ids begin those of the whole conversation, the border is their
number; otherwise it must be refused.
"""
import itertools
import random
import unittest

import packages  # noqa: F401 (fetches)

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from prepare_data.encode import Spans
from prepare_data.problems import Problem
from prepare_data.records import Record
from prepare_data.template import ChatTemplate
from prepare_data.tokenizer import Tokenizer

SPECIALS = ["<pad>", "<s>", "</s>", "<image>", "[INST]", "[/INST]", "<|im_start|>", "<|im_end|>"]
STRIPPING = {"<|im_end|>": {"rstrip": True}, "<image>": {"lstrip": True}, "[/INST]": {"lstrip": True, "rstrip": True}}
TRAINED_ON = ["\n\n\n the\n user\n\n  \n wave  the   user\n wave"] * 20 + ["What is in the picture? It is a wave."] * 3
WORDS = ["the", "user", " ", "\n", "wave", "  ", "<image>", "é", "e\u0301", "[INST]", "picture?", "."]
KINDS = {
    "byte level": (None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "byte level with a prefix": (None, pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "byte level of NFKC": (normalizers.NFKC(), pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "SentencePiece, prefix first": (None, pre_tokenizers.Metaspace(prepend_scheme="first")),
    "SentencePiece, prefix always": (None, pre_tokenizers.Metaspace(prepend_scheme="always")),
    "SentencePiece by a normalizer": (normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
                                      None)}
TEMPLATES = {
    "line breaks": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
                   "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "brackets": "<s>{% for m in messages %}{% if m.role == 'user' %}{{ '[INST]' + m.content + '[/INST]' }}{% else %}"
                "{{ m.content + '</s>' }}{% endif %}{% endfor %}",
    "words": "{% for m in messages %}{{ m.role + ': ' + m.content + ' ' }}{% endfor %}"
             "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"}


def made(kind, strips):
    normalizer, pre_tokenizer = KINDS[kind]
    bytes_ = kind.startswith("byte")
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token=None if bytes_ else "<s>"))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if bytes_ else ["▁", "\n", "é", "\u0301"]
    tokenizer.train_from_iterator(TRAINED_ON, trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIALS, show_progress=False, initial_alphabet=alphabet))
    if strips:
        tokenizer.add_special_tokens([tokenizers.AddedToken(text, special=True, normalized=False, **flags)
                                      for text, flags in STRIPPING.items()])
    found = Tokenizer("tokenizer.json", tokenizer.to_str().encode())
    found.finish(3, set())
    return found


class Borders(unittest.TestCase):
    def test_they_are_those_of_encoding_all_anew(self):
        draw, found, refused = random.Random(1234), 0, 0
        for kind, strips, name in itertools.product(KINDS, (False, True), TEMPLATES):
            tokenizer, template = made(kind, strips), ChatTemplate(TEMPLATES[name], "t.jinja")
            for _ in range(40):
                messages = tokenizer.protect([
                    {"role": ("user", "assistant")[i % 2],
                     "content": "".join(draw.choices(WORDS, k=draw.randint(1, 8)))}
                    for i in range(draw.choice((2, 4)))], {})
                spans = Spans(tokenizer, template.render(messages, None, False, "r"), Record("r"))
                for turns in range(1, len(messages)):
                    shorter = template.render(messages[:turns], None, turns % 2 == 1, "r")
                    whole = tokenizer.encode(shorter)
                    with self.subTest(kind=kind, strips=strips, template=name, shorter=shorter):
                        try:
                            self.assertEqual(self.border(spans, shorter, turns), whole)
                            found += 1
                        except Problem:
                            self.assertNotEqual(spans.ids[:len(whole)], whole)
                            refused += 1
        self.assertGreater(min(found, refused), 100)

    @staticmethod
    def border(spans, shorter, turns):
        return spans.ids[:spans.border(shorter, turns)]


if __name__ == "__main__":
    unittest.main()
