// What stands in the way of an import or an export, and what people should know of one. All of it is collected, so that
// it is shown together and not only the first.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planwright {

// One thing that cannot be expressed, does not fit, or is not known.
struct Finding {
  std::string where;    // "text_config.n_group", "tensor mtp.layers.0.norm.weight"
  std::string value;    // as it is written there: "4"; empty: it has none
  std::string message;  // what is expected, and why; lower case, no full stop
};

struct Findings {
  std::vector<Finding> problems;   // with any of them, nothing is written
  std::vector<std::string> notes;  // one line each
  std::set<std::string> ignored;   // keys of config.json that stay unread because --ignore names them

  void Problem(std::string where, std::string value, std::string message) {
    problems.push_back({std::move(where), std::move(value), std::move(message)});
  }
};

}  // namespace planwright
