// Reads a command's words and options. An unknown option is an error that suggests a similar name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cli/option.h"

namespace planwright {

// Accepts `--name value` and `--name=value`; everything after `--` is a word. An option that is none of `options` is a
// mistake, or if `unknown_are_words` a word. The message of InvalidArgument is for the user. `overrides`: words may be
// overrides, which it then names for an option that is a key of the recipe.
absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& arguments, const std::vector<Option>& options,
                                         bool unknown_are_words = false, bool overrides = false);

// Gives the options that were given to the members that they fill. The message of InvalidArgument is for the user.
absl::Status FillOptions(const Arguments& arguments, const std::vector<Option>& rows, CommandOptions& options);

}  // namespace planwright
