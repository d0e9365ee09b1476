#include "planner/base/files/line_file.h"

#include <algorithm>
#include <span>
#include <utility>

namespace planwright {

absl::StatusOr<LineFile> LineFile::Open(const std::string& path, int64_t chunk) {
  absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  if (!file.ok()) return file.status();
  LineFile lines;
  lines.file_ = *std::move(file);
  lines.chunk_ = chunk;
  return lines;
}

absl::Status LineFile::Read(int64_t begin, int64_t end, std::string& to) {
  to.resize(static_cast<size_t>(end - begin));
  bytes_read_ += end - begin;
  return file_.Read(begin, std::as_writable_bytes(std::span(to)));
}

absl::Status LineFile::HoldFrom(int64_t begin) {
  if (begin >= first_ && begin < last()) return absl::OkStatus();
  first_ = begin;
  const absl::Status status = Read(begin, std::min(begin + chunk_, bytes()), held_);
  most_held_ = std::max(most_held_, static_cast<int64_t>(held_.size()));
  return status;
}

absl::Status LineFile::HoldMoreAfter(int64_t begin) {
  std::string more;
  const absl::Status status = Read(last(), std::min(last() + chunk_, bytes()), more);
  held_.erase(0, static_cast<size_t>(begin - first_));
  first_ = begin;
  held_ += more;
  most_held_ = std::max(most_held_, static_cast<int64_t>(held_.size() + more.size()));
  return status;
}

absl::Status LineFile::HoldMoreBefore(int64_t end) {
  const int64_t from = std::max<int64_t>(first_ - chunk_, 0);
  std::string more;
  const absl::Status status = Read(from, first_, more);
  held_.resize(static_cast<size_t>(end - first_));
  held_.insert(0, more);
  first_ = from;
  most_held_ = std::max(most_held_, static_cast<int64_t>(held_.size() + more.size()));
  return status;
}

absl::StatusOr<std::optional<LineFile::Line>> LineFile::PassOver(int64_t begin, int64_t most) {
  for (auto from = static_cast<size_t>(begin - first_);; from = 0) {
    if (const size_t at = held_.find('\n', from); at != std::string::npos)
      return Line{begin, first_ + static_cast<int64_t>(at) + 1, "", true, true};
    if (last() == bytes()) return Line{begin, bytes(), "", false, true};
    if (last() - begin > most) return std::nullopt;
    if (absl::Status status = HoldFrom(last()); !status.ok()) return status;
  }
}

absl::StatusOr<std::optional<LineFile::Line>> LineFile::At(int64_t begin, int64_t most) {
  if (begin < 0 || begin >= bytes()) return std::nullopt;
  if (absl::Status status = HoldFrom(begin); !status.ok()) return status;
  for (size_t known = 0;;) {
    const std::string_view held = std::string_view(held_).substr(static_cast<size_t>(begin - first_));
    const size_t at = held.find('\n', known);
    if (std::min(at, held.size()) > static_cast<size_t>(kLongestLine)) return PassOver(begin, most);
    if (at != std::string_view::npos)
      return Line{begin, begin + static_cast<int64_t>(at) + 1, held.substr(0, at), true, false};
    if (last() == bytes()) return Line{begin, bytes(), held, false, false};
    known = held.size();
    if (absl::Status status = HoldMoreAfter(begin); !status.ok()) return status;
  }
}

absl::StatusOr<std::optional<LineFile::Line>> LineFile::Before(int64_t end, int64_t most) {
  if (end <= 0 || end > bytes()) return std::nullopt;
  if (end <= first_ || end > last()) {
    first_ = std::max<int64_t>(end - chunk_, 0);
    if (absl::Status status = Read(first_, end, held_); !status.ok()) return status;
    most_held_ = std::max(most_held_, static_cast<int64_t>(held_.size()));
  }
  const bool whole = held_[static_cast<size_t>(end - 1 - first_)] == '\n';
  bool too_long = false;
  int64_t stop = end;  // of what is held of the line
  for (;;) {
    const std::string_view held(held_.data(), static_cast<size_t>(stop - first_));
    const size_t at = held.substr(0, held.size() - (stop == end && whole ? 1 : 0)).rfind('\n');
    if (at != std::string_view::npos || first_ == 0) {
      const int64_t begin = at == std::string_view::npos ? 0 : first_ + static_cast<int64_t>(at) + 1;
      too_long = too_long || end - begin - (whole ? 1 : 0) > kLongestLine;
      const std::string_view line = held.substr(static_cast<size_t>(begin - first_));
      return Line{begin, end, too_long ? "" : line.substr(0, line.size() - (whole ? 1 : 0)), whole, too_long};
    }
    if (end - first_ > most) return std::nullopt;
    if (stop - first_ > kLongestLine) too_long = true;
    if (too_long) stop = first_;  // only its begin matters
    if (absl::Status status = HoldMoreBefore(stop); !status.ok()) return status;
  }
}

absl::StatusOr<std::optional<LineFile::Line>> LineFile::From(int64_t offset) {
  if (offset <= 0) return At(0);
  absl::StatusOr<std::optional<Line>> before = At(offset - 1);
  if (!before.ok() || !*before) return before;
  return At((*before)->end);
}

}  // namespace planwright
