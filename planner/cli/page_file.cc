#include "planner/cli/page_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>

#include "planner/base/files/file_io.h"
#include "planner/base/paper/markup.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

constexpr int64_t kHead = 1024;  // bytes, in which a page has its marks

// A pipe, a device and a folder are no files that a page could replace.
bool IsOtherFile(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const absl::StatusOr<PlainFile> there = PlainFile::Open(file);
  if (!there.ok()) return true;  // nobody can say what it is
  std::string head(static_cast<size_t>(std::min(kHead, there->bytes())), '\0');
  return !there->Read(0, std::as_writable_bytes(std::span(head))).ok() || (!head.empty() && !IsPage(head));
}

}  // namespace

absl::Status CheckPageFile(const std::string& file) {
  if (file == "-") return absl::OkStatus();
  if (file.empty()) return absl::InvalidArgumentError("option `--html` needs the name of a file; found an empty one");
  if (IsOtherFile(file))
    return absl::InvalidArgumentError(file + " is there and is no page of `plan`: --html names the file of the page");
  return CheckNamedFile(file);
}

absl::Status WritePageFile(const std::string& file, const std::string& page) {
  if (file == "-") {
    std::cout << page;
    return absl::OkStatus();
  }
  ABSL_RETURN_IF_ERROR(CheckPageFile(file));
  ABSL_RETURN_IF_ERROR(WriteNamedFile(file, page));
  std::cerr << "wrote " << Printable(file) << "\n";
  return absl::OkStatus();
}

}  // namespace planwright
