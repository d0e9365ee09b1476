// Copies of a rank's state for a checkpoint: what is written is the state at the moment of Begin, though the optimizer
// changes each bucket as soon as its mark allows it; also where the copies go through less memory than they need.
#include "executor/checkpoint/host_copies.h"

#include <ATen/ops/empty_like.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "planner/plan/shard_map.h"
#include "planner/wire/records/safetensors.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

using testing::CompiledFile;

constexpr int64_t kLimit = int64_t{1} << 19;

// The tiny model on one rank, or its language model with tp 2 on two; the encoder is frozen but for its projector.
Plan PlanOf(const std::string& precision, int ranks) {
  std::vector<std::string> overrides = {"precision.params=" + precision, "checkpoint.every_steps=2",
                                        "modules.radio_encoder.train.backbone=frozen"};
  if (ranks == 2) {
    for (const char* module : {"radio_encoder", "language"}) {
      overrides.push_back(std::string("modules.") + module + ".placement.ranks=2");
      overrides.push_back(std::string("modules.") + module + ".parallel.tp=2");
    }
    overrides.push_back("cluster.gpus_per_node=2");
  }
  return CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), overrides);
}

using Modules = std::vector<std::unique_ptr<ModuleState>>;

// Every tensor of the state gets other numbers.
Modules RandomState(const Plan& plan, int rank) {
  Modules modules;
  for (const Module& module : plan.modules) {
    modules.push_back(std::make_unique<ModuleState>(plan, module, rank, at::kCPU));
    for (size_t i = 0; i < module.storages.size(); ++i) {
      if (modules.back()->has_storage(i)) at::Tensor(modules.back()->storages()[i].parameter).uniform_(-1, 1);
    }
    for (size_t i = 0; i < module.buckets.size(); ++i) {
      if (!modules.back()->has_bucket(i)) continue;
      BucketState& bucket = modules.back()->buckets()[i];
      bucket.master.uniform_(-1, 1);
      for (auto& [name, state] : bucket.states) state.uniform_(-1, 1);
    }
  }
  return modules;
}

// The bytes of each piece that the rank has to write, by key.
std::map<std::string, std::string> BytesOf(const Plan& plan, int rank, const Modules& modules) {
  std::map<std::string, std::string> all;
  for (const auto& module : modules) {
    for (const CheckpointPiece& piece : PiecesToWrite(plan, module->module(), rank)) {
      const at::Tensor from = FlatTensorOf(*module, piece.storage, piece.state).contiguous();
      const auto width = static_cast<int64_t>(from.element_size());
      std::string& bytes = all[piece.key];
      for (const ElementRun& run : piece.runs)
        bytes.append(static_cast<const char*>(from.const_data_ptr()) + run.local * width,
                     static_cast<size_t>(run.count * width));
    }
  }
  return all;
}

// What the end of the next step does: each bucket changes when its copy is made, the expert bias at any time.
void Train(Modules& modules) {
  for (const auto& module : modules) {
    for (const ExpertBias& bias : module->expert_biases()) at::Tensor(bias.bias).fill_(7);
  }
  for (const auto& module : modules) {
    for (BucketState& bucket : module->buckets()) {
      if (bucket.copied == nullptr) continue;
      bucket.copied->Wait();
      bucket.copied = nullptr;
      bucket.master.fill_(7);
      bucket.parameters.fill_(7);
      for (auto& [name, state] : bucket.states) state.fill_(7);
    }
  }
}

std::string FreshFolder() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = (std::filesystem::temp_directory_path() / "planwright_host_copies").string() + "_" +
                             std::to_string(getpid()) + "_" + test->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

class HostCopiesOf : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(HostCopiesOf, HoldTheStateOfTheirMoment) {
  const auto& [precision, ranks, limited] = GetParam();
  Plan plan = PlanOf(precision, ranks);
  ASSERT_EQ(plan.world_size, ranks);
  plan.checkpoint.copy_bytes = limited ? kLimit : 0;
  const std::string folder = FreshFolder();
  for (int rank = 0; rank < ranks; ++rank) {
    Modules modules = RandomState(plan, rank);
    HostCopies copies(plan, rank);
    copies.Prepare(at::kCPU);
    EXPECT_EQ(copies.limited(), limited);
    if (limited) {
      EXPECT_LE(copies.bytes(), kLimit);
    }
    for (int turn = 0; turn < 2; ++turn) {  // the second through the same memory
      if (turn == 1) modules = RandomState(plan, rank);
      const auto expected = BytesOf(plan, rank, modules);
      for (const auto& module : modules) copies.Begin(*module);
      EXPECT_FALSE(copies.done() && turn == 0);
      absl::StatusOr<ManifestShard> written = absl::UnknownError("not written");
      std::thread writer([&] {
        copies.Copy();
        EXPECT_EQ(copies.done(), !limited);
        written = WriteShard(folder, rank, {}, copies.sources(),
                             {.before_range = [&](const std::byte* range) { copies.BeforeRange(range); }});
      });
      Train(modules);
      writer.join();
      ASSERT_TRUE(written.ok()) << written.status();
      EXPECT_TRUE(copies.done());
      const auto file = SafetensorsFile::Open(folder + "/" + ShardFile(rank));
      ASSERT_TRUE(file.ok()) << file.status();
      ASSERT_EQ(file->tensors().size(), expected.size());
      for (const auto& [key, bytes] : expected) {
        const auto stored = file->Find(key);
        ASSERT_TRUE(stored.ok()) << stored.status();
        const auto read = file->Read(*stored);
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_TRUE(*read == bytes) << key;
      }
    }
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(All, HostCopiesOf,
                         ::testing::Combine(::testing::Values("bf16", "fp32", "fp64"), ::testing::Values(1, 2),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) + "_ranks" +
                                  (std::get<2>(info.param) ? "_limited" : "_whole");
                         });

TEST(HostCopies, RefuseMemoryWithoutRoomForAPiece) {
  Plan plan = PlanOf("fp32", 1);
  plan.checkpoint.copy_bytes = 5000;
  HostCopies copies(plan, 0);
  EXPECT_THROW(copies.Prepare(at::kCPU), c10::Error);
}

TEST(HostCopies, RefuseAnotherOrderThanThatOfTheFile) {
  Plan plan = PlanOf("fp32", 1);
  Modules modules = RandomState(plan, 0);
  HostCopies copies(plan, 0);
  copies.Prepare(at::kCPU);
  for (const auto& module : modules) copies.Begin(*module);
  copies.Copy();
  EXPECT_THROW(copies.BeforeRange(copies.sources().back().ranges.back().data()), c10::Error);
}

}  // namespace
}  // namespace planwright::executor
