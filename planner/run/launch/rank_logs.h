// RUN/logs/rankNNNN.out: what the ranks of this machine print. A thread of its own writes it. So a file system that
// stands still holds up neither signals to the ranks nor what an agent tells its head.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "planner/base/files/log_file.h"
#include "planner/wire/connection/descriptor.h"

namespace planwright {

// While so many bytes wait to be written, no more should come (RankLogs::full).
inline constexpr size_t kMostUnwritten = size_t{8} << 20;

class RankLogs {
 public:
  RankLogs(const std::string& run_dir, const std::vector<int>& ranks);
  // Waits until all lines are written, or lost.
  ~RankLogs();
  // Makes the files. Unavailable, with the path, if one of them cannot be made.
  absl::Status Open();

  // Lines of a rank are written in the order in which they come here.
  void Line(int rank, std::string_view line);
  // Whether kMostUnwritten bytes wait, and more of them.
  bool full();
  // Whether nothing of the rank waits.
  bool Written(int rank);
  // Why a line of a rank could not be kept: said once, of the first one. The run goes on.
  struct Problem {
    int rank;
    std::string text;
  };
  std::vector<Problem> TakeProblems();
  // Readable when full(), Written() or TakeProblems() may answer otherwise than when they were asked last.
  int fd() const { return changed_.get(); }

 private:
  struct Waiting {
    int rank;
    std::string line;
  };

  void WriteAll();

  std::map<int, LogFile> logs_;  // of the thread, once it runs
  Descriptor changed_;           // an eventfd
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Waiting> waiting_;   // the first one may be in writing
  std::map<int, int> unwritten_;  // lines of each rank
  size_t bytes_ = 0;              // of all lines that wait
  bool asked_ = false;            // somebody was told that lines wait
  bool done_ = false;             // no more lines come
  std::vector<Problem> problems_;
  std::thread writer_;
};

}  // namespace planwright
