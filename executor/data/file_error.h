// A file of samples or of expert choices that fails in the middle of a run.
#pragma once

#include <absl/status/status.h>

#include <stdexcept>
#include <string>

namespace planwright::executor {

class FileError : public std::runtime_error {
 public:
  explicit FileError(const absl::Status& status)
      : std::runtime_error(std::string(status.message())), of_storage_(absl::IsResourceExhausted(status)) {}
  // The storage that is to be written is full or broken. Else a file that is read is not what it should be.
  bool of_storage() const { return of_storage_; }

 private:
  bool of_storage_;
};

}  // namespace planwright::executor
