// Files of tests/golden that tests of pictures read.
#pragma once

#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/wire/records/safetensors.h"
#include "tests/support/folders.h"

namespace planwright {

// Names are paths in the source.
inline std::string ReadGolden(const std::string& name) {
  absl::StatusOr<std::string> file = ReadWholeFile(InSource(name), 1 << 20);
  if (!file.ok()) throw std::runtime_error(file.status().ToString());
  return *std::move(file);
}

// Made by tests/golden/pictures/make.py.
inline const std::string kPictures = "tests/golden/pictures/";
inline std::string GoldenPicture(const std::string& name) { return ReadGolden(kPictures + name); }

class Golden {
 public:
  explicit Golden(const std::string& name) : file_(SafetensorsFile::Open(InSource(name))) {
    if (!file_.ok()) throw std::runtime_error(file_.status().ToString());
  }

  template <typename Number>
  std::vector<Number> Read(const std::string& name) const {
    const auto bytes = file_->Read(file_->Find(name).value()).value();
    std::vector<Number> values(bytes.size() / sizeof(Number));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const std::map<std::string, StoredTensor>& tensors() const { return file_->tensors(); }

 private:
  absl::StatusOr<SafetensorsFile> file_;
};

struct GoldenPixels {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> values;  // [height, width, 3]
};

// Of all files of kPictures that are read, or of its folder `turned`, by name.
inline std::map<std::string, GoldenPixels> ReadGoldenPixels(const std::string& file = "pixels.safetensors") {
  const Golden golden(kPictures + file);
  std::map<std::string, GoldenPixels> pictures;
  for (const auto& [name, stored] : golden.tensors()) {
    if (name.ends_with(".size") || name.ends_with(".orientation")) continue;
    const auto size = golden.Read<int64_t>(name + ".size");
    GoldenPixels& picture = pictures[name];
    picture = {size[0], size[1], golden.Read<uint8_t>(name)};
    picture.values.resize(picture.height * picture.width * 3);
  }
  return pictures;
}

}  // namespace planwright
