// Reads a command's words and options. An unknown option is an error that suggests a similar name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct Option {
  std::string name;        // "--output"
  std::string short_name;  // "-o", or empty
  std::string value;       // what follows it, as --help prints it: "FILE"; empty: a switch
  std::string help;
  bool writes = false;  // the value is a file or folder that the command writes
};

struct Arguments {
  std::vector<std::string> words;              // in order
  std::map<std::string, std::string> options;  // by long name; a switch has an empty value

  bool has(const std::string& name) const { return options.contains(name); }
  std::optional<std::string> value(const std::string& name) const;
};

// Accepts `--name value` and `--name=value`; everything after `--` is a word. An option that is none of `options` is a
// mistake, or if `unknown_are_words` a word. The message of InvalidArgument is for the user. `overrides`: words may be
// overrides, which it then names for an option that is a key of the recipe.
absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& arguments, const std::vector<Option>& options,
                                         bool unknown_are_words = false, bool overrides = false);

// Reads a whole number from `least` to `most`. The message of InvalidArgument names the option.
absl::StatusOr<int64_t> IntegerOption(const std::string& name, const std::string& text, int64_t least, int64_t most);

}  // namespace planwright
