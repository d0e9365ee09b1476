#include "planner/report/step_file.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "planner/plan/json_text.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

constexpr double kLargest = 1e300;  // differences of such numbers are finite

std::optional<double> Finite(const Json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::abs(value) < kLargest ? std::optional(value) : std::nullopt;
}

// A whole number from 1 that a double holds exactly; 0: there is none.
int64_t Count(const Json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_number_integer()) return 0;
  const double value = found->get<double>();
  return value >= 1 && value <= 9e15 ? static_cast<int64_t>(value) : 0;
}

std::optional<StepPoint> ReadStep(const Json& record) {
  if (!record.is_object()) return std::nullopt;
  StepPoint point{.step = Count(record, "step"), .samples = Count(record, "consumed_samples")};
  if (point.step == 0 || point.samples == 0) return std::nullopt;
  point.loss = Finite(record, "loss");
  point.grad_norm = Finite(record, "grad_norm");
  point.learning_rate = Finite(record, "learning_rate");
  if (const std::optional<double> seconds = Finite(record, "step_seconds"); seconds && *seconds > 0)
    point.seconds = *seconds;
  if (const auto skipped = record.find("skipped"); skipped != record.end()) point.skipped = *skipped == true;
  return point;
}

// The end of a file, from a line's begin.
absl::StatusOr<std::string> ReadTail(const std::string& path, size_t most) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (most == 0 || error || size <= most) return ReadWholeFile(path, kLargestLog);
  if (!std::filesystem::is_regular_file(path, error)) return absl::UnavailableError(path + " is not a plain file");
  std::ifstream file(path, std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(most), std::ios::end);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  if (file.bad()) return absl::UnavailableError("cannot read " + path);
  text.resize(static_cast<size_t>(file.gcount()));
  const size_t line = text.find('\n');
  return line == std::string::npos ? "" : text.substr(line + 1);
}

}  // namespace

absl::StatusOr<StepFile> ReadSteps(const std::string& path, size_t most) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::NotFoundError("there is no file " + path);
  const absl::StatusOr<std::string> text = ReadTail(path, most);
  if (!text.ok()) return text.status();
  StepFile file;
  int64_t line = 0;
  for (size_t at = 0, end; at < text->size(); at = end + 1) {
    end = text->find('\n', at);
    if (end == std::string::npos) {
      file.cut_off = true;
      break;
    }
    ++line;
    const std::optional<StepPoint> point =
        ReadStep(ParseJson(std::string_view(*text).substr(at, end - at), kStepLineJson).value_or(Json()));
    if (point && (file.steps.empty() || point->samples > file.steps.back().samples)) {
      file.steps.push_back(*point);
    } else if (file.unreadable++ == 0) {
      file.first_unreadable = line;
    }
  }
  return file;
}

}  // namespace planwright
