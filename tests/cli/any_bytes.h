// Bytes that a program could choke on, by kind: what any_bytes_test tries and ./dev bench times.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace planwright::testing {

struct AnyInput {
  std::string what;                    // where the arguments do not say it
  std::vector<std::string> arguments;  // of `plan`
  bool refused = true;                 // status 1 or 2; else 0, 1 or 2
};
using GiveInput = std::function<void(const AnyInput& input)>;

struct InputKind {
  const char* name;
  // Gives one input after the other; files lie in `folder` until the next one.
  void (*make)(const std::string& folder, const GiveInput& give);
};
const std::vector<InputKind>& InputKinds();

}  // namespace planwright::testing
