// The settings of an image processor while they are read: which of them were looked for, and what no recipe can say.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/cli/first/processor_file.h"

namespace planwright {

class ProcessorSettings {
 public:
  // Keeps a reference.
  explicit ProcessorSettings(const ProcessorFile& file) : file_(file) {}

  const ProcessorFile& file() const { return file_; }
  // Null: it is not said.
  const nlohmann::json* At(const std::string& key);
  // What cannot be expressed is kept, to be told of together.
  void Refuse(std::string problem) { problems_.push_back(std::move(problem)); }
  void Refuse(const std::string& key, const std::string& expected);
  const std::vector<std::string>& problems() const { return problems_; }
  // The keys that nobody looked for, though they may change pixels; for messages.
  std::vector<std::string> Unread() const;

 private:
  const ProcessorFile& file_;
  std::set<std::string> read_;
  std::vector<std::string> problems_;
};

// A whole number above 0, cut to the largest one that a double has with all below it; 0: it is none.
int64_t WholeNumber(const nlohmann::json& value);

}  // namespace planwright
