"""Trains a model of Qwen3-VL's sizes with Hugging Face transformers, as a judge of our speed.

    python tests/gpu/peers/transformers_vlm.py WEIGHTS [--taps 5,11,17] [--settings eager,compiled] [--out DIR]

The sizes are those of Qwen3-VL-2B (SIZES), the samples those of recipes/qwen3_vl_2b_1g.yaml: 8 samples of 4,096 tokens
a step, each with two images of three sizes. Precision, clipping and AdamW are those of transformers_lm.py. --taps: the
layers of the encoder whose features are added behind the first layers of the language model (DeepStack); none without.
A setting (SETTINGS) is how many samples a microbatch has, and what helps the speed; each of them begins with the same
weights.

The first weights are random, and the folder WEIGHTS gets them as transformers saves them. A recipe starts from the same
by `initialize.from`. DIR/SETTING.jsonl has the lines of transformers_steps.py; of a setting that cannot be run, the
last line says why.
"""
import argparse
import dataclasses
import json
import pathlib
import sys

import torch
import transformers

import mock_data
import transformers_steps

SIZES = {
    "text": dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
                 num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=262144,
                 rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 5e6,
                                                     "mrope_interleaved": True, "mrope_section": [24, 20, 20]}),
    "vision": dict(depth=24, hidden_size=1024, num_heads=16, intermediate_size=4096, patch_size=16,
                   temporal_patch_size=2, spatial_merge_size=2, num_position_embeddings=2304),
    "data": dict(side=64, sequence=4096, text_tokens=1024, image_token=151655),
}
SAMPLES, IMAGES, SEED = 8, 2, 11    # the seed of the recipe


@dataclasses.dataclass(frozen=True)
class Setting:
    micro_samples: int = 2
    checkpointing: bool = False
    compiled: bool = False    # layers of the language model, MLPs of the encoder, head and loss


# Those that help most come first. Compiled, or where layers run again in the backward, there is room for more samples
# at a time.
SETTINGS = {"compiled_4_samples": Setting(micro_samples=4, compiled=True), "compiled": Setting(compiled=True),
            "eager": Setting(), "checkpointing": Setting(micro_samples=4, checkpointing=True)}


def model_of(folder, device, sizes, taps, seed=1234):
    torch.manual_seed(seed)
    config = transformers.Qwen3VLConfig(
        text_config=sizes["text"], image_token_id=sizes["data"]["image_token"], tie_word_embeddings=True,
        vision_config=dict(sizes["vision"], out_hidden_size=sizes["text"]["hidden_size"],
                           deepstack_visual_indexes=taps))
    with torch.device(device):
        model = transformers.Qwen3VLForConditionalGeneration._from_config(config, dtype=torch.bfloat16,
                                                                          attn_implementation="sdpa")
    model.save_pretrained(folder)
    return model


