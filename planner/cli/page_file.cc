#include "planner/cli/page_file.h"

#include <iostream>
#include <string>

#include "planner/base/files/file_io.h"
#include "planner/base/paper/markup.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/own_file.h"

namespace planwright {
absl::Status CheckPageFile(const std::string& file) {
  if (file == "-") return absl::OkStatus();
  if (file.empty()) return absl::InvalidArgumentError("option `--html` needs the name of a file; found an empty one");
  const absl::Status own = CheckOnlyOwn(file, "page of `plan`: --html names the file of the page", IsPage);
  return own.ok() ? CheckNamedFile(file) : own;
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
