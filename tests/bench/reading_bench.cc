// `./dev bench reading [SECONDS]`: whether reading holds up steps of so many seconds (1), and how equal the lanes of an
// encoder are. Makes shards of JPEG photos in a temporary folder, makes their index, and reads them as a rank does
// (BatchReader, ReadAhead), while a thread computes for as long as a step takes. Fails if steps waited for samples for
// 1 % of their time or more, or if balance does not halve what the fullest lane has beyond the mean.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

// After <cstdio>: it needs FILE and size_t, and includes nothing.
#include <jpeglib.h>

#include "executor/data/batch_reader.h"
#include "executor/data/read_ahead.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/index_files.h"
#include "tests/data/samples/data_folder.h"

namespace planwright::executor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPhotos = 200, kPatch = 16;

// Of this thread: what other programs on the machine take is not in it.
double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Waves and noise, so that the file has about the bytes of a photo.
std::string Photo(int width, int height, std::mt19937& random) {
  std::vector<uint8_t> rows(static_cast<size_t>(3 * width * height));
  const double waves = 2 + static_cast<double>(random() % 9);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < 3 * width; ++x) {
      const double wave = std::sin(waves * x / width) + std::cos(waves * y / height);
      rows[static_cast<size_t>(y) * 3 * width + x] =
          static_cast<uint8_t>(128 + 40 * wave + static_cast<double>(random() % 24));
    }
  }
  jpeg_compress_struct picture;
  jpeg_error_mgr errors;
  picture.err = jpeg_std_error(&errors);
  jpeg_create_compress(&picture);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&picture, &bytes, &size);
  picture.image_width = static_cast<JDIMENSION>(width), picture.image_height = static_cast<JDIMENSION>(height);
  picture.input_components = 3, picture.in_color_space = JCS_RGB;
  jpeg_set_defaults(&picture);
  jpeg_set_quality(&picture, 85, TRUE);
  jpeg_start_compress(&picture, TRUE);
  while (picture.next_scanline < picture.image_height) {
    JSAMPROW row = rows.data() + static_cast<size_t>(picture.next_scanline) * 3 * width;
    jpeg_write_scanlines(&picture, &row, 1);
  }
  jpeg_finish_compress(&picture);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&picture);
  std::free(bytes);
  return file;
}

// Photos of 160 x 120 to 1920 x 1080 pixels, each with a text, and texts alone.
void WriteShards(const std::string& folder) {
  std::mt19937 random(5);
  const std::vector<std::pair<int, int>> sizes = {{160, 120}, {320, 240},  {640, 480},
                                                  {480, 640}, {1024, 768}, {1920, 1080}};
  int64_t bytes = 0;
  for (int shard = 0; shard < 4; ++shard) {
    std::string members;
    for (int i = 0; i < kPhotos / 4; ++i) {
      const std::string name = "d" + std::to_string(shard) + "_" + std::to_string(i);
      const auto [width, height] = sizes[random() % sizes.size()];
      if (i % 5 != 0) members += TarMemberOf(name + ".jpg", Photo(width, height, random));
      members += TarMemberOf(name + ".txt", std::string(40 + random() % 300, 'x'));
    }
    bytes += static_cast<int64_t>(members.size());
    std::ofstream(folder + "/photos-" + std::to_string(shard) + ".tar", std::ios::binary) << members << kTarEnd;
  }
  std::printf("%d documents with JPEG photos of 160 x 120 to 1920 x 1080 pixels, %.1f MB\n", kPhotos,
              static_cast<double>(bytes) / 1e6);
}

Plan MakePlan(const std::string& folder, int64_t global_samples, int64_t block) {
  Plan plan;
  plan.budget.sequence_length = 2048;
  plan.budget.global_samples = global_samples, plan.budget.block_samples = block;
  plan.budget.microbatches = static_cast<int>(global_samples / block);
  Module encoder, language;
  encoder.name = "encoder", language.name = "language";
  plan.modules = {encoder, language};
  DataPlan& data = plan.data;
  data = OneSource(folder, "photos");
  data.seed = 3, data.window = 8, data.min_patches = 64, data.max_patches = 4096, data.resize = "bicubic";
  data.encoders = {{"encoder", 256, kPatch, 2, 2048}};
  return plan;
}

std::shared_ptr<const SampleSource> Open(const Plan& plan) {
  absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  if (source.ok()) return *std::move(source);
  std::fprintf(stderr, "%s\n", std::string(source.status().message()).c_str());
  std::exit(1);
}

// A rank of encoder and language model with one lane of each.
struct Step {
  Instruction images, tokens;
  std::vector<DataRead> reads;
  explicit Step(const Plan& plan) {
    images.kind = OpKind::kReadImages, tokens.kind = OpKind::kReadTokens;
    for (int microbatch = 0; microbatch < plan.budget.microbatches; ++microbatch) {
      reads.push_back({&images, {.plan = &plan, .module = &plan.modules[0], .microbatch = microbatch}});
      reads.push_back({&tokens, {.plan = &plan, .module = &plan.modules[1], .microbatch = microbatch}});
    }
  }
};

