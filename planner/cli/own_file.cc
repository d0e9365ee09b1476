#include "planner/cli/own_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>

#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

constexpr int64_t kHead = 1024;  // bytes, in which each of our files says what it is

}  // namespace

absl::Status CheckOnlyOwn(const std::string& file, const std::string& what, bool (*is_own)(std::string_view head)) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return absl::OkStatus();
  const absl::StatusOr<PlainFile> there = PlainFile::Open(file);
  if (there.ok() && there->bytes() == 0) return absl::OkStatus();
  // A file that cannot be read may be anything.
  std::string head(there.ok() ? static_cast<size_t>(std::min(kHead, there->bytes())) : 0, '\0');
  const bool read = there.ok() && there->Read(0, std::as_writable_bytes(std::span(head))).ok();
  if (read && is_own(head)) return absl::OkStatus();
  return absl::InvalidArgumentError(file + " is there and is no " + what);
}

}  // namespace planwright
