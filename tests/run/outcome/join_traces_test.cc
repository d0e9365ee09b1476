#include "planner/run/outcome/join_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "planner/base/files/file_io.h"
#include "planner/wire/records/trace.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "traceXXXXXX";
    folder_ = mkdtemp(pattern.data());
    fs::create_directories(folder_ + "/trace");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A rank whose only instruction begins at `begin` nanoseconds of its own clock.
  void Write(int rank, const std::string& host, int64_t wall_of_zero, int64_t begin) {
    TraceInstruction instruction{.step = 1, .kind = "linear", .op_class = "compute"};
    instruction.begin = instruction.launch_begin = begin;
    instruction.end = instruction.launch_end = begin + 500;
    const Trace trace{.rank = rank,
                      .role = "m.s0",
                      .host = host,
                      .wall_of_zero = wall_of_zero,
                      .steps = {1, 1},
                      .streams = {""},
                      .instructions = {instruction}};
    ASSERT_TRUE(WriteFileAtomically(TracePath(folder_, rank), TraceJson(trace)).ok());
    plan_.world_size = std::max(plan_.world_size, rank + 1);
  }

  nlohmann::json Joined() const {
    const gzFile file = gzopen(RunTracePath(folder_).c_str(), "rb");
    std::string text(1 << 20, '\0');
    const int bytes = gzread(file, text.data(), static_cast<unsigned>(text.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    text.resize(static_cast<size_t>(std::max(bytes, 0)));
    return nlohmann::json::parse(text);
  }

  std::string folder_;
  Plan plan_;
};

// Clocks of two machines began at different times. That of the first rank counts; ranks on its machine have its clock,
// whatever the wall clock says.
TEST_F(RunTraceTest, IsOnOneClock) {
  Write(0, "one", 1'000'000, 70'000);
  Write(1, "one", 1'000'033, 71'000);
  Write(2, "two", 1'050'000, 22'000);
  ASSERT_TRUE(JoinTraces(plan_, {}, folder_).ok());
  std::map<int, int64_t> begins;
  const nlohmann::json joined = Joined();
  for (const nlohmann::json& event : joined.at("traceEvents")) {
    if (event.at("ph") == "X") begins[event.at("pid")] = std::llround(event.at("ts").get<double>() * 1e3);
  }
  EXPECT_EQ(begins, (std::map<int, int64_t>{{0, 70'000}, {1, 71'000}, {2, 72'000}}));
  EXPECT_FALSE(fs::exists(RunTracePath(folder_) + ".writing"));
}

TEST_F(RunTraceTest, NamesThePartThatIsMissingOrDamaged) {
  Write(0, "one", 0, 1);
  plan_.world_size = 2;
  EXPECT_THAT(std::string(JoinTraces(plan_, {}, folder_).message()), HasSubstr("trace/rank0001.json"));
  std::ofstream(TracePath(folder_, 1)) << "{";
  EXPECT_THAT(std::string(JoinTraces(plan_, {}, folder_).message()), HasSubstr("trace/rank0001.json: no trace: "));
  EXPECT_FALSE(fs::exists(RunTracePath(folder_)));
}

// Parts may be large and many, and whoever asks the launch to end need not wait for them.
TEST_F(RunTraceTest, IsEndedBetweenTwoParts) {
  for (const int rank : {0, 1, 2}) Write(rank, "one", 0, rank);
  for (int parts = 0; parts <= 6; ++parts) {
    int left = parts;
    const absl::Status ended = JoinTraces(plan_, {}, folder_, [&left] { return left-- == 0; });
    EXPECT_EQ(absl::IsCancelled(ended), parts < 6) << parts;
    EXPECT_EQ(fs::exists(RunTracePath(folder_)), parts == 6) << parts;
    EXPECT_FALSE(fs::exists(RunTracePath(folder_) + ".writing")) << parts;
  }
}

TEST_F(RunTraceTest, SaysWhenItCannotBeWritten) {
  Write(0, "one", 0, 1);
  fs::create_symlink("/dev/full", RunTracePath(folder_) + ".writing");
  const absl::Status full = JoinTraces(plan_, {}, folder_);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("cannot write " + RunTracePath(folder_)));
  EXPECT_FALSE(fs::exists(RunTracePath(folder_)));
}

}  // namespace
}  // namespace planwright
