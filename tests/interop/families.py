"""The toys: transformers' models with the sizes of a recipe.

A recipe (tests/golden/NAME/oracle.yaml) is read here as text. So the sizes stand in one place, and what each of them
means is said twice: by Planwright, and by the configurations below.

Each toy is a module with forward (the logits of a batch), loss, parts (what transformers saves, and what is in front of
its names in a file of Planwright), probes (the modules whose outputs are compared) and published: the name of the part
that is published as one folder.
"""
import pathlib

import torch
import yaml
from torch import nn
from transformers import (
    LlamaConfig, LlamaForCausalLM, LlavaConfig, LlavaForConditionalGeneration, MistralConfig, MistralForCausalLM,
    NemotronHConfig, NemotronHForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig,
    Qwen3MoeForCausalLM, Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLMoeConfig,
    Qwen3VLMoeForConditionalGeneration, RadioConfig, RadioModel, SiglipVisionConfig, SiglipVisionModel)
from transformers.models.nemotron_h_omni.configuration_nemotron_h_omni import NemotronH_Omni_Reasoning_V3_Config
from transformers.models.nemotron_h_omni.modeling_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3, NemotronH_Omni_Reasoning_V3MultiModalProjector)

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
LAYERS = {"M": "linear_attention", "*": "full_attention", "E": "moe", "-": "mlp"}
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
LANGUAGE = ("hybrid_lm", "decoder")  # kinds of language models
ENCODERS = ("radio_vit", "qwen_vit", "siglip_vit")
SUMMARY_TOKENS = 3  # of an encoder's class tokens; the others are registers


def read_recipe(name):
    return yaml.safe_load((GOLDEN / name / "oracle.yaml").read_text())


def model_of(recipe, kind):
    found = [model for model in recipe["models"].values() if model["kind"] == kind]
    return found[0] if found else None


def language_of(recipe):
    return next(model for model in recipe["models"].values() if model["kind"] in LANGUAGE)


def encoder_of(recipe):
    """None: there is none."""
    return next((model for model in recipe["models"].values() if model["kind"] in ENCODERS), None)


def patches_of_token(encoder):
    side = encoder.get("pixel_shuffle", 1 if encoder["kind"] == "siglip_vit" else 2)
    return side * side


def text_config(recipe):
    """The configuration of the language model."""
    model = model_of(recipe, "hybrid_lm")
    attention, mamba = model.get("attention", {}), model.get("mamba", {})
    moe, mlp = model.get("moe", {}), model.get("mlp", {})
    sizes = dict(vocab_size=model["vocabulary"], hidden_size=model["hidden"],
                 layers_block_type=[LAYERS[letter] for letter in model["pattern"]],
                 layer_norm_epsilon=model["norm_eps"], use_cache=False, attn_implementation="eager",
                 experts_implementation="eager")
    if attention:
        sizes |= dict(num_attention_heads=attention["heads"], num_key_value_heads=attention["kv_groups"],
                      head_dim=attention["head_dim"])
    if mamba:
        sizes |= dict(mamba_num_heads=mamba["heads"], mamba_head_dim=mamba["head_dim"], n_groups=mamba["groups"],
                      ssm_state_size=mamba["state"], conv_kernel=mamba["conv"], chunk_size=mamba["chunk"])
    if moe:
        sizes |= dict(n_routed_experts=moe["experts"], num_experts_per_tok=moe["top_k"],
                      moe_intermediate_size=moe["ffn"], moe_shared_expert_intermediate_size=moe["shared_ffn"],
                      norm_topk_prob=moe.get("normalized", True), routed_scaling_factor=moe["scale"])
    if mlp:
        sizes |= dict(intermediate_size=mlp["ffn"])
    if "init_std" in model:
        sizes |= dict(initializer_range=model["init_std"])
    if (model_of(recipe, "radio_vit") or {}).get("final_norm") == "layernorm":
        # Only with multi-token prediction nemotron_h_omni has a norm behind its encoder. It builds no layers for that.
        sizes |= dict(num_nextn_predict_layers=1)
    return NemotronHConfig(**sizes)


