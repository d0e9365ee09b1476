// Inputs that could break a program or make it slow, by kind. any_bytes_test tries them and ./dev bench times them.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace planwright::testing {

struct AnyInput {
  std::string what;                    // describes the input if the arguments do not
  std::vector<std::string> arguments;  // of `plan`
  bool refused = true;                 // expects status 1 or 2; otherwise 0 is fine too
};
using GiveInput = std::function<void(const AnyInput& input)>;

struct InputKind {
  const char* name;
  // Calls back with one input after the other. Its files stay in `folder` until the next one.
  void (*make)(const std::string& folder, const GiveInput& give);
  friend void PrintTo(const InputKind& kind, std::ostream* out) { *out << kind.name; }
};
const std::vector<InputKind>& InputKinds();

}  // namespace planwright::testing
