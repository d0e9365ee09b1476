#include "planner/data/samples/file_window.h"

#include <algorithm>
#include <span>

namespace planwright {
namespace {

constexpr int64_t kAhead = 1 << 17, kPage = 1 << 12;

}  // namespace

absl::StatusOr<std::string_view> FileWindow::Read(int64_t offset, int64_t count) {
  const int64_t end = begin_ + static_cast<int64_t>(window_.size());
  if (offset < begin_ || offset + count > end) {
    // Only a reader that goes on nearly where the window ends reads small things: then the next ones are read with this
    // one. Behind a large thing that was passed over, a page has the header and the begin of what follows.
    const bool goes_on = offset >= begin_ && offset <= end + kPage;
    const int64_t wanted = std::max(count, goes_on ? kAhead : kPage);
    // Not beyond the size that the file had when it was opened, unless the caller asks for that.
    const int64_t bytes = std::max(count, std::min(wanted, file_.bytes() - offset));
    window_.resize(static_cast<size_t>(bytes));
    begin_ = offset;
    if (absl::Status read = file_.Read(offset, std::as_writable_bytes(std::span(window_))); !read.ok()) {
      window_.clear();
      return read;
    }
  }
  return std::string_view(window_).substr(static_cast<size_t>(offset - begin_), static_cast<size_t>(count));
}

}  // namespace planwright
