"""Writes tokenizer.json beside this file: a small byte-level BPE with the special tokens of all templates here."""
import pathlib

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

SPECIALS = ["<pad>", "<s>", "</s>", "<image>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
            "<|end_header_id|>", "<|eot_id|>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
            "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]
TEXT = ["the user asks and the assistant answers what it sees in the picture", "system user assistant tool",
        "a wave, another wave, and the weather: it is sunny, it is raining", "you are a helpful assistant",
        "What is in the picture? It is a wave.", "How is the weather in Prague?"] * 3


def main():
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIALS, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.save(str(pathlib.Path(__file__).with_name("tokenizer.json")), pretty=False)


if __name__ == "__main__":
    main()
