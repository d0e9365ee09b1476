#include "planner/state/weights/weight_source.h"

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/weights/weight_folder.h"

namespace planwright {
namespace {

bool Exists(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

}  // namespace

bool IsOfARun(const std::string& path) {
  return IsFolder(path) && (Exists(path + "/" + kManifestFile) || IsRunDirectory(path));
}

absl::StatusOr<std::unique_ptr<WeightSource>> WeightSource::Open(const std::string& path) {
  std::unique_ptr<WeightSource> source(new WeightSource());
  source->path_ = path;
  if (!IsOfARun(path)) {
    absl::StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(path);
    if (!files.ok() && absl::EndsWith(files.status().message(), kNoWeights)) {
      return absl::InvalidArgumentError(absl::StrCat(files.status().message(),
                                                     "; and it is no checkpoint, as it has no ", kManifestFile,
                                                     ", and no run directory"));
    }
    if (!files.ok()) return files.status();
    source->files_ = *std::move(files);
    return source;
  }
  const absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(path);
  if (!named.ok()) return named.status();
  for (const UnusableCheckpoint& one : named->passed)
    source->passed_over_.push_back(absl::StrCat("checkpoint ", one.folder, " is not used: ", one.why));
  source->path_ = named->checkpoint.folder;
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(source->path_);
  if (!reader.ok()) return reader.status();
  source->checkpoint_ = *std::move(reader);
  return source;
}

}  // namespace planwright
