#include "planner/exchange/write_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/state/checkpoint/durable_file.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/weights/weight_files.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string FolderOfPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A folder that is removed with all that is in it, unless it has got its name.
class NewFolder {
 public:
  explicit NewFolder(const std::string& target) : target_(target), path_(NameBeside(target)) {}
  ~NewFolder() {
    std::error_code error;
    if (made_) std::filesystem::remove_all(path_, error);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::string& path() const { return path_; }

  absl::Status Make() {
    if (mkdir(path_.c_str(), 0777) != 0) return CannotWrite(path_, errno);
    made_ = true;
    return absl::OkStatus();
  }
  absl::Status Publish() {
    if (absl::Status status = SyncFolder(path_); !status.ok()) return status;
    // An empty folder is replaced; one that somebody has filled meanwhile is not.
    if (rename(path_.c_str(), target_.c_str()) != 0) return CannotWrite(target_, errno);
    made_ = false;
    return SyncFolder(FolderOfPath(target_));
  }

 private:
  std::string target_, path_;
  bool made_ = false;
};

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  DurableFile file;
  if (absl::Status status = file.Open(path, /*fresh=*/true); !status.ok()) return status;
  if (absl::Status status = file.Write(text.data(), text.size()); !status.ok()) return status;
  return file.Finish();
}

absl::Status CopyFile(const std::string& from, const std::string& path) {
  const absl::StatusOr<PlainFile> source = PlainFile::Open(from);
  if (!source.ok()) return source.status();
  DurableFile file;
  if (absl::Status status = file.Open(path, /*fresh=*/true); !status.ok()) return status;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(source->bytes(), kExportPiece)));
  for (int64_t done = 0; done < source->bytes();) {
    const auto count = static_cast<size_t>(std::min(source->bytes() - done, kExportPiece));
    if (absl::Status status = source->Read(done, std::span(piece).first(count)); !status.ok()) return status;
    if (absl::Status status = file.Write(piece.data(), count); !status.ok()) return status;
    done += static_cast<int64_t>(count);
  }
  return file.Finish();
}

absl::Status WriteSmallFile(const std::string& folder, const OutFile& file) {
  const std::string path = folder + "/" + file.name, above = FolderOfPath(path);
  if (above != folder) {
    if (absl::Status status = MakeDirectories(above); !status.ok()) return status;
  }
  if (absl::Status status = file.from.empty() ? WriteTextFile(path, file.text) : CopyFile(file.from, path);
      !status.ok())
    return status;
  return above == folder ? absl::OkStatus() : SyncFolder(above);
}

absl::Status WriteTensors(const std::string& path, std::span<const OutTensor> tensors, std::vector<std::byte>& piece,
                          const std::function<void(int64_t)>& progress) {
  std::vector<TensorEntry> entries;
  for (const OutTensor& tensor : tensors) entries.emplace_back(tensor.name, tensor.type, tensor.shape);
  // transformers wants to be told of which framework a file is.
  const absl::StatusOr<SafetensorsLayout> layout = LayOutSafetensors(entries, {{"format", "pt"}});
  if (!layout.ok())
    return absl::Status(layout.status().code(), absl::StrCat("writing ", path, ": ", layout.status().message()));
  DurableFile file;
  if (absl::Status status = file.Open(path, /*fresh=*/true); !status.ok()) return status;
  if (absl::Status status = file.Write(layout->header.data(), layout->header.size()); !status.ok()) return status;
  for (const size_t at : layout->order) {
    const OutTensor& tensor = tensors[at];
    for (int64_t done = 0; done < tensor.bytes;) {
      const auto count = static_cast<size_t>(std::min(tensor.bytes - done, kExportPiece));
      if (absl::Status status = tensor.read(done, std::span(piece).first(count)); !status.ok()) return status;
      if (absl::Status status = file.Write(piece.data(), count); !status.ok()) return status;
      done += static_cast<int64_t>(count);
      if (progress) progress(static_cast<int64_t>(count));
    }
  }
  return file.Finish();
}

}  // namespace

absl::Status CheckTarget(const std::string& named) {
  const std::string folder = WithoutSlash(named);
  struct stat about {};
  if (lstat(folder.c_str(), &about) != 0) {
    if (errno != ENOENT)
      return absl::InvalidArgumentError(absl::StrCat("cannot write ", folder, ": ", std::strerror(errno)));
    return CheckFolder(FolderOfPath(folder));
  }
  if (!S_ISDIR(about.st_mode)) return absl::InvalidArgumentError(folder + " exists and is no folder");
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return names.status();
  if (!names->empty())
    return absl::InvalidArgumentError(folder + " exists and is not empty: name a folder that does not exist");
  return absl::OkStatus();
}

std::vector<size_t> ShardSizes(const std::vector<OutTensor>& tensors, int64_t shard_bytes) {
  std::vector<size_t> sizes;
  int64_t bytes = 0;
  for (const OutTensor& tensor : tensors) {
    if (sizes.empty() || bytes + tensor.bytes > shard_bytes) {
      sizes.push_back(0);
      bytes = 0;
    }
    ++sizes.back();
    bytes += tensor.bytes;
  }
  return sizes;
}

absl::StatusOr<WrittenFolder> WriteFolder(const std::string& named, const std::vector<OutTensor>& tensors,
                                          const std::vector<OutFile>& files, const std::string& one_file,
                                          int64_t shard_bytes, const std::function<void(int64_t)>& progress) {
  const std::string target = WithoutSlash(named);
  if (absl::Status status = CheckTarget(target); !status.ok()) return status;
  NewFolder folder(target);
  if (absl::Status status = folder.Make(); !status.ok()) return status;
  WrittenFolder written;
  Json weight_map = Json::object();
  std::map<std::string, std::string> shard_of;
  int64_t largest = 0;
  for (const OutTensor& tensor : tensors) {
    largest = std::max(largest, tensor.bytes);
    written.bytes += tensor.bytes;
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    if (tensor.parameter) written.parameters += elements;
  }
  written.tensors = static_cast<int64_t>(tensors.size());
  std::vector<std::byte> piece(static_cast<size_t>(std::min(largest, kExportPiece)));
  const std::vector<size_t> sizes =
      one_file.empty() ? ShardSizes(tensors, shard_bytes) : std::vector<size_t>{tensors.size()};
  size_t first = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string name =
        one_file.empty() ? absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, sizes.size()) : one_file;
    const std::span<const OutTensor> part = std::span(tensors).subspan(first, sizes[i]);
    if (absl::Status status = WriteTensors(folder.path() + "/" + name, part, piece, progress); !status.ok())
      return status;
    for (const OutTensor& tensor : part) shard_of[tensor.name] = name;
    written.shards.push_back(name);
    first += sizes[i];
  }
  for (const auto& [name, shard] : shard_of) weight_map[name] = shard;
  const Json index = {{"metadata", {{"total_parameters", written.parameters}, {"total_size", written.bytes}}},
                      {"weight_map", std::move(weight_map)}};
  if (one_file.empty()) {
    absl::Status status = WriteTextFile(folder.path() + "/" + kWeightIndexFile, JsonText(index, 2) + "\n");
    if (!status.ok()) return status;
  }
  for (const OutFile& file : files) {
    if (absl::Status status = WriteSmallFile(folder.path(), file); !status.ok()) return status;
  }
  if (absl::Status status = folder.Publish(); !status.ok()) return status;
  return written;
}

}  // namespace planwright
