// The expert choices of a run, kept so that another run can make the same ones
// (docs/model/mixture_of_experts.md#replay). With free routing, a rounding in one layer can move a token to another
// expert, and everything behind it differs. With the choices of one run replayed, two layouts differ by their roundings
// alone.
//
// A folder has one file for each layer, "language.layers.3.i16": the experts of every token of the run as little-endian
// int16, in the order sample of the run, position, best first. So the files depend neither on the layout nor on the
// balance.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/data/sample_slots.h"
#include "executor/ops/handler.h"

namespace planwright::executor {

class RoutingRecord {
 public:
  enum class Mode { kWrite, kRead };

  // A folder that exists. Nothing is opened yet.
  RoutingRecord(std::string folder, Mode mode, std::shared_ptr<SampleSlots> slots)
      : folder_(std::move(folder)), mode_(mode), slots_(std::move(slots)) {}
  ~RoutingRecord();

  Mode mode() const { return mode_; }

  // Take the tokens of a call of `route`, ids i64 [T,k] (T = positions of this rank * samples of its lane); Read
  // returns them in host memory. FileError if a file cannot be written, does not have these tokens, or names an expert
  // that the module does not have: the run that wrote it had other layers, samples or experts.
  // The host does not wait for a device here: its choices are copied beside its work, and are written in one of the
  // next calls, or by Finish.
  void Write(const CallContext& call, const at::Tensor& ids);
  at::Tensor Read(const CallContext& call, int64_t samples, int64_t top_k);

  // Waits for copies that are under way and writes them to the disk. FileError as Write. To be called after the last
  // Write, and before a checkpoint is published: the life that goes on from it does not write them again.
  void Finish();

 private:
  // Consecutive positions of a sample: together in the file, and in a tensor [samples, positions of this rank, k].
  struct Run {
    int64_t offset = 0;  // in the file, in ids
    int64_t first = 0;   // in the tensor, in ids
    int64_t ids = 0;
  };
  struct Copy {
    std::string path;
    int file = -1;
    std::vector<Run> runs;
    at::Tensor ids;                    // i16 [samples, positions, k] in host memory, once `copied`
    std::optional<c10::Event> copied;  // none: ids are there
  };

  std::string PathOf(const CallContext& call) const;
  int FileOf(const CallContext& call);
  std::vector<Run> RunsOf(const CallContext& call, int64_t samples, int64_t top_k) const;
  void WriteCopies(bool wait);

  const std::string folder_;
  const Mode mode_;
  const std::shared_ptr<SampleSlots> slots_;
  std::mutex mutex_;
  std::map<std::string, int> files_;  // descriptors, by name
  std::set<int> unsynced_;            // of them, those that were written since the last Finish
  std::deque<Copy> copies_;           // that are not written yet, in the order of their calls
};

}  // namespace planwright::executor
