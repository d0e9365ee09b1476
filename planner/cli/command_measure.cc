// `plan measure`: what a device takes for the instructions of recipes (docs/measure.md).
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/background_output.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/live_bar.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/open_fleet.h"
#include "planner/cli/own_file.h"
#include "planner/cli/run_flags.h"
#include "planner/cli/submit_job.h"
#include "planner/data/samples/count_samples.h"
#include "planner/data/samples/sample_source.h"
#include "planner/plan/file_begins.h"
#include "planner/run/measure/measure_parts.h"
#include "planner/run/measure/sizes_around.h"
#include "planner/run/measure/skewed_routing.h"
#include "planner/run/outcome/outcome_text.h"
#include "planner/views/show/quantities.h"
#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

struct MeasuredRecipe {
  std::string path;
  std::vector<std::string> overrides;
};

// RECIPE [OVERRIDE ...] RECIPE [OVERRIDE ...]: overrides are of the recipe before them.
absl::StatusOr<std::vector<MeasuredRecipe>> RecipesOf(const std::vector<std::string>& words) {
  std::vector<MeasuredRecipe> recipes;
  for (const std::string& word : words) {
    const bool recipe = word.find('=') == std::string::npos;
    if (!recipe && recipes.empty())
      return absl::InvalidArgumentError("the override `" + word + "` stands before every recipe");
    if (recipe) recipes.push_back({word, {}});
    if (!recipe) recipes.back().overrides.push_back(word);
  }
  if (recipes.empty()) return absl::InvalidArgumentError("`plan measure` needs a RECIPE: its sizes are measured");
  return recipes;
}

std::string MeasuredName(const MeasuredRecipe& recipe, const std::vector<std::string>& more) {
  std::string name = recipe.path;
  for (const auto* overrides : {&recipe.overrides, &more}) {
    for (const std::string& word : *overrides) name += " " + word;
  }
  return name;
}

// Why a size around a recipe's cannot be measured; empty: it can.
std::string ProblemOf(const LoadedPlan& loaded) {
  // Rows of recorded batches have one length, and documents that are longer than a sample may be mistakes.
  if (loaded.plan) return std::string(OpenSampleSource(*loaded.plan).status().message());
  for (const Diagnostic& problem : loaded.problems.sorted()) {
    if (problem.severity == Severity::kError) return problem.message;
  }
  return "it does not compile";
}

// Samples of other sizes than those of the recipe are other samples, also those of its evaluation sets: what the index
// counts of them goes into their plan. Where it cannot be kept, that has been told of the recipe itself.
int TakeCountsOf(const std::string& path, const std::vector<std::string>& overrides, LoadedPlan& other) {
  if (!other.plan) return kExitSuccess;
  if (HasUncountedSets(*other.plan)) {
    if (const int status = MakeIndexOfSets(*other.plan); status != kExitSuccess) return status;
  }
  if (RowOf(other.plan->data.kind).indexed) {
    const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSources(*other.plan);
    if (source.ok()) KeepCounted(other.plan->data, other.plan->budget.sequence_length, **source).IgnoreError();
  }
  const absl::StatusOr<bool> counted = LoadCounted(path, overrides, *other.plan);
  return counted.ok() ? static_cast<int>(kExitSuccess) : UsageError(counted.status());
}

