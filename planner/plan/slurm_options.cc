#include "planner/plan/slurm_options.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace planwright {
namespace {

// The characters that an option may have besides those of every word.
constexpr std::pair<std::string_view, std::string_view> kMore[] = {{"partition", ","},   {"account", ""},
                                                                   {"qos", ""},          {"constraint", "&|,*()[]"},
                                                                   {"container", "/#="}, {"mounts", "/="}};

bool AllDigits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// "90", "90:30", "4:00:00", "1-12", "1-12:30", "1-12:30:00"
bool IsTime(std::string_view rest) {
  const size_t dash = rest.find('-');
  const bool days = dash != std::string_view::npos;
  bool fits = !days || AllDigits(rest.substr(0, dash));
  if (days) rest.remove_prefix(dash + 1);
  size_t parts = 0;
  for (bool more = true; more; ++parts) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    fits = fits && AllDigits(rest.substr(0, colon));
    more = colon < rest.size();
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return fits && parts <= 3;
}

}  // namespace

std::string SlurmWordProblem(std::string_view value, std::string_view more) {
  const auto stands_for_itself = [&](unsigned char c) {
    return std::isalnum(c) || std::string_view("._-+:@%").find(static_cast<char>(c)) != std::string_view::npos ||
           more.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!value.empty() && value[0] != '-' && std::all_of(value.begin(), value.end(), stands_for_itself)) return "";
  return "it may have letters, digits, and . _ - + : @ %" + std::string(more.empty() ? "" : " ") + std::string(more) +
         ", and does not begin with -";
}

std::string SlurmOptionProblem(std::string_view option, std::string_view value) {
  if (option == "time")
    return IsTime(value) ? "" : "sbatch takes MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS";
  for (const auto& [name, more] : kMore) {
    if (name == option) return SlurmWordProblem(value, more);
  }
  return "there is no such option";
}

std::string SlurmOptionsProblem(const LaunchPlan& launch) {
  std::string found;
  const auto check = [&](std::string_view option, const std::string& value) {
    if (value.empty() || !found.empty()) return;
    if (const std::string problem = SlurmOptionProblem(option, value); !problem.empty())
      found = "launch.slurm." + std::string(option) + " is `" + value + "`; " + problem;
  };
  check("partition", launch.partition);
  check("account", launch.account);
  check("qos", launch.qos);
  check("constraint", launch.constraint);
  check("time", launch.time);
  check("container", launch.container);
  for (const std::string& mount : launch.mounts) check("mounts", mount);
  return found;
}

}  // namespace planwright
