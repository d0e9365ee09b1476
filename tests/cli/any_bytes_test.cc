// Whatever bytes `plan` is given, it ends by itself: with status 0, 1 or 2, and within 256 MiB. That it takes less than a second is for
// ./dev bench to say, which times the same inputs.
#include "tests/cli/any_bytes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>

#include "tests/cli/limited_run.h"

namespace planwright::testing {
namespace {

constexpr rlim_t kMemory = rlim_t{256} << 20;

class AnyBytes : public ::testing::TestWithParam<InputKind> {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "bytesXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_P(AnyBytes, ComeToAnEnd) {
  int inputs = 0;
  GetParam().make(folder_, [&](const AnyInput& input) {
    ++inputs;
    std::string said = input.what;
    for (const std::string& argument : input.arguments) said += " " + argument;
    SCOPED_TRACE(said.substr(0, 300));
    const LimitedEnd end = RunLimited(PLAN_PROGRAM, input.arguments, kMemory);
    ASSERT_TRUE(WIFEXITED(end.status)) << "killed by signal " << WTERMSIG(end.status);
    EXPECT_GE(WEXITSTATUS(end.status), input.refused ? 1 : 0);
    EXPECT_LE(WEXITSTATUS(end.status), 2);
  });
  EXPECT_GT(inputs, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyBytes, ::testing::ValuesIn(InputKinds()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright::testing
