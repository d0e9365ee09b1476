"""Low-rank adapters: PEFT trains them in fp64 on toys of transformers, opens those of Planwright, and merges them.

    adapters.py [--check]        writes tests/golden/adapters_FAMILY, or compares with them
    adapters.py --open BIN       trains adapters with the programs in BIN, exports them, and compares logits

The frozen weights are those of the golden files of the family. Adapters begin with random numbers, B too, so that every
gradient counts from the first step on.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
import yaml
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

import wide
from families import FAMILIES, GOLDEN, language_of
from reference import random_batch

SEEDS = {"adapters_llama": 61, "adapters_nano": 67}
BASES = {"adapters_llama": "llama_oracle", "adapters_nano": "nano_oracle"}
STEPS = 10
SAME = 1e-11  # on another machine, after ten steps
LOGITS = 1e-5  # of their norm, in fp32


def read(name):
    return yaml.safe_load((GOLDEN / name / "oracle.yaml").read_text())


def opened_as(kind, folder, dtype):
    """A language model of a folder. Grouped products of experts are not there in fp64."""
    return kind.from_pretrained(folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager")


def base_of(name, recipe):
    """The toy with the frozen weights of its family."""
    model = FAMILIES[BASES[name]](recipe).eval()
    stored = {key.removeprefix("language_model."): value
              for key, value in load_file(GOLDEN / BASES[name] / "weights.safetensors").items()}
    with tempfile.TemporaryDirectory() as folder:
        # Adapters move time steps of Mamba. transformers raises them to this; Planwright has no such limit (README.md).
        if hasattr(model.language.config, "time_step_min"):
            model.language.config.time_step_min = 0.0
        model.language.config.save_pretrained(folder)
        save_file(stored, pathlib.Path(folder) / "model.safetensors", metadata={"format": "pt"})
        model.language = opened_as(type(model.language), folder, torch.get_default_dtype())
    return model.eval()


def with_adapters(model, recipe, generator):
    """The language model with adapters of PEFT, whose numbers are random ones of bf16."""
    adapter = recipe["modules"]["language"]["adapter"]
    config = LoraConfig(r=adapter["rank"], lora_alpha=adapter["alpha"], target_modules=adapter["targets"],
                        task_type="CAUSAL_LM")
    model.language = get_peft_model(model.language, config)
    with torch.no_grad():
        for name, parameter in model.language.named_parameters():
            if parameter.requires_grad:
                drawn = torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5
                parameter.copy_(drawn.to(torch.bfloat16))
    return model


def published(name):
    """A parameter's name in files of Planwright. PEFT goes by the modules of transformers."""
    name = name.removeprefix("base_model.model.").replace(".default.", ".")
    # transformers calls the modules of nemotron_h otherwise than its files.
    return "language_model." + (name.replace("model.layers.", "backbone.layers.", 1) if ".mixer." in name else name)


def loss_of(model, batch):
    logits = model(batch)
    chosen = torch.log_softmax(logits, -1).gather(-1, batch["labels"][..., None])[..., 0]
    return -(chosen * batch["loss_mask"].to(chosen.dtype)).sum() / batch["loss_mask"].sum()


def train(model, recipe, batch):
    """Losses and gradients of each step, by the optimizer of the recipe."""
    learned = {name: value for name, value in model.language.named_parameters() if value.requires_grad}
    budget, samples = recipe["budget"], recipe["batch"]["global_samples"]
    optimizer = torch.optim.AdamW(learned.values(), lr=budget["learning_rate"]["peak"], betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=budget["weight_decay"]["start"])
    losses, gradients = [], {}
    for step in range(STEPS):
        part = {key: value[step * samples:(step + 1) * samples] for key, value in batch.items()}
        optimizer.zero_grad()
        loss = loss_of(model, part)
        loss.backward()
        losses.append(loss.item())
        gradients |= {f"{step}/{published(name)}": value.grad.clone() for name, value in learned.items()}
        optimizer.step()
    return torch.tensor(losses), gradients


