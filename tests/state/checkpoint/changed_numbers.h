// Changes single numbers and texts of a checkpoint and makes all digests for the change, and asks the two that must
// refuse it.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/state/checkpoint/check_files.h"
#include "planner/state/checkpoint/shard_reader.h"

namespace planwright::testing {

using nlohmann::ordered_json;
using Pointer = ordered_json::json_pointer;

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// What a resume reads of a checkpoint: all of it. Empty: it takes it.
inline std::string RefusedByResume(const std::string& folder) {
  const auto reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return std::string(reader.status().message());
  for (const auto& [key, type] : (*reader)->tensors()) {
    const int64_t elements = ElementsOf(type.shape);
    std::vector<std::byte> room(elements * DTypeBytes(type.dtype));
    if (const absl::Status read = (*reader)->Read(key, {{0, 0, elements}}, room); !read.ok())
      return std::string(read.message());
  }
  return "";
}

inline std::string RefusedByVerify(const std::string& folder) {
  std::string text;
  for (const CheckpointProblem& problem : CheckCheckpointFiles(folder, 1, [](const Plan&) { return true; }))
    text += problem.file + ": " + problem.what + "\n";
  return text;
}

// All numbers and texts in a tree.
inline void FindLeaves(const ordered_json& json, const Pointer& at, std::vector<Pointer>& leaves) {
  if (!json.is_structured()) leaves.push_back(at);
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) FindLeaves(value, at / key, leaves);
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) FindLeaves(json[i], at / i, leaves);
  }
}

// Another value of the same kind.
inline ordered_json Other(const ordered_json& value) {
  if (value.is_number()) return value.get<int64_t>() + 1;
  std::string text = value.get<std::string>();
  if (DTypeFromName(text)) return text == "fp32" ? "int64" : "fp32";
  if (text.empty()) return "a";
  text.back() = text.back() == '0' ? '1' : '0';
  return text;
}

// With its digest in the last line.
inline std::string ManifestText(ordered_json json) {
  json.erase("sha256");
  std::string before = json.dump(2);
  before.resize(before.size() - 2);  // "\n}"
  before += ",\n";
  return before + "  \"sha256\": \"" + Sha256Hex(before) + "\"\n}\n";
}

struct Change {
  std::string what;
  std::function<void()> make;
};

// A change of each leaf of the manifest and of the indices; digests and sizes of indices are mended.
inline std::vector<Change> ChangesOf(const std::string& folder) {
  std::vector<Change> changes;
  const std::string path = folder + "/" + kManifestFile;
  const ordered_json manifest = ordered_json::parse(ReadBytes(path));
  std::vector<Pointer> leaves;
  FindLeaves(manifest, Pointer(), leaves);
  for (const Pointer& leaf : leaves) {
    if (leaf == Pointer("/sha256")) continue;
    changes.push_back({"manifest.json " + leaf.to_string(), [=] {
                         ordered_json changed = manifest;
                         changed[leaf] = Other(manifest[leaf]);
                         WriteBytes(path, ManifestText(changed));
                       }});
  }
  for (size_t i = 0; i < manifest["shards"].size(); ++i) {
    const std::string name = IndexFile(manifest["shards"][i]["rank"]);
    const ordered_json index = ordered_json::parse(ReadBytes(folder + "/" + name));
    leaves.clear();
    FindLeaves(index, Pointer(), leaves);
    for (const Pointer& leaf : leaves) {
      changes.push_back({name + " " + leaf.to_string(), [=] {
                           ordered_json changed = index, mended = manifest;
                           changed[leaf] = Other(index[leaf]);
                           const std::string text = changed.dump(2) + "\n";
                           WriteBytes(folder + "/" + name, text);
                           mended["shards"][i]["index_bytes"] = text.size();
                           mended["shards"][i]["index_sha256"] = Sha256Hex(text);
                           WriteBytes(path, ManifestText(mended));
                         }});
    }
  }
  return changes;
}

}  // namespace planwright::testing
