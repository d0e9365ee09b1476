// A status that is not ok leaves the function at once, with its code and message, and a value arrives without a copy.
#include "planner/base/text/status_macros.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace planwright {
namespace {

absl::Status Checked(int number) {
  if (number > 0) return absl::OkStatus();
  return absl::OutOfRangeError("not positive: " + std::to_string(number));
}

absl::StatusOr<std::unique_ptr<int>> Boxed(int number) {
  if (number < 100) return std::make_unique<int>(number);
  return absl::InvalidArgumentError("too large: " + std::to_string(number));
}

absl::Status CheckAll(const std::vector<int>& numbers, int& checked) {
  for (const int number : numbers) {
    if (number != 7)
      ABSL_RETURN_IF_ERROR(Checked(number));
    else
      ++checked;  // belongs to the `if` above, not to the macro
    ++checked;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Sum(int first, int second) {
  ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<int> left, Boxed(first));
  std::unique_ptr<int> right;
  ABSL_ASSIGN_OR_RETURN(right, Boxed(second));
  ABSL_RETURN_IF_ERROR(Checked(*left + *right));
  return *left + *right;
}

TEST(StatusMacros, ReturnsTheFirstErrorAndGoesNoFurther) {
  int checked = 0;
  EXPECT_TRUE(CheckAll({1, 7, 2}, checked).ok());
  EXPECT_EQ(checked, 4);
  checked = 0;
  const absl::Status failed = CheckAll({1, -2, -3}, checked);
  EXPECT_EQ(failed, absl::OutOfRangeError("not positive: -2"));
  EXPECT_EQ(checked, 1);
}

TEST(StatusMacros, AssignsToNewAndOldVariablesOrReturns) {
  EXPECT_EQ(*Sum(3, 4), 7);
  EXPECT_EQ(Sum(3, 100).status(), absl::InvalidArgumentError("too large: 100"));
  EXPECT_EQ(Sum(200, 100).status(), absl::InvalidArgumentError("too large: 200"));
  EXPECT_EQ(Sum(3, -4).status(), absl::OutOfRangeError("not positive: -1"));
}

}  // namespace
}  // namespace planwright
