// A folder as large as published ones, of files without bytes: 64 GB in 6,634 tensors. Headers alone are read.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/state/weights/initial_pieces.h"
#include "tests/numerics/layouts.h"
#include "tests/state/weights/published.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

// Shards of about 5 GB, with headers and no data.
int64_t WriteSparseFolder(const std::string& folder, const Plan& plan) {
  struct Shard {
    nlohmann::ordered_json header;
    int64_t bytes = 0;
  };
  std::vector<Shard> shards(1);
  nlohmann::ordered_json map;
  std::vector<std::pair<std::string, size_t>> places;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      for (int64_t i = 0; i < std::max<int64_t>(parameter.experts, 1); ++i) {
        if (shards.back().bytes > int64_t{5} << 30) shards.emplace_back();
        Shard& shard = shards.back();
        const std::string name = ExpertName(parameter.file_name, parameter.experts > 0 ? i : -1);
        const int64_t bytes = ElementsOf(parameter.shape) * 2;
        shard.header[name] = {
            {"dtype", "BF16"}, {"shape", parameter.shape}, {"data_offsets", {shard.bytes, shard.bytes + bytes}}};
        shard.bytes += bytes;
        places.emplace_back(name, shards.size());
      }
    }
  }
  const int count = static_cast<int>(shards.size());
  for (const auto& [name, shard] : places) map[name] = ShardName(static_cast<int>(shard), count);
  int64_t all = 0;
  for (int i = 0; i < count; ++i) {
    const std::string path = folder + "/" + ShardName(i + 1, count),
                      text = shards[static_cast<size_t>(i)].header.dump();
    const uint64_t length = text.size();
    WriteText(path, std::string(reinterpret_cast<const char*>(&length), 8) + text);
    std::filesystem::resize_file(path, 8 + text.size() + static_cast<size_t>(shards[static_cast<size_t>(i)].bytes));
    all += shards[static_cast<size_t>(i)].bytes;
  }
  WriteText(folder + "/model.safetensors.index.json", nlohmann::ordered_json{{"weight_map", map}}.dump());
  return all;
}

TEST(LargeFolder, TakesAsLongAsItsHeaders) {
  const TestFolder folder;
  // The published 30B model: 52 layers, and 31,577,937,344 parameters in 6,243 tensors.
  const std::vector<std::string> nano = {
      "models.nemotron_hybrid_moe_20l.pattern=MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
      "models.nemotron_hybrid_moe_20l.attention.kv_groups=2", "cluster.gpu=none", "initialize.from=" + folder.path()};
  const Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"), nano);
  const int64_t bytes = WriteSparseFolder(folder.path(), plan);
  EXPECT_GT(bytes, 64'000'000'000);
  const auto begin = std::chrono::steady_clock::now();
  WeightsFit fit = FitWeights(plan);
  ASSERT_TRUE(fit.fits()) << fit.status();
  const std::vector<RankReads> table = ReadTable(plan, fit);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", static_cast<int>(1000 * seconds.count()));
  EXPECT_EQ(fit.sources[0].opened->reader().bytes_read(), 0);
  int64_t language = 0;
  for (const PartFit& part : fit.parts) {
    if (part.part != "language") continue;
    EXPECT_EQ(part.tensors, 6243);
    language = part.elements;
  }
  EXPECT_EQ(language, 31'577'937'344 + 23 * 128);  // with the biases of experts, which are no parameters
  // tp 2 and ep 4: four ranks read the encoder, four the language model, no two kinds.
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0].ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_LT(table[1].bytes[0], bytes / 2);
}

}  // namespace
}  // namespace planwright::testing
