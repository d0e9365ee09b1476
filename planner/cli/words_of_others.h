// What another training program has as an option or a command, and how it is said here.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// What to do instead of an option that the command does not have: "--tensor-model-parallel-size" is a key of the
// recipe. Empty: it is not known. `value`: of the option, empty if it has none. `overrides`: the command takes them.
// `gpus`: it has --gpus.
std::string OptionOfOthers(std::string_view option, std::string_view value, bool overrides, bool gpus);

// What to do instead of `plan train`. Empty: it is not known.
std::string CommandOfOthers(std::string_view command);

}  // namespace planwright
