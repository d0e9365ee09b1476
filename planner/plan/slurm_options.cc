#include "planner/plan/slurm_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>
#include <vector>

#include "planner/plan/sbatch_options.h"

namespace planwright {
namespace {

// The characters that an option may have besides those of every word.
constexpr std::pair<std::string_view, std::string_view> kMore[] = {
    {"partition", ","},   {"account", ""}, {"qos", ""},          {"constraint", "&|,*()[]"},
    {"reservation", ","}, {"gres", ","},   {"container", "/#="}, {"mounts", "/="}};

// Flags of mounts, as enroot takes them, joined by +.
constexpr std::string_view kMountFlags[] = {"ro",     "rw",           "bind",         "rbind",   "private", "rprivate",
                                            "slave",  "rslave",       "shared",       "rshared", "nosuid",  "suid",
                                            "nodev",  "dev",          "noexec",       "exec",    "noatime", "relatime",
                                            "nofail", "x-create=dir", "x-create=file"};

std::vector<std::string_view> PartsAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool AllOf(const std::vector<std::string_view>& parts, bool (*holds)(std::string_view)) {
  return std::all_of(parts.begin(), parts.end(), holds);
}

// A number of at most nine digits, and nothing else.
std::optional<int64_t> Digits(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const bool fits = text.size() <= 9 && std::from_chars(text.data(), end, number) == std::from_chars_result{end, {}};
  return fits ? std::optional<int64_t>(number) : std::nullopt;
}

std::string MountProblem(std::string_view value) {
  const std::vector<std::string_view> parts = PartsAt(value, ':');
  const bool paths = parts.size() > 1 && parts[0].starts_with('/') && parts[1].starts_with('/');
  const bool flags = parts.size() < 3 || AllOf(PartsAt(parts[2], '+'), [](std::string_view flag) {
                       return std::find(std::begin(kMountFlags), std::end(kMountFlags), flag) != std::end(kMountFlags);
                     });
  if (paths && parts.size() <= 3 && flags) return "";
  return "a mount is FROM:TO or FROM:TO:FLAGS, two absolute paths and flags such as ro";
}

// pyxis takes a word that does not begin with a slash for an image of a registry, and ./ for a folder of the step.
std::string ImageProblem(std::string_view value) {
  const bool file = value.ends_with(".sqsh") || value.ends_with(".sqfs");
  return value.starts_with('.') || (file && !value.starts_with('/')) ? "a file is named by its absolute path" : "";
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

// "90", "90:30", "4:00:00", "1-12", "1-12:30", "1-12:30:00"
std::optional<int64_t> SlurmSeconds(std::string_view time) {
  const size_t dash = time.find('-');
  const bool with_days = dash != std::string_view::npos;
  const std::optional<int64_t> days = with_days ? Digits(time.substr(0, dash)) : 0;
  if (with_days) time.remove_prefix(dash + 1);
  std::vector<int64_t> parts;
  for (bool more = true; more;) {
    const size_t colon = std::min(time.find(':'), time.size());
    const std::optional<int64_t> number = Digits(time.substr(0, colon));
    if (!number) return std::nullopt;
    parts.push_back(*number);
    more = colon < time.size();
    time.remove_prefix(std::min(colon + 1, time.size()));
  }
  if (!days || parts.size() > 3) return std::nullopt;
  // The first part counts hours after days or before two others, else minutes.
  int64_t unit = with_days || parts.size() == 3 ? 3600 : 60, seconds = *days * 24 * 3600;
  for (const int64_t part : parts) {
    seconds += part * unit;
    unit /= 60;
  }
  return seconds;
}

bool GresNamesGpus(std::string_view gres) {
  if (gres == "none") return true;
  return !AllOf(PartsAt(gres, ','), [](std::string_view one) { return one != "gpu" && !one.starts_with("gpu:"); });
}

GresProblem GresProblemOf(std::string_view gres, int64_t gpus) {
  if (gres.empty() || !GresNamesGpus(gres)) return {};
  const std::string quoted = "`launch.slurm.gres` is `" + std::string(gres) + "`";
  if (gpus == 0) return {quoted + ", and ranks compute on CPUs", "remove its GPUs, or write cluster.gpu"};
  if (gres == "none") return {};
  int64_t count = 0;
  std::string type, others;
  for (const std::string_view one : PartsAt(gres, ',')) {
    const std::vector<std::string_view> parts = PartsAt(one, ':');  // gpu[:TYPE][:COUNT]
    if (parts[0] != "gpu") {
      others += "," + std::string(one);
      continue;
    }
    const std::optional<int64_t> number = parts.size() > 1 ? Digits(parts.back()) : std::nullopt;
    count += number.value_or(1);
    if (parts.size() > (number ? 2U : 1U)) type = ":" + std::string(parts[1]);
  }
  if (count == gpus) return {};
  const std::string fits = "gpu" + type + ":" + std::to_string(gpus) + others;
  return {quoted + ", " + std::to_string(count) + (count == 1 ? " GPU" : " GPUs") +
              " of each node, and `cluster.gpus_per_node` is " + std::to_string(gpus),
          "write gres: " + fits + ", or change cluster.gpus_per_node", fits};
}

std::string SlurmOptionProblem(std::string_view option, std::string_view value) {
  if (option == "time")
    return SlurmSeconds(value) ? "" : "sbatch takes MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS";
  for (const auto& [name, more] : kMore) {
    if (name != option) continue;
    if (std::string problem = SlurmWordProblem(value, more); !problem.empty()) return problem;
    return option == "mounts" ? MountProblem(value) : option == "container" ? ImageProblem(value) : "";
  }
  return "there is no such option";
}

std::string SlurmOptionsProblem(const LaunchPlan& launch, bool on_gpus) {
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
  check("reservation", launch.reservation);
  check("time", launch.time);
  check("gres", launch.gres);
  check("container", launch.container);
  for (const std::string& mount : launch.mounts) check("mounts", mount);
  return found.empty() ? SbatchOptionsProblem(launch.options, on_gpus) : found;
}

}  // namespace planwright
