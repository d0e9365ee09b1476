// Trains every layout of the tests with two builds, three steps in fp64, and compares what they leave byte for byte:
// metrics without times, and all tensors of --probe. For changes that must not change a bit, and to say exactly which
// layouts a change touches. Not a test: it needs the build of before.
//
//   same_bits OLD_BIN [PART...]
//       OLD_BIN: the folder of the other build's `plan`. PART: only layouts with one of these in their names.
//
// A line for each layout: same, differs (with the files and the largest distance of a tensor), or not run by both. Exit
// code 0: all are the same.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace {

namespace fs = std::filesystem;
using namespace planwright::testing;
using nlohmann::json;

constexpr int kSteps = 3;

// The names, types, shapes and bytes of tensors. Of a safetensors file all but what its header says for people: there,
// parts name the values of blocks, which builds may name as they like.
std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (path.extension() != ".safetensors") return bytes;
  uint64_t size = 0;
  memcpy(&size, bytes.data(), sizeof size);
  json header = json::parse(bytes.substr(sizeof size, size));
  header.erase("__metadata__");
  return header.dump() + bytes.substr(sizeof size + size);
}

// What a step says of the training, as it is written: the same text is the same bits. Times, rates and memory are the
// machine's.
std::vector<std::string> CurveOf(const fs::path& metrics) {
  std::vector<std::string> steps;
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    const json all = json::parse(line);
    json kept;
    const std::vector<const char*> of_step = {"step",
                                              "loss",
                                              "aux_loss",
                                              "grad_norm",
                                              "learning_rate",
                                              "module_grad_norms",
                                              "bridge_mean_square",
                                              "routing",
                                              "skipped"},
                                   of_evaluation = {"step", "evaluation"};
    for (const char* name : all.contains("evaluation") ? of_evaluation : of_step) kept[name] = all.at(name);
    steps.push_back(kept.dump());
  }
  return steps;
}

std::string DistanceText(const fs::path& a, const fs::path& b) {
  const Tensors left = ReadTensors(a), right = ReadTensors(b);
  double worst = 0;
  std::string where = "other tensors";
  for (const auto& [name, tensor] : left) {
    const auto other = right.find(name);
    if (other == right.end()) return where;
    const double distance = Distance(tensor, other->second);
    if (distance >= worst) {
      worst = distance;
      where = name;
    }
  }
  char text[64];
  snprintf(text, sizeof text, " off by %.1e", worst);
  return where + text;
}

// What differs between two runs; empty: nothing does.
std::vector<std::string> DifferencesOf(const fs::path& before, const fs::path& after) {
  std::vector<std::string> differences;
  if (CurveOf(before / "run/metrics.jsonl") != CurveOf(after / "run/metrics.jsonl")) differences.push_back("metrics");
  std::set<fs::path> names;
  for (const fs::path& run : {before, after}) {
    for (const auto& file : fs::recursive_directory_iterator(run / "probe")) {
      if (file.is_regular_file()) names.insert(fs::relative(file.path(), run / "probe"));
    }
  }
  for (const fs::path& name : names) {
    const fs::path a = before / "probe" / name, b = after / "probe" / name;
    if (!fs::exists(a) || !fs::exists(b)) {
      differences.push_back(name.string() + " of one alone");
    } else if (BytesOf(a) != BytesOf(b)) {
      differences.push_back(name.stem().string() +
                            (name.extension() == ".safetensors" ? ": " + DistanceText(a, b) : ""));
    }
  }
  return differences;
}

bool Train(const Layout& layout, const std::string& binaries, const fs::path& folder) {
  fs::create_directories(folder);
  LaunchOptions options;
  options.recipe = layout.recipe;
  options.overrides = Join({"precision.params=fp64"}, layout.training, layout.overrides);
  options.steps = kSteps;
  options.binaries = binaries;
  options.run_dir = folder / "run";
  options.probe = folder / "probe";
  const TrainingRun run = Launch(options);
  if (run.exit_code != 0) printf("%s", run.output.c_str());
  return run.exit_code == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: same_bits OLD_BIN [PART...]\n");
    return 2;
  }
  const std::vector<std::string> parts(argv + 2, argv + argc);
  const fs::path folder = fs::temp_directory_path() / ("same_bits_" + std::to_string(getpid()));
  size_t same = 0, all = 0;
  std::vector<Layout> layouts = AllLayouts();
  for (const std::vector<Layout>& more : {DecoderLayouts(), AdapterLayouts()})
    layouts.insert(layouts.end(), more.begin(), more.end());
  for (const Layout& layout : layouts) {
    const bool wanted = parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
                          return layout.name.find(part) != std::string::npos;
                        });
    if (!wanted) continue;
    ++all;
    const bool ran = Train(layout, argv[1], folder / "before") && Train(layout, "", folder / "after");
    const auto differences = ran ? DifferencesOf(folder / "before", folder / "after") : std::vector<std::string>();
    same += ran && differences.empty();
    printf("%-40s %s", layout.name.c_str(), !ran ? "not run by both" : differences.empty() ? "same" : "differs:");
    for (const std::string& difference : differences) printf(" %s;", difference.c_str());
    printf("\n");
    fflush(stdout);
    fs::remove_all(folder);
  }
  printf("%zu of %zu layouts are the same to the bit\n", same, all);
  return same == all && all > 0 ? 0 : 1;
}
