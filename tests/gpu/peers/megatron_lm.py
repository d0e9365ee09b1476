"""Trains the 20-layer language model with Megatron-Core, as a judge of our speed.

    python tests/gpu/peers/megatron_lm.py FOLDER --experts 16 --microbatches 4 --steps 30 --out megatron.jsonl

FOLDER has the first weights (first_weights.py). Model, tokens, precision, router, auxiliary loss, clipping and AdamW
are those of recipes/nemotron_moe_lm_20l_1g.yaml. The settings are those of Megatron-Bridge's recipe of this model for
the H100 (bf16, Transformer Engine's layers, cuDNN's attention, grouped expert products, fused permutation, fused
weighted squared ReLU, weight gradients added to the fp32 buffer, fused cross entropy, distributed optimizer), less
what needs more GPUs. `--set KEY=VALUE` changes a field of its TransformerConfig: `cuda_graph_impl=transformer_engine`
or `local` with `cuda_graph_modules=attn,mamba` replays layers as CUDA graphs, which are captured in the first steps.
With torchrun, experts and data are over all GPUs.

Needs megatron-core 0.19, transformer-engine 2.20, mamba-ssm and causal-conv1d. Each step is a line of --out: loss,
gradient norm, milliseconds. The last line has the memory. With --profile the kernels of one more step are listed.
"""
import argparse
import ast
import gc
import json
import math
import os
import pathlib
import sys
import time
import types

import torch
from safetensors import safe_open

import first_weights as shape
import mock_data

SEQUENCE = 8192
PEAK = 2.0e-4


def stand_in_for_apex():
    """Apex, which is not on PyPI, adds the weight gradient of the output layer to the fp32 buffer in one product. So
    does Transformer Engine's product, which its own layers take."""
    from transformer_engine.pytorch.cpp_extensions import general_gemm

    def wgrad_gemm_accum_fp32(total_input, grad_output, main_grad):
        general_gemm(total_input.reshape(-1, total_input.shape[-1]), grad_output.reshape(-1, grad_output.shape[-1]),
                     out_dtype=torch.float32, layout="NT", out=main_grad, accumulate=True, grad=True)

    module = types.ModuleType("fused_weight_gradient_mlp_cuda")
    module.wgrad_gemm_accum_fp32 = wgrad_gemm_accum_fp32
    sys.modules[module.__name__] = module


stand_in_for_apex()

from megatron.core import parallel_state
from megatron.core.activations import squared_relu
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.hybrid.hybrid_layer_specs import hybrid_stack_spec
from megatron.core.models.hybrid.hybrid_model import HybridModel
from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.cuda_graphs import TECudaGraphHelper
from megatron.core.transformer.enums import AttnBackend
from megatron.core.transformer.module import Float16Module


def with_changes(config, changes):
    """Sets the fields that were named as KEY=VALUE on the command line."""
    for change in changes:
        key, _, value = change.partition("=")
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            pass    # a word
        config[key] = value
    return TransformerConfig(**config)


def config_of(arguments, gpus, aux_loss=1.0e-4):
    config = dict(
        num_layers=len(shape.PATTERN), hidden_size=shape.HIDDEN, ffn_hidden_size=shape.FFN,
        num_attention_heads=shape.HEADS, num_query_groups=shape.KV_GROUPS, kv_channels=shape.HEAD_DIM,
        normalization="RMSNorm", layernorm_epsilon=1e-5, add_bias_linear=False, activation_func=squared_relu,
        attention_dropout=0.0, hidden_dropout=0.0, is_hybrid_model=True, persist_layer_norm=True,
        attention_softmax_in_fp32=False, perform_initialization=False,
        mamba_num_heads=shape.MAMBA_HEADS, mamba_head_dim=shape.MAMBA_HEAD_DIM, mamba_state_dim=shape.STATE,
        mamba_num_groups=shape.GROUPS,
        num_moe_experts=arguments.experts, moe_ffn_hidden_size=shape.FFN, moe_router_topk=6,
        moe_shared_expert_intermediate_size=shape.SHARED_FFN, moe_router_topk_scaling_factor=2.5,
        moe_router_score_function="sigmoid", moe_router_enable_expert_bias=True, moe_router_dtype="fp32",
        moe_router_load_balancing_type="seq_aux_loss", moe_aux_loss_coeff=aux_loss, moe_router_bias_update_rate=1e-3,
        moe_grouped_gemm=True, moe_permute_fusion=True, moe_token_dispatcher_type="alltoall",
        expert_model_parallel_size=gpus, use_fused_weighted_squared_relu=True, attention_backend=AttnBackend.fused,
        cross_entropy_loss_fusion=True, cross_entropy_fusion_impl="native", gradient_accumulation_fusion=True,
        bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16)
    return with_changes(config, arguments.set)


