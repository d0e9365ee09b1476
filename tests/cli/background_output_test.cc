// Output whose reader is slow, takes nothing, or has gone: whoever prints goes on.
#include "planner/cli/background_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <sstream>
#include <string>
#include <thread>

namespace planwright {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class BackgroundOutputs : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0); }

  // To read, to write. They stay open: a thread may wait in a write until the process ends.
  int ends_[2] = {-1, -1};
};

TEST_F(BackgroundOutputs, TwoStreamsToOnePlaceKeepTheirOrder) {
  std::string read_back, expected;
  std::thread reader;
  {
    std::ostream out(nullptr), errors(nullptr);
    std::stringstream nothing;
    out.rdbuf(nothing.rdbuf()), errors.rdbuf(nothing.rdbuf());
    BackgroundStream first(out, ends_[1], true, {.patience = hours(1)});
    BackgroundStream second(errors, ends_[1], false, {.patience = hours(1)});
    first.KeepOrderWith(second), second.KeepOrderWith(first);
    reader = std::thread([&] {
      char bytes[100];
      for (ssize_t count; (count = read(ends_[0], bytes, sizeof bytes)) > 0;) read_back.append(bytes, count);
    });
    for (int i = 0; i < 3000; ++i) {
      (i % 3 == 0 ? errors : out) << "line " << i << " of a reader that is "
                                  << "slow\n";
      expected += "line " + std::to_string(i) + " of a reader that is slow\n";
    }
    out << "and no end" << std::flush;
    EXPECT_TRUE(out.good());
    EXPECT_EQ(nothing.str(), "");
  }
  close(ends_[1]);
  reader.join();
  EXPECT_EQ(read_back, expected + "and no end");
}

TEST_F(BackgroundOutputs, AReaderThatTakesNothingHoldsNobodyUp) {
  std::stringstream out;
  const std::string line(1000, 'x');
  {
    BackgroundStream stream(out, ends_[1], false, {.patience = milliseconds(1), .waiting_bytes = 10'000});
    for (int i = 0; i < 500; ++i) out << line << "\n" << std::flush;
    EXPECT_TRUE(out.good()) << "it may read again";
    std::string text;
    // It reads again, and more is printed.
    while (text.find("left out here") == std::string::npos) {
      char bytes[65536];
      text.append(bytes, static_cast<size_t>(read(ends_[0], bytes, sizeof bytes)));
      out << "again\n" << std::flush;
    }
    EXPECT_THAT(text, HasSubstr(" lines were left out here: nobody read them]\n"));
    EXPECT_LT(text.size(), 500 * line.size());
  }
  EXPECT_FALSE(out.good()) << "not all of it was read";
}

TEST_F(BackgroundOutputs, ASlowReaderIsNotWaitedForWithEachLine) {
  std::atomic<bool> ends = false;
  std::atomic<size_t> taken = 0;
  std::thread reader([&] {
    char bytes[100];
    while (!ends) {
      taken += static_cast<size_t>(read(ends_[0], bytes, sizeof bytes));
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  std::stringstream out;
  BackgroundStream stream(out, ends_[1], false, {.patience = milliseconds(1)});
  const std::string line(1000, 'x');
  for (int i = 0; i < 3000; ++i) out << line << "\n" << std::flush;
  EXPECT_LT(taken, 1500 * line.size()) << "that takes 15 seconds at least";
  ends = true;
  reader.join();
}

TEST_F(BackgroundOutputs, AResultThatIsCutIsAnError) {
  std::stringstream out;
  BackgroundStream stream(out, ends_[1], true, {.patience = milliseconds(1)});
  out << std::string(200'000, 'x') << "\n";
  EXPECT_TRUE(out.good()) << "so far";
  EXPECT_FALSE(out.flush().good());
}

TEST_F(BackgroundOutputs, AClosedPipeIsASignalToTheProcess) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  close(ends_[0]);
  std::stringstream out;
  {
    BackgroundStream stream(out, ends_[1], true);
    EXPECT_FALSE((out << "nobody\n" << std::flush).good());
  }
  EXPECT_FALSE(out.good());
  EXPECT_EQ(sigwaitinfo(&pipe, nullptr), SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace planwright
