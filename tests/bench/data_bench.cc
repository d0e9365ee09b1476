// `./dev bench data [DOCUMENTS [FOLDER]]`: what the index of many small documents costs, a million by default, each of
// an image and a short text: the time to make it, its bytes, the time and the memory of a rank that opens it, and how
// fast documents are read. The shards take 2 KB a document in FOLDER, or where temporary files are, and are removed.
// Fails if the index has other documents than were written.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "planner/base/threads/threads.h"
#include "planner/data/samples/documents.h"
#include "planner/data/samples/index_files.h"
#include "tests/data/samples/data_folder.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDocumentsOfShard = 10'000;

double SecondsOf(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Kilobytes of a field of /proc/self/status, as bytes.
int64_t StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return 1024 * std::atoll(line.substr(field.size() + 1).c_str());
  }
  return 0;
}

void Row(const std::string& what, const char* format, double number) {
  std::printf("%-52s", what.c_str());
  std::printf(format, number);
  std::printf("\n");
  std::fflush(stdout);
}

std::string ShardOf(int64_t first, int64_t end) {
  const std::string png = PngOf(8, 8, std::vector<uint8_t>(256, 90));
  std::string tar;
  for (int64_t i = first; i < end; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "%09lld", static_cast<long long>(i));
    tar += TarMemberOf(std::string(name) + ".png", png);
    tar += TarMemberOf(std::string(name) + ".txt", "a picture of the number " + std::to_string(i));
  }
  return tar + kTarEnd;
}

int Run(const std::string& folder, int64_t documents) {
  int64_t bytes = 0;
  const double written = SecondsOf([&] {
    for (int64_t first = 0; first < documents; first += kDocumentsOfShard) {
      char name[32];
      std::snprintf(name, sizeof name, "/s-%06lld.tar", static_cast<long long>(first / kDocumentsOfShard));
      const std::string shard = ShardOf(first, std::min(first + kDocumentsOfShard, documents));
      std::ofstream(folder + name, std::ios::binary) << shard;
      bytes += static_cast<int64_t>(shard.size());
    }
  });
  Row("documents", "%12.0f", static_cast<double>(documents));
  Row("bytes of the shards", "%12.0f", static_cast<double>(bytes));
  Row("seconds to write them", "%12.2f", written);
  const DataPlan data = OneSource(folder, "pictures");
  bool good = true;
  std::vector<IndexedSource> made;
  const auto update = [&](int jobs) {
    return SecondsOf([&] {
      absl::StatusOr<std::vector<IndexedSource>> result = UpdateIndex(data, {.jobs = jobs}, {});
      if (!result.ok()) std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
      good = good && result.ok() && (*result)[0].documents == documents;
      if (result.ok()) made = *std::move(result);
    });
  };
  const int cores = ThreadsOfRank();
  Row("seconds to index, 1 thread", "%12.2f", update(1));
  fs::remove_all(folder + "/data_index");
  Row("seconds to index, " + std::to_string(cores) + " threads", "%12.2f", update(cores));
  Row("seconds to see that it is up to date", "%12.3f", update(cores));
  if (!good) return 1;
  const auto index_bytes = static_cast<double>(fs::file_size(made[0].path));
  Row("bytes of the index", "%12.0f", index_bytes);
  Row("  for each document", "%12.1f", index_bytes / static_cast<double>(documents));
  const int64_t anonymous = StatusBytes("RssAnon"), of_files = StatusBytes("RssFile");
  std::unique_ptr<Documents> opened;
  const double open = SecondsOf([&] { opened = OpenDocuments(data, data.sources[0]).value(); });
  Row("milliseconds to open it", "%12.1f", 1e3 * open);
  Row("memory of its own that a rank takes for it, bytes", "%12.0f",
      static_cast<double>(StatusBytes("RssAnon") - anonymous));
  Row("memory that ranks of a machine share, bytes", "%12.0f", static_cast<double>(StatusBytes("RssFile") - of_files));
  constexpr int64_t kReads = 200'000;
  std::mt19937_64 random(1);
  int64_t tokens = 0;
  const double read = SecondsOf([&] {
    for (int64_t i = 0; i < kReads; ++i) {
      const auto document = static_cast<int64_t>(random() % static_cast<uint64_t>(documents));
      const auto text = opened->ReadText(document);
      good = good && text.ok() && opened->ReadPicture(document, 0).ok();
      if (text.ok()) tokens += static_cast<int64_t>(text->tokens.size());
    }
  });
  Row("documents read in a second, at random, 1 thread", "%12.0f", kReads / read);
  return good && tokens > 0 ? 0 : 1;
}

}  // namespace
}  // namespace planwright

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const int64_t documents = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  if (documents < 1) return std::fprintf(stderr, "usage: data_bench [DOCUMENTS [FOLDER]]\n"), 2;
  std::string pattern = (argc > 2 ? fs::path(argv[2]) : fs::temp_directory_path()) / "planwright_data_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return std::perror(pattern.c_str()), 1;
  const int status = planwright::Run(pattern, documents);
  fs::remove_all(pattern);
  return status;
}
