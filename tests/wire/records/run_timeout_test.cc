#include "planner/wire/records/run_timeout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string>

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kVariable[] = "PLANWRIGHT_TIMEOUT_SECONDS";

TEST(RunTimeout, IsANumberOfSeconds) {
  unsetenv(kVariable);
  EXPECT_EQ(RunTimeout()->count(), 600'000);
  const std::pair<const char*, int64_t> good[] = {
      {"600", 600'000}, {"0.001", 1},   {"1.5", 1500}, {"2e1", 20'000},
      {"+3", 3000},     {"0003", 3000}, {".5", 500},   {"1e9", int64_t{1'000'000'000'000}}};
  for (const auto& [text, milliseconds] : good) {
    setenv(kVariable, text, 1);
    ASSERT_TRUE(RunTimeout().ok()) << text;
    EXPECT_EQ(RunTimeout()->count(), milliseconds) << text;
  }
}

TEST(RunTimeout, AnythingElseIsRefused) {
  for (const char* text : {"",    " ",    "inf", "-inf", "infinity", "nan",    "NaN", "1e400", "-1e400", "1e10",
                           "0",   "0.0",  "-0",  "-1",   "1e-400",   "0.0009", "10 ", " 10",   "10\n",   "\t10",
                           "10s", "10 s", "1,5", "0x10", "1e",       "e1",     ".",   "--1",   "ten",    "1_000"}) {
    setenv(kVariable, text, 1);
    const auto timeout = RunTimeout();
    ASSERT_FALSE(timeout.ok()) << "'" << text << "'";
    EXPECT_EQ(timeout.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(timeout.status().message()),
                AllOf(HasSubstr(std::string(kVariable) + "='" + text + "'"), HasSubstr("from 0.001 to 1e9")));
  }
  unsetenv(kVariable);
}

}  // namespace
}  // namespace planwright