// The parts of all recipes. A recipe must compile, and its data be of use, of which this makes the index. Sizes around
// it of which that is not so are left out, which is said. Returns kExitSuccess, or the status of the recipe that is
// wrong. A probe has no other sizes, and times nothing beside the steps.
int PartsOf(const std::vector<MeasuredRecipe>& recipes, bool probes, bool as_json, std::vector<MeasurePart>& parts) {
  const auto add = [&](MeasurePart part) {
    const auto known = std::find_if(parts.begin(), parts.end(), [&](const MeasurePart& other) {
      return other.plan.digest == part.plan.digest && other.fullest == part.fullest;
    });
    if (known == parts.end()) return parts.push_back(std::move(part));
    known->rounds |= part.rounds;
  };
  for (const MeasuredRecipe& recipe : recipes) {
    LoadedPlan loaded = LoadPlan(recipe.path, recipe.overrides);
    loaded.PrintProblems(as_json);
    if (!loaded.plan) return loaded.exit_status();
    std::map<std::string, std::string> digests;
    if (const int status = MakeIndexBeforeRanks(*loaded.plan, digests); status != kExitSuccess) return status;
    const absl::StatusOr<bool> counted = LoadCounted(recipe.path, recipe.overrides, *loaded.plan);
    if (!counted.ok()) return UsageError(counted.status());
    const std::vector<std::vector<std::string>> around = SizesAround(*loaded.plan);
    const Plan& plan = *loaded.plan;
    add({.plan = plan, .what = MeasuredName(recipe, {}), .rounds = !probes});
    if (probes || recipe.path.ends_with(".json")) continue;  // of a compiled plan there are no other sizes
    for (double fullest : {1.0, 2.0, 4.0}) {
      if (fullest <= MostSkew(plan) && MostSkew(plan) >= 2)
        add({.plan = plan, .what = MeasuredName(recipe, {}), .fullest = fullest});
    }
    for (const std::vector<std::string>& more : around) {
      std::vector<std::string> overrides = recipe.overrides;
      overrides.insert(overrides.end(), more.begin(), more.end());
      LoadedPlan other = LoadPlan(recipe.path, overrides);
      const std::string name = MeasuredName(recipe, more);
      if (const int status = TakeCountsOf(recipe.path, overrides, other); status != kExitSuccess) return status;
      if (const std::string problem = ProblemOf(other); !problem.empty()) {
        std::cerr << PrintableLines("left out: " + name + ": " + problem) << "\n";
      } else {
        add({.plan = *std::move(other.plan), .what = name});
      }
    }
  }
  return kExitSuccess;
}

// What was written and how much is in it; of a probe also by how much the profile was scaled, and how far off it is for
// the steps of the probe.
void PrintMeasured(const std::string& path, const Measured& measured, bool as_json) {
  const DeviceProfile& profile = measured.profile;
  const bool scaled = !profile.scaled_from.empty();
  if (as_json) {
    nlohmann::ordered_json json = {{"path", path},
                                   {"device", profile.device},
                                   {"compute", profile.compute.size()},
                                   {"communication", profile.communication.size()}};
    if (scaled) json["scaled_from"] = profile.scaled_from;
    for (const ScaledUses& of : profile.scaled_by) {
      json["scaled_by"][of.uses] = {{"factor", of.factor}, {"low", of.low}, {"high", of.high}, {"uses", of.count}};
    }
    for (const ProbedStep& step : measured.probed) {
      using Json = nlohmann::ordered_json;
      const bool known = step.predicted > 0;
      json["steps"].push_back({{"part", step.what},
                               {"step_seconds", step.seconds},
                               {"predicted_step_seconds", known ? Json(step.predicted) : Json()},
                               {"off_percent", known ? Json(100 * step.off()) : Json()}});
    }
    std::cout << JsonText(json, 2) << "\n";
    return;
  }
  if (scaled) {
    Table table({"uses", "take, times", "a quarter less than", "a quarter more than", "of the probe"});
    for (const ScaledUses& of : profile.scaled_by) {
      table.Add(
          {of.uses, DigitsText(of.factor, 4), DigitsText(of.low, 4), DigitsText(of.high, 4), WithCommas(of.count)});
    }
    std::cout << table.Text() << "\n";
    Table steps({"a step took", "by this profile", "off by", "of"});  // a long line of overrides comes last
    for (const ProbedStep& step : measured.probed) {
      const bool known = step.predicted > 0;
      steps.Add({SecondsText(step.seconds), known ? SecondsText(step.predicted) : "unknown",
                 known ? absl::StrFormat("%+.1f %%", 100 * step.off()) : "", Printable(step.what)});
    }
    std::cout << steps.Text() << "\n";
  }
  std::cout << "wrote " << Printable(path) << ": " << Printable(profile.device) << ", " << profile.compute.size()
            << " uses of instructions, " << profile.communication.size() << " of communications"
            << (scaled ? ", scaled from " + Printable(profile.scaled_from) : "") << "\n";
}

std::vector<Plan> PlansOf(const std::vector<MeasurePart>& parts) {
  std::vector<Plan> plans;
  for (const MeasurePart& part : parts) plans.push_back(part.plan);
  return plans;
}

// PROFILE.json.job: what a job or a head needs, and a job's output. The parts have a folder of their own, which goes.
std::string JobFolder(const std::string& output) { return output + ".job"; }

