#include "executor/values.h"

namespace planwright::executor {

const at::Tensor& Values::Get(const std::string& name) const {
  const auto it = values_.find(name);
  TORCH_CHECK(it != values_.end(), "no value ", name, " here");
  return it->second;
}

void SavedValues::Save(const std::string& frame, int microbatch, const std::string& name, at::Tensor value) {
  const bool fresh = frames_[{frame, microbatch}].emplace(name, std::move(value)).second;
  TORCH_CHECK(fresh, name, " of ", frame, ", microbatch ", microbatch, ", is saved twice");
}

at::Tensor SavedValues::Take(const std::string& frame, int microbatch, const std::string& name) {
  const auto saved = frames_.find({frame, microbatch});
  TORCH_CHECK(saved != frames_.end(), "nothing is saved of ", frame, ", microbatch ", microbatch);
  const auto it = saved->second.find(name);
  TORCH_CHECK(it != saved->second.end(), name, " of ", frame, ", microbatch ", microbatch, ", is not saved");
  at::Tensor value = std::move(it->second);
  saved->second.erase(it);
  if (saved->second.empty()) frames_.erase(saved);
  return value;
}

std::string SavedValues::Describe() const {
  std::string text;
  for (const auto& [key, values] : frames_) {
    for (const auto& [name, value] : values) {
      if (!text.empty()) text += ", ";
      text += key.first + " microbatch " + std::to_string(key.second) + " " + name;
    }
  }
  return text;
}

}  // namespace planwright::executor
