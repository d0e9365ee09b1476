#include "planner/cli/arguments.h"

#include <algorithm>

#include "planner/base/text/near_name.h"
#include "planner/base/text/status_macros.h"
#include "planner/cli/words_of_others.h"

namespace planwright {
namespace {

const Option* Find(const std::vector<Option>& options, const std::string& name) {
  auto it = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return option.name == name || (!name.empty() && option.short_name == name);
  });
  return it == options.end() ? nullptr : &*it;
}

// A name of one wrong letter is that name; one of another program comes before those that are less near.
std::string HelpForUnknown(const std::string& name, std::string_view value, const std::vector<Option>& options,
                           bool overrides) {
  std::vector<std::string> names;
  for (const Option& option : options) names.push_back(option.name);
  const std::optional<std::string> near = NearName(name, names);
  if (!near || EditDistance(name, *near) > 1) {
    if (std::string other = OptionOfOthers(name, value, overrides, Find(options, "--gpus") != nullptr); !other.empty())
      return other;
  }
  return NearNameHelp(name, names);
}

absl::Status UnknownOption(const std::string& name, std::string_view value, const std::vector<Option>& options,
                           bool overrides) {
  const std::string help = HelpForUnknown(name, value, options, overrides);
  return absl::InvalidArgumentError("no option `" + name + "`" + (help.empty() ? "" : "; " + help));
}

}  // namespace

absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& arguments, const std::vector<Option>& options,
                                         bool unknown_are_words, bool overrides) {
  Arguments result;
  bool only_words = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!only_words && argument == "--") {
      only_words = true;
      continue;
    }
    if (only_words || argument.size() < 2 || argument[0] != '-') {
      result.words.push_back(argument);
      continue;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const Option* option = Find(options, argument.substr(0, equals));
    if (!option && unknown_are_words) {
      result.words.push_back(argument);
      continue;
    }
    if (!option) {
      const bool has_next = i + 1 < arguments.size() && !arguments[i + 1].starts_with('-') &&
                            arguments[i + 1].find('=') == std::string::npos;
      const std::string value = equals != std::string::npos ? argument.substr(equals + 1)
                                : has_next                  ? arguments[i + 1]
                                                            : "";
      return UnknownOption(argument.substr(0, equals), value, options, overrides);
    }
    if (result.has(option->name)) return absl::InvalidArgumentError("option `" + option->name + "` is given twice");
    if (option->value.empty()) {
      if (equals != std::string::npos)
        return absl::InvalidArgumentError("option `" + option->name + "` takes no value");
      result.given[option->name] = "";
    } else if (equals != std::string::npos) {
      result.given[option->name] = argument.substr(equals + 1);
    } else if (++i < arguments.size()) {
      result.given[option->name] = arguments[i];
    } else {
      return absl::InvalidArgumentError("option `" + option->name + "` needs a value: " + option->value);
    }
  }
  return result;
}

absl::Status FillOptions(const Arguments& arguments, const std::vector<Option>& rows, CommandOptions& options) {
  static_cast<Arguments&>(options) = arguments;
  for (const Option& row : rows) {
    if (arguments.has(row.name)) ABSL_RETURN_IF_ERROR(row.fill(arguments.given.at(row.name), options));
  }
  return absl::OkStatus();
}

}  // namespace planwright
