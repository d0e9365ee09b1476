// What `plan diff` says of a checkpoint and a plan, as text and as JSON.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/views/diff/resume_diff.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMisfitsTold = 10;
constexpr size_t kNameWidth = 15;

std::string RateText(const std::optional<RateChange>& change) {
  if (!change) return "as before";
  return absl::StrFormat("another one from step %d on: %.7g instead of %.7g", change->step, change->to, change->from);
}

// "12 tensors of radio_encoder (the first is a.b): learning rate another one from step 3 on: 2e-05 instead of 0.0002"
std::string PartText(const PartRateChange& change) {
  const std::string tensors = Counted(change.tensors, "tensor");
  const std::string before = change.from.empty() ? "in no part" : absl::StrCat("in part ", Printable(change.from)),
                    after = change.to.empty() ? "in no part" : absl::StrCat("in part ", Printable(change.to));
  std::string text = absl::StrCat(tensors, " ", after, before == after ? "" : absl::StrCat(", before ", before),
                                  " (the first is ", Printable(change.first), "): ");
  if (change.learning_rate) absl::StrAppend(&text, "learning rate ", RateText(change.learning_rate));
  if (change.learning_rate && change.weight_decay) absl::StrAppend(&text, ", ");
  if (change.weight_decay) absl::StrAppend(&text, "weight decay ", RateText(change.weight_decay));
  return text;
}

std::string LayoutText(const ResumeDiff& diff) {
  if (!diff.other_layout) return "as before";
  const std::string ranks =
      diff.world_size == diff.manifest.world_size
          ? absl::StrCat("on as many ranks, ", diff.world_size)
          : absl::StrCat("on ", Counted(diff.world_size, "rank"), " instead of ", diff.manifest.world_size);
  return absl::StrCat("another one, ", ranks, "; alone, it keeps the curve up to rounding");
}

std::string BeginText(const ResumeDiff& diff) {
  const std::string where = absl::StrCat("after step ", diff.steps_done, " of ", diff.steps, ", from sample ",
                                         WithCommas(diff.manifest.counters.consumed_samples), " on");
  const std::string renumbered = diff.steps_done == diff.manifest.counters.step
                                     ? ""
                                     : absl::StrCat(" (step ", diff.manifest.counters.step, " of the run so far)");
  return where + renumbered + (diff.steps_done >= diff.steps ? "; nothing is left to do" : "");
}

Json RateJson(const std::optional<RateChange>& change) {
  if (!change) return nullptr;
  return {{"step", change->step}, {"from", change->from}, {"to", change->to}};
}

Json PartsJson(const std::vector<PartRateChange>& parts) {
  Json list = Json::array();
  const auto match = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  for (const PartRateChange& change : parts) {
    list.push_back({{"from", match(change.from)},
                    {"to", match(change.to)},
                    {"first", change.first},
                    {"tensors", change.tensors},
                    {"learning_rate", RateJson(change.learning_rate)},
                    {"weight_decay", RateJson(change.weight_decay)}});
  }
  return list;
}

}  // namespace

Json ResumeDiffJson(const ResumeDiff& diff) {
  Json json =
      diff.plan ? DiffJson(*diff.plan) : Json{{"same", false}, {"may_change_loss", nullptr}, {"changes", nullptr}};
  json["same"] = diff.same();
  if (diff.plan) json["may_change_loss"] = diff.may_change_loss();
  const auto known = [&](Json value) { return diff.plan ? std::move(value) : Json(); };
  json["resume"] = {{"checkpoint", diff.folder},
                    {"step", diff.manifest.counters.step},
                    {"consumed_samples", diff.manifest.counters.consumed_samples},
                    {"plan_digest", diff.manifest.plan_digest},
                    {"recipe_digest", diff.manifest.recipe_digest},
                    {"refused", diff.refusals},
                    {"misfits", diff.misfits},
                    {"steps_done", diff.steps_done},
                    {"steps", diff.steps},
                    {"other_layout", known(diff.other_layout)},
                    {"other_samples", known(diff.other_samples)},
                    {"first_other_sample", diff.other_samples ? Json(diff.first_other_sample) : Json()},
                    {"other_files", diff.other_files},
                    {"files_not_compared", diff.files_not_compared},
                    {"base_not_compared", diff.base_not_compared},
                    {"learning_rate", known(RateJson(diff.learning_rate))},
                    {"weight_decay", known(RateJson(diff.weight_decay))},
                    {"parts", known(PartsJson(diff.parts))},
                    {"bytes_of_a_rank", diff.most_bytes},
                    {"bytes_of_all_ranks", diff.all_bytes}};
  return json;
}

std::string ResumeDiffText(const ResumeDiff& diff, const std::string& from, const std::string& to, size_t width) {
  std::string text;
  const auto line = [&](const std::string& name, const std::string& what) {
    const std::string whole = "  " + PadRight(name, kNameWidth) + what;
    absl::StrAppend(&text, width == 0 ? whole : Wrapped(whole, width, kNameWidth + 2), "\n");
  };
  if (!diff.refusals.empty()) {
    absl::StrAppend(&text, "going on from ", from, " with ", to, " is refused\n");
    for (const std::string& why : diff.refusals) line("refused", Printable(why));
    for (size_t i = 0; i < std::min(diff.misfits.size(), kMisfitsTold); ++i) line("", Printable(diff.misfits[i]));
    if (diff.misfits.size() > kMisfitsTold) line("", absl::StrCat("and ", diff.misfits.size() - kMisfitsTold, " more"));
  } else {
    absl::StrAppend(&text, "going on from ", from, " with ", to, "\n");
  }
  line("begins", BeginText(diff));
  if (!diff.base_not_compared.empty())
    line("base", "not compared, of what the adapters stand on: " + Printable(diff.base_not_compared));
  if (diff.plan) {
    line("layout", LayoutText(diff));
    line("samples", diff.padded_samples ? "as before, but for documents with a damaged image, which are padding"
                    : diff.other_samples
                        ? absl::StrCat("other ones from sample ", WithCommas(diff.first_other_sample), " on")
                        : "as before");
    if (!diff.other_files.empty())
      line("files", absl::StrCat("other documents than the run was trained on, of ",
                                 Printable(absl::StrJoin(diff.other_files, ", "))));
    if (!diff.files_not_compared.empty()) line("files", "not compared: " + diff.files_not_compared);
    line("learning rate", RateText(diff.learning_rate));
    line("weight decay", RateText(diff.weight_decay));
    for (size_t i = 0; i < diff.parts.size(); ++i) line(i == 0 ? "rates by part" : "", PartText(diff.parts[i]));
  }
  if (diff.misfits.empty())
    line("tensors", absl::StrCat(WithCommas(static_cast<int64_t>(diff.tensors)), ", as the plan needs them"));
  line("loads", absl::StrCat("up to ", BytesText(diff.most_bytes), " on a rank, ", BytesText(diff.all_bytes),
                             " on all; the checkpoint has ", BytesText(diff.checkpoint_bytes)));
  if (!diff.plan) {
    line("not compared", "layout, samples and rates, as the plan that wrote the checkpoint cannot be read");
    return text;
  }
  const char* asks = diff.refusals.empty() ? ": a launch asks for --accept-changes" : "";
  line("loss curve", diff.may_change_loss() ? absl::StrCat("may change", asks) : "does not change");
  return text + "\n" + DiffText(*diff.plan, "the plan of the checkpoint", to, width);
}

}  // namespace planwright
