"""Imported folders compute what transformers computes, by the two commands that users have for it (README.md beside
this file).

    logits.py BIN [NAME...]

Of each toy, transformers saves a folder with random weights, `plan import` makes a recipe of it, and the script of
`./dev logits` writes logits. `plan evaluate --against` must say that it is the same model. Then a number of config.json
that no shape shows is changed for transformers alone, and it must say that it is not. Ends with 1 if anything is
otherwise.
"""
import argparse
import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
import yaml
from safetensors.torch import save_file

from families import encoder_of, model_of
from make_goldens import CASES
from reference import random_batch, random_weights
from round_trip import ALONE, TOYS, run, save_published, training_recipe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "planner/exchange/logits"))
import transformers_logits  # noqa: E402

EPSILONS = ("layer_norm_epsilon", "rms_norm_eps")


def other_epsilon(config):
    config = config.get("text_config", config)
    name = next(name for name in EPSILONS if name in config)
    config[name] *= 10


def other_theta(config):
    config["rope_parameters"]["rope_theta"] *= 1.1


def damaged(folder, what, copy):
    """A copy of the folder of which transformers reads another number."""
    shutil.copytree(folder, copy)
    path = copy / "config.json"
    config = json.loads(path.read_text())
    what(config)
    path.write_text(json.dumps(config))
    return copy


def verdict(plan, name, what, published, folder, status):
    """Returns whether the verdict is another one than `status` says."""
    with contextlib.redirect_stdout(io.StringIO()):
        transformers_logits.main([str(published), "-o", str(folder / "logits.safetensors"), "--tokens", "24"])
    done = subprocess.run([plan, "evaluate", "recipe.yaml", "--against", "logits.safetensors", "--json"], cwd=folder,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: plan evaluate ended with {done.returncode}:\n{done.stderr}")
    found = json.loads(done.stdout)
    good = done.returncode == status
    print(f"{name:<14} {what:<24} {found['difference']:>9.1e} {found['worst_difference']:>9.1e} "
          f"{found['same_most_likely']:>3} of {found['positions']}  "
          f"{'the same model' if found['same'] else 'another model'}{'' if good else ', which is WRONG'}")
    return not good


def judge_toy(plan, name, toy, folder):
    """Returns how many verdicts are wrong."""
    recipe, (seed, grids, images) = toy.recipe(), CASES[toy.golden]
    generator = torch.Generator().manual_seed(seed + 6)
    model = toy.family(recipe).eval()
    random_weights(model, generator, torch.float32)
    published = folder / "published"
    save_published(model, published)
    save_file(random_batch(recipe, encoder_of(recipe), grids, images, generator),
              folder / "batch.safetensors")
    run([plan, "import", "published", "-o", "imported.yaml"], folder)
    written = training_recipe(toy, recipe, yaml.safe_load((folder / "imported.yaml").read_text()))
    written["batch"] |= {"sequence_length": 64}
    written["data"] = {"kind": "mock", "image_token": recipe["data"]["image_token"],
                       "image_grids": [[4, 4] if model_of(recipe, "siglip_vit") else [2, 2]], "text_tokens": 4}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(written, sort_keys=False))
    wrong = verdict(plan, name, "as it was saved", published, folder, 0)
    changes = {"another epsilon": other_epsilon}
    if "rope_parameters" in json.loads((published / "config.json").read_text()):
        changes["another base of RoPE"] = other_theta
    for what, change in changes.items():
        wrong += verdict(plan, name, what, damaged(published, change, folder / what.replace(" ", "_")), folder, 1)
    return wrong


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # An encoder alone has no logits.
    names = [name for name, toy in TOYS.items() if toy.golden not in ALONE]
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("names", nargs="*", choices=[[], *names], default=[])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # toys are too small for more
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"{'family':<14} {'config.json':<24} {'median':>9} {'worst':>9} most likely  verdict")
    wrong = 0
    for name in options.names or names:
        with tempfile.TemporaryDirectory() as folder:
            wrong += judge_toy(options.binaries.resolve() / "plan", name, TOYS[name], pathlib.Path(folder))
    print("every verdict is right" if wrong == 0 else f"{wrong} of these verdicts are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
