"""One training run, by Planwright or by transformers, that goes on where it was interrupted.

Both begin with one Hugging Face folder, which transformers makes, and train the same samples with the same optimizer.
Of each run one file stays, RUN.jsonl: a line for each step with its loss, gradient norm and learning rate, and lines
with the loss of what was held out.
"""
import json
import math
import pathlib
import subprocess

import torch
import yaml
from transformers import get_wsd_schedule
from transformers.models.nemotron_h_omni.modeling_nemotron_h_omni import NemotronH_Omni_Reasoning_V3

import icon_samples
from families import OmniModel, language_of, model_of

RECIPE = pathlib.Path(__file__).with_name("curves.yaml")
SET = "held_out"
EVERY = 500  # steps between two evaluations
KEPT = 250  # steps between two checkpoints, and between two lines of progress


def grid(first_rank, ranks, **parallel):
    return {"placement": {"first_rank": first_rank, "ranks": ranks}, "parallel": parallel}


# By name: the modules, and micro_samples.
LAYOUTS = {
    "one_rank": ({"radio_encoder": grid(0, 1), "language": grid(0, 1)}, 4),
    "apart_tp2": ({"radio_encoder": grid(0, 1), "language": grid(1, 2, tp=2)}, 4),
    "apart_tp2_ep2": ({"radio_encoder": grid(0, 1), "language": grid(1, 2, tp=2, ep=2)}, 4),
    "dp2_pp2": ({"radio_encoder": grid(0, 2), "language": grid(2, 4, pp=2)}, 1),
}


def toy(steps, experts):
    """The recipe of the toy, with a schedule for so many steps: warmup and decay keep their share. Without experts it
    has no routers: which expert a token gets is not continuous, so a rounding may make two runs two different trainings
    (docs/training/layout_independence.md#routing)."""
    recipe = yaml.safe_load(RECIPE.read_text())
    if not experts:
        model = language_of(recipe)
        model["pattern"] = model["pattern"].replace("E", "")
        del model["moe"]
    budget, samples = recipe["budget"], recipe["batch"]["global_samples"]
    rate, whole = budget["learning_rate"], budget["train_samples"]

    def share(count):
        return max(1, count // samples * steps * samples // whole) * samples

    rate["warmup_samples"], rate["wsd"]["decay_samples"] = share(rate["warmup_samples"]), share(
        rate["wsd"]["decay_samples"])
    budget["train_samples"] = steps * samples
    return recipe


def make_weights(recipe, seed, folder):
    """The folder with which both begin: transformers' own initial values."""
    if folder.exists():
        return
    torch.manual_seed(seed)
    part = folder.with_suffix(".part")
    OmniModel(recipe).omni.save_pretrained(part)
    # transformers raises time steps of Mamba to time_step_min; Planwright has no such limit (README.md).
    path = part / "config.json"
    config = json.loads(path.read_text())
    config["text_config"]["time_step_min"] = 0.0
    path.write_text(json.dumps(config, indent=1))
    part.rename(folder)


def imported_recipe(weights):
    """Where the models lie that `plan import` makes of the weights: beside them."""
    return weights.with_suffix(".yaml")


def append(path, line):
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def read_lines(path):
    """Those that are whole: whoever was killed may have left half of one."""
    lines = []
    for text in path.read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines


# --- Planwright


def our_recipe(recipe, seed, folder, weights, icons, layout, precision, held_out):
    """What `plan launch` gets. `held_out`: samples of the set; None: nothing is evaluated."""
    modules, micro = LAYOUTS[layout]
    imported = yaml.safe_load(imported_recipe(weights).read_text())
    names = {model["kind"]: name for name, model in imported["models"].items()}
    kinds = {"radio_encoder": "radio_vit", "language": "hybrid_lm"}
    moe = language_of(recipe).get("moe")
    samples = recipe["batch"]["global_samples"]
    source = {"name": icon_samples.SOURCE, "kind": "webdataset"}
    written = {
        "name": "curves", "extends": [str(imported_recipe(weights))],
        "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "none"},
        "models": {names["radio_vit"]: {"positions": model_of(recipe, "radio_vit")["positions"]}},
        "modules": {name: {"model": names[kinds[name]]} | grid_ for name, grid_ in modules.items()},
        "bridges": [{"from": "radio_encoder", "to": "language"}],
        "batch": recipe["batch"] | {"micro_samples": micro}, "precision": {"params": precision},
        "budget": recipe["budget"], "optimizer": recipe["optimizer"],
        "data": recipe["data"] | {"seed": seed, "index": str(folder / "index"),
                                  "sources": [source | {"shards": [str(icons / "train/*.tar")]}]},
        "checkpoint": {"every_steps": KEPT, "keep_last": 1}, "log": {"every_steps": KEPT},
        "initialize": {"from": str(weights)}}
    if moe:
        # What a config.json does not say.
        written["models"][names["hybrid_lm"]] = {"moe": {key: moe[key] for key in ("aux_loss", "bias_rate")}}
    if held_out:
        written["evaluation"] = {"every_samples": EVERY * samples, "sets": [
            {"name": SET, "samples": held_out, "sources": [source | {"shards": [str(icons / f"{SET}/*.tar")]}]}]}
    return written


def launch(command):
    """Runs it. If this program is ended meanwhile, so is the run, which may still save."""
    child = subprocess.Popen([str(word) for word in command])
    try:
        status = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {status}")


def run_ours(plan, recipe, seed, folder, weights, icons, layout, precision, held_out):
    folder.mkdir(parents=True, exist_ok=True)
    written = our_recipe(recipe, seed, folder, weights, icons, layout, precision, held_out)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(written, sort_keys=False))
    launch([plan, "launch", folder / "recipe.yaml", "--local", "--yes", "--run-dir", folder / "run"])
    lines = read_lines(folder / "run/metrics.jsonl")
    return [{"step": line["step"], "held_out": line["evaluation"][SET]["loss"]} if "evaluation" in line else
            {key: line[key] for key in ("step", "loss", "grad_norm", "learning_rate")} for line in lines]


