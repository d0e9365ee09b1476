// A folder with shards and the plan of a source of them, for tests of indexes.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/data/samples/index_settings.h"
#include "planner/plan/plan.h"
#include "tests/data/samples/shard_files.h"

namespace planwright {

using Members = std::vector<std::pair<std::string, std::string>>;  // names and contents

inline std::string TarOf(const Members& members) {
  std::string tar;
  for (const auto& [name, contents] : members) tar += TarMemberOf(name, contents);
  return tar + kTarEnd;
}

inline std::string TokOf(const std::vector<uint32_t>& ids) {
  std::string bytes(4 * ids.size(), '\0');
  std::memcpy(bytes.data(), ids.data(), bytes.size());
  return bytes;
}

inline std::string PngOfSize(int width, int height) {
  return PngOf(width, height, std::vector<uint8_t>(static_cast<size_t>(4 * width * height), 200));
}

// What a recipe's data is where text is bytes, with one source, of all tar files in the folder.
inline DataPlan OneSource(const std::string& folder, const std::string& name) {
  DataPlan data;
  data.kind = DataKind::kSources;
  data.base = folder;
  data.index = "data_index";
  data.image_token = 256;
  data.pad_token = 257;
  data.end_token = 258;
  data.vocabulary = 259;
  SourcePlan source;
  source.name = name;
  source.kind = SourceKind::kWebdataset;
  source.shards = {"*.tar"};
  data.sources = {source};
  return data;
}

// A folder of its own, empty, and a plan whose paths are relative to it. The name of the only source is "captions".
class DataFolder {
 public:
  explicit DataFolder(const std::string& name) : path_(testing::TempDir() + name) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    data = OneSource(path_, "captions");
  }

  // Ids 5, 6 and 7 are image, pad and end.
  void UseIds() {
    data.tokenizer = "ids";
    data.image_token = 5;
    data.pad_token = 6;
    data.end_token = 7;
    data.vocabulary = 100;
  }

  std::string path(const std::string& file = "") const {
    return file.empty() ? path_ : (std::filesystem::path(path_) / file).string();
  }
  // Absolute, as the other functions take it too. Of the plan as it is now.
  std::string index() const { return IndexPath(data, data.sources[0]); }
  void Write(const std::string& file, const std::string& contents) const {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::ofstream(path(file), std::ios::binary) << contents;
  }
  std::string Read(const std::string& file) const {
    std::ifstream stream(path(file), std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  bool Has(const std::string& file) const { return std::filesystem::exists(path(file)); }

  DataPlan data;

 private:
  std::string path_;
};

}  // namespace planwright
