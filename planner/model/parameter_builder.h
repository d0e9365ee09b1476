// Adds parameters and their storages to a Module, and computes the local shape of each storage.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

class ParameterBuilder {
 public:
  // `file_prefix`: the start of published names ("language_model."), where names in the plan have "MODULE.".
  ParameterBuilder(Module& module, std::string file_prefix) : module_(module), file_prefix_(std::move(file_prefix)) {}

  void set_file_prefix(std::string prefix) { file_prefix_ = std::move(prefix); }
  void set_frame(std::string frame) { frame_ = std::move(frame); }
  void set_stage(int stage) { stage_ = stage; }           // the pipeline stage of the next parameters
  void set_trained(bool trained) { trained_ = trained; }  // false: the next parameters are frozen

  // Adds one parameter in one storage. `cut`: the dim that tp cuts, -1 for none. `segments`: parts of that dim that are
  // cut separately; none means one part. Every cut must divide.
  void Add(const std::string& slot, const std::string& suffix, std::vector<int64_t> shape, Init init, int cut = -1,
           std::vector<int64_t> segments = {});

  // Adds several parameters that one storage holds one after the other along dim 0. tp cuts each of them along dim 0.
  struct Part {
    std::string suffix;
    std::vector<int64_t> shape;
  };
  void AddJoined(const std::string& slot, const std::vector<Part>& parts, Init init);

  // Adds `experts` parameters of one shape. The storage stacks the ones of a rank. "{expert}" in the suffix stands for
  // the index over all ranks. `cut`: the dim that expert_tp cuts.
  void AddExperts(const std::string& slot, const std::string& suffix, int64_t experts, std::vector<int64_t> shape,
                  Init init, int cut);

  // Adds a buffer: a tensor that is saved and loaded, but that the optimizer does not step.
  void AddBuffer(const std::string& slot, const std::string& suffix, std::vector<int64_t> shape);

  // The number of elements of the parameters since the last call, without buffers.
  int64_t TakeCount() { return std::exchange(count_, 0); }

 private:
  Parameter& NewParameter(const std::string& suffix, std::vector<int64_t> shape, Init init);
  Storage& NewStorage(const std::string& slot, std::vector<int64_t> shape);

  Module& module_;
  std::string file_prefix_, frame_;
  int64_t count_ = 0;
  int stage_ = 0;
  bool trained_ = true;
};

}  // namespace planwright
