"""Makes tests/golden/FAMILY: a batch and weights at random, and what transformers computes with them in fp64.

    make_goldens.py [--check] [FAMILY...]

Without --check it writes batch, weights and expected.safetensors and case.json. With --check it computes them anew and
compares them with the files, and ends with 1 if a number differs by more than rounding. In both cases every gradient
must be the slope of the loss.
"""
import copy
import json
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

import rope
import wide
from families import FAMILIES, GOLDEN, encoder_of, language_of, read_recipe
from reference import (
    ZERO, expect_no_clamp, expect_no_ties, forward, length_of_gradients, random_batch, random_weights, slope_errors,
    trained)

# Per family: the seed, the images as rows and columns of patches, and how many of them each sample has.
CASES = {
    "nano_oracle": (11, [], []),
    "nano_v2_oracle": (17, [], []),
    "omni_oracle": (13, [(4, 6), (2, 4), (6, 2), (10, 4)], [3, 0, 1]),
    # One image has the size of the table of positions; the sides of the others are below and above half of it.
    "radio_oracle": (19, [(2, 6), (4, 2), (8, 8)], [2, 1, 0]),
    "one_expert_oracle": (23, [], []),
    "one_expert_undivided_oracle": (29, [], []),
    "all_experts_oracle": (31, [], []),
    "all_experts_undivided_oracle": (37, [], []),
    "llama_oracle": (41, [], []),
    "qwen3_oracle": (43, [], []),
    "qwen3_moe_oracle": (47, [], []),
    "qwen3_moe_undivided_oracle": (53, [], []),
    # Smaller and larger than the table of positions, and as wide as it.
    "qwen3_vl_oracle": (61, [(4, 6), (2, 4), (6, 2), (10, 4)], [3, 0, 1]),
    "qwen3_vl_moe_oracle": (67, [(4, 6), (2, 2), (6, 4)], [1, 2]),
    "qwen3_vl_deepstack_oracle": (71, [(4, 6), (2, 4), (6, 2), (10, 4)], [3, 0, 1]),
    # All images have one size.
    "llava_oracle": (73, [(4, 4)] * 3, [2, 0, 1]),
    "siglip_oracle": (79, [(4, 4)] * 4, [3, 1]),
}
# Ends of the documents of each sample, of families whose samples pack several.
DOCUMENTS = {"qwen3_oracle": [[5, 13, 16], [9, 16]]}
ROPE = "rope_scaling"  # no model: rotary embeddings alone
SLOPE_TOLERANCE = 1e-6
SAME = 1e-12  # on another machine
# What transformers saves and Planwright does not have: the embedder of videos, which no image passes; layer scales,
# which are ones; the indices of summary tokens and the conditioner's constants.
NOT_OURS = ("video_embedder", "layer_scale", "summary_idxs", "input_conditioner")
PROJECTOR = {"layer_norm": "mlp1.0", "linear_1": "mlp1.1", "linear_2": "mlp1.3"}


def published(model):
    """The tensors of a model by their published names, as transformers itself saves them."""
    tensors = {}
    for part, prefix in model.parts():
        if not isinstance(part, transformers.PreTrainedModel):
            tensors |= {prefix + name if prefix else f"{PROJECTOR[name.rsplit('.', 1)[0]]}.weight": value.detach()
                        for name, value in part.named_parameters()}
            continue
        with tempfile.TemporaryDirectory() as folder:
            part.save_pretrained(folder)
            for path in pathlib.Path(folder).glob("*.safetensors"):
                tensors |= {prefix + name: value for name, value in load_file(path).items()}
    ours = {}
    for name, value in tensors.items():
        if not any(word in name for word in not_ours(model)):
            ours |= one_by_one(model, own_name(model, name), own_shape(name, value))
    return {name: value.contiguous().clone() for name, value in ours.items()}


def not_ours(model):
    return NOT_OURS + getattr(model, "untrained", ())


def one_by_one(model, name, value):
    return model.one_by_one(name, value) if hasattr(model, "one_by_one") else {name: value}


def own_name(model, name):
    """What a file of Planwright calls a tensor of a whole model."""
    for theirs, ours in getattr(model, "ours", {}).items():
        if name.startswith(theirs):
            return ours + name[len(theirs):]
    return name


