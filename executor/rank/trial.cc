#include "executor/rank/trial.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "executor/rank/exit.h"
#include "executor/telemetry/device_memory.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"

namespace planwright::executor {
namespace {

namespace fs = std::filesystem;

// Bytes behind a name such as "VmHWM:" in a file of /proc whose numbers are in kB; 0: it is not there.
int64_t BytesOf(const char* file, const std::string& name) {
  std::ifstream lines(file);
  std::string word;
  for (int64_t kilobytes = 0; lines >> word;) {
    if (word == name && lines >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Its first and its last bytes, as a file system that is not whole may know a file and not have it.
TriedFile Read(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  const absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  if (!file.ok()) return {0, std::string(file.status().message())};
  std::array<std::byte, 4096> bytes;
  const auto some = std::min<int64_t>(file->bytes(), bytes.size());
  const std::span<std::byte> to(bytes.data(), static_cast<size_t>(some));
  for (const int64_t begin : {int64_t{0}, file->bytes() - some}) {
    if (const absl::Status read = file->Read(begin, to); !read.ok())
      return {file->bytes(), std::string(read.message())};
  }
  return {file->bytes(), ""};
}

}  // namespace

Trial::Trial(const Assignment& assignment) : assignment_(assignment) {
  trial_.rank = assignment.rank();
  trial_.host = assignment.environment.host;
}

void Trial::Begin() {
  if (!assignment_.trial()) return;
  trial_.host_available = BytesOf("/proc/meminfo", "MemAvailable:");
  if (assignment_.environment.local_rank == 0) {
    const std::string& path = assignment_.options.trial;
    const std::string text = ValueOrExit(ReadWholeFile(path, kTrialJson.bytes));
    absl::StatusOr<TrialFiles> files = ReadTrialFiles(text);
    if (!files.ok()) ExitUnlessOk(absl::InvalidArgumentError(absl::StrCat(path, " ", files.status().message())));
    for (const std::string& one : files->paths) trial_.files.push_back(Read(one));
  }
  Write();
}

void Trial::TakeDevice([[maybe_unused]] at::Device device) {
#ifdef PLANWRIGHT_CUDA
  if (!assignment_.trial() || !device.is_cuda()) return;
  const DeviceRoom room = MeasureDeviceRoom();
  trial_.device_total = room.total, trial_.device_free = room.free;
  Write();
#endif
}

void Trial::Ready(const StartUp& start_up) {
  if (!assignment_.trial()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  trial_.ready = std::chrono::duration<double>(now).count();
  trial_.start_up = start_up.seconds();
  trial_.start_parts = start_up.parts();
  Write();
}

void Trial::Done() {
  if (!assignment_.trial()) return;
  trial_.resident = BytesOf("/proc/self/status", "VmHWM:");
  Write();
}

void Trial::Write() const {
  ExitUnlessOk(WriteFileAtomically(RankTrialPath(assignment_.options.run_dir, trial_.rank), RankTrialJson(trial_)));
}

}  // namespace planwright::executor
