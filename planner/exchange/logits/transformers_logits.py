#!/usr/bin/env python3
"""Writes logits that Hugging Face transformers computes of a few tokens, for `plan evaluate --against`.

    transformers_logits.py FOLDER -o LOGITS.safetensors

FOLDER is a model with its weights, as `plan import` takes it. The tokens are those of a few short texts of this file,
of the lines of --text, or ids of a file of JSON; without a tokenizer in FOLDER, ids are drawn. Each sequence is
computed by itself, without padding and without a cache. Needs torch and transformers; loads no code of FOLDER.
docs/hugging_face.md#the-file-of-logits says what the file has.
"""
import argparse
import json
import pathlib
import sys

# Texts of several kinds: a model that does well on one of them only is not the model.
TEXTS = (
    "The library opens at nine. In winter the old reading room is heated by a single stove, so those who come early "
    "choose their seats with care, and those who come late keep their coats on.",
    "def mean(numbers):\n    total = 0\n    for number in numbers:\n        total += number\n    return total / len("
    "numbers)\n\n\nprint(mean([2, 4, 9]))\n",
    "Die Straßenbahn fährt um 7:45 Uhr ab. 12 + 30 = 42, und 3,5 km sind 3500 m. 東京は日本の首都です。",
    "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096",
)
DRAWN_SEQUENCES, SEED = 4, 1


def fail(message):
    raise SystemExit(f"error: {message}")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="a Hugging Face folder with weights")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="the file of logits to write")
    parser.add_argument("--text", type=pathlib.Path, help="a sequence for each of its lines (default: texts of ours)")
    parser.add_argument("--ids", type=pathlib.Path, help="token ids: a JSON list of lists of numbers")
    parser.add_argument("--tokens", type=int, default=64, help="of a sequence at most (default: 64)")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32",
                        help="of weights and activations (default: float32)")
    parser.add_argument("--device", default="cpu", help="as torch calls it: cpu, cuda, cuda:1 (default: cpu)")
    options = parser.parse_args(arguments)
    if options.tokens < 1:
        fail("--tokens must be at least 1")
    if options.text and options.ids:
        fail("--text and --ids exclude each other")
    if not (options.folder / "config.json").is_file():
        fail(f"{options.folder} has no config.json, so it is no Hugging Face folder")
    return options


def ids_of_file(path):
    try:
        sequences = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")
    good = isinstance(sequences, list) and sequences and all(
        isinstance(ids, list) and ids and all(type(one) is int for one in ids) for ids in sequences)
    if not good:
        fail(f"{path} is not a JSON list of lists of token ids, such as [[1, 17, 4], [9, 2]]")
    return sequences


def sequences_of(options, config):
    """Lists of token ids, and what they are of, for people."""
    import torch
    import transformers

    if options.ids:
        return ids_of_file(options.ids), f"the ids of {options.ids}"
    texts = TEXTS
    if options.text:
        texts = [line for line in options.text.read_text(encoding="utf-8").splitlines() if line.strip()]
        if not texts:
            fail(f"{options.text} has no line with text")
    names = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
    if any((options.folder / name).is_file() for name in names):
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder, trust_remote_code=False)
        sequences = [tokenizer(text)["input_ids"] for text in texts]
        return [ids for ids in sequences if ids], str(options.text or "texts of this script")
    if options.text:
        fail(f"{options.folder} has no tokenizer for --text; give --ids")
    generator = torch.Generator().manual_seed(SEED)
    drawn = torch.randint(0, config.get_text_config().vocab_size, (DRAWN_SEQUENCES, options.tokens),
                          generator=generator)
    image = getattr(config, "image_token_id", None)
    if image is not None:
        drawn[drawn == image] = 1 if image == 0 else 0  # there are no images
    return drawn.tolist(), "drawn ids, as the folder has no tokenizer"


def load_model(options):
    """The model, all of whose weights are those of the folder."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(options.folder, trust_remote_code=False)
    kinds = (transformers.AutoModelForCausalLM, transformers.AutoModelForImageTextToText)
    fitting = [kind for kind in kinds if type(config) in kind._model_mapping]
    if not fitting:
        fail(f"transformers {transformers.__version__} has no language model for model_type {config.model_type}")
    # The plain forms: grouped products of experts want sizes that not every model has.
    plain = {"attn_implementation": "eager"}
    if int(transformers.__version__.split(".")[0]) >= 5:
        plain["experts_implementation"] = "eager"
    model, info = fitting[0].from_pretrained(
        options.folder, dtype=getattr(torch, options.dtype), trust_remote_code=False, output_loading_info=True, **plain)
    # What is not in the folder is drawn, and the logits would be those of no model.
    wrong = sorted(info["missing_keys"]) + sorted(str(key) for key in info["mismatched_keys"])
    if wrong:
        fail(f"the folder has not {len(wrong)} tensors that the model needs, such as {wrong[0]}")
    return model.eval().to(options.device)


def main(arguments):
    options = parse(arguments)
    try:
        import safetensors.torch
        import torch
        import transformers
    except ImportError as error:
        fail(f"{error}; this script needs the Python packages torch and transformers")
    transformers.logging.disable_progress_bar()
    model = load_model(options)
    vocabulary = model.config.get_text_config().vocab_size
    sequences, of = sequences_of(options, model.config)
    sequences = [ids[:options.tokens] for ids in sequences]
    for ids in sequences:
        if min(ids) < 0 or max(ids) >= vocabulary:
            fail(f"a token id is {min(ids) if min(ids) < 0 else max(ids)}, and the model has {vocabulary}")
    longest = max(map(len, sequences))
    token_ids = torch.zeros(len(sequences), longest, dtype=torch.int64)
    logits = torch.zeros(len(sequences), longest, vocabulary)
    with torch.inference_mode():
        for row, ids in enumerate(sequences):
            token_ids[row, :len(ids)] = torch.tensor(ids)
            found = model(input_ids=torch.tensor([ids], device=options.device), use_cache=False).logits[0]
            logits[row, :len(ids)] = found.float().cpu()
            if not torch.isfinite(found).all():
                fail(f"transformers computes logits that are not finite in {options.dtype}; use another --dtype")
    safetensors.torch.save_file(
        {"token_ids": token_ids, "lengths": torch.tensor([len(ids) for ids in sequences]), "logits": logits},
        options.output,
        {"program": f"transformers {transformers.__version__}, torch {torch.__version__}",
         "model": options.folder.resolve().name, "dtype": options.dtype, "device": options.device})
    print(f"{options.output}: {len(sequences)} sequences, {sum(map(len, sequences))} tokens of {of}, "
          f"{vocabulary} logits each, computed in {options.dtype} by transformers {transformers.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])
