#include "planner/state/weights/weight_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/weights/adapter_folder.h"
#include "planner/state/weights/name_groups.h"
#include "planner/state/weights/python_json.h"
#include "planner/state/weights/weight_files.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

constexpr char kIndexEnd[] = ".safetensors.index.json";

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

// What the index says of one tensor's file is a name from elsewhere: it must not lead out of the folder.
std::string FileNameProblem(const std::string& name) {
  if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    return absl::StrCat("the index names the file ", name, ", which is not in the folder");
  if (!absl::EndsWith(name, ".safetensors")) {
    const std::string other = OtherWeightFormat(name);
    return absl::StrCat("the index names the file ", name, ", which is no .safetensors file",
                        other.empty() ? "" : "; " + other);
  }
  return "";
}

// The index of a folder may name a million tensors: it is read entry by entry.
class WeightMapReader {
 public:
  WeightMapReader(const std::string& path, WeightFolder& found) : path_(path), found_(found) {}

  absl::Status Take(std::string tensor, const Json& file) {
    if (!file.is_string()) {
      problems_.push_back(absl::StrCat("the file of tensor ", Printable(tensor), " is not a text"));
      return absl::OkStatus();
    }
    const auto [known, is_new] = numbers_.try_emplace(file.get<std::string>(), static_cast<int>(numbers_.size()));
    if (is_new) {
      if (std::string problem = FileNameProblem(known->first); !problem.empty())
        problems_.push_back(Printable(problem));
    }
    const auto [entry, first] = found_.weight_map.try_emplace(std::move(tensor), known->second);
    if (!first) return absl::InvalidArgumentError(GivenTwice(entry->first));
    return absl::OkStatus();
  }

  // After the last: files are in the order of their names.
  absl::Status Finish() {
    if (numbers_.size() > kMostWeightFiles)
      problems_.push_back(
          absl::StrCat("it names ", numbers_.size(), " files, and at most ", kMostWeightFiles, " are read"));
    if (found_.weight_map.empty() && problems_.empty()) problems_.emplace_back("its weight_map is empty");
    if (!problems_.empty()) return Wrong(ListOf(path_ + " is no index of weights:", std::move(problems_)));
    std::vector<int> sorted(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      sorted[static_cast<size_t>(number)] = static_cast<int>(found_.files.size());
      found_.files.push_back(name);
    }
    for (auto& [tensor, file] : found_.weight_map) file = sorted[static_cast<size_t>(file)];
    return absl::OkStatus();
  }

 private:
  const std::string& path_;
  WeightFolder& found_;
  std::map<std::string, int> numbers_;  // of files, as they come
  std::vector<std::string> problems_;
};

absl::Status ReadIndex(const std::string& path, WeightFolder& found) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kWeightIndexJson.bytes);
  if (!text.ok()) return Wrong(std::string(text.status().message()));
  WeightMapReader reader(path, found);
  const absl::StatusOr<Json> json =
      ParseFields(*text, kWeightIndexJson, "weight_map",
                  [&](std::string tensor, const Json& file) { return reader.Take(std::move(tensor), file); });
  if (!json.ok()) return Wrong(absl::StrCat(path, ": not JSON: ", json.status().message()));
  const auto map = json->is_object() ? json->find("weight_map") : json->end();
  if (!json->is_object() || map == json->end() || !map->is_object())
    return Wrong(absl::StrCat(path, " is no index of weights: it has no object weight_map"));
  if (const auto about = json->find("metadata"); about != json->end() && about->is_object()) {
    const auto size = about->find("total_size");
    if (size != about->end() && size->is_number_integer()) found.total_size = size->get<int64_t>();
  }
  return reader.Finish();
}

// Either place may say it; what is true in one of them is tied.
void ReadTie(const Json& config, WeightFolder& found) {
  const auto read = [&](const Json& object) {
    const auto tied = object.find("tie_word_embeddings");
    if (tied != object.end() && tied->is_boolean()) found.tied = found.tied.value_or(false) || tied->get<bool>();
  };
  read(config);
  for (const char* language : {"text_config", "llm_config"}) {
    const auto part = config.find(language);
    if (part != config.end() && part->is_object()) read(*part);
  }
}

void ReadConfig(WeightFolder& found) {
  const std::string path = found.folder + "config.json";
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kModelConfigJson.bytes);
  if (!text.ok()) return;  // a folder of weights alone
  const absl::StatusOr<Json> json = ParseJson(WithTaggedFloats(*text), kModelConfigJson);
  if (!json.ok() || !json->is_object()) {
    found.warnings.push_back(absl::StrCat(path, " is no JSON object"));
    return;
  }
  const auto type = json->find("model_type");
  if (type != json->end() && type->is_string()) found.model_type = type->get<std::string>();
  ReadTie(*json, found);
}

// Shards that look like a part of the model, and that the index does not name: two uploads may be mixed.
void FindStrays(const std::vector<std::string>& names, WeightFolder& found) {
  std::vector<std::string> strays;
  for (const std::string& name : names) {
    const bool shard = absl::EndsWith(name, ".safetensors") && absl::StrContains(name, "-of-");
    if (shard && !std::binary_search(found.files.begin(), found.files.end(), name)) strays.push_back(name);
  }
  std::sort(strays.begin(), strays.end());
  if (!strays.empty()) {
    found.warnings.push_back(
        absl::StrCat("the index does not name ", FirstOf(strays, 3), ": not read (of another upload?)"));
  }
}

