// Any byte of any file of a run may be damaged: a report is made of the rest, its page is well-formed, and nothing that
// a terminal would obey is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/views/report/report_page.h"
#include "planner/views/report/report_text.h"
#include "planner/wire/records/recorder_format.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/views/report/reports.h"
#include "tests/views/show/markup_reader.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "damageXXXXXX";
    folder_ = mkdtemp(pattern.data());
    MakeRun();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    files_.push_back(folder_ + "/" + name);
  }
  void MakeRun() {
    const std::string steps =
        "{\"step\": 1, \"consumed_samples\": 8, \"loss\": 5.5, \"grad_norm\": 1, \"learning_rate\": 0.1, "
        "\"step_seconds\": 0.5, \"skipped\": false}\n{\"step\": 2, \"consumed_samples\": 16, \"loss\": null, "
        "\"step_seconds\": 0.25, \"skipped\": true}\n{\"step\": 3, \"consumed_samples\": 24, \"loss\": 5.25}\n";
    const std::string log =
        "2026-11-22 22:20:52.872342 +00:00  plan tiny\n2026-11-22 22:20:57.000000 +00:00  restart 1 of 3 in 4 s\n";
    const std::string outcome =
        "{\"exit_code\": 10, \"cause\": \"rank 0 was killed\", \"rank\": 0, \"host\": \"vm\", \"instruction\": \"step "
        "3\", \"recipe_line\": \"a.yaml:1:2\", \"message\": \"m\", \"others\": [\"rank 1 waits\"]}";
    ASSERT_TRUE(TakeLife(folder_).ok() && TakeLife(folder_).ok());
    Write("plan.json", WritePlan(testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"))));
    Write("metrics.jsonl", steps);
    Write("logs/launch.log", log);
    Write("lives/1/start.json", "{\"from_life\":0,\"from_step\":0}\n");
    Write("lives/1/logs/launch.log", log);
    Write("lives/1/outcome.json", outcome);
    Write("lives/2/start.json", "{\"from_life\":1,\"from_step\":2}\n");
    Write("lives/2/dropped.jsonl", steps);
    Write("lives/2/checkpoints.jsonl",
          "{\"step\": 2, \"bytes\": 100, \"copy_seconds\": 0.1, \"write_seconds\": 0.2, \"waited_seconds\": 0.3, "
          "\"published\": 1763850000.5}\n");
    Write("outcome.json", outcome);
    Write("lock", "process 4711 on node3");
    // As an executor leaves it. Its size is large, and almost all of it are entries that have not begun.
    const auto page = std::make_unique<RecorderPage>();
    std::memcpy(page->magic, kRecorderMagic, sizeof kRecorderMagic);
    page->begun = 5, page->done = 4;
    page->entries[5].number = 5;
    std::strcpy(page->entries[5].instruction, "linear x");
    Write("recorder/rank0000", std::string(reinterpret_cast<const char*>(page.get()), sizeof *page));
  }
  std::string Damaged(std::string bytes) {
    const auto below = [&](size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); };
    // Most of the recorder's page are zeros, so its first bytes are damaged more often.
    const auto offset = [&] { return below(below(2) == 0 ? std::min<size_t>(bytes.size(), 4096) : bytes.size()); };
    switch (below(6)) {
      case 0: bytes[offset()] ^= static_cast<char>(1 << below(8)); break;
      case 1: bytes.resize(offset()); break;
      case 2: bytes.insert(offset(), std::string(below(40), static_cast<char>(below(256)))); break;
      case 3:
        for (size_t i = 0; i < 20; ++i) bytes[offset()] = static_cast<char>(below(256));
        break;
      case 4: {  // a number becomes another one
        constexpr const char* kNumbers[] = {"-1",   "0", "1e400", "9223372036854775807", "99999999999999999999",
                                            "4e15", "[]"};
        const size_t digit = bytes.find_first_of("0123456789", offset());
        if (digit != std::string::npos) bytes.replace(digit, 1, kNumbers[below(std::size(kNumbers))]);
        break;
      }
      default: bytes.insert(offset(), "\x1b[2J<script>\"\xff\n"); break;
    }
    return bytes;
  }

  std::mt19937_64 random_{20261122};
  std::string folder_;
  std::vector<std::string> files_;
};

TEST_F(DamageTest, OfAnyFileLeavesAReport) {
  for (int round = 0; round < 600; ++round) {
    const std::string& path = files_[static_cast<size_t>(round) % files_.size()];
    const std::string whole = *ReadWholeFile(path, SIZE_MAX);
    const std::string damaged = Damaged(whole);
    std::ofstream(path, std::ios::binary) << damaged;
    SCOPED_TRACE(path + " in round " + std::to_string(round));
    const absl::StatusOr<RunReport> report = GatherRun(folder_, {.metrics_bytes = 0, .ranks = true});
    ASSERT_TRUE(report.ok()) << report.status();
    for (const std::string& text : {StatusText(*report, 120), ReportText(*report, 120)})
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_FALSE(StatusJson(*report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).empty());
    const nlohmann::ordered_json json = testing::JsonOf(*report, StepsOnFile(*report));
    EXPECT_EQ(json["steps"].size(), report->steps.size());
    const std::string page = ReportPage(*report);
    EXPECT_NO_THROW(testing::MarkupReader(page).Read());
    EXPECT_EQ(page.find("nan"), std::string::npos);
    std::ofstream(path, std::ios::binary) << whole;
  }
}

}  // namespace
}  // namespace planwright
