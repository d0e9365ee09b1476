"""Trains the whole 20-layer vision-language model with Megatron-Core, as a judge of our speed.

    python tests/gpu/peers/megatron_vlm.py FOLDER --experts 8 --steps 30 --out megatron.jsonl [--frozen]

FOLDER has the first weights (first_weights.py --images). Model, samples and AdamW are those of
recipes/nemotron_moe_vlm_20l_2g.yaml on one GPU with `positions: interpolate`, or with --frozen those of
nemotron_moe_vlm_20l_2g_frozen.yaml. The language model is that of megatron_lm.py. Encoder and projector are
Megatron-Core's too, with Transformer Engine's layers and the settings of Megatron-Bridge's recipe of this model; bias
and GELU are fused. All images of a microbatch have one size, and are a batch. `--set KEY=VALUE` changes a field of the
TransformerConfig of the language model, `--set-encoder` one of the encoder's. Layers of the encoder can be graphs of
Megatron's own (`cuda_graph_impl=local`) where those of the language model are too.
"""
import contextlib
import copy

import torch
import torch.nn.functional as F

import first_weights as shape
import megatron_lm
import mock_data
from megatron_lm import SEQUENCE

from megatron.core.activations import fast_gelu
from megatron.core.extensions.transformer_engine import TENorm
from megatron.core.models.hybrid.hybrid_layer_specs import hybrid_stack_spec
from megatron.core.models.vision.multimodal_projector import MultimodalProjector
from megatron.core.models.vision.radio import RADIOViTModel
from megatron.core.models.vision.vit_layer_specs import get_vit_layer_with_transformer_engine_spec
from megatron.core.transformer.enums import AttnBackend, ModelType
from megatron.core.transformer.module import MegatronModule

GRID = 64, 96    # patches of each image
IMAGES, IMAGE_TOKEN, TEXT_TOKENS = 2, 511, 2560


class Encoder(RADIOViTModel):
    """RADIO whose table of positions is resized with half-pixel centers (docs/model/vision_encoder.md)."""

    def _get_pos_embeddings(self, batch_size, input_dims):
        table = self.position_embeddings.view(1, self.max_num_rows, self.max_num_cols, -1).permute(0, 3, 1, 2)
        longer = max(input_dims)
        table = F.interpolate(table.float(), size=(longer, longer), mode="bilinear", align_corners=False)
        table = table[..., :input_dims[0], :input_dims[1]].to(self.position_embeddings.dtype)
        return table.flatten(2).transpose(1, 2)


