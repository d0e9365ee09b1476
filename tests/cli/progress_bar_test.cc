// The line of a long command. That it is only on a terminal shows every test that compares what a command prints.
#include "planner/cli/progress_bar.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(ProgressBar, HasPartAndTimeThatIsLeft) {
  EXPECT_EQ(ProgressText(0, "of 3 GB", 5), "[                        ] 0% of 3 GB");
  EXPECT_EQ(ProgressText(0.25, "of 3 GB", 5), "[======                  ] 25% of 3 GB, 15 s left");
  EXPECT_EQ(ProgressText(1.5, "of \x1b", 5).substr(0, 38), "[========================] 100% of \\x1");
}

}  // namespace
}  // namespace planwright
