"""Rotary embeddings by transformers in fp64, up to position 131,071 and in each way to stretch them.

transformers takes angles in fp32 even of a model in fp64; wide.py lifts this cast, as at such a position it turns some
planes by 0.008 more or less.
"""
import torch
import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

HEAD = 16
POSITIONS = [0, 1, 7, 100, 2048, 8191, 8192, 40000, 65536, 100003, 131071]
# Those of Llama 3.1 and of Qwen3, in which heads of 16 have planes on both sides of each bound, and between.
SCALINGS = {
    "none": {"rope_type": "default", "rope_theta": 10000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5},
    "llama3": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    "yarn": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768},
    "yarn_given": {"rope_type": "yarn", "rope_theta": 50000.0, "factor": 16.0, "beta_fast": 20.0, "beta_slow": 2.0,
                   "attention_factor": 1.1, "original_max_position_embeddings": 4096},
}


def compute():
    """The files of tests/golden/rope_scaling: for each scaling a head at each position, as it was and turned."""
    generator = torch.Generator().manual_seed(59)
    positions = torch.tensor([POSITIONS])
    expected = {"positions": positions}
    cases = {}
    for name, parameters in SCALINGS.items():
        config = LlamaConfig(hidden_size=HEAD, num_attention_heads=1, head_dim=HEAD, rope_parameters=dict(parameters),
                             max_position_embeddings=131072)
        rotary = LlamaRotaryEmbedding(config)
        x = torch.randn(1, 1, len(POSITIONS), HEAD, generator=generator)
        cosines, sines = rotary(x, positions)
        turned, _ = apply_rotary_pos_emb(x, x, cosines, sines)
        expected |= {f"{name}.x": x[0, 0].contiguous(), f"{name}.y": turned[0, 0].contiguous()}
        cases[name] = parameters | {"attention_scaling": rotary.attention_scaling}
    return {"expected": expected}, {"source": f"transformers {transformers.__version__}, fp64", "cases": cases}