def language_model(config):
    return HybridModel(config, hybrid_stack_spec, shape.VOCABULARY, SEQUENCE, hybrid_layer_pattern=shape.PATTERN,
                       share_embeddings_and_output_weights=False, position_embedding_type="none").cuda()


def published(name, take, first_expert=0):
    """The value of a parameter of the language model, of the published weights that `take` gives by name."""
    if name == "embedding.word_embeddings.weight":
        return take("backbone.embeddings.weight")
    if name == "decoder.final_norm.weight":
        return take("backbone.norm_f.weight")
    if name == "output_layer.weight":
        return take("lm_head.weight")
    _, _, layer, rest = name.split(".", 3)
    layer = f"backbone.layers.{layer}."
    if rest in ("mixer.in_proj.layer_norm_weight", "self_attention.linear_qkv.layer_norm_weight",
                "pre_mlp_layernorm.weight"):
        return take(layer + "norm.weight")
    if rest.startswith("mixer."):
        return take(layer + rest.replace("conv1d_", "conv1d."))
    if rest == "self_attention.linear_proj.weight":
        return take(layer + "mixer.o_proj.weight")
    if rest == "self_attention.linear_qkv.weight":    # of each group its queries, its key, its value
        parts = [take(f"{layer}mixer.{part}_proj.weight").view(shape.KV_GROUPS, -1, shape.HIDDEN) for part in "qkv"]
        return torch.cat(parts, 1).flatten(0, 1)
    if rest == "mlp.router.weight":
        return take(layer + "mixer.gate.weight")
    if rest == "mlp.router.expert_bias":
        return take(layer + "mixer.gate.e_score_correction_bias")
    part = {"linear_fc1": "up_proj", "linear_fc2": "down_proj"}[rest.split(".")[2]]
    if rest.startswith("mlp.shared_experts."):
        return take(f"{layer}mixer.shared_experts.{part}.weight")
    return take(f"{layer}mixer.experts.{first_expert + int(rest.rpartition('weight')[2])}.{part}.weight")


def load(model, folder, published, elsewhere=None):
    """Fills the model with the weights of the folder. Every parameter gets one, and every weight is used, but for those
    with `elsewhere` in their names."""
    source = safe_open(folder / "model.safetensors", "pt", device="cuda")
    unused = set(source.keys())

    def take(name):
        unused.discard(name)
        return source.get_tensor(name)

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(published(name, take))
        for name, buffer in model.named_buffers():
            if name.endswith("expert_bias"):
                buffer.copy_(published(name, take))
    wrong = [name for name in unused if not elsewhere or elsewhere not in name]
    if wrong:
        sys.exit(f"{len(wrong)} weights of the folder are not used: {sorted(wrong)[:4]}")


