"""Trains a model of Qwen3's sizes with Hugging Face transformers, as a judge of our speed.

    python tests/gpu/peers/transformers_lm.py FOLDER [--compiled] [--steps 15] [--out transformers.jsonl]

The sizes are those of Qwen3-1.7B (SIZES), the samples those of recipes/qwen3_1_7b_1g.yaml: 4 microbatches of 8,192
tokens a step, in bf16, with clipping and fused AdamW. transformers trains as it is: weights, gradients and moments are
bf16, where ours have fp32 masters, moments and gradients, so its step has less to do. --compiled: forward and loss by
torch.compile.

The first weights are random. FOLDER gets them, as transformers saves them, if it is not there; otherwise they are read
from it. A recipe starts from the same by `initialize.from`. Each step is a line of --out: loss, gradient norm,
milliseconds. The last line has the memory.
"""
import argparse
import pathlib
import sys

import torch
import transformers

import mock_data
import transformers_steps

SIZES = dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
             num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=40960, rms_norm_eps=1e-6,
             tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
SEQUENCE, MICROBATCHES = 8192, 4


def model_of(folder, device, sizes, seed=1234):
    torch.manual_seed(seed)
    kinds = dict(dtype=torch.bfloat16, attn_implementation="sdpa")
    if (folder / "config.json").exists():
        return transformers.Qwen3ForCausalLM.from_pretrained(folder, **kinds).to(device)
    with torch.device(device):
        model = transformers.Qwen3ForCausalLM._from_config(transformers.Qwen3Config(**sizes), **kinds)
    model.save_pretrained(folder)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--out", type=pathlib.Path, default="transformers.jsonl")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sequence", type=int, default=SEQUENCE)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=NUMBER", help="another size, to try it out")
    arguments = parser.parse_args()
    device = arguments.device
    sizes = SIZES | {key: int(value) for key, value in (word.split("=") for word in arguments.set)}
    model = model_of(arguments.folder, device, sizes).train()
    theta = float(model.model.rotary_emb.inv_freq[1]) ** (-sizes["head_dim"] / 2)
    if abs(theta / 1e6 - 1) > 1e-3:
        sys.exit(f"the base of the rotary embedding is {theta}")

    def loss_of(ids, labels, mask):
        logits = model(input_ids=ids, use_cache=False).logits
        losses = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none")
        return (losses * mask.flatten()).sum() / mask.sum()

    if arguments.compiled:
        loss_of = torch.compile(loss_of, dynamic=False)
    samples = mock_data.Samples(sizes["vocab_size"], arguments.sequence, arguments.sequence, device=device)
    batches = [samples.tokens(number) for number in range(arguments.steps * MICROBATCHES)]
    batches = [tuple(part[None] for part in batch) for batch in batches]
    steps = [batches[first:first + MICROBATCHES] for first in range(0, len(batches), MICROBATCHES)]
    transformers_steps.train(model, loss_of, steps, arguments.out, device, compiled=arguments.compiled)


if __name__ == "__main__":
    main()
