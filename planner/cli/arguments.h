// A command's words and options, read strictly: an option that a command does not have is an error with a near name.
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
  std::string value;       // "FILE", as help prints it; empty: a switch
  std::string help;
};

struct Arguments {
  std::vector<std::string> words;              // in order
  std::map<std::string, std::string> options;  // by long name; a switch has an empty value

  bool has(const std::string& name) const { return options.contains(name); }
  std::optional<std::string> value(const std::string& name) const;
};

// `--name value` and `--name=value`; after `--` everything is a word. InvalidArgument says what is wrong, in words for
// the user.
absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& arguments, const std::vector<Option>& options);

// A whole number of at least `least`. InvalidArgument names the option.
absl::StatusOr<int64_t> IntegerOption(const std::string& name, const std::string& text, int64_t least);

}  // namespace planwright
