#include "planner/run/measure/measure_parts.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/status_macros.h"
#include "planner/plan/expert_ops.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/measure/measurements.h"
#include "planner/run/measure/part_profile.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Empty, or in what two parts differ that must be equal.
std::string Difference(const DeviceProfile& a, const DeviceProfile& b) {
  const auto differs = [](const char* what, const std::string& x, const std::string& y) {
    return x == y ? "" : absl::StrCat("their ", what, " is ", x, " and ", y);
  };
  for (const std::string& text : {differs("device", a.device, b.device), differs("driver", a.driver, b.driver),
                                  differs("library", a.libraries, b.libraries)}) {
    if (!text.empty()) return text;
  }
  return "";
}

std::string DurationText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return whole < 60 ? absl::StrCat(whole, " s") : absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
}

// Before minutes go into the first part.
absl::Status CheckDevices(const std::vector<MeasurePart>& parts, const MeasureOptions& options) {
  for (const MeasurePart& part : parts) {
    if (options.device == "cuda" && part.plan.cluster.gpu == "none") {
      return absl::InvalidArgumentError(
          absl::StrCat(part.what,
                       ": cluster.gpu is none, so nothing says which GPU is measured with --device cuda: add "
                       "cluster.gpu=NAME after the recipe"));
    }
    const std::string one = GpuOf(parts.front().plan, options), other = GpuOf(part.plan, options);
    if (options.base) ABSL_RETURN_IF_ERROR(CheckBase(*options.base, other));
    if (one != other) {
      return absl::InvalidArgumentError(absl::StrCat("the recipes are of different devices: cluster.gpu is ", one,
                                                     " in ", parts.front().what, ", and ", other, " in ", part.what,
                                                     "; measure each device into a file of its own"));
    }
  }
  return absl::OkStatus();
}

std::string NameOf(const MeasurePart& part) {
  const std::string ranks = absl::StrCat(part.plan.world_size, part.plan.world_size == 1 ? " rank" : " ranks");
  if (part.fullest <= 0) return absl::StrCat(part.what, ", ", ranks);
  return absl::StrCat(part.what, ", ", ranks, ", ",
                      part.fullest == 1 ? "all experts alike"
                                        : absl::StrCat("the fullest experts with ", part.fullest, " times the mean"));
}

void SetInterrupted(int signal, const MeasurePart& part, Measured& measured) {
  measured.failed = Outcome{128 + signal, absl::StrCat("interrupted by signal ", signal, " between two parts")};
  measured.failed->interrupted_by = signal;
  measured.failed_part = part.what;
}

// Removes what measurements write into the folder of their parts, and the folder if nothing else is in it.
void RemoveParts(const std::string& folder) {
  constexpr size_t kDigits = 16;  // of the digest with which their names begin
  std::error_code error;
  std::vector<fs::path> parts;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string(), ending = entry->path().extension().string();
    const bool own = name.find_first_not_of("0123456789abcdef") == kDigits &&
                     (ending == ".json" || ending == ".run" || ending == ".choices" || ending == ".rounds");
    if (own) parts.push_back(entry->path());
  }
  for (const fs::path& part : parts) fs::remove_all(part, error);
  fs::remove(folder, error);  // an empty folder alone
}

// One profile of all parts. Those with made-up choices say only how much longer experts' products took than in the one
// where all experts are alike.
DeviceProfile Joined(const std::vector<MeasurePart>& parts, const std::vector<DeviceProfile>& profiles) {
  std::vector<DeviceProfile> joined;
  Measurements skews;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].fullest <= 0) joined.push_back(profiles[i]);
    if (parts[i].fullest <= 1) continue;
    for (size_t even = 0; even < parts.size(); ++even) {
      if (parts[even].fullest != 1 || parts[even].plan.digest != parts[i].plan.digest) continue;
      for (const MeasuredCompute& point : profiles[i].compute) {
        if (!UsesExpertWeights(point.kind)) continue;
        for (const MeasuredCompute& alike : profiles[even].compute) {
          if (alike.kind == point.kind && alike.flops == point.flops && alike.bytes == point.bytes)
            skews.AddSkew(point.kind, parts[i].fullest, point.seconds.median / alike.seconds.median);
        }
      }
    }
  }
  DeviceProfile merged = Merged(joined);
  skews.Fill(merged);
  return merged;
}

