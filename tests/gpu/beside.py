"""The parts of `tests/gpu/measure` that train the same model with another system on the same GPUs, in turn with
ours."""

import json
import sys

from measuring import RECIPES, ROOT, Case, Measure, with_samples
from one_gpu import FROZEN, IMAGES, LEARNING

PEERS = ROOT / "tests/gpu/peers"
TEXT, TEXT_2G = RECIPES / "nemotron_moe_lm_20l_1g.yaml", RECIPES / "nemotron_moe_vlm_20l_2g_text_only.yaml"
STEPS, STEPS_IMAGES, AGREE, SAME, AHEAD = 25, 15, 3, 2e-3, 1.15
# A constant rate: what two systems make of a schedule is not compared here.
CONSTANT = ("budget.learning_rate.style=constant", "budget.learning_rate.peak=2.0e-4",
            "budget.learning_rate.min=2.0e-4", "budget.learning_rate.warmup_samples=0")


def with_experts(count):
    return f"models.nemotron_hybrid_moe_20l.moe.experts={count}"


def kernel_ms(path):
    """The sum of a list of kernels: how long the GPU was busy in the step."""
    return sum(float(line.split()[0]) for line in path.read_text().splitlines())


class Beside(Measure):
    """One case has the sizes that any card with 80 GB can train with both systems."""

    def beside_megatron(self, part, settings, program="megatron_lm.py", images=()):
        """Both systems start from the same weights, and see the same samples. Each setting is a list of options of the
        program that trains with Megatron-Core; the fastest is taken. `images` are those of first_weights.py."""
        (case,) = self.cases[part]
        plan = self.show("model", case)["modules"]["language"]
        count = self.experts[part]
        weights = self.out / f"first_weights_{'images_' if images else ''}{count}"
        if not (weights / "model.safetensors").exists():
            good, text = self.run(part, "first_weights", [sys.executable, PEERS / "first_weights.py", weights,
                                                          "--experts", count, *images])
            if not good:
                self.judge(False, f"{part}: no first weights")
                return
        samples = round(plan["flops_per_step"] / plan["flops_per_sample"])
        theirs = {}
        for name, options in settings.items():
            path, kernels = self.out / f"{part}_{name}.jsonl", self.out / f"{part}_{name}.kernels.txt"
            python = [sys.executable] if self.gpus == 1 else [sys.executable, "-m", "torch.distributed.run",
                                                             f"--nproc-per-node={self.gpus}"]
            good, text = self.run(part, f"{part}_{name}", [
                *python, PEERS / program, weights, "--experts", count, "--steps", case.steps, "--microbatches",
                samples // self.gpus, "--out", path, "--profile", kernels, *options])
            lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            if not good or len(lines) != case.steps + 1:
                print(f"      {part}: Megatron-Core, {name}: {len(lines)} lines")
                continue
            theirs[name] = lines
            print(f"Megatron-Core, {name}: step {lines[-1]['ms']:.1f} ms (smallest {lines[-1]['least']:.1f}, largest "
                  f"{lines[-1]['most']:.1f}), kernels of a step {kernel_ms(kernels):.1f} ms, tensors "
                  f"{lines[-1]['allocated_gb']:.1f} GB, device {lines[-1]['device_gb']:.1f} GB", flush=True)
        records, text = self.launch(part, case, [f"initialize.from={weights}", "--trace", f"{case.steps}"])
        if records is None or not theirs:
            self.judge(False, f"{part}: Megatron-Core ran with {len(theirs)} of {len(settings)} settings")
            return
        print("\n".join(line for line in text.splitlines() if not line.startswith("step ")))
        seconds = self.seconds(records)
        tokens, mfu, _ = self.rates(case, seconds)
        memory = records[-1]["device_memory"]
        print(f"Planwright: step {seconds * 1e3:.1f} ms, {tokens:,.0f} tok/s/GPU, MFU {mfu:.1%}, tensors "
              f"{memory['tensors_peak'] / 1e9:.1f} GB, device {memory['used'] / 1e9:.1f} GB")
        best = min(theirs, key=lambda name: theirs[name][-1]["ms"])
        ratio = theirs[best][-1]["ms"] / 1e3 / seconds
        print(f"Megatron-Core, {best}: {tokens / ratio:,.0f} tok/s/GPU, MFU {mfu / ratio:.1%}")
        pairs = [(record["loss"], line["loss"]) for record, line in zip(records[:AGREE], theirs[best])]
        print("losses, ours and theirs: " + ", ".join(f"{ours:.4f} {other:.4f}" for ours, other in pairs))
        print(f"gradient norms of the first step, ours and theirs: {records[0]['grad_norm']:.4f} "
              f"{theirs[best][0]['grad_norm']:.4f}")
        far = max(abs(ours / other - 1) for ours, other in pairs)
        self.judge(far <= SAME, f"{part}: the first {AGREE} losses differ by at most {far:.1e}, allowed {SAME:.0e}")
        self.judge(ratio >= AHEAD, f"{part}: {ratio:.2f} times as fast as Megatron-Core, wanted {AHEAD}")


def changes(flag, *fields):
    return [word for field in fields for word in (flag, field)]


def graphs(kind, modules):
    return changes("--set", f"cuda_graph_impl={kind}", f"cuda_graph_modules={modules}")


# Of Megatron-Core: its recipe of this model with what else can be fused, and with CUDA graphs of attention, Mamba and
# the router, by Megatron-Core (which can graph layers of an encoder too) and by Transformer Engine. Without graphs text
# and a frozen encoder take 1.5 and more times as long (docs/gpu.md#how-fast-are-others).
FUSED = changes("--set", "moe_router_fusion=True", "cross_entropy_fusion_impl=te")
GRAPHS = FUSED + graphs("local", "attn,mamba,moe_router")
SETTINGS = {"graphs": GRAPHS, "graphs_te": FUSED + graphs("transformer_engine", "attn,mamba,moe_router,moe_preprocess")}
SETTINGS_IMAGES = {"graphs": GRAPHS, "graphs_encoder": GRAPHS + changes("--set-encoder", "cuda_graph_impl=local")}
ENCODER = (*IMAGES, "models.radio_vit_h.positions=interpolate")    # a crop is drawn, and not by all in the same way


class BesideOneGpu(Beside):
    gpus = 1
    limits = {"megatron": 600, "megatron_48": 600, "megatron_images": 600, "megatron_frozen": 600}
    experts = {"megatron": 16, "megatron_48": 48, "megatron_images": 8, "megatron_frozen": 12}
    cases = {"megatron": [Case("megatron", TEXT, (with_experts(16), "cluster.gpu=h100_sxm", *with_samples(8, STEPS),
                                                  *CONSTANT), STEPS)],
             "megatron_48": [Case("megatron_48", TEXT, (with_experts(48), *with_samples(8, STEPS), *CONSTANT), STEPS)],
             "megatron_images": [Case("megatron_images", LEARNING,
                                      (*ENCODER, with_experts(8), "modules.language.recompute=none",
                                       *with_samples(4, STEPS_IMAGES), *CONSTANT), STEPS_IMAGES)],
             "megatron_frozen": [Case("megatron_frozen", FROZEN,
                                      (*ENCODER, with_experts(12), *with_samples(4, STEPS_IMAGES), *CONSTANT),
                                      STEPS_IMAGES)]}

    def megatron(self):
        self.beside_megatron("megatron", SETTINGS)

    def megatron_48(self):
        self.beside_megatron("megatron_48", SETTINGS)

    def megatron_images(self):
        self.beside_megatron("megatron_images", SETTINGS_IMAGES, "megatron_vlm.py", ["--images"])

    def megatron_frozen(self):
        frozen = {name: [*options, "--frozen"] for name, options in SETTINGS_IMAGES.items()}
        self.beside_megatron("megatron_frozen", frozen, "megatron_vlm.py", ["--images"])


class BesideTwoGpus(Beside):
    gpus = 2
    limits = {"megatron_2g": 600}
    experts = {"megatron_2g": 32}
    cases = {"megatron_2g": [Case("megatron_2g", TEXT_2G, (with_experts(32), "cluster.gpu=h100_sxm",
                                                           *with_samples(16, STEPS), *CONSTANT), STEPS)]}

    def megatron_2g(self):
        self.beside_megatron("megatron_2g", SETTINGS)
