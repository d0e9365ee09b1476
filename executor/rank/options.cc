#include "executor/rank/options.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

namespace planwright::executor {
namespace {

absl::Status Usage(const std::string& problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(problem,
                   "\nusage: executor --plan FILE --run-dir DIR [--life N] [--probe DIR] [--steps N] "
                   "[--trace STEP[-LAST]] [--record-routing DIR | --replay-routing DIR] [--rounds FILE] "
                   "[--device cpu|cuda]"));
}

template <typename Number>
bool ReadPositive(const std::string& value, Number& number) {
  return absl::SimpleAtoi(value, &number) && number > 0;
}

bool ReadFromZero(const std::string& value, int64_t& number) { return absl::SimpleAtoi(value, &number) && number >= 0; }

// False: there is no such option, or it does not take this value.
bool Take(const std::string& name, const std::string& value, RankOptions& options) {
  const auto take = [&](std::string& option) {
    option = value;
    return !value.empty();
  };
  if (name == "--plan") return take(options.plan);
  if (name == "--run-dir") return take(options.run_dir);
  if (name == "--probe") return take(options.probe);
  if (name == "--record-routing") return take(options.record_routing);
  if (name == "--replay-routing") return take(options.replay_routing);
  if (name == "--rounds") return take(options.rounds);
  if (name == "--device") return take(options.device) && (value == "cpu" || value == "cuda");
  if (name == "--steps") return ReadFromZero(value, options.steps.emplace());
  if (name == "--life") return ReadPositive(value, options.life);
  if (name != "--trace") return false;
  const absl::StatusOr<StepRange> steps = ReadStepRange(value);
  if (steps.ok()) options.profile = *steps;
  return steps.ok();
}

}  // namespace

absl::StatusOr<RankOptions> ReadOptions(int argc, const char* const* argv) {
  RankOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return Usage(name + " needs a value");
    const std::string value = argv[i + 1];
    if (!Take(name, value, options)) return Usage("unknown option or value: " + name + " " + value);
  }
  if (!options.record_routing.empty() && !options.replay_routing.empty())
    return Usage("--record-routing and --replay-routing exclude each other");
  if (options.plan.empty() || options.run_dir.empty()) return Usage("--plan and --run-dir are required");
  return options;
}

}  // namespace planwright::executor