// One file may be of adapters, whatever it is called: what they are is said beside it.
absl::Status ReadConfigBeside(const std::string& path, WeightFolder& found) {
  const size_t slash = path.rfind('/');
  const std::string config =
      absl::StrCat(path.substr(0, slash == std::string::npos ? 0 : slash + 1), kAdapterConfigFile);
  struct stat about {};
  if (lstat(config.c_str(), &about) != 0) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadWholeFile(config, kModelConfigJson.bytes);
  if (!text.ok()) return Wrong(std::string(text.status().message()));
  found.adapter_config = *std::move(text);
  return absl::OkStatus();
}

absl::Status FindInFolder(const std::vector<std::string>& names, WeightFolder& found) {
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const bool index = has(kWeightIndexFile), one = has(kOneWeightFile);
  if (index && one) {
    return Wrong(absl::StrCat(found.folder, " has both ", kWeightIndexFile, " and ", kOneWeightFile,
                              ": name the one that is meant, as ", found.folder, kOneWeightFile));
  }
  if (index) {
    if (absl::Status status = ReadIndex(found.folder + kWeightIndexFile, found); !status.ok()) return status;
    FindStrays(names, found);
    return absl::OkStatus();
  }
  if (one) {
    found.files = {kOneWeightFile};
    return absl::OkStatus();
  }
  if (has(kAdapterModelFile)) {
    found.files = {kAdapterModelFile};
    absl::StatusOr<std::string> text = ReadWholeFile(found.folder + kAdapterConfigFile, kModelConfigJson.bytes);
    if (!text.ok()) return Wrong(std::string(text.status().message()));
    found.adapter_config = *std::move(text);
    return absl::OkStatus();
  }
  std::vector<std::string> some, others;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, ".safetensors")) some.push_back(name);
    if (!OtherWeightFormat(name).empty()) others.push_back(name);
  }
  std::sort(some.begin(), some.end());
  std::sort(others.begin(), others.end());
  const std::string lacks = absl::StrCat(found.folder, " has neither ", kWeightIndexFile, " nor ", kOneWeightFile);
  if (!some.empty()) return Wrong(absl::StrCat(lacks, "; it has ", FirstOf(some, 3), ": name the file that is meant"));
  if (!others.empty())
    return Wrong(absl::StrCat(lacks, "; it has ", FirstOf(others, 3), ": ", OtherWeightFormat(others[0])));
  return Wrong(absl::StrCat(lacks, ": ", kNoWeights));
}

}  // namespace

std::string OtherWeightFormat(const std::string& name) {
  constexpr char kSave[] =
      "in Python, save_pretrained(FOLDER, safe_serialization=True) of transformers writes safetensors";
  const auto ends = [&](std::initializer_list<const char*> list) {
    return std::any_of(list.begin(), list.end(), [&](const char* end) { return absl::EndsWith(name, end); });
  };
  if (ends({".bin", ".pt", ".pth", ".ckpt", ".bin.index.json"}))
    return absl::StrCat("pickled tensors are not read, as loading them runs code; ", kSave);
  if (ends({".gguf"})) return absl::StrCat("GGUF files are not read, as they are quantized for inference; ", kSave);
  if (ends({".h5", ".msgpack", ".npz", ".onnx"})) return absl::StrCat("this format is not read; ", kSave);
  if (ends({".distcp", "metadata.json.zarr"})) return absl::StrCat("distributed checkpoints are not read; ", kSave);
  return "";
}

std::string DanglingLink(const std::string& path) {
  struct stat link {
  }, target{};
  if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return "";
  if (stat(path.c_str(), &target) == 0 || errno != ENOENT) return "";
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

absl::StatusOr<WeightFolder> FindWeightFiles(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    const int error = errno;
    const std::string target = DanglingLink(path);
    return Wrong(absl::StrCat("cannot read ", path, ": ", std::strerror(error),
                              target.empty() ? "" : absl::StrCat("; it is a symbolic link to ", target)));
  }
  WeightFolder found;
  if (S_ISDIR(about.st_mode)) {
    found.folder = absl::EndsWith(path, "/") ? path : path + "/";
    const absl::StatusOr<std::vector<std::string>> names = NamesIn(path);
    if (!names.ok()) return Wrong(std::string(names.status().message()));
    if (absl::Status status = FindInFolder(*names, found); !status.ok()) return status;
    ReadConfig(found);
    return found;
  }
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (absl::EndsWith(name, kIndexEnd)) {
    found.folder = slash == std::string::npos ? "./" : path.substr(0, slash + 1);
    if (absl::Status status = ReadIndex(path, found); !status.ok()) return status;
    ReadConfig(found);
    return found;
  }
  if (std::string other = OtherWeightFormat(name); !other.empty()) return Wrong(absl::StrCat(path, ": ", other));
  found.files = {path};
  if (absl::Status status = ReadConfigBeside(path, found); !status.ok()) return status;
  return found;
}

}  // namespace planwright