absl::StatusOr<Measured> MeasureInto(const std::string& folder, const std::vector<MeasurePart>& parts,
                                     const MeasureOptions& options) {
  Measured measured;
  // A signal between two runs, where nobody waits for one, must not end the program: in a job it asks to go on later.
  HeldSignals signals;
  int signal = 0;
  const auto done_before = [&](const MeasurePart& part) {
    return options.base ? std::nullopt : DoneBefore(options, part);
  };
  std::vector<DeviceProfile> profiles;
  double spent = 0;
  int64_t ran = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = absl::StrCat("part ", i + 1, " of ", parts.size(), ": ", NameOf(parts[i]));
    if (std::optional<DeviceProfile> done = done_before(parts[i])) {
      options.progress(absl::StrCat(name, ": measured before"));
      profiles.push_back(*std::move(done));
      continue;
    }
    if (signal == 0) signal = signals.Next();
    if (signal != 0) {
      SetInterrupted(signal, parts[i], measured);
      return measured;
    }
    options.progress(name);
    int64_t left = 0;
    for (size_t next = i + 1; next < parts.size(); ++next) left += done_before(parts[next]) ? 0 : 1;
    if (options.begins) options.begins(ran, ran + 1 + left);
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<DeviceProfile> profile = MeasureOne(parts[i], options, measured, signal);
    if (!profile.ok()) return profile.status();
    if (measured.failed) return measured;
    const double seconds = SecondsSince(begin);
    spent += seconds, ++ran;
    const std::string rest =
        left == 0 ? ""
                  : "; about " + DurationText(spent / static_cast<double>(ran) * static_cast<double>(left)) + " left";
    options.progress(absl::StrCat("  ", profile->compute.size(), " uses of instructions and ",
                                  profile->communication.size(), " of communications in ", DurationText(seconds),
                                  rest));
    profiles.push_back(*std::move(profile));
  }
  for (const DeviceProfile& profile : profiles) {
    if (const std::string difference = Difference(profiles.front(), profile); !difference.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the parts are of different devices: ", difference,
                                                     "; measure each device into a file of its own (parts are in ",
                                                     folder, ")"));
    }
  }
  while (signals.Next() != 0) {  // too late to matter
  }
  measured.profile = Joined(parts, profiles);
  if (options.base) {
    StepUses steps;
    for (const MeasurePart& part : parts) steps.Add(Placed(part.plan, options));
    ABSL_ASSIGN_OR_RETURN(measured.profile, ScaledProfile(*options.base, measured.profile, steps));
    for (size_t i = 0; i < parts.size(); ++i)  // all of them ran now
      measured.probed[i].predicted = PredictedWith(Placed(parts[i].plan, options), measured.profile);
  }
  if (absl::Status status = WriteNamedFile(options.output, WriteProfile(measured.profile)); !status.ok()) return status;
  RemoveParts(folder);
  return measured;
}

}  // namespace

std::string PartsFolder(const std::string& output) { return output + ".parts"; }

int64_t PartsDone(const std::string& output) {
  std::error_code error;
  int64_t done = 0;
  for (fs::directory_iterator file(PartsFolder(output), error), end; !error && file != end; file.increment(error))
    done += file->path().extension() == ".json" ? 1 : 0;
  return done;
}

absl::StatusOr<Measured> MeasureParts(const std::vector<MeasurePart>& parts, const MeasureOptions& options) {
  if (absl::Status status = CheckDevices(parts, options); !status.ok()) return status;
  const std::string folder = PartsFolder(options.output);
  if (absl::Status status = MakeDirectories(folder); !status.ok()) return status;
  absl::StatusOr<Measured> measured = MeasureInto(folder, parts, options);
  if (measured.ok()) return measured;
  // Parts that are done are kept, but not those of a probe, which nobody goes on with.
  std::error_code error;
  options.base ? RemoveParts(folder) : void(fs::remove(folder, error));
  return measured;
}

}  // namespace planwright
