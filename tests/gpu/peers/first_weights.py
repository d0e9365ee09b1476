"""Writes random first weights of the 20-layer language model as a Hugging Face folder, so that others start as we do.

    python tests/gpu/peers/first_weights.py FOLDER [--experts 16] [--device cuda]

The published names and shapes (docs/model/language_model.md); values of the kinds that docs/model gives. The folder has
one file, `model.safetensors`, in bf16; the time-step biases, A_log and D are what bf16 makes of them. A recipe reads it
by `initialize.from`, megatron_lm.py by `load`.
"""
import argparse
import math
import pathlib

import torch
from safetensors.torch import save_file

PATTERN = "MEMEM*EMEMEM*EMEMEM*"
HIDDEN, VOCABULARY = 2688, 131072
HEADS, HEAD_DIM, KV_GROUPS = 32, 128, 8
MAMBA_HEADS, MAMBA_HEAD_DIM, GROUPS, STATE, CONV = 64, 64, 8, 128, 4
FFN, SHARED_FFN = 1856, 3712
STD = 0.0173


def tensors(experts, device, seed=1234):
    """Yields each parameter's name and value."""
    draw = torch.Generator(device).manual_seed(seed)

    def normal(*shape, std=STD):
        return torch.empty(shape, device=device, dtype=torch.bfloat16).normal_(0, std, generator=draw)

    def uniform(*shape, low, high):
        return torch.empty(shape, device=device).uniform_(low, high, generator=draw)

    def ones(*shape):
        return torch.ones(shape, device=device, dtype=torch.bfloat16)

    residual = STD / math.sqrt(len(PATTERN))
    yield "backbone.embeddings.weight", normal(VOCABULARY, HIDDEN)
    for number, kind in enumerate(PATTERN):
        layer = f"backbone.layers.{number}."
        yield layer + "norm.weight", ones(HIDDEN)
        layer += "mixer."
        if kind == "M":
            inner, channels = MAMBA_HEADS * MAMBA_HEAD_DIM, MAMBA_HEADS * MAMBA_HEAD_DIM + 2 * GROUPS * STATE
            yield layer + "in_proj.weight", normal(inner + channels + MAMBA_HEADS, HIDDEN)
            bound = 1 / math.sqrt(CONV)
            yield layer + "conv1d.weight", uniform(channels, 1, CONV, low=-bound, high=bound).bfloat16()
            yield layer + "conv1d.bias", uniform(channels, low=-bound, high=bound).bfloat16()
            step = uniform(MAMBA_HEADS, low=math.log(1e-3), high=math.log(0.1)).exp()
            yield layer + "dt_bias", (step + torch.log(-torch.expm1(-step))).bfloat16()
            yield layer + "A_log", uniform(MAMBA_HEADS, low=1, high=16).log().bfloat16()
            yield layer + "D", ones(MAMBA_HEADS)
            yield layer + "norm.weight", ones(inner)
            yield layer + "out_proj.weight", normal(HIDDEN, inner, std=residual)
        elif kind == "*":
            yield layer + "q_proj.weight", normal(HEADS * HEAD_DIM, HIDDEN)
            yield layer + "k_proj.weight", normal(KV_GROUPS * HEAD_DIM, HIDDEN)
            yield layer + "v_proj.weight", normal(KV_GROUPS * HEAD_DIM, HIDDEN)
            yield layer + "o_proj.weight", normal(HIDDEN, HEADS * HEAD_DIM, std=residual)
        else:
            yield layer + "gate.weight", normal(experts, HIDDEN)
            yield layer + "gate.e_score_correction_bias", torch.zeros(experts, device=device)
            for expert in range(experts):
                yield f"{layer}experts.{expert}.up_proj.weight", normal(FFN, HIDDEN)
                yield f"{layer}experts.{expert}.down_proj.weight", normal(HIDDEN, FFN, std=residual)
            yield layer + "shared_experts.up_proj.weight", normal(SHARED_FFN, HIDDEN)
            yield layer + "shared_experts.down_proj.weight", normal(HIDDEN, SHARED_FFN, std=residual)
    yield "backbone.norm_f.weight", ones(HIDDEN)
    yield "lm_head.weight", normal(VOCABULARY, HIDDEN)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.cpu() for name, value in tensors(arguments.experts, arguments.device)}
    save_file(weights, arguments.folder / "model.safetensors", metadata={"format": "pt"})
    print(f"{sum(value.numel() for value in weights.values()):,} parameters in {arguments.folder}")


if __name__ == "__main__":
    main()
