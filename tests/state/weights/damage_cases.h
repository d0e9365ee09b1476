// The damages of damage_test.cc, each with its exact message.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/state/weights/published.h"

namespace planwright::testing {

struct DamageCase {
  std::string name;
  std::function<void(RawTensors&)> tensors;        // changes the tensors before they are written in two shards, or null
  std::function<void(const std::string&)> damage;  // changes the folder, or null
  std::string message;                             // all problems, a line each; "F" stands for the folder
  friend void PrintTo(const DamageCase& damage, std::ostream* out) { *out << damage.name; }
};
std::vector<DamageCase> DamageCases();

}  // namespace planwright::testing