def vision_config(recipe, **more):
    """The configuration of the encoder."""
    model = model_of(recipe, "radio_vit")
    if "init_std" in model:
        more |= dict(initializer_range=model["init_std"])
    return RadioConfig(hidden_size=model["hidden"], num_hidden_layers=model["layers"],
                       num_attention_heads=model["heads"], mlp_ratio=model["ffn"] / model["hidden"],
                       hidden_act=ACTIVATIONS[model["activation"]], layer_norm_eps=model["norm_eps"],
                       patch_size=model["patch"], max_img_size=model["max_image"], image_size=model["max_image"],
                       num_cls_tokens=SUMMARY_TOKENS, num_registers=model["class_tokens"] - SUMMARY_TOKENS,
                       attn_implementation="eager", **more)


def own_labels(batch):
    """Labels as transformers takes them: it moves them by one position itself, and leaves out -100."""
    labels = torch.full_like(batch["labels"], -100)
    labels[:, 1:] = torch.where(batch["loss_mask"][:, :-1] != 0, batch["labels"][:, :-1], -100)
    return labels


class TextModel(nn.Module):
    """`nemotron_h`: a language model alone."""

    published = "language"

    def __init__(self, recipe):
        super().__init__()
        self.language = NemotronHForCausalLM(text_config(recipe))

    def forward(self, batch):
        return self.language(input_ids=batch["token_ids"], use_cache=False).logits

    def loss(self, batch):
        return self.language(input_ids=batch["token_ids"], labels=own_labels(batch), use_cache=False).loss

    def parts(self):
        return [(self.language, "language_model.")]

    def probes(self):
        return language_probes(self.language)


def rope_parameters(rope):
    """What transformers calls the numbers of a rotary embedding."""
    scaling = rope.get("scaling", "none")
    found = {"rope_type": "default" if scaling == "none" else scaling, "rope_theta": rope["theta"]}
    names = {"linear": {"factor": "factor"},
             "llama3": {"factor": "factor", "original": "original_max_position_embeddings", "low": "low_freq_factor",
                        "high": "high_freq_factor"},
             "yarn": {"factor": "factor", "original": "original_max_position_embeddings", "low": "beta_slow",
                      "high": "beta_fast", "amplitude": "attention_factor"}}
    return found | {theirs: rope[ours] for ours, theirs in names.get(scaling, {}).items()}


