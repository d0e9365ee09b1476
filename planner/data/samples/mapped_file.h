// A plain file, mapped for reading: processes of one machine share its memory. Only for files that are replaced as a
// whole: if one is cut off while it is mapped, the process ends by SIGBUS.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace planwright {

class MappedFile {
 public:
  // Errors of OpenPlainFile.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return {begin_, bytes_}; }  // begin at a page

 private:
  const char* begin_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace planwright
