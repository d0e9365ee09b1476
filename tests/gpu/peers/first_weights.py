"""Writes random first weights of the 20-layer model as a Hugging Face folder, so that others start as we do.

    python tests/gpu/peers/first_weights.py FOLDER [--images] [--experts 16] [--device cuda]

The language model, or with --images the whole vision-language model. The published names and shapes, and values of the
kinds that docs/model gives. The folder has one file, `model.safetensors`, in bf16; the time-step biases, A_log and D
are what bf16 makes of them. A recipe reads it by `initialize.from`, megatron_lm.py and megatron_vlm.py by `load`.
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
ENCODER_LAYERS, ENCODER_HIDDEN, ENCODER_HEADS, ENCODER_FFN, ENCODER_STD = 32, 1280, 16, 5120, 0.02
PATCH, SIDE, CLASS_TOKENS, FACTOR, PROJECTOR = 16, 128, 8, 2, 20480


class Values:
    """Random values of parameters."""

    def __init__(self, device, seed=1234):
        self.device, self.draw = device, torch.Generator(device).manual_seed(seed)

    def normal(self, *shape, std=STD):
        return torch.empty(shape, device=self.device, dtype=torch.bfloat16).normal_(0, std, generator=self.draw)

    def uniform(self, *shape, low, high):
        return torch.empty(shape, device=self.device).uniform_(low, high, generator=self.draw)

    def ones(self, *shape):
        return torch.ones(shape, device=self.device, dtype=torch.bfloat16)

    def zeros(self, *shape):
        return torch.zeros(shape, device=self.device, dtype=torch.bfloat16)


def language(values, experts):
    """Yields the name and value of each parameter of the language model."""
    normal, uniform, ones = values.normal, values.uniform, values.ones
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
            yield layer + "gate.e_score_correction_bias", torch.zeros(experts, device=values.device)
            for expert in range(experts):
                yield f"{layer}experts.{expert}.up_proj.weight", normal(FFN, HIDDEN)
                yield f"{layer}experts.{expert}.down_proj.weight", normal(HIDDEN, FFN, std=residual)
            yield layer + "shared_experts.up_proj.weight", normal(SHARED_FFN, HIDDEN)
            yield layer + "shared_experts.down_proj.weight", normal(HIDDEN, SHARED_FFN, std=residual)
    yield "backbone.norm_f.weight", ones(HIDDEN)
    yield "lm_head.weight", normal(VOCABULARY, HIDDEN)


def encoder(values):
    """Yields the name and value of each parameter of the encoder and of its projector."""
    normal, ones, zeros = values.normal, values.ones, values.zeros
    hidden, joined = ENCODER_HIDDEN, FACTOR**2 * ENCODER_HIDDEN
    residual = ENCODER_STD / math.sqrt(2 * ENCODER_LAYERS)
    patches = "vision_model.radio_model.model.patch_generator."
    yield patches + "embedder.weight", normal(hidden, 3 * PATCH**2, std=1)
    yield patches + "pos_embed", normal(1, SIDE**2, hidden, std=1 / math.sqrt(hidden))
    yield patches + "cls_token.token", normal(CLASS_TOKENS, hidden, std=1 / math.sqrt(hidden))
    for number in range(ENCODER_LAYERS):
        block = f"vision_model.radio_model.model.blocks.{number}."
        for norm in ("norm1", "norm2"):
            yield f"{block}{norm}.weight", ones(hidden)
            yield f"{block}{norm}.bias", zeros(hidden)
        for layer, rows, columns, std in (("attn.qkv", 3 * hidden, hidden, ENCODER_STD),
                                          ("attn.proj", hidden, hidden, residual),
                                          ("mlp.fc1", ENCODER_FFN, hidden, ENCODER_STD),
                                          ("mlp.fc2", hidden, ENCODER_FFN, residual)):
            yield f"{block}{layer}.weight", normal(rows, columns, std=std)
            yield f"{block}{layer}.bias", zeros(rows)
    yield "vision_model.final_norm.weight", ones(hidden)
    yield "vision_model.final_norm.bias", zeros(hidden)
    yield "mlp1.0.weight", ones(joined)
    yield "mlp1.1.weight", normal(PROJECTOR, joined)
    yield "mlp1.3.weight", normal(HIDDEN, PROJECTOR, std=STD / math.sqrt(len(PATTERN)))


def tensors(experts, device, images):
    """Yields the name and value of each parameter."""
    values = Values(device)
    for name, value in language(values, experts):
        yield "language_model." * images + name, value
    if images:
        yield from encoder(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--images", action="store_true", help="the vision-language model")
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.cpu() for name, value in
               tensors(arguments.experts, arguments.device, arguments.images)}
    save_file(weights, arguments.folder / "model.safetensors", metadata={"format": "pt"})
    print(f"{sum(value.numel() for value in weights.values()):,} parameters in {arguments.folder}")


if __name__ == "__main__":
    main()