def decoder_config(recipe, config):
    """The configuration of a decoder, of this class."""
    model = language_of(recipe)
    attention, moe = model["attention"], model.get("moe")
    pattern = model.get("pattern", "*-" * model.get("layers", 0)).replace("|", "")
    sizes = dict(vocab_size=model["vocabulary"], hidden_size=model["hidden"], num_hidden_layers=len(pattern) // 2,
                 num_attention_heads=attention["heads"], num_key_value_heads=attention["kv_groups"],
                 head_dim=attention["head_dim"], rms_norm_eps=model["norm_eps"],
                 tie_word_embeddings=model.get("tied", False), rope_parameters=rope_parameters(model["rope"]),
                 max_position_embeddings=512, use_cache=False, attn_implementation="eager")
    if "mlp" in model:
        sizes |= dict(intermediate_size=model["mlp"]["ffn"])
    if config is MistralConfig:
        sizes |= dict(sliding_window=None)
    elif config is not Qwen2Config:
        sizes |= dict(attention_bias=attention.get("biases", "none") == "all")
    if moe:
        sizes |= dict(num_experts=moe["experts"], num_experts_per_tok=moe["top_k"], moe_intermediate_size=moe["ffn"],
                      norm_topk_prob=moe.get("normalized", True), experts_implementation="eager",
                      mlp_only_layers=[i // 2 for i, letter in enumerate(pattern) if letter == "-"])
    return config(**sizes)


class InputOf:
    """A probe of what a module is given."""

    def __init__(self, module):
        self.module = module


class Decoder(nn.Module):
    """A published decoder. Each of its layers is two here."""

    published = "language"
    config, model = LlamaConfig, LlamaForCausalLM

    def __init__(self, recipe):
        super().__init__()
        self.language = self.model(decoder_config(recipe, self.config))

    def forward(self, batch):
        return self.run(batch).logits

    def loss(self, batch):
        return self.run(batch, labels=own_labels(batch)).loss

    def run(self, batch, **more):
        # Positions that begin anew tell transformers where documents begin.
        return self.language(input_ids=batch["token_ids"], position_ids=positions_of(batch), use_cache=False, **more)

    def parts(self):
        return [(self.language, "language_model.")]

    def probes(self):
        found = {}
        for i, layer in enumerate(self.language.model.layers):
            found[f"language.layer{2 * i}.out"] = InputOf(layer.post_attention_layernorm)
            found[f"language.layer{2 * i + 1}.out"] = layer
            if hasattr(layer.mlp, "gate"):
                found[f"language.layer{2 * i + 1}.router"] = layer.mlp.gate
        return found


class Mistral(Decoder):
    config, model = MistralConfig, MistralForCausalLM


class Qwen2(Decoder):
    config, model = Qwen2Config, Qwen2ForCausalLM


class Qwen3(Decoder):
    config, model = Qwen3Config, Qwen3ForCausalLM


class Qwen3Moe(Decoder):
    config, model = Qwen3MoeConfig, Qwen3MoeForCausalLM


def positions_of(batch):
    """Those of packed documents; None: each sample is one."""
    if "document_ends" not in batch:
        return None
    positions, ends = [], batch["document_ends"].tolist()
    for count in batch["documents_per_sample"].tolist():
        begin, row = 0, []
        for _ in range(count):
            end = ends.pop(0)
            row += range(end - begin)
            begin = end
        positions.append(row)
    return torch.tensor(positions)


class Qwen3VL(nn.Module):
    """`qwen3_vl`: encoder, mergers and decoder in one. Letters D are features of inner layers (DeepStack)."""

    published = "whole"
    config, model = Qwen3VLConfig, Qwen3VLForConditionalGeneration
    # What transformers calls the beginnings of names, and what a file of Planwright does.
    ours = {"model.visual.": "visual.", "model.language_model.": "language_model.model.",
            "lm_head.": "language_model.lm_head."}

    def __init__(self, recipe):
        super().__init__()
        eye, text = encoder_of(recipe), language_of(recipe)
        attention, rope = text["attention"], text["rope"]
        planes, height, width = attention["head_dim"] // 2, rope["height"], rope["width"]
        self.frames, self.merge = eye.get("frames", 2), eye.get("pixel_shuffle", 2)
        self.image_token = recipe["data"]["image_token"]
        self.pattern = text.get("pattern", "*-" * text.get("layers", 0)).replace("|", "")
        pattern = self.pattern.replace("D", "")
        blocks = eye.get("pattern", "V" * eye.get("layers", 0)).replace("|", "")
        taps = [blocks[:i].count("V") - 1 for i, letter in enumerate(blocks) if letter == "D"]
        self.whole = self.model(self.config(
            vision_config=dict(
                depth=blocks.count("V"), hidden_size=eye["hidden"], num_heads=eye["heads"],
                intermediate_size=eye["ffn"], patch_size=eye["patch"], temporal_patch_size=self.frames,
                spatial_merge_size=self.merge,
                out_hidden_size=text["hidden"], num_position_embeddings=eye["table"] ** 2,
                hidden_act=ACTIVATIONS[eye.get("activation", "gelu_tanh")], deepstack_visual_indexes=taps,
                rope_parameters={"rope_type": "axial", "rope_theta": eye["rope_theta"]}),
            text_config=dict(
                vocab_size=text["vocabulary"], hidden_size=text["hidden"], num_hidden_layers=len(pattern) // 2,
                intermediate_size=text["mlp"]["ffn"], num_attention_heads=attention["heads"],
                num_key_value_heads=attention["kv_groups"], head_dim=attention["head_dim"],
                rms_norm_eps=text["norm_eps"], max_position_embeddings=512,
                rope_parameters={"rope_type": "default", "rope_theta": rope["theta"], "mrope_interleaved": True,
                                 "mrope_section": [planes - height - width, height, width]},
                **self.of_experts(text, pattern)),
            image_token_id=self.image_token, tie_word_embeddings=text.get("tied", False),
            attn_implementation="eager", **self.of_whole))

    of_whole = {}

    @staticmethod
    def of_experts(text, pattern):
        return {}

    def forward(self, batch):
        return self.run(batch).logits

    def loss(self, batch):
        return self.run(batch, labels=own_labels(batch)).loss

    def run(self, batch, **more):
        grid = batch["image_grid"]
        return self.whole(
            input_ids=batch["token_ids"], pixel_values=self.films(batch["patches"], grid),
            image_grid_thw=torch.cat([torch.ones(len(grid), 1, dtype=grid.dtype), grid], 1),
            mm_token_type_ids=(batch["token_ids"] == self.image_token).int(), use_cache=False, **more)

    def films(self, patches, grid):
        """Patches of stills as transformers takes them: by squares that become one token, and of equal frames."""
        order = torch.argsort(self.rows_of(grid))
        channels = patches[order].view(len(patches), 3, 1, -1)
        return channels.expand(-1, -1, self.frames, -1).reshape(len(patches), -1)

    def rows_of(self, grid):
        """Where each of our patches, row by row, is among those of transformers."""
        places, first = [], 0
        for rows, columns in grid.tolist():
            own = torch.arange(first, first + rows * columns).view(
                rows // self.merge, columns // self.merge, self.merge, self.merge)
            places.append(own.transpose(1, 2).flatten())
            first += rows * columns
        return torch.cat(places)

    def ordered(self, name, value, batch):
        of_patches = name.startswith("vision.") and not name.startswith("vision.tap")
        return value[self.rows_of(batch["image_grid"])] if of_patches else value

    def parts(self):
        return [(self.whole, "")]

    def probes(self):
        visual, found = self.whole.model.visual, {}
        for i, block in enumerate(visual.blocks):
            found[f"vision.block{i}.out"] = block
        for i, merger in enumerate(visual.deepstack_merger_list):
            found[f"vision.tap{i}.out"] = merger
        text = self.whole.model.language_model
        behind = [layer.input_layernorm for layer in text.layers[1:]] + [text.norm]
        for i, letter in enumerate(self.pattern):
            block = self.pattern[:i + 1].count("*") - 1
            layer = text.layers[block]
            # Features are added behind the layer, before the next one begins.
            made = {"*": InputOf(layer.post_attention_layernorm), "D": InputOf(behind[block])}
            found[f"language.layer{i}.out"] = made.get(letter, layer)
            if letter == "E":
                found[f"language.layer{i}.router"] = layer.mlp.gate
        return found | {"vision.patch_and_position": InputOf(visual.blocks[0]), "projector.out": visual.merger}


class Qwen3VLMoe(Qwen3VL):
    config, model = Qwen3VLMoeConfig, Qwen3VLMoeForConditionalGeneration
    of_whole = {"experts_implementation": "eager"}

    @staticmethod
    def one_by_one(name, value):
        """The tensors of experts that a file of Planwright has in the place of one for all of them."""
        begin, _, what = name.rpartition(".")
        if not begin.endswith(".mlp.experts"):
            return {name: value}
        parts = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}[what]
        return {f"{begin}.{expert}.{part}.weight": matrix
                for expert, whole in enumerate(value)
                for part, matrix in zip(parts, whole.chunk(len(parts)))}

    @staticmethod
    def of_experts(text, pattern):
        moe = text["moe"]
        return dict(num_experts=moe["experts"], num_experts_per_tok=moe["top_k"], moe_intermediate_size=moe["ffn"],
                    mlp_only_layers=[i // 2 for i, letter in enumerate(pattern) if letter == "-"])


def siglip_config(recipe):
    eye = model_of(recipe, "siglip_vit")
    return SiglipVisionConfig(
        hidden_size=eye["hidden"], intermediate_size=eye["ffn"], num_hidden_layers=eye["layers"],
        num_attention_heads=eye["heads"], image_size=eye["max_image"], patch_size=eye["patch"],
        hidden_act=ACTIVATIONS[eye.get("activation", "gelu_tanh")], layer_norm_eps=eye["norm_eps"],
        vision_use_head=False, attn_implementation="eager")


def whole_pixels(patches, config):
    """Images of patches, as SigLIP takes them, with zeros behind the last patches."""
    side, patch = config.image_size // config.patch_size, config.patch_size
    images = patches.view(-1, side, side, 3, patch, patch).permute(0, 3, 1, 4, 2, 5)
    images = images.reshape(-1, 3, side * patch, side * patch)
    rest = config.image_size - side * patch
    return nn.functional.pad(images, (0, rest, 0, rest))


def siglip_probes(vision):
    return {"vision.patch_and_position": vision.embeddings} | {
        f"vision.block{i}.out": layer for i, layer in enumerate(vision.encoder.layers)}


def decoder_probes(text):
    found = {}
    for i, layer in enumerate(text.layers):
        found[f"language.layer{2 * i}.out"] = InputOf(layer.post_attention_layernorm)
        found[f"language.layer{2 * i + 1}.out"] = layer
    return found


class Llava(nn.Module):
    """`llava` with the encoder of SigLIP: what its last block gives, before its norm, goes to the projector."""

    published = "whole"
    untrained = ("post_layernorm",)  # the norm is there, and nothing reads what it gives
    # What transformers saves of a model that it made has shorter names than releases and Planwright.
    ours = {"vision_tower.": "vision_tower.vision_model."}
    released = ours
    config = Qwen2Config

    def __init__(self, recipe):
        super().__init__()
        self.whole = LlavaForConditionalGeneration(LlavaConfig(
            vision_config=siglip_config(recipe), text_config=decoder_config(recipe, self.config),
            image_token_index=recipe["data"]["image_token"], vision_feature_layer=-1,
            vision_feature_select_strategy="full", attn_implementation="eager"))

    def forward(self, batch):
        return self.run(batch).logits

    def loss(self, batch):
        return self.run(batch, labels=own_labels(batch)).loss

    def run(self, batch, **more):
        pixels = whole_pixels(batch["patches"], self.whole.config.vision_config)
        return self.whole(input_ids=batch["token_ids"], pixel_values=pixels, use_cache=False, **more)

    def ordered(self, name, value, batch):
        return value.flatten(0, 1) if name.startswith(("vision.", "projector.")) else value

    def parts(self):
        return [(self.whole, "")]

    def probes(self):
        model = self.whole.model
        return siglip_probes(model.vision_tower) | decoder_probes(model.language_model) | {
            "projector.out": model.multi_modal_projector}


class LlavaOfLlama(Llava):
    config = LlamaConfig


class LlavaOfQwen3(Llava):
    config = Qwen3Config


class TwoLayers(nn.Module):
    """The projector of a LLaVA, of any widths."""

    def __init__(self, taken, inner, made):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(taken, inner), nn.Linear(inner, made)

    def forward(self, x):
        return self.linear_2(nn.functional.gelu(self.linear_1(x)))


class SiglipWithText(nn.Module):
    """`siglip_vision_model` by itself, with its last norm, and behind it what gives it a loss: squares of patches, two
    layers and a decoder. Planwright trains no encoder without a language model."""

    published = "siglip"
    ours = {"vision_tower.": "vision_tower.vision_model."}
    released = {"": "vision_model."}

    def __init__(self, recipe):
        super().__init__()
        encoder = model_of(recipe, "siglip_vit")
        self.siglip = SiglipVisionModel(siglip_config(recipe))
        self.language = Qwen3ForCausalLM(decoder_config(recipe, Qwen3Config))
        self.projector = TwoLayers(patches_of_token(encoder) * encoder["hidden"], encoder["projector"]["hidden"],
                                   self.language.config.hidden_size)
        self.side = encoder["max_image"] // encoder["patch"]
        self.merge = encoder["pixel_shuffle"]
        self.image_token = recipe["data"]["image_token"]

    def forward(self, batch):
        features = self.siglip(whole_pixels(batch["patches"], self.siglip.config)).last_hidden_state
        tokens = self.side // self.merge
        squares = features.view(-1, tokens, self.merge, tokens, self.merge, features.shape[-1]).transpose(2, 3)
        rows = self.projector(squares.reshape(-1, tokens * tokens, self.merge ** 2 * features.shape[-1]))
        embedded = self.language.get_input_embeddings()(batch["token_ids"])
        is_image = (batch["token_ids"] == self.image_token)[..., None].expand_as(embedded)
        return self.language(inputs_embeds=embedded.masked_scatter(is_image, rows), use_cache=False).logits

    def loss(self, batch):
        return token_losses(self(batch), batch).sum() / batch["loss_mask"].sum()

    def ordered(self, name, value, batch):
        return value.flatten(0, 1) if name.startswith(("vision.", "projector.")) else value

    def parts(self):
        return [(self.siglip, "vision_tower."), (self.language, "language_model."),
                (self.projector, "multi_modal_projector.")]

    def probes(self):
        return siglip_probes(self.siglip) | decoder_probes(self.language.model) | {
            "vision.final_norm.out": self.siglip.post_layernorm, "projector.out": self.projector}


class OmniModel(nn.Module):
    """`nemotron_h_omni`: encoder, projector and language model in one."""

    published = "omni"

    def __init__(self, recipe):
        super().__init__()
        encoder = model_of(recipe, "radio_vit")
        self.omni = NemotronH_Omni_Reasoning_V3(NemotronH_Omni_Reasoning_V3_Config(
            vision_config=vision_config(recipe, video_temporal_patch_size=2).to_dict(),
            text_config=text_config(recipe).to_dict(), projector_hidden_size=encoder["projector"]["hidden"],
            vision_hidden_size=encoder["hidden"], image_token_id=recipe["data"]["image_token"],
            attn_implementation="eager", experts_implementation="eager"))

    def forward(self, batch):
        return self.run(batch).logits

    def loss(self, batch):
        return self.run(batch, labels=own_labels(batch)).loss

    def run(self, batch, **more):
        return self.omni(input_ids=batch["token_ids"], pixel_values=batch["patches"],
                         image_grid_hw=batch["image_grid"], use_cache=False, **more)

    def parts(self):
        return [(self.omni, "")]

    def probes(self):
        return (vision_probes(self.omni.vision_model) | language_probes(self.omni.language_model)
                | {"projector.out": self.omni.multi_modal_projector})


class RadioWithText(nn.Module):
    """`radio` by itself, with its input conditioner, and behind it what gives it a loss: Omni's projector and a
    `nemotron_h`. Planwright trains no encoder without a language model."""

    published = "radio"

    def __init__(self, recipe):
        super().__init__()
        encoder = model_of(recipe, "radio_vit")
        self.radio = RadioModel(vision_config(recipe))
        self.language = NemotronHForCausalLM(text_config(recipe))
        self.projector = NemotronH_Omni_Reasoning_V3MultiModalProjector(
            4 * encoder["hidden"], encoder["projector"]["hidden"], self.language.config.hidden_size)
        self.image_token = recipe["data"]["image_token"]

    def forward(self, batch):
        # The conditioner normalizes; a recorded batch holds what it gives.
        conditioner = self.radio.input_conditioner
        patches = batch["patches"].view(-1, 3, self.radio.patch_size, self.radio.patch_size)
        pixels = (patches * conditioner.norm_std + conditioner.norm_mean).flatten(1)
        features = self.radio(pixels, image_grid_hw=batch["image_grid"]).features
        grids = batch["image_grid"].tolist()
        squares = [self.merge(image, *grid) for image, grid in
                   zip(features.split([rows * columns for rows, columns in grids]), grids)]
        embedded = self.language.get_input_embeddings()(batch["token_ids"])
        is_image = (batch["token_ids"] == self.image_token)[..., None].expand_as(embedded)
        embedded = embedded.masked_scatter(is_image, self.projector(torch.cat(squares)))
        return self.language(inputs_embeds=embedded, use_cache=False).logits

    def loss(self, batch):
        return token_losses(self(batch), batch).sum() / batch["loss_mask"].sum()

    @staticmethod
    def merge(image, rows, columns):
        """Four patches of a square become one row."""
        squares = image.view(rows // 2, 2, columns // 2, 2, -1).transpose(1, 2)
        return squares.reshape(rows * columns // 4, -1)

    def parts(self):
        return [(self.radio, "vision_model."), (self.language, "language_model."), (self.projector, "")]

    def probes(self):
        return (vision_probes(self.radio) | language_probes(self.language) | {"projector.out": self.projector})


def token_losses(logits, batch):
    chosen = torch.log_softmax(logits, -1).gather(-1, batch["labels"][..., None])[..., 0]
    return -chosen * batch["loss_mask"]


def language_probes(model):
    layers = {f"language.layer{i}.out": layer for i, layer in enumerate(model.model.layers)}
    gates = {f"language.layer{i}.router": layer.mixer.gate for i, layer in enumerate(model.model.layers)
             if layer.block_type == "moe"}
    return layers | gates


def vision_probes(model):
    return {"vision.patch_and_position": model.embeddings} | {
        f"vision.block{i}.out": layer for i, layer in enumerate(model.encoder.layer)}


FAMILIES = {"nano_oracle": TextModel, "omni_oracle": OmniModel, "radio_oracle": RadioWithText,
            "nano_v2_oracle": TextModel, "one_expert_oracle": TextModel, "one_expert_undivided_oracle": TextModel,
            "all_experts_oracle": TextModel, "all_experts_undivided_oracle": TextModel, "llama_oracle": Decoder,
            "qwen3_oracle": Qwen3,
            "qwen3_moe_oracle": Qwen3Moe, "qwen3_moe_undivided_oracle": Qwen3Moe, "qwen3_vl_oracle": Qwen3VL,
            "qwen3_vl_moe_oracle": Qwen3VLMoe, "qwen3_vl_deepstack_oracle": Qwen3VL, "llava_oracle": Llava,
            "siglip_oracle": SiglipWithText}
