// Folders as transformers 5.23.0 saved them: config.json, and a table of tensors with their types and shapes. The bytes
// are zeros, but for the mean and deviation of pixels. Three toys: `lm` (nemotron_h), `radio` and `omni`
// (nemotron_h_omni), in tests/exchange/transformers. They were made with save_pretrained of models with random weights,
// and their sizes are those of the table in import_test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/base/files/file_io.h"
#include "planner/exchange/findings.h"
#include "planner/wire/records/safetensors.h"
#include "tests/support/folders.h"

namespace planwright {
inline void PrintTo(const Finding& finding, std::ostream* out) {
  *out << "{" << finding.where << " = " << finding.value << ": " << finding.message << "}";
}
}  // namespace planwright

namespace planwright::testing {

struct ToyTensor {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  std::string bytes;  // empty: zeros
};

// What transformers normalizes pixels by.
inline std::string FloatsOfClip(bool mean) {
  const float means[] = {0.48145466F, 0.4578275F, 0.40821073F}, deviations[] = {0.26862954F, 0.26130258F, 0.27577711F};
  return std::string(reinterpret_cast<const char*>(mean ? means : deviations), sizeof means);
}

struct Toy {
  nlohmann::ordered_json config;
  std::map<std::string, ToyTensor> tensors;  // by name
};

inline Toy ReadToy(const std::string& name) {
  const std::string path = InSource("tests/exchange/transformers/" + name);
  Toy toy;
  std::ifstream config(path + ".config.json");
  toy.config = nlohmann::ordered_json::parse(config);
  std::ifstream table(path + ".tensors");
  for (std::string tensor, type, sizes; table >> tensor >> type >> sizes;) {
    ToyTensor& of = toy.tensors[tensor];
    of.dtype = type == "I64" ? DType::kInt64 : DType::kFp32;
    std::istringstream numbers(sizes);
    for (std::string size; std::getline(numbers, size, ',');) of.shape.push_back(std::stoll(size));
    if (tensor.ends_with(".norm_mean") || tensor.ends_with(".norm_std"))
      of.bytes = FloatsOfClip(tensor.ends_with(".norm_mean"));
  }
  EXPECT_GT(toy.tensors.size(), 10U) << path;
  return toy;
}

// Writes model.safetensors and config.json, `text` in the place of the toy's config if it is not empty.
inline void WriteToy(const std::string& folder, const Toy& toy, const std::string& text = "") {
  std::filesystem::create_directories(folder);
  std::vector<TensorBytes> tensors;
  for (const auto& [name, tensor] : toy.tensors) {
    int64_t bytes = DTypeBytes(tensor.dtype);
    for (const int64_t size : tensor.shape) bytes *= size;
    tensors.push_back({name, tensor.dtype, tensor.shape, std::string(static_cast<size_t>(bytes), '\0')});
    if (!tensor.bytes.empty()) tensors.back().bytes = tensor.bytes;
  }
  ASSERT_TRUE(WriteSafetensors(folder + "/model.safetensors", tensors, {{"format", "pt"}}).ok());
  std::ofstream(folder + "/config.json") << (text.empty() ? toy.config.dump(2) : text);
}

// The same toy in the dialect of the remote code, as published files have it.
inline nlohmann::ordered_json RemoteConfig(const nlohmann::ordered_json& config) {
  nlohmann::ordered_json text = config["text_config"];
  text.erase("layers_block_type"), text.erase("mtp_layers_block_type"), text.erase("num_nextn_predict_layers");
  text["hybrid_override_pattern"] = "ME*E", text["num_hidden_layers"] = 4;
  text["norm_eps"] = 1e-5, text["rope_theta"] = 10000, text["partial_rotary_factor"] = 1.0;
  nlohmann::ordered_json vision = {{"model_type", ""},
                                   {"patch_size", 4},
                                   {"max_resolution", 64},
                                   {"version", "toy"},
                                   {"hidden_size", 32},
                                   {"num_hidden_layers", 2},
                                   {"num_attention_heads", 4},
                                   {"intermediate_size", 64},
                                   {"preferred_resolution", {32, 32}},
                                   {"adaptor_names", nullptr},
                                   {"vitdet_window_size", nullptr},
                                   {"separate_video_embedder", true},
                                   {"video_temporal_patch_size", 2},
                                   {"args",
                                    {{"cpe_max_size", 64},
                                     {"register_multiple", 2},
                                     {"cls_token_per_teacher", true},
                                     {"teachers", {{{"name", "a"}}}},
                                     {"min_num_patches", 4},
                                     {"max_num_patches", 16},
                                     {"lr", 0.1}}}};
  return {{"architectures", {"NemotronH_Nano_Omni_Reasoning_V3"}},
          {"model_type", "NemotronH_Nano_Omni_Reasoning_V3"},
          {"auto_map", {{"AutoConfig", "configuration.Config"}}},
          {"force_image_size", 32},
          {"patch_size", 4},
          {"template", "toy"},
          {"downsample_ratio", 0.5},
          {"ps_version", "v2"},
          {"image_tag_type", "internvl"},
          {"use_thumbnail", true},
          {"norm_mean", {0.48145466, 0.4578275, 0.40821073}},
          {"norm_std", {0.26862954, 0.26130258, 0.27577711}},
          {"vit_hidden_size", 32},
          {"projector_hidden_size", 64},
          {"img_context_token_id", 255},
          {"img_context_token", "<image>"},
          {"video_pruning_rate", 0.0},
          {"sound_config", nullptr},
          {"llm_config", text},
          {"vision_config", vision}};
}

// A folder of its own for each test, removed at its end.
class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "exchangeXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

}  // namespace planwright::testing
