#include "planner/cli/layout_search.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/file_io.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/compile/compile.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/yaml/yaml_tree.h"
#include "planner/search/tuned_layout.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;

// Fewer take seconds, unless their plans are very long.
constexpr double kManyCandidates = 100'000;
constexpr int64_t kMostSeconds = 1'000'000'000;
constexpr int64_t kMostMargin = 1'000;             // GB
constexpr int64_t kMostAsked = 1'000'000'000'000;  // candidates, simulations

constexpr std::array kSignals = {SIGINT, SIGTERM};

std::atomic<bool> stop_asked = false;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void AskToStop(int number) {
  stop_signal = number;
  stop_asked = true;
}

// "17,974,057,500": people compare such numbers by their length.
std::string AboutText(double count) {
  return count < 1e15 ? WithCommas(std::llround(count)) : absl::StrFormat("%.2g", count);
}

double SecondsSince(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

// How often a terminal's line is printed anew.
constexpr std::chrono::milliseconds kAnew{200};

// How far a search is: a line on a terminal, which changes, also while the search itself reports nothing; elsewhere,
// and before there is one, what `steady` prints, unless it is null.
class ProgressLine {
 public:
  // Of several searches `began` is when the first one began.
  ProgressLine(const TuneRequest& request, SteadyLines* steady, Clock::time_point began)
      : request_(request), terminal_(isatty(STDERR_FILENO) != 0), steady_(steady), began_(began) {
    if (terminal_) ticks_ = std::jthread([this](const std::stop_token& stop) { Tick(stop); });
    if (steady_) steady_->Say([this] { return SteadyText(); });
  }
  ~ProgressLine() {
    if (steady_) steady_->Say(nullptr);
    if (ticks_.joinable()) {
      ticks_.request_stop();
      ticks_.join();
    }
    if (printed_) std::cerr << "\r\x1b[K" << std::flush;
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Print(const TuneProgress& progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    if (terminal_ && (!printed_ || Clock::now() - last_ >= kAnew)) PrintLine();
  }

 private:
  void Tick(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto never = [] { return false; };
    while (!wakes_.wait_for(lock, stop, kAnew, never) && !stop.stop_requested()) {
      if (printed_ && Clock::now() - last_ >= std::chrono::seconds(1)) PrintLine();
    }
  }

  // How long this search has left says nothing of those that follow it. Empty: the terminal's line says more.
  std::string SteadyText() {
    const std::lock_guard lock(mutex_);
    if (terminal_ && printed_) return "";
    return absl::StrCat("searching for a layout: ", absl::StrFormat("%.0f", SecondsSince(began_)), " s",
                        progress_.space > 0 ? absl::StrCat(", ", CountsText()) : "");
  }

  void PrintLine() {
    printed_ = true, last_ = Clock::now();
    std::cerr << "\r\x1b[K" << (request_.gpus > 0 ? Counted(request_.gpus, "GPU") + ": " : "") << LineText()
              << std::flush;
  }

  std::string CountsText() const {
    std::string line = absl::StrCat(WithCommas(progress_.timed), " layouts timed, of ",
                                    absl::StrFormat("%.3g", progress_.space), " candidates");
    // Of a device of unknown speed it is FLOPs.
    if (progress_.best > 0 && progress_.best < kMostSeconds / 1e3)
      absl::StrAppend(&line, ", fastest ", SecondsText(progress_.best));
    return line;
  }

  std::string LineText() const {
    std::string line = CountsText();
    if (const std::optional<double> left = Left())
      absl::StrAppend(&line, ", at most ", absl::StrFormat("%.0f", std::ceil(*left)), " s left");
    return line;
  }

  // Until a limit ends the search. Bounds may end it much sooner.
  std::optional<double> Left() const {
    const double passed = SecondsSince(began_here_);
    std::optional<double> left;
    if (request_.seconds > 0) left = std::max(0.0, request_.seconds - passed);
    if (request_.candidates > 0 && progress_.timed > 0) {
      const auto timed = static_cast<double>(progress_.timed);
      const double rest = passed / timed * std::max(0.0, static_cast<double>(request_.candidates) - timed);
      left = std::min(left.value_or(rest), rest);
    }
    return left;
  }

  const TuneRequest& request_;
  const bool terminal_;
  SteadyLines* const steady_;
  const Clock::time_point began_, began_here_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  TuneProgress progress_;
  Clock::time_point last_;
  bool printed_ = false;
  std::jthread ticks_;
};

absl::StatusOr<double> ReadSeconds(const std::string& name, const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds > 0 && seconds <= kMostSeconds)
    return seconds;
  return absl::InvalidArgumentError(
      absl::StrCat("option `", name, "` needs a number above 0, at most ", kMostSeconds, "; found `", text, "`"));
}

absl::StatusOr<Preference> ReadPreference(const std::string& name, const std::string& text) {
  if (text == "simple") return Preference::kSimple;
  if (text == "memory") return Preference::kMemory;
  return absl::InvalidArgumentError(absl::StrCat("option `", name, "` is simple or memory; found `", text, "`"));
}

// In GB of 10^9 bytes, as `cluster.device.memory` is.
absl::StatusOr<int64_t> ReadMargin(const std::string& name, const std::string& text) {
  double gigabytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gigabytes);
  if (error == std::errc() && end == text.data() + text.size() && gigabytes >= 0 && gigabytes <= kMostMargin)
    return static_cast<int64_t>(std::llround(gigabytes * 1e9));
  return absl::InvalidArgumentError(
      absl::StrCat("option `", name, "` needs GB, a number from 0 to ", kMostMargin, "; found `", text, "`"));
}

