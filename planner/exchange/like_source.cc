#include "planner/exchange/like_source.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/expected_tensors.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/weights/name_groups.h"
#include "planner/state/weights/read_values.h"
#include "planner/state/weights/weight_folder.h"

namespace planwright {
namespace {

// Keys that only one of the two has follow from another number, the pattern, which differs then, or are of training.
// `other`: the module of the run's other part; empty: there is none.
void CompareParts(const std::optional<SaidPart>& run, const std::optional<SaidPart>& source, const char* part,
                  const std::string& other, Findings& findings) {
  if (!run) return;
  if (!source) {
    findings.Problem(
        "--like", "",
        absl::StrCat("its config.json has no ", part, ", which the run has", other.empty() ? "" : ": `--module ", other,
                     other.empty() ? "" : "` exports the other part alone"));
    return;
  }
  std::map<std::string, const Said*> ours;
  for (const auto& [key, said] : run->numbers) ours[key] = &said;
  for (const auto& [key, our] : ours) {
    const Said* their = source->Find(key);
    if (their == nullptr || their->loose || their->text() == our->text()) continue;
    const auto same = [&, &key = key](const DialectSayable& only) {
      return only.key == key && only.value == their->text() && run->Says(only);
    };
    const auto* sayable = source->dialect != nullptr ? &source->dialect->sayable : nullptr;
    if (sayable != nullptr && std::any_of(sayable->begin(), sayable->end(), same)) continue;
    // "hidden_act = gelu" is already a key with its value: what follows from it is said behind.
    const bool derived = absl::StrContains(their->from, " = ");
    findings.Problem(their->from, derived ? "" : their->text(),
                     absl::StrCat(derived ? absl::StrCat("means ", key, " ", their->text(), ", which ") : "",
                                  "is not that of the run: ", our->from, " is ", our->text()));
  }
}

bool IsText(const std::string& name) {
  constexpr std::string_view kEnds[] = {".json", ".jinja", ".py", ".model", ".txt", ".tiktoken"};
  return std::any_of(std::begin(kEnds), std::end(kEnds),
                     [&](std::string_view end) { return std::string_view(name).ends_with(end); });
}

bool IsWeights(const std::string& name) {
  return absl::EndsWith(name, ".safetensors") || absl::EndsWith(name, ".safetensors.index.json") ||
         !OtherWeightFormat(name).empty();
}

namespace fs = std::filesystem;

// Whether a file, behind all links, lies in the folder, or among the files of the hub's cache of which the folder is a
// snapshot. `folder` has no links.
bool LiesIn(const fs::path& file, const fs::path& folder) {
  const auto [inner, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (inner == folder.end() && rest != file.end()) return true;
  const fs::path snapshots = folder.parent_path();
  return snapshots.filename() == "snapshots" && file.parent_path() == snapshots.parent_path() / "blobs";
}

}  // namespace

void CompareWithSource(const SaidModel& run, const ReadFolder& source, Findings& findings,
                       const std::string& encoder_module, const std::string& language_module) {
  for (const bool encoder : {false, true}) {
    const std::optional<SaidPart> SaidModel::*part = encoder ? &SaidModel::encoder : &SaidModel::language;
    CompareParts(run.*part, source.said.*part, encoder ? "encoder" : "language model",
                 encoder ? language_module : encoder_module, findings);
    if (!(source.said.*part)) continue;
    for (const std::string& copied : (source.said.*part)->copied) findings.notes.push_back(copied);
  }
  const auto &ours = run.image_token, &theirs = source.said.image_token;
  if (ours && theirs && ours->number() >= 0 && ours->number() != theirs->number()) {
    findings.Problem(theirs->from, theirs->text(),
                     absl::StrCat("is not that of the run: ", ours->from, " is ", ours->text()));
  }
}

void AddCopies(const ReadFolder& source, std::vector<OutTensor>& ours) {
  std::vector<OutTensor> copies;
  for (const auto& [name, tensor] : source.weights->all()) {
    const DialectExtra* extra = source.said.dialects->FindExtra(name);
    if (extra == nullptr) continue;
    const auto named = [&ours](const std::string& wanted) {
      return std::find_if(ours.begin(), ours.end(), [&](const OutTensor& one) { return one.name == wanted; });
    };
    const std::string* original = extra->Original([&](const std::string& one) { return named(one) != ours.end(); });
    if (original == nullptr || named(name) != ours.end()) continue;
    copies.push_back(*named(*original));
    copies.back().name = name;
    copies.back().parameter = false;
  }
  std::move(copies.begin(), copies.end(), std::back_inserter(ours));
}

std::vector<OutTensor> PassedThroughTensors(const ReadFolder& folder, const std::vector<OutTensor>& ours,
                                            Findings& findings) {
  WeightFiles& source = *folder.weights;
  const DialectSet& dialects = *folder.said.dialects;
  std::map<std::string_view, const OutTensor*> by_name;
  for (const OutTensor& tensor : ours) by_name[tensor.name] = &tensor;
  std::vector<TensorLine> lines;
  for (const OutTensor& tensor : ours) {
    const auto found = source.all().find(tensor.name);
    if (found == source.all().end()) {
      if (dialects.FindOptional(tensor.name) == nullptr)
        lines.push_back({"tensor ", tensor.name, " of the run is not in " + source.path()});
    } else if (found->second.shape != tensor.shape) {
      lines.push_back({"tensor ", tensor.name,
                       absl::StrCat(" of the run is ", ShapeText(tensor.shape), ", in ", source.path(), " ",
                                    ShapeText(found->second.shape))});
    }
  }
  for (std::string& line : GroupedLines(lines)) findings.Problem(std::move(line), "", "");
  std::vector<OutTensor> passed;
  const std::set<std::string> buffers =
      ExpectedBuffers(folder.said, [&](const std::string& name) { return folder.weights->ShapeOf(name); });
  for (const auto& [name, tensor] : source.all()) {
    if (by_name.contains(name)) continue;
    // config.json says nothing of trained scales, so the numbers are read.
    const DialectExtra* extra = dialects.FindExtra(name);
    const bool numbers = extra != nullptr && !extra->is.empty();
    // Other numbers than these are compared as a whole (CheckStoredNorm).
    const bool ones = numbers && extra->is == "1";
    if (ones) {
      if (std::string line = WrongExtra(source, *extra, name); !line.empty()) findings.Problem(std::move(line), "", "");
    }
    const bool buffer = tensor.type == "I64" || (numbers && !ones) || buffers.contains(name);
    passed.push_back(
        {name, tensor.type, tensor.shape, tensor.bytes, !buffer,
         [&source, &tensor](int64_t first, std::span<std::byte> to) { return source.ReadBytes(tensor, first, to); }});
  }
  return passed;
}

absl::StatusOr<std::vector<OutFile>> FilesBesideWeights(const std::string& source, Findings& findings) {
  std::vector<OutFile> files;
  std::vector<std::string> behind;
  std::error_code error;
  const fs::path folder = fs::canonical(source, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot read ", source, ": ", error.message()));
  // transformers keeps further chat templates in a folder of their own.
  for (const std::string inner : {"", "additional_chat_templates/"}) {
    const absl::StatusOr<std::vector<std::string>> names = NamesIn(source + "/" + inner);
    if (absl::IsNotFound(names.status()) && !inner.empty()) continue;
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      const std::string path = absl::StrCat(source, "/", inner, name);
      const bool plain = fs::is_regular_file(path, error);
      if (IsWeights(name) || (!plain && inner + name + "/" == "additional_chat_templates/")) continue;
      const fs::path target = fs::canonical(path, error);
      if (plain && IsText(name) && !error && LiesIn(target, folder)) {
        files.push_back({inner + name, target.string(), ""});
      } else if (plain && IsText(name) && !error) {
        const std::string leads = absl::StrCat("is a link to ", target.string(), ", out of ", source);
        if (inner + name == kConfigFile) {
          findings.Problem(kConfigFile, "", leads + ": copy the file into the folder");
        } else {
          findings.notes.push_back(absl::StrCat(inner, name, " ", leads, ": left behind"));
        }
      } else {
        behind.push_back(inner + name);
      }
    }
  }
  std::sort(files.begin(), files.end(), [](const OutFile& a, const OutFile& b) { return a.name < b.name; });
  std::sort(behind.begin(), behind.end());
  if (!behind.empty()) findings.notes.push_back(absl::StrCat("left behind in ", source, ": ", FirstOf(behind, 8)));
  return files;
}

}  // namespace planwright
