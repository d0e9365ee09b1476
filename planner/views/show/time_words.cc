#include "planner/views/show/time_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/predict/estimate/step_speed.h"
#include "planner/state/checkpoint/disk_use.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

// "products 1.021, attention 0.994, launches 1.3"
std::string ScaledText(const DeviceProfile& profile) {
  std::string text;
  for (const ScaledUses& of : profile.scaled_by)
    absl::StrAppend(&text, text.empty() ? "" : ", ", of.uses, " ", DigitsText(of.factor, 4));
  return text;
}

}  // namespace

std::string ShareText(double part, double whole) { return PercentOf(part, whole, 1); }

std::string NameOfRanks(const RoleTime& role) {
  return role.what.empty() ? role.role->name : absl::StrCat(role.role->name, ", ", role.what);
}

std::string WaitsForText(const StepTime& time, size_t index) {
  const RoleTime& role = time.roles[index];
  if (role.waits_for < 0) return "";
  if (role.waits_for == static_cast<int>(index)) return "the rank with most expert rows";
  return NameOfRanks(time.roles[static_cast<size_t>(role.waits_for)]);
}

std::string SpeedText(const Plan& plan, const StepTime& time) {
  const StepSpeed speed = SpeedOf(plan, time);
  const bool cpus = plan.cluster.gpu == "none";
  const std::string mfu =
      speed.mfu > 0 ? absl::StrCat(", MFU ", speed.images_known ? "" : "at most ", ShareText(speed.mfu, 1)) : "";
  // Parts of a minute are not counted in hours of ranks.
  const std::string of_ranks =
      speed.hours < 1.0 / 60 ? ""
                             : absl::StrCat(", ", HoursText(speed.rank_hours), cpus ? " rank-hours" : " GPU-hours");
  return absl::StrCat("a step takes ", SecondsText(time.length), " on ",
                      cpus ? Counted(plan.world_size, "CPU rank")
                           : absl::StrCat(Counted(plan.world_size, "GPU"), " (", plan.cluster.gpu, ")"),
                      ": ", DigitsText(speed.tokens_per_second, 5), " tokens a second on each", mfu, "; the budget of ",
                      WithCommas(plan.budget.steps), " steps takes ", LongTimeText(speed.hours), of_ranks,
                      speed.evaluations > 0 ? absl::StrCat(", with ", Counted(speed.evaluations, "evaluation"), " of ",
                                                           SecondsText(speed.evaluation))
                                            : "",
                      ".");
}

std::string KnownSentence(const Plan& plan, const StepTime& time) {
  const DeviceProfile& profile = plan.cluster.profile;
  const std::string scaled = profile.scaled_from.empty()
                                 ? ""
                                 : absl::StrCat(" The profile is ", profile.scaled_from,
                                                ", scaled by a probe of this device: ", ScaledText(profile), ".");
  return absl::StrCat("How times are known: ", KnownText(KnownShares(time)), ".", scaled);
}

// Of checkpoints that stay, as they are told: no disk has more.
constexpr double kMostBytes = 1e18;

std::string SaveText(const Plan& plan, const StepTime& time) {
  const int64_t every = plan.checkpoint.every_steps;
  if (every == 0) return "";
  const int64_t on_disk = BytesOnDisk(plan);
  const CheckpointCount count = CountCheckpoints(plan);
  std::string text = absl::StrCat("A checkpoint every ", every == 1 ? "step" : Counted(every, "step"), ": it takes ",
                                  BytesText(on_disk), " on disk");
  if (count.written > 1) {
    const std::string written = WithCommas(count.written);
    const double stays = static_cast<double>(on_disk) * static_cast<double>(count.kept);
    absl::StrAppend(&text, "; ",
                    count.kept == count.written ? absl::StrCat("all ", written, " of the run stay, ")
                                                : absl::StrCat("of ", written, " of the run ", WithCommas(count.kept),
                                                               count.kept == 1 ? " stays, " : " stay, "),
                    stays < kMostBytes ? BytesText(static_cast<int64_t>(stays)) : "more than 1 EB");
  }
  text += ".";
  if (!time.seconds) return text;
  const SaveTime& save = time.save;
  absl::StrAppend(&text, " A rank copies up to ", BytesText(save.bytes), " beside the next step");
  if (save.known) {
    absl::StrAppend(&text, " in ", SecondsText(save.copy), ", ");
    // What is shorter than a hundred thousandth of a step is rounding.
    save.longer > 1e-5 * time.length
        ? absl::StrAppend(&text, "which makes that step ", SecondsText(save.longer), " longer, ",
                          SecondsText(save.per_step()), " of each step on average")
        : absl::StrAppend(&text, "which makes no step longer");
    return text + ". Writing to disk is not predicted: a disk that is slower than the steps between makes them wait.";
  }
  return text +
         ". How long that takes is not predicted: nobody knows how fast the rank copies, or copies go through "
         "less memory than they need (checkpoint.copy_bytes), at the speed of the disk.";
}

const char* KnownWord(size_t known) {
  constexpr const char* kWords[] = {"measured", "between", "estimated"};
  return kWords[known];
}

std::array<double, 3> KnownShares(const StepCost& cost) {
  std::array<double, 3> shares{};
  for (size_t k = 0; k < shares.size(); ++k) shares[k] = cost.seconds > 0 ? cost.by_known[k] / cost.seconds : 0;
  return shares;
}

std::array<double, 3> KnownShares(const StepTime& time) {
  std::array<double, 3> seconds{};
  double all = 0;
  for (const StepCost& cost : time.costs) {
    if (!cost.work()) continue;
    for (size_t k = 0; k < seconds.size(); ++k) seconds[k] += cost.by_known[k], all += cost.by_known[k];
  }
  for (double& share : seconds) share = all > 0 ? share / all : 0;
  return seconds;
}

std::string KnownText(const std::array<double, 3>& shares) {
  std::string text;
  for (size_t k = 0; k < shares.size(); ++k) {
    if (shares[k] > 0.9995) return KnownWord(k);
    if (shares[k] > 0.0005)
      absl::StrAppend(&text, text.empty() ? "" : ", ", KnownWord(k), " ", ShareText(shares[k], 1));
  }
  return text;
}

}  // namespace planwright