absl::StatusOr<std::vector<std::string>> ReadKeys(const std::string& name, const std::string& text) {
  return std::vector<std::string>(absl::StrSplit(text, ','));
}

}  // namespace

std::vector<Option> SearchOptions(double seconds) {
  const auto request = [](auto TuneRequest::*part) { return At(&SearchFlags::request, part); };
  return {
      {"--fix KEYS", request(&TuneRequest::fixed),
       "keys that keep their value, comma separated: modules.language.parallel.tp,gradients", ReadKeys},
      {"--best N", request(&TuneRequest::best), "list so many rows (default: 10)", WholeNumbers{1, 1000}},
      {"--prefer WHAT", request(&TuneRequest::prefer),
       "of layouts that are as fast as the fastest, as far as that is known, the first is the simplest (simple, the "
       "default) or one that needs less memory (memory)",
       ReadPreference},
      {"--margin GB", request(&TuneRequest::margin), "leave so much memory of each device free (default: 0)",
       ReadMargin},
      {"--seconds S", request(&TuneRequest::seconds),
       absl::StrCat("end the search after so many seconds, with the best so far (default: ", seconds, ")"),
       ReadSeconds},
      {"--candidates N", request(&TuneRequest::candidates),
       "begin nothing more after so many timed layouts; what was begun is finished", WholeNumbers{1, kMostAsked}},
      {"--simulations N", request(&TuneRequest::simulations),
       absl::StrCat("simulate at most so many layouts to find the fastest (default: ", kSimulations, ")"),
       WholeNumbers{1, kMostAsked}}};
}

LayoutSearch::LayoutSearch(bool quiet, SteadyLines* steady) : quiet_(quiet), steady_(steady) {
  for (const int number : kSignals) {
    struct sigaction now {};
    // Who starts a program with a signal ignored wants it to stay so.
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = AskToStop;
    action.sa_flags = SA_RESTART | SA_RESETHAND;
    sigaction(number, &action, nullptr);
  }
}

LayoutSearch::~LayoutSearch() {
  for (const int number : kSignals) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == AskToStop) ::signal(number, SIG_DFL);
  }
}

int LayoutSearch::signal() const { return stop_signal; }

absl::StatusOr<Found> LayoutSearch::Run(TuneRequest request, Diagnostics& diagnostics) {
  request.stop = &stop_asked;
  request.begins = [&, begins = request.begins](const TuneStart& start) {
    if (begins) begins(start);
    const bool limited = request.candidates > 0 || request.seconds != kSearchSeconds;
    if (quiet_ || steady_ || limited || start.candidates < kManyCandidates) return;
    std::cerr << (request.gpus > 0 ? Counted(request.gpus, "GPU") + ": about " : "About ")
              << AboutText(start.candidates) << " layouts. The search may take minutes, and ends after "
              << request.seconds << " s with the best so far (--seconds S, or Ctrl-C)." << std::endl;
  };
  if (!began_) began_ = Clock::now();
  ProgressLine line(request, steady_, *began_);
  request.progress = [&](const TuneProgress& progress) { line.Print(progress); };
  ABSL_ASSIGN_OR_RETURN(TuneResult result, Tune(request, diagnostics));
  Found found{std::move(result), {}};
  if (!found.chosen()) {
    std::vector<std::string> overrides = request.overrides;
    overrides.insert(overrides.end(), found.result.changes.begin(), found.result.changes.end());
    found.problems = LoadPlan(request.recipe, overrides).problems.sorted();
  }
  return found;
}

