#include "executor/rank/storage_progress.h"

#include <fstream>
#include <string>

namespace planwright::executor {

std::optional<int64_t> BytesMoved() {
  std::ifstream file("/proc/self/io");
  std::string name;
  int64_t number = 0, sum = 0;
  bool any = false;
  // rchar, wchar: by calls. read_bytes: from a disk, so also of mapped files. write_bytes: to a disk, later.
  while (file >> name >> number) {
    if (name != "rchar:" && name != "wchar:" && name != "read_bytes:" && name != "write_bytes:") continue;
    sum += number;
    any = true;
  }
  return any ? std::optional(sum) : std::nullopt;
}

}  // namespace planwright::executor
