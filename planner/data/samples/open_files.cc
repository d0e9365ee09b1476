#include "planner/data/samples/open_files.h"

#include <span>

namespace planwright {

absl::StatusOr<std::shared_ptr<const PlainFile>> OpenFiles::Get(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_path_.find(path);
    if (found != by_path_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      return found->second->second;
    }
  }
  // Opening may take long on a file system of a network: others go on meanwhile. Two threads may open one file.
  absl::StatusOr<PlainFile> opened = PlainFile::Open(path);
  if (!opened.ok()) return opened.status();
  auto file = std::make_shared<const PlainFile>(*std::move(opened));
  const std::lock_guard lock(mutex_);
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) return found->second->second;
  used_.emplace_front(path, file);
  by_path_[path] = used_.begin();
  if (used_.size() > most_) {
    by_path_.erase(used_.back().first);
    used_.pop_back();
  }
  return std::shared_ptr<const PlainFile>(file);
}

absl::StatusOr<std::string> ReadBytesAt(const PlainFile& file, int64_t offset, int64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  if (absl::Status read = file.Read(offset, std::as_writable_bytes(std::span(bytes))); !read.ok()) return read;
  return bytes;
}

}  // namespace planwright