void PrintGivenProblems(const Found& found, const std::vector<std::string>& overrides,
                        const std::map<std::string, std::string>& sources) {
  if (found.chosen() || found.problems.empty() || found.told) return;
  std::vector<std::string> all = overrides;
  all.insert(all.end(), found.result.changes.begin(), found.result.changes.end());
  SourceTexts texts;
  AddOverrides(all, texts);
  for (const auto& [name, text] : sources) texts.Add(name, text);
  std::cerr << "The recipe as it was given, on " << Printable(ClusterText(found)) << ":\n"
            << RenderText(found.problems, texts, WantsColor(STDERR_FILENO));
}

namespace {

void AddFiles(const YamlNode& node, std::set<std::string>& files) {
  if (node.where.file) files.insert(*node.where.file);
  for (const YamlNode& item : node.items) AddFiles(item, files);
  for (const YamlEntry& entry : node.entries) {
    if (entry.key_where.file) files.insert(*entry.key_where.file);
    AddFiles(entry.value, files);
  }
}

}  // namespace

absl::Status CheckNotRead(const std::string& path, const Recipe& recipe) {
  std::set<std::string> files;
  if (recipe.tree) AddFiles(*recipe.tree, files);
  std::error_code error;
  for (const std::string& file : files) {
    if (!std::filesystem::equivalent(path, file, error)) continue;
    return absl::InvalidArgumentError(path + " is a file that the recipe was read from: name another file");
  }
  return absl::OkStatus();
}

absl::Status CheckRecipeTarget(const std::string& path, bool replace, const std::string& recipe) {
  namespace fs = std::filesystem;
  if (path.empty())
    return absl::InvalidArgumentError("the recipe to write needs the name of a file; found an empty one");
  if (!path.ends_with(".yaml") && !path.ends_with(".yml"))
    return absl::InvalidArgumentError(path + ": the name of a recipe ends in .yaml");
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return CheckNamedFile(path);
  if (!fs::is_regular_file(fs::status(path, error)))
    return absl::InvalidArgumentError(path + " exists and is no plain file");
  if (!recipe.empty() && fs::equivalent(path, recipe, error))
    return absl::InvalidArgumentError(path + " is the given recipe, which the written one extends: name another file");
  if (!replace) return absl::InvalidArgumentError(path + " exists: name another file, or replace it with --replace");
  return CheckNamedFile(path);
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto canonical = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  };
  return canonical(a) == canonical(b);
}

namespace {

absl::Status CheckFigures(const std::optional<Plan>& plan, const Diagnostics& found, const TunedLayout& layout,
                          const std::string& what) {
  if (!plan) {
    std::string problems;
    for (const Diagnostic& problem : found.sorted()) {
      if (problem.severity == Severity::kError) absl::StrAppend(&problems, "\n  ", problem.message);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(what, ", but is not valid. Do overrides name files from another folder?", problems));
  }
  const TunedLayout figures = FiguresOf(*plan);
  if (figures.seconds != layout.seconds || figures.memory != layout.memory) {
    return absl::InternalError(absl::StrCat(what, ", but has another time or memory than the layout that was found: ",
                                            SecondsText(figures.seconds), ", ", BytesText(figures.memory)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLayoutText(const std::string& path, const std::string& text, const TunedLayout& layout) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipeText(text, path, problems);
  return CheckFigures(recipe ? CompileRecipe(*recipe, problems) : std::nullopt, problems, layout, path + " was made");
}

absl::Status WriteLayoutRecipe(const std::string& path, const std::string& text, const TunedLayout& layout) {
  const absl::Status status = CheckLayoutText(path, text, layout);
  return status.ok() ? WriteNamedFile(path, text) : status;
}

}  // namespace planwright
