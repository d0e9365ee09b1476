#include "planner/cli/steady_lines.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sstream>

namespace planwright {
namespace {

using std::chrono::milliseconds;

// Waits for as long as it takes.
void WaitFor(const std::atomic<int>& asked, int times) {
  while (asked < times) std::this_thread::yield();
}

TEST(SteadyLines, GoOnForAsLongAsNothingElseIsSaid) {
  std::ostringstream out;
  std::atomic<int> asked = 0;
  {
    SteadyLines lines(/*quiet=*/false, milliseconds(1), out);
    lines.Say([&] { return "one " + std::to_string(asked++); });
    WaitFor(asked, 3);
    lines.Say([&] { return asked++, ""; });
    const int empty = asked;
    WaitFor(asked, empty + 2);
    lines.Say([&] { return asked++, "two"; });
    const int two = asked;
    WaitFor(asked, two + 1);
    lines.Say(nullptr);
  }
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("one 0\none 1\none 2\n")) << text;
  EXPECT_TRUE(text.ends_with("\ntwo\n")) << text;
  EXPECT_EQ(text.find("\n\n"), std::string::npos) << text;
}

TEST(SteadyLines, AreNoneWhereSomebodyAskedForQuiet) {
  std::ostringstream out;
  {
    SteadyLines lines(/*quiet=*/true, milliseconds(1), out);
    lines.Say([] { return "one"; });
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace planwright
