"""Models of transformers go into Planwright, train for five steps in fp32, and come home (README.md beside this file).

    round_trip.py BIN [--keep FOLDER] [NAME...]

Of each toy, transformers saves a folder; `plan import` makes a recipe of it, `plan launch` trains it on a batch, and
`plan export` writes a folder again, once from the run alone and once with --like. transformers opens both. It must miss
nothing and find nothing unexpected, and its own loss and logits must be ours, before the training and after it. Then
the folder is damaged on purpose, and the same judgement must refuse each damage. Ends with 1 if anything is otherwise.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
import yaml
from safetensors.torch import load_file, save_file

from damage import DAMAGES
from families import (
    FAMILIES, LlavaOfLlama, LlavaOfQwen3, Mistral, Qwen2, encoder_of, language_of, model_of, read_recipe)
from judge import TOLERANCE, judge, tensors_of
from make_goldens import CASES, DOCUMENTS, not_ours, published
from reference import expect_no_clamp, random_batch, random_weights

STEPS = 5
# Families of encoders that come without a projector, and what is in the names of their tensors.
ALONE = {"radio_oracle": "radio_model", "siglip_oracle": "vision_model"}


class Toy:
    """A toy, the ranks that it trains on, and what its recipe has otherwise than that of the golden files. `family`:
    the model of transformers; None: that of the golden files."""

    def __init__(self, golden, layout, final_norm="none", sizes=None, family=None):
        self.golden, self.layout, self.final_norm, self.sizes = golden, layout, final_norm, sizes or {}
        self.family = family or FAMILIES[golden]

    def recipe(self):
        recipe = read_recipe(self.golden)
        encoder = model_of(recipe, "radio_vit")
        if encoder:
            encoder["final_norm"] = self.final_norm
        for kind, sizes in self.sizes.items():
            model_of(recipe, kind).update(sizes)
        return recipe


def grid(first_rank, ranks, **parallel):
    return {"placement": {"first_rank": first_rank, "ranks": ranks}, "parallel": parallel}


TOYS = {
    "nano": Toy("nano_oracle", {"language": grid(0, 2, tp=2, ep=2)}),
    "one_expert": Toy("one_expert_oracle", {"language": grid(0, 2, ep=2)}),
    "undivided": Toy("one_expert_undivided_oracle", {"language": grid(0, 2, expert_tp=2)}),
    "nano_v2": Toy("nano_v2_oracle", {"language": grid(0, 2, cp=2)}),
    "omni": Toy("omni_oracle", {"radio_encoder": grid(0, 2, tp=2), "language": grid(2, 2, tp=2, ep=2)}),
    "omni_normed": Toy("omni_oracle", {"radio_encoder": grid(0, 2), "language": grid(0, 2, tp=2)}, "layernorm"),
    "radio": Toy("radio_oracle", {"radio_encoder": grid(0, 2, tp=2), "language": grid(2, 1)}),
    # In other proportions: layers of all kinds, as many key heads as query heads, a width between those of heads.
    "nano_other": Toy("nano_oracle", {"language": grid(0, 2, tp=2, ep=2)}, sizes={"hybrid_lm": {
        "pattern": "E*M-E", "hidden": 58, "norm_eps": 2.0e-5,
        "attention": {"heads": 6, "head_dim": 10, "kv_groups": 6},
        "mamba": {"heads": 12, "head_dim": 4, "groups": 2, "state": 9, "conv": 5, "chunk": 4},
        "moe": {"experts": 6, "top_k": 2, "ffn": 13, "shared_ffn": 18, "scale": 0.7, "aux_loss": 0.0,
                "bias_rate": 0.0}, "mlp": {"ffn": 38}}}),
    "omni_other": Toy("omni_oracle", {"radio_encoder": grid(0, 2, tp=2), "language": grid(2, 2, tp=2)}, sizes={
        "radio_vit": {"layers": 3, "hidden": 36, "heads": 6, "ffn": 90, "class_tokens": 5, "activation": "gelu_tanh",
                      "projector": {"hidden": 26}},
        "hybrid_lm": {"pattern": "M*", "hidden": 38}}),
    "llama": Toy("llama_oracle", {"language": grid(0, 2, tp=2)}),
    "llama_tied": Toy("llama_oracle", {"language": grid(0, 2, tp=2)}, sizes={"decoder": {
        "tied": True, "rope": {"theta": 700.0}, "attention": {"heads": 4, "head_dim": 6, "kv_groups": 4}}}),
    "mistral": Toy("llama_oracle", {"language": grid(0, 2, cp=2)}, family=Mistral, sizes={"decoder": {
        "hidden": 14, "rope": {"theta": 700.0, "scaling": "linear", "factor": 3.0},
        "attention": {"heads": 4, "head_dim": 6, "kv_groups": 2}}}),
    "qwen2": Toy("llama_oracle", {"language": grid(0, 2, tp=2)}, family=Qwen2, sizes={"decoder": {
        "rope": {"theta": 700.0}, "attention": {"heads": 4, "head_dim": 6, "kv_groups": 2, "biases": "qkv"}}}),
    "qwen3": Toy("qwen3_oracle", {"language": grid(0, 2, tp=2)}),
    "qwen3_moe": Toy("qwen3_moe_oracle", {"language": grid(0, 2, tp=2, ep=2)}),
    "moe_undivided": Toy("qwen3_moe_undivided_oracle", {"language": grid(0, 2, ep=2)}),
    "qwen3_vl": Toy("qwen3_vl_oracle", {"radio_encoder": grid(0, 2, tp=2), "language": grid(2, 2, cp=2)}),
    "qwen3_vl_tied": Toy("qwen3_vl_oracle", {"radio_encoder": grid(0, 2), "language": grid(0, 2, tp=2)}, sizes={
        "decoder": {"tied": True}, "qwen_vit": {"activation": "gelu", "table": 7}}),
    "qwen3_vl_moe": Toy("qwen3_vl_moe_oracle", {"radio_encoder": grid(0, 1), "language": grid(1, 2, ep=2)}),
    "deepstack": Toy("qwen3_vl_deepstack_oracle", {"radio_encoder": grid(0, 2, cp=2), "language": grid(2, 2, pp=2)}),
    "deepstack_moe": Toy("qwen3_vl_moe_oracle", {"radio_encoder": grid(0, 1), "language": grid(1, 2, tp=2, ep=2)},
                         sizes={"qwen_vit": {"pattern": "VVDVDV"}, "decoder": {"pattern": "*-D*ED*E"}}),
    "llava": Toy("llava_oracle", {"radio_encoder": grid(0, 2, tp=2), "language": grid(2, 2, tp=2)}),
    "llava_tied": Toy("llava_oracle", {"radio_encoder": grid(0, 2, cp=2), "language": grid(2, 2, cp=2)},
                      family=LlavaOfQwen3, sizes={
        "decoder": {"tied": True, "attention": {"heads": 4, "head_dim": 10, "kv_groups": 2, "normed": True}},
        "siglip_vit": {"activation": "gelu", "hidden": 28, "heads": 2}}),
    "llava_llama": Toy("llava_oracle", {"radio_encoder": grid(0, 2), "language": grid(0, 2, tp=2)},
                       family=LlavaOfLlama, sizes={
        "decoder": {"attention": {"heads": 4, "head_dim": 8, "kv_groups": 4}}}),
    "siglip": Toy("siglip_oracle", {"radio_encoder": grid(0, 2, tp=2), "language": grid(2, 1)}),
}


def run(command, folder):
    """The output of a program, which must end well."""
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def training_recipe(toy, recipe, imported):
    """The recipe that extends what `plan import` wrote."""
    names = {model["kind"]: name for name, model in imported["models"].items()}
    language = language_of(recipe)["kind"]
    modules = {"radio_encoder": (encoder_of(recipe) or {}).get("kind"), "language": language}
    more = {}
    ours = {module: names.get(kind) for module, kind in modules.items() if module in toy.layout}
    initialize = {"from": "published"}
    training = dict(toy.layout)
    if toy.golden in ALONE:
        # An encoder comes alone: what gives it a loss is from a file, and stays as it is.
        encoder = encoder_of(recipe)
        more = {"reader": language_of(recipe),
                names[encoder["kind"]]: {key: encoder[key] for key in ("projector", "pixel_shuffle") if key in encoder}}
        ours["language"] = "reader"
        training = {"radio_encoder": toy.layout["radio_encoder"] | {"train": {"projection": "frozen"}},
                    "language": toy.layout["language"] | {"train": {"backbone": "frozen"}}}
        initialize = {"sources": [{"for": "radio_encoder.backbone", "from": "published"},
                                  {"for": "radio_encoder.projection", "from": "others.safetensors"},
                                  {"for": "language", "from": "others.safetensors"}]}
    elif "E" in language_of(recipe).get("pattern", ""):
        bias = {"bias_rate": 1.0e-3} if language == "hybrid_lm" else {}
        more = {names[language]: {"moe": {"aux_loss": 0.0} | bias}}
    batch = recipe["batch"]
    written = {"name": "round_trip", "extends": ["imported.yaml"],
               "cluster": {"nodes": 1, "gpus_per_node": 1, "gpu": "none"},
               "modules": {module: {"model": ours[module]} | training[module] for module in toy.layout},
               "batch": batch, "precision": {"params": "fp32"},
               "budget": {"train_samples": (STEPS + 1) * batch["global_samples"],
                          "learning_rate": {"peak": 1.0e-3, "style": "constant"},
                          "weight_decay": {"start": 0.01, "end": 0.01}},
               "data": recipe["data"],
               "checkpoint": {"every_steps": STEPS}, "initialize": initialize}
    if more:
        written["models"] = more
    if "radio_encoder" in toy.layout:
        written["bridges"] = [{"from": "radio_encoder", "to": "language"}]
    return written


def train(plan, folder, steps):
    """Trains until `steps` are done. Returns the loss and the logits of the last one, and of the first one."""
    run([plan, "launch", "recipe.yaml", "--local", "--yes", "--steps", steps, "--run-dir", "run", "--probe", "probe"],
        folder)
    losses = [json.loads(line)["loss"] for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    logits = [load_file(folder / f"probe/values_{step}.safetensors")["outputs/logits"] for step in ("last", "first")]
    return (losses[-1], logits[0]), (losses[0], logits[1])


def save_published(model, folder):
    """What transformers saves, under the names of releases."""
    getattr(model, model.published).save_pretrained(folder)
    names = getattr(model, "released", {})
    for path in folder.glob("*.safetensors") if names else ():
        renamed = {}
        for name, value in load_file(path).items():
            begin = next((begin for begin in names if name.startswith(begin)), None)
            renamed[name if begin is None else names[begin] + name[len(begin):]] = value
        save_file(renamed, path, metadata={"format": "pt"})


def travel(plan, name, toy, folder):
    """There and back. Returns the model, its batch, and our loss and logits before the steps and after them."""
    recipe, (seed, grids, images) = toy.recipe(), CASES[toy.golden]
    generator = torch.Generator().manual_seed(seed + 5)
    model = toy.family(recipe).eval()
    random_weights(model, generator, torch.float32)
    batch = random_batch(recipe, encoder_of(recipe), grids, images, generator, DOCUMENTS.get(toy.golden, ()))
    expect_no_clamp(model, batch)
    save_published(model, folder / "published")
    save_file(batch, folder / "batch.safetensors")
    if toy.golden in ALONE:
        save_file({key: value for key, value in published(model).items() if ALONE[toy.golden] not in key},
                  folder / "others.safetensors")
    run([plan, "import", "published", "-o", "imported.yaml"], folder)
    imported = yaml.safe_load((folder / "imported.yaml").read_text())
    (folder / "recipe.yaml").write_text(yaml.safe_dump(training_recipe(toy, recipe, imported), sort_keys=False))
    _, before = train(plan, folder, STEPS)
    alone = ["--module", "radio_encoder"] if toy.golden in ALONE else []
    run([plan, "export", "run", "-o", "home", *alone], folder)
    run([plan, "export", "run", "-o", "home_like", "--like", "published", *alone], folder)
    # The next step begins with the weights that left.
    after, _ = train(plan, folder, STEPS + 1)
    return model, batch, before, after


def show(name, what, verdict):
    print(f"{name:<12} {what:<42} {verdict.tensors:>7} {len(verdict.missing):>7} {len(verdict.unexpected):>10} "
          f"{verdict.ours:>13.8f} {verdict.theirs:>13.8f} {verdict.difference:>10.1e} {verdict.logits:>9.1e}  "
          f"{verdict.text()}")


def judge_toy(plan, name, toy, folder):
    """Returns how many judgements are not as they must be."""
    model, batch, before, after = travel(plan, name, toy, folder)
    wrong = 0
    for home, ours in (("published", before), ("home", after), ("home_like", after)):
        verdict = judge(model, folder / home, batch, *ours)
        if home != "published":
            verdict.compare(tensors_of(folder / "published"), tensors_of(folder / home))
        if home == "home_like":
            verdict.compare_values(tensors_of(folder / "published"), tensors_of(folder / home),
                                   lambda tensor: not any(word in tensor for word in not_ours(model)))
        what = {"published": "as transformers saved it", "home": "after 5 steps",
                "home_like": "after 5 steps, --like"}[home]
        show(name, what, verdict)
        wrong += not verdict.good()
    for what, damage in DAMAGES.get(name, {}).items():
        damaged = folder / ("damaged " + what).replace(" ", "_")
        damage(folder / "home", damaged)
        verdict = judge(model, damaged, batch, *after)
        verdict.compare(tensors_of(folder / "published"), tensors_of(damaged))
        show(name, "damaged: " + what, verdict)
        wrong += verdict.good()
    return wrong


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("names", nargs="*", choices=[[], *TOYS], default=[])
    parser.add_argument("--keep", type=pathlib.Path, help="where the folders stay")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # toys are too small for more
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}; {STEPS} steps in fp32; "
          f"losses and logits must agree to {TOLERANCE:.0e}")
    print(f"{'family':<12} {'weights':<42} {'tensors':>7} {'missing':>7} {'unexpected':>10} {'loss ours':>13} "
          f"{'loss theirs':>13} {'difference':>10} {'logits':>9}  verdict")
    wrong = 0
    for name in options.names or TOYS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or pathlib.Path(temporary)) / name
            folder.mkdir(parents=True)
            wrong += judge_toy(options.binaries.resolve() / "plan", name, TOYS[name], folder)
    print("every model came home, and every damage was seen" if wrong == 0 else
          f"{wrong} of these verdicts are not as they must be: a model did not come home, or a damage was not seen")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
