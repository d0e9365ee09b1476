// Writes the page of recorder_format.h: what this rank is doing, readable after its death.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "planner/plan/recorder_format.h"

namespace planwright::executor {

class Recorder {
 public:
  // Makes RUN/recorder/rankNNNN. ResourceExhausted or Internal if it cannot be written.
  static absl::StatusOr<std::unique_ptr<Recorder>> Open(const std::string& run_dir, int rank, const std::string& host);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // An instruction begins. `place` is its index in the list that `path` names.
  void Begin(RecorderState state, int64_t step, int microbatch, int origin, const std::string& path, size_t place,
             const std::string& instruction);
  void Done();
  // Async-signal-safe.
  void Fail(int exit_code, const char* message);

  const RecorderPage& page() const { return *page_; }

 private:
  explicit Recorder(RecorderPage* page) : page_(page) {}
  void Stamp();

  RecorderPage* page_;
};

}  // namespace planwright::executor