def parser_of(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--microbatches", type=int, default=4, help="of each GPU")
    parser.add_argument("--micro-samples", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=pathlib.Path, default="megatron.jsonl")
    parser.add_argument("--profile", type=pathlib.Path, help="a file for the kernels of one step")
    return parser


def start(arguments):
    """Returns the rank and the number of GPUs."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29512")
    rank, gpus = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=gpus)
    parallel_state.initialize_model_parallel(expert_model_parallel_size=gpus)
    model_parallel_cuda_manual_seed(1, te_rng_tracker=True)    # one that graphs can be captured with
    torch.backends.cuda.matmul.allow_tf32 = True
    if "cuda_graph_impl=transformer_engine" in arguments.set:    # it captures only where the default stream is empty
        torch.cuda.set_stream(torch.cuda.Stream())
    return rank, gpus


def numbers(arguments, rank, gpus):
    """The numbers of the samples of each microbatch of a rank, for all steps."""
    samples = arguments.microbatches * arguments.micro_samples
    for step in range(arguments.steps + bool(arguments.profile)):
        first = (step * gpus + rank) * samples
        for sample in range(first, first + samples, arguments.micro_samples):
            yield range(sample, sample + arguments.micro_samples)


def graphs_of(arguments, config, model, optimizer):
    """What captures graphs before a step, where Transformer Engine does it. Megatron's own (`local`) need no call."""
    if config.cuda_graph_impl != "transformer_engine":
        return None
    rank, gpus = torch.distributed.get_rank(), torch.distributed.get_world_size()
    init_num_microbatches_calculator(rank, None, arguments.microbatches * arguments.micro_samples * gpus,
                                     arguments.micro_samples, gpus)
    return TECudaGraphHelper([model], config, SEQUENCE, arguments.micro_samples, [optimizer])


def train(arguments, config, model, batches):
    """Trains the steps. `batches` yields the arguments of the model's forward and the loss mask of each microbatch."""
    rank, gpus = torch.distributed.get_rank(), torch.distributed.get_world_size()
    model = DistributedDataParallel(
        config, DistributedDataParallelConfig(grad_reduce_in_fp32=True, use_distributed_optimizer=True,
                                              overlap_grad_reduce=gpus > 1, overlap_param_gather=gpus > 1),
        Float16Module(config, model))
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=PEAK, weight_decay=0.05, adam_beta1=0.9, adam_beta2=0.95, adam_eps=1e-8,
                        bf16=True, params_dtype=torch.bfloat16, clip_grad=1.0, use_distributed_optimizer=True,
                        overlap_param_gather=gpus > 1), [model])
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    if gpus > 1:
        config.no_sync_func = model.no_sync

    def forward(batches, module):
        inputs, mask = next(batches)

        def loss_of(output):
            loss = (output.float() * mask).sum() / mask.sum()
            return loss, {"loss": loss.detach().clone()}    # the schedule divides the loss in its place

        return module(**inputs), loss_of

    forward_backward = get_forward_backward_func()
    graphs = graphs_of(arguments, config, model, optimizer)

    def step():
        model.zero_grad_buffer()
        optimizer.zero_grad()
        terms = forward_backward(forward_step_func=forward, data_iterator=batches, model=[model],
                                 num_microbatches=arguments.microbatches, seq_length=SEQUENCE,
                                 micro_batch_size=arguments.micro_samples, forward_only=False)
        _, norm, _ = optimizer.step()
        loss = sum(term["loss"] for term in terms) / len(terms)
        if gpus > 1:
            torch.distributed.all_reduce(loss, torch.distributed.ReduceOp.AVG)
        return loss, norm

    lines = open(arguments.out, "w", encoding="utf-8") if rank == 0 else None
    gc.collect()
    gc.disable()    # Megatron's --manual-gc
    times = []
    for number in range(1, arguments.steps + 1):
        if graphs and number == config.cuda_graph_warmup_steps + 1:
            graphs.create_cudagraphs()
            if gpus > 1:    # weights are gathered before a layer
                graphs.cuda_graph_set_manual_hooks()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss, norm = step()
        loss = loss.item()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - begin))
        if lines:
            record = {"step": number, "loss": loss, "grad_norm": float(norm), "ms": round(times[-1], 2)}
            print(json.dumps(record), file=lines, flush=True)
        if not math.isfinite(loss):
            sys.exit(f"the loss of step {number} is {loss}")
    counted = times[5:] or times
    if lines:
        free, total = torch.cuda.mem_get_info()
        summary = {"steps": len(counted), "ms": round(sum(counted) / len(counted), 1), "least": round(min(counted), 1),
                   "most": round(max(counted), 1), "arguments": sys.argv[2:],
                   "allocated_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
                   "device_gb": round((total - free) / 1e9, 2)}
        print(json.dumps(summary), file=lines, flush=True)
        print("megatron", json.dumps(summary), flush=True)
    if arguments.profile and rank == 0:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            step()
            torch.cuda.synchronize()
        with open(arguments.profile, "w", encoding="utf-8") as table:
            for event in sorted(profile.key_averages(), key=lambda event: -event.self_device_time_total)[:120]:
                print(f"{event.self_device_time_total / 1000:10.3f} ms {event.count:6d}  {event.key[:200]}", file=table)
    elif arguments.profile:
        step()
    torch.distributed.destroy_process_group()


def main():
    arguments = parser_of(__doc__).parse_args()
    rank, gpus = start(arguments)
    config = config_of(arguments, gpus)
    model = language_model(config)
    first_expert = rank * arguments.experts // gpus
    load(model, arguments.folder, lambda name, take: published(name, take, first_expert),
         ".experts." if gpus > 1 else None)
    samples = mock_data.Samples(shape.VOCABULARY, SEQUENCE, SEQUENCE, device="cuda")
    positions = torch.arange(SEQUENCE, device="cuda").expand(arguments.micro_samples, -1)
    batches = []
    for batch in numbers(arguments, rank, gpus):
        tokens, labels, mask = (torch.stack(part) for part in zip(*map(samples.tokens, batch)))
        batches.append((dict(input_ids=tokens, position_ids=positions, attention_mask=None, labels=labels), mask))
    train(arguments, config, model, iter(batches))


if __name__ == "__main__":
    main()
