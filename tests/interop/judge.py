"""What transformers says of a folder: whether it has all tensors and no others, the loss of a batch, and its logits."""
import dataclasses

import torch
import transformers
from safetensors.torch import load_file

AUTO = {"language": transformers.AutoModelForCausalLM, "omni": transformers.AutoModelForImageTextToText,
        "radio": transformers.AutoModel, "siglip": transformers.AutoModel,
        "whole": transformers.AutoModelForImageTextToText}


def tensors_of(folder):
    return {name: value for path in sorted(folder.glob("*.safetensors")) for name, value in load_file(path).items()}


def is_transposed(name, before, after):
    """transformers saves experts of a model that it made as they are, and reads them as releases have them too, with
    each matrix transposed: so they leave."""
    return name.startswith("model.language_model.") and ".mlp.experts." in name and before.mT.shape == after.shape


TOLERANCE = 1e-5  # of a loss, and of logits relative to their norm: all in fp32


@dataclasses.dataclass
class Verdict:
    tensors: int
    ours: float
    theirs: float = float("nan")
    logits: float = float("nan")
    missing: list = dataclasses.field(default_factory=list)
    unexpected: list = dataclasses.field(default_factory=list)
    problems: list = dataclasses.field(default_factory=list)

    @property
    def difference(self):
        return abs(self.ours - self.theirs)

    def compare(self, before, after):
        """Names and shapes of a folder that came home must be those of the one that went in."""
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                self.problems.append(f"{name} did not come home")
            elif name not in before:
                self.problems.append(f"{name} is new")
            elif before[name].shape != after[name].shape and not is_transposed(name, before[name], after[name]):
                self.problems.append(f"{name} has another shape")

    def compare_values(self, before, after, is_trained):
        """What is trained must be other numbers, all else the same ones."""
        for name in sorted(before.keys() & after.keys()):
            same = torch.equal(before[name], after[name])
            if same == is_trained(name):
                self.problems.append(f"{name} {'was not trained' if same else 'has other numbers'}")

    def all_problems(self):
        loss = [] if self.difference <= TOLERANCE else [f"the loss is off by {self.difference:.1e}"]
        loss += [] if self.logits <= TOLERANCE else [f"the logits are off by {self.logits:.1e}"]
        return ([f"missing: {name}" for name in self.missing] + [f"unexpected: {name}" for name in self.unexpected]
                + loss + self.problems)

    def good(self):
        return not self.all_problems()

    def text(self):
        problems = self.all_problems()
        return "good" if not problems else problems[0] + (f" and {len(problems) - 1} more" if problems[1:] else "")


def judge(model, folder, batch, loss, logits):
    """Opens `folder` as transformers finds the class by its config.json, puts it in the place of that part of `model`
    that is published, and compares with our loss and logits."""
    verdict = Verdict(tensors=len(tensors_of(folder)), ours=loss)
    try:
        opened, info = AUTO[model.published].from_pretrained(folder, output_loading_info=True, dtype=torch.float32,
                                                            attn_implementation="eager",
                                                            experts_implementation="eager")
    except (RuntimeError, ValueError, OSError) as error:
        verdict.problems.append(f"transformers does not open it: {str(error).strip().splitlines()[-1]}")
        return verdict
    verdict.missing, verdict.unexpected = sorted(info["missing_keys"]), sorted(info["unexpected_keys"])
    verdict.problems += [f"another shape: {name}" for name in info["mismatched_keys"]]
    verdict.problems += [f"conversion failed: {name}" for name in info.get("conversion_errors") or []]
    before = getattr(model, model.published)
    setattr(model, model.published, opened.eval())
    with torch.no_grad():
        verdict.theirs = model.loss(batch).item()
        verdict.logits = ((model(batch) - logits).norm() / logits.norm()).item()
    setattr(model, model.published, before)
    return verdict
