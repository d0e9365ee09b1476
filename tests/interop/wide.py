"""Runs transformers' models in fp64: lifts the casts to fp32 that their code has."""
import types

import torch
from transformers import modeling_rope_utils, vision_utils
from transformers.models.llama import modeling_llama
from transformers.models.llava import modeling_llava
from transformers.models.mistral import modeling_mistral
from transformers.models.nemotron_h import modeling_nemotron_h
from transformers.models.nemotron_h_omni import modeling_nemotron_h_omni
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.qwen3_moe import modeling_qwen3_moe
from transformers.models.qwen3_vl import modeling_qwen3_vl
from transformers.models.qwen3_vl_moe import modeling_qwen3_vl_moe
from transformers.models.radio import modeling_radio
from transformers.models.siglip import modeling_siglip

MODULES = (modeling_llama, modeling_llava, modeling_mistral, modeling_nemotron_h, modeling_nemotron_h_omni,
           modeling_qwen2, modeling_qwen3, modeling_qwen3_moe, modeling_qwen3_vl, modeling_qwen3_vl_moe, modeling_radio,
           modeling_siglip, modeling_rope_utils, vision_utils)


class WideTorch(types.ModuleType):
    """The module torch, whose float32 is float64."""

    def __getattr__(self, name):
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


def lift():
    """From now on models are made, and compute, in fp64, angles of rotary embeddings too. Nothing else of transformers
    is changed."""
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double
    for module in MODULES:
        module.torch = WideTorch("torch")


def expect_wide(model, outputs):
    """Ends the program if a value or a parameter is narrower: then a cast was not lifted."""
    narrow = [name for name, value in [*model.named_parameters(), *model.named_buffers(), *outputs.items()]
              if value.is_floating_point() and value.dtype != torch.float64]
    if narrow:
        raise SystemExit(f"not in fp64: {', '.join(narrow)}")
