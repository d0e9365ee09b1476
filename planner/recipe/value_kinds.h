// Kinds of values that a shape may ask for, with the parts that what is meant may name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

using ValueParts = std::map<std::string, YamlNode, std::less<>>;

// The parts of the value as a value of this kind; nullopt: it is none. Calls Bug() for a kind that does not exist.
//   scalar     any scalar that is not empty       map, any   a map; anything
//   integer    a whole number                     letter     a scalar of one letter
//   ranks      [4, 5, 6] or 4-6: first, count     numbers    a text of two: "0.9, 0.95", "(1, 2)": list
//   integers   a text of two: 32x32: list         duration   24h, 90m, 2d: time, as Slurm writes it
//   cut        a list of options of sbatch in which a comma cut one in two: whole, the options; at, the first part that
//              was cut off
//   data_sheet a device that is known by its data sheet only: figures (other_devices.h); runs, a text if none does
// A part `at` is where a problem of the value is told.
std::optional<ValueParts> PartsOfKind(std::string_view kind, const YamlNode& value);

}  // namespace planwright
