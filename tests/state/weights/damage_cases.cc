#include "tests/state/weights/damage_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_replace.h"
#include "planner/plan/pixel_norm.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

using Tensors = RawTensors;
using Folder = const std::string;

constexpr char kIndex[] = "/model.safetensors.index.json";
std::string First(Folder& folder) { return folder + "/" + ShardName(1, 2); }
std::string Second(Folder& folder) { return folder + "/" + ShardName(2, 2); }

void Replace(const std::string& path, const std::string& from, const std::string& to) {
  const std::string text = ReadText(path);
  ASSERT_NE(text.find(from), std::string::npos) << from;
  WriteText(path, absl::StrReplaceAll(text, {{from, to}}));
}

void Rename(Tensors& tensors, const std::string& from, const std::string& to) {
  auto node = tensors.extract(from);
  ASSERT_FALSE(node.empty()) << from;
  node.key() = to;
  tensors.insert(std::move(node));
}

void RemoveFiles(Folder& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
}

// A file with this header and no more.
std::string HeaderAlone(const std::string& header) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header;
}

// The shapes of tensors, without their bytes.
void Reshape(Tensors& tensors, const std::string& name, std::vector<int64_t> shape) {
  ASSERT_TRUE(tensors.contains(name)) << name;
  tensors.at(name) = Numbers("BF16", shape, [](int64_t) { return 1; });
}

constexpr char kLayer0[] = "language_model.backbone.layers.0.";