def joined(patches, grid, factor):
    """Pixel shuffle: of [images, patches, width] each square of factor x factor patches becomes one row."""
    rows, columns = (side // factor for side in grid)
    patches = patches.view(-1, rows, factor, columns, factor, patches.shape[-1])
    return patches.transpose(2, 3).reshape(1, -1, factor**2 * patches.shape[-1])


class VisionLanguage(MegatronModule):
    model_type = ModelType.encoder_or_decoder    # of which Megatron's schedules ask

    def __init__(self, config, encoder, projector, language_model, grid, factor, frozen):
        super().__init__(config)
        self.encoder, self.projector, self.language_model = encoder, projector, language_model
        self.grid, self.factor, self.frozen = grid, factor, frozen
        if frozen:
            encoder.requires_grad_(False)

    def set_input_tensor(self, input_tensor):
        """There is one pipeline stage, which has no input of another one."""

    def forward(self, pixels, tokens, places, positions, labels):
        """`places` are those of the image tokens, sample by sample, among all tokens in the order of Megatron."""
        with torch.no_grad() if self.frozen else contextlib.nullcontext():
            features = self.encoder(pixels)[:, self.encoder.class_token_len:]
            features = joined(features.contiguous(), self.grid, self.factor)
        rows = self.projector(features).flatten(0, 1)
        text = self.language_model.embedding(input_ids=tokens, position_ids=positions)
        merged = text.flatten(0, 1).index_copy(0, places, rows).view_as(text)
        return self.language_model(tokens, positions, None, decoder_input=merged, labels=labels)


def encoder_config(arguments):
    config = dict(
        num_layers=shape.ENCODER_LAYERS, hidden_size=shape.ENCODER_HIDDEN, ffn_hidden_size=shape.ENCODER_FFN,
        num_attention_heads=shape.ENCODER_HEADS, kv_channels=shape.ENCODER_HIDDEN // shape.ENCODER_HEADS,
        normalization="LayerNorm", layernorm_epsilon=1e-6, add_bias_linear=True, add_qkv_bias=True,
        activation_func=F.gelu, bias_activation_fusion=True, bias_dropout_fusion=True, masked_softmax_fusion=True,
        attention_dropout=0.0, hidden_dropout=0.0, persist_layer_norm=True, attention_softmax_in_fp32=True,
        perform_initialization=False, attention_backend=AttnBackend.fused, gradient_accumulation_fusion=True,
        bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16)
    config = megatron_lm.with_changes(config, arguments.set_encoder)
    if not config.bias_activation_fusion:
        config.activation_func = fast_gelu    # the fused one is its tanh form too, that of F.gelu alone is not
    return config


def published(name, take):
    """The value of a parameter, of the published weights that `take` gives by name."""
    part, _, name = name.partition(".")
    if part == "language_model":
        return megatron_lm.published(name, lambda name: take("language_model." + name))
    if part == "projector":
        return take({"encoder.linear_fc1.layer_norm_weight": "mlp1.0.weight", "encoder.linear_fc1.weight":
                     "mlp1.1.weight", "encoder.linear_fc2.weight": "mlp1.3.weight"}[name])
    patches = "vision_model.radio_model.model.patch_generator."
    known = {"class_token": patches + "cls_token.token", "position_embeddings": patches + "pos_embed",
             "embedder.weight": patches + "embedder.weight", "ln_post.weight": "vision_model.final_norm.weight",
             "ln_post.bias": "vision_model.final_norm.bias"}
    if name in known:
        return take(known[name])
    _, _, layer, *between, last, kind = name.split(".")
    block = f"vision_model.radio_model.model.blocks.{layer}."
    if kind.startswith("layer_norm_"):
        return take(block + {"linear_qkv": "norm1.", "linear_fc1": "norm2."}[last] + kind.removeprefix("layer_norm_"))
    value = take(block + {"linear_qkv": "attn.qkv.", "linear_proj": "attn.proj.", "linear_fc1": "mlp.fc1.",
                          "linear_fc2": "mlp.fc2."}[last] + kind)
    if last == "linear_qkv":    # of each head its query, its key, its value
        value = value.view(3, shape.ENCODER_HEADS, -1, *value.shape[1:]).transpose(0, 1).reshape(value.shape)
    return value


def batches_of(arguments, samples):
    """All microbatches with their pixels in pinned memory of the host, and the loss mask of a sample."""
    positions = torch.arange(samples.sequence, device="cuda").expand(arguments.micro_samples, -1)
    batches = []
    for batch in megatron_lm.numbers(arguments, 0, 1):
        tokens, labels, mask = (torch.stack(part) for part in zip(*map(samples.tokens, batch)))
        sample, position = (tokens == samples.image_token).nonzero(as_tuple=True)
        pixels = torch.cat([samples.pixels(number).bfloat16() for number in batch]).cpu().pin_memory()
        batches.append((dict(pixels=pixels, tokens=tokens, places=position * len(batch) + sample, positions=positions,
                             labels=labels), mask))
    torch.cuda.empty_cache()
    return batches


def sent(batches):
    """Sends the pixels of each microbatch to the device when it is asked for."""
    for inputs, mask in batches:
        yield {**inputs, "pixels": inputs["pixels"].to("cuda", non_blocking=True)}, mask


def main():
    parser = megatron_lm.parser_of(__doc__)
    parser.add_argument("--set-encoder", action="append", default=[], metavar="KEY=VALUE", help="as --set")
    parser.add_argument("--frozen", action="store_true", help="the encoder does not learn, its projector does")
    arguments = parser.parse_args()
    if "cuda_graph_impl=transformer_engine" in arguments.set + arguments.set_encoder:
        parser.error("Transformer Engine makes graphs of a language model alone (megatron_lm.py); here: local")
    megatron_lm.start(arguments)
    samples = mock_data.Samples(shape.VOCABULARY, SEQUENCE, TEXT_TOKENS, IMAGE_TOKEN, IMAGES, [GRID], shape.PATCH,
                                shape.FACTOR, device="cuda")
    batches = batches_of(arguments, samples)
    # Ours weighs the auxiliary loss by positions, beside a cross entropy of fewer.
    learnt = batches[0][1].sum().item() / arguments.micro_samples
    config = megatron_lm.config_of(arguments, 1, aux_loss=1.0e-4 * SEQUENCE / learnt)
    projector_config = copy.deepcopy(config)
    projector_config.ffn_hidden_size = shape.PROJECTOR
    encoder = Encoder(
        encoder_config(arguments), get_vit_layer_with_transformer_engine_spec(), ln_post_impl=TENorm,
        class_token_len=shape.CLASS_TOKENS, patch_dim=shape.PATCH, img_h=GRID[0] * shape.PATCH,
        img_w=GRID[1] * shape.PATCH, max_img_h=shape.SIDE * shape.PATCH, max_img_w=shape.SIDE * shape.PATCH)
    projector = MultimodalProjector(projector_config, hybrid_stack_spec.submodules.mlp_layer.submodules.mlp
                                    .keywords["submodules"], "mlp", shape.FACTOR**2 * shape.ENCODER_HIDDEN)
    model = VisionLanguage(config, encoder, projector, megatron_lm.language_model(config), GRID, shape.FACTOR,
                           arguments.frozen).cuda()
    megatron_lm.load(model, arguments.folder, published)
    megatron_lm.train(arguments, config, model, sent(batches))


if __name__ == "__main__":
    main()
