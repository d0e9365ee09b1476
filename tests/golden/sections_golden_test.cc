// Every part of the golden file is read by a test, or is listed here with the reason why not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/folders.h"
#include "tests/support/golden.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kUnread = {
    {"rank_group_snapshots", "empty"},
    {"lr_step_failures", "empty"},
    {"lr_state_load", "the state of a scheduler: here rates are a formula of the step, and nothing of them is kept"},
    {"token_source_rank",
     "who publishes the number of loss tokens: here it is summed over the world, and every rank has it"},
    {"derived.worker_ids", "workers of loaders: here samples have numbers that no layout changes"},
    {"derived.worker_seeds", "as worker_ids"},
    {"derived.lane_routing", "as worker_ids"},
    {"derived.packed_params_merge", "a lane's documents are merged where they are read, when packed documents run"},
    {"derived.class_token_cu", "there are no shifted offsets: attention counts the class tokens of each image itself"},
    {"derived.expert_bias_update",
     "the update compares experts x count with the total, in integers: ExpertBias.MovesBySignOfTheDistanceFromTheMean"},
    {"ddp_bucket_size", "one case, of a bucket size that is given; here the recipe gives the number of buckets"},
    {"derived.global_norm", "two numbers: Gate.ClipsAboveTheLimitOnly"},
    {"derived.grad_scale",
     "with the participation factor, which this project does not have: Scale.DividesByTheLossTokensAndNotByZero"},
};

// The text of all test sources except this one.
std::string Sources() {
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(InSource("tests"))) {
    const fs::path& path = entry.path();
    if ((path.extension() != ".cc" && path.extension() != ".h") || path.filename() == fs::path(__FILE__).filename())
      continue;
    std::ifstream in(path);
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

TEST(GoldenFile, EverySectionIsReadOrHasAReason) {
  const std::string sources = Sources();
  std::map<std::string, bool> sections;
  for (const auto& [name, cases] : Golden().items()) {
    if (name != "_about" && name != "derived") sections[name] = cases.empty();
  }
  for (const auto& [name, cases] : Golden().at("derived").items()) {
    if (name != "_about") sections["derived." + name] = false;
  }
  for (const auto& [name, empty] : sections) {
    const std::string word = name.substr(name.find('.') + 1);
    const bool read = sources.find('"' + word + '"') != std::string::npos;
    EXPECT_NE(read, kUnread.contains(name)) << name << (read ? " is read now" : " is read by no test");
    EXPECT_EQ(empty, kUnread.contains(name) && kUnread.at(name) == "empty") << name;
  }
  for (const auto& [name, reason] : kUnread) EXPECT_TRUE(sections.contains(name)) << name << " is no section";
}

}  // namespace
}  // namespace planwright
