"""The steps of programs that train with Hugging Face transformers: microbatches, clipping and fused AdamW in bf16, and
the lines that they leave."""
import gc
import json
import math
import sys
import time

import torch
import transformers

PEAK, WARM_UP = 2.0e-4, 5


def train(model, loss_of, steps, out, device="cuda", **words):
    """Trains steps, each of them a list of the operands of `loss_of`, one of each microbatch, which weigh the same.
    Each step is a line of `out`: loss, gradient norm, milliseconds. The last line has the mean of those that
    do not warm up, the memory, and `words`."""
    torch.backends.cuda.matmul.allow_tf32 = True
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=PEAK, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.05,
                                  fused=device == "cuda")
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def step(microbatches):
        loss = 0
        for batch in microbatches:
            term = loss_of(*batch) / len(microbatches)
            term.backward()
            loss = loss + term.detach()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss, norm

    gc.collect()
    gc.disable()
    times = []
    with open(out, "w", encoding="utf-8") as lines:
        for number, microbatches in enumerate(steps):
            synchronize()
            begin = time.perf_counter()
            loss, norm = step(microbatches)
            loss = loss.item()
            synchronize()
            times.append(1000 * (time.perf_counter() - begin))
            print(json.dumps({"step": number + 1, "loss": loss, "grad_norm": float(norm), "ms": round(times[-1], 2)}),
                  file=lines, flush=True)
            if not math.isfinite(loss):
                sys.exit(f"the loss of step {number + 1} is {loss}")
        counted = times[WARM_UP:] or times
        summary = {"steps": len(counted), "ms": round(sum(counted) / len(counted), 1), "least": round(min(counted), 1),
                   "most": round(max(counted), 1), "transformers": transformers.__version__, **words}
        if device == "cuda":
            summary["allocated_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
        print(json.dumps(summary), file=lines, flush=True)
        print("transformers", json.dumps(summary), flush=True)
