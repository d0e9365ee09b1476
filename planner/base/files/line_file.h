// A file of lines, such as JSON lines, read from any offset in either direction. What it holds in memory does not
// depend on the size of the file, and it reads only what it is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/base/files/file_io.h"

namespace planwright {

class LineFile {
 public:
  // Longer lines are passed over: their text is not kept.
  static constexpr int64_t kLongestLine = int64_t{1} << 20;

  struct Line {
    int64_t begin = 0, end = 0;  // of the line in the file; end: after its line break
    std::string_view text;       // without the line break; empty if it is too long. Until the next call
    bool whole = true;           // false: the file ends before a line break; it may be written right now
    bool too_long = false;
  };

  // `chunk`: bytes to read at once; few if single lines are read here and there. Errors of OpenPlainFile.
  static absl::StatusOr<LineFile> Open(const std::string& path, int64_t chunk = int64_t{1} << 16);

  const std::string& path() const { return file_.path(); }
  int64_t bytes() const { return file_.bytes(); }  // when it was opened; what is appended later is not seen
  int64_t bytes_read() const { return bytes_read_; }
  int64_t most_held() const { return most_held_; }  // bytes, so far

  // Each returns nullopt where there is no such line, and Unavailable if the file cannot be read. `most`: a line of
  // more bytes counts as none, and is not read further: a file of any size may have no line break.
  // The line that begins at `begin`.
  absl::StatusOr<std::optional<Line>> At(int64_t begin, int64_t most = INT64_MAX);
  // The line that ends at `end`, which is the begin of another one or the end of the file.
  absl::StatusOr<std::optional<Line>> Before(int64_t end, int64_t most = INT64_MAX);
  // The first line that begins at `offset` or after it.
  absl::StatusOr<std::optional<Line>> From(int64_t offset);

 private:
  absl::Status Read(int64_t begin, int64_t end, std::string& to);
  absl::Status HoldFrom(int64_t begin);                                       // so that [begin, begin + 1) is held
  absl::Status HoldMoreAfter(int64_t begin);                                  // and another chunk behind what is held
  absl::Status HoldMoreBefore(int64_t end);                                   // [first_ - chunk, end)
  absl::StatusOr<std::optional<Line>> PassOver(int64_t begin, int64_t most);  // a line that is too long
  int64_t last() const { return first_ + static_cast<int64_t>(held_.size()); }

  PlainFile file_;
  int64_t chunk_ = 0;
  std::string held_;
  int64_t first_ = 0;  // offset of held_ in the file
  int64_t bytes_read_ = 0, most_held_ = 0;
};

}  // namespace planwright
