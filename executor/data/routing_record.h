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

#include <map>
#include <memory>
#include <mutex>
#include <string>

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
  void Write(const CallContext& call, const at::Tensor& ids);
  at::Tensor Read(const CallContext& call, int64_t samples, int64_t top_k);

 private:
  std::string PathOf(const CallContext& call) const;
  int FileOf(const CallContext& call);
  // Calls work(file, offset, row) for each token: its row of ids is at `offset` of the file.
  template <typename Work>
  void ForRuns(const CallContext& call, int64_t samples, int64_t top_k, Work work);

  const std::string folder_;
  const Mode mode_;
  const std::shared_ptr<SampleSlots> slots_;
  std::mutex mutex_;
  std::map<std::string, int> files_;  // descriptors, by name
};

}  // namespace planwright::executor