# --- transformers


class Trainer:
    """transformers' model, torch's AdamW and clipping, transformers' schedule. Experts are balanced by the rule of
    docs/training/step.md#expert-bias, which transformers does not have."""

    def __init__(self, recipe, steps, weights, change):
        self.recipe = recipe
        samples, rate = recipe["batch"]["global_samples"], recipe["budget"]["learning_rate"]
        self.model = OmniModel(recipe)
        # In training mode too, as nothing of it drops anything.
        self.model.omni = NemotronH_Omni_Reasoning_V3.from_pretrained(
            weights, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager").train()
        if change.get("next_weights"):
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.copy_(torch.nextafter(parameter, torch.full_like(parameter, math.inf)))
        for name, parameter in self.model.named_parameters():
            # Planwright has neither.
            if "lambda1" in name or "video_embedder" in name or "video_patch_projection" in name:
                parameter.requires_grad_(False)
        trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        decay = [p for name, p in trained.items() if p.ndim > 1 and not name.endswith(".bias")]
        rest = [p for name, p in trained.items() if p.ndim == 1 or name.endswith(".bias")]
        self.trained = decay + rest
        optimizer = recipe["optimizer"]
        self.optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": change.get("weight_decay", recipe["budget"]["weight_decay"]["start"])},
             {"params": rest, "weight_decay": 0.0}],
            lr=rate["peak"] * change.get("learning_rate", 1.0), betas=change.get("betas", optimizer["betas"]),
            eps=optimizer["eps"], foreach=True)
        self.schedule = get_wsd_schedule(
            self.optimizer, num_warmup_steps=rate["warmup_samples"] // samples, num_training_steps=steps,
            num_decay_steps=rate["wsd"]["decay_samples"] // samples, decay_type=rate["wsd"]["style"])
        self.clip = change.get("clip", optimizer["clip_grad_norm"])
        self.bias_rate = change.get("bias_rate", language_of(recipe).get("moe", {}).get("bias_rate"))
        self.counts = {}
        for module in self.model.modules():
            if hasattr(module, "e_score_correction_bias"):
                module.register_forward_hook(self.count)
        self.step = 0

    def count(self, gate, _inputs, outputs):
        ids = outputs[2].flatten()
        self.counts[gate] = torch.bincount(ids, minlength=gate.e_score_correction_bias.numel())

    def train(self, batch):
        rate = self.schedule.get_last_lr()[0]
        self.optimizer.zero_grad()
        loss = self.model.loss(batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trained, self.clip)
        self.optimizer.step()
        self.schedule.step()
        for gate, counts in self.counts.items():
            gate.e_score_correction_bias += self.bias_rate * torch.sign(counts.sum() - counts.numel() * counts)
        self.step += 1
        return {"step": self.step, "loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate}

    def evaluate(self, samples):
        losses, tokens, batch = 0.0, 0.0, self.recipe["batch"]["global_samples"]
        with torch.no_grad():
            for begin in range(0, len(samples.packs), batch):
                read = samples.batch(range(begin, min(begin + batch, len(samples.packs))))
                count = read["loss_mask"].sum().item()
                losses += self.model.loss(read).item() * count
                tokens += count
        return {"step": self.step, "held_out": losses / tokens}

    def save(self, path):
        part = path.with_suffix(".part")
        torch.save({"step": self.step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "schedule": self.schedule.state_dict()}, part)
        part.replace(path)

    def load(self, path):
        found = torch.load(path)
        self.step = found["step"]
        self.model.load_state_dict(found["model"])
        self.optimizer.load_state_dict(found["optimizer"])
        self.schedule.load_state_dict(found["schedule"])


def run_theirs(recipe, steps, folder, weights, samples, held_out, change):
    """`change`: what is otherwise than the recipe says, to see whether the judgement notices."""
    folder.mkdir(parents=True, exist_ok=True)
    trainer, curve, checkpoint = Trainer(recipe, steps, weights, change), folder / "curve.jsonl", folder / "state.pt"
    lines = []
    if checkpoint.exists():
        trainer.load(checkpoint)
        # Steps behind the checkpoint are done again.
        lines = [line for line in read_lines(curve) if line["step"] <= trainer.step]
        print(f"{folder.name}: goes on after step {trainer.step}", flush=True)
    curve.write_text("".join(json.dumps(line) + "\n" for line in lines))
    count = recipe["batch"]["global_samples"]

    def evaluate():
        if held_out and not any("held_out" in line and line["step"] == trainer.step for line in lines):
            lines.append(trainer.evaluate(held_out))
            append(curve, lines[-1])

    evaluate()
    while trainer.step < min(steps, change.get("stop", steps)):
        first = trainer.step * count + change.get("samples", 0)
        lines.append(trainer.train(samples.batch(range(first, first + count))))
        append(curve, lines[-1])
        if trainer.step % KEPT == 0 or trainer.step == steps:
            done = lines[-1]
            print(f"{folder.name}: step {trainer.step}/{steps}  loss {done['loss']:.6f}  grad norm "
                  f"{done['grad_norm']:.4g}  lr {done['learning_rate']:.3e}", flush=True)
        if trainer.step % EVERY == 0 or trainer.step == steps:
            evaluate()
        if trainer.step % KEPT == 0 or trainer.step in (steps, change.get("stop")):
            trainer.save(checkpoint)
    return lines
