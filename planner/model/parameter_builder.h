// Adds parameters and the storages that hold them to a Module, keeping indices and local shapes straight.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

class ParameterBuilder {
 public:
  // `file_prefix` replaces "MODULE." in published names ("language_model.", "vision_model.").
  ParameterBuilder(Module& module, std::string file_prefix) : module_(module), file_prefix_(std::move(file_prefix)) {}

  void set_file_prefix(std::string prefix) { file_prefix_ = std::move(prefix); }
  void set_frame(std::string frame) { frame_ = std::move(frame); }
  void set_stage(int stage) { stage_ = stage; }           // pipeline stage of what is added next
  void set_trained(bool trained) { trained_ = trained; }  // false: frozen, held and never stepped

  // One parameter in one storage. `cut` is the dim that tp cuts, -1 for none; `segments` are parts of that dim cut one
  // by one.
  void Add(const std::string& slot, const std::string& suffix, std::vector<int64_t> shape, Init init, int cut = -1,
           std::vector<int64_t> segments = {});

  // Parameters joined along dim 0 in one storage, all cut along dim 0.
  struct Part {
    std::string suffix;
    std::vector<int64_t> shape;
  };
  void AddJoined(const std::string& slot, const std::vector<Part>& parts, Init init);

  // `experts` tensors of one shape, those of this rank stacked in one storage. "{expert}" in the suffix is the global
  // index. `cut` is the dim that expert_tp cuts.
  void AddExperts(const std::string& slot, const std::string& suffix, int64_t experts, std::vector<int64_t> shape,
                  Init init, int cut);

  // A tensor that is saved and loaded but never stepped.
  void AddBuffer(const std::string& slot, const std::string& suffix, std::vector<int64_t> shape);

  // Elements of all parameters added since the last call (buffers left out).
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