bool StepsWait(const std::string& folder, double seconds) {
  constexpr int64_t kSteps = 20;
  const Plan plan = MakePlan(folder, 8, 2);
  const std::shared_ptr<const SampleSource> source = Open(plan);
  const auto slots = std::make_shared<SampleSlots>(plan, source);
  const double alone = ProcessorSeconds();
  const ThreadLimit one_thread(1);
  int64_t photos = 0;
  for (int64_t number = 0; number < 40; ++number) {
    const absl::StatusOr<Sample> sample = source->Get(number, SampleParts::kAll);
    photos += sample.ok() ? static_cast<int64_t>(sample->images[0].size()) : 0;
  }
  const double one = ProcessorSeconds() - alone;
  std::printf("one core: %.2f s for the samples of a step, %.1f photos/s\n",
              one / 40 * static_cast<double>(plan.budget.global_samples), static_cast<double>(photos) / one);

  const Step step(plan);
  const ReadingLimits limits = ReadingLimits::OfRank();
  BatchReader reader(plan, at::kBFloat16, source, slots, limits);
  ReadAhead ahead([&](const Instruction& i, const CallContext& call) { return reader.Read(i, call); });
  reader.Begin(step.reads, 0, kSteps);
  ahead.Begin(step.reads, 0, kSteps);
  double waited = 0, all = 0, first = 0;
  for (int64_t number = 0; number <= kSteps; ++number) {
    const auto begin = Clock::now();
    for (DataRead read : step.reads) {
      read.call.step = number;
      ahead.Take(*read.instruction, read.call);
      const auto computes = Clock::now();
      while (SecondsSince(computes) < seconds / static_cast<double>(step.reads.size())) {
      }
    }
    const double wait = std::chrono::duration<double>(ahead.WaitedIn(number)).count();
    if (number == 0) {  // nothing was read before it
      first = wait;
      continue;
    }
    waited += wait, all += SecondsSince(begin);
  }
  std::printf(
      "%ld steps of %.2f s with %d decoding threads: data_wait %.4f s (%.3f %%), %.3f s in the first step; "
      "samples held %.1f MB at most, limit %.1f MB\n",
      static_cast<long>(kSteps), seconds, limits.threads, waited, 100 * waited / all, first,
      static_cast<double>(reader.held().most) / 1e6, static_cast<double>(limits.bytes) / 1e6);
  return waited >= 0.01 * all;
}

// The fullest lane over the mean of all, in patches of a step: the mean of many steps. Counted by what each lane reads.
double FullestLane(const std::string& folder, int lanes, const std::string& balance) {
  constexpr int64_t kSteps = 50;
  Plan plan = MakePlan(folder, 64, 8);
  plan.data.balance = balance;
  const std::shared_ptr<const SampleSource> source = Open(plan);
  Instruction sizes;
  sizes.kind = OpKind::kReadImageSizes;
  std::vector<std::vector<int64_t>> patches(kSteps, std::vector<int64_t>(static_cast<size_t>(lanes)));
  for (int lane = 0; lane < lanes; ++lane) {
    std::vector<DataRead> reads;
    for (int m = 0; m < plan.budget.microbatches; ++m) {
      reads.push_back(
          {&sizes, {.plan = &plan, .module = &plan.modules[0], .lanes = lanes, .lane = lane, .microbatch = m}});
    }
    BatchReader reader(plan, at::kBFloat16, source, std::make_shared<SampleSlots>(plan, source));
    reader.Begin(reads, 0, kSteps - 1);
    for (int64_t step = 0; step < kSteps; ++step) {
      for (DataRead read : reads) {
        read.call.step = step;
        const at::Tensor grid = reader.Read(*read.instruction, read.call)[0];
        const int64_t* size = grid.const_data_ptr<int64_t>();
        for (int64_t i = 0; i < grid.size(0); ++i) patches[step][lane] += size[2 * i] * size[2 * i + 1];
      }
    }
  }
  double sum = 0;
  for (const std::vector<int64_t>& of_step : patches) {
    double all = 0;
    for (int64_t lane : of_step) all += static_cast<double>(lane);
    sum += static_cast<double>(*std::max_element(of_step.begin(), of_step.end())) * lanes / all;
  }
  return sum / kSteps;
}

int Main(double seconds) {
  std::string folder = (fs::temp_directory_path() / "planwright_reading_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  WriteShards(folder);
  const auto begin = Clock::now();
  if (const auto indexed = UpdateIndex(MakePlan(folder, 8, 2).data, {}, {}); !indexed.ok()) {
    std::fprintf(stderr, "%s\n", std::string(indexed.status().message()).c_str());
    return 1;
  }
  std::printf("index made in %.3f s\n", SecondsSince(begin));
  bool bad = StepsWait(folder, seconds);
  for (int lanes : {2, 4}) {
    const double plain = FullestLane(folder, lanes, "none"), balanced = FullestLane(folder, lanes, "images");
    std::printf("%d encoder lanes, 64 samples a step, 8 a microbatch: fullest lane over mean %.4f, with balance %.4f\n",
                lanes, plain, balanced);
    bad |= balanced - 1 > (plain - 1) / 2;
  }
  fs::remove_all(folder);
  return bad ? 1 : 0;
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) { return planwright::executor::Main(argc > 1 ? std::atof(argv[1]) : 1); }
