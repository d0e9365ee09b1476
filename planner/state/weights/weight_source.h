// One source of weights: published files, or a checkpoint of ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "planner/state/weights/weight_files.h"

namespace planwright {

class WeightSource {
 public:
  // `path`: what WeightFiles::Open takes, a checkpoint, or a run directory, which means its newest one that is usable.
  // Reads headers alone. InvalidArgument, with the path, if it is none of them or not valid; DataLoss if a checkpoint
  // is damaged; Unavailable if its files cannot be opened.
  static absl::StatusOr<std::unique_ptr<WeightSource>> Open(const std::string& path);

  const std::string& path() const { return path_; }  // of the files, or of the checkpoint that was chosen
  // Newer checkpoints of a run directory that are not used, a line each.
  const std::vector<std::string>& passed_over() const { return passed_over_; }

  const WeightFiles* files() const { return files_.get(); }  // null: it is a checkpoint
  WeightFiles* files() { return files_.get(); }
  const CheckpointReader* checkpoint() const { return checkpoint_.get(); }  // null: it is files
  ElementReader& reader() { return files_ ? static_cast<ElementReader&>(*files_) : *checkpoint_; }
  const ElementReader& reader() const { return files_ ? static_cast<const ElementReader&>(*files_) : *checkpoint_; }

 private:
  WeightSource() = default;

  std::string path_;
  std::vector<std::string> passed_over_;
  std::unique_ptr<WeightFiles> files_;
  std::unique_ptr<CheckpointReader> checkpoint_;
};

// Whether a path is a folder that is meant as a checkpoint or a run directory, also a damaged one.
bool IsOfARun(const std::string& path);

}  // namespace planwright