def films(patches, grids, merge, frames):
    """Patches of stills as transformers takes them: by squares that become one token, and of equal frames."""
    found = []
    for image, (rows, columns) in zip(patches, grids):
        image = image.view(rows // merge, merge, columns // merge, merge, 3, 1, -1).transpose(1, 2)
        found.append(image.reshape(rows * columns, 3, 1, -1).expand(-1, -1, frames, -1).flatten(1))
    return torch.cat(found)


def positions(grids, merge, sequence, device):
    """Positions of three axes (docs/model/decoder.md#three-axes), [3, sequence]."""
    parts, begin = [], 0
    for rows, columns in grids:
        rows, columns = rows // merge, columns // merge
        row, column = (axis.flatten() for axis in torch.meshgrid(torch.arange(rows), torch.arange(columns),
                                                                 indexing="ij"))
        parts.append(begin + torch.stack([torch.zeros_like(row), row, column]))
        begin += max(rows, columns)
    left = sequence - sum(part.shape[1] for part in parts)
    parts.append((begin + torch.arange(left)).expand(3, -1))
    return torch.cat(parts, 1).to(device)


def microbatch(samples, numbers, vision, device):
    """The operands of the loss: ids, labels, mask, patches, grids and positions of these samples."""
    grids = [samples.grids_of(number) for number in numbers]
    tokens = [torch.stack(part) for part in zip(*map(samples.tokens, numbers))]
    merge, frames = vision["spatial_merge_size"], vision["temporal_patch_size"]
    patches = torch.cat([films(samples.patches(number), of, merge, frames).bfloat16()
                         for number, of in zip(numbers, grids)])
    sizes = torch.tensor([(1, rows, columns) for of in grids for rows, columns in of], device=device)
    return (*tokens, patches, sizes,
            torch.stack([positions(of, merge, samples.sequence, device) for of in grids], dim=1))


def loss_of_head(hidden, weight, labels, mask):
    logits = torch.nn.functional.linear(hidden, weight)
    losses = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none")
    return (losses * mask.flatten()).sum() / mask.sum()


def prepared(model, setting):
    """The loss of a microbatch in this setting."""
    head = torch.compile(loss_of_head, dynamic=False) if setting.compiled else loss_of_head
    if setting.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if setting.compiled:
        for layer in model.model.language_model.layers:
            layer.compile(dynamic=False)
        for block in model.model.visual.blocks:
            block.mlp.compile(dynamic=True)

    def loss_of(ids, labels, mask, patches, grids, places):
        hidden = model.model(input_ids=ids, pixel_values=patches, image_grid_thw=grids, position_ids=places,
                             use_cache=False).last_hidden_state
        return head(hidden, model.lm_head.weight, labels, mask)

    return loss_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("--taps", default="", help="numbers of layers of the encoder, with commas")
    parser.add_argument("--settings", default=",".join(SETTINGS), help="which, in turn; default: all")
    parser.add_argument("--steps", type=int, default=11)
    parser.add_argument("--out", type=pathlib.Path, default=".")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--set", action="append", default=[], metavar="PART.KEY=NUMBER",
                        help="another size, to try it out")
    arguments = parser.parse_args()
    device = arguments.device
    for word in arguments.set:
        key, value = word.split("=")
        part, _, key = key.partition(".")
        SIZES[part][key] = int(value)
    text, data = SIZES["text"], SIZES["data"]
    taps = [int(word) for word in arguments.taps.split(",") if word]
    model = model_of(arguments.weights, device, SIZES, taps).train()
    theta = float(model.model.language_model.rotary_emb.inv_freq[1]) ** (-text["head_dim"] / 2)
    if abs(theta / 5e6 - 1) > 1e-3:
        sys.exit(f"the base of the rotary embedding is {theta}")
    first = {name: value.detach().clone() for name, value in model.state_dict().items()}
    side = data["side"]
    samples = mock_data.Samples(text["vocab_size"], data["sequence"], data["text_tokens"], data["image_token"], IMAGES,
                                [(side, side), (side * 3 // 4, side), (side // 2, side)], seed=SEED, device=device)
    for name in arguments.settings.split(","):
        setting = SETTINGS[name]
        steps = [[microbatch(samples, range(begin, begin + setting.micro_samples), SIZES["vision"], device)
                  for begin in range(step * SAMPLES, (step + 1) * SAMPLES, setting.micro_samples)]
                 for step in range(arguments.steps)]
        model.load_state_dict(first)
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        out = arguments.out / f"{name}.jsonl"
        try:
            transformers_steps.train(model, prepared(model, setting), steps, out, device, setting=name)
        except Exception as error:    # of memory or of the compiler: the other settings are still of use
            with open(out, "a", encoding="utf-8") as lines:
                print(json.dumps({"failed": f"{type(error).__name__}: {str(error)[:400]}"}), file=lines)
        if setting.checkpointing:
            model.gradient_checkpointing_disable()
        model.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