def compute(name):
    recipe = read(name)
    generator = torch.Generator().manual_seed(SEEDS[name])
    model = with_adapters(base_of(name, recipe), recipe, generator)
    with tempfile.TemporaryDirectory() as folder:
        model.language.save_pretrained(folder)
        begin = {key: value.to(torch.bfloat16).clone() for key, value in
                 load_file(pathlib.Path(folder) / "adapter_model.safetensors").items()}
        config = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
    config["target_modules"] = sorted(config["target_modules"])
    config["base_model_name_or_path"] = None
    many = recipe | {"batch": recipe["batch"] | {"global_samples": STEPS * recipe["batch"]["global_samples"]}}
    batch = random_batch(many, None, [], [], generator)
    losses, gradients = train(model, recipe, batch)
    print(f"{name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, {len(gradients)} gradients")
    return {"batch": batch, "begin/adapter_model": begin,
            "expected": {"losses": losses} | {f"gradients/{key}": value for key, value in gradients.items()}}, config


def differences(files, config, folder):
    found = [] if json.loads((folder / "begin/adapter_config.json").read_text()) == config else ["adapter_config.json"]
    for file, tensors in files.items():
        stored = load_file(folder / f"{file}.safetensors")
        found += [f"{file}: {name}" for name in sorted(stored.keys() ^ tensors.keys())]
        for name in stored.keys() & tensors.keys():
            a, b = stored[name].double(), tensors[name].double()
            if a.shape != b.shape or (a - b).norm() > SAME * b.norm():
                found.append(f"{file}: {name}")
    return found


def goldens(check):
    wide.lift()
    status = 0
    for name in SEEDS:
        files, config = compute(name)
        folder = GOLDEN / name
        if check:
            found = differences(files, config, folder)
            for line in found:
                print(f"{name} differs: {line}")
            print(f"{name}: {'the golden files are other ones' if found else 'the golden files are right'}")
            status |= bool(found)
            continue
        (folder / "begin").mkdir(exist_ok=True)
        for file, tensors in files.items():
            save_file({key: value.contiguous() for key, value in tensors.items()}, folder / f"{file}.safetensors",
                      metadata={"format": "pt"})
        (folder / "begin/adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
        print(f"{name}: {sum(p.stat().st_size for p in folder.rglob('*') if p.is_file()):,} bytes")
    return status


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits.double()


def opened(name, programs, folder):
    """Trains adapters with Planwright on a folder of transformers, and opens what it exports."""
    recipe = read(name)
    model = base_of(name, recipe).language.float()
    base = folder / "base"
    model.save_pretrained(base)
    adapter = recipe["modules"]["language"]["adapter"]
    for key in ("data", "initialize"):
        recipe.pop(key)
    recipe |= {"precision": {"params": "fp32"}, "initialize": {"from": str(base)},
               "data": {"kind": "mock", "image_token": language_of(recipe)["vocabulary"] - 1},
               "checkpoint": {"every_steps": 1000}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    plan = programs / "plan"

    def run(*words):
        done = subprocess.run([str(plan), *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"plan {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")

    run("launch", folder / "recipe.yaml", "--local", "--yes", "--run-dir", folder / "run")
    run("export", folder / "run", "-o", folder / "adapter")
    run("export", folder / "run", "-o", folder / "merged", "--like", base)
    ids = torch.randint(0, language_of(recipe)["vocabulary"] - 1, (2, 24), generator=torch.Generator().manual_seed(5))
    kind = type(model)
    plain = logits_of(opened_as(kind, base, torch.float32).eval(), ids)
    adapted = PeftModel.from_pretrained(opened_as(kind, base, torch.float32), folder / "adapter").eval()
    merged = logits_of(opened_as(kind, folder / "merged", torch.float32).eval(), ids)
    ours = logits_of(adapted, ids)
    norm = ours.norm()
    learned = [value for key, value in adapted.named_parameters() if "lora_B" in key]
    if not learned or any(not value.any() for value in learned):
        raise SystemExit(f"{name}: PEFT has opened an adapter that has not learned")
    moved, apart = ((ours - plain).norm() / norm).item(), ((ours - merged).norm() / norm).item()
    print(f"{name}: {len(learned)} adapters on {adapter['targets']} opened; logits moved by {moved:.1e}, and merged "
          f"ones are {apart:.1e} away")
    return 0 if moved > 100 * LOGITS and apart < LOGITS else 1


def main(arguments):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if arguments[:1] != ["--open"]:
        return goldens("--check" in arguments)
    status = 0
    for name in SEEDS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="adapters_"))
        status |= opened(name, pathlib.Path(arguments[1]), folder)
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
