// `./dev bench weights [FOLDER]`: how long 8 ranks take for the weights of a folder of 6 GB, one rank after the other
// in this process, beside `cat` of the same files. The folder is made in FOLDER, or where temporary files are, and
// removed. Fails if a rank reads other bytes than `plan weights` says.
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "executor/checkpoint/initial_weights.h"
#include "planner/base/threads/threads.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/state/weights/initial_pieces.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShard = int64_t{1} << 30;

// Seconds by the clock, and of processors: of this process and of those that it has waited for.
struct Times {
  double wall = 0, processors = 0;
  Times& operator+=(const Times& other) {
    wall += other.wall;
    processors += other.processors;
    return *this;
  }
};

double ProcessorSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return seconds;
}

Times TimesOf(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  const double processors = ProcessorSeconds();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          ProcessorSeconds() - processors};
}

void Tell(const std::string& what, int64_t bytes, const Times& times, const char* more = "") {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  std::printf("%s: %.2f GB in %.2f s (%.2f GB/s), %.2f s of processors%s\n", what.c_str(), gigabytes, times.wall,
              gigabytes / times.wall, times.processors, more);
  std::fflush(stdout);
}

// Shards of random bf16 numbers.
class FolderWriter {
 public:
  explicit FolderWriter(std::string folder) : folder_(std::move(folder)), block_(size_t{1} << 23) {
    std::mt19937_64 random(1);
    for (uint16_t& number : block_) number = static_cast<uint16_t>(random()) & 0xbfff;  // finite
  }
  void Add(const std::string& name, const std::vector<int64_t>& shape) {
    if (bytes_ > kShard) Finish();
    const int64_t bytes = ElementsOf(shape) * 2;
    header_[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes_, bytes_ + bytes}}};
    index_[name] = FileName();
    bytes_ += bytes;
  }
  int64_t Finish() {
    const std::string text = header_.dump();
    const uint64_t length = text.size();
    std::ofstream file(folder_ + "/" + FileName(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << text;
    for (int64_t left = bytes_; left > 0; left -= static_cast<int64_t>(block_.size()) * 2)
      file.write(reinterpret_cast<const char*>(block_.data()), std::min<int64_t>(left, block_.size() * 2));
    all_ += bytes_;
    bytes_ = 0;
    header_ = nlohmann::ordered_json::object();
    ++files_;
    std::ofstream(folder_ + "/model.safetensors.index.json") << nlohmann::ordered_json{{"weight_map", index_}}.dump();
    return all_;
  }

 private:
  std::string FileName() const { return "part-" + std::to_string(files_) + ".safetensors"; }

  const std::string folder_;
  std::vector<uint16_t> block_;
  nlohmann::ordered_json header_, index_;
  int64_t bytes_ = 0, all_ = 0;
  int files_ = 0;
};

// The 20-layer model with fewer experts, frozen but for the projector, so that a rank has no optimizer state.
std::optional<Plan> PlanFrom(const std::string& folder) {
  Diagnostics problems;
  const std::optional<Recipe> recipe =
      ReadRecipe(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"),
                 {"models.nemotron_hybrid_moe_20l.moe.experts=16", "models.nemotron_hybrid_moe_20l.vocabulary=65536",
                  "modules.language.train={backbone: frozen}",
                  "modules.radio_encoder.train={backbone: frozen, projection: trained}", "cluster.gpu=none",
                  "initialize.from=" + folder},
                 problems);
  return recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
}

int Run(const std::string& folder) {
  const std::optional<Plan> plan = PlanFrom(folder);
  if (!plan) return std::fprintf(stderr, "the recipe is not valid\n"), 1;
  FolderWriter writer(folder);
  for (const Module& module : plan->modules) {
    for (const Parameter& parameter : module.parameters) {
      for (int64_t i = 0; i < std::max<int64_t>(parameter.experts, 1); ++i)
        writer.Add(ExpertName(parameter.file_name, parameter.experts > 0 ? i : -1), parameter.shape);
    }
  }
  const int64_t bytes = writer.Finish();
  const std::string cat = "cat " + folder + "/*.safetensors > /dev/null";
  int failed = 0;
  for (int again = 0; again < 2; ++again) {
    Tell("cat", bytes, TimesOf([&] { failed |= std::system(cat.c_str()); }));
  }
  WeightsFit fit;
  std::vector<RankReads> table;
  const Times headers = TimesOf([&] {
    fit = FitWeights(*plan);
    if (fit.fits()) table = ReadTable(*plan, fit);
  });
  if (!fit.fits()) return std::fprintf(stderr, "%s\n", std::string(fit.status().message()).c_str()), 1;
  std::printf("headers and the table of reads: %.3f s, %.3f s of processors\n", headers.wall, headers.processors);
  Times all;
  int64_t read = 0;
  const int threads = ThreadsOfRank();
  for (const RankReads& row : table) {
    for (int rank : row.ranks) {
      int64_t of_rank = 0;
      Times times;
      for (const Module& module : plan->modules) {
        if (!module.grid.contains(rank)) continue;
        executor::ModuleState state(*plan, module, rank, at::kCPU);
        for (const executor::SlotTensors& slot : state.storages()) {
          if (slot.parameter.defined()) at::Tensor(slot.parameter).fill_(1);  // its pages are there
        }
        times += TimesOf([&] {
          auto weights = executor::InitialWeights::Open(*plan, rank, {});
          if (!weights.ok() || !(*weights)->Load(state, threads).ok()) failed = 1;
          if (weights.ok()) of_rank += (*weights)->bytes_read();
        });
      }
      Tell("rank " + std::to_string(rank) + ", " + std::to_string(threads) + " threads", of_rank, times,
           of_rank == row.bytes[0] ? "" : ", not what the table says");
      failed |= of_rank == row.bytes[0] ? 0 : 1;
      all += times;
      read += of_rank;
    }
  }
  Tell("all ranks", read, all);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace planwright

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  at::set_num_threads(1);  // as in a rank
  std::string pattern = (argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path()) / "planwright_weights_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return std::perror(pattern.c_str()), 1;
  const int status = planwright::Run(pattern);
  fs::remove_all(pattern);
  return status;
}
