// Files of published weights, open for reading: one safetensors file, or a Hugging Face folder with
// model.safetensors.index.json and its shards, or with one model.safetensors (docs/weights.md#sources). Folders and
// files may be symbolic links, as in the cache of a hub. Opening reads headers alone. Bytes are read with pread and not
// mapped: a file that shrinks while it is read is an error with its name (docs/decisions/0021).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "planner/base/files/file_io.h"
#include "planner/state/checkpoint/element_reader.h"
#include "planner/wire/records/safetensors_header.h"

namespace planwright {

inline constexpr size_t kMostWeightFiles = 1 << 12;  // shards of one folder; of all of their tensors: as of one file
inline constexpr char kWeightIndexFile[] = "model.safetensors.index.json";
inline constexpr char kOneWeightFile[] = "model.safetensors";

// A tensor of the files, of any type that safetensors has. `file`: index in WeightFiles::files().
using WeightTensor = HeaderTensor;

class WeightFiles : public ElementReader {
 public:
  struct File {
    std::string path;
    int64_t bytes = 0;
    std::map<std::string, std::string> metadata;
  };

  // `path`: a file, or a folder. InvalidArgument that lists all that is wrong: formats that are not read, a file that
  // is missing or cut short, a header that lies, an index that contradicts its shards, a tensor in two shards.
  static absl::StatusOr<std::unique_ptr<WeightFiles>> Open(const std::string& path);
  ~WeightFiles() override;

  const std::string& path() const { return path_; }
  const std::vector<File>& files() const { return files_; }                // in the order of their names
  const std::map<std::string, WeightTensor>& all() const { return all_; }  // by name
  // Null: there is no such tensor.
  const std::vector<int64_t>* ShapeOf(const std::string& name) const;
  // What is odd but no error: a shard that the index does not name, a total_size that is wrong.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // `model_type` of the folder's config.json; empty: there is none, or it says none.
  const std::string& model_type() const { return model_type_; }
  // Whether config.json says that embedding and head are one tensor (WeightFolder::tied).
  std::optional<bool> tied() const { return tied_; }
  // The text of adapter_config.json, of a folder of adapters or beside one file (adapter_folder.h); none: there is
  // none.
  const std::optional<std::string>& adapter_config() const { return adapter_config_; }

  // The bytes of a tensor from `first` on, as they are in the file. May be called from several threads. DataLoss with
  // the file if they are not there (any more).
  absl::Status ReadBytes(const WeightTensor& tensor, int64_t first, std::span<std::byte> to) const;

  std::optional<TensorType> TypeOf(const std::string& key) const override;
  // Reads the byte ranges of `runs` and no others.
  absl::Status Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                    Numbers numbers) override;
  std::string PlaceOf(const std::string& key) const override;
  int64_t bytes_read() const override { return bytes_read_; }

 private:
  // A file is opened again for the first of its bytes that is needed: a rank needs few of them.
  struct Handle {
    absl::once_flag once;
    absl::Status opened;
    PlainFile file;
  };

  WeightFiles() = default;

  std::string path_, model_type_;
  std::optional<bool> tied_;
  std::optional<std::string> adapter_config_;
  std::vector<File> files_;
  std::vector<std::unique_ptr<Handle>> handles_;
  std::map<std::string, WeightTensor> all_;
  std::vector<std::string> warnings_;
  mutable std::atomic<int64_t> bytes_read_ = 0;
};

// The type of the elements that WeightFiles::Read gives of a type of a file: fp16 is widened to fp32, which changes no
// number. None: no run has numbers of this type.
std::optional<DType> ReadType(std::string_view type);

}  // namespace planwright
