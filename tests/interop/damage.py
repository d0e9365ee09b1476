"""Damages of a folder that came home, which the judgement must see: wrong exports that others have shipped."""
import json
import shutil

from safetensors.torch import load_file, save_file


def changed(change):
    """A damage by a function that changes the tensors of a folder in place."""
    def damage(source, target):
        shutil.copytree(source, target)
        for path in target.glob("*.safetensors"):
            tensors = load_file(path)
            change(tensors)
            save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata={"format": "pt"})
            index = target / "model.safetensors.index.json"
            if index.exists():
                content = json.loads(index.read_text())
                content["weight_map"] = {name: path.name for name in tensors}
                index.write_text(json.dumps(content))
    return damage


def one(tensors, ending):
    """The name of the first tensor that ends so."""
    return min(name for name in tensors if name.endswith(ending))


def drop(ending):
    return changed(lambda tensors: tensors.pop(one(tensors, ending)))


def transpose(ending):
    def change(tensors):
        name = one(tensors, ending)
        tensors[name] = tensors[name].T
    return changed(change)


def rename(ending, new):
    def change(tensors):
        name = one(tensors, ending)
        tensors[name.removesuffix(ending) + new] = tensors.pop(name)
    return changed(change)


def swap(ending, other):
    def change(tensors):
        a = one(tensors, ending)
        b = a.removesuffix(ending) + other
        tensors[a], tensors[b] = tensors[b], tensors[a]
    return changed(change)


def zero(ending):
    return changed(lambda tensors: tensors[one(tensors, ending)].zero_())


def configured(keys):
    """A damage of config.json: other values of some keys."""
    def damage(source, target):
        shutil.copytree(source, target)
        path = target / "config.json"
        config = json.loads(path.read_text())
        for key, value in keys.items():
            *path_of_key, leaf = key.split(".")
            part = config
            for word in path_of_key:
                part = part[word]
            if leaf not in part:
                raise SystemExit(f"{path} has no {key}")
            part[leaf] = value
        path.write_text(json.dumps(config))
    return damage


OF_LANGUAGE = {"a norm is left out": drop("norm_f.weight"),
               "k and v are exchanged": swap("k_proj.weight", "v_proj.weight")}
OF_EXPERTS = {"two experts are exchanged": swap("experts.0.up_proj.weight", "experts.1.up_proj.weight"),
              "the router's bias is zero": zero("gate.e_score_correction_bias")}
# The transposed weight is square: only the loss can show it.
OF_ENCODER = {"a weight is transposed": transpose("attn.proj.weight"),
              "a weight has another name": rename("pos_embed", "position_embed")}

OF_DECODERS = {"a norm is left out": drop("post_attention_layernorm.weight"),
               "k and v are exchanged": swap("k_proj.weight", "v_proj.weight"),
               "gate and up are exchanged": swap("gate_proj.weight", "up_proj.weight"),
               "positions turn at another speed": configured({"rope_parameters.rope_theta": 1000.0})}

# By toy and what is wrong.
DAMAGES = {
    "llama": OF_DECODERS | {"a bias is zero": zero("q_proj.bias"),
                            "another stretch": configured({"rope_parameters.factor": 2.0})},
    "llama_tied": OF_DECODERS | {"it is untied": configured({"tie_word_embeddings": False})},
    "qwen2": OF_DECODERS | {"a bias is zero": zero("k_proj.bias")},
    "qwen3": OF_DECODERS | {"norms of heads are exchanged": swap("q_norm.weight", "k_norm.weight"),
                            "another amplitude": configured({"rope_parameters.attention_factor": 1.0})},
    "qwen3_moe": OF_DECODERS | {
        "two experts are exchanged": swap("experts.0.gate_proj.weight", "experts.1.gate_proj.weight"),
        "the other rule for its weights": configured({"norm_topk_prob": False})},
    "moe_undivided": {"the other rule for its weights": configured({"norm_topk_prob": True})},
    "deepstack": {
        "two mergers are exchanged": swap("deepstack_merger_list.0.linear_fc1.weight",
                                          "deepstack_merger_list.1.linear_fc1.weight"),
        "features of another layer": configured({"vision_config.deepstack_visual_indexes": [0, 2]})},
    "mistral": OF_DECODERS | {"another stretch": configured({"rope_parameters.factor": 2.0})},
    "nano": OF_LANGUAGE | OF_EXPERTS | {"another scale of experts": configured({"routed_scaling_factor": 2.5}),
                                        "time steps are clamped": configured({"time_step_min": 0.01})},
    "one_expert": {"the other rule for its weight": configured({"norm_topk_prob": False})},
    "undivided": {"the other rule for its weight": configured({"norm_topk_prob": True})},
    "nano_v2": OF_LANGUAGE | {"another epsilon": configured({"layer_norm_epsilon": 1e-5})},
    "omni": OF_EXPERTS | OF_ENCODER | {"GELU by tanh": configured({"vision_config.hidden_act": "gelu_pytorch_tanh"})},
    # transformers does not count this norm among missing tensors: only the loss shows that it is gone.
    "omni_normed": {"the final norm is dropped": changed(lambda tensors: [tensors.pop(
        one(tensors, f"vision_final_layernorm.{leaf}")) for leaf in ("weight", "bias")]),
                    "no final norm is built": configured({"text_config.num_nextn_predict_layers": 0}),
                    "the final norm has another name": rename("vision_final_layernorm.weight",
                                                              "vision_model.final_norm.weight")},
    # A norm of layers of the encoder is left out, so that transformers draws it, and a square weight is transposed.
    "llava": {"a norm is left out": drop("layer_norm1.weight"),
              "a weight is transposed": transpose("self_attn.out_proj.weight"),
              "k and v are exchanged": swap("vision_model.encoder.layers.0.self_attn.k_proj.weight",
                                            "vision_model.encoder.layers.0.self_attn.v_proj.weight"),
              "a bias of the projector is zero": zero("multi_modal_projector.linear_2.bias"),
              "features of the layer before": configured({"vision_feature_layer": -2}),
              "GELU by erf": configured({"vision_config.hidden_act": "gelu"})},
    "siglip": {"a bias is zero": zero("mlp.fc1.bias"), "GELU by tanh": configured({"hidden_act": "gelu_pytorch_tanh"}),
               "another epsilon": configured({"layer_norm_eps": 1e-5})},
    "radio": OF_ENCODER | {"GELU by tanh": configured({"hidden_act": "gelu_pytorch_tanh"})},
}
