// What tests of folders of vision-language models share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "planner/exchange/import_folder.h"
#include "tests/exchange/toy_folder.h"
#include "tests/support/compiled.h"

namespace planwright::testing {

class VisionFolders : public FolderTest {
 protected:
  ImportedModel Imported(const std::string& folder) {
    absl::StatusOr<ImportedModel> imported = ImportFolder(In(folder), {}, In(folder));
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *std::move(imported) : ImportedModel{};
  }
  ImportedModel Imported(const Toy& toy, const std::string& folder = "source") {
    WriteToy(In(folder), toy);
    return Imported(folder);
  }

  // The plan of a recipe that extends the imported text and begins with the folder `from`. `eye`, `language`: the names
  // of its models.
  Plan Extended(const std::string& text, const std::string& eye, const std::string& language, const std::string& from) {
    std::ofstream(In("model.yaml")) << text;
    std::ofstream(In("recipe.yaml")) << "name: toy\nextends: [model.yaml]\n"
                                        "cluster: {nodes: 1, gpus_per_node: 1, gpu: none}\n"
                                        "batch: {global_samples: 2, sequence_length: 32}\n"
                                        "budget: {train_samples: 4, learning_rate: {peak: 1.0e-3}}\n"
                                        "precision: {params: fp32}\n"
                                        "data: {kind: mock, image_grids: [[4, 4]], max_images: 1, classes: 2, "
                                        "text_tokens: 4}\n"
                                        "modules:\n  eye: {model: "
                                     << eye
                                     << ", placement: {first_rank: 0, ranks: 1}}\n  language: {model: " << language
                                     << ", placement: {first_rank: 0, ranks: 1}}\n"
                                        "bridges: [{from: eye, to: language}]\ninitialize: {from: "
                                     << In(from) << "}\n";
    return CompiledFile(In("recipe.yaml"), {"lints.PW0605=off"});
  }
};

// Each key of `written` that `read` has, too, has its value there. `others`: keys that a run does not know.
inline void ExpectSameKeys(const nlohmann::json& written, const nlohmann::json& read,
                           const std::set<std::string>& others, const std::string& path = "") {
  for (const auto& [key, value] : written.items()) {
    if (others.contains(key) || !read.contains(key)) continue;
    if (value.is_object())
      ExpectSameKeys(value, read[key], others, path + key + ".");
    else
      EXPECT_EQ(value, read[key]) << path << key;
  }
}

}  // namespace planwright::testing
