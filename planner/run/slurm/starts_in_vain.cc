#include "planner/run/slurm/starts_in_vain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"

namespace planwright {

absl::StatusOr<int> CountStart(const std::string& run_dir, int64_t newest_step) {
  const std::string path = run_dir + "/starts_in_vain";
  int64_t step = 0, starts = 0;
  if (const absl::StatusOr<std::string> text = ReadWholeFile(path, kStartsJson.bytes); text.ok()) {
    const nlohmann::json last = ParseJson(*text, kStartsJson).value_or(nlohmann::json());
    if (last.is_object() && last.value("step", nlohmann::json()).is_number_integer() &&
        last.value("starts", nlohmann::json()).is_number_integer()) {
      step = last["step"];
      starts = std::clamp<int64_t>(last["starts"], 0, kMostStartsInVain);
    }
  }
  starts = newest_step > step ? 0 : starts + 1;
  const absl::Status written =
      WriteFileAtomically(path, absl::StrCat("{\"step\": ", newest_step, ", \"starts\": ", starts, "}\n"));
  if (!written.ok()) return written;
  return static_cast<int>(starts);
}

absl::StatusOr<int> CountLostNode(const std::string& run_dir, const std::string& job) {
  constexpr int64_t kMost = 1000000000;
  const std::string path = run_dir + "/lost_nodes";
  int64_t lost = 0;
  if (const absl::StatusOr<std::string> text = ReadWholeFile(path, kStartsJson.bytes); text.ok()) {
    const nlohmann::json last = ParseJson(*text, kStartsJson).value_or(nlohmann::json());
    const bool same = last.is_object() && last.value("job", nlohmann::json()) == nlohmann::json(job);
    if (same && last.value("starts", nlohmann::json()).is_number_integer())
      lost = std::clamp<int64_t>(last["starts"], 0, kMost);
  }
  ++lost;
  const nlohmann::ordered_json now = {{"job", job}, {"starts", lost}};
  const absl::Status written = WriteFileAtomically(path, JsonText(now) + "\n");
  if (!written.ok()) return written;
  return static_cast<int>(lost);
}

}  // namespace planwright