std::vector<DamageCase> OfFiles() {
  return {
      {"cut_shard",
       {},
       [](Folder& f) { fs::resize_file(Second(f), fs::file_size(Second(f)) - 7); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: the tensors end at 136624, the data at 136617: the file "
       "is cut short by 7 bytes"},
      {"cut_in_the_header",
       {},
       [](Folder& f) { fs::resize_file(Second(f), 100); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: the header is longer than the file"},
      {"empty_shard",
       {},
       [](Folder& f) { fs::resize_file(Second(f), 0); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: 0 bytes are too few for a safetensors file"},
      {"missing_shard",
       {},
       [](Folder& f) { fs::remove(Second(f)); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors is missing; the index has 29 tensors in it, such as "
       "language_model.backbone.layers.0.mixer.A_log"},
      {"both_shards_are_bad",
       {},
       [](Folder& f) {
         fs::remove(First(f));
         fs::resize_file(Second(f), 0);
       },
       "F is damaged or incomplete:\n"
       "  F/model-00001-of-00002.safetensors is missing; the index has 29 tensors in it, such as "
       "language_model.backbone.embeddings.weight\n"
       "  F/model-00002-of-00002.safetensors: 0 bytes are too few for a safetensors file"},
      {"link_to_nothing",
       {},
       [](Folder& f) {
         fs::remove(Second(f));
         fs::create_symlink("../../blobs/0123abcd", Second(f));
       },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors is missing: it is a symbolic link to "
       "../../blobs/0123abcd, which is not there (an incomplete download?); the index has 29 tensors "
       "in it, such as language_model.backbone.layers.0.mixer.A_log"},
      {"links_in_a_circle",
       {},
       [](Folder& f) {
         fs::remove(Second(f));
         fs::create_symlink("other", Second(f));
         fs::create_symlink(ShardName(2, 2), f + "/other");
       },
       "F is damaged or incomplete:\n"
       "  cannot read F/model-00002-of-00002.safetensors: Too many levels of symbolic links"},
      {"folder_in_place_of_a_shard",
       {},
       [](Folder& f) {
         fs::remove(Second(f));
         fs::create_directory(Second(f));
       },
       "F is damaged or incomplete:\n"
       "  cannot read F/model-00002-of-00002.safetensors: Is a directory"},
      {"header_is_longer_than_the_limit",
       {},
       [](Folder& f) { WriteText(Second(f), std::string(7, '\xff') + "\x01{" + std::string(8, ' ')); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: a header of 144115188075855871 bytes is too long"},
      {"file_of_another_kind",
       {},
       [](Folder& f) { WriteText(Second(f), "some text that is no safetensors"); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: it is no safetensors file: no header in JSON follows its first 8 bytes"},
      {"header_is_no_json",
       {},
       [](Folder& f) { WriteText(Second(f), HeaderAlone("{\"a\": [1, 2")); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: the header is not a JSON object: "
       "parse error at line 1, column 12: syntax error while parsing "
       "array - unexpected end of input; expected ']'"},
      {"header_has_a_tensor_twice",
       {},
       [](Folder& f) {
         WriteText(Second(f), HeaderAlone(R"({"a":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]},)"
                                          R"("a":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]}})"));
       },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: the header is not a JSON object: the field \"a\" is "
       "given twice"},
      {"header_lies_about_a_shape",
       {},
       [](Folder& f) { Replace(First(f), "\"shape\":[256,64]", "\"shape\":[256,65]"); },
       "F is damaged or incomplete:\n"
       "  F/model-00001-of-00002.safetensors: tensor language_model.backbone.embeddings.weight: its "
       "shape needs 33280 bytes, its offsets span 32768"},
      {"header_overlaps",
       {},
       [](Folder& f) {
         WriteText(Second(f), HeaderAlone(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                                          R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[2,6]}})") +
                                  "123456");
       },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: tensor b starts at 2, the one before ends at 4"},
      {"pointer_of_git_lfs",
       {},
       [](Folder& f) { WriteText(Second(f), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 49\n"); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: a pointer of Git LFS, not the file: `git lfs pull` in its folder fetches "
       "it"},
      {"page_of_a_server",
       {},
       [](Folder& f) { WriteText(Second(f), "<html><body>Sign in</body></html>"); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: a page of HTML, not the file: what a server answered in its place; "
       "download it again"},
      {"header_has_an_unknown_type",
       {},
       [](Folder& f) { WriteText(Second(f), HeaderAlone(R"({"a":{"dtype":"F7","shape":[0],"data_offsets":[0,0]}})")); },
       "F is damaged or incomplete:\n"
       "  F/model-00002-of-00002.safetensors: tensor a: dtype \"F7\" is none that the format has"},
  };
}

std::vector<DamageCase> OfTheIndex() {
  return {
      {"index_is_no_json",
       {},
       [](Folder& f) { WriteText(f + kIndex, "{"); },
       "F/model.safetensors.index.json: not JSON: parse error at line "
       "1, column 2: syntax error while parsing object key - unexpected end of input; expected string "
       "literal"},
      {"index_has_no_map",
       {},
       [](Folder& f) { WriteText(f + kIndex, R"({"weights": {}})"); },
       "F/model.safetensors.index.json is no index of weights: it has no object weight_map"},
      {"index_is_empty",
       {},
       [](Folder& f) { WriteText(f + kIndex, R"({"weight_map": {}})"); },
       "F/model.safetensors.index.json is no index of weights:\n"
       "  its weight_map is empty"},
      {"index_leads_out_of_the_folder",
       {},
       [](Folder& f) { WriteText(f + kIndex, R"({"weight_map": {"a": "../secret.safetensors", "b": 3}})"); },
       "F/model.safetensors.index.json is no index of weights:\n"
       "  the index names the file ../secret.safetensors, which is not in the folder\n"
       "  the file of tensor b is not a text"},
      {"index_of_pickles",
       {},
       [](Folder& f) { WriteText(f + kIndex, R"({"weight_map": {"a": "pytorch_model-00001-of-00002.bin"}})"); },
       "F/model.safetensors.index.json is no index of weights:\n"
       "  the index names the file pytorch_model-00001-of-00002.bin, which is no .safetensors file; "
       "pickled tensors are not read, as loading them runs code; in Python, save_pretrained(FOLDER, "
       "safe_serialization=True) of transformers writes safetensors"},
      {"tensor_in_another_shard",
       {},
       [](Folder& f) {
         const std::string entry = "\"mlp1.0.weight\": \"";
         const bool first = ReadText(f + kIndex).find(entry + ShardName(1, 2)) != std::string::npos;
         Replace(f + kIndex, entry + ShardName(first ? 1 : 2, 2), entry + ShardName(first ? 2 : 1, 2));
       },
       "F is damaged or incomplete:\n"
       "  tensor mlp1.0.weight: by the index in model-00002-of-00002.safetensors, but in "
       "model-00001-of-00002.safetensors"},
      {"tensor_in_no_shard",
       {},
       [](Folder& f) { Replace(f + kIndex, "\"mlp1.0.weight\"", "\"mlp1.7.weight\""); },
       "F is damaged or incomplete:\n"
       "  tensor mlp1.7.weight: by the index in model-00001-of-00002.safetensors, but in no file\n"
       "  tensor mlp1.0.weight: in model-00001-of-00002.safetensors, but not in the index"},
      {"tensor_in_two_shards",
       {},
       [](Folder& f) { fs::copy_file(First(f), Second(f), fs::copy_options::overwrite_existing); },
       "F is damaged or incomplete:\n"
       "  29 tensors, such as language_model.backbone.embeddings.weight: in "
       "model-00001-of-00002.safetensors and in model-00002-of-00002.safetensors\n"
       "  29 tensors, such as language_model.backbone.layers.0.mixer.A_log: by the index in "
       "model-00002-of-00002.safetensors, but in no file"},
      {"index_and_one_file",
       {},
       [](Folder& f) { WriteText(f + "/model.safetensors", ""); },
       "F/ has both model.safetensors.index.json and model.safetensors: name the one that is meant, as "
       "F/model.safetensors"},
      {"pickles",
       {},
       [](Folder& f) {
         RemoveFiles(f);
         WriteText(f + "/pytorch_model.bin", "");
       },
       "F/ has neither model.safetensors.index.json nor model.safetensors; it has pytorch_model.bin: "
       "pickled tensors are not read, as loading them runs code; in Python, save_pretrained(FOLDER, "
       "safe_serialization=True) of transformers writes safetensors"},
      {"gguf",
       {},
       [](Folder& f) {
         RemoveFiles(f);
         WriteText(f + "/model-q4.gguf", "");
       },
       "F/ has neither model.safetensors.index.json nor model.safetensors; it has model-q4.gguf: GGUF "
       "files are not read, as they are quantized for inference; in Python, save_pretrained(FOLDER, "
       "safe_serialization=True) of transformers writes safetensors"},
      {"another_name",
       {},
       [](Folder& f) {
         RemoveFiles(f);
         WriteText(f + "/consolidated.safetensors", "");
       },
       "F/ has neither model.safetensors.index.json nor model.safetensors; it has "
       "consolidated.safetensors: name the file that is meant"},
      {"nothing",
       {},
       RemoveFiles,
       "F/ has neither model.safetensors.index.json nor model.safetensors: it has no weights; and it "
       "is no checkpoint, as it has no manifest.json, and no run directory"},
      {"no_folder", {}, [](Folder& f) { fs::remove_all(f); }, "cannot read F: No such file or directory"},
  };
}

std::vector<DamageCase> OfTensors() {
  return {
      {"fits", {}, {}, ""},
      {"missing",
       [](Tensors& t) {
         t.erase(std::string(kLayer0) + "mixer.D");
         t.erase("mlp1.0.weight");
       },
       {},
       "F: missing: mlp1.0.weight [128]\n"
       "F: missing: language_model.backbone.layers.0.mixer.D [8]"},
      {"experts_are_missing",
       [](Tensors& t) {
         std::erase_if(t, [](const auto& one) { return one.first.find(".experts.") != std::string::npos; });
       },
       {},
       "F: missing: language_model.backbone.layers.2.mixer.experts.N.up_proj.weight [48, 64] (8 "
       "tensors, the first is language_model.backbone.layers.2.mixer.experts.0.up_proj.weight)\n"
       "F: missing: language_model.backbone.layers.2.mixer.experts.N.down_proj.weight [64, 48] (8 "
       "tensors, the first is language_model.backbone.layers.2.mixer.experts.0.down_proj.weight)"},
      {"part_is_missing",
       [](Tensors& t) { std::erase_if(t, [](const auto& one) { return one.first.starts_with("mlp1."); }); },
       {},
       "F has none of the 3 tensors of radio_encoder.projection, such as mlp1.0.weight; it has "
       "language_model.backbone.embeddings.weight, language_model.backbone.layers.0.mixer.A_log, "
       "language_model.backbone.layers.0.mixer.D and 51 more: name another source for "
       "radio_encoder.projection, or `drawn`"},
      {"no_final_norm",
       [](Tensors& t) {
         std::erase_if(t, [](const auto& one) { return one.first.find("final_norm") != std::string::npos; });
       },
       {},
       "F: missing: vision_model.final_norm.weight [32]: published encoders have no final norm; set the "
       "model's final_norm to none\n"
       "F: missing: vision_model.final_norm.bias [32]: published encoders have no final norm; set the model's "
       "final_norm to none"},
      {"left_over",
       [](Tensors& t) {
         t["language_model.backbone.layers.0.mixer.k_norm.weight"] = Numbers("BF16", {4}, [](int64_t) { return 1; });
         for (int i = 0; i < 5; ++i)
           t["teacher.blocks." + std::to_string(i) + ".weight"] = Numbers("F32", {2, 3}, [](int64_t) { return 1; });
       },
       {},
       "F: left over: language_model.backbone.layers.0.mixer.k_norm.weight [4]: the plan has no such "
       "tensor (what may stay unused is listed in initialize.ignore)\n"
       "F: left over: teacher.blocks.N.weight [2, 3]: the plan has no such tensor (what may stay "
       "unused is listed in initialize.ignore) (5 tensors, the first is teacher.blocks.0.weight)"},
      {"fp8",
       [](Tensors& t) {
         const std::string name = std::string(kLayer0) + "mixer.in_proj.weight";
         t.at(name) = {"F8_E4M3", t.at(name).shape, t.at(name).bytes.substr(t.at(name).bytes.size() / 2)};
         t[name + "_scale"] = Numbers("F32", {1}, [](int64_t) { return 1; });
       },
       {},
       "F: type: language_model.backbone.layers.0.mixer.in_proj.weight is F8_E4M3, and weights are "
       "read from BF16, F16, F32 and F64: use the unquantized files of the model, or dequantize it\n"
       "F: left over: language_model.backbone.layers.0.mixer.in_proj.weight_scale [1]: the plan has no "
       "such tensor (what may stay unused is listed in initialize.ignore)"},
      {"integers",
       [](Tensors& t) {
         t.at("mlp1.0.weight") = {"I64", {128}, std::string(1024, '\0')};
       },
       {},
       "F: type: mlp1.0.weight is I64, and weights are read from BF16, F16, F32 and F64: use the "
       "unquantized files of the model, or dequantize it"},
      {"another_shape",
       [](Tensors& t) {
         Reshape(t, std::string(kLayer0) + "mixer.out_proj.weight", {32, 64});
       },
       {},
       "F: shape: language_model.backbone.layers.0.mixer.out_proj.weight is [32, 64], the model's is "
       "[64, 64]"},
      {"transposed",
       [](Tensors& t) {
         const std::string name = "language_model.backbone.layers.2.mixer.experts.1.up_proj.weight";
         const std::vector<int64_t> shape = t.at(name).shape;
         Reshape(t, name, {shape[1], shape[0]});
       },
       {},
       "F: shape: language_model.backbone.layers.2.mixer.experts.1.up_proj.weight is [64, 48], the "
       "model's is [48, 64]: it looks transposed"},
      {"flattened",
       [](Tensors& t) {
         const std::string name = std::string(kLayer0) + "mixer.conv1d.weight";
         const std::vector<int64_t> shape = t.at(name).shape;
         Reshape(t, name, {shape[0], shape[2]});
       },
       {},
       "F: shape: language_model.backbone.layers.0.mixer.conv1d.weight is [128, 4], the model's is "
       "[128, 1, 4]: as many elements in another shape; it may be flattened or reshaped"},
      {"larger_vocabulary",
       [](Tensors& t) {
         Reshape(t, "language_model.backbone.embeddings.weight", {300, 64});
         Reshape(t, "language_model.lm_head.weight", {300, 64});
       },
       {},
       "F: shape: language_model.backbone.embeddings.weight is [300, 64], the model's is [256, 64]: "
       "the model's vocabulary is smaller than the source's; set it to 300 or more\n"
       "F: shape: language_model.lm_head.weight is [300, 64], the model's is [256, 64]: the model's "
       "vocabulary is smaller than the source's; set it to 300 or more"},
      {"another_family",
       [](Tensors& t) {
         t.clear();
         for (const char* name : {"embed_tokens.weight", "layers.0.self_attn.q_proj.weight", "norm.weight"})
           t["model." + std::string(name)] = Numbers("BF16", {4}, [](int64_t) { return 1; });
       },
       [](Folder& f) { WriteText(f + "/config.json", R"({"model_type": "llama"})"); },
       "F has none of the 17 tensors of radio_encoder.backbone, such as "
       "vision_model.radio_model.model.patch_generator.embedder.weight; it has "
       "model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight, model.norm.weight "
       "(config.json: model_type llama): name another source for radio_encoder.backbone, or `drawn`\n"
       "F has none of the 3 tensors of radio_encoder.projection, such as mlp1.0.weight; it has "
       "model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight, model.norm.weight "
       "(config.json: model_type llama): name another source for radio_encoder.projection, or `drawn`\n"
       "F has none of the 38 tensors of language, such as language_model.backbone.embeddings.weight; "
       "it has model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight, model.norm.weight "
       "(config.json: model_type llama): name another source for language, or `drawn`"},
      {"names_of_two_kinds",
       [](Tensors& t) {
         Rename(t, "language_model.lm_head.weight", "lm_head.weight");
         Rename(t, std::string(kLayer0) + "mixer.D", "backbone.layers.0.mixer.D");
       },
       {},
       "F: missing: language_model.backbone.layers.0.mixer.D [8]\n"
       "F: missing: language_model.lm_head.weight [256, 64]\n"
       "F: left over: backbone.layers.0.mixer.D [8]: the source has names of a whole model and of one "
       "alone (what may stay unused is listed in initialize.ignore)\n"
       "F: left over: lm_head.weight [256, 64]: the source has names of a whole model and of one alone "
       "(what may stay unused is listed in initialize.ignore)"},
      {"no_number",
       [](Tensors& t) {
         t.at("mlp1.0.weight") = Numbers("BF16", {128}, [](int64_t i) { return i == 77 ? std::nan("") : 1; });
         t.at(std::string(kLayer0) + "mixer.D") = Numbers("F16", {8}, [](int64_t i) { return i == 3 ? INFINITY : 1; });
       },
       {},
       "F/model-00001-of-00002.safetensors: tensor mlp1.0.weight: element 77 is infinite or no number "
       "(NaN)\n"
       "F/model-00001-of-00002.safetensors: tensor language_model.backbone.layers.0.mixer.D: element 3 "
       "is infinite or no number (NaN)"},
      {"normalized_otherwise",
       [](Tensors& t) {
         const std::string norm = "vision_model.radio_model.input_conditioner.norm_";
         t[norm + "mean"] =
             Numbers("F32", {3, 1, 1}, [](int64_t i) { return kClipNorm.mean.at(i) + (i == 1 ? 2e-6 : 5e-7); });
         // To the nearest bf16, and the last one a step below it.
         const double deviation[] = {0.26953125, 0.26171875, 0.2734375};
         t[norm + "std"] = Numbers("BF16", {3, 1, 1}, [&](int64_t i) { return deviation[i]; });
       },
       {},
       "F/model-00002-of-00002.safetensors: tensor vision_model.radio_model.input_conditioner.norm_mean: element 1 is "
       "0.45782951, and images are normalized by the mean of CLIP, 0.4578275: it is another model\n"
       "F/model-00001-of-00002.safetensors: tensor vision_model.radio_model.input_conditioner.norm_std: element 2 is "
       "0.2734375, and images are normalized by the deviation of CLIP, 0.27577711: it is another model"},
      {"shapes_of_what_is_passed_through",
       [](Tensors& t) {
         const std::string radio = "vision_model.radio_model.";
         t[radio + "input_conditioner.norm_std"] =
             Numbers("F32", {3}, [](int64_t i) { return kClipNorm.deviation.at(i); });
         t[radio + "model.blocks.0.layer_scale1.lambda1"] = Numbers("F32", {33}, [](int64_t) { return 1; });
       },
       {},
       "F: shape: vision_model.radio_model.input_conditioner.norm_std is [3], the model's is [3, 1, 1]\n"
       "F: shape: vision_model.radio_model.model.blocks.0.layer_scale1.lambda1 is [33], the model's is [32]"},
      {"a_name_that_forges_a_line",
       [](Tensors& t) { t["x\nthe weights fit\n\x1b[8m"] = Numbers("F32", {2}, [](int64_t) { return 1; }); },
       {},
       "F: left over: x\\x0athe weights fit\\x0a\\x1b[8m [2]: the plan has no such tensor (what may stay unused is "
       "listed in initialize.ignore)"},
      {"a_name_that_forges_a_line_in_the_index",
       {},
       [](Folder& f) { Replace(f + kIndex, "\"mlp1.0.weight\"", "\"m\\nthe weights fit\""); },
       "F is damaged or incomplete:\n"
       "  tensor m\\x0athe weights fit: by the index in model-00001-of-00002.safetensors, but in no file\n"
       "  tensor mlp1.0.weight: in model-00001-of-00002.safetensors, but not in the index"},
      {"too_large_for_the_run",
       [](Tensors& t) {
         t.at("mlp1.0.weight") = Numbers("F64", {128}, [](int64_t i) { return i == 77 ? -1e300 : 0x1.fffffep127; });
       },
       {},
       "F/model-00001-of-00002.safetensors: tensor mlp1.0.weight: element 77 is too large for fp32"},
      {"a_scale_that_is_not_one",
       [](Tensors& t) {
         const std::string block = "vision_model.radio_model.model.blocks.0.";
         t[block + "layer_scale1.lambda1"] = Numbers("BF16", {32}, [](int64_t) { return 1; });
         t[block + "layer_scale2.lambda1"] = Numbers("F32", {32}, [](int64_t i) { return i == 5 ? 0.5 : 1; });
       },
       {},
       "F/model-00001-of-00002.safetensors: tensor "
       "vision_model.radio_model.model.blocks.0.layer_scale2.lambda1: element 5 is not 1, and the "
       "model has no such scale: it is another model"},
  };
}

}  // namespace

std::vector<DamageCase> DamageCases() {
  std::vector<DamageCase> all;
  for (const auto& some : {OfFiles(), OfTheIndex(), OfTensors()}) all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace planwright::testing
