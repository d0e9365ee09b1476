// Measures the times that docs/limits.md promises: how long `plan` takes for any input, and how soon the launcher ends
// the others when a rank dies. No test judges seconds, because machines differ. Each input is run as a process. Exit
// status 0: every promise holds.
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/cli/any_bytes.h"
#include "tests/cli/limited_run.h"
#include "tests/support/folders.h"
#include "tests/support/longest_recipes.h"
#include "tests/support/supervise_commands.h"

namespace planwright::testing {
namespace {

// Promises of docs/limits.md.
constexpr double kMostSeconds = 1, kMostMegabytes = 256, kMostSecondsToEnd = 2;
constexpr rlim_t kMemory = rlim_t{256} << 20;  // the process is not given more
constexpr int kRuns = 5;

bool all_kept = true;
// "yes" or "NO" for the tables; notes a promise that is not kept for the exit status.
const char* Verdict(bool kept) {
  all_kept &= kept;
  return kept ? "yes" : "NO";
}

// The run of median time of kRuns runs, with the largest memory of all of them.
LimitedEnd Measure(const std::vector<std::string>& arguments) {
  std::vector<LimitedEnd> ends;
  for (int i = 0; i < kRuns; ++i) ends.push_back(RunLimited(InBuild("bin/plan"), arguments, kMemory));
  std::sort(ends.begin(), ends.end(), [](const LimitedEnd& a, const LimitedEnd& b) { return a.seconds < b.seconds; });
  LimitedEnd median = ends[kRuns / 2];
  for (const LimitedEnd& end : ends) median.megabytes = std::max(median.megabytes, end.megabytes);
  return median;
}

// The program ended by itself with a documented status: 0 success, 1 or 2 refused.
bool Exited(const LimitedEnd& end) { return WIFEXITED(end.status) && WEXITSTATUS(end.status) <= 2; }

// Runs `body` in a process of its own, and returns its exit status. A forked child starts with the memory of its
// parent, so this process must stay small: its memory would count as memory of the programs that it measures.
int InAnotherProcess(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) std::_Exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

// The most microbatches that fit a plan of this shape, computed in another process.
int64_t MicrobatchesOf(const LongShape& shape) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) std::exit(1);
  InAnotherProcess([&] {
    const int64_t most = MostMicrobatches(shape);
    return write(pipe_ends[1], &most, sizeof most) == sizeof most ? 0 : 1;
  });
  int64_t most = 0;
  if (read(pipe_ends[0], &most, sizeof most) != sizeof most) std::exit(1);
  close(pipe_ends[0]), close(pipe_ends[1]);
  return most;
}

void LongestRecipes(const std::string& folder) {
  std::printf("%-30s%14s%10s  %-22s%-22s%s\n", "longest recipes", "microbatches", "plan, MB", "validate recipe",
              "validate plan", "under 1 s, 256 MB");
  for (const LongShape& shape : LongestShapes()) {
    const int64_t microbatches = MicrobatchesOf(shape);
    std::vector<std::string> arguments = {"validate", LongBase()};
    for (std::string& text : LongOverrides(shape, microbatches)) arguments.push_back(std::move(text));
    const LimitedEnd recipe = Measure(arguments);
    const std::string file = folder + "/plan.json";
    arguments.front() = "compile";
    arguments.insert(arguments.end(), {"-o", file});
    RunLimited(InBuild("bin/plan"), arguments, kMemory);
    const LimitedEnd plan = Measure({"validate", file});
    bool kept = true;
    for (const LimitedEnd& end : {recipe, plan})
      kept &= end.status == 0 && end.seconds < kMostSeconds && end.megabytes < kMostMegabytes;
    std::printf("%-30s%14lld%10.1f  %6.3f s %6.1f MB    %6.3f s %6.1f MB    %s\n", shape.name.c_str(),
                static_cast<long long>(microbatches), static_cast<double>(std::filesystem::file_size(file)) / 1e6,
                recipe.seconds, recipe.megabytes, plan.seconds, plan.megabytes, Verdict(kept));
  }
}

void AnyBytes(const std::string& folder) {
  std::printf("\n%-30s%8s%11s%11s  %s\n", "any bytes", "inputs", "slowest", "under 1 s", "which");
  for (const InputKind& kind : InputKinds()) {
    std::filesystem::create_directories(folder + "/" + kind.name);
    int inputs = 0;
    double slowest = 0;
    std::string which;
    bool ended = true;
    kind.make(folder + "/" + kind.name, [&](const AnyInput& input) {
      ++inputs;
      LimitedEnd end = RunLimited(InBuild("bin/plan"), input.arguments, kMemory);
      if (end.seconds > kMostSeconds / 4) end = Measure(input.arguments);
      ended &= Exited(end);
      if (end.seconds < slowest) return;
      slowest = end.seconds;
      which = input.what;
      if (which.empty()) {
        for (const std::string& argument : input.arguments)
          which += std::filesystem::path(argument).filename().string() + " ";
      }
    });
    std::replace_if(
        which.begin(), which.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
    std::printf("%-30s%8d%9.3f s%11s  %.70s\n", kind.name, inputs, slowest, Verdict(ended && slowest < kMostSeconds),
                which.c_str());
    std::fflush(stdout);
    std::filesystem::remove_all(folder + "/" + kind.name);
  }
}

// The last of 8 ranks fails when the others are up. Once the others end when they are told; once they ignore it, which
// takes longest.
void DyingRanks(const std::string& folder) {
  constexpr int kRanks = 8;
  const std::vector<std::vector<std::string>> others = {{"err=ready"}, {"ignore_end"}};
  std::printf("\n%-30s%18s%11s\n", "when a rank fails, the others", "are gone after", "under 2 s");
  for (const std::vector<std::string>& words : others) {
    std::vector<std::string> last = {InBuild("bin/fake_rank")};
    std::vector<Command> commands;
    for (int rank = 0; rank + 1 < kRanks; ++rank) {
      const std::string file = folder + "/rank" + words.front() + std::to_string(rank);
      std::vector<std::string> arguments = {InBuild("bin/fake_rank")};
      arguments.insert(arguments.end(), words.begin(), words.end());
      arguments.insert(arguments.end(), {"pid=" + file, "sleep"});
      commands.push_back({arguments, {"PATH=/bin"}});
      last.push_back("await=" + file);
    }
    last.push_back("exit=3");
    commands.push_back({last, {"PATH=/bin"}});
    const auto start = std::chrono::steady_clock::now();
    const bool ok = SuperviseCommands(commands, [](int, bool, std::string_view) {}).ok();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%-30s%16.3f s%11s\n", words.front() == "ignore_end" ? "ignore the signal" : "end at the signal",
                seconds, Verdict(ok && seconds < kMostSecondsToEnd));
  }
}

int Run() {
  std::string folder = (std::filesystem::temp_directory_path() / "planwright_limits_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  LongestRecipes(folder);
  AnyBytes(folder);
  DyingRanks(folder);
  std::filesystem::remove_all(folder);
  return all_kept ? 0 : 1;
}

}  // namespace
}  // namespace planwright::testing

int main() { return planwright::testing::Run(); }