int Submit(const std::vector<MeasurePart>& parts, const MeasureOptions& options, const RunFlags& flags) {
  constexpr int kSignalSeconds = 60;  // there is nothing to save: parts that are done are kept
  JobFiles job = JobHere();
  job.plans = PlansOf(parts);
  job.measure = MeasureJob{.output = AbsolutePath(options.output)};
  for (const MeasurePart& part : parts) job.measure->parts.push_back({part.what, part.rounds, part.fullest});
  job.options.executor = AbsolutePath(options.executor);
  job.options.device = options.device;
  job.options.run_dir = JobFolder(job.measure->output);
  return SubmitJob(job, kSignalSeconds, flags.dry_run, flags.json);
}

// Waits for an agent on each node that the largest plan needs, and measures through them.
absl::StatusOr<Measured> MeasureWithAgents(const std::vector<MeasurePart>& parts, MeasureOptions options) {
  options.output = AbsolutePath(options.output);
  options.executor = AbsolutePath(options.executor);
  const std::vector<Plan> plans = PlansOf(parts);
  Measured measured;
  ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, OpenFleet(LargestPlan(plans), JobFolder(options.output),
                                                                      PrintingTerminal(true), measured.failed));
  if (measured.failed) {
    measured.failed_part = parts.front().what;
    return measured;
  }
  options.starter = fleet.get();
  absl::StatusOr<Measured> done = MeasureParts(parts, options);
  if (done.ok() && !done->failed) {
    std::error_code error;
    std::filesystem::remove_all(JobFolder(options.output), error);
  }
  return done;
}

// How far a measurement is. A part tells nothing while it is measured, so it is taken to last as long as those before
// it.
class MeasureProgress {
 public:
  void Begin(int64_t done, int64_t all) {
    begun_ = Clock::now();
    if (done == 0) first_ = begun_;
    done_ = done, all_ = all;
  }
  std::optional<LiveBar::Progress> Now() const {
    if (all_ == 0) return std::nullopt;
    double parts = static_cast<double>(done_);
    if (done_ > 0) {
      const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
      parts += std::min(0.95, seconds(Clock::now() - begun_) / (seconds(begun_ - first_) / parts));
    }
    return LiveBar::Progress{parts / static_cast<double>(all_),
                             "part " + std::to_string(done_ + 1) + " of " + std::to_string(all_)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point first_, begun_;  // the first part, and the newest
  int64_t done_ = 0, all_ = 0;
};

struct MeasureFlags : RunFlags {
  std::string output, probe;
};

// The profile that --probe names.
absl::StatusOr<ProbedBase> BaseOf(const MeasureFlags& flags) {
  const std::string& path = flags.probe;
  if (flags.slurm)
    return absl::InvalidArgumentError("--probe measures now: run it in a job, with --local or --agents, not --slurm");
  std::error_code error;
  if (std::filesystem::equivalent(path, flags.output, error))
    return absl::InvalidArgumentError(path + " is what the probe scales: -o names another file");
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kProfileJson.bytes));
  absl::StatusOr<DeviceProfile> profile = ReadProfile(text);
  if (!profile.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the profile ", path,
                                                   " is damaged or of another version: ", profile.status().message(),
                                                   "; name a file that `plan measure` wrote"));
  }
  return ProbedBase{*std::move(profile), path};
}

// Before minutes go into parts: whether the file can have the profile. Folders above it are made with the parts.
absl::Status CheckOutput(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return absl::InvalidArgumentError(file + " is a folder: -o names the file of the profile");
  ABSL_RETURN_IF_ERROR(CheckOnlyOwn(file, "profile: -o names the file of the profile", BeginsProfile));
  const std::filesystem::path above = std::filesystem::path(file).parent_path();
  return above.empty() || std::filesystem::exists(above, error) ? CheckNamedFile(file) : absl::OkStatus();
}