def own_shape(name, tensor):
    """A convolution over patches, or over patches of films, is a product here."""
    return tensor.flatten(1) if name.endswith(("patch_embed.proj.weight", "patch_embedding.weight")) else tensor


def with_gradients(model):
    """A model whose parameters are the gradients of `model`, so that they are saved under the same names. Roundings of
    0 are 0: they are others on another machine."""
    gradients, whole = copy.deepcopy(model), length_of_gradients(trained(model).values())
    with torch.no_grad():
        for parameter, own in zip(gradients.parameters(), model.parameters()):
            zero = own.grad is None or own.grad.norm() < ZERO * whole
            parameter.copy_(torch.zeros_like(own) if zero else own.grad)
    return gradients


def has_no_gradient(name, recipe):
    """Whether a parameter has none: the score of a token's one expert, divided by itself, is 1 for every router."""
    moe = language_of(recipe).get("moe", {})
    return name.endswith("mixer.gate.weight") and moe["top_k"] == 1 and moe["normalized"]


def compute(name):
    """Returns the files of a family: their names and tensors, and the case."""
    recipe, (seed, grids, images) = read_recipe(name), CASES[name]
    generator = torch.Generator().manual_seed(seed)
    model = FAMILIES[name](recipe).eval()
    random_weights(model, generator, torch.bfloat16)  # a file of them is small
    batch = random_batch(recipe, encoder_of(recipe), grids, images, generator, DOCUMENTS.get(name, ()))
    expect_no_clamp(model, batch)
    outputs = forward(model, batch)
    wide.expect_wide(model, outputs)
    expect_no_ties(model, outputs)
    outputs["loss_sum"].backward()
    whole = length_of_gradients(trained(model).values())
    for parameter, value in trained(model).items():
        if has_no_gradient(parameter, recipe):
            if value.grad.norm() > ZERO * whole:
                raise SystemExit(f"{name}: {parameter} has a gradient")
        elif value.grad is None or not value.grad.any():
            raise SystemExit(f"{name}: no gradient of {parameter}")
    errors = slope_errors(model, batch, generator)
    worst = max(errors, key=errors.get)
    print(f"{name}: loss {outputs['loss_sum'].item():.6f}, {len(errors) - 3} gradients are slopes to "
          f"{errors[worst]:.1e} ({worst}), all together to {max(list(errors.values())[-3:]):.1e}")
    if errors[worst] > SLOPE_TOLERANCE:
        raise SystemExit(f"{name}: the gradient of {worst} is not the slope of the loss")
    weights = published(model)
    gradients = {f"gradients/{n}": value for n, value in published(with_gradients(model)).items()
                 if not n.endswith("e_score_correction_bias")}
    expected = {f"outputs/{n}": value.detach().contiguous() for n, value in outputs.items()} | gradients
    case = {"source": f"transformers {transformers.__version__}, fp64", "seed": seed,
            "tokens_in_loss": int(batch["loss_mask"].sum())}
    return {"batch": batch, "weights": {n: v.to(torch.bfloat16) for n, v in weights.items()},
            "expected": expected}, case


def differences(files, folder):
    """What the files of the repository have otherwise."""
    found = []
    for file, tensors in files.items():
        stored = load_file(folder / f"{file}.safetensors")
        found += [f"{file}: {name}" for name in sorted(stored.keys() ^ tensors.keys())]
        for name in stored.keys() & tensors.keys():
            a, b = stored[name].double(), tensors[name].double()
            if a.shape != b.shape or (a - b).norm() > SAME * b.norm():
                found.append(f"{file}: {name}")
    return found


def main(arguments):
    check = "--check" in arguments
    names = [name for name in arguments if name != "--check"] or [*CASES, ROPE]
    torch.set_num_threads(1)  # toys are too small for more
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    wide.lift()
    status = 0
    for name in names:
        files, case = rope.compute() if name == ROPE else compute(name)
        folder = GOLDEN / name
        if check:
            found = differences(files, folder)
            for line in found:
                print(f"{name} differs: {line}")
            print(f"{name}: {'the golden files are other ones' if found else 'the golden files are right'}")
            status = 1 if found else status
            continue
        for file, tensors in files.items():
            save_file(tensors, folder / f"{file}.safetensors", metadata={"source": case["source"]})
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
        print(f"{name}: {sum(path.stat().st_size for path in folder.iterdir()):,} bytes")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
