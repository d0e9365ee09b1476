// What reading pictures costs: a JPEG of 768 x 1024 pixels, quality 85, beside a plain loop of libjpeg on the same
// cores: decoded alone, resized with each filter, and the whole path to patches. Run by `./dev bench pictures`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

// It needs <cstdio>.
#include <jpeglib.h>

#include "planner/base/threads/threads.h"
#include "planner/data/pictures/patches.h"
#include "planner/data/pictures/picture_rows.h"

namespace planwright {
namespace {

constexpr int64_t kHeight = 768, kWidth = 1024;

// Waves of all lengths, edges and a little noise: about as many bytes as a photo has.
std::string MakeJpeg() {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &bytes, &count);
  jpeg.image_width = kWidth;
  jpeg.image_height = kHeight;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 85, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 7);
  std::vector<unsigned char> row(3 * kWidth);
  for (int64_t y = 0; y < kHeight; ++y) {
    for (int64_t x = 0; x < kWidth; ++x) {
      const double grain = noise(random);
      for (int64_t c = 0; c < 3; ++c) {
        const double wave = std::sin(static_cast<double>(x) / (40 + 9 * c)) + std::cos(static_cast<double>(y) / 23) +
                            std::sin(static_cast<double>(x * y) / 9000);
        const double edge = (x / 90 + y / 70) % 2 == 0 ? 20 : -20;
        row[3 * x + c] = static_cast<unsigned char>(std::clamp(128 + 25 * wave + edge + grain, 0.0, 255.0));
      }
    }
    unsigned char* start = row.data();
    jpeg_write_scanlines(&jpeg, &start, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(bytes), count);
  std::free(bytes);
  return file;
}

// As the examples of libjpeg read a file: rows into one buffer, which is dropped.
void PlainLoop(const std::string& file) {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg_start_decompress(&jpeg);
  std::vector<unsigned char> row(3 * kWidth);
  unsigned char* start = row.data();
  while (jpeg.output_scanline < jpeg.output_height) jpeg_read_scanlines(&jpeg, &start, 1);
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
}

// Seconds of a core's time for a picture, while `threads` threads do the same: the median of five rounds. Not of the
// clock: what else the machine does would count.
double SecondsOf(const std::function<void()>& once, int threads) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round) {
    std::vector<double> each(threads);
    std::vector<std::thread> workers;
    for (int thread = 0; thread < threads; ++thread) {
      workers.emplace_back([&, thread] {
        const double begin = now();
        int pictures = 0;
        double used = 0;
        for (; used < 0.3; ++pictures) {
          once();
          used = now() - begin;
        }
        each[thread] = used / pictures;
      });
    }
    for (std::thread& worker : workers) worker.join();
    rounds.push_back(*std::max_element(each.begin(), each.end()));
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

template <typename Filter>
std::function<void()> Path(const std::string& file, const PatchGrid& grid) {
  return [&file, grid] {
    if (!PatchesOfPicture<Filter>(file, grid, 16).ok()) std::abort();
  };
}

int Main() {
  const std::string file = MakeJpeg();
  struct Row {
    std::string what;
    std::function<void()> once;
  };
  std::vector<Row> table = {{"plain loop of libjpeg", [&] { PlainLoop(file); }}, {"decoded, no resize", [&] {
                                                                                    if (!CheckPicture(file).ok())
                                                                                      std::abort();
                                                                                  }}};
  for (const int64_t patches : {256, 1024, 3072, 6144}) {
    const PatchGrid grid = DynamicResolution(kHeight, kWidth, 16, patches < 3072 ? 4 : patches,
                                             patches < 3072 ? patches : 13312, 2, GridRule::kCeil);
    const std::string size = " to " + std::to_string(grid.rows * 16) + " x " + std::to_string(grid.cols * 16);
    table.push_back({"patches, bilinear" + size, Path<Bilinear>(file, grid)});
    table.push_back({"patches, bicubic" + size, Path<Bicubic>(file, grid)});
  }
  const int cores = ThreadsOfRank();
  std::printf("a JPEG of %d x %d pixels, %zu bytes\n", static_cast<int>(kHeight), static_cast<int>(kWidth),
              file.size());
  std::printf("%-36s %20s %22s\n", "", "one core", (std::to_string(cores) + " cores").c_str());
  std::printf("%-36s %8s %11s %10s %11s\n", "", "ms", "of plain", "a second", "of plain");
  double plain = 0, plain_all = 0;
  for (const Row& row : table) {
    const double one = SecondsOf(row.once, 1), all = SecondsOf(row.once, cores);
    if (plain == 0) plain = one, plain_all = all;
    std::printf("%-36s %8.2f %10.2fx %10.0f %10.2fx\n", row.what.c_str(), one * 1e3, one / plain, cores / all,
                all / plain_all);
  }
  return 0;
}

}  // namespace
}  // namespace planwright

int main() { return planwright::Main(); }