int Measure(const MeasureFlags& flags) {
  if (absl::Status status = CheckWay(flags); !status.ok()) return UsageError(status);
  if (flags.output.empty()) return UsageError("nothing says where to write the profile: give -o PROFILE.json");
  const absl::StatusOr<std::vector<MeasuredRecipe>> recipes = RecipesOf(flags.words);
  if (!recipes.ok()) return UsageError(recipes.status());
  MeasureOptions options = {.output = flags.output, .executor = flags.run.executor, .device = flags.run.device};
  for (const MeasuredRecipe& recipe : *recipes) {
    std::error_code error;
    if (std::filesystem::equivalent(recipe.path, options.output, error))
      return UsageError(options.output + " is the recipe: -o names the file of the profile");
  }
  if (const absl::Status fit = CheckOutput(options.output); !fit.ok()) return UsageError(fit);
  if (!flags.probe.empty()) {
    absl::StatusOr<ProbedBase> base = BaseOf(flags);
    if (!base.ok()) return UsageError(base.status());
    options.base = *std::move(base);
  }
  std::vector<MeasurePart> parts;
  if (const int status = PartsOf(*recipes, options.base.has_value(), flags.json, parts); status != kExitSuccess)
    return status;
  if (flags.slurm) return Submit(parts, options, flags);
  const BackgroundOutput output;
  const absl::StatusOr<Measured> measured = [&] {
    MeasureProgress progress;
    LiveBar bar([&progress] { return progress.Now(); });
    options.progress = [&bar](const std::string& line) { bar.Aside([&] { std::cerr << Printable(line) << "\n"; }); };
    options.begins = [&](int64_t done, int64_t all) { bar.Aside([&] { progress.Begin(done, all); }); };
    return flags.agents ? MeasureWithAgents(parts, options) : MeasureParts(parts, options);
  }();
  if (!measured.ok()) return ReportFailedLaunch(measured.status());
  if (measured->failed) {
    if (flags.json) {
      nlohmann::ordered_json json = OutcomeJson(*measured->failed);
      json["part"] = measured->failed_part, json["run_dir"] = measured->failed_run;
      std::cout << JsonText(json, 2) << "\n";
    }
    std::cerr << PrintableLines(OutcomeText(*measured->failed)) << Printable(measured->failed_part)
              << " was not measured"
              << (measured->failed_run.empty() ? "" : "; its run directory: " + Printable(measured->failed_run))
              << (options.base ? "\nthe same command measures all parts of a probe again\n"
                               : "\nthe same command goes on with it: parts that are done are kept\n");
    return measured->failed->exit_code;
  }
  PrintMeasured(options.output, *measured, flags.json);
  return kExitSuccess;
}

}  // namespace

CliCommand MeasureCommand() {
  CliCommand command = {"measure", "measures what a device takes for the instructions of recipes", Runs(Measure), "r+"};
  command.usage =
      "RECIPE [OVERRIDE ...] [RECIPE ...] -o PROFILE.json [--probe BASE.json] [--local | --slurm [--dry-run] | "
      "--agents] "
      "[--device cpu|cuda]";
  command.options = {
      Option("-o, --output FILE", &MeasureFlags::output,
             "write the profile there; cluster.profile of a recipe names it",
             NameOf{"a file"})  // else it would only show after the last part
          .Writes()
          .With(
              {"plan measure recipes/nemotron_moe_vlm_20l_2g.yaml -o profile.json", "measures this machine's devices"}),
      Option("--probe BASE", &MeasureFlags::probe,
             "run each recipe alone, and write the profile BASE scaled to this device, another one of its kind",
             NameOf{"a profile"})
          .With({"plan measure recipes/qwen3_1_7b_1g.yaml --probe recipes/profiles/h200_sxm.json -o mine.json",
                 "another H200, in half a minute"}),
      {"--local", &RunFlags::local, "run all ranks on this machine, which is the default"},
      SlurmOption(),
      DryRunOption(),
      AgentsOption(),
      DeviceOption("where ranks compute; default: cuda if the recipe's cluster has GPUs"),
      ExecutorOption(),
      JsonOption("print path, device and size of the profile, or the outcome of a part that failed"),
  };
  command.details =
      "Each recipe runs for a few steps, and again with sequences of twice and half the length, with twice the "
      "samples\n"
      "of a microbatch, with unequal experts, and with communications beside work and without. Times are those of the\n"
      "last steps, inside the training; communications are also timed after them. Overrides follow their recipe. "
      "Parts\n"
      "that are done are kept in PROFILE.json.parts until all are: the same command goes on. A probe begins anew.\n";
  command.see_also = {"show", "tune"}, command.pages = {"docs/measure.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
